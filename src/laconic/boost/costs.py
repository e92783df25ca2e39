"""What atoms cost, alone and beside those that a model has already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from laconic.pools.base import BoundPool


class Costs(Protocol):
    """Costs of a pool's atoms."""

    def given(self, chosen: Sequence[int]) -> np.ndarray:
        """What each atom adds to a model of the atoms ``chosen``."""

    def total(self, numbers: Sequence[int]) -> float:
        """Cost of a model of these atoms."""


class FixedCosts:
    """Every atom has its cost, whatever else is in the model."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def given(self, chosen: Sequence[int]) -> np.ndarray:
        """The costs."""
        return self.values

    def total(self, numbers: Sequence[int]) -> float:
        """Their sum."""
        return float(self.values[list(numbers)].sum())


class OperationCosts:
    """Operations a row takes; what several atoms share is computed, and costs, once."""

    def __init__(self, pool: BoundPool) -> None:
        self._pool = pool

    def given(self, chosen: Sequence[int]) -> np.ndarray:
        """Operations that each atom adds."""
        return self._pool.operations(chosen)

    def total(self, numbers: Sequence[int]) -> float:
        """Operations of the atoms' feature map."""
        return float(self._pool.extract(numbers).operations())
