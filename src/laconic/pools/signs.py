"""Columns of zeros and ones, used as columns of -1 and 1: weak hypotheses of boosting papers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from laconic.model.feature_maps import FeatureMap
from laconic.pools.base import BoundPool


def as_signs(pool: BoundPool) -> BoundPool:
    """Return a bound pool whose columns of 0 and 1 are used as columns of -1 and 1.

    In a mix of pools, these are the columns of some of the pools. Other columns stay as they are.
    """
    if hasattr(pool, "signed"):
        mixed: BoundPool = pool.signed()
        return mixed
    return Signs(pool) if pool.binary else pool


class Signs(BoundPool):
    """A bound pool of 0/1 columns c, used as h = 2c − 1. Atoms, records and maps are the same.

    If weights may have either sign, h and its negation −h are one atom, because w h with w < 0 is
    |w| times −h. With an l1 term, no optimal weights use both h and −h. So the weights w ≥ 0 of
    TotalQBoost eq. (2) over stumps h and −h become weights of either sign over stumps h.
    """

    signs = True

    def __init__(self, pool: BoundPool) -> None:
        if not pool.binary:
            raise TypeError("only columns of zeros and ones can be used as signs")
        self.pool = pool
        self.n_atoms, self.n_columns = pool.n_atoms, pool.n_columns
        # Signs are exact in any dtype, so scores need not have the input's rounding.
        self.dtype = np.dtype(np.float64)

    def gradients(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield twice the sums of the 0/1 columns, minus the sums over all rows."""
        whole = residual.sum(axis=0, dtype=np.float64)
        for first, sums in self.pool.gradients(residual):
            yield first, 2.0 * sums - whole

    def squares(self, weight: np.ndarray) -> np.ndarray:
        """Return the sum of the weights for every column, because every h² is 1."""
        return np.full(self.n_columns, float(np.sum(weight, dtype=np.float64)))

    def columns(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the training columns of -1 and 1."""
        return np.asfortranarray(2 * self.pool.columns(atoms) - 1, dtype=self.dtype)

    def scales(self, atoms: Sequence[int]) -> np.ndarray:
        """Return twice the factors of the 0/1 pool, because h = 2c − 1."""
        return 2.0 * self.pool.scales(atoms)

    def shifts(self, atoms: Sequence[int]) -> np.ndarray:
        """Return ones, because h = 2c − 1."""
        return np.ones(len(atoms))

    def atom(self, index: int) -> Any:
        """Return the record of the 0/1 atom."""
        return self.pool.atom(index)

    def index(self, atom: Any) -> int:
        """Return the number of an atom record."""
        return self.pool.index(atom)

    def matching(self, item: Any) -> np.ndarray:
        """Return the numbers of the atoms that an item means."""
        return self.pool.matching(item)

    def extract(self, atoms: Sequence[int]) -> FeatureMap:
        """Return the feature map of the 0/1 atoms. The predictor's intercept absorbs the shift."""
        return self.pool.extract(atoms)

    def costs(self, feature_costs: np.ndarray) -> np.ndarray:
        """Return the cost of every atom."""
        return self.pool.costs(feature_costs)

    def alike(self, chosen: Sequence[int] = ()) -> np.ndarray | None:
        """Return a number for every atom that says which atoms are alike."""
        return self.pool.alike(chosen)

    def operations(self, chosen: Sequence[int] = (), n_outputs: int = 0) -> np.ndarray | None:
        """Return the operations that each atom adds."""
        return self.pool.operations(chosen, n_outputs)
