/* Start-up code for Cortex-M and RISC-V chips: set up the memory, then call main. */
#include <stdint.h>

extern uint32_t _data_in_flash[], _data[], _data_end[], _end[], _stack[];
int main(void);

#ifdef __riscv
/* The first instructions of the firmware: set the global pointer and the stack pointer. */
__asm__(".section .first, \"ax\"\n"
        ".global _start\n"
        "_start:\n"
        ".option push\n"
        ".option norelax\n"
        "la gp, __global_pointer$\n"
        ".option pop\n"
        "la sp, _stack\n"
        "j begin\n");
#else
void begin(void);

/* The first words of the firmware: the stack pointer, and where the processor starts. */
__attribute__((section(".first"), used)) static void *const first[] = {_stack, begin};
#endif

__attribute__((used)) void begin(void)
{
#ifdef __ARM_FP
    *(volatile uint32_t *)0xE000ED88 = 0xFu << 20; /* switches the floating-point unit on */
    __asm__ volatile("dsb\nisb");
#endif
    /* Volatile keeps the compiler from calling memcpy and memset: a model that needs them pays. */
    volatile uint32_t *to = _data;
    for (const uint32_t *from = _data_in_flash; to < _data_end;)
        *to++ = *from++;
    while (to < _end)
        *to++ = 0;
    main();
    for (;;)
        ;
}
