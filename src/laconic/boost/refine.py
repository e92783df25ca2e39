"""Refinement: the local search of `laconic.subset`, over all atoms of the pool, for a grown path.

Beyond the paper. A path entry is a fit, and its atoms outside the base terms are the support. The
table of `laconic.subset.at_every_size` starts from the path's own entries. Then it goes up the
sizes, down and up again: each size tries its neighbour with an atom added, or less its cheapest
atom, and swaps atoms until no swap helps. At every size neither the objective nor the loss is ever
above the path's own; entries need not nest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from heapq import nsmallest
from itertools import pairwise

import numpy as np

from laconic.boost.correct_all import CorrectAll, Refinement
from laconic.boost.loop import Loop
from laconic.boost.path import PathEntry
from laconic.boost.propose import ByRule
from laconic.boost.record import weights_of
from laconic.boost.stages import State
from laconic.correct.objective import Objective
from laconic.subset.at_every_size import SizeTable, Tries
from laconic.subset.moves import PlainMoves

# A move must be worth more than what the corrector's tolerance lets two solves of one model differ
# by. The rule that grows the path names one atom to add; of the atoms to drop, the cheapest are
# tried: the dearer one is, the less likely another makes up for it.
LIMITS = Tries(worth=1e-4, adds=1, drops=1, swaps=5)


def refine(loop: Loop, state: State) -> None:
    """Refine ``state``'s path size by size, then sweep back and forth over it once.

    For a loop that proposes by a rule and corrects everything.
    """
    propose, settle = _stages(loop)
    so_far = Refinement.of(state)
    if not so_far.entries:
        so_far.entries.append(state.entries[0])
    models, tried = Models(propose, settle), set[tuple[int, ...]]()
    table = RefinedSizes(partial(AtomMoves, models, tried=tried), len(state.entries) - 1, LIMITS)
    for at, plain in enumerate(state.entries):
        known = at < len(so_far.entries)
        model = models.of(so_far.entries[at] if known else plain)
        model.plain = not known
        table.offer(model)
        if known:
            table.settle("swap", model)
    steps = [*table.up(), *table.down(), *table.up()]
    for step in steps[len(so_far.entries) - 1 + so_far.swept :]:
        step()
        table.forget()
        tried.clear()
        first_way = len(so_far.entries) < len(state.entries)
        best = table.fits()[: len(so_far.entries) + first_way]
        for model in best:
            model.lent = 0.0
        so_far.entries = [model.entry for model in best]
        so_far.swept += not first_way
        if loop.told(state):
            return
    for at, entry in enumerate(so_far.entries):
        if np.isnan(entry.steepest):
            settle.restore(entry)
            so_far.entries[at] = propose.certified(entry)


def _stages(loop: Loop) -> tuple[ByRule, CorrectAll]:
    """The stages of a loop that can be refined."""
    if not isinstance(loop.propose, ByRule) or not isinstance(loop.settle, CorrectAll):
        raise TypeError("only a path that is grown by a rule, and keeps all atoms, can be refined")
    return loop.propose, loop.settle


@dataclass(eq=False)
class Model:
    """A path entry as a fit."""

    entry: PathEntry
    support: tuple[int, ...]
    lent: float = 0.0
    """What each atom's gain is above what it was before the last one was dropped: an atom that
    takes its place gets it back."""
    plain: bool = False
    """Whether it is the path's own, which anything better may take the place of at first."""

    @property
    def value(self) -> float:
        """The objective."""
        return self.entry.objective


class RefinedSizes(SizeTable[Model]):
    """The best entry of every size."""

    def target(self, old: Model | None) -> float:
        """What the objective must be below."""
        return old.value if old is not None and old.plain else super().target(old)

    def better(self, new: Model, old: Model | None) -> bool:
        """Whether the objective falls by enough, and the loss does not rise."""
        return super().better(new, old) and (old is None or new.entry.loss <= old.entry.loss)

    def swap(self, size: int) -> None:
        """Swap atoms, each swap worth its while."""
        model = self.best[size]
        assert model is not None
        model.plain = False
        super().swap(size)


class AtomMoves(PlainMoves):
    """Moves to the atoms that the loop's rule chooses, from a pool that is never written down."""

    tries = 2  # the steepest gradient is often not the best swap

    def ranked(self, fit: Model, *barred: int) -> Iterator[tuple[float, int]]:
        """Atoms in the order of the rule, which does not say what they gain."""
        named = list(barred)
        while (atom := self.problem.choose(fit, named)) is not None:
            yield np.inf, atom
            named.append(atom)


class Models:
    """The stages of a loop as a problem of subset search, for `AtomMoves`.

    The rows stand at one model at a time; the last one is remembered, so that they are put
    back only where they were moved.
    """

    def __init__(self, propose: ByRule, settle: CorrectAll) -> None:
        self.propose, self.settle = propose, settle
        self._fixed = frozenset(settle.include)
        self._standing: Model | None = None
        self._starts: dict[int, np.ndarray] = {}

    def of(self, entry: PathEntry, lent: float = 0.0) -> Model:
        """An entry as a fit: atoms that are always in are not for the search."""
        return Model(entry, tuple(sorted(set(entry.numbers) - self._fixed)), lent)

    def choose(self, model: Model, barred: list[int]) -> int | None:
        """The atom to add by the loop's rule; completes the entry's certificate."""
        self._stand(model)
        self._standing = None
        entries = [model.entry]
        found = self.propose.add(entries, *barred)
        model.entry = entries[-1]
        return found

    def with_column(self, model: Model, atom: int, target: float = np.inf) -> Model:
        """The model with one more atom; not to the end where it cannot reach ``target``.

        Its gain is what the loss falls by; in the place of one that was dropped, it takes over
        the gain of that one.
        """
        entry, rows = model.entry, self.settle.rows
        rows.reset([*entry.numbers, atom])
        solution = self.settle.solve(weights_of(entry, rows.intercept), target)
        gains = [gain - model.lent for gain in entry.gains]
        own = entry.loss - solution.loss + len(gains) * model.lent
        self._standing = self.of(self.settle.record.entry(solution, (*gains, own)))
        return self._standing

    def without(self, model: Model, atom: int) -> Model:
        """The model less one of the atoms cheapest to drop; the others share what it gained."""
        entry = model.entry
        gains = list(entry.gains)
        lost = gains.pop(entry.numbers.index(atom))
        self.settle.rows.reset([n for n in entry.numbers if n != atom])
        solution = self.settle.solve(self._starts[atom])
        lent = (lost + entry.loss - solution.loss) / max(len(gains), 1)
        new = self.settle.record.entry(solution, tuple(gain + lent for gain in gains))
        self._standing = self.of(new, lent)
        return self._standing

    def losses_of_dropping(self, model: Model) -> np.ndarray:
        """Increase when each atom of the support is dropped, by the quadratic model.

        It also says where the others go: `without` starts there.
        """
        self._stand(model)
        entry, rows = model.entry, self.settle.rows
        ends = rows.ends(entry.numbers)
        columns = dict(zip(entry.numbers, (np.arange(*two) for two in pairwise(ends)), strict=True))
        own = [columns[atom] for atom in model.support]
        drops = Objective(rows, self.settle.penalty).dropping(
            weights_of(entry, rows.intercept), own
        )
        rises = np.empty(len(own))

        def each() -> Iterator[tuple[float, int, np.ndarray]]:
            for at, (rise, moved) in enumerate(drops):
                rises[at] = rise
                yield rise, at, moved

        cheapest = nsmallest(LIMITS.swaps, each(), key=lambda item: item[:2])
        self._starts = {
            model.support[at]: np.delete(moved, own[at], axis=0) for _, at, moved in cheapest
        }
        return rises

    def _stand(self, model: Model) -> None:
        if self._standing is not model:
            self.settle.restore(model.entry)
            self._standing = model
