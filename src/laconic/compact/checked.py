"""Compile a model in the form that ships, and compare its answers with Python's."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from laconic.export.chips import compiler_version, find_chip, is_installed, measure
from laconic.model.program import program_of
from laconic.model.single import single, single_scores

# Most rows that are kept to compare.
COMPARED = 2000


class Checked(NamedTuple):
    """What compilers said about a model."""

    rows: int | None
    """Rows on which the compiled code gave the same scores as Python, or None if it was not run."""
    flash: int | None
    """Bytes that the model adds to a program of the chip, or None if that was not measured."""
    compiler: str | None
    """The compiler of the chip."""
    why: str = ""
    """Why the code was not run."""

    def __str__(self) -> str:
        if self.rows is None:
            text = f"The C code was not run: {self.why}."
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
    header, found = predictor.to_c(), find_chip(chip)
    try:
        compiled = header.compile()
    except (OSError, RuntimeError) as error:  # no compiler, or none that works here
        return Checked(None, None, None, str(error).splitlines()[0])
    device = predictor.device_rows(X)
    own = predictor.encoded_scores(X) if header.integers is not None else (
        single_scores(single(program_of(predictor)), device)
    )  # fmt: skip
    if not np.array_equal(compiled.device_scores(device), own):
        raise RuntimeError("the compiled C code and Python disagree; please report this fault")
    if not is_installed(found):
        return Checked(len(device), None, None)
    flash = measure(str(header), found).flash
    return Checked(len(device), flash, compiler_version(found))
