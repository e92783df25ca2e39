"""The moves of a local search: add, drop and swap columns, for any problem.

Both local searches, at one price and at every size, go by them. A problem of columns of 0 and 1 or
signs ranks its moves better: see `laconic.subset.moves`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Generic, NamedTuple, Protocol

import numpy as np

from laconic.subset.problem import F, Movable, Searchable


class Move(NamedTuple):
    """A column to drop, one to add, or both."""

    change: float
    """Predicted change of the value; -inf where nothing is predicted."""
    out: int
    """Place in the support of the column that goes; -1 for none."""
    into: int
    """Number of the column that comes; -1 for none."""


class MovesFrom(Protocol[F]):
    """The moves from one fit; each list may be made while it is read."""

    fit: F

    def adds(self, count: int) -> Iterable[Move]:
        """What to add, best first."""

    def drops(self, count: int) -> Iterable[Move]:
        """What to drop, cheapest first."""

    def swaps(self, count: int) -> Iterable[Move]:
        """What to swap, most promising first."""

    def make(self, move: Move, target: float = np.inf) -> F:
        """The fit after a move; it need not be complete where it cannot reach ``target``."""


class RefittedMoves(ABC, Generic[F]):
    """The moves from one fit, each of which takes a refit or two.

    Parameters
    ----------
    problem : Movable
        Columns may be groups, and weights of any shape.
    fit
    tried : set, optional
        Supports that something was put into before: swaps pass them over, and add to them.
    """

    tries = 1
    """Columns tried in the place of one that goes."""

    def __init__(
        self, problem: Movable[F], fit: F, tried: set[tuple[int, ...]] | None = None
    ) -> None:
        self.fit, self.tried = fit, tried
        self._movable = problem
        self._last: tuple[int, F] = (-1, fit)

    @abstractmethod
    def ranked(self, fit: F, *barred: int) -> Iterator[tuple[float, int]]:
        """What columns outside a fit would gain, and their numbers, best first."""

    def adds(self, count: int, *barred: int) -> list[Move]:
        """The best columns to add, best first."""
        best = islice(self.ranked(self.fit, *barred), count)
        return [Move(-gain, -1, column) for gain, column in best]

    def drops(self, count: int) -> list[Move]:
        """The cheapest columns to drop, cheapest first."""
        if not self.fit.support:
            return []
        rise = self._movable.losses_of_dropping(self.fit)
        return [Move(float(rise[s]), int(s), -1) for s in smallest(rise, count)]

    def swaps(self, count: int) -> Iterator[Move]:
        """Swaps of the cheapest columns, each for the best ones once it is gone.

        They are found while they are asked for: each takes a refit.
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
        """The fit after a move; not to the end where it cannot reach ``target``."""
        reduced = self._without(move.out)
        return reduced if move.into < 0 else self._movable.with_column(reduced, move.into, target)

    def _without(self, out: int) -> F:
        """The fit without a column; without none, itself. The last one is kept."""
        if out < 0:
            return self.fit
        if self._last[0] != out:
            self._last = out, self._movable.without(self.fit, self.fit.support[out])
        return self._last[1]


class PlainMoves(RefittedMoves[F]):
    """Moves of any problem that says what columns gain by a step along them alone.

    Parameters
    ----------
    problem : Searchable
    fit
    charges : float or ndarray of shape (n_columns,)
        What columns cost: those come first that gain most beyond it.
    """

    def __init__(self, problem: Searchable[F], fit: F, charges: float | np.ndarray = 0.0) -> None:
        super().__init__(problem, fit)
        self._problem, self._charges = problem, charges

    def ranked(self, fit: F, *barred: int) -> Iterator[tuple[float, int]]:
        """Columns that gain anything, best first."""
        gains = self._problem.gains(fit)
        gains[list(barred)] = -np.inf
        order = np.argsort(self._charges - gains, kind="stable")
        for column in order[gains[order] > 0]:
            yield float(gains[column]), int(column)


def smallest(values: np.ndarray, count: int) -> np.ndarray:
    """Places of the smallest values, in order; ties by place."""
    if count < len(values):
        few = np.argpartition(values, count)[:count]
        limit = values[few].max()
        values_at = np.flatnonzero(values <= limit)
        return values_at[np.argsort(values[values_at], kind="stable")][:count]
    return np.argsort(values, kind="stable")
