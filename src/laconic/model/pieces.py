"""Pieces on new rows: balls with a linear function inside (ShareBoost section 3.2)."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from laconic.files.layout import Array
from laconic.model.feature_maps import SUM, Labels, Names, check_finite, feature_name
from laconic.numeric.magnitudes import power_of_two
from laconic.numeric.sparse_rows import most_values, squared_gaps

# Rows whose distances are computed together. They stay in a core's cache.
TOGETHER = 2048
# A squared distance comes from the squared norms of row and centre. If it is smaller than this part
# of them, it is computed again from differences.
CLOSE = 1e-6
# Values of sparse rows whose differences from a centre are computed together.
DIFFERENCES = 1 << 20
# Shares of rows are sums of weights, so rounding may make them a little larger than 1.
ROUNDING = 1e-6
# A row with such a number is in no ball whose centre and radius are near 1, or at most `NEAR_ONE`
# powers of two above 1.
FAR = 2.0**200
# Up to this many rows, scores are computed row by row, from the balls that contain the row. For
# more rows, they are computed ball by ball, for the rows in the ball.
FEW_ROWS = 8


# The call that draws balls.
PLOT_BALLS = "laconic.look.balls.plot_balls(model, X, images, y)"


class Piece(NamedTuple):
    """A ball and the linear functions on it: 1[‖v − c‖ < radius]·[v − o, 1] (see `PiecesMap`).

    ``centre`` is the number of c in the pool.
    """

    centre: int
    radius: float
    n_features: int

    @property
    def reads(self) -> tuple[int, ...]:
        """Input features the atom reads: all."""
        return tuple(range(self.n_features))

    @property
    def width(self) -> int:
        """Number of columns the atom adds to the model."""
        return self.n_features + 1


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


class PiecesMap:
    """Balls, each with the columns 1[‖v − c‖ < r]·[v − o, 1].

    In a soft ball, these columns are multiplied by 1 − ‖v − c‖²/r², which is 0 at the edge.

    Parameters
    ----------
    centre : ndarray of shape (n_balls, n_features)
        Centre c of every ball.
    radius : ndarray of shape (n_balls,)
    origin : ndarray of shape (n_balls, n_features) or (1, n_features)
        Origin o of every ball, or one origin for all balls.
    soft : bool or ndarray of one bool
    share : ndarray of shape (n_balls,)
        Share of the training rows inside the ball.
    nearest : ndarray of shape (n_balls,)
        Number of the training row nearest to the centre.
    """

    kind = "pieces"
    reading = (
        "If a row lies inside a ball, the ball adds a linear function of the row to each class. "
        "The numbers are what it adds at its centre. The row named is the training row nearest to "
        f"the centre, counted from 0. A class adds up its balls and {SUM}"
    )
    to_see = f"To see every ball with its nearest rows: {PLOT_BALLS}"
    layout: ClassVar[dict[str, Array]] = {
        "centre": Array("f", ("balls", "features")),
        "radius": Array("f", ("balls",), 0.0),
        "origin": Array("f", ("origins", "features")),
        "soft": Array("b", ()),
        "share": Array("f", ("balls",), 0.0, 1.0 + ROUNDING),
        "nearest": Array("i", ("balls",), 0),
    }
    remarks = ("share", "nearest")

    def __init__(
        self,
        centre: np.ndarray,
        radius: np.ndarray,
        origin: np.ndarray,
        soft: Any,
        share: np.ndarray,
        nearest: np.ndarray,
    ) -> None:
        self.centre = np.asarray(centre, dtype=np.float64)
        self.radius = np.asarray(radius, dtype=np.float64)
        self.origin = np.asarray(origin, dtype=np.float64)
        self.soft = bool(soft)
        self.share = np.asarray(share, dtype=np.float64)
        self.nearest = np.asarray(nearest, dtype=np.int64)
        shapes = {self.centre.shape[:1], self.radius.shape, self.share.shape, self.nearest.shape}
        origins = {self.centre.shape, (1, *self.centre.shape[1:])}
        if self.centre.ndim != 2 or len(shapes) != 1 or self.origin.shape not in origins:
            raise ValueError("the arrays of the balls do not fit together")
        # Balls of several radii share a centre, and its distances are computed once. Without balls
        # this is skipped, because a stranger's file may then ask for rows of any length.
        self._distinct, self._which = self.centre, np.arange(0)
        if len(self):
            self._distinct, self._which = np.unique(self.centre, axis=0, return_inverse=True)
            self._which = self._which.reshape(-1)
        # Distances are computed in units of a power of two.
        reach = max(np.abs(self.centre).max(initial=0.0), self.radius.max(initial=0.0))
        self._power = power_of_two(float(reach))
        self._distinct = np.ldexp(self._distinct, -self._power)
        self._radii = np.ldexp(self.radius, -self._power)

    def __len__(self) -> int:
        return len(self.radius)

    @property
    def n_columns(self) -> int:
        """Number of columns of all balls."""
        return len(self) * (self.centre.shape[1] + 1)

    def heights(self, X: np.ndarray) -> np.ndarray:
        """Return the height of every ball at every row, (n_balls, n_rows).

        The height is 0 outside a ball. Inside it is 1, or less if the ball is soft.
        """
        with np.errstate(over="ignore"):  # a row whose distance overflows is outside
            d2 = squared_distances(self._rows(X), self._distinct).T
            d2 = np.ascontiguousarray(d2)[self._which]
            # If the square of a radius underflows, the ball still contains its centre. A ball of
            # radius 0 contains nothing.
            d2 /= np.maximum(np.square(self._radii), np.finfo(np.float64).tiny)[:, None]
        d2[self.radius == 0.0] = 1.0
        if not self.soft:
            return (d2 < 1.0).astype(np.float64)
        np.subtract(1.0, d2, out=d2)
        return np.maximum(d2, 0.0, out=d2)

    def _rows(self, X: np.ndarray) -> np.ndarray:
        """Return rows in the units of the balls. Numbers far outside all balls are clipped."""
        X = np.asarray(X, dtype=np.float64)
        if self._power:
            X = np.ldexp(X, -self._power)
        far = max(X.max(initial=0.0), -X.min(initial=0.0)) > FAR
        return np.clip(X, -FAR, FAR) if far else X

    def columns(self, X: Any) -> np.ndarray:
        """Return the values on new rows."""
        return self.sparse_columns(X).toarray()

    def sparse_columns(self, X: Any) -> sparse.csr_matrix:
        """Return the values on new rows as a sparse matrix."""
        X = _dense(X)
        n, width = len(self), self.centre.shape[1] + 1
        heights = self.heights(X).T
        row, ball = np.nonzero(heights)
        values = np.ones((len(row), width), dtype=X.dtype)
        values[:, :-1] = X[row] - np.broadcast_to(self.origin, self.centre.shape)[ball]
        values *= heights[row, ball, None]
        place = ball[:, None] * width + np.arange(width)
        start = np.searchsorted(row, np.arange(len(X) + 1)) * width
        return sparse.csr_matrix(
            (values.reshape(-1), place.reshape(-1), start), shape=(len(X), n * width)
        )

    def scores(self, X: Any, weights: np.ndarray) -> np.ndarray:
        """Return columns times weights (n_columns, n_outputs), without storing the columns."""
        if not len(self):
            return np.zeros((X.shape[0], weights.shape[1]))
        X = _dense(X)
        weights = weights.reshape(len(self), self.centre.shape[1] + 1, weights.shape[1])
        slopes, constants = weights[:, :-1], weights[:, -1]
        if len(self.origin) > 1:
            constants = constants - np.matmul(self.origin[:, None], slopes)[:, 0]
        slopes = np.ldexp(slopes, self._power)
        out = np.empty((len(X), weights.shape[2]))
        for start in range(0, len(X), TOGETHER):
            rows = X[start : start + TOGETHER]
            heights = self.heights(rows)
            # If all balls share one origin, rows are shifted by it.
            with np.errstate(over="ignore"):  # only in rows that are in no ball and not read
                shifted = rows - self.origin if len(self.origin) == 1 else rows
                shifted = np.ldexp(shifted, -self._power) if self._power else shifted
                rows = np.ascontiguousarray(shifted, dtype=X.dtype)
            part = out[start : start + TOGETHER]
            if len(rows) <= FEW_ROWS:
                part[:] = 0.0
                for i in np.flatnonzero(heights.any(axis=0)):
                    row, balls = rows[i], np.flatnonzero(heights[:, i])
                    high = heights[balls, i]
                    part[i] = row @ np.tensordot(high, slopes[balls], axes=1)
                    part[i] += high @ constants[balls]
            else:
                part[:] = heights.T @ constants
                for slope, height in zip(slopes.astype(X.dtype), heights, strict=True):
                    held = np.flatnonzero(height)
                    values = rows.take(held, axis=0, mode="clip") @ slope
                    part[held] += values * height.take(held, mode="clip")[:, None]
        return out

    def names(self, feature_names: Names = None, categories: Labels = None) -> list[str]:
        """Return names such as ``ball 3 · x1`` for a coordinate and ``ball 3`` for the constant."""
        if not len(self):
            return []
        features = [f" · {feature_name(f, feature_names)}" for f in range(self.centre.shape[1])]
        return [f"ball {j}{part}" for j in range(1, len(self) + 1) for part in [*features, ""]]

    def summary(self, weights: np.ndarray) -> tuple[list[str], np.ndarray]:
        """Return a few words about every ball, and what it adds to the scores at its centre."""
        names = [
            f"radius {r:.3g}, {100 * s:.3g} % of rows, like row {i}"
            for r, s, i in zip(self.radius, self.share, self.nearest, strict=True)
        ]
        weights = weights.reshape(len(self), self.centre.shape[1] + 1, weights.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            linear = np.einsum("jd,jdc->jc", self.centre - self.origin, weights[:, :-1])
            return names, linear + weights[:, -1]

    def features(self) -> np.ndarray:
        """Return the sorted distinct input features that are read: all, if there is a ball."""
        return np.arange(self.centre.shape[1] if len(self) else 0)

    def operations(self) -> int:
        """Count a multiplication per coordinate of a distinct centre and a comparison per ball."""
        return self._distinct.size + len(self)

    def score_operations(self, n_outputs: int) -> int:
        """Return the expected operations of `scores` for a row like the training rows."""
        inside = float(self.share.sum()) * self.centre.shape[1] * n_outputs
        return self.operations() + round(inside)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the flat arrays of the map."""
        return {
            "centre": self.centre,
            "radius": self.radius,
            "origin": self.origin,
            "soft": np.array(self.soft),
            "share": self.share,
            "nearest": self.nearest,
        }


def _dense(X: Any) -> np.ndarray:
    X = np.asarray(X.toarray() if sparse.issparse(X) else X)
    X = X if X.dtype.kind == "f" else X.astype(np.float64)
    check_finite(X)
    return X
