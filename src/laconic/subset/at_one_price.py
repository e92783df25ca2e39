"""Local search at one price from a known support, for a problem that grows one column at a time.

`laconic.subset.at_every_size` searches every size from scratch. Boosting needs only one price, and
each round brings one new column. So this search starts from the support of the previous round. It
tries only the new column until a move helps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from laconic.subset.contract import Fit, Move, Searchable
from laconic.subset.plain_moves import PlainMoves
from laconic.subset.price import Price

# A move counts if it lowers the objective by more than this part of it.
WORTH = 1e-7
# Number of columns to try when one is added. They are ranked by the gain of a step along one column
# alone.
CANDIDATES = 3
# Number of columns to try when one is dropped, cheapest first by the quadratic model. More columns
# are tried if the model predicts a cost below the price.
DROPS = 2
# Factor by which the quadratic model of dropping, or the step along one column alone, may be wrong.
SLACK = 4.0


def descend(
    problem: Searchable[Fit], price: Price, fit: Fit, fresh: Sequence[int] | None = None
) -> Fit:
    """Add, drop and swap columns until no tried move lowers value + price of the support.

    Parameters
    ----------
    problem : Searchable
    price : Price
        Prices of supports, and the caps that decide which are allowed.
    fit : Fit
        Where to start. The result is at least as good, unless columns must be dropped to meet the
        caps.
    fresh : sequence of int, optional
        The only columns to try from this fit. The others were tried before.
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
    """One fit, and the moves from it that lower value + price of the support."""

    def __init__(self, problem: Searchable[Fit], price: Price, fit: Fit) -> None:
        self._problem, self._price, self._fit = problem, price, fit
        charges = price.of_adding(fit.support, problem.n_columns)
        self._moves = PlainMoves(problem, fit, charges)
        self._dearest = price.dearest(fit.support)
        self._most = SLACK * self._dearest if self._dearest > 0 else np.inf
        self._drops: list[Move] | None = None
        self._dropped: list[Fit] = []

    def move(self, fresh: Sequence[int] | None) -> Fit | None:
        """Return a better fit, or None. With ``fresh``, only add one of these columns."""
        if fresh is not None:
            return self._add_or_exchange(fresh)
        return self._drop() or self._add_or_exchange(None) or self._replace()

    def _drop(self) -> Fit | None:
        """Return a better fit without one of the columns, or None."""
        for _, new in self._without_one(SLACK * self._dearest, DROPS):
            if self._better(new):
                return new
        return None

    def _without_one(self, rise: float, count: int) -> Iterator[tuple[int, Fit]]:
        """Yield columns and the fits without them, cheapest first by the model.

        The first ``count`` fits are made, and after them those that the model predicts to cost no
        more than the price. The iteration ends at a column whose predicted rise is above ``rise``.
        It also ends if no column could make up for the predicted rise, because such a column would
        have come in before. A fit whose true rise is that large is passed over. The columns after
        it may still be cheap, because the model can be wrong about one column and right about the
        next. Each fit is made only once.
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
        """Return a better fit with one more column, or None.

        If adding a column is not enough, it may replace a column that it makes unnecessary.
        """
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
        """Return a better fit in which the best other column replaces a dropped one, or None."""
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
        """Return whether the objective falls, or stays the same with fewer columns."""
        target = self._target(new.support)
        fewer = len(new.support) < len(self._fit.support)
        return new.value <= target if fewer else new.value < target

    def _target(self, support: tuple[int, ...]) -> float:
        """Return the value that a fit on a support needs to count as better."""
        before = self._fit.value + self._price.of(self._fit.support)
        worth = WORTH * abs(before) if len(support) >= len(self._fit.support) else 0.0
        return before - self._price.of(support) - worth

    def _saved(self, support: tuple[int, ...]) -> float:
        """Return how much cheaper another support is, or 0 if it is not cheaper."""
        return max(self._price.of(self._fit.support) - self._price.of(support), 0.0)
