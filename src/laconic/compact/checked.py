"""Compile a model in the form that ships, and compare its answers with Python's."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from laconic.export.chips import compiler_version, find_chip, is_installed, measure
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


def checked(predictor: Any, chip: str, X: Any = None) -> Checked:
    """Compile a predictor, compare its scores with Python's, and measure it on a chip.

    The scores are compared on some of the rows ``X``, or on random rows.

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
    if X is None:
        device = random_rows(predictor)
    else:
        device = predictor.device_rows(X[:: max(1, -(-X.shape[0] // COMPARED))])
    if not np.array_equal(compiled.device_scores(device), _scores(predictor, device)):
        raise RuntimeError("the compiled C code and Python disagree; please report this fault")
    if not is_installed(found):
        return Checked(len(device), None, None)
    flash = measure(str(header), found).flash
    return Checked(len(device), flash, compiler_version(found))


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
