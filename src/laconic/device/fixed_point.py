"""Sums by code in whole numbers: exact, and the same in any order.

A residual is rounded to whole numbers of 64 bits. Their sums do not overflow. With 10 million rows,
38 bits are left for the largest number of an output.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from laconic.device.split import powers

BITS = 62


class Whole(NamedTuple):
    """A residual in whole numbers."""

    rows: Tensor
    """(n_rows, n_outputs), int64."""
    units: Tensor
    """(n_outputs,) in float64: an output is its whole numbers times its unit."""


def whole_numbers(residual: Tensor) -> Whole:
    """Round a residual (n_outputs, n_rows) to whole numbers."""
    units = powers(residual) * 2.0 ** (residual.shape[1].bit_length() - BITS)
    rows = (residual.double() / units[:, None]).round_()
    return Whole(rows.T.to(torch.int64, memory_format=torch.contiguous_format), units)


def sums_by_code(codes: Tensor, n_codes: int, numbers: Whole) -> Tensor:
    """Return the sums of the rows of every code of one feature, (n_codes, n_outputs), in int64."""
    out = torch.zeros(n_codes, numbers.rows.shape[1], dtype=torch.int64, device=codes.device)
    return out.index_add_(0, codes.to(torch.int32), numbers.rows)
