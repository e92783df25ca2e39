"""Squared distances between rows and centres, and which rows lie in which balls."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from laconic.numeric.sparse_rows import most_values, squared_gaps

# Rows whose distances are computed together. They stay in a core's cache.
TOGETHER = 2048
# A squared distance comes from the squared norms of row and centre. If it is smaller than this part
# of them, it is computed again from differences.
CLOSE = 1e-6
# Values of sparse rows whose differences from a centre are computed together.
DIFFERENCES = 1 << 20


def squared_distances(X: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return ‖v − c‖² in float64, (n_rows, n_centres)."""
    X = np.asarray(X, dtype=np.float64)
    # An origin among the centres keeps rounding errors small.
    origin = centres.sum(axis=0) / max(len(centres), 1)
    X, centres = X - origin, centres - origin
    return close_mended(X @ (-2.0 * centres.T), X, centres, np.einsum("ij,ij->i", X, X))


def sparse_distances(X: Any, centres: Any) -> np.ndarray:
    """Return ‖v − c‖² in float64 for the rows of two CSR matrices, (n_rows, n_centres)."""
    X, centres = X.astype(np.float64), centres.astype(np.float64)
    products = np.asarray((X @ (-2.0 * centres.T)).toarray())
    return close_mended(products, X, centres, row_squares(X))


def row_squares(X: Any) -> np.ndarray:
    """Return ‖v‖² of dense or sparse rows, in float64."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).reshape(-1)
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def close_mended(products: np.ndarray, X: Any, centres: Any, squares: np.ndarray) -> np.ndarray:
    """Turn −2⟨v, c⟩ and ‖v‖² into ‖v − c‖², in place.

    Pairs for which these terms cancel are computed from differences instead. The terms cancel if
    row and centre are much closer to each other than to the origin, as in clusters far apart.
    """
    own, out = row_squares(centres), products
    out += squares[:, None]
    out += own
    near = np.flatnonzero(out.min(axis=1, initial=np.inf) < CLOSE * (squares + own.max(initial=0)))
    for start in range(0, len(near), TOGETHER):
        some = near[start : start + TOGETHER]
        pairs = out[some] < CLOSE * (squares[some, None] + own)
        for c in np.flatnonzero(pairs.any(axis=0)):
            rows = some[pairs[:, c]]
            out[rows, c] = _squares_from(X, rows, centres, int(c))
    return np.maximum(out, 0.0, out=out)


def _squares_from(X: Any, rows: np.ndarray, centres: Any, c: int) -> np.ndarray:
    """Return ‖v − c‖² of some rows and one centre, from differences."""
    if not sparse.issparse(X):
        return row_squares(np.asarray(X[rows]) - centres[c])
    together = max(1, DIFFERENCES // (most_values(X) + most_values(centres)))
    parts = [rows[start : start + together] for start in range(0, len(rows), together)]
    return np.concatenate([squared_gaps(X[s], centres[np.full(len(s), c)]) for s in parts])


def ball_distances(X: Any, centres: Any) -> np.ndarray:
    """Return ‖v − c‖² in float64, (n_rows, n_centres), computed in blocks of rows.

    The rows may be dense or sparse. If they are sparse, the centres may be sparse, too.
    """
    if sparse.issparse(X):
        distances, X, centres = sparse_distances, sparse.csr_matrix(X), sparse.csr_matrix(centres)
    else:
        distances, centres = squared_distances, np.asarray(centres, dtype=np.float64)
    out = np.empty((X.shape[0], centres.shape[0]))
    for start in range(0, X.shape[0], TOGETHER):
        out[start : start + TOGETHER] = distances(X[start : start + TOGETHER], centres)
    return out


def inside_balls(X: Any, centre: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """Return which rows have ‖v − c‖ ≤ radius for which balls, (n_rows, n_balls)."""
    return np.asarray(ball_distances(X, centre) <= np.square(radius))


def inside_ball(X: Any, centre: np.ndarray, radius: float) -> np.ndarray:
    """Return the numbers of the rows with ‖v − c‖ ≤ radius."""
    return np.flatnonzero(inside_balls(X, centre[None], np.array([radius])))
