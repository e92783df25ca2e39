"""The stage that moves the atom of a rule before it comes in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from laconic.boost.correct_all import CorrectAll
from laconic.boost.propose import Admissible, ByRule
from laconic.boost.rules import Rule
from laconic.boost.stages import State
from laconic.pools.base import Joinable, Offer
from laconic.rows.rows import Rows


class Mover(Protocol):
    """Finds a better atom near one of the list."""

    def moved(self, rows: Rows, chosen: Sequence[int], atom: int, score: float) -> Offer | None:
        """Return an atom of a higher score than that of ``atom``, or None if none was found.

        The rows were last evaluated at the model of the atoms ``chosen``.
        """


class ByRuleMoved(ByRule):
    """Proposes the atom that a selection rule chooses, moved to a higher score.

    The atom of the list comes in as it is if the move finds nothing better, if the moved atom would
    cost more or be beyond a cap, or if the chosen columns already span it.

    Parameters
    ----------
    rule : Rule
    model : CorrectAll
        The pool of its rows is `laconic.pools.base.Joinable`.
    admissible : Admissible
    mover : Mover
    """

    def __init__(self, rule: Rule, model: CorrectAll, admissible: Admissible, mover: Mover) -> None:
        super().__init__(rule, model, admissible)
        self.mover = mover

    def next(self, state: State) -> int | None:
        """Add the best atom that the chosen columns do not already span, moved if that is better.

        The other ways to add atoms, such as those of a refinement, take them as they are.
        """
        atom = super().next(state)
        if atom is None:
            return None
        chosen, rows = state.entries[-1].numbers, self.model.rows
        assert isinstance(rows.pool, Joinable)
        offer = self.mover.moved(rows, chosen, atom, self.score)
        if offer is None:
            return atom
        moved = rows.pool.join(offer)
        if self._costs_no_more((*chosen, moved), (*chosen, atom)):
            rows.reset([*chosen, moved])
            if not rows.adds_nothing(moved):
                return moved
            rows.reset([*chosen, atom])
        return atom

    def _costs_no_more(self, moved: Sequence[int], listed: Sequence[int]) -> bool:
        """Return whether a model with the moved atom costs no more, and keeps the caps."""
        costs = self.admissible.costs
        if costs.plain:
            return True
        return costs.total(moved) <= costs.total(listed) and costs.allows(moved)
