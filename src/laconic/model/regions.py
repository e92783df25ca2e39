"""Regions on new rows: holes in the data space, each with a model of its own (eq. (6) of Dekel and
Shamir, *There's a Hole in My Data Space*).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from laconic.files.layout import Array
from laconic.model.feature_maps import FeatureMap, Labels, Names, map_bytes, map_scores
from laconic.model.lowering import LoweredMap, Primitive, primitives_of
from laconic.model.nested import DEEPEST as DEEPEST
from laconic.model.nested import AllColumns as AllColumns
from laconic.model.nested import nested_depth, own_and_parts, part_arrays
from laconic.model.pieces import ROUNDING
from laconic.model.route import Route

# Score of a class that the model of a region has never seen. It is finite, but below every other.
UNSEEN = -1e30


class RegionsMap(LoweredMap):
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
        if self.nearest.shape != self.radius.shape or self.share.shape != (len(self.parts),):
            raise ValueError("the arrays of the regions do not fit together")
        lowered = [primitives_of(part) for part in self.parts]
        self._route = Route(self.centre, self.radius, lowered, self.share)
        self.widths = self._route.widths
        self._depth = nested_depth(self.parts, "regions")

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, np.ndarray], n_features: int, depth: int = 0
    ) -> RegionsMap:
        """Rebuild the map from its `arrays`. They may come from a stranger and are checked."""
        own, parts = own_and_parts(arrays, cls.layout, n_features, depth, "regions")
        return cls(parts, **own)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def nbytes(self) -> int:
        """Bytes of the balls, and of the maps inside them."""
        return self.centre.nbytes + self.radius.nbytes + sum(map(map_bytes, self.parts))

    def lower(self) -> list[Primitive]:
        """Return the regions as one `Route`."""
        return [self._route]

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

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the flat arrays of the map."""
        return {
            **part_arrays(self.parts),
            "centre": self.centre,
            "radius": self.radius,
            "share": self.share,
            "nearest": self.nearest,
        }
