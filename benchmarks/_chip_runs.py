"""Runs of exported C headers on chips: simavr for AVR, QEMU for the others, or this machine.

A firmware reads rows from a file, predicts each of them, and writes its answers into another file
(``chip_runs/main.c``). The model is compiled as in :func:`laconic.export.chips.measure`. So the
code that runs here has the flash that is measured there.

What the figures mean:

* simavr counts the cycles of the real chip.
* QEMU counts instructions, not cycles: a load, a division and a jump count as one each.
* Counts include the call, and at most four instructions that read the counter.
* The stack is painted before each call. Bytes of a frame that are never written do not count, and a
  byte that happens to be written in the colour of the paint is not seen. So take many rows: the
  figure is that of the deepest one.
* Floats have the same bits on all chips, with one exception: on AVR, a quotient below 1.2e-38 may
  be rounded wrongly.
"""

from __future__ import annotations

import atexit
import functools
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _c_models import mathematics

from laconic.export.chips import Chip, build, is_installed, sizes, write_model

SOURCES = Path(__file__).with_name("chip_runs")
DTYPES = {"uint8_t": "<u1", "int8_t": "<i1", "uint16_t": "<u2", "int16_t": "<i2",
          "int32_t": "<i4", "int64_t": "<i8", "float": "<f4"}  # fmt: skip
# The row, the scores, and the second function of the header. The first is in predict.c.
SCORES = """\
#define {NAME}_ONLY_SCORES
#include "{name}.h"
{name}_input row[{NAME}_N_FEATURES];
{name}_score all_scores[{NAME}_N_SCORES];
const uint16_t row_bytes = sizeof row, scores_bytes = sizeof all_scores;
void scores(void) {{ {name}_scores(row, all_scores); }}
"""
STACK_IS_FULL = 2**32 - 1
LIMIT = 600  # seconds of one run
QUIET = ("-display", "none", "-monitor", "none", "-serial", "none")
SEMIHOSTING = ("-semihosting-config", "enable=on,target=native")


@dataclass(frozen=True)
class Emulator:
    """How to run a program for a chip: the command, and what its counter counts."""

    command: tuple[str, ...]
    unit: str = "instructions"
    per_tick: float = 1.0


def _qemu(architecture: str, machine: str, shift: int = 0, per_tick: float = 1.0) -> Emulator:
    """QEMU with a virtual clock that goes on by 2**shift nanoseconds with each instruction."""
    command = (f"qemu-system-{architecture}", "-machine", machine, *QUIET, *SEMIHOSTING,
               "-icount", f"shift={shift}", "-kernel")  # fmt: skip
    return Emulator(command, per_tick=per_tick)


EMULATORS = {
    "c99": Emulator(()),
    "avr": Emulator(("simavr", "atmega328p"), "cycles"),
    "atmega2560": Emulator(("simavr", "atmega2560"), "cycles"),
    # The timer has 62.5 ns a tick, so two ticks an instruction tell the instructions apart.
    "cortex-m0": _qemu("arm", "microbit", shift=7, per_tick=62.5 / 2**7),
    "cortex-m4": _qemu("arm", "netduinoplus2"),
    "rv32": _qemu("riscv32", "sifive_e"),
}


@dataclass(frozen=True)
class Run:
    """The answers of a chip to all rows.

    Parameters
    ----------
    labels : ndarray of shape (n_rows,)
        What ``NAME_predict`` returned.
    scores : ndarray of shape (n_rows, n_scores)
        What ``NAME_scores`` wrote, in the header's type.
    counts : ndarray of shape (n_rows,), or None
        Cycles or instructions of each prediction; None on this machine.
    unit : str
        What ``counts`` counts.
    stack : int or None
        The most bytes of stack that a prediction used; None on this machine.
    """

    labels: np.ndarray
    scores: np.ndarray
    counts: np.ndarray | None
    unit: str
    stack: int | None


class DoesNotFit(Exception):
    """The firmware is larger than the chip's memory."""


def can_run(chip: Chip) -> bool:
    """Return whether the chip's compiler and emulator are installed."""
    if not is_installed(chip):
        return False
    command = EMULATORS[chip.name].command
    if command[:1] == ("simavr",):
        return _simavr() is not None
    return not command or shutil.which(command[0]) is not None


def emulator_version(chip: Chip) -> str:
    """Return the name and version of the chip's emulator. There is none for this machine."""
    if EMULATORS[chip.name].command[:1] == ("simavr",):
        command = ["dpkg-query", "-W", "-f", "simavr ${Version}", "libsimavr-dev"]
    else:
        command = [*EMULATORS[chip.name].command[:1], "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


def run(header_text: str, chip: Chip, rows: np.ndarray, name: str = "model") -> Run:
    """Predict rows on a chip.

    Parameters
    ----------
    header_text : str
        The text of the exported header.
    chip : Chip
        The chip.
    rows : array of shape (n_rows, n_features)
        Numbers that the header's input type holds exactly.
    name : str, default="model"
        The name that the header was exported with.

    Raises
    ------
    DoesNotFit
        If code, data or stack need more than the chip's memory.
    """
    emulator = EMULATORS[chip.name]
    inputs, scores = (_dtype(header_text, f"{name}_{what}") for what in ("input", "score"))
    n_scores = int(_find(rf"#define {name.upper()}_N_SCORES (\d+)", header_text))
    rows = _exactly(np.atleast_2d(rows), inputs)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        program = _firmware(header_text, chip, name, folder)
        (folder / "rows.bin").write_bytes(np.uint32(len(rows)).tobytes() + rows.tobytes())
        command = [_simavr() if word == "simavr" else word for word in emulator.command]
        done = subprocess.run([*command, str(program)], cwd=folder, capture_output=True, text=True,
                              timeout=LIMIT)  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"the program crashed on {chip.title}: {done.stderr.strip()}")
        answers = (folder / "answers.bin").read_bytes()
    record = [("label", "<i4"), ("ticks", "<u4"), ("stack", "<u4"), ("scores", scores, (n_scores,))]
    table = np.frombuffer(answers, record)
    if len(table) != len(rows):
        raise RuntimeError(f"{chip.title} answered {len(table)} of {len(rows)} rows")
    labels, scores = table["label"].astype(int), table["scores"].reshape(len(rows), n_scores)
    if not emulator.command:
        return Run(labels, scores, None, "", None)
    if table["stack"].max() == STACK_IS_FULL:
        raise DoesNotFit(f"the stack fills the {chip.ram} bytes of RAM of {chip.title}")
    counts = np.rint(table["ticks"] * emulator.per_tick).astype(int)
    return Run(labels, scores, counts, emulator.unit, int(table["stack"].max()))


def _firmware(header_text: str, chip: Chip, name: str, folder: Path) -> Path:
    """Compile and link the program that predicts rows; check that it fits on the chip."""
    predict, scores = write_model(header_text, folder, name), folder / "scores.c"
    scores.write_text(SCORES.format(name=name, NAME=name.upper()))
    sources = [SOURCES / "main.c", predict, scores]
    if EMULATORS[chip.name].command:
        sources += mathematics(chip)
    program = build(chip, sources, folder, [f"-I{SOURCES}"])
    memory = ("flash", chip.flash), ("RAM", chip.ram)
    for (kind, has), taken in zip(memory, sizes(chip, program), strict=True):
        if has is not None and taken > has:
            raise DoesNotFit(f"{taken} of the {has} bytes of {kind} of {chip.title}")
    return program


@functools.cache
def _simavr() -> str | None:
    """Compile the program that runs AVR firmware, once. Return None if simavr is missing."""
    folder = tempfile.mkdtemp(prefix="simavr")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program = f"{folder}/simavr_run"
    command = ["cc", "-O2", str(SOURCES / "simavr_run.c"), "-o", program, "-lsimavr"]
    done = subprocess.run(command, capture_output=True)
    return program if done.returncode == 0 else None


def _exactly(rows: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        converted = np.ascontiguousarray(rows, dtype)
    if not np.array_equal(converted, rows, equal_nan=np.dtype(dtype).kind == "f"):
        raise ValueError(f"rows hold numbers that are not of the header's input type, {dtype}")
    return converted


def _dtype(header_text: str, name: str) -> str:
    return DTYPES[_find(rf"typedef (\w+) {name};", header_text)]


def _find(pattern: str, header_text: str) -> str:
    found = re.search(pattern, header_text)
    if found is None:
        raise ValueError(f"header_text has no line {pattern}")
    return found.group(1)
