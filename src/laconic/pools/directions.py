"""Directions and knots of hinges, found from a sample of the rows and their classes.

Everything is in standardised units: a feature is divided by its weighted standard deviation. The
directions have length 1 there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.scaling import column_scales, survey_columns

# Most principal directions.
PRINCIPAL = 16
# A direction with fewer non-zero entries than this part is multiplied as a sparse one.
DENSE = 0.1
# Rows that are projected together.
TOGETHER = 4096


class HingeGrid(NamedTuple):
    """The directions of all rows, and their knots."""

    directions: Any
    """(n_directions, n_features), a sparse matrix: what each direction reads. It includes the
    division by the standard deviations, so it applies to rows in the units of the input."""
    offset: np.ndarray
    """The projection of the mean row on every direction. Projections are measured from it."""
    knots: np.ndarray
    """(n_directions, n_knots + 1), ascending, measured from the mean."""
    lead: np.ndarray
    """The factor of the input that counts most in each direction."""

    def projections(self, X: Any) -> np.ndarray:
        """Return the projections of some rows, (n_rows, n_directions), in float64."""
        C = self.directions
        if C.nnz > DENSE * C.shape[0] * C.shape[1]:
            C = C.toarray()
        if sparse.issparse(X):
            along = X.astype(np.float64) @ C.T
            along = along.toarray() if sparse.issparse(along) else np.asarray(along)
        else:
            X = np.asarray(X, dtype=np.float64)
            along = np.asarray((C @ np.ascontiguousarray(X.T)).T) if sparse.issparse(C) else X @ C.T
        along -= self.offset
        return along


def find_grid(
    X: np.ndarray,
    weight: np.ndarray,
    labels: np.ndarray | None,
    n_directions: int,
    n_knots: int,
    n_inputs: int | None,
    random: np.random.RandomState,
    threads: Threads,
) -> HingeGrid:
    """Return the directions and knots of a sample of rows."""
    weight = weight / weight.sum()
    sizes = survey_columns(X, "std", weight)
    assert sizes.deviation is not None
    factor = np.where(sizes.deviation > 0.0, column_scales(sizes, "std"), 0.0)
    Z = X * factor
    mean = weight @ Z
    Z -= mean
    drawn = _differences(Z, weight, labels, n_directions, random)
    found = np.vstack([_features(Z, weight, labels, n_directions), _principal(Z, weight), drawn])
    units = _distinct(_shortened(found, n_inputs))
    most = np.abs(units).argmax(axis=1) if len(units) else np.arange(0)
    lead = units[np.arange(len(units)), most] * factor[most]
    directions = sparse.csr_matrix(units * factor)
    grid = HingeGrid(directions, units @ mean, np.empty((len(units), 0)), lead)
    return grid._replace(knots=_knots(grid, X, weight, n_knots, threads))


def _features(
    Z: np.ndarray, weight: np.ndarray, labels: np.ndarray | None, most: int
) -> np.ndarray:
    """Return unit vectors of features: all, or those whose class means differ most."""
    d = Z.shape[1]
    varies = np.flatnonzero(Z.any(axis=0))
    if len(varies) > most:
        codes = np.zeros(len(Z), dtype=np.int64) if labels is None else labels
        between = np.zeros(d)
        for code in np.unique(codes):
            own = codes == code
            between += (weight[own] @ Z[own]) ** 2 / weight[own].sum()
        varies = np.sort(varies[np.argsort(-between[varies], kind="stable")[:most]])
    out = np.zeros((len(varies), d))
    out[np.arange(len(varies)), varies] = 1.0
    return out


def _principal(Z: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the principal directions of largest variance."""
    covariance = (Z * weight[:, None]).T @ Z
    values, vectors = np.linalg.eigh(covariance)
    there = values[::-1] > 1e-9 * max(float(values.max(initial=0.0)), 1e-300)
    return vectors.T[::-1][there][:PRINCIPAL]


def _differences(
    Z: np.ndarray,
    weight: np.ndarray,
    labels: np.ndarray | None,
    n: int,
    random: np.random.RandomState,
) -> np.ndarray:
    """Return differences of rows. With labels, the two rows are of different classes.

    Pairs of classes are drawn alike. Rows are drawn with their weights, so that a row of weight 2
    is drawn like the same row twice.
    """
    codes = np.zeros(len(Z), dtype=np.int64) if labels is None else np.asarray(labels, np.int64)
    members = [np.flatnonzero(codes == code) for code in np.unique(codes)]
    mass = [np.cumsum(weight[own]) for own in members]

    def row(group: int, draw: float) -> np.ndarray:
        at = np.searchsorted(mass[group], draw * mass[group][-1], side="right")
        drawn: np.ndarray = Z[members[group][min(int(at), len(members[group]) - 1)]]
        return drawn

    out = np.empty((n, Z.shape[1]))
    for number in range(n):
        first = random.randint(len(members))
        second = (first + random.randint(1, max(len(members), 2))) % len(members)
        draws = random.random_sample(2)
        out[number] = row(first, draws[0]) - row(second, draws[1])
    return out


def _shortened(found: np.ndarray, n_inputs: int | None) -> np.ndarray:
    """Return directions of length 1 with only their largest entries. Drop those without any.

    The largest entry of a direction is positive, because hinges go both ways.
    """
    if n_inputs is not None and n_inputs < found.shape[1]:
        order = np.argsort(-np.abs(found), axis=1, kind="stable")
        found = found.copy()
        np.put_along_axis(found, order[:, n_inputs:], 0.0, axis=1)
    largest = np.abs(found).argmax(axis=1)
    top = found[np.arange(len(found)), largest]
    found, top = found[top != 0.0], top[top != 0.0]
    scaled = found / top[:, None]
    return np.asarray(scaled / np.linalg.norm(scaled, axis=1)[:, None])


def _distinct(units: np.ndarray) -> np.ndarray:
    """Return the first one of equal directions."""
    first = np.unique(units, axis=0, return_index=True)[1] if len(units) else np.arange(0)
    return units[np.sort(first)]


def _knots(
    grid: HingeGrid, X: np.ndarray, weight: np.ndarray, n_knots: int, threads: Threads
) -> np.ndarray:
    """Return weighted quantiles of the projections: their ends, and even shares between."""
    along = np.vstack([grid.projections(X[s]) for s in row_blocks(len(X), TOGETHER)])
    shares = np.linspace(0.0, 1.0, n_knots + 1)

    def one(j: int) -> np.ndarray:
        order = np.argsort(along[:, j], kind="stable")
        values, below = along[order, j], np.cumsum(weight[order])
        # With the tolerance, a sum that should equal a share reaches it despite rounding.
        at = np.searchsorted(below, shares * below[-1] * (1.0 - 1e-9))
        return np.asarray(values[np.minimum(at, len(values) - 1)])

    found = list(threads.map(one, range(along.shape[1])))
    return np.array(found).reshape(-1, n_knots + 1)
