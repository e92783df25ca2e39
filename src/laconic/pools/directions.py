"""Directions and knots of hinges, found from a sample of the rows and their classes.

Directions have length 1 in standardised units, where a feature is divided by its weighted standard
deviation. They are kept in the units of the input, with factor 1 for the input that counts most. So
a knot of a single feature is one of its values.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from laconic.numeric.magnitudes import SHRINK
from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.scaling import LARGEST_UNIT, ColumnsSurvey, column_scales, survey_columns

# Most principal directions, and most features with which they are computed.
PRINCIPAL, MOST_FEATURES = 16, 1024
# A direction with fewer non-zero entries than this part is multiplied as a sparse one.
DENSE = 0.1
# Rows that are projected together.
TOGETHER = 4096


class HingeGrid(NamedTuple):
    """The directions of all rows, and their knots."""

    directions: Any
    """(n_directions, n_features), a sparse matrix: the factors of the inputs."""
    unit: np.ndarray
    """What leads from projections in the units of the input to standardised ones."""
    centre: np.ndarray
    """The projection of the mean row on every direction, in the units of the input."""
    knots: np.ndarray
    """(n_directions, n_knots + 1), ascending, in the units of the input."""

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
        return along

    def standardised(self, along: np.ndarray, direction: Any = slice(None)) -> np.ndarray:
        """Return projections in standardised units, measured from the mean row."""
        moved: np.ndarray = (along - self.centre[direction]) * self.unit[direction]
        return moved


def find_grid(
    X: np.ndarray,
    weight: np.ndarray,
    labels: np.ndarray | None,
    peaks: np.ndarray,
    n_directions: int,
    n_knots: int,
    n_inputs: int | None,
    random: np.random.RandomState,
    threads: Threads,
) -> HingeGrid:
    """Return the directions and knots of a sample of rows. ``peaks`` are those of all rows."""
    weight = weight / weight.sum()
    factor = _factors(survey_columns(X, "std", weight), peaks)
    Z = X * factor
    mean = weight @ Z
    Z -= mean
    drawn = _differences(Z, weight, labels, n_directions, random)
    found = np.vstack([_features(Z, weight, labels, n_directions), _principal(Z, weight), drawn])
    units = _distinct(_shortened(found, n_inputs))
    most = np.abs(units).argmax(axis=1) if len(units) else np.arange(0)
    unit = units[np.arange(len(units)), most] * factor[most]
    directions = sparse.csr_matrix(units * factor / unit[:, None])
    grid = HingeGrid(directions, unit, units @ mean / unit, np.empty((len(units), 0)))
    return grid._replace(knots=_knots(grid, X, weight, n_knots, threads))


def _factors(sizes: ColumnsSurvey, peaks: np.ndarray) -> np.ndarray:
    """Return what standardises every feature: 0 for a constant one. Refuse sizes out of range."""
    assert sizes.deviation is not None
    factor = np.where(sizes.deviation > 0.0, column_scales(sizes, "std"), 0.0)
    [varies] = np.nonzero(factor)
    if not len(varies):
        return factor
    top = varies[peaks[varies].argmax()]
    if peaks[top] > LARGEST_UNIT:
        raise ValueError(
            f"column {top} of X holds values up to {peaks[top]:.2g}, so hinges would overflow; "
            f"{SHRINK}"
        )
    large, small = varies[factor[varies].argmin()], varies[factor[varies].argmax()]
    if np.log10(factor[small]) - np.log10(factor[large]) > np.log10(LARGEST_UNIT):
        raise ValueError(
            f"columns {small} and {large} of X have standard deviations of "
            f"{1 / factor[small]:.2g} and {1 / factor[large]:.2g}, so hinges of both would "
            f"overflow; {SHRINK}"
        )
    return factor


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
    """Return the principal directions of largest variance, unless there are too many features."""
    if Z.shape[1] > MOST_FEATURES:
        return np.empty((0, Z.shape[1]))
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
