"""Local search from where one stands, at one price: for a problem that grows a column at a time.

`laconic.subset.at_every_size` answers for every size at once, from scratch. Inside boosting only
one price counts, and each round brings one column: here moves start from the support of the round
before, and as long as none of them helps only the new column is tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from laconic.subset.plain_moves import Move, PlainMoves
from laconic.subset.price import Price
from laconic.subset.problem import Fit, Searchable

# A move counts when it lowers the objective by more than this part of it.
WORTH = 1e-7
# Columns tried for a place, best first by the step along them alone.
CANDIDATES = 3
# Columns tried to take out, cheapest first by the quadratic model; more where it takes them for
# cheaper than the price.
DROPS = 2
# How far the quadratic model of dropping, or the step along one column alone, may be off.
SLACK = 4.0


def descend(
    problem: Searchable[Fit], price: Price, fit: Fit, fresh: Sequence[int] | None = None
) -> Fit:
    """Add, drop and swap columns until no move tried lowers value + price of the support.

    Parameters
    ----------
    problem : Searchable
    price : Price
        What supports cost, and which are allowed.
    fit : Fit
        Where to start. The answer is no worse, unless it has to drop columns to be allowed.
    fresh : sequence of int, optional
        The only columns worth trying in the support as it is: the others were, before.
    """
    while not price.allows(fit.support):
        moves = PlainMoves(problem, fit)
        tried = [moves.make(drop) for drop in moves.drops(DROPS)]
        fit, fresh = min(tried, key=lambda f: f.value), None
    while True:
        moved = _Here(problem, price, fit).move(fresh)
        if moved is None:
            return fit
        fit, fresh = moved, None


class _Here:
    """One fit, and the moves from it that lower value + price."""

    def __init__(self, problem: Searchable[Fit], price: Price, fit: Fit) -> None:
        self._problem, self._price, self._fit = problem, price, fit
        charges = price.of_each(problem.n_columns)
        self._moves = PlainMoves(problem, fit, charges)
        self._dearest = price.dearest(fit.support)
        self._most = SLACK * self._dearest if price.each > 0 else np.inf
        self._drops: list[Move] | None = None
        self._dropped: list[Fit] = []

    def move(self, fresh: Sequence[int] | None) -> Fit | None:
        """A better fit; with ``fresh``, by letting one of these columns in."""
        if fresh is not None:
            return self._add_or_exchange(fresh)
        return self._drop() or self._add_or_exchange(None) or self._replace()

    def _drop(self) -> Fit | None:
        """The fit less a column that costs more than it saves."""
        for _, new in self._without_one(SLACK * self._dearest, DROPS):
            if self._better(new):
                return new
        return None

    def _without_one(self, rise: float, count: int) -> Iterator[tuple[int, Fit]]:
        """Columns and the fits without them, cheapest first by the model; each is made once.

        ``count`` are made, and all that the model takes for cheaper than the price, as far as it
        expects no more than ``rise``. They end before one that costs more than anything could make
        up for, by the model: what could would have come in before. One that does so in truth is
        passed over. Those behind it may still be cheap, since the model may be wrong about one
        column and right about the next.
        """
        if self._drops is None:
            self._drops = self._moves.drops(len(self._fit.support))
        target = self._fit.value + self._most
        for at, drop in enumerate(self._drops):
            column = self._fit.support[drop.out]
            enough = at >= count and drop.change > self._dearest
            if enough or drop.change > min(rise, self._most):
                return
            if at == len(self._dropped):
                self._dropped.append(self._problem.without(self._fit, column, target))
            if self._dropped[at].value <= target:
                yield column, self._dropped[at]

    def _add_or_exchange(self, fresh: Sequence[int] | None) -> Fit | None:
        """The fit with a column more; or with that column in the place of one it makes needless."""
        barred = () if fresh is None else set(range(self._problem.n_columns)).difference(fresh)
        for add in self._moves.adds(CANDIDATES, *barred):
            grown = self._moves.make(add)
            if self._price.allows(grown.support) and self._better(grown):
                return grown
            gained = self._fit.value - grown.value
            for drop in PlainMoves(self._problem, grown).drops(DROPS + 1):
                gone = grown.support[drop.out]
                support = tuple(c for c in grown.support if c != gone)
                hopeful = drop.change < SLACK * (gained + self._saved(support))
                if gone != add.into and hopeful and self._price.allows(support):
                    new = self._problem.without(grown, gone, self._target(support))
                    if self._better(new):
                        return new
        return None

    def _replace(self) -> Fit | None:
        """The fit with a column out and, seen from there, the best one in."""
        for column, reduced in self._without_one(np.inf, DROPS + 1):
            for gain, other in islice(self._moves.ranked(reduced, column), 1):
                support = tuple(sorted((*reduced.support, other)))
                hopeful = SLACK * (gain + self._saved(support)) > reduced.value - self._fit.value
                if hopeful and self._price.allows(support):
                    new = self._problem.with_column(reduced, other, self._target(support))
                    if self._better(new):
                        return new
        return None

    def _better(self, new: Fit) -> bool:
        """Whether the objective falls, or stays with fewer columns."""
        target = self._target(new.support)
        fewer = len(new.support) < len(self._fit.support)
        return new.value <= target if fewer else new.value < target

    def _target(self, support: tuple[int, ...]) -> float:
        """The value that a fit on a support needs to count as better."""
        before = self._fit.value + self._price.of(self._fit.support)
        worth = WORTH * abs(before) if len(support) >= len(self._fit.support) else 0.0
        return before - self._price.of(support) - worth

    def _saved(self, support: tuple[int, ...]) -> float:
        """How much less another support costs; 0 where it costs no less."""
        return max(self._price.of(self._fit.support) - self._price.of(support), 0.0)
