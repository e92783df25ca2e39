"""Regions on new rows: holes in the data space, each with a model of its own (eq. (6) of Dekel and
Shamir, *There's a Hole in My Data Space*).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from laconic.files.layout import Array, check_arrays
from laconic.model.feature_maps import (
    FeatureMap,
    Labels,
    Names,
    column_scores,
    feature_map,
    feature_name,
    map_bytes,
    map_scores,
    map_width,
)
from laconic.model.pieces import ROUNDING, TOGETHER, sparse_distances, squared_distances
from laconic.numeric.magnitudes import check_squares

# Score of a class that the model of a region has never seen. It is finite, but below every other.
UNSEEN = -1e30
# Regions may contain regions, but not nested deeper than this.
DEEPEST = 8

_PART = re.compile(r"part(\d{1,9})_(.*)", re.DOTALL)


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


def newest_hole(X: Any, centre: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """Return the region that decides each row.

    It is 0 outside every hole, otherwise 1 + the number of the newest hole that contains the row.
    Holes are in the order in which they were punched. A row in several holes belongs to the last of
    them. This makes the regions of eq. (6) disjoint.
    """
    out = np.zeros(X.shape[0], dtype=np.int64)
    if len(radius) == 0:
        return out
    inside = inside_balls(X, centre, radius)
    covered = inside.any(axis=1)
    out[covered] = len(radius) - inside[covered, ::-1].argmax(axis=1)
    return out


class AllColumns:
    """All input columns, unchanged. This map of a dense linear model needs no list of columns."""

    kind = "all"
    layout: ClassVar[dict[str, Array]] = {"n_features": Array("i", (), "features", "features")}
    remarks = ("n_features",)

    def __init__(self, n_features: Any) -> None:
        self.n_features = int(n_features)

    @property
    def n_columns(self) -> int:
        """Number of columns, one per feature."""
        return self.n_features

    def columns(self, X: Any) -> np.ndarray:
        """Return the values on new rows."""
        return np.asarray(X.toarray() if sparse.issparse(X) else X)

    def scores(self, X: Any, weights: np.ndarray) -> np.ndarray:
        """Return columns times weights. Large blocks of sparse rows stay sparse."""
        return column_scores(X, weights)

    def names(self, feature_names: Names = None, categories: Labels = None) -> list[str]:
        """Return the names of the features."""
        return [feature_name(f, feature_names) for f in range(self.n_features)]

    def features(self) -> np.ndarray:
        """Return all features."""
        return np.arange(self.n_features)

    def operations(self) -> int:
        """Return 0, as reading a column needs no arithmetic."""
        return 0

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the flat arrays of the map."""
        return {"n_features": np.array(self.n_features)}


class RegionsMap:
    """Disjoint regions, each with a feature map of its own: 1[v in region j]·[map_j(v), 1].

    Region 0 is everything outside the holes. Region j is the j-th hole without the holes punched
    later. A hole is the ball ‖v − c‖ ≤ r.

    Parameters
    ----------
    parts : sequence of FeatureMap
        The map of every region. There is one more region than there are holes.
    centre : ndarray of shape (n_holes, n_features)
    radius : ndarray of shape (n_holes,)
    share : ndarray of shape (n_holes + 1,)
        Share of the training rows that each region decides.
    nearest : ndarray of shape (n_holes,)
        Number of the training row at the centre.
    """

    kind = "regions"
    reading = (
        "The newest hole that contains a row decides it. A row in no hole is decided by the model "
        "outside. The numbers are a region's scores at its centre (outside: for a row of zeros). "
        "The row named is the training row at the centre, counted from 0. The class with the "
        "largest score wins."
    )
    points = None  # regions are not added up
    layout: ClassVar[dict[str, Array]] = {
        "kinds": Array("U", ("regions",)),
        "centre": Array("f", ("holes", "features")),
        "radius": Array("f", ("holes",), 0.0, finite=False),  # infinity means a hole of all rows
        "share": Array("f", ("regions",), 0.0, 1.0 + ROUNDING),
        "nearest": Array("i", ("holes",), 0),
    }

    def __init__(
        self,
        parts: Sequence[FeatureMap],
        centre: np.ndarray,
        radius: np.ndarray,
        share: np.ndarray,
        nearest: np.ndarray,
    ) -> None:
        self.parts = list(parts)
        self.centre = np.asarray(centre, dtype=np.float64)
        self.radius = np.asarray(radius, dtype=np.float64)
        self.share = np.asarray(share, dtype=np.float64)
        self.nearest = np.asarray(nearest, dtype=np.int64)
        holes = len(self.parts) - 1
        fits = self.radius.shape == self.nearest.shape == (holes,)
        if not fits or self.share.shape != (holes + 1,) or self.centre.shape[:1] != (holes,):
            raise ValueError("the arrays of the regions do not fit together")
        self.widths = [map_width(part) + 1 for part in self.parts]
        self._depth = 1 + max((getattr(part, "_depth", 0) for part in self.parts), default=0)
        if self._depth > DEEPEST:
            raise ValueError(f"regions within regions are more than {DEEPEST} deep")

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, np.ndarray], n_features: int, depth: int = 0
    ) -> RegionsMap:
        """Rebuild the map from its `arrays`. They may come from a stranger and are checked."""
        if depth >= DEEPEST:
            raise ValueError(f"regions within regions are more than {DEEPEST} deep")
        own: dict[str, np.ndarray] = {}
        of_part: dict[int, dict[str, np.ndarray]] = {}
        for name, array in arrays.items():
            if found := _PART.fullmatch(name):
                of_part.setdefault(int(found[1]), {})[found[2]] = array
            else:
                own[name] = array
        own = check_arrays(own, cls.layout, {"features": n_features})
        kinds = own.pop("kinds").tolist()
        if not set(of_part) <= set(range(len(kinds))):
            raise ValueError("it has arrays of regions that it does not list")
        parts: list[FeatureMap] = []
        for number, kind in enumerate(kinds):
            part = of_part.get(number, {})
            if kind == AllColumns.kind:
                parts.append(AllColumns(**check_arrays(part, AllColumns.layout,
                                                       {"features": n_features})))  # fmt: skip
            else:
                parts.append(feature_map(kind, part, n_features, depth + 1))
        return cls(parts, **own)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def n_columns(self) -> int:
        """Number of columns of all regions."""
        return sum(self.widths)

    @property
    def nbytes(self) -> int:
        """Bytes of the balls, and of the maps inside them."""
        return self.centre.nbytes + self.radius.nbytes + sum(map(map_bytes, self.parts))

    def region(self, X: Any) -> np.ndarray:
        """Return the region of every row; see `newest_hole`."""
        check_squares(X, np.dtype(np.float64))
        return newest_hole(X, self.centre, self.radius)

    def columns(self, X: Any) -> np.ndarray:
        """Return the values on new rows, zero except in the columns of a row's own region."""
        region = self.region(X)
        out = np.zeros((X.shape[0], sum(self.widths)))
        for part, width, at, rows in self._of_rows(region):
            out[rows, at : at + width - 1] = part.columns(X[rows])
            out[rows, at + width - 1] = 1.0
        return out

    def scores(self, X: Any, weights: np.ndarray) -> np.ndarray:
        """Return columns times weights. Only the map of its own region scores a row."""
        region = self.region(X)
        out = np.empty((X.shape[0], weights.shape[1]))
        for part, width, at, rows in self._of_rows(region):
            own = weights[at : at + width]
            out[rows] = map_scores(part, X[rows], own[:-1]) + own[-1]
        return out

    def _of_rows(self, region: np.ndarray) -> list[tuple[FeatureMap, int, int, np.ndarray]]:
        """Return the map, width, first column and rows of every region that has rows."""
        order = np.argsort(region, kind="stable")
        ends = np.searchsorted(region[order], np.arange(len(self) + 1))
        starts = np.concatenate([[0], np.cumsum(self.widths)]).tolist()
        return [
            (part, self.widths[j], starts[j], order[ends[j] : ends[j + 1]])
            for j, part in enumerate(self.parts)
            if ends[j] < ends[j + 1]
        ]

    def names(self, feature_names: Names = None, categories: Labels = None) -> list[str]:
        """Return ``hole 2 · x1`` for a column of a hole's map and ``hole 2`` for its constant."""
        out = []
        for j, part in enumerate(self.parts):
            where = f"hole {j}" if j else "outside"
            out += [f"{where} · {name}" for name in part.names(feature_names, categories)]
            out.append(where)
        return out

    def summary(self, weights: np.ndarray) -> tuple[list[str], np.ndarray]:
        """Return a few words about every region, and its scores at its centre.

        The region outside the holes has no centre. Its scores are those of a row of zeros.
        """
        names = [f"outside, {100 * self.share[0]:.3g} % of rows"]
        for radius, share, row in zip(self.radius, self.share[1:], self.nearest, strict=True):
            names.append(f"radius {radius:.3g}, {100 * share:.3g} % of rows, like row {row}")
        # All entries share one zero, because a stranger's file may ask for rows of any length.
        zeros = np.broadcast_to(0.0, (1, self.centre.shape[1]))
        at, scores = 0, np.empty((len(self), weights.shape[1]))
        for j, (part, width) in enumerate(zip(self.parts, self.widths, strict=True)):
            own, middle = weights[at : at + width], self.centre[j - 1 : j] if j else zeros
            with np.errstate(over="ignore", invalid="ignore"):
                scores[j] = map_scores(part, middle, own[:-1])[0] + own[-1]
            at += width
        return names, scores

    def features(self) -> np.ndarray:
        """Return the sorted distinct input features that are read: all, if there is a hole."""
        if len(self.radius):
            return np.arange(self.centre.shape[1])
        return self.parts[0].features()

    def operations(self) -> int:
        """Count the operations of a row.

        They are a multiplication per coordinate of a centre, a comparison per hole, and on average
        the operations of the map of a row's own region.
        """
        own = [part.operations() for part in self.parts]
        return self.centre.size + len(self.radius) + round(float(np.dot(self.share, own)))

    def score_operations(self, n_outputs: int) -> int:
        """Return the expected operations of `scores` for a row like the training rows."""
        inside = float(np.dot(self.share, np.array(self.widths) - 1)) * n_outputs
        return self.operations() + round(inside)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the flat arrays of the map."""
        out = {
            "kinds": np.array([part.kind for part in self.parts]),
            "centre": self.centre,
            "radius": self.radius,
            "share": self.share,
            "nearest": self.nearest,
        }
        for number, part in enumerate(self.parts):
            out |= {f"part{number}_{name}": array for name, array in part.arrays().items()}
        return out
