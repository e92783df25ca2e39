"""Bumps on new rows: heights of soft balls."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from laconic.files.layout import Array
from laconic.model.balls import Heights
from laconic.model.feature_maps import SUM, Labels, Names
from laconic.model.lowering import LoweredMap, Primitive
from laconic.model.pieces import ROUNDING


class Bump(NamedTuple):
    """A bump: max(0, 1 − ‖v − c‖²/radius²). ``centre`` is the number of c in the pool."""

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
        return 1


class BumpsMap(LoweredMap):
    """Bumps, each with the column max(0, 1 − ‖v − c‖²/r²).

    Parameters
    ----------
    centre : ndarray of shape (n_bumps, n_features)
        Centre c of every bump.
    radius : ndarray of shape (n_bumps,)
    share : ndarray of shape (n_bumps,)
        Share of the training rows where the bump is not 0.
    nearest : ndarray of shape (n_bumps,)
        Number of the training row nearest to the centre.
    """

    kind = "bumps"
    worth = (
        "A bump adds its weight at its centre, less at rows farther away, and nothing from its "
        "radius on. The row named is the training row nearest to the centre, counted from 0."
    )
    reading = f"{worth} A class adds up its bumps and {SUM}"
    layout: ClassVar[dict[str, Array]] = {
        "centre": Array("f", ("bumps", "features")),
        "radius": Array("f", ("bumps",), 0.0),
        "share": Array("f", ("bumps",), 0.0, 1.0 + ROUNDING),
        "nearest": Array("i", ("bumps",), 0),
    }
    remarks = ("share", "nearest")

    def __init__(
        self, centre: np.ndarray, radius: np.ndarray, share: np.ndarray, nearest: np.ndarray
    ) -> None:
        self._bumps = Heights(centre, radius)
        self.centre, self.radius = self._bumps.centre, self._bumps.radius
        self.share = np.asarray(share, dtype=np.float64)
        self.nearest = np.asarray(nearest, dtype=np.int64)
        if not self.radius.shape == self.share.shape == self.nearest.shape:
            raise ValueError("the arrays of the bumps do not fit together")

    def __len__(self) -> int:
        return len(self.radius)

    def lower(self) -> list[Primitive]:
        """Return the bumps as one `Heights`."""
        return [self._bumps]

    def names(self, feature_names: Names = None, categories: Labels = None) -> list[str]:
        """Return names such as ``bump of radius 12, 3 % of rows, like row 5``."""
        return [
            f"bump of radius {r:.3g}, {100 * s:.3g} % of rows, like row {i}"
            for r, s, i in zip(self.radius, self.share, self.nearest, strict=True)
        ]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the flat arrays of the map."""
        return {name: getattr(self, name) for name in self.layout}
