/* Answers every row of rows.bin: label, ticks, bytes of stack, scores. */
#include "port.h"

/* These come from the model (_chip_runs.py). */
extern const uint16_t row_bytes, scores_bytes;
extern char row[], all_scores[];
int predict(const void *x);
void scores(void);

enum { PAINT = 0x5A };
#define STACK_IS_FULL UINT32_MAX

struct answer {
    int32_t label;
    uint32_t ticks, stack;
};

/* Paint the free stack, predict, and look how deep the paint is gone. */
static __attribute__((noinline)) void answer_row(struct answer *answer)
{
    char *const top = stack_pointer();
    for (volatile char *p = _end; p < top; p++)
        *p = PAINT;
    uint32_t before = mark();
    int label = predict(row);
    answer->ticks = since(before);
    answer->label = label;
    const volatile char *deepest = _end;
    while (deepest < top && *deepest == PAINT)
        deepest++;
    answer->stack = deepest == _end ? STACK_IS_FULL : (uint32_t)(top - deepest);
}

int main(void)
{
    uint32_t n;
    struct answer answer;
    start_chip();
    for (get(&n, sizeof n); n; n--) {
        get(row, row_bytes);
        answer_row(&answer);
        scores();
        put(&answer, sizeof answer);
        put(all_scores, scores_bytes);
    }
    stop_chip();
    return 0;
}
