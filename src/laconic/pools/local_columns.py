"""Columns of an atom that are zero outside some rows. They are not written down."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class LocalColumns(NamedTuple):
    """Columns that are ``heights * table[rows] @ change`` on some rows, and zero on all others.

    All atoms of a pool share one table. So an atom only needs memory for its row numbers.
    """

    rows: np.ndarray
    """Ascending numbers of the rows where the columns are not zero."""
    table: np.ndarray
    """(n_rows, t): the table from which every atom of the pool forms its columns."""
    change: np.ndarray
    """(t, width): the matrix that turns the table into the columns, in float64."""
    heights: np.ndarray | None = None
    """A factor for each of the rows. ``None`` means ones."""

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.change.shape[1]

    def spans(self, other: LocalColumns) -> bool:
        """Return whether the columns are combinations of another atom's, by a quick check.

        Both atoms must be of the same pool. Only atoms with equal rows and heights are found.
        """
        if not np.array_equal(self.rows, other.rows):
            return False
        if self.heights is None or other.heights is None:
            return self.heights is other.heights
        return np.allclose(self.heights, other.heights, rtol=1e-6, atol=1e-6)

    def written(self, columns: slice = slice(None)) -> np.ndarray:
        """Return some of the columns written down, (n_rows, width), in the dtype of the table."""
        change = self.change[:, columns]
        out = np.zeros((len(self.table), change.shape[1]), dtype=self.table.dtype, order="F")
        values = self.table[self.rows] @ change
        out[self.rows] = values if self.heights is None else values * self.heights[:, None]
        return out
