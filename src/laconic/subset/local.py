"""Local search: add, drop and swap moves until none of them helps, at every size.

Sweeps up and down the sizes. Upwards, each size starts from the best of the size below with one
column added; downwards, from the best of the size above with one dropped; then swaps. A sweep that
changes nothing is the last. What comes out is the best support found *of every size*, which
answers every price and every cap at once.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from laconic.subset.problem import Fit, SubsetProblem

# A move counts when it lowers the value by more than this part of it.
WORTH = 1e-7
# Columns tried for a place, best first by the step along them alone.
CANDIDATES = 3
# Columns tried to take out, cheapest first by the quadratic model.
DROPS = 8


def local_search(
    problem: SubsetProblem, max_atoms: int, starts: Iterable[Iterable[int]] = (), sweeps: int = 4
) -> list[Fit]:
    """The best fits found of sizes 0 to ``max_atoms`` (fewer where no column helps any more).

    Parameters
    ----------
    problem : SubsetProblem
    max_atoms : int
    starts : iterable of supports
        Supports to be at least as good as, such as the prefixes of a path.
    sweeps : int
        Most sweeps up and down.
    """
    best: list[Fit | None] = [None] * (max_atoms + 1)
    best[0] = problem.fit(())
    for support in starts:
        chosen = tuple(sorted(support))
        if len(chosen) <= max_atoms:
            _offer(best, problem.fit(chosen))
    for _ in range(sweeps):
        changed = False
        for size in range(1, max_atoms + 1):
            changed |= _visit(problem, best, size, _grown(problem, best[size - 1]))
        for size in range(max_atoms - 1, 0, -1):
            changed |= _visit(problem, best, size, _shrunk(problem, best[size + 1]))
        if not changed:
            break
    return [fit for fit in best if fit is not None]


def _offer(best: list[Fit | None], fit: Fit) -> bool:
    """Keep a fit if it is better than the best of its size."""
    size = len(fit.support)
    old = best[size]
    if old is not None and fit.value >= old.value * (1.0 - WORTH):
        return False
    best[size] = fit
    return True


def _visit(problem: SubsetProblem, best: list[Fit | None], size: int, new: Fit | None) -> bool:
    """Offer a fit to its size, and where that changed, swap."""
    if new is None or not _offer(best, new):
        return False
    best[size] = _swapped(problem, new)
    return True


def _grown(problem: SubsetProblem, fit: Fit | None) -> Fit | None:
    """The fit with the best of a few columns added."""
    if fit is None:
        return None
    tried = [problem.with_column(fit, c) for c in _candidates(problem, fit)]
    return min(tried, key=lambda f: f.value, default=None)


def _shrunk(problem: SubsetProblem, fit: Fit | None) -> Fit | None:
    """The fit with the best of a few columns dropped."""
    if fit is None:
        return None
    tried = [problem.without(fit, c) for c in _cheapest(problem, fit)]
    return min(tried, key=lambda f: f.value, default=None)


def _swapped(problem: SubsetProblem, fit: Fit) -> Fit:
    """Swap one column for another while that helps."""
    seen: set[tuple[int, ...]] = set()
    improved = True
    while improved:
        improved = False
        for column in _cheapest(problem, fit):
            rest = tuple(c for c in fit.support if c != column)
            if rest in seen:
                continue
            seen.add(rest)
            reduced = problem.without(fit, column)
            for other in _candidates(problem, reduced, column):
                new = problem.with_column(reduced, other)
                if new.value < fit.value * (1.0 - WORTH):
                    fit, improved = new, True
                    break
            if improved:
                break
    return fit


def _candidates(problem: SubsetProblem, fit: Fit, *barred: int) -> list[int]:
    gains = problem.gains(fit)
    gains[list(barred)] = -np.inf
    order = np.argsort(-gains, kind="stable")[:CANDIDATES]
    return [int(c) for c in order if gains[c] > 0]


def _cheapest(problem: SubsetProblem, fit: Fit) -> list[int]:
    if not fit.support:
        return []
    rise = problem.losses_of_dropping(fit)
    return [fit.support[at] for at in np.argsort(rise, kind="stable")[:DROPS]]
