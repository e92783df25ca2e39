"""Stages that propose the next atom: by a rule, by the dual constraints, or by asking a learner."""

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
    """Which atoms may come next.

    Parameters
    ----------
    excluded : ndarray of int
        Atoms that may never be chosen.
    costs : Costs or None
        What atoms cost; they are then ranked by gain per cost.
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
        """What each atom adds to the cost of a model of the atoms ``chosen``."""
        return None if self.costs is None else self.costs.given(chosen)

    def barred(self, taken: list[int], chosen: tuple[int, ...], spent: float) -> np.ndarray:
        """Atoms that cannot come next: taken, excluded, or too dear for what is left."""
        barred = [np.array(taken, dtype=np.int64), self.excluded]
        costs = self.given(chosen)
        if costs is not None and np.isfinite(self.max_cost):
            left = (self.max_cost - spent) * (1.0 + 1e-12)
            barred.append(np.flatnonzero(costs > left))
        return np.unique(np.concatenate(barred))


class ByRule:
    """The atom that a selection rule chooses (`laconic.boost.rules`), step 4 of ShareBoost.

    Parameters
    ----------
    rule : Rule
    model : CorrectAll
        The stage whose model the rows stand at.
    admissible : Admissible
    """

    def __init__(self, rule: Rule, model: CorrectAll, admissible: Admissible) -> None:
        self.rule = rule
        self.model = model
        self.admissible = admissible
        self._spanned: tuple[int, ...] = ()
        self._dependent: list[int] = []

    def next(self, state: State) -> int | None:
        """Let the best atom in that is not a combination of the columns already in."""
        atom = self.add(state.entries)
        if atom is None:
            capped = np.isfinite(self.admissible.max_cost)
            within = " within the cap on cost" if capped else ""
            state.status = f"no admissible atom is left that helps{within}"
        return atom

    def add(self, entries: list[PathEntry], *also_barred: int) -> int | None:
        """Let in the best atom beside the last entry's, which the rows must stand at."""
        rows, columns = self.model.rows, entries[-1].numbers
        if columns[: len(self._spanned)] != self._spanned:
            self._dependent = []
        self._spanned = columns
        while (atom := self._choose(entries, *also_barred, *self._dependent)) is not None:
            rows.append(atom)
            if not rows.adds_nothing(atom):
                return atom
            rows.reset(columns)
            # Costs a pass over the pool, but only once in a growing path: it stays dependent.
            self._dependent.append(atom)
        return None

    def _choose(self, entries: list[PathEntry], *also_barred: int) -> int | None:
        """Ask the rule; completes the last entry's certificate. ``None`` if nothing helps."""
        entry, rows = entries[-1], self.model.rows
        costs = self.admissible.given(entry.numbers)
        barred = self._barred(entry, also_barred)
        choice = self.rule.choose(rows, self.model.weights, barred, costs)
        self._check(choice, barred)
        entries[-1] = replace(entry, steepest=max(choice.steepest, self.model.intercept_norm))
        rounding = 8.0 * np.finfo(rows.dtype).eps
        return None if choice.index < 0 or not choice.score > rounding else choice.index

    def _check(self, choice: Any, barred: np.ndarray) -> None:
        """Refuse what a rule may not answer: the loop would never end."""
        name = type(self.rule).__name__
        if not isinstance(choice, Choice):
            raise TypeError(f"{name}.choose must return a laconic.pools.Choice, not {choice!r}")
        if choice.index >= self.model.rows.pool.n_atoms or choice.index in barred:
            raise ValueError(
                f"{name} chose atom {choice.index}, which is not there or must not be chosen"
            )

    def certify(self, state: State) -> None:
        """Complete the last entry with its steepest gradient."""
        if np.isnan(state.entries[-1].steepest):
            state.entries[-1] = self.certified(state.entries[-1])

    def certified(self, entry: PathEntry) -> PathEntry:
        """``entry``, which the rows must stand at, with its steepest gradient."""
        choice = self.model.rows.best(self._barred(entry, ()), None, None)
        return replace(entry, steepest=max(choice.steepest, self.model.intercept_norm))

    def _barred(self, entry: PathEntry, also: tuple[int, ...]) -> np.ndarray:
        return self.admissible.barred([*entry.numbers, *also], entry.numbers, entry.cost)


class Violated:
    """The atom whose dual constraint (4) is violated most: lines 3, 4 and 7 of TotalQBoost.

    Parameters
    ----------
    rows : Rows
    l1 : float
    tol : float
        ε of (8): a constraint that is violated by no more than this counts as held.
    admissible : Admissible
    spent : float, optional
        What the atoms that are always in cost, where all others may be dropped again: one of them
        may then cost all that is left. Without it no atom is dropped, and all count.
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
        """The atom outside H that violates its constraint most and is in H in no other form."""
        while True:
            choice = self._ask(state, self.l1 + self.tol)
            if choice.index < 0:
                state.status = "the pool has no other atom"
                return None
            if not choice.score > 0:
                state.status = "no atom outside violates its dual constraint by more than tol"
                return None
            self.rows.append(choice.index)
            if not self.rows.repeats(choice.index):
                return choice.index
            self.rows.reset(self.rows.atoms[:-1])
            self._repeats.append(choice.index)

    def certify(self, state: State) -> None:
        """Complete the last entry with its steepest gradient over the whole pool."""
        if np.isnan(state.entries[-1].steepest):
            self._ask(state, self.l1)

    def _ask(self, state: State, limit: float) -> Choice:
        """The most violated constraint; completes the last entry's certificate."""
        entry = state.entries[-1]
        taken = [*self.rows.atoms, *self._repeats]
        spent = entry.cost if self.spent is None else self.spent
        barred = self.admissible.barred(taken, entry.numbers, spent)
        choice = most_violated(self.rows, barred, limit, self.admissible.given(entry.numbers))
        state.entries[-1] = replace(entry, steepest=choice.steepest)
        return choice


class Asked:
    """The hypothesis that a weak learner fits to the present weights of the rows.

    It is fitted once a round. What the hypotheses that it did not find would have is not known, so
    the steepest gradient is infinity.
    """

    def __init__(self, rows: Rows, l1: float, tol: float) -> None:
        self.rows = rows
        self.limit = l1 + tol

    def next(self, state: State) -> int | None:
        """Fit the learner; its hypothesis joins the pool where it is new and violates (4)."""
        self.certify(state)
        learner = self.rows.pool
        assert isinstance(learner, WeakLearner)
        offer = learner.fitted(self.rows.residual_of_all_rows())
        if offer is None:
            state.status = "the classifier offers nothing new"
            return None
        if not offer.score - self.limit > 0:
            state.status = "no atom outside violates its dual constraint by more than tol"
            return None
        atom = learner.join(offer)
        self.rows.append(atom)
        if self.rows.repeats(atom):  # constant, beside an intercept
            self.rows.reset(self.rows.atoms[:-1])
            state.status = "the classifier offers nothing new"
            return None
        return atom

    def certify(self, state: State) -> None:
        """No gradient is known to be the steepest."""
        state.entries[-1] = replace(state.entries[-1], steepest=np.inf)
