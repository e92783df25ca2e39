/* The smallest program with a model, and the same program without it. */
#include <stdint.h>

int predict(const void *x);

static const void *volatile input;
static volatile int answer;

int main(void)
{
    const void *x = input;
#ifdef WITH_MODEL
    answer = predict(x);
#else
    answer = x != 0;
#endif
    return 0;
}
