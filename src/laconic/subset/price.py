"""Prices of supports, and the caps that decide which supports are allowed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Support = tuple[int, ...]


class Price:
    """The price of a support, a cap on its size and a cap on its cost.

    Parameters
    ----------
    each : float
        λ. The price of a support is λ times its cost.
    cap : int
        Largest size of a support.
    cost : callable, optional
        Returns the cost of a support. Without it, the cost is the size.
    budget : float
        Largest cost of a support.
    """

    def __init__(
        self,
        each: float,
        cap: int,
        cost: Callable[[Support], float] | None = None,
        budget: float = np.inf,
    ) -> None:
        self.each = each
        self.cap = cap
        self._cost = cost
        self._budget = budget

    def of(self, support: Support) -> float:
        """Return the price of a support."""
        return self.each * (len(support) if self._cost is None else self._cost(support))

    def of_each(self, n_columns: int) -> np.ndarray | float:
        """Return the prices of single columns."""
        if self._cost is None:
            return self.each
        return np.array([self.of((column,)) for column in range(n_columns)])

    def allows(self, support: Support) -> bool:
        """Return whether a support is within the caps."""
        if len(support) > self.cap:
            return False
        return self._cost is None or self._cost(support) <= self._budget

    def dearest(self, support: Support) -> float:
        """Return the largest price that dropping one column of a support saves."""
        if self._cost is None or not support:
            return self.each
        whole = self.of(support)
        rests = (tuple(c for c in support if c != column) for column in support)
        return whole - min(self.of(rest) for rest in rests)
