"""Prices of supports, and the caps that decide which supports are allowed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Support = tuple[int, ...]


class Price:
    """The price of a support, a cap on its size and other limits on it.

    Parameters
    ----------
    each : float
        λ. The price of a support is λ times its cost.
    cap : int
        Largest size of a support.
    cost : callable, optional
        Returns the cost of a support. Without it, the cost is the size.
    within : callable, optional
        Returns whether a support is within other limits. A support within them stays within them if
        a column is dropped.
    """

    def __init__(
        self,
        each: float,
        cap: int,
        cost: Callable[[Support], float] | None = None,
        within: Callable[[Support], bool] | None = None,
    ) -> None:
        self.each = each
        self.cap = cap
        self._cost = cost
        self._within = within

    def of(self, support: Support) -> float:
        """Return the price of a support."""
        return self.each * (len(support) if self._cost is None else self._cost(support))

    def of_adding(self, support: Support, n_columns: int) -> np.ndarray | float:
        """Return what each column adds to the price of a support. It is 0 for its own columns."""
        if self._cost is None:
            return self.each
        grown = (tuple(sorted({*support, column})) for column in range(n_columns))
        return np.array([self.of(columns) for columns in grown]) - self.of(support)

    def allows(self, support: Support) -> bool:
        """Return whether a support is within the cap and the other limits."""
        if len(support) > self.cap:
            return False
        return self._within is None or self._within(support)

    def dearest(self, support: Support) -> float:
        """Return the largest price that dropping one column of a support saves."""
        if self._cost is None or not support:
            return self.each
        whole = self.of(support)
        rests = (tuple(c for c in support if c != column) for column in support)
        return whole - min(self.of(rest) for rest in rests)
