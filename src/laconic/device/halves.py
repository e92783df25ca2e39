"""Split a residual into numbers of half precision, and put sums of them together again.

Tensor cores multiply halves exactly and add them in float32. Two halves hold 22 bits of a number,
three hold 33. Every output is first scaled by a power of two, so that no half overflows and small
numbers keep their digits.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

# The largest number of an output is scaled to at most 2^TOP. Half precision ends below 2^16.
TOP = 14
# Each further half holds what is left, times 2^STEP. A half has 11 bits.
STEP = 11
# The largest power of two that an output is multiplied by. It keeps float32 from overflowing.
MOST = 100


class Halves(NamedTuple):
    """A residual in halves."""

    lines: Tensor
    """(width, padded rows), half precision. Line p · k + c is part p of output c. The other lines
    and the rows after the last row are zero."""
    n_outputs: int
    parts: int
    units: Tensor
    """(n_outputs,) in float64: an output is its scaled values times its unit."""

    def whole(self, sums: Tensor) -> Tensor:
        """Return sums of the outputs, (..., n_outputs) in float64, from sums of the lines."""
        k = self.n_outputs
        total = sums[..., :k].double()
        for part in range(1, self.parts):
            total = total + sums[..., part * k : (part + 1) * k].double() * 2.0 ** (-STEP * part)
        return total * self.units


def parts_of(residual: Tensor) -> int:
    """Return into how many halves a residual is split."""
    return 2 if residual.element_size() == 4 else 3


def halves(
    residual: Tensor, parts: int, width: int, n_padded: int, together: bool = False
) -> Halves:
    """Split a residual (n_outputs, n_rows) into halves.

    Parameters
    ----------
    residual : Tensor
        Finite values in float32 or float64.
    parts : int
        Number of halves of each value.
    width, n_padded : int
        Shape of the result. Unused lines and rows are zero.
    together : bool
        Whether the numbers of a row are neighbours in memory, and not the numbers of a line.
    """
    k, n = residual.shape
    shape = (n_padded, width) if together else (width, n_padded)
    lines = torch.zeros(shape, dtype=torch.float16, device=residual.device)
    lines = lines.T if together else lines
    peaks = residual.abs().amax(dim=1).double()
    # The quotient of a number and its mantissa is exactly a power of two.
    mantissas = torch.frexp(peaks)[0]
    powers = torch.where(peaks > 0, peaks / mantissas, 1.0)
    units = torch.clamp(powers * 2.0**-TOP, min=2.0**-MOST)
    left = residual * (1.0 / units).to(residual.dtype)[:, None]
    for part in range(parts):
        half = left.to(torch.float16)
        lines[part * k : (part + 1) * k, :n] = half
        if part + 1 < parts:
            left = (left - half) * 2.0**STEP
    return Halves(lines, k, parts, units)
