"""Columns of zeros and ones as columns of -1 and 1: the weak hypotheses of the boosting papers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from laconic.model.feature_maps import FeatureMap
from laconic.pools.base import BoundPool


class Signs(BoundPool):
    """A bound pool of 0/1 columns c, seen as h = 2c − 1; atoms, records and maps stay the same.

    Where weights may have either sign, h and its negation −h are one atom: w h with w < 0 is |w|
    times −h, and no best weights use both where there is an l1 term. So the weights w ≥ 0 of
    TotalQBoost eq. (2) over stumps of both signs are weights of either sign over stumps of one.
    """

    signs = True

    def __init__(self, pool: BoundPool) -> None:
        if not pool.binary:
            raise TypeError("only columns of zeros and ones can be seen as signs")
        self.pool = pool
        self.n_atoms, self.n_columns = pool.n_atoms, pool.n_columns
        # Signs have no rounding of their own: scores need none of the input's either.
        self.dtype = np.dtype(np.float64)

    def gradients(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Twice the sums where the question is answered yes, less those of all rows."""
        whole = residual.sum(axis=0, dtype=np.float64)
        for first, sums in self.pool.gradients(residual):
            yield first, 2.0 * sums - whole

    def squares(self, weight: np.ndarray) -> np.ndarray:
        """Every h² is 1."""
        return np.full(self.n_columns, float(np.sum(weight, dtype=np.float64)))

    def columns(self, atoms: Sequence[int]) -> np.ndarray:
        """Training columns of -1 and 1."""
        return np.asfortranarray(2 * self.pool.columns(atoms) - 1, dtype=self.dtype)

    def scales(self, atoms: Sequence[int]) -> np.ndarray:
        """h = 2c − 1."""
        return 2.0 * self.pool.scales(atoms)

    def shifts(self, atoms: Sequence[int]) -> np.ndarray:
        """h = 2c − 1."""
        return np.ones(len(atoms))

    def atom(self, index: int) -> Any:
        """The record of the 0/1 atom."""
        return self.pool.atom(index)

    def index(self, atom: Any) -> int:
        """The number of an atom record."""
        return self.pool.index(atom)

    def matching(self, item: Any) -> np.ndarray:
        """Numbers of the atoms an item means."""
        return self.pool.matching(item)

    def extract(self, atoms: Sequence[int]) -> FeatureMap:
        """The feature map of the 0/1 atoms; the predictor's intercept takes up the shift."""
        return self.pool.extract(atoms)

    def costs(self, feature_costs: np.ndarray) -> np.ndarray:
        """Cost of every atom."""
        return self.pool.costs(feature_costs)
