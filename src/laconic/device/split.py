"""Split a residual into small numbers for tensor cores, and put sums of them together again.

Every output is first scaled by a power of two. Then there are two ways:

* *halves* are numbers of half precision. Tensor cores multiply them exactly and add them in
  float32. Two halves hold 22 bits of every number, three hold 33.
* *digits* are whole numbers from -128 to 127. Tensor cores multiply and add them exactly. Four
  digits hold 30 bits of the largest number of an output, and fewer bits of smaller ones.
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


class Split(NamedTuple):
    """A residual that is split."""

    lines: Tensor
    """(width, padded rows). Line p · k + c is part p of output c. The other lines and the rows
    after the last row are zero."""
    n_outputs: int
    parts: int
    base: float
    """Part p counts base^p."""
    units: Tensor
    """(n_outputs,) in float64: an output is its scaled values times its unit."""

    def whole(self, sums: Tensor) -> Tensor:
        """Return sums of the outputs, (..., n_outputs) in float64, from sums of the lines."""
        k = self.n_outputs
        total = sums[..., :k].double()
        for part in range(1, self.parts):
            total = total + sums[..., part * k : (part + 1) * k].double() * self.base**part
        return total * self.units


def halves(
    residual: Tensor, parts: int, width: int, n_padded: int, together: bool = False
) -> Split:
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
    units = torch.clamp(powers(residual) * 2.0**-TOP, min=2.0**-MOST)
    left = residual * (1.0 / units).to(residual.dtype)[:, None]
    for part in range(parts):
        half = left.to(torch.float16)
        lines[part * k : (part + 1) * k, :n] = half
        if part + 1 < parts:
            left = (left - half) * 2.0**STEP
    return Split(lines, k, parts, 2.0**-STEP, units)


def digits(residual: Tensor, parts: int, width: int, n_padded: int) -> Split:
    """Split a residual into digits, the lowest one first. The arguments are those of `halves`."""
    k, n = residual.shape
    lines = torch.zeros(width, n_padded, dtype=torch.int8, device=residual.device)
    units = powers(residual) * 2.0 ** (2 - 8 * parts)
    left = (residual.double() / units[:, None]).round_().long()
    for part in range(parts):
        digit = ((left + 128) & 255) - 128
        lines[part * k : (part + 1) * k, :n] = digit
        left = (left - digit) >> 8
    return Split(lines, k, parts, 2.0**8, units)


def powers(residual: Tensor) -> Tensor:
    """Return a power of two above the largest number of every output, or 1 if all are zero."""
    peaks = residual.abs().amax(dim=1).double()
    # The quotient of a number and its mantissa is exactly a power of two.
    return torch.where(peaks > 0, peaks / torch.frexp(peaks)[0], 1.0)


def parts_of(residual: Tensor) -> int:
    """Return into how many halves a residual is split."""
    return 2 if residual.element_size() == 4 else 3
