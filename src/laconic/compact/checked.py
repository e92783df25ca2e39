"""Compile a model in the form that ships, and compare its answers with Python's."""

from __future__ import annotations

import os
import subprocess
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from laconic.export.chips import compiler_version, find_chip, is_installed, measure
from laconic.export.compiled import find_compiler
from laconic.model.program import program_of
from laconic.model.single import single, single_scores

# Most rows that are compared.
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


def compared_rows(weight: np.ndarray) -> np.ndarray:
    """Return the numbers of at most 2,000 rows that are compared, drawn from those with a weight.

    Examples
    --------
    >>> compared_rows(np.array([1.0, 0.0, 2.0])).tolist(), len(compared_rows(np.ones(5000)))
    ([0, 2], 2000)
    """
    known = np.flatnonzero(weight > 0)
    if len(known) <= COMPARED:
        return known
    return np.sort(np.random.default_rng(0).choice(known, COMPARED, replace=False))


def checked(predictor: Any, chip: str, device: np.ndarray) -> Checked:
    """Compile a predictor, compare its scores with Python's, and measure it on a chip.

    The scores are compared on rows as the device hands them over.

    Raises
    ------
    RuntimeError
        If a score differs or the C code does not compile, which would be a fault of Laconic.
    """
    header, found = predictor.to_c(), find_chip(chip)
    try:
        compiled = header.compile()
    except (OSError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and _compiler_works():
            raise
        return Checked(None, None, None, str(error).splitlines()[0])
    if not np.array_equal(compiled.device_scores(device), _scores(predictor, device)):
        raise RuntimeError("the compiled C code and Python disagree; please report this fault")
    if not is_installed(found):
        return Checked(len(device), None, None)
    flash = measure(str(header), found).flash
    return Checked(len(device), flash, compiler_version(found))


def _compiler_works() -> bool:
    """Return whether the C compiler of this machine compiles a small program."""
    command = [find_compiler(), "-std=c99", "-x", "c", "-", "-c", "-o", os.devnull]
    program = "#include <stdint.h>\nint32_t one(void) { return 1; }\n"
    done = subprocess.run(command, input=program, capture_output=True, text=True, check=False)
    return done.returncode == 0


def encoded_rows(predictor: Any, X: Any) -> np.ndarray:
    """Return rows of numbers, in which dates are encoded, as the device hands them over."""
    if not hasattr(predictor, "integers"):
        return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float32)
    inputs = predictor.integers.inputs
    rows = inputs.handed_over(X)
    out = np.zeros((len(rows), predictor.n_features), dtype=rows.dtype)
    out[:, inputs.features] = rows
    return out


def _scores(predictor: Any, device: np.ndarray) -> np.ndarray:
    """Return Python's scores of rows as the device hands them over."""
    if not hasattr(predictor, "integers"):
        return single_scores(single(program_of(predictor)), device)
    integers = predictor.integers
    scores: np.ndarray = integers.code_scores(
        integers.inputs.codes_of(device[:, integers.inputs.features])
    )
    return scores


def random_rows(predictor: Any, n_rows: int = 500) -> np.ndarray:
    """Return rows of random numbers, as the device hands them over."""
    rng, shape = np.random.default_rng(0), (n_rows, predictor.n_features)
    if not hasattr(predictor, "integers"):
        return rng.standard_normal(shape).astype(np.float32)
    inputs = predictor.integers.inputs
    if inputs.given != "float":
        limits = np.iinfo(inputs.dtype)
        return rng.integers(limits.min, limits.max, shape, dtype=inputs.dtype, endpoint=True)
    out = np.zeros(shape, dtype=np.float32)
    span = inputs.high - inputs.low
    # A little beyond the range, where inputs saturate.
    steps = inputs.base + rng.uniform(-0.1, 1.1, (n_rows, len(span))) * span
    out[:, inputs.features] = steps / inputs.scale
    return out
