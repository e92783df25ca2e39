"""The loop: choose the atom that helps most, re-optimise everything chosen, leave a path.

Column generation over three contracts: a pool (behind `Rows`), a loss (inside `Rows`) and a
corrector. Its state is explicit, so that it can be looked at every round, interrupted, written to
a file and taken up again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from laconic.boost.costs import Costs
from laconic.boost.path import PathEntry
from laconic.boost.rules import Rule
from laconic.objective import Corrector, Solution
from laconic.penalties import Penalty
from laconic.rows.rows import Rows


@dataclass
class State:
    """Everything the loop knows between two rounds.

    Attributes
    ----------
    entries : list of PathEntry
        The path so far.
    refined : list of PathEntry
        The refined path so far; empty without refinement.
    swept : int
        Steps done of the sweeps back and forth over the refined path.
    generated : list of int
        TotalQBoost's H: every atom that was ever added, those later dropped too.
    offered : list of PathEntry
        The best models of every size that the search after TotalQBoost's hot start found.
    searched : int
        Size of H at the first subset search, after which every round does one; -1 before.
    bound : float
        Proven lower bound on the last search's problem; -inf where nothing is.
    status : str
        Why the loop ended, or "running".
    """

    entries: list[PathEntry] = field(default_factory=list)
    refined: list[PathEntry] = field(default_factory=list)
    swept: int = 0
    generated: list[int] = field(default_factory=list)
    offered: list[PathEntry] = field(default_factory=list)
    searched: int = -1
    bound: float = -np.inf
    status: str = "running"

    @property
    def last(self) -> PathEntry:
        """The largest entry so far; of the refined path where there is one."""
        return self.refined[-1] if self.refined else self.entries[-1]


Hook = Callable[[State], "bool | None"]
"""Called after every round with the state; a true answer ends the loop."""


@dataclass
class Loop:
    """One fit's settings; see `laconic.ShareBoostClassifier` for their meaning.

    Attributes
    ----------
    rows, rule, corrector, penalty
        The contracts.
    max_atoms : int
        Largest size.
    include : list of int
        Atoms that are in from the start.
    forbidden : ndarray of int
        Atoms that may never be chosen.
    costs : Costs or None
        What atoms cost; they are then ranked by gain per cost.
    max_cost : float
        Cap on the cost of the model.
    watch : callable or None
        Asked with every new entry of the growing path; a true answer ends its growth (not the
        refinement that may follow).
    hooks : list of Hook
    """

    rows: Rows
    rule: Rule
    corrector: Corrector
    penalty: Penalty
    max_atoms: int
    include: list[int] = field(default_factory=list)
    forbidden: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    costs: Costs | None = None
    max_cost: float = np.inf
    watch: Callable[[PathEntry], bool] | None = None
    hooks: list[Hook] = field(default_factory=list)
    _spanned: tuple[int, ...] = ()
    _dependent: list[int] = field(default_factory=list)
    _known: dict[int, Any] = field(default_factory=dict)

    def grow(self, state: State) -> bool:
        """Algorithm 1 of ShareBoost, from wherever ``state`` stands; false if a hook ended it."""
        self._clock = time.perf_counter() - (state.last.seconds if state.entries else 0.0)
        enough = False
        if state.entries:
            enough = self._replay(state)
            self.restore(state.entries[-1])
        else:
            state.entries.append(self._base())
            enough = self._enough(state.entries[-1])
            if self.told(state):
                return False
        while not enough and state.entries[-1].size < self.max_atoms:
            state.refined, state.swept = [], 0  # of a shorter path, if of any
            entry = self.extend(state.entries)
            if entry is None:
                capped = np.isfinite(self.max_cost)
                within = " within the cap on cost" if capped else ""
                state.status = f"no admissible atom is left that helps{within}"
                return True
            state.entries.append(entry)
            enough = self._enough(entry)
            if self.told(state):
                return False
        state.entries[-1] = self.certified(state.entries[-1])
        state.status = "held-out loss no longer falls" if enough else "largest size reached"
        return True

    def _enough(self, entry: PathEntry) -> bool:
        return self.watch is not None and self.watch(entry)

    def _replay(self, state: State) -> bool:
        """Show the watch the entries of a resumed state, and drop those it would not have seen."""
        for seen, entry in enumerate(state.entries, 1):
            if self._enough(entry):
                if seen < len(state.entries):
                    del state.entries[seen:]
                    state.refined, state.swept = [], 0
                return True
        return False

    def extend(self, entries: list[PathEntry]) -> PathEntry | None:
        """The last entry's model, which the rows must stand at, with the best atom added."""
        if not self.add(entries):
            return None
        before = entries[-1]
        solution = self.solve(weights_of(before, self.rows.intercept))
        return self.record(solution, (*before.gains, before.loss - solution.loss))

    def add(self, entries: list[PathEntry], *also_barred: int) -> bool:
        """Let the best atom in that is not a combination of columns in; whether there is one."""
        columns = entries[-1].numbers
        if columns[: len(self._spanned)] != self._spanned:
            self._dependent = []
        self._spanned = columns
        while (atom := self.choose(entries, *also_barred, *self._dependent)) is not None:
            self.rows.append(atom)
            if not self.rows.adds_nothing(atom):
                return True
            self.rows.reset(columns)
            # Costs a pass over the pool, but only once in a growing path: it stays dependent.
            self._dependent.append(atom)
        return False

    def choose(self, entries: list[PathEntry], *also_barred: int) -> int | None:
        """Ask the rule; completes the last entry's certificate. ``None`` if nothing helps."""
        entry = entries[-1]
        barred = self._barred(entry, also_barred)
        costs = None if self.costs is None else self.costs.given(entry.numbers)
        choice = self.rule.choose(self.rows, self._weights, barred, costs)
        steepest = max(choice.steepest, self._intercept_norm)
        entries[-1] = replace(entry, steepest=steepest)
        rounding = 8.0 * np.finfo(self.rows.dtype).eps
        return None if choice.index < 0 or not choice.score > rounding else choice.index

    def certified(self, entry: PathEntry) -> PathEntry:
        """``entry``, which the rows must stand at, with its steepest gradient."""
        choice = self.rows.best(self._barred(entry, ()), None, None)
        return replace(entry, steepest=max(choice.steepest, self._intercept_norm))

    def solve(self, start: np.ndarray, target: float = np.inf) -> Solution:
        """Correct the columns in from ``start``, padded with zeros for new columns.

        Not to the end where the objective can hardly come down to ``target``.
        """
        padded = np.zeros((self.rows.n_columns, self.rows.n_outputs))
        padded[: len(start)] = start
        solution = self.corrector.solve(self.rows, self.penalty, padded, target)
        self._hold(solution.weights, solution.loss_gradient)
        return solution

    def restore(self, entry: PathEntry) -> None:
        """Put the rows back to where they were when ``entry`` was recorded."""
        self.rows.reset(entry.numbers)
        weights = weights_of(entry, self.rows.intercept)
        self._hold(weights, self.rows.evaluate(weights)[1])

    def record(
        self,
        solution: Solution,
        gains: tuple[float, ...],
        kept: tuple[int, ...] | None = None,
    ) -> PathEntry:
        """A path entry for the columns in; with ``kept``, for the atoms at those places only."""
        pool, numbers = self.rows.pool, tuple(self.rows.atoms)
        free = int(self.rows.intercept)
        columns: slice | np.ndarray = slice(free, None)
        if kept is not None:
            ends = np.cumsum([free, *map(pool.width, numbers)])
            columns = np.array([c for k in kept for c in range(ends[k], ends[k + 1])], dtype=int)
            numbers = tuple(numbers[k] for k in kept)
        zero = np.zeros(self.rows.n_outputs)
        return PathEntry(
            numbers=numbers,
            atoms=tuple(self._atom(n) for n in numbers),
            map=pool.extract(numbers),
            weights=solution.weights[columns],
            base=solution.weights[0] if free else zero,
            scales=pool.scales(numbers),
            means=self.rows.means[columns] + pool.shifts(numbers),
            loss=solution.loss,
            objective=solution.value,
            gains=gains,
            certificate=solution.certificate,
            inner=float(np.vdot(solution.loss_gradient, solution.weights)),
            steepest=np.nan,
            cost=float(len(numbers)) if self.costs is None else self.costs.total(numbers),
            seconds=time.perf_counter() - self._clock,
        )

    def _atom(self, number: int) -> Any:
        """The record of an atom; every entry after the one that let it in needs it again."""
        if number not in self._known:
            self._known[number] = self.rows.pool.atom(number)
        return self._known[number]

    def told(self, state: State) -> bool:
        """Call every hook; whether one of them wants to stop."""
        answers = [hook(state) for hook in self.hooks]
        stop = any(bool(a) for a in answers)
        if stop:
            state.status = "stopped by a callback"
        return stop

    def _base(self) -> PathEntry:
        """Entry of the base terms: the intercept and the atoms always included."""
        base = self.solve(np.zeros((0, self.rows.n_outputs)))
        loss = base.loss
        gains = []
        for atom in self.include:
            self.rows.append(atom)
            base = self.solve(base.weights)
            gains.append(loss - base.loss)
            loss = base.loss
        return self.record(base, tuple(gains))

    def _hold(self, weights: np.ndarray, loss_gradient: np.ndarray) -> None:
        self._weights = weights
        free = int(self.rows.intercept)
        self._intercept_norm = float(np.abs(loss_gradient[:free]).sum())

    def _barred(self, entry: PathEntry, also: tuple[int, ...]) -> np.ndarray:
        """Atoms that cannot come next: in already, excluded, or too dear for what is left."""
        barred = [np.array([*entry.numbers, *also], dtype=np.int64), self.forbidden]
        if self.costs is not None and np.isfinite(self.max_cost):
            left = (self.max_cost - entry.cost) * (1.0 + 1e-12)
            barred.append(np.flatnonzero(self.costs.given(entry.numbers) > left))
        return np.unique(np.concatenate(barred))


def weights_of(entry: PathEntry, intercept: bool) -> np.ndarray:
    """An entry's weights as the corrector wants them."""
    return np.vstack([entry.base, entry.weights]) if intercept else entry.weights
