"""Compile a model in the form that ships, and compare its answers with Python's."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from laconic.export.chips import compiler_version, find_chip, is_installed, measure
from laconic.export.compiled import find_compiler
from laconic.model.program import program_of
from laconic.model.single import single, single_scores

# Most rows that are kept to compare.
COMPARED = 2000


class Checked(NamedTuple):
    """What compilers said about a model."""

    rows: int | None
    """Rows on which the compiled code gave the same scores as Python, or None without a C compiler
    for this machine."""
    flash: int | None
    """Bytes that the model adds to a program of the chip, or None without its compiler."""
    compiler: str | None
    """The compiler of the chip."""

    def __str__(self) -> str:
        if self.rows is None:
            text = "There is no C compiler here, so the C code was not run."
        else:
            text = f"The compiled C code gives the same scores as Python on {self.rows:,} rows."
        if self.flash is not None:
            text += f" It takes {self.flash:,} bytes of flash ({self.compiler})."
        return text


def checked(predictor: Any, X: Any, chip: str) -> Checked:
    """Compile a predictor, compare its scores with Python's, and measure it on a chip.

    Raises
    ------
    RuntimeError
        If a score differs, which would be a fault of Laconic.
    """
    header = predictor.to_c()
    rows = None
    try:
        find_compiler()
    except FileNotFoundError:
        pass
    else:
        device = predictor.device_rows(X)
        own = predictor.encoded_scores(X) if header.integers is not None else (
            single_scores(single(program_of(predictor)), device)
        )  # fmt: skip
        if not np.array_equal(header.compile().device_scores(device), own):
            raise RuntimeError("the compiled C code and Python disagree; please report this fault")
        rows = len(device)
    found = find_chip(chip)
    if not is_installed(found):
        return Checked(rows, None, None)
    return Checked(rows, measure(str(header), found).flash, compiler_version(found))
