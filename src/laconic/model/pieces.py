"""Pieces on new rows: balls with a linear function inside (ShareBoost section 3.2)."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from laconic.files.layout import Array
from laconic.model.balls import Balls
from laconic.model.feature_maps import SUM, Labels, Names, feature_name
from laconic.model.lowering import LoweredMap, Primitive

# Shares of rows are sums of weights, so rounding may make them a little larger than 1.
ROUNDING = 1e-6
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


class PiecesMap(LoweredMap):
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
    worth = (
        "If a row lies inside a ball, the ball adds a linear function of the row. Its numbers are "
        "what it adds at its centre. The row named is the training row nearest to the centre, "
        "counted from 0."
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
        if not self.radius.shape == self.share.shape == self.nearest.shape:
            raise ValueError("the arrays of the balls do not fit together")
        self._balls = Balls(self.centre, self.radius, self.origin, self.soft, self.share)

    def __len__(self) -> int:
        return len(self.radius)

    def lower(self) -> list[Primitive]:
        """Return the balls as one `Balls`."""
        return [self._balls]

    def sparse_columns(self, X: Any) -> sparse.csr_matrix:
        """Return the values on new rows as a sparse matrix."""
        return self._balls.sparse_columns(X)

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
