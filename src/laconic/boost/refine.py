"""Refinement: swap moves that replace a chosen atom by a better one while the objective falls.

Beyond the paper. A second sweep over a finished path: the model of size n starts from the better
of the path's own entry and the refined model of size n − 1 with one atom added, then swaps until
no swap helps. So at every size its objective is never above the path's own; entries need not nest.
"""

from __future__ import annotations

import numpy as np

from laconic.boost.loop import Loop, State, weights_of
from laconic.boost.path import PathEntry

# A swap counts when it lowers the objective by more than this part of it: above what the
# corrector's tolerance lets two solves of one model differ by.
WORTH = 1e-4


def refine(loop: Loop, state: State) -> None:
    """Fill ``state.refined`` size by size, from wherever it stands."""
    if not state.refined:
        state.refined.append(state.entries[0])
    while len(state.refined) < len(state.entries):
        plain = state.entries[len(state.refined)]
        entry = _swapped(loop, _better(plain, _grown(loop, state.refined)))
        state.refined.append(entry)
        if loop.told(state):
            return
    loop.restore(state.refined[-1])
    loop.choose(state.refined)  # finds the last entry's steepest gradient


def _better(old: PathEntry, new: PathEntry | None, worth: float = 0.0) -> PathEntry:
    """``new`` if it lowers the objective by more than the part ``worth``, and the loss too."""
    if new is None or new.loss > old.loss or new.objective >= old.objective * (1.0 - worth):
        return old
    return new


def _grown(loop: Loop, refined: list[PathEntry]) -> PathEntry | None:
    """The last refined model with one atom more."""
    loop.restore(refined[-1])
    atom = loop.choose(refined)
    if atom is None:
        return None
    before = refined[-1]
    loop.rows.append(atom)
    solution = loop.solve(weights_of(before, loop.rows.intercept))
    return loop.record(solution, (*before.gains, before.loss - solution.loss))


def _swapped(loop: Loop, entry: PathEntry) -> PathEntry:
    """Try to replace each atom in turn, the least useful first, until none can be."""
    fixed = set(loop.include)
    tried: set[tuple[int, ...]] = set()
    improved = True
    while improved:
        improved = False
        for number in _by_use(loop, entry):
            if number in fixed:
                continue
            rest = tuple(n for n in entry.numbers if n != number)
            if rest in tried:
                continue
            tried.add(rest)
            swapped = _better(entry, _replace(loop, entry, number), WORTH)
            if swapped is not entry:
                entry, improved = swapped, True
                break
    return entry


def _by_use(loop: Loop, entry: PathEntry) -> list[int]:
    """Atoms in order of how much the loss rises when their weights are set to zero."""
    loop.restore(entry)
    W = weights_of(entry, loop.rows.intercept)
    rise = []
    at = int(loop.rows.intercept)
    for number in entry.numbers:
        width = loop.rows.pool.width(number)
        without = W.copy()
        without[at : at + width] = 0.0
        rise.append(loop.rows.evaluate(without)[0])
        at += width
    return [entry.numbers[i] for i in np.argsort(rise, kind="stable")]


def _replace(loop: Loop, entry: PathEntry, number: int) -> PathEntry | None:
    """``entry`` with one atom taken out and the best other one put in."""
    place = entry.numbers.index(number)
    widths = [loop.rows.pool.width(n) for n in entry.numbers]
    first = int(loop.rows.intercept) + sum(widths[:place])
    W = weights_of(entry, loop.rows.intercept)
    W = np.delete(W, np.s_[first : first + widths[place]], axis=0)
    loop.rows.reset([n for n in entry.numbers if n != number])
    reduced = loop.solve(W)
    gains = list(entry.gains)
    gain = gains.pop(place)
    smaller = loop.record(reduced, tuple(gains))
    atom = loop.choose([smaller], also_barred=number)
    if atom is None:
        return None
    loop.rows.append(atom)
    solution = loop.solve(reduced.weights)
    return loop.record(solution, (*gains, gain + entry.loss - solution.loss))
