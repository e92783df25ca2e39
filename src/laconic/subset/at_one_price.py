"""Local search from where one stands, at one price: for a problem that grows a column at a time.

`laconic.subset.at_every_size` answers for every size at once, from scratch. Inside boosting only
one price counts, and each round brings one column: here moves start from the support of the round
before, and as long as none of them helps only the new column is tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

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


def descend(problem: Searchable, price: Price, fit: Fit, fresh: Sequence[int] | None = None) -> Fit:
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
        tried = [problem.without(fit, c) for c, _ in _ranked(problem, fit)[:DROPS]]
        fit, fresh = min(tried, key=lambda f: f.value), None
    while True:
        moved, dropped = None, _Dropped(problem, price, fit)
        if fresh is None:
            moved = _drop(price, fit, dropped)
        moved = moved or _add_or_exchange(problem, price, fit, fresh)
        if moved is None and fresh is None:
            moved = _replace(problem, price, fit, dropped)
        if moved is None:
            return fit
        fit, fresh = moved, None


class _Dropped:
    """The fits with one column less, cheapest first by the quadratic model; each is made once.

    They end before one that costs more than anything could make up for, by the model: what could
    would have come in before. One that does so in truth is passed over. Those behind it may still
    be cheap, since the model may be wrong about one column and right about the next.
    """

    def __init__(self, problem: Searchable, price: Price, fit: Fit) -> None:
        self._problem, self._fit, self._dearest = problem, fit, price.dearest(fit.support)
        self._most = SLACK * self._dearest if price.each > 0 else np.inf
        self._ranked: list[tuple[int, float]] | None = None
        self._made: list[Fit] = []

    def upto(self, rise: float, count: int) -> Iterator[tuple[int, Fit]]:
        """Columns and the fits without them, as far as the model expects no more than a rise.

        ``count`` are made, and all that the model takes for cheaper than the price.
        """
        if self._ranked is None:
            self._ranked = _ranked(self._problem, self._fit)
        target = self._fit.value + self._most
        for at, (column, expected) in enumerate(self._ranked):
            enough = at >= count and expected > self._dearest
            if enough or expected > min(rise, self._most):
                return
            if at == len(self._made):
                self._made.append(self._problem.without(self._fit, column, target))
            if self._made[at].value <= target:
                yield column, self._made[at]


def _better(new: Fit, old: Fit, price: Price) -> bool:
    """Whether the objective falls, or stays with fewer columns."""
    target = _target(old, price, new.support)
    return new.value <= target if len(new.support) < len(old.support) else new.value < target


def _target(old: Fit, price: Price, support: tuple[int, ...]) -> float:
    """The value that a fit on a support needs to count as better than another."""
    before = old.value + price.of(old.support)
    worth = WORTH * abs(before) if len(support) >= len(old.support) else 0.0
    return before - price.of(support) - worth


def _drop(price: Price, fit: Fit, dropped: _Dropped) -> Fit | None:
    """The fit less a column that costs more than it saves."""
    for _, new in dropped.upto(SLACK * price.dearest(fit.support), DROPS):
        if _better(new, fit, price):
            return new
    return None


def _add_or_exchange(
    problem: Searchable, price: Price, fit: Fit, fresh: Sequence[int] | None
) -> Fit | None:
    """The fit with a column more; or with that column in the place of one it makes needless."""
    gains = problem.gains(fit)
    if fresh is not None:
        others = np.ones(len(gains), dtype=bool)
        others[list(fresh)] = False
        gains[others] = -np.inf
    for column in _best(gains, price):
        grown = problem.with_column(fit, column)
        if price.allows(grown.support) and _better(grown, fit, price):
            return grown
        gained = fit.value - grown.value
        for other, rise in _ranked(problem, grown)[: DROPS + 1]:
            support = tuple(c for c in grown.support if c != other)
            worth = gained + _saved(fit, support, price)
            if other != column and rise < SLACK * worth and price.allows(support):
                new = problem.without(grown, other, _target(fit, price, support))
                if _better(new, fit, price):
                    return new
    return None


def _replace(problem: Searchable, price: Price, fit: Fit, dropped: _Dropped) -> Fit | None:
    """The fit with a column out and, seen from there, the best one in."""
    for column, reduced in dropped.upto(np.inf, DROPS + 1):
        gains = problem.gains(reduced)
        gains[column] = -np.inf
        for other in _best(gains, price)[:1]:
            support = tuple(sorted((*reduced.support, other)))
            worth = gains[other] + _saved(fit, support, price)
            if SLACK * worth > reduced.value - fit.value and price.allows(support):
                target = _target(fit, price, support)
                new = problem.with_column(reduced, other, target)
                if _better(new, fit, price):
                    return new
    return None


def _saved(fit: Fit, support: tuple[int, ...], price: Price) -> float:
    """How much less another support costs; 0 where it costs no less."""
    return max(price.of(fit.support) - price.of(support), 0.0)


def _best(gains: np.ndarray, price: Price) -> list[int]:
    """The columns that gain most beyond their prices, of those that gain anything."""
    worth = gains - price.of_each(len(gains))
    order = np.argsort(-worth, kind="stable")[:CANDIDATES]
    return [int(c) for c in order if gains[c] > 0]


def _ranked(problem: Searchable, fit: Fit) -> list[tuple[int, float]]:
    if not fit.support:
        return []
    rise = problem.losses_of_dropping(fit)
    return [(fit.support[at], float(rise[at])) for at in np.argsort(rise, kind="stable")]
