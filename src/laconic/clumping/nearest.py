"""The nearest rows of every row, if rows have weights and may be equally far.

The reach of a row is the distance of its n-th nearest copy. Copies of the row itself come first.
Then come the rows around it, each as many times as its weight says. All rows within the reach are
neighbours, even if there are more than n because some are equally far. So a row of weight 2 is the
same as the row twice, and the order of the rows does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors

from laconic.clumping.radius_graph import distances
from laconic.clumping.ties import Digests
from laconic.model.distances import row_squares
from laconic.numeric.sparse_rows import most_values
from laconic.numeric.threads import row_blocks

# Distances with a smaller relative difference count as equal.
TIE = 1e-9
# Numbers in the differences of rows that are held at a time.
DIFFERENCES = 1 << 21
# MiB of distances that scikit-learn holds at a time, for sparse rows or unusual metrics.
HELD_MIB = 64


def nearest_pairs(
    X: Any,
    n_neighbors: int,
    weight: np.ndarray | None,
    metric: Any,
    n_jobs: int,
    watch: Callable[[float], None] | None,
    together: int,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the numbers of rows and of the rows within their reach, some pairs at a time.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
    n_neighbors : int
        n, at least 1.
    weight : ndarray of shape (n_rows,) or None
        Sample weights. None stands for 1 each. Weights below 1 count as 1.
    metric : str or callable
    n_jobs : int
    watch : callable or None
        Called with the share of the rows whose nearest rows are known.
    together : int
        Number of nearest rows that are listed at a time.
    """
    first, equal_to = _distinct(X)
    X, m, everyone = X[first], len(first), _Copies(equal_to, together)
    # Equal rows count as copies of one row. Otherwise lists would grow with the number of copies.
    copies = np.bincount(equal_to, None if weight is None else np.maximum(weight, 1.0))
    index = NearestNeighbors(metric=metric, n_jobs=n_jobs).fit(X)
    noise = _noise(X) if metric == "euclidean" else 0.0
    # List the row itself, the nearest rows, and one more to show that the reach ends before it.
    pending, listed, done = np.arange(m), min(n_neighbors + 2, m), 0
    yield from everyone.pairs(pending, pending)  # in some metrics a row is far from itself
    while len(pending):
        left = []
        for s in row_blocks(len(pending), max(1, together // listed)):
            rows = pending[s]
            with config_context(working_memory=HELD_MIB):
                distance, near = index.kneighbors(X[rows], listed)
            # All rows that are not listed are at least this far.
            horizon = np.full(len(rows), np.inf)
            if listed < m:
                rounding = 4.0 * float(np.finfo(distance.dtype).eps)
                last = (1.0 - rounding) * distance[:, -1].astype(np.float64)
                horizon = np.sqrt(np.maximum(last**2 - noise, 0.0))
            if metric == "euclidean":
                distance = _distances(X, rows, near)
            others = near != rows[:, None]
            reach = _reach(distance, others, copies[near], copies[rows], n_neighbors)
            known = reach * (1.0 + TIE) < horizon
            at, place = np.nonzero((distance <= (reach * (1.0 + TIE))[:, None]) & known[:, None])
            yield from everyone.pairs(rows[at], near[at, place])
            left.append(rows[~known])
            done += int(known.sum())
            if watch is not None:
                watch(done / m)
        pending, listed = np.concatenate(left), min(2 * listed, m)


def _distinct(X: Any) -> tuple[list[int], np.ndarray]:
    """Return the numbers of distinct rows, and for every row which of them it is equal to."""
    _, first, equal_to = np.unique(Digests(X).values, return_index=True, return_inverse=True)
    return first.tolist(), equal_to.ravel()


class _Copies:
    """The rows that are equal to each of the distinct rows.

    Parameters
    ----------
    equal_to : ndarray of shape (n_rows,)
        Number of the distinct row that every row is equal to.
    together : int
        Number of rows that are listed at a time.
    """

    def __init__(self, equal_to: np.ndarray, together: int) -> None:
        self._together = together
        self._sizes = np.bincount(equal_to)
        self._rows = np.argsort(equal_to, kind="stable")
        self._starts = np.cumsum(self._sizes) - self._sizes

    def pairs(self, i: np.ndarray, j: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield all pairs of a row equal to i and a row equal to j, for each i and its j."""
        for some in _cut(self._sizes[i], self._together):
            rows, near = self._of(i[some], j[some])
            for few in _cut(self._sizes[near], self._together):
                others, ones = self._of(near[few], rows[few])
                yield ones, others

    def _of(self, which: np.ndarray, beside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows equal to ``which``, one after the other, and ``beside`` for each."""
        sizes = self._sizes[which]
        starts = self._starts[which] - (np.cumsum(sizes) - sizes)
        return self._rows[np.repeat(starts, sizes) + np.arange(sizes.sum())], beside.repeat(sizes)


def _cut(sizes: np.ndarray, together: int) -> Iterator[slice]:
    """Yield runs of sizes that add up to at most ``together``, or a single larger size."""
    ends, start = np.cumsum(sizes), 0
    while start < len(sizes):
        most = ends[start] - sizes[start] + together
        stop = max(start + 1, int(np.searchsorted(ends, most, side="right")))
        yield slice(start, stop)
        start = stop


def _reach(
    distance: np.ndarray, others: np.ndarray, copies: np.ndarray, own: np.ndarray, n: int
) -> np.ndarray:
    """Return the distance of the n-th nearest copy, among the rows listed.

    It is 0 if the row itself has n more copies, and the farthest distance if the list is too short.
    """
    order = np.argsort(distance, axis=1, kind="stable")
    sizes = np.take_along_axis(np.where(others, copies, 0.0), order, axis=1)
    reached = (own - 1.0)[:, None] + np.cumsum(sizes, axis=1)
    enough = reached >= n
    last = np.where(enough.any(axis=1), enough.argmax(axis=1), distance.shape[1] - 1)
    farthest = np.take_along_axis(
        np.take_along_axis(distance, order, axis=1), last[:, None], axis=1
    )
    return np.where(own - 1.0 >= n, 0.0, farthest[:, 0])


def _noise(X: Any) -> float:
    """Return the largest error of squared distances that are made of inner products."""
    largest = float(row_squares(X).max(initial=0.0))
    return 8.0 * (most_values(X) + 40) * float(np.finfo(np.float64).eps) * largest


def _distances(X: Any, rows: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Return Euclidean distances from differences in float64."""
    if sparse.issparse(X):
        return distances(X, np.repeat(rows, near.shape[1]), near.ravel()).reshape(near.shape)
    out = np.empty(near.shape)
    step = max(1, DIFFERENCES // max(near.shape[1] * X.shape[1], 1))
    for s in row_blocks(len(rows), step):
        one, other = X[rows[s]], X[near[s].ravel()]
        gap = other.reshape(*near[s].shape, -1).astype(np.float64) - one[:, None]
        out[s] = np.sqrt(np.einsum("ijk,ijk->ij", gap, gap))
    return out
