"""Chips that run exported C headers: their compilers, and the flash and RAM that a model takes.

The sizes are measured, not estimated. A small program is linked with the model, and the same
program without it. Compiler, flags, start-up code and linker script are the same. The difference is
what the model adds to a program. Library routines that only the model needs are part of it.

Cortex-M and RISC-V chips start with the code in ``bare/start.c``. AVR uses its C library's own.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

BARE = Path(__file__).with_name("bare")
FLAGS = ("-std=c99", "-Os", "-ffp-contract=off", "-ffunction-sections", "-fdata-sections",
         "-Wl,--gc-sections")  # fmt: skip


@dataclass(frozen=True)
class Chip:
    """A processor, and how to compile and link for it.

    Parameters
    ----------
    name : str
        The short name, for :func:`find_chip`.
    title : str
        The name for tables.
    compiler, size : str
        The commands that compile and link, and that list the sizes of sections.
    packages : tuple of str
        The Debian packages with these commands and a C library.
    flags : tuple of str
        Flags of the compiler and linker, besides :data:`FLAGS`.
    start : tuple of Path
        C files with the start-up code, if the C library has none.
    flash, ram : int or None
        Bytes of memory, or None if there is no natural limit.
    """

    name: str
    title: str
    compiler: str
    size: str
    packages: tuple[str, ...]
    flags: tuple[str, ...] = ()
    start: tuple[Path, ...] = ()
    flash: int | None = None
    ram: int | None = None


@dataclass(frozen=True)
class Footprint:
    """What a model takes of a chip's memory.

    Parameters
    ----------
    flash : int
        Bytes of code, constants and initial values of variables (sections text, rodata, data).
    ram : int
        Bytes of variables that exist all the time (sections data and bss). The row and the scores
        belong to the caller and do not count.
    stack : int
        Bytes of stack of one prediction, as the compiler reports them: the frames of all functions
        of the header together. Library routines (floats and 64-bit integers in software) come on
        top, and return addresses on AVR.
    """

    flash: int
    ram: int
    stack: int


def _bare(flash: int, ram: int, size: int) -> tuple[str, ...]:
    """Return the flags that place a program without an operating system at these addresses."""
    places = f"--defsym=flash_origin={flash},--defsym=ram_origin={ram},--defsym=ram_length={size}"
    return ("-nostartfiles", "-T", str(BARE / "memory.ld"), f"-Wl,{places}")


# The linker takes more than the chip has, so that a model that does not fit can be measured too.
_AVR_MEMORY = "--defsym=__TEXT_REGION_LENGTH__=65536,--defsym=__DATA_REGION_LENGTH__=65536"
_START = (BARE / "start.c",)
_ARM = ("arm-none-eabi-gcc", "arm-none-eabi-size", ("gcc-arm-none-eabi", "libnewlib-arm-none-eabi"))
_RISCV = ("riscv64-unknown-elf-gcc", "riscv64-unknown-elf-size",
          ("gcc-riscv64-unknown-elf", "picolibc-riscv64-unknown-elf"))  # fmt: skip
_ALL = (
    # No unwind tables: C does not use them, and firmware does not have them.
    Chip("c99", "this machine", "cc", "size", ("gcc",),
         ("-fno-asynchronous-unwind-tables", "-fno-unwind-tables")),
    Chip("avr", "AVR ATmega328P", "avr-gcc", "avr-size", ("gcc-avr", "avr-libc"),
         ("-mmcu=atmega328p", f"-Wl,{_AVR_MEMORY}"), flash=32 * 1024, ram=2 * 1024),
    Chip("cortex-m0", "Cortex-M0 nRF51822", *_ARM,
         ("-mcpu=cortex-m0", "-mthumb", "--specs=nano.specs",
          *_bare(0, 0x20000000, 16 * 1024)),
         _START, flash=256 * 1024, ram=16 * 1024),
    Chip("cortex-m4", "Cortex-M4F STM32F405", *_ARM,
         ("-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard",
          "--specs=nano.specs", *_bare(0x08000000, 0x20000000, 128 * 1024)),
         _START, flash=1024 * 1024, ram=128 * 1024),
    # The flash is a chip of its own, of any size.
    Chip("rv32", "RISC-V FE310 (RV32IMAC)", *_RISCV,
         ("-march=rv32imac", "-mabi=ilp32", "--specs=picolibc.specs",
          *_bare(0x20400000, 0x80000000, 16 * 1024)),
         _START, ram=16 * 1024),
)  # fmt: skip
CHIPS = {chip.name: chip for chip in _ALL}


def find_chip(name: str) -> Chip:
    """Return the chip with this name.

    Raises
    ------
    ValueError
        If there is none. The message lists the known names.
    """
    if name not in CHIPS:
        raise ValueError(f"chip is {name!r}; the known chips are {', '.join(map(repr, CHIPS))}")
    return CHIPS[name]


def is_installed(chip: Chip) -> bool:
    """Return whether this machine can compile and link for the chip."""
    try:
        _without_model(chip)
    except RuntimeError:
        return False
    return True


def compiler_version(chip: Chip) -> str:
    """Return the first line that the compiler prints about its version."""
    return _output([chip.compiler, "--version"], chip).splitlines()[0]


def measure(header_text: str, chip: Chip | str, name: str = "model") -> Footprint:
    """Compile and link an exported C header, and measure what it adds to a program.

    The program calls ``NAME_predict`` once, on a row that the compiler does not know.

    Parameters
    ----------
    header_text : str
        The text of the header.
    chip : Chip or str
        The chip, or its name.
    name : str, default="model"
        The name that the header was exported with.

    Returns
    -------
    Footprint
        Differences to the same program without the model, in bytes. Routines of the C library that
        every program has count as free. A part of the sizes is padding: a linker rounds sections
        up to four bytes on 32-bit chips. On ``"c99"``, the program is an ordinary one of this
        machine, linked dynamically, so routines in shared libraries do not count.

    Raises
    ------
    RuntimeError
        If the compiler or its C library is not installed.
    ValueError
        If the header does not compile or link. The message quotes the compiler.

    Notes
    -----
    A model that is larger than the chip's memory is measured too, up to 64 kB on AVR and 16 MB on
    the other chips.
    """
    chip = find_chip(chip) if isinstance(chip, str) else chip
    flash, ram = _without_model(chip)
    with tempfile.TemporaryDirectory() as folder:
        sources = [BARE / "probe.c", write_model(header_text, Path(folder), name)]
        program = build(chip, sources, Path(folder), ("-DWITH_MODEL", "-fstack-usage"))
        both = sizes(chip, program)
        stack = sum(
            int(line.split("\t")[1])
            for file in Path(folder).glob("*predict.su")
            for line in file.read_text().splitlines()
        )
    return Footprint(both[0] - flash, both[1] - ram, stack)


def write_model(header_text: str, folder: Path, name: str = "model") -> Path:
    """Write the header and ``predict.c``, the C file of a model that every program links."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ValueError(f"name must be a name in C, such as 'model', but it is {name!r}")
    (folder / f"{name}.h").write_text(header_text)
    source = folder / "predict.c"
    source.write_text(
        f'#include "{name}.h"\n'
        "int predict(const void *x);\n"
        f"int predict(const void *x) {{ return {name}_predict(x); }}\n"
    )
    return source


def build(chip: Chip, sources: Iterable[Path], folder: Path, flags: Iterable[str] = ()) -> Path:
    """Compile C files for a chip and link them to the program ``folder/program.elf``."""
    program = folder / "program.elf"
    files = map(str, (*sources, *chip.start))
    command = [chip.compiler, *FLAGS, *chip.flags, *flags, *files, "-o", str(program)]
    try:
        _output(command, chip, folder)
    except subprocess.CalledProcessError as error:
        raise ValueError(
            f"header_text does not compile and link for chip {chip.name!r}: {error.stderr.strip()}"
        ) from None
    return program


def sizes(chip: Chip, program: Path) -> tuple[int, int]:
    """Return the bytes of flash and of RAM in a linked program."""
    text, data, bss = _output([chip.size, str(program)], chip).splitlines()[1].split()[:3]
    return int(text) + int(data), int(data) + int(bss)


@functools.cache
def _without_model(chip: Chip) -> tuple[int, int]:
    """Return the sizes of the program without a model. Fail if the chip's tools are incomplete."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return sizes(chip, build(chip, [BARE / "probe.c"], Path(folder)))
        except ValueError as error:
            raise RuntimeError(_missing(chip, f"cannot link: {error}")) from None


def _output(command: list[str], chip: Chip, folder: Path | None = None) -> str:
    """Run a command of the chip's tools and return what it prints."""
    if shutil.which(command[0]) is None:
        raise RuntimeError(_missing(chip, "is not installed"))
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def _missing(chip: Chip, what: str) -> str:
    packages = " ".join(chip.packages)
    return (
        f"chip {chip.name!r} needs {chip.compiler} with a C library, but it {what}; "
        f"on Debian, install it with: apt-get install {packages}"
    )
