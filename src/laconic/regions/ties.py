"""Ties: sums of weights that differ by rounding only, and rows that are equal or need an order.

Neither rounding nor the order of the rows may decide between two holes that are equally good, or a
row of weight 2 would not be the same as the row twice. Sums of weights count as equal where they
differ by rounding only. Rows are told apart, and ordered, by digests of their values.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from scipy import sparse

from laconic.threads import row_blocks

# Weights that differ by less than this part of their sum count as equal.
WEIGHT_TIE = 1e-10
# Numbers in the rows that are made dense at a time.
DENSE = 1 << 20


def ranks(values: np.ndarray) -> np.ndarray:
    """0 for the largest values, 1 for the next, and so on; the same for those that are tied.

    Examples
    --------
    >>> ranks(np.array([0.1 + 0.2, 1.0, 0.3])).tolist()
    [1, 0, 1]
    """
    order = np.argsort(-values, kind="stable")
    lower = np.diff(values[order]) < -WEIGHT_TIE * np.abs(values).max(initial=0.0)
    out = np.empty(len(values), dtype=np.intp)
    out[order] = np.cumsum(np.append(np.zeros(min(len(values), 1), dtype=bool), lower))
    return out


def first_lowest(errors: Any) -> int:
    """Place of the first of the lowest weighted errors (shares of 1)."""
    return int(np.argmax(np.asarray(errors) <= min(errors) + WEIGHT_TIE))


class Digests:
    """Digests of rows' values: equal for equal rows, in any storage and precision.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
    key : bytes, default=b""
        Digests of different keys put rows in different orders, each as if drawn at random.
    """

    def __init__(self, X: Any, key: bytes = b"") -> None:
        self.X = X
        self.key = key
        self._known: dict[int, bytes] = {}

    def __getitem__(self, row: int) -> bytes:
        """The digest of one row."""
        if row not in self._known:
            self._learn([row])
        return self._known[row]

    def ordered(self, rows: np.ndarray) -> list[int]:
        """The rows in the order of their digests, and of equal rows only the first."""
        listed = rows.tolist()
        self._learn([row for row in listed if row not in self._known])
        first: dict[bytes, int] = {}
        for row in listed:
            first.setdefault(self._known[row], row)
        return [first[digest] for digest in sorted(first)]

    def _learn(self, rows: list[int]) -> None:
        for s in row_blocks(len(rows), max(1, DENSE // max(self.X.shape[1], 1))):
            part = self.X[rows[s]]
            dense = part.toarray() if sparse.issparse(part) else part
            # Zeros have one sign, and rows lie in one piece.
            values = np.ascontiguousarray(dense, dtype=np.float64) + 0.0
            for row, value in zip(rows[s], values, strict=True):
                made = hashlib.blake2b(value.data, digest_size=16, key=self.key)
                self._known[row] = made.digest()
