"""Passes over the rows of a device that read each number of the columns once, by a Triton kernel.

A product with the Hessian needs every row twice: for its scores, and for sums. The kernel does both
while the columns of a few rows are in fast memory. Numbers are multiplied in parts that tensor
cores take, and the parts together keep the digits of single precision.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from laconic.device.triton_or_twin import launched_at, power_of_two

# Rows are padded with zeros to a multiple of this number, so that every line is aligned in memory.
ALIGNED = 256
# Most outputs of one pass: more take too many registers.
MOST_OUTPUTS = 64


class RowTile(NamedTuple):
    """How one program of the kernel reads columns. It changes sums by rounding at most."""

    rows: int
    """Rows of a program. It divides `ALIGNED`. Their sums are formed in single precision."""
    columns: int
    """Columns that are read together."""
    warps: int
    stages: int
    """Reads under way at a time."""


# Tiles by the bytes of a number, and others that a benchmark compares them with.
TILES = {1: RowTile(256, 32, 4, 3), 4: RowTile(128, 32, 4, 3)}
OTHERS = {
    1: (RowTile(256, 64, 8, 3), RowTile(128, 64, 4, 3), RowTile(128, 32, 4, 4)),
    4: (RowTile(64, 32, 4, 3), RowTile(128, 16, 4, 4), RowTile(256, 32, 8, 2)),
}


class RowPass(NamedTuple):
    """Columns that a pass reads."""

    room: Tensor
    """(columns, padded rows): numbers in single precision, or 0 and 1 in a byte each."""
    n: int
    """How many of the first columns are used."""
    n_rows: int
    shifts: Tensor | None = None
    """(columns,) in float64: what is subtracted from 0 and 1. Other numbers are as they are."""
    tile: RowTile | None = None

    def product(self, weights: Tensor) -> Tensor:
        """Return weights (n_outputs, n) times the columns, (n_outputs, n_rows)."""
        out = weights.new_empty((len(weights), self.n_rows))
        return self._run(out, weights=weights)

    def sums(self, values: Tensor) -> Tensor:
        """Return sums over rows of the columns times values (n_outputs, n_rows), in float64."""
        return self._summed(values, state=values.contiguous())

    def bent(self, weights: Tensor, bend: Tensor, row_weight: Tensor, centres: bool) -> Tensor:
        """Return sums over rows of the columns times bent scores, (n, n_outputs) in float64.

        The scores are weights times the columns. They are multiplied by ``bend`` (n_outputs,
        n_rows) and ``row_weight``. With ``centres``, their mean under ``bend`` is subtracted first.
        """
        given = {"weights": weights, "state": bend, "row_weight": row_weight}
        return self._summed(weights, **given, centres=centres)

    def _summed(self, like: Tensor, **given: Tensor | bool) -> Tensor:
        tiles = self.room.shape[1] // self._tile.rows
        out = like.new_empty((tiles, self.n + 1, len(like)))
        total = self._run(out, **given).sum(0, dtype=torch.float64)
        if self.shifts is None:
            return total[:-1]
        return total[:-1] - self.shifts[: self.n, None] * total[-1]

    @property
    def _tile(self) -> RowTile:
        return self.tile or TILES[self.room.element_size()]

    def _run(
        self,
        out: Tensor,
        weights: Tensor | None = None,
        state: Tensor | None = None,
        row_weight: Tensor | None = None,
        centres: bool = False,
    ) -> Tensor:
        from laconic.device.row_kernel import pass_over_rows  # it imports Triton

        tile, n_outputs = self._tile, out.shape[-1] if out.ndim == 3 else len(out)
        width = power_of_two(n_outputs, 16)
        given = weights
        if weights is not None and self.shifts is not None:
            away = weights.double() @ self.shifts[: self.n]
            given = torch.cat([weights.reshape(-1), away.to(weights.dtype)])
        with launched_at(self.room):
            pass_over_rows[(self.room.shape[1] // tile.rows,)](
                self.room,
                out if given is None else given.contiguous(),
                out if state is None else state,
                out if row_weight is None else row_weight,
                out,
                self.n,
                self.n_rows,
                self.room.shape[1],
                n_outputs,
                WIDTH=width,
                COLUMNS=tile.columns,
                ROWS=tile.rows,
                CODES=self.shifts is not None,
                MOVES=weights is not None,
                BENDS=row_weight is not None,
                CENTRES=centres,
                SUMS=out.ndim == 3,
                PLAIN=not out.is_cuda,
                num_warps=min(tile.warps * width // 16, 16),
                num_stages=tile.stages,
            )
        return out
