"""Local search at every size: add, drop and swap columns until no move helps.

The search sweeps up and down the sizes. On the way up, each size starts from the best support of
the size below with one column added. On the way down, it starts from the best support of the size
above with one column dropped. Then it tries swaps. The search ends after a sweep that changes
nothing. The result is the best support found *of every size*, which answers every price and every
cap at once. The problem ranks its moves, if it can by a quadratic model (`laconic.subset.moves`).
Their true values decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, NamedTuple

import numpy as np

from laconic.numeric.threads import Threads
from laconic.subset.contract import F, Fit, Move, MovesFrom, Searchable
from laconic.subset.solver import SMALL


class Tries(NamedTuple):
    """The smallest gain that counts, and how many moves of each kind to try from a fit."""

    worth: float = 1e-7
    """A move must lower the value by more than this part of it."""
    adds: int = 5
    drops: int = 3
    swaps: int = 8


LIMITS = Tries()
# Small models, of at most `OPENING_SIZE` columns, are grown from up to `OPENINGS` different first
# columns.
OPENING_SIZE, OPENINGS = 4, 10


def local_search(
    problem: Searchable[Fit],
    max_atoms: int,
    starts: Iterable[Iterable[int]] = (),
    sweeps: int = 4,
    tries: int = 5,
    restarts: int = 0,
    seed: int = 0,
    n_jobs: int | None = None,
) -> list[Fit]:
    """Return the best fits found of sizes 0 to ``max_atoms``.

    There are fewer fits if no column helps any more.

    Parameters
    ----------
    problem : Searchable
    max_atoms : int
        Largest size.
    starts : iterable of supports
        Supports to start from, such as the prefixes of a path. The fit of each size is at least as
        good as the starts of that size.
    sweeps : int
        Largest number of sweeps up and down.
    tries : int
        Number of columns to try when one is added, best first by the model. Half as many columns
        are tried for drops, and one and a half times as many moves for swaps. One sweep with 3
        tries takes less than half the time, and its result is hardly worse.
    restarts : int
        Number of additional searches. On its first way up, such a search adds one of the best
        columns at random, while the first search tries them all and keeps the best. The best fits
        of all searches are swept again at the end.
    seed : int
        Seed of the additional searches.
    n_jobs : int, optional
        Number of threads for the searches. None means all cores. The result does not depend on it.
    """
    given = [problem.fit(()), *(problem.fit(tuple(sorted(set(s)))) for s in starts)]
    limits = Tries(adds=tries, drops=-(-tries // 2), swaps=-(-3 * tries // 2))
    table: SizeTable[Fit] = SizeTable(problem.moves, max_atoms, limits)
    table.offer(*given, *_openings(problem, given[0], min(max_atoms, OPENING_SIZE), limits))
    if restarts <= 0:
        table.sweep(sweeps)
        return table.fits()

    def run(rng: np.random.Generator | None) -> list[Fit]:
        one: SizeTable[Fit] = SizeTable(problem.moves, max_atoms, limits, rng)
        one.offer(*(given if rng is None else given[:1]))
        one.sweep(sweeps)
        return one.fits()

    seeds = np.random.SeedSequence(seed).spawn(restarts)
    with Threads(n_jobs) as threads:
        for fits in threads.map(run, [None, *map(np.random.default_rng, seeds)]):
            table.offer(*fits)
    table.sweep(sweeps)
    return table.fits()


def _openings(problem: Searchable[Fit], empty: Fit, largest: int, limits: Tries) -> list[Fit]:
    """Return small models that are grown from different first columns.

    The best two or three columns need not include the best single column. Adds, drops and swaps
    from that column alone may not lead to them.
    """
    found: list[Fit] = []
    for first in problem.openings(empty, OPENINGS):
        table: SizeTable[Fit] = SizeTable(problem.moves, largest, limits)
        table.offer(empty, problem.fit((first,)))
        for size in range(2, largest + 1):
            table.grow(size)
        found += table.fits()
    return found


class SizeTable(Generic[F]):
    """The best fit of every size, and the steps that improve them.

    Parameters
    ----------
    moves : callable
        Returns the moves from a fit.
    largest : int
        Largest size.
    limits : Tries
    rng : Generator, optional
        If given, the first way up adds one of the best columns at random.
    """

    def __init__(
        self,
        moves: Callable[[F], MovesFrom[F]],
        largest: int,
        limits: Tries = LIMITS,
        rng: np.random.Generator | None = None,
    ) -> None:
        self.limits = limits
        self.best: list[F | None] = [None] * (largest + 1)
        self._make_moves = moves
        self._rng = rng
        self._changes = 0
        self._tried: set[tuple[str, tuple[int, ...]]] = set()
        self._moves: dict[int, MovesFrom[F]] = {}

    def fits(self) -> list[F]:
        """Return the best fits, by size."""
        return [fit for fit in self.best if fit is not None]

    def offer(self, *fits: F) -> bool:
        """Keep fits that are better than the best of their size. Return whether there was one."""
        changed = False
        for fit in fits:
            size = len(fit.support)
            if size < len(self.best) and self.better(fit, self.best[size]):
                self.best[size] = fit
                self._changes += 1
                changed = True
        return changed

    def better(self, new: F, old: F | None) -> bool:
        """Return whether a fit should replace another fit of its size."""
        return new.value < self.target(old)

    def target(self, old: F | None) -> float:
        """Return the limit that a value must be below to count as better than the fit ``old``."""
        return float("inf") if old is None else old.value - self._worth(old.value)

    def up(self) -> list[Callable[[], None]]:
        """Return the steps that grow every size from the size below."""
        return [partial(self.grow, size) for size in range(1, len(self.best))]

    def down(self) -> list[Callable[[], None]]:
        """Return the steps that shrink every size from the size above."""
        return [partial(self.shrink, size) for size in range(len(self.best) - 2, 0, -1)]

    def sweep(self, sweeps: int) -> None:
        """Go up and down the sizes until nothing changes."""
        for _ in range(sweeps):
            before = self._changes
            for step in self.up():
                step()
            self._rng = None
            for step in self.down():
                step()
            if self._changes == before:
                break

    def grow(self, size: int) -> None:
        """Try the best fit of the size below with one more column, then swap."""
        below = self.best[size - 1]
        if below is not None and self._untried("add", below):
            least = self._worth(below.value)
            adds = [m for m in self._at(below).adds(self.limits.adds) if -m.change > least]
            if self._rng is not None and adds:
                adds = [adds[self._rng.integers(len(adds))]]
            else:
                self.settle("add", below)
            self._try(size, adds, below)
        self.swap(size)

    def shrink(self, size: int) -> None:
        """Try the best fit of the size above with one column less, then swap."""
        above = self.best[size + 1]
        if above is not None and self._untried("drop", above):
            self.settle("drop", above)
            self._try(size, self._at(above).drops(self.limits.drops), above)
        self.swap(size)

    def swap(self, size: int) -> None:
        """Swap columns of the best fit of a size until no swap helps."""
        fit = self.best[size]
        while fit is not None and self._untried("swap", fit):
            if not self._try(size, self._at(fit).swaps(self.limits.swaps), fit, first=True):
                self.settle("swap", fit)
            fit = self.best[size]

    def settle(self, kind: str, fit: F) -> None:
        """Mark the moves of a kind ("add", "drop" or "swap") from a fit as tried.

        They did not help, or their fits were offered. Trying them again would give the same.
        """
        self._tried.add((kind, fit.support))

    def forget(self) -> None:
        """Forget the moves that were kept to save work."""
        self._moves.clear()

    def _untried(self, kind: str, fit: F) -> bool:
        return (kind, fit.support) not in self._tried

    def _try(self, size: int, moves: Iterable[Move], fit: F, first: bool = False) -> bool:
        """Make moves and keep the best fit, or with ``first`` the first better one.

        Return whether there was a better fit.
        """
        changed = False
        for move in moves:
            changed |= self.offer(self._at(fit).make(move, self.target(self.best[size])))
            if changed and first:
                break
        return changed

    def _at(self, fit: F) -> MovesFrom[F]:
        """Return the moves from a fit. The moves from the last fit of each size are kept."""
        size = len(fit.support)
        known = self._moves.get(size)
        if known is None or known.fit is not fit:
            known = self._moves[size] = self._make_moves(fit)
        return known

    def _worth(self, value: float) -> float:
        """Return the smallest decrease of a value that counts."""
        return self.limits.worth * max(value, SMALL)
