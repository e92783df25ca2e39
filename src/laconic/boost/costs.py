"""Costs of atoms, alone or added to a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from laconic.pools.base import BoundPool


class Costs(Protocol):
    """Costs of a pool's atoms."""

    def given(self, chosen: Sequence[int]) -> np.ndarray:
        """Return the cost that each atom adds to a model of the atoms ``chosen``."""

    def total(self, numbers: Sequence[int]) -> float:
        """Return the cost of a model of these atoms."""


class FixedCosts:
    """Costs that do not depend on the other atoms in the model."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def given(self, chosen: Sequence[int]) -> np.ndarray:
        """Return the costs of all atoms."""
        return self.values

    def total(self, numbers: Sequence[int]) -> float:
        """Return the sum of the atoms' costs."""
        return float(self.values[list(numbers)].sum())


class OperationCosts:
    """Number of operations per row. An operation that several atoms share counts once."""

    def __init__(self, pool: BoundPool) -> None:
        self._pool = pool

    def given(self, chosen: Sequence[int]) -> np.ndarray:
        """Return the number of operations that each atom adds."""
        return self._pool.operations(chosen)

    def total(self, numbers: Sequence[int]) -> float:
        """Return the number of operations of the atoms' feature map."""
        return float(self._pool.extract(numbers).operations())
