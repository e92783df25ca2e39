"""What supports cost, and which of them are allowed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Support = tuple[int, ...]


class Price:
    """A price on the cost of a support, a cap on its size, and one on its cost.

    Parameters
    ----------
    each : float
        λ: the price of a support is this times its cost.
    cap : int
        Largest size.
    cost : callable, optional
        Cost of a support; its size without.
    budget : float
        Largest cost.
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
        """The price of a support."""
        return self.each * (len(support) if self._cost is None else self._cost(support))

    def of_each(self, n_columns: int) -> np.ndarray | float:
        """The prices of single columns."""
        if self._cost is None:
            return self.each
        return np.array([self.of((column,)) for column in range(n_columns)])

    def allows(self, support: Support) -> bool:
        """Whether a support is within the caps."""
        if len(support) > self.cap:
            return False
        return self._cost is None or self._cost(support) <= self._budget

    def dearest(self, support: Support) -> float:
        """The most that dropping one column of a support saves."""
        if self._cost is None or not support:
            return self.each
        whole = self.of(support)
        rests = (tuple(c for c in support if c != column) for column in support)
        return whole - min(self.of(rest) for rest in rests)
