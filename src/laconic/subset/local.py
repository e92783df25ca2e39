"""Local search: add, drop and swap moves until none of them helps, at every size.

Sweeps up and down the sizes. Upwards, each size starts from the best of the size below with one
column added; downwards, from the best of the size above with one dropped; then swaps. A sweep that
changes nothing is the last. What comes out is the best support found *of every size*, which
answers every price and every cap at once. Moves are ranked by the quadratic model
(`laconic.subset.moves`) and decided by their true value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from laconic.subset.moves import Move, Moves, PlainMoves, moves_from
from laconic.subset.problem import Fit
from laconic.threads import Threads

# A move counts when it lowers the value by more than this part of it; a value of less than SMALL
# counts as that, since the loss of separable data has no least value to come near.
WORTH, SMALL = 1e-7, 1e-3


def local_search(
    problem: Any,
    max_atoms: int,
    starts: Iterable[Iterable[int]] = (),
    sweeps: int = 4,
    tries: int = 5,
    restarts: int = 0,
    seed: int = 0,
    n_jobs: int | None = None,
) -> list[Fit]:
    """The best fits found of sizes 0 to ``max_atoms`` (fewer where no column helps any more).

    Parameters
    ----------
    problem : SubsetProblem, or what `laconic.subset.moves.PlainMoves` asks for
    max_atoms : int
    starts : iterable of supports
        Supports to be at least as good as, such as the prefixes of a path.
    sweeps : int
        Most sweeps up and down.
    tries : int
        Columns that are tried in every place to add one, best first by the model; half as many
        are tried to drop, and half as many again swaps. One sweep of 3 tries takes less than half
        the time, and is hardly worse.
    restarts : int
        More searches, whose first sweep takes one of the best columns at random where the first
        search takes the best. The best fits of all of them are swept once more.
    seed : int
        Seed of the restarts.
    n_jobs : int, optional
        Threads to run the searches on; every core if not given. The answer does not depend on it.
    """
    given = [problem.fit(()), *(problem.fit(tuple(sorted(set(s)))) for s in starts)]
    table = _Table(problem, max_atoms, tries)
    table.offer(*given)
    if restarts <= 0:
        table.sweep(sweeps)
        return table.fits()

    def run(rng: np.random.Generator | None) -> list[Fit]:
        one = _Table(problem, max_atoms, tries, rng)
        one.offer(*(given if rng is None else given[:1]))
        one.sweep(sweeps)
        return one.fits()

    seeds = np.random.SeedSequence(seed).spawn(restarts)
    with Threads(n_jobs) as threads:
        for fits in threads.map(run, [None, *map(np.random.default_rng, seeds)]):
            table.offer(*fits)
    table.sweep(sweeps)
    return table.fits()


class _Table:
    """The best fit of every size."""

    def __init__(
        self, problem: Any, max_atoms: int, tries: int, rng: np.random.Generator | None = None
    ) -> None:
        self.problem = problem
        self._adds, self._drops, self._swaps = tries, -(-tries // 2), -(-3 * tries // 2)
        self.best: list[Fit | None] = [None] * (max_atoms + 1)
        self._rng = rng
        self._changes = 0
        self._settled: set[tuple[int, ...]] = set()
        self._moves: dict[int, Moves | PlainMoves] = {}

    def fits(self) -> list[Fit]:
        """The best fits, by size."""
        return [fit for fit in self.best if fit is not None]

    def offer(self, *fits: Fit) -> bool:
        """Keep fits that are better than the best of their size; say whether one is."""
        changed = False
        for fit in fits:
            size = len(fit.support)
            if size < len(self.best) and fit.value < self._target(size):
                self.best[size] = fit
                self._changes += 1
                changed = True
        return changed

    def sweep(self, sweeps: int) -> None:
        """Go up and down the sizes until nothing changes."""
        for _ in range(sweeps):
            before = self._changes
            for size in range(1, len(self.best)):
                self.grow(size)
            self._rng = None
            for size in range(len(self.best) - 2, 0, -1):
                self.shrink(size)
            if self._changes == before:
                break

    def grow(self, size: int) -> None:
        """Try the best of the size below with one column more; then swap."""
        below = self.best[size - 1]
        if below is not None:
            adds = [m for m in self._at(below).adds(self._adds) if -m.change > _worth(below.value)]
            if self._rng is not None and adds:
                adds = [adds[self._rng.integers(len(adds))]]
            self._try(size, adds, below)
        self._swap(size)

    def shrink(self, size: int) -> None:
        """Try the best of the size above with one column less; then swap."""
        above = self.best[size + 1]
        if above is not None:
            self._try(size, self._at(above).drops(self._drops), above)
        self._swap(size)

    def _swap(self, size: int) -> None:
        fit = self.best[size]
        while fit is not None and fit.support not in self._settled:
            if not self._try(size, self._at(fit).swaps(self._swaps), fit, first=True):
                self._settled.add(fit.support)
            fit = self.best[size]

    def _try(self, size: int, moves: list[Move], fit: Fit, first: bool = False) -> bool:
        """Make moves and keep the best, or the first that is better; say whether one was."""
        changed = False
        for move in moves:
            changed |= self.offer(self._at(fit).make(move, self._target(size)))
            if changed and first:
                break
        return changed

    def _at(self, fit: Fit) -> Moves | PlainMoves:
        """The moves from a fit; those from the last one of a size are kept."""
        size = len(fit.support)
        known = self._moves.get(size)
        if known is None or known.fit is not fit:
            known = self._moves[size] = moves_from(self.problem, fit)
        return known

    def _target(self, size: int) -> float:
        old = self.best[size]
        return float("inf") if old is None else old.value - _worth(old.value)


def _worth(value: float) -> float:
    """The least decrease of a value that counts."""
    return WORTH * max(value, SMALL)
