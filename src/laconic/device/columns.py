"""The pool of input columns on a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from laconic.device.block_sums import block_sums
from laconic.device.pool import on_a_row
from laconic.device.surveys import blocks_of_rows, first_row, sizes_of_columns
from laconic.numeric.threads import Threads
from laconic.pools.columns import Columns
from laconic.pools.scaling import column_scales, needs_double


def bind(pool: Columns, X: Tensor, weight: Tensor, threads: Threads) -> DeviceColumns:
    """Find the scales, and keep X as it is."""
    return DeviceColumns(pool, X, weight, threads)


class DeviceColumns:
    """`Columns` over rows on a device. X is never copied: scales apply to the sums."""

    def __init__(self, pool: Columns, X: Tensor, weight: Tensor, threads: Threads) -> None:
        row, survey = first_row(X), sizes_of_columns(pool, X, weight)
        factors = column_scales(survey, pool.scale)
        self.facts = on_a_row(pool, row, survey, threads)
        self.dtype = self.facts.dtype
        self._X = X
        self._double = needs_double(row, factors)
        self._factors = torch.as_tensor(factors, device=X.device)

    def gradients(self, residual: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Yield all column sums in one block."""
        yield 0, block_sums(self._X, residual, self._double) * self._factors[:, None]

    def squares(self, weight: Tensor) -> Tensor:
        """Return the weighted squared norm of every column."""
        total = self._factors.new_zeros(len(self._factors))
        for rows in blocks_of_rows(self._X):
            # Values are scaled first, so that their squares neither overflow nor vanish.
            total += weight[rows].double() @ (self._X[rows] * self._factors).square_()
        return total

    def columns(self, atoms: Sequence[int]) -> Tensor:
        """Return the scaled training columns, one after the other."""
        chosen: Any = self.facts.extract(atoms)
        features = chosen.feature.tolist()
        out = self._X.new_empty(len(features), self._X.shape[0])
        for column, feature in zip(out, features, strict=True):
            column.copy_(self._X[:, feature].double() * self._factors[feature])
        return out
