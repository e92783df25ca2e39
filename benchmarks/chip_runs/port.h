/* What the firmware asks of a chip: rows in, answers out, a counter, and the stack pointer. */
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))

INLINE void start_chip(void);                   /* opens the files, starts the counter */
INLINE void get(void *to, uint16_t n);          /* reads n bytes of rows.bin */
INLINE void put(const void *from, uint16_t n);  /* writes n bytes to answers.bin */
INLINE uint32_t mark(void);                     /* where the counter is */
INLINE uint32_t since(uint32_t before);         /* ticks from a mark until now */
INLINE char *stack_pointer(void);
INLINE void stop_chip(void);
extern char _end[]; /* where the data ends, and the stack must end too */

#if defined(__AVR__)
/* Three spare registers, which simavr_run.c watches. */
#include <avr/io.h>
#include <avr/sleep.h>

INLINE void start_chip(void) {}

INLINE void get(void *to, uint16_t n)
{
    for (uint8_t *t = to; n--;)
        *t++ = GPIOR1;
}

INLINE void put(const void *from, uint16_t n)
{
    for (const uint8_t *f = from; n--;)
        GPIOR0 = *f++;
}

INLINE uint32_t mark(void) { return GPIOR2 = 0; }

INLINE uint32_t since(uint32_t before)
{
    union { uint8_t byte[4]; uint32_t cycles; } answer;
    GPIOR2 = 0; /* now the simulator knows the cycles since the last mark */
    for (uint8_t b = 0; b < 4; b++)
        answer.byte[b] = GPIOR2;
    return answer.cycles;
}

INLINE char *stack_pointer(void) { return (char *)SP + 1; }

INLINE void stop_chip(void) { sleep_cpu(); }

#elif defined(__arm__) || defined(__riscv)
/* Semihosting: QEMU opens, reads and writes files for the firmware. */
enum { OPEN = 1, WRITE = 5, READ = 6, EXIT = 0x18, FINISHED = 0x20026 };

INLINE uintptr_t ask(uintptr_t operation, const void *arguments)
{
#ifdef __arm__
    register uintptr_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = arguments;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
#else
    register uintptr_t a0 __asm__("a0") = operation;
    register const void *a1 __asm__("a1") = arguments;
    __asm__ volatile(".balign 16\n.option push\n.option norvc\n"
                     "slli zero, zero, 0x1f\nebreak\nsrai zero, zero, 7\n.option pop"
                     : "+r"(a0) : "r"(a1) : "memory");
    return a0;
#endif
}

static uintptr_t rows_file, answers_file;

INLINE void get(void *to, uint16_t n)
{
    ask(READ, (uintptr_t[]){rows_file, (uintptr_t)to, n});
}

INLINE void put(const void *from, uint16_t n)
{
    ask(WRITE, (uintptr_t[]){answers_file, (uintptr_t)from, n});
}

INLINE void start_chip(void)
{
    enum { READ_BYTES = 1, WRITE_BYTES = 5 };
    rows_file = ask(OPEN, (uintptr_t[]){(uintptr_t)"rows.bin", READ_BYTES, 8});
    answers_file = ask(OPEN, (uintptr_t[]){(uintptr_t)"answers.bin", WRITE_BYTES, 11});
#if defined(__ARM_ARCH_6M__)
    *(volatile uint32_t *)0x40008508 = 3; /* TIMER0 of the nRF51 has 32 bits, */
    *(volatile uint32_t *)0x40008510 = 0; /* counts at 16 MHz */
    *(volatile uint32_t *)0x40008000 = 1; /* and starts */
#elif defined(__arm__)
    *(volatile uint32_t *)0x4000002C = 0xFFFFFFFF; /* TIM2 of the STM32F4 has 32 bits */
    *(volatile uint32_t *)0x40000000 = 1;          /* and starts */
#endif
}

INLINE uint32_t mark(void)
{
#if defined(__ARM_ARCH_6M__)
    *(volatile uint32_t *)0x40008040 = 1;
    return *(volatile uint32_t *)0x40008540;
#elif defined(__arm__)
    return *(volatile uint32_t *)0x40000024;
#else
    uint32_t instructions;
    __asm__ volatile(".option push\n.option arch, +zicsr\ncsrr %0, minstret\n.option pop"
                     : "=r"(instructions));
    return instructions;
#endif
}

INLINE uint32_t since(uint32_t before) { return mark() - before; }

INLINE char *stack_pointer(void)
{
    char *pointer;
#ifdef __arm__
    __asm__ volatile("mov %0, sp" : "=r"(pointer));
#else
    __asm__ volatile("mv %0, sp" : "=r"(pointer));
#endif
    return pointer;
}

INLINE void stop_chip(void) { ask(EXIT, (const void *)FINISHED); }

#else
/* This machine: no counter, and no stack that is painted. */
#include <stdio.h>
#include <stdlib.h>

static FILE *rows_file, *answers_file;

INLINE void start_chip(void)
{
    rows_file = fopen("rows.bin", "rb");
    answers_file = fopen("answers.bin", "wb");
}

INLINE void get(void *to, uint16_t n)
{
    if (fread(to, 1, n, rows_file) < n)
        exit(1);
}

INLINE void put(const void *from, uint16_t n) { fwrite(from, 1, n, answers_file); }

INLINE uint32_t mark(void) { return 0; }

INLINE uint32_t since(uint32_t before) { return before; }

INLINE char *stack_pointer(void) { return _end; }

INLINE void stop_chip(void) {}
#endif
