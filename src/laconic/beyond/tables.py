"""Arrow tables of plain numbers as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.data.cells import odd_columns
from laconic.numeric.threads import row_blocks

# Rows that are written together. They stay in a core's cache.
WRITTEN = 4096


def is_plain_table(X: Any) -> bool:
    """Return whether rows are an Arrow table, and all its columns are plain numbers."""
    return hasattr(X, "combine_chunks") and next(odd_columns(X), None) is None


def matrix_of(X: Any) -> np.ndarray:
    """Return the numbers of a table as an array, row by row.

    NumPy writes one whole column after the other, which takes ten times as long.
    """
    columns = [np.asarray(column) for column in X.columns]
    out = np.empty((len(X), len(columns)), np.result_type(*columns))
    for rows in row_blocks(len(X), WRITTEN):
        for at, column in enumerate(columns):
            out[rows, at] = column[rows]
    return out
