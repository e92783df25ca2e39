"""Columns of a wide atom that are zero outside some rows, without writing them down."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class LocalColumns(NamedTuple):
    """``heights * table[rows] @ change`` on some rows, zero on all others.

    The table is one array for all atoms of a pool, so that an atom costs its row numbers only.
    """

    rows: np.ndarray
    """Ascending numbers of the rows where the columns are not zero."""
    table: np.ndarray
    """(n_rows, t): what every atom of the pool makes its columns of."""
    change: np.ndarray
    """(t, width): from the table to the columns, float64."""
    heights: np.ndarray | None = None
    """A factor for each of the rows; ``None`` stands for ones."""

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.change.shape[1]

    def spans(self, other: LocalColumns) -> bool:
        """Whether the columns are combinations of another atom's of the same pool, at a glance."""
        if not np.array_equal(self.rows, other.rows):
            return False
        if self.heights is None or other.heights is None:
            return self.heights is other.heights
        return np.allclose(self.heights, other.heights, rtol=1e-6, atol=1e-6)

    def written(self, columns: slice = slice(None)) -> np.ndarray:
        """Some of the columns written down, (n_rows, width), in the dtype of the table."""
        change = self.change[:, columns]
        out = np.zeros((len(self.table), change.shape[1]), dtype=self.table.dtype, order="F")
        values = self.table[self.rows] @ change
        out[self.rows] = values if self.heights is None else values * self.heights[:, None]
        return out
