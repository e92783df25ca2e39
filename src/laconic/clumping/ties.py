"""Ties: sums of weights that differ only by rounding, and rows that are equal or need an order.

Neither rounding nor the order of the rows may decide between two holes that are equally good.
Otherwise a row of weight 2 would not be the same as the row twice. Sums of weights count as equal
if they differ only by rounding. Rows are told apart, and ordered, by digests of their values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from laconic.numeric.once import once
from laconic.numeric.sparse_rows import canonical
from laconic.numeric.threads import row_blocks

# Weights that differ by less than this part of their sum count as equal.
WEIGHT_TIE = 1e-10
# Numbers in the rows that are processed together.
TOGETHER = 1 << 20


def ranks(values: np.ndarray) -> np.ndarray:
    """Return 0 for the largest values, 1 for the next, and so on. Tied values have the same rank.

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
    """Return the place of the first of the lowest weighted errors, which are shares of 1."""
    return int(np.argmax(np.asarray(errors) <= min(errors) + WEIGHT_TIE))


class Digests:
    """Digests of the values of rows. Equal rows have equal digests, in any storage and precision.

    A digest is Σ_f a_f·mix(x_f) modulo 2⁶⁴. The a are random odd numbers, and mix is a function of
    the bits of a number, with mix(0) = 0. Two different rows have the same digest with a
    probability of about 2⁻⁶³.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
    seed : int, default=0
        Draws a. Each seed puts rows in another order, which is as good as random.
    """

    def __init__(self, X: Any, seed: int = 0) -> None:
        self.X = X
        self.seed = seed

    @once
    def values(self) -> np.ndarray:
        """The digest of every row."""
        X, (m, d) = self.X, self.X.shape
        odd = np.random.default_rng(self.seed).integers(2**64, size=d, dtype=np.uint64) | _ONE
        if sparse.issparse(X):
            X = canonical(X)
            sums = np.cumsum(np.append(_ZERO, _mixed(X.data) * odd[X.indices]))
            out = sums[X.indptr[1:]] - sums[X.indptr[:-1]]
        else:
            out = np.empty(m, dtype=np.uint64)
            for s in row_blocks(m, max(1, TOGETHER // max(d, 1))):
                out[s] = (_mixed(X[s]) * odd).sum(axis=1)
        return _scrambled(out)

    def __getitem__(self, row: int) -> int:
        """Return the digest of one row."""
        return int(self.values[row])

    def order(self) -> np.ndarray:
        """Return the numbers of all rows, in the order of their digests."""
        return np.argsort(self.values, kind="stable")

    def different(self, rows: np.ndarray) -> list[int]:
        """Return the rows in the order of their digests, and of equal rows only the first."""
        _, first = np.unique(self.values[rows], return_index=True)
        different: list[int] = rows[first].tolist()
        return different


_ZERO, _ONE = np.uint64(0), np.uint64(1)


def _mixed(values: np.ndarray) -> np.ndarray:
    """Return 64 bits for every number. They are 0 for zero of either sign."""
    return _scrambled((np.ascontiguousarray(values, dtype=np.float64) + 0.0).view(np.uint64))


def _scrambled(bits: np.ndarray) -> np.ndarray:
    """Apply the finaliser of SplitMix64, a bijection that maps 0 to 0."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    scrambled: np.ndarray = bits ^ (bits >> np.uint64(31))
    return scrambled
