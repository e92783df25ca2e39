"""Sizes of input columns, found on a device. They equal those of `laconic.pools.scaling`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from laconic.numeric.threads import row_blocks
from laconic.pools.scaling import ColumnsSurvey, ScaledPool

# Numbers that are read together: 64 MiB in float64.
ENTRIES = 1 << 23


def blocks_of_rows(X: Tensor, entries: int = ENTRIES) -> list[slice]:
    """Cut the rows of X into blocks of about ``entries`` numbers. It depends on the shape alone."""
    return row_blocks(X.shape[0], max(1, entries // max(X.shape[1], 1)))


def first_row(X: Tensor) -> np.ndarray:
    """Return the first row on the host, (1, d)."""
    row: np.ndarray = X[:1].cpu().numpy()
    return row


def peaks_of_columns(X: Tensor) -> Tensor:
    """Return the largest absolute value of every column, in float64."""
    return torch.maximum(X.amax(dim=0), -X.amin(dim=0)).double()


def sizes_of_columns(pool: ScaledPool, X: Tensor, weight: Tensor) -> ColumnsSurvey:
    """Return the sizes of all columns, as ``pool.sizes`` does for rows on the host."""
    survey = pool.sizes(first_row(X), np.ones(1))
    peak = peaks_of_columns(X)
    survey = survey._replace(peak=peak.cpu().numpy())
    if survey.deviation is None:
        return survey
    unit = torch.where(peak > 0, peak, 1.0)
    # Values are measured from the column's first value. So the deviation of a constant column is
    # exactly zero.
    origin = X[0] / unit
    origin = origin + _moments(X, weight, unit, origin)[0]
    slip, variance = _moments(X, weight, unit, origin)
    deviation = (variance - slip**2).clamp(min=0.0).sqrt()
    return survey._replace(
        mean=(origin + slip).cpu().numpy(), deviation=deviation.cpu().numpy(), weight=1.0
    )


def _moments(X: Tensor, weight: Tensor, unit: Tensor, origin: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weighted sums of X / unit - origin, and of its squares, for every column."""
    first, second = unit.new_zeros(len(unit)), unit.new_zeros(len(unit))
    for rows, tile in _scaled(X, unit):
        tile -= origin
        first += weight[rows] @ tile
        second += weight[rows] @ tile.square_()
    return first, second


def _scaled(X: Tensor, unit: Tensor) -> Iterator[tuple[slice, Tensor]]:
    for rows in blocks_of_rows(X):
        yield rows, X[rows] / unit
