"""The stage of ShareBoost that settles: everything chosen stays, and is re-optimised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from laconic.boost.path import PathEntry
from laconic.boost.record import Recorder, weights_of
from laconic.boost.stages import Own, State
from laconic.correct.objective import Corrector, Solution
from laconic.files.layout import whole_number
from laconic.penalties import Penalty


@dataclass
class Refinement(Own):
    """How far the refinement of a grown path is (`laconic.boost.refine`)."""

    max_atoms: int
    """Largest size of the path that is refined."""
    entries: list[PathEntry] = field(default_factory=list)
    """The refined path so far; empty without refinement."""
    swept: int = 0
    """Steps done of the sweeps back and forth over it."""

    @property
    def last(self) -> PathEntry | None:
        """The largest refined entry."""
        return self.entries[-1] if self.entries else None

    def clear(self) -> None:
        """Forget everything: the path is another one."""
        self.entries, self.swept = [], 0

    def copy(self) -> Refinement:
        """The same with a list of its own."""
        return replace(self, entries=list(self.entries))

    def lists(self) -> dict[str, list[PathEntry]]:
        """The refined path."""
        return {"refined": self.entries}

    def numbers(self) -> dict[str, Any]:
        """How far it is, and of which path."""
        return {"max_atoms": self.max_atoms, "swept": self.swept}

    def read(self, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Take over the numbers."""
        self.max_atoms = whole_number(header["max_atoms"], "max_atoms")
        self.swept = whole_number(header["swept"], "swept")

    def sound(self, entries: list[PathEntry]) -> bool:
        """Whether the refined path is no longer than the path."""
        return len(self.entries) <= len(entries)


class CorrectAll:
    """Steps 5 and 6 of ShareBoost's algorithm 1.

    Parameters
    ----------
    record : Recorder
    corrector : Corrector
    penalty : Penalty
    max_atoms : int
        Largest size.
    include : list of int
        Atoms that are in from the start.

    Attributes
    ----------
    weights : ndarray of shape (n_columns, n_outputs)
        Of the columns in, at the model that the rows stand at.
    intercept_norm : float
        l1 norm of the gradient there in the intercept.
    """

    def __init__(
        self,
        record: Recorder,
        corrector: Corrector,
        penalty: Penalty,
        max_atoms: int,
        include: list[int] | None = None,
    ) -> None:
        self.record = record
        self.rows = record.rows
        self.corrector = corrector
        self.penalty = penalty
        self.max_atoms = max_atoms
        self.include = include or []

    def begin(self) -> Refinement:
        """Nothing is refined."""
        return Refinement(self.max_atoms)

    def trim(self, state: State) -> None:
        """Take up the path as far as the largest size; one of another size is refined anew."""
        large = (at for at, entry in enumerate(state.entries) if entry.size > self.max_atoms)
        del state.entries[next(large, len(state.entries)) :]
        if not state.entries or Refinement.of(state).max_atoms != self.max_atoms:
            state.own = self.begin()

    def first(self) -> PathEntry:
        """The intercept and the atoms always included."""
        base = self.solve(np.zeros((0, self.rows.n_outputs)))
        loss = base.loss
        gains = []
        for atom in self.include:
            self.rows.append(atom)
            base = self.solve(base.weights)
            gains.append(loss - base.loss)
            loss = base.loss
        return self.record.entry(base, tuple(gains))

    def take_up(self, state: State) -> None:
        """Put the rows to the last entry."""
        self.restore(state.entries[-1])

    def cut(self, state: State, length: int) -> None:
        """Drop the entries after the first ones."""
        del state.entries[length:]
        Refinement.of(state).clear()

    def full(self, state: State) -> bool:
        """Whether the largest size is reached."""
        reached = state.entries[-1].size >= self.max_atoms
        if reached:
            state.status = "largest size reached"
        return reached

    def add(self, state: State, atom: int) -> PathEntry:
        """The last entry's model with the atom that has come in, corrected."""
        before = state.entries[-1]
        solution = self.solve(weights_of(before, self.rows.intercept))
        Refinement.of(state).clear()  # of a shorter path, if of any
        return self.record.entry(solution, (*before.gains, before.loss - solution.loss))

    def due(self, state: State, last: bool) -> bool:
        """There is nothing to search for: all atoms stay."""
        return False

    def search_again(self, state: State) -> PathEntry:
        """The model as it is."""
        return state.entries[-1]

    def solve(self, start: np.ndarray, target: float = np.inf) -> Solution:
        """Correct the columns in from ``start``, padded with zeros for new columns.

        Not to the end where the objective can hardly come down to ``target``.
        """
        padded = self.rows.padded(start)
        solution = self.corrector.solve(self.rows, self.penalty, padded, target)
        self._hold(solution.weights, solution.loss_gradient)
        return solution

    def restore(self, entry: PathEntry) -> None:
        """Put the rows back to where they were when ``entry`` was recorded."""
        self.rows.reset(entry.numbers)
        weights = weights_of(entry, self.rows.intercept)
        self._hold(weights, self.rows.evaluate(weights)[1])

    def _hold(self, weights: np.ndarray, loss_gradient: np.ndarray) -> None:
        self.weights = weights
        free = int(self.rows.intercept)
        self.intercept_norm = float(np.abs(loss_gradient[:free]).sum())
