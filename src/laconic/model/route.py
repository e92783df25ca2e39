"""`Route`: holes in the data space, each with columns of its own (eq. (6) of Dekel and Shamir,
*There's a Hole in My Data Space*).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from laconic.model.distances import inside_balls
from laconic.model.lowering import (
    Primitive,
    columns_of,
    operations_of,
    reads_of,
    scores_of,
    width_of,
)
from laconic.numeric.magnitudes import check_squares


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


class Route(Primitive):
    """Disjoint regions, each with primitives of its own: 1[x in region j]·[columns of part j, 1].

    Region 0 is everything outside the holes. Region j is the j-th hole without the holes punched
    later. A hole is the ball ‖x − c‖ ≤ r.

    Parameters
    ----------
    centre : array of shape (n_holes, n_features)
    radius : array of shape (n_holes,)
    parts : sequence of sequences of Primitive
        The primitives of every region. There is one more region than there are holes.
    share : array of shape (n_holes + 1,), optional
        Share of the rows that each region decides, for `operations`. By default, every row counts
        as in the dearest region.
    """

    fields = ("centre", "radius")

    def __init__(
        self, centre: Any, radius: Any, parts: Sequence[Sequence[Primitive]], share: Any = None
    ) -> None:
        self.centre = np.asarray(centre, dtype=np.float64)
        self.radius = np.asarray(radius, dtype=np.float64)
        self.parts = [list(part) for part in parts]
        self.share = None if share is None else np.asarray(share, dtype=np.float64)
        holes = len(self.parts) - 1
        shared = self.share is None or self.share.shape == (holes + 1,)
        fits = self.centre.ndim == 2 and len(self.centre) == holes
        if not (shared and fits and self.radius.shape == (holes,)):
            raise ValueError("the arrays of the regions do not fit together")
        self.widths = [width_of(part) + 1 for part in self.parts]

    @property
    def n_columns(self) -> int:
        """Number of columns of all regions."""
        return sum(self.widths)

    def region(self, X: Any) -> np.ndarray:
        """Return the region of every row; see `newest_hole`."""
        check_squares(X, np.dtype(np.float64))
        return newest_hole(X, self.centre, self.radius)

    def columns(self, X: Any) -> np.ndarray:
        """Return the values on new rows, zero except in the columns of a row's own region."""
        out = np.zeros((X.shape[0], self.n_columns))
        for j, at, rows in self._of_rows(X):
            last = at + self.widths[j] - 1
            out[rows, at:last] = columns_of(self.parts[j], X[rows])
            out[rows, last] = 1.0
        return out

    def scores(self, X: Any, weights: np.ndarray) -> np.ndarray:
        """Return columns times weights. Only the primitives of its own region score a row."""
        out = np.empty((X.shape[0], weights.shape[1]))
        for j, at, rows in self._of_rows(X):
            own = weights[at : at + self.widths[j]]
            out[rows] = scores_of(self.parts[j], X[rows], own[:-1]) + own[-1]
        return out

    def _of_rows(self, X: Any) -> list[tuple[int, int, np.ndarray]]:
        """Return the number, the first column and the rows of every region that has rows."""
        region = self.region(X)
        order = np.argsort(region, kind="stable")
        ends = np.searchsorted(region[order], np.arange(len(self.parts) + 1))
        starts = np.concatenate([[0], np.cumsum(self.widths)]).tolist()
        return [
            (j, starts[j], order[ends[j] : ends[j + 1]])
            for j in range(len(self.parts))
            if ends[j] < ends[j + 1]
        ]

    def reads(self) -> np.ndarray:
        """Return the sorted distinct features that are read: all, if there is a hole."""
        if len(self.radius):
            return np.arange(self.centre.shape[1])
        return reads_of(self.parts[0])

    def operations(self) -> int:
        """Count the operations of a row.

        They are a multiplication per coordinate of a centre, a comparison per hole, and on average
        the operations of the primitives of a row's own region.
        """
        own = self._average([operations_of(part) for part in self.parts])
        return self.centre.size + len(self.radius) + round(own)

    def score_operations(self, n_outputs: int) -> int:
        """Return the expected operations of `scores`, by the ``share`` of rows in each region."""
        inside = self._average([width - 1 for width in self.widths]) * n_outputs
        return self.operations() + round(inside)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the flat arrays of the balls, and of the primitives of all regions."""
        out = super().arrays()
        for j, part in enumerate(self.parts):
            for number, primitive in enumerate(part):
                own = primitive.arrays()
                out |= {f"part{j}_{number}_{name}": array for name, array in own.items()}
        return out

    def every(self) -> Iterator[Primitive]:
        """Yield the route and all primitives inside it."""
        yield self
        for part in self.parts:
            for primitive in part:
                yield from primitive.every()

    def _average(self, of_regions: Sequence[int]) -> float:
        """Return the average of a number over the rows, or the largest if no shares are known."""
        return float(max(of_regions) if self.share is None else np.dot(self.share, of_regions))
