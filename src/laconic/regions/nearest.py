"""Which rows are among the nearest of a row, where rows have weights and may be equally far.

The reach of a row is the distance of its n-th nearest copy: copies of the row itself come first,
then the rows around it, each as many times as its weight says. All rows within the reach are its
neighbours, also where those that are equally far make them more than n. So a row of weight 2 is the
same as the row twice, and the order of the rows does not matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from laconic.regions.ties import Digests
from laconic.threads import row_blocks

# Distances that differ by less than this part count as equal.
TIE = 1e-9
# Numbers in the differences that are held at a time.
DIFFERENCES = 1 << 21


def nearest_rows(
    X: Any, n_neighbors: int, weight: np.ndarray | None, metric: Any, n_jobs: int
) -> sparse.csr_matrix:
    """The rows within every row's reach, as a matrix of zeros and ones that is not symmetric.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
    n_neighbors : int
        n, at least 1.
    weight : ndarray of shape (n_rows,) or None
        Sample weights; 1 each for None. Weights below 1 count as 1.
    metric : str or callable
    n_jobs : int
    """
    first, equal_to = _distinct(X)
    n_rows, X, m = X.shape[0], X[first], len(first)
    # Equal rows are copies of one: found one by one, their lists would grow with their number.
    copies = np.bincount(equal_to, None if weight is None else np.maximum(weight, 1.0))
    index = NearestNeighbors(metric=metric, n_jobs=n_jobs).fit(X)
    noise = _noise(X) if metric == "euclidean" else 0.0
    pending, listed = np.arange(m), min(n_neighbors + 1, m)
    ends = [np.stack([pending, pending])]  # some metrics have rows that are far from themselves
    while len(pending):
        distance, near = index.kneighbors(X[pending], listed)
        # No row that is not listed is nearer than this.
        horizon = np.full(len(pending), np.inf)
        if listed < m:
            rounding = 4.0 * float(np.finfo(distance.dtype).eps)
            last = (1.0 - rounding) * distance[:, -1].astype(np.float64)
            horizon = np.sqrt(np.maximum(last**2 - noise, 0.0))
        if metric == "euclidean":
            distance = _distances(X, pending, near)
        reach = _reach(
            distance, near != pending[:, None], copies[near], copies[pending], n_neighbors
        )
        known = reach * (1.0 + TIE) < horizon
        inside = (distance <= (reach * (1.0 + TIE))[:, None]) & known[:, None]
        at, place = np.nonzero(inside)
        ends.append(np.stack([pending[at], near[at, place]]))
        pending, listed = pending[~known], min(2 * listed, m)
    i, j = np.concatenate(ends, axis=1)
    within = sparse.csr_matrix((np.ones(len(i), dtype=bool), (i, j)), shape=(m, m))
    every = np.arange(n_rows), equal_to
    belongs = sparse.csr_matrix((np.ones(n_rows, dtype=bool), every), shape=(n_rows, m))
    return belongs @ within @ belongs.T


def _distinct(X: Any) -> tuple[list[int], np.ndarray]:
    """Numbers of rows that are all different, and which of them every row is equal to."""
    _, first, equal_to = np.unique(Digests(X).values, return_index=True, return_inverse=True)
    return first.tolist(), equal_to.ravel()


def _reach(
    distance: np.ndarray, others: np.ndarray, copies: np.ndarray, own: np.ndarray, n: int
) -> np.ndarray:
    """Distance of the n-th nearest copy; the farthest one listed, or 0, where that decides."""
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
    """How far squared distances made of inner products can be off."""
    if sparse.issparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64)
    else:
        squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    largest = float(squares.max(initial=0.0))
    return 8.0 * (X.shape[1] + 40) * float(np.finfo(np.float64).eps) * largest


def _distances(X: Any, rows: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Euclidean distances from differences in float64."""
    out = np.empty(near.shape)
    step = max(1, DIFFERENCES // max(near.shape[1] * X.shape[1], 1))
    for s in row_blocks(len(rows), step):
        one, other = X[rows[s]], X[near[s].ravel()]
        if sparse.issparse(X):
            one, other = one.toarray(), other.toarray()
        gap = other.reshape(*near[s].shape, -1).astype(np.float64) - one[:, None]
        out[s] = np.sqrt(np.einsum("ijk,ijk->ij", gap, gap))
    return out
