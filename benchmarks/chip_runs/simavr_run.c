/* Runs a firmware on a simulated AVR: simavr_run CHIP FIRMWARE.ELF
 *
 * The firmware writes to GPIOR0 what goes into answers.bin, and reads rows.bin from GPIOR1. A write
 * to GPIOR2 is a mark, and four reads of GPIOR2 give the cycles between the last two marks. The rows
 * and answers are files, because simavr itself prints on stdout. */
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>
#include <simavr/sim_io.h>
#include <stdio.h>
#include <string.h>

static FILE *rows, *answers;
static avr_cycle_count_t last_mark;
static uint32_t elapsed;

static void write_byte(avr_t *avr, avr_io_addr_t address, uint8_t byte, void *unused)
{
    putc(byte, answers);
}

static uint8_t read_byte(avr_t *avr, avr_io_addr_t address, void *unused)
{
    return (uint8_t)getc(rows);
}

static void mark(avr_t *avr, avr_io_addr_t address, uint8_t byte, void *unused)
{
    elapsed = (uint32_t)(avr->cycle - last_mark);
    last_mark = avr->cycle;
}

static uint8_t read_elapsed(avr_t *avr, avr_io_addr_t address, void *unused)
{
    uint8_t byte = (uint8_t)elapsed;
    elapsed >>= 8;
    return byte;
}

int main(int count, char **arguments)
{
    elf_firmware_t firmware;
    memset(&firmware, 0, sizeof firmware);
    avr_t *avr = count == 3 ? avr_make_mcu_by_name(arguments[1]) : NULL;
    rows = fopen("rows.bin", "rb");
    answers = fopen("answers.bin", "wb");
    if (!avr || !rows || !answers || elf_read_firmware(arguments[2], &firmware))
        return 1;
    avr_init(avr);
    avr->log = LOG_NONE;
    avr_load_firmware(avr, &firmware);
    avr_register_io_write(avr, 0x3E, write_byte, NULL);
    avr_register_io_read(avr, 0x4A, read_byte, NULL);
    avr_register_io_write(avr, 0x4B, mark, NULL);
    avr_register_io_read(avr, 0x4B, read_elapsed, NULL);
    int state = cpu_Running;
    while (state != cpu_Done && state != cpu_Crashed)
        state = avr_run(avr);
    return state == cpu_Crashed || fclose(answers);
}
