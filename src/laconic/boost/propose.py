"""Stages that propose the next atom, by a rule, by the dual constraints or by a weak learner."""

from __future__ import annotations

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
    costs : Costs or None
        Costs of the atoms. If given, atoms are ranked by gain per cost.
    max_cost : float
        Cap on the cost of the model.
    """

    def __init__(
        self,
        excluded: np.ndarray | None = None,
        costs: Costs | None = None,
        max_cost: float = np.inf,
    ) -> None:
        self.excluded = np.empty(0, dtype=np.int64) if excluded is None else excluded
        self.costs = costs
        self.max_cost = max_cost

    def given(self, chosen: tuple[int, ...]) -> np.ndarray | None:
        """Return the cost that each atom adds to a model of the atoms ``chosen``."""
        return None if self.costs is None else self.costs.given(chosen)

    def barred(self, taken: list[int], chosen: tuple[int, ...], spent: float) -> np.ndarray:
        """Return the atoms that cannot come next: taken, excluded or over the remaining budget."""
        barred = [np.array(taken, dtype=np.int64), self.excluded]
        costs = self.given(chosen)
        if costs is not None and np.isfinite(self.max_cost):
            left = (self.max_cost - spent) * (1.0 + 1e-12)
            barred.append(np.flatnonzero(costs > left))
        return np.unique(np.concatenate(barred))


class ByRule:
    """Proposes the atom that a selection rule (`laconic.boost.rules`) chooses: ShareBoost's step 4.

    Parameters
    ----------
    rule : Rule
    model : CorrectAll
        The settling stage. Its model is the one at which the rows were last evaluated.
    admissible : Admissible
    """

    def __init__(self, rule: Rule, model: CorrectAll, admissible: Admissible) -> None:
        self.rule = rule
        self.model = model
        self.admissible = admissible
        self._spanned: tuple[int, ...] = ()
        self._dependent: list[int] = []

    def next(self, state: State) -> int | None:
        """Add the best atom that the chosen columns do not already span, and return it."""
        atom = self.add(state.entries)
        if atom is None:
            capped = np.isfinite(self.admissible.max_cost)
            within = " within the cap on cost" if capped else ""
            state.status = f"no admissible atom is left that helps{within}"
        return atom

    def add(self, entries: list[PathEntry], *also_barred: int) -> int | None:
        """Add the best atom to those of the last entry, and return it, or None if there is none.

        The rows must have been evaluated at the last entry.
        """
        rows, columns = self.model.rows, entries[-1].numbers
        if columns[: len(self._spanned)] != self._spanned:
            self._dependent = []
        self._spanned = columns
        while (atom := self._choose(entries, *also_barred, *self._dependent)) is not None:
            rows.append(atom)
            if not rows.adds_nothing(atom):
                return atom
            rows.reset(columns)
            # Finding out costs a pass over the pool, but only once in a growing path, because the
            # atom stays dependent.
            self._dependent.append(atom)
        return None

    def _choose(self, entries: list[PathEntry], *also_barred: int) -> int | None:
        """Ask the rule for an atom. Return None if no atom helps.

        This also completes the last entry's certificate.
        """
        entry, rows = entries[-1], self.model.rows
        costs = self.admissible.given(entry.numbers)
        barred = self._barred(entry, also_barred)
        choice = self.rule.choose(rows, self.model.weights, barred, costs)
        self._check(choice, barred)
        entries[-1] = replace(entry, steepest=max(choice.steepest, self.model.intercept_norm))
        rounding = 8.0 * np.finfo(rows.dtype).eps
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
        choice = self.model.rows.best(self._barred(entry, ()), None, None)
        return replace(entry, steepest=max(choice.steepest, self.model.intercept_norm))

    def _barred(self, entry: PathEntry, also: tuple[int, ...]) -> np.ndarray:
        return self.admissible.barred([*entry.numbers, *also], entry.numbers, entry.cost)


class Violated:
    """Proposes the atom that violates its dual constraint (4) most: lines 3, 4, 7 of TotalQBoost.

    Parameters
    ----------
    rows : Rows
    l1 : float
    tol : float
        ε of (8). A constraint that is violated by at most this much counts as satisfied.
    admissible : Admissible
    spent : float, optional
        Cost of the atoms that are always in, if a search may drop all others. A new atom may then
        cost all the rest of the budget. None means that no atom is ever dropped. Then the cost of
        all atoms of the model counts.
    """

    def __init__(
        self,
        rows: Rows,
        l1: float,
        tol: float,
        admissible: Admissible,
        spent: float | None = 0.0,
    ) -> None:
        self.rows = rows
        self.l1 = l1
        self.tol = tol
        self.admissible = admissible
        self.spent = spent
        self._repeats: list[int] = []

    def next(self, state: State) -> int | None:
        """Add the atom outside H that violates its constraint most, and return it.

        An atom that only repeats an atom of H is passed over.
        """
        while True:
            choice = self._ask(state, self.l1 + self.tol)
            if choice.index < 0:
                state.status = "the pool has no other atom"
                return None
            if not choice.score > 0:
                state.status = "no other atom violates its dual constraint by more than tol"
                return None
            self.rows.append(choice.index)
            if not self.rows.repeats(choice.index):
                return choice.index
            self.rows.reset(self.rows.atoms[:-1])
            self._repeats.append(choice.index)

    def certify(self, state: State) -> None:
        """Add the steepest gradient over the whole pool to the last entry."""
        if np.isnan(state.entries[-1].steepest):
            self._ask(state, self.l1)

    def _ask(self, state: State, limit: float) -> Choice:
        """Return the most violated constraint. This completes the last entry's certificate."""
        entry = state.entries[-1]
        taken = [*self.rows.atoms, *self._repeats]
        spent = entry.cost if self.spent is None else self.spent
        barred = self.admissible.barred(taken, entry.numbers, spent)
        choice = most_violated(self.rows, barred, limit, self.admissible.given(entry.numbers))
        state.entries[-1] = replace(entry, steepest=choice.steepest)
        return choice


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
