"""The moves of a local search, for any problem: add, drop and swap columns.

Both local searches, at one price and at every size, use them. For columns of 0 and 1 or of signs,
`laconic.subset.moves` ranks the moves better.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import islice
from typing import Generic

import numpy as np

from laconic.subset.contract import F, Movable, Move, Searchable


class RefittedMoves(ABC, Generic[F]):
    """The moves from one fit. Each move needs one or two refits.

    Parameters
    ----------
    problem : Movable
        Columns may be groups, and weights may have any shape.
    fit
    tried : set, optional
        Supports, with one column dropped, from which swaps were tried before. Swaps skip these
        supports, and add new ones to the set.
    """

    tries = 1
    """Number of columns to try in place of a dropped one."""

    def __init__(
        self, problem: Movable[F], fit: F, tried: set[tuple[int, ...]] | None = None
    ) -> None:
        self.fit, self.tried = fit, tried
        self._movable = problem
        self._last: tuple[int, F] = (-1, fit)

    @abstractmethod
    def ranked(self, fit: F, *barred: int) -> Iterator[tuple[float, int]]:
        """Yield the gains and numbers of columns outside a fit, best first."""

    def adds(self, count: int, *barred: int) -> list[Move]:
        """Return the best columns to add, best first."""
        best = islice(self.ranked(self.fit, *barred), count)
        return [Move(-gain, -1, column) for gain, column in best]

    def drops(self, count: int) -> list[Move]:
        """Return the columns that are cheapest to drop, cheapest first."""
        if not self.fit.support:
            return []
        rise = self._movable.losses_of_dropping(self.fit)
        return [Move(float(rise[s]), int(s), -1) for s in smallest(rise, count)]

    def swaps(self, count: int) -> Iterator[Move]:
        """Yield swaps. Each drops one of the cheapest columns and adds one of the best others.

        Each swap needs a refit, so the swaps are computed only when they are asked for.
        """
        for drop in self.drops(count):
            support, gone = self.fit.support, self.fit.support[drop.out]
            if self.tried is not None:
                rest = tuple(column for column in support if column != gone)
                if rest in self.tried:
                    continue
                self.tried.add(rest)
            reduced = self._without(drop.out)
            rise = reduced.value - self.fit.value
            for gain, column in islice(self.ranked(reduced, gone), self.tries):
                yield Move(rise - gain, drop.out, column)

    def make(self, move: Move, target: float = np.inf) -> F:
        """Return the fit after a move. The solve stops early if it cannot reach ``target``."""
        reduced = self._without(move.out)
        return reduced if move.into < 0 else self._movable.with_column(reduced, move.into, target)

    def _without(self, out: int) -> F:
        """Return the fit without a column, or the fit itself for -1. The last result is kept."""
        if out < 0:
            return self.fit
        if self._last[0] != out:
            self._last = out, self._movable.without(self.fit, self.fit.support[out])
        return self._last[1]


class PlainMoves(RefittedMoves[F]):
    """Moves of any problem that gives the gain of a step along each column alone.

    Parameters
    ----------
    problem : Searchable
    fit
    charges : float or ndarray of shape (n_columns,)
        Prices of the columns. Columns are ranked by their gain minus their price.
    """

    def __init__(self, problem: Searchable[F], fit: F, charges: float | np.ndarray = 0.0) -> None:
        super().__init__(problem, fit)
        self._problem, self._charges = problem, charges

    def ranked(self, fit: F, *barred: int) -> Iterator[tuple[float, int]]:
        """Yield the gains and numbers of columns with a positive gain, best first."""
        gains = self._problem.gains(fit)
        gains[list(barred)] = -np.inf
        order = np.argsort(self._charges - gains, kind="stable")
        for column in order[gains[order] > 0]:
            yield float(gains[column]), int(column)


def smallest(values: np.ndarray, count: int) -> np.ndarray:
    """Return the places of the smallest values, in order. Equal values are ordered by place."""
    if count < len(values):
        few = np.argpartition(values, count)[:count]
        limit = values[few].max()
        values_at = np.flatnonzero(values <= limit)
        return values_at[np.argsort(values[values_at], kind="stable")][:count]
    return np.argsort(values, kind="stable")
