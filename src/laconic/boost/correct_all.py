"""The settling stage of ShareBoost: keep every chosen atom and re-optimise all weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from laconic.boost.path import PathEntry
from laconic.boost.record import Recorder, weights_of
from laconic.boost.stages import Own, Settle, State
from laconic.correct.objective import Corrector, Solution
from laconic.files.layout import whole_number
from laconic.penalties import Penalty


@dataclass
class Refinement(Own):
    """Progress of the refinement of a grown path (`laconic.boost.refine`)."""

    max_atoms: int
    """Largest size of the path that is refined."""
    entries: list[PathEntry] = field(default_factory=list)
    """The refined path so far. It is empty without refinement."""
    swept: int = 0
    """Number of steps done in the sweeps back and forth over the refined path."""

    @property
    def last(self) -> PathEntry | None:
        """The largest refined entry."""
        return self.entries[-1] if self.entries else None

    def clear(self) -> None:
        """Forget everything, because the path has changed."""
        self.entries, self.swept = [], 0

    def copy(self) -> Refinement:
        """Return a copy with its own list."""
        return replace(self, entries=list(self.entries))

    def lists(self) -> dict[str, list[PathEntry]]:
        """Return the refined path."""
        return {"refined": self.entries}

    def numbers(self) -> dict[str, Any]:
        """Return the number of steps done, and the largest size of the path."""
        return {"max_atoms": self.max_atoms, "swept": self.swept}

    def read(self, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Read the numbers from a record's header."""
        self.max_atoms = whole_number(header["max_atoms"], "max_atoms")
        self.swept = whole_number(header["swept"], "swept")

    def sound(self, entries: list[PathEntry]) -> bool:
        """Return whether the refined path is at most as long as the path."""
        return len(self.entries) <= len(entries)


class CorrectAll(Settle):
    """Steps 5 and 6 of ShareBoost's algorithm 1.

    Parameters
    ----------
    record : Recorder
    corrector : Corrector
    penalty : Penalty
    max_atoms : int
        Largest size.
    include : list of int
        Atoms that are in the model from the start.

    Attributes
    ----------
    weights : ndarray of shape (n_columns, n_outputs)
        Weights of the current model, at which the rows were last evaluated.
    intercept_norm : float
        l1 norm of the intercept's gradient at these weights.
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
        """Return a refinement that has not started."""
        return Refinement(self.max_atoms)

    def trim(self, state: State) -> None:
        """Cut a path from a file to the largest size.

        If the file's refinement was for another largest size, it starts again.
        """
        large = (at for at, entry in enumerate(state.entries) if entry.size > self.max_atoms)
        del state.entries[next(large, len(state.entries)) :]
        if not state.entries or Refinement.of(state).max_atoms != self.max_atoms:
            state.own = self.begin()

    def first(self, state: State) -> PathEntry:
        """Return the model of the intercept and the atoms that are always included."""
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
        """Evaluate the rows at the last entry."""
        self.restore(state.entries[-1])

    def cut(self, state: State, length: int) -> None:
        """Drop the entries after the first ``length``."""
        del state.entries[length:]
        Refinement.of(state).clear()

    def full(self, state: State) -> bool:
        """Return whether the largest size is reached."""
        reached = state.entries[-1].size >= self.max_atoms
        if reached:
            state.status = "largest size reached"
        return reached

    def add(self, state: State, atom: int) -> PathEntry:
        """Return the corrected model of the last entry's atoms and the new atom."""
        before = state.entries[-1]
        solution = self.solve(weights_of(before, self.rows.intercept))
        Refinement.of(state).clear()  # any refinement was for a shorter path
        return self.record.entry(solution, (*before.gains, before.loss - solution.loss))

    def solve(self, start: np.ndarray, target: float = np.inf) -> Solution:
        """Correct the model's columns from ``start``, padded with zeros for new columns.

        The solve stops early if the objective can hardly fall to ``target``.
        """
        padded = self.rows.padded(start)
        solution = self.corrector.solve(self.rows, self.penalty, padded, target)
        self._hold(solution.weights, solution.loss_gradient)
        return solution

    def restore(self, entry: PathEntry) -> None:
        """Evaluate the rows at the model of ``entry`` again."""
        self.rows.reset(entry.numbers)
        weights = weights_of(entry, self.rows.intercept)
        self._hold(weights, self.rows.evaluate(weights)[1])

    def _hold(self, weights: np.ndarray, loss_gradient: np.ndarray) -> None:
        self.weights = weights
        free = int(self.rows.intercept)
        self.intercept_norm = float(np.abs(loss_gradient[:free]).sum())
