"""Refinement: improve a grown path by the local search of `laconic.subset` over the whole pool.

This goes beyond the paper. A path entry is a fit, and its atoms outside the base terms are the
support. The table of `laconic.subset.at_every_size` starts from the path's own entries. Then it
goes up the sizes, down and up again. On the way up, each size tries the model of the size below
with one atom added. On the way down, it tries the model of the size above without its cheapest
atom. Then it swaps atoms until no swap helps. At every size, neither the objective nor the loss is
ever above that of the path. The refined entries need not be nested.
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
from laconic.subset.plain_moves import RefittedMoves

# Two solves of one model can differ because of the corrector's tolerance. A move must gain more
# than that. The rule that grows the path names one atom to add. Only the atoms that are cheapest to
# drop are tried: the more a drop costs, the less likely another atom makes up for it.
LIMITS = Tries(worth=1e-4, adds=1, drops=1, swaps=5)


def refine(loop: Loop, state: State) -> None:
    """Refine the path of ``state`` size by size, then sweep back and forth over it once.

    The loop must propose atoms by a rule and correct all of them.
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
        models.begin()
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
    """Return the stages of a loop, and refuse a loop whose path cannot be refined."""
    if not isinstance(loop.propose, ByRule) or not isinstance(loop.settle, CorrectAll):
        raise TypeError(
            "The path cannot be refined. It must be grown by a rule and keep all atoms."
        )
    return loop.propose, loop.settle


@dataclass(eq=False)
class Model:
    """A path entry as a fit."""

    entry: PathEntry
    support: tuple[int, ...]
    lent: float = 0.0
    """Amount that was added to each atom's gain when the last atom was dropped. An atom that takes
    its place gets these amounts back."""
    plain: bool = False
    """Whether this is the path's own entry. At first, any better model may replace it."""

    @property
    def value(self) -> float:
        """The objective."""
        return self.entry.objective


class RefinedSizes(SizeTable[Model]):
    """The best entry of every size."""

    def target(self, old: Model | None) -> float:
        """Return the value that the objective must be below."""
        return old.value if old is not None and old.plain else super().target(old)

    def better(self, new: Model, old: Model | None) -> bool:
        """Return whether the objective falls by enough and the loss does not rise."""
        return super().better(new, old) and (old is None or new.entry.loss <= old.entry.loss)

    def swap(self, size: int) -> None:
        """Swap atoms as long as each swap gains enough."""
        model = self.best[size]
        assert model is not None
        model.plain = False
        super().swap(size)


class AtomMoves(RefittedMoves[Model]):
    """Moves to the atoms that the loop's rule chooses, without listing the whole pool."""

    tries = 2  # the steepest gradient is often not the best swap

    def __init__(self, models: Models, model: Model, tried: set[tuple[int, ...]]) -> None:
        super().__init__(models, model, tried)
        self._models = models

    def ranked(self, fit: Model, *barred: int) -> Iterator[tuple[float, int]]:
        """Yield atoms in the order of the rule, with infinite gains, because it predicts none."""
        named = list(barred)
        while (atom := self._models.choose(fit, named)) is not None:
            yield np.inf, atom
            named.append(atom)


class Models:
    """The stages of a loop as a problem of subset search, for `AtomMoves`.

    The rows are evaluated at one model at a time. This class remembers that model, so that it
    evaluates the rows again only if they were moved.
    """

    def __init__(self, propose: ByRule, settle: CorrectAll) -> None:
        self.propose, self.settle = propose, settle
        self._fixed = frozenset(settle.include)
        self._standing: Model | None = None
        self._starts: dict[int, np.ndarray] = {}

    def begin(self) -> None:
        """Begin a step as a fit that goes on from a checkpoint does."""
        self.settle.rows.forget()
        self._standing = None

    def of(self, entry: PathEntry, lent: float = 0.0) -> Model:
        """Return an entry as a fit. Its support leaves out the atoms that are always in."""
        return Model(entry, tuple(sorted(set(entry.numbers) - self._fixed)), lent)

    def choose(self, model: Model, barred: list[int]) -> int | None:
        """Return the atom that the loop's rule adds. This completes the entry's certificate."""
        self._stand(model)
        self._standing = None
        entries = [model.entry]
        found = self.propose.add(entries, *barred)
        model.entry = entries[-1]
        return found

    def with_column(self, model: Model, atom: int, target: float = np.inf) -> Model:
        """Return the model with one more atom.

        The solve stops early if the objective can hardly fall to ``target``. The gain of the new
        atom is the decrease of the loss. If it replaces an atom that was dropped, it also takes
        over the gain of that atom.
        """
        entry, rows = model.entry, self.settle.rows
        rows.reset([*entry.numbers, atom])
        solution = self.settle.solve(weights_of(entry, rows.intercept), target)
        gains = [gain - model.lent for gain in entry.gains]
        own = entry.loss - solution.loss + len(gains) * model.lent
        self._standing = self.of(self.settle.record.entry(solution, (*gains, own)))
        return self._standing

    def without(self, model: Model, atom: int, target: float = np.inf) -> Model:
        """Return the model without one of the atoms that are cheapest to drop.

        The other atoms share its gain.
        """
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
        """Return the increase if an atom is dropped, for each atom of the support.

        The increase is that of the quadratic model. The model also gives new weights for the other
        atoms, and `without` starts from these.
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
