"""Stages that propose the next atom, by a rule, by the dual constraints or by a weak learner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from laconic.boost.constraints import most_violated
from laconic.boost.correct_all import CorrectAll
from laconic.boost.costs import Costs
from laconic.boost.path import PathEntry
from laconic.boost.rules import Rule
from laconic.boost.stages import State
from laconic.pools.base import Choice, WeakLearner
from laconic.rows.rows import Rows


class Admissible:
    """Decides which atoms may come next.

    Parameters
    ----------
    excluded : ndarray of int
        Atoms that may never be chosen.
    costs : Costs, optional
        What models cost. Atoms are ranked by gain per cost, and must keep the caps. By default,
        each atom costs 1 and there are no caps.
    """

    def __init__(self, excluded: np.ndarray | None = None, costs: Costs | None = None) -> None:
        self.excluded = np.empty(0, dtype=np.int64) if excluded is None else excluded
        self.costs = costs or Costs()

    def barred(self, taken: Sequence[int], beside: Sequence[int]) -> np.ndarray:
        """Return the atoms that cannot come next.

        They are taken, excluded, or beyond a cap in a model of the atoms ``beside``. An atom that
        is not barred may still be beyond a cap; see `laconic.boost.costs.Costs.beyond`.
        """
        barred = [np.array(taken, dtype=np.int64), self.excluded, self.costs.beyond(beside)]
        return np.unique(np.concatenate(barred))


class ByRule:
    """Proposes the atom that a selection rule (`laconic.boost.rules`) chooses: ShareBoost's step 4.

    Parameters
    ----------
    rule : Rule
    model : CorrectAll
        The settling stage. Its model is the one at which the rows were last evaluated.
    admissible : Admissible

    Attributes
    ----------
    score : float
        The score of the atom that the rule chose last.
    """

    def __init__(self, rule: Rule, model: CorrectAll, admissible: Admissible) -> None:
        self.rule = rule
        self.model = model
        self.admissible = admissible
        self.score = -np.inf
        self._chosen: tuple[int, ...] = ()
        self._useless: list[int] = []

    def next(self, state: State) -> int | None:
        """Add the best atom that the chosen columns do not already span, and return it."""
        atom = self.add(state.entries)
        if atom is None:
            within = " within the caps" if self.admissible.costs.caps else ""
            state.status = f"no admissible atom is left that helps{within}"
        return atom

    def add(self, entries: list[PathEntry], *also_barred: int) -> int | None:
        """Add the best atom to those of the last entry, and return it, or None if there is none.

        The rows must have been evaluated at the last entry.
        """
        rows, chosen = self.model.rows, entries[-1].numbers
        if chosen[: len(self._chosen)] != self._chosen:
            self._useless = []
        self._chosen = chosen
        while (atom := self._choose(entries, *also_barred, *self._useless)) is not None:
            if self.admissible.costs.allows((*chosen, atom)):
                rows.append(atom)
                if not rows.adds_nothing(atom):
                    return atom
                rows.reset(chosen)
            # Finding out costs a pass over the pool, but only once in a growing path, because the
            # atom stays dependent, or beyond a cap.
            self._useless.append(atom)
        return None

    def _choose(self, entries: list[PathEntry], *also_barred: int) -> int | None:
        """Ask the rule for an atom. Return None if no atom helps.

        This also completes the last entry's certificate.
        """
        entry, rows = entries[-1], self.model.rows
        costs = self.admissible.costs.ranked(entry.numbers)
        barred = self.admissible.barred([*entry.numbers, *also_barred], entry.numbers)
        choice = self.rule.choose(rows, self.model.weights, barred, costs)
        self._check(choice, barred)
        entries[-1] = replace(entry, steepest=max(choice.steepest, self.model.intercept_norm))
        rounding = 8.0 * np.finfo(rows.dtype).eps
        self.score = choice.score
        return None if choice.index < 0 or not choice.score > rounding else choice.index

    def _check(self, choice: Any, barred: np.ndarray) -> None:
        """Refuse an invalid answer of a rule, with which the loop might never end."""
        name = type(self.rule).__name__
        if not isinstance(choice, Choice):
            raise TypeError(f"{name}.choose must return a laconic.pools.Choice, not {choice!r}.")
        if choice.index >= self.model.rows.pool.n_atoms or choice.index in barred:
            raise ValueError(
                f"{name}.choose chose atom {choice.index}, which does not exist or is forbidden. "
                "It must return an atom of the pool that is not in the argument forbidden."
            )

    def certify(self, state: State) -> None:
        """Add the steepest gradient to the last entry."""
        if np.isnan(state.entries[-1].steepest):
            state.entries[-1] = self.certified(state.entries[-1])

    def certified(self, entry: PathEntry) -> PathEntry:
        """Return ``entry`` with its steepest gradient.

        The rows must have been evaluated at this entry.
        """
        choice = self.model.rows.best(np.array(entry.numbers, dtype=np.int64), None, None)
        return replace(entry, steepest=max(choice.steepest, self.model.intercept_norm))


class Violated:
    """Proposes the atom that violates its dual constraint (4) most: lines 3, 4, 7 of TotalQBoost.

    Parameters
    ----------
    rows : Rows
    l1 : float
    tol : float
        ε of (8). A constraint that is violated by at most this much counts as satisfied.
    admissible : Admissible
    always : sequence of int, optional
        The atoms that are always in, if a search may drop all others. A new atom must then keep the
        caps beside these. None means that no atom is ever dropped. A new atom must then keep the
        caps beside all atoms of H.
    """

    def __init__(
        self,
        rows: Rows,
        l1: float,
        tol: float,
        admissible: Admissible,
        always: Sequence[int] | None = (),
    ) -> None:
        self.rows = rows
        self.l1 = l1
        self.tol = tol
        self.admissible = admissible
        self.always = always
        self._repeats: list[int] = []
        self._beyond: list[int] = []

    def next(self, state: State) -> int | None:
        """Add the atom outside H that violates its constraint most, and return it.

        An atom that only repeats an atom of H is passed over, and so is an atom beyond a cap. If
        the search did not keep the atom of the last round, the next one should fit into the model
        as it is. Otherwise H would fill with atoms for which the model has no room.
        """
        if self._declined(state):
            atom = self._take(state, state.entries[-1].numbers, [])
            if atom is not None:
                return atom
        return self._take(state, self._beside(), self._beyond)

    def certify(self, state: State) -> None:
        """Add the steepest gradient over the whole pool to the last entry."""
        if np.isnan(state.entries[-1].steepest):
            self._ask(state, self.l1, self._beside(), self._beyond)

    def _take(self, state: State, beside: Sequence[int], beyond: list[int]) -> int | None:
        """Add the most violated atom that keeps the caps in a model of the atoms ``beside``.

        ``beyond`` lists atoms that do not keep them. Those that are found are added to it.
        """
        while True:
            choice = self._ask(state, self.l1 + self.tol, beside, beyond)
            if choice.index < 0:
                state.status = "the pool has no other atom"
                return None
            if not choice.score > 0:
                state.status = "no other atom violates its dual constraint by more than tol"
                return None
            if not self.admissible.costs.allows((*beside, choice.index)):
                beyond.append(choice.index)
                continue
            self.rows.append(choice.index)
            if not self.rows.repeats(choice.index):
                return choice.index
            self.rows.reset(self.rows.atoms[:-1])
            self._repeats.append(choice.index)

    def _ask(self, state: State, limit: float, beside: Sequence[int], beyond: list[int]) -> Choice:
        """Return the most violated constraint. This completes the last entry's certificate."""
        entry = state.entries[-1]
        barred = self.admissible.barred([*self.rows.atoms, *self._repeats, *beyond], beside)
        costs = self.admissible.costs.ranked(entry.numbers)
        choice = most_violated(self.rows, barred, limit, costs)
        state.entries[-1] = replace(entry, steepest=choice.steepest)
        return choice

    def _beside(self) -> Sequence[int]:
        """Return the atoms beside which every new atom must keep the caps."""
        return self.rows.atoms if self.always is None else self.always

    def _declined(self, state: State) -> bool:
        """Return whether there are caps, and a search has not kept the newest atom of H."""
        if self.always is None or not self.admissible.costs.caps:
            return False
        newest = self.rows.atoms[len(self.always) :][-1:]
        return not set(newest).issubset(state.entries[-1].numbers)


class Asked:
    """Proposes the hypothesis that a weak learner fits to the present weights of the rows.

    The learner is fitted once per round. The gradients of the hypotheses that it did not find are
    not known, so the steepest gradient is set to infinity.
    """

    def __init__(self, rows: Rows, l1: float, tol: float) -> None:
        self.rows = rows
        self.limit = l1 + tol

    def next(self, state: State) -> int | None:
        """Fit the learner. Add its hypothesis to the pool if it is new and violates (4)."""
        self.certify(state)
        learner = self.rows.pool
        assert isinstance(learner, WeakLearner)
        offer = learner.fitted(self.rows.residual_of_all_rows())
        if offer is None:
            state.status = "the classifier offers nothing new"
            return None
        if not offer.score - self.limit > 0:
            state.status = "no other atom violates its dual constraint by more than tol"
            return None
        atom = learner.join(offer)
        self.rows.append(atom)
        if self.rows.repeats(atom):  # a constant next to an intercept
            self.rows.reset(self.rows.atoms[:-1])
            state.status = "the classifier offers nothing new"
            return None
        return atom

    def certify(self, state: State) -> None:
        """Set the steepest gradient of the last entry to infinity, because it is not known."""
        state.entries[-1] = replace(state.entries[-1], steepest=np.inf)
