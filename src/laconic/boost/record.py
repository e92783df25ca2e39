"""Make path entries from corrected models."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from laconic.boost.costs import Costs
from laconic.boost.path import PathEntry
from laconic.correct.objective import Solution
from laconic.rows.rows import Rows


class Recorder:
    """Makes path entries, with the cost of the model and the time so far.

    Parameters
    ----------
    rows : Rows
    costs : Costs, optional
        What models cost. By default, each atom costs 1.
    """

    def __init__(self, rows: Rows, costs: Costs | None = None) -> None:
        self.rows = rows
        self.costs = costs or Costs()
        self._known: dict[int, Any] = {}
        self.start(0.0)

    def start(self, before: float) -> None:
        """Start the clock at ``before`` seconds."""
        self._clock = time.perf_counter() - before

    def entry(
        self,
        solution: Solution,
        gains: tuple[float, ...],
        kept: tuple[int, ...] | None = None,
    ) -> PathEntry:
        """Return a path entry for the rows' atoms, or only for the places ``kept`` among them."""
        pool, numbers = self.rows.pool, tuple(self.rows.atoms)
        free = int(self.rows.intercept)
        columns: slice | np.ndarray = slice(free, None)
        if kept is not None:
            ends = self.rows.ends()
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
            cost=self.costs.total(numbers),
            seconds=time.perf_counter() - self._clock,
            footprint=self.costs.footprint(numbers),
        )

    def _atom(self, number: int) -> Any:
        """Return the record of an atom. It is kept, because later entries need it again."""
        if number not in self._known:
            self._known[number] = self.rows.pool.atom(number)
        return self._known[number]


def weights_of(entry: PathEntry, intercept: bool) -> np.ndarray:
    """Return an entry's weights in the form of the corrector, with the intercept as first row."""
    return np.vstack([entry.base, entry.weights]) if intercept else entry.weights
