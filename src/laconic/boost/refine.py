"""Refinement: swap moves that replace a chosen atom by a better one while the objective falls.

Beyond the paper, after a path is grown. First upwards: the model of size n starts from the better
of the path's own entry and the refined model of size n − 1 with one atom added, then swaps until no
swap helps. Then down and up once more: each size also tries the next larger model less its
cheapest atom, and the next smaller one with an atom added. At every size the objective is never
above the path's own; entries need not nest.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from laconic.boost.loop import Loop, State, weights_of
from laconic.boost.path import PathEntry
from laconic.objective import Objective

# A swap counts when it lowers the objective by more than this part of it: above what the
# corrector's tolerance lets two solves of one model differ by.
WORTH = 1e-4
# Atoms tried in a row without success before a size is left: they come cheapest first, and the
# dearer an atom is to drop, the less likely another one makes up for it.
TRIES = 5
# Atoms tried in the place of one taken out: the steepest gradient is often not the best swap.
CANDIDATES = 2


def refine(loop: Loop, state: State) -> None:
    """Fill ``state.refined`` size by size, then sweep back and forth over it once."""
    if not state.refined:
        state.refined.append(state.entries[0])
    while len(state.refined) < len(state.entries):
        plain = state.entries[len(state.refined)]
        state.refined.append(_swapped(loop, _better(plain, _grown(loop, state.refined))))
        if loop.told(state):
            return
    last = len(state.refined) - 1
    down, up = range(last - 1, 0, -1), range(1, last + 1)
    moves = [(at, _shrunk, at + 1) for at in down] + [(at, _grown, at - 1) for at in up]
    for at, move, origin in moves[state.swept :]:
        better = _better(state.refined[at], move(loop, state.refined[: origin + 1]), WORTH)
        if better is not state.refined[at]:
            state.refined[at] = _swapped(loop, better)
        state.swept += 1
        if loop.told(state):
            return
    for at, entry in enumerate(state.refined):
        if np.isnan(entry.steepest):
            loop.restore(entry)
            state.refined[at] = loop.certified(entry)


def _better(old: PathEntry, new: PathEntry | None, worth: float = 0.0) -> PathEntry:
    """``new`` if it lowers the objective by more than the part ``worth``, and the loss too."""
    if new is None or new.loss > old.loss or new.objective >= old.objective * (1.0 - worth):
        return old
    return new


def _grown(loop: Loop, refined: list[PathEntry]) -> PathEntry | None:
    """The last refined model with one atom more."""
    loop.restore(refined[-1])
    return loop.extend(refined)


def _shrunk(loop: Loop, refined: list[PathEntry]) -> PathEntry | None:
    """The last refined model less the atom that is cheapest to drop."""
    entry = refined[-1]
    drops = _drops(loop, entry)
    if not drops:
        return None
    without, start = drops[0]
    gains = list(entry.gains)
    lost = gains.pop(entry.numbers.index(without))
    loop.rows.reset([n for n in entry.numbers if n != without])
    solution = loop.solve(start)
    share = (lost + entry.loss - solution.loss) / max(len(gains), 1)
    return loop.record(solution, tuple(g + share for g in gains))


def _swapped(loop: Loop, entry: PathEntry) -> PathEntry:
    """Try to replace atoms, the cheapest to drop first, until none of several can be."""
    tried: set[frozenset[int]] = set()
    improved = True
    while improved:
        improved = False
        for without, start in _drops(loop, entry):
            rest = frozenset(entry.numbers) - {without}
            if rest in tried:
                continue
            tried.add(rest)
            swapped = _better(entry, _replace(loop, entry, without, start), WORTH)
            if swapped is not entry:
                entry, improved = swapped, True
                break
    return entry


def _drops(loop: Loop, entry: PathEntry) -> list[tuple[int, np.ndarray]]:
    """The atoms cheapest to drop by the quadratic model, each with weights for the others."""
    loop.restore(entry)
    W = weights_of(entry, loop.rows.intercept)
    ends = np.cumsum([int(loop.rows.intercept), *map(loop.rows.pool.width, entry.numbers)])
    columns = [np.arange(first, last) for first, last in pairwise(ends)]
    drops = Objective(loop.rows, loop.penalty).dropping(W, columns)
    found = [
        (rise, number, np.delete(moved, J, axis=0))
        for number, J, (rise, moved) in zip(entry.numbers, columns, drops, strict=True)
    ]
    found.sort(key=lambda item: item[:2])
    fixed = set(loop.include)
    return [(number, start) for _, number, start in found if number not in fixed][:TRIES]


def _replace(loop: Loop, entry: PathEntry, without: int, start: np.ndarray) -> PathEntry | None:
    """``entry`` with one atom taken out and another put in: the first that helps, or the best."""
    place = entry.numbers.index(without)
    gains = list(entry.gains)
    gain = gains.pop(place)
    loop.rows.reset([n for n in entry.numbers if n != without])
    reduced = loop.solve(start)
    rest = loop.record(reduced, tuple(gains))
    best: PathEntry | None = None
    tried = [without]
    while len(tried) <= CANDIDATES:
        if best is not None:
            loop.restore(rest)
        if not loop.add([rest], *tried):
            break
        tried.append(loop.rows.atoms[-1])
        solution = loop.solve(reduced.weights)
        new = loop.record(solution, (*gains, gain + entry.loss - solution.loss))
        best = new if best is None else _better(best, new)
        if _better(entry, best, WORTH) is not entry:
            break
    return best
