"""Tune entries of a path: descend, solve the weights again, and accept what held-out rows like.

An entry is tuned on the rows that are not held out. It competes with the entry as chosen, whose
weights are fitted to the same rows, in the loss on the rows that are held out. The tuned atoms come
with several sets of weights: those of the corrector for these rows, those of the descent, and with
copies those of the corrector for the last copies. The set that is best on the held-out rows is
used. Either way the weights have a certificate for the tuned atoms. In the first case the weights
are solved once more, on all rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from laconic.boost.held_out import HeldOut
from laconic.boost.path import PathEntry
from laconic.boost.record import weights_of
from laconic.correct import Newton
from laconic.correct.objective import Solution
from laconic.losses import Loss
from laconic.model.feature_maps import FeatureMap
from laconic.numeric.namespaces import is_tensor, to_host
from laconic.numeric.threads import Threads
from laconic.penalties import Penalty
from laconic.pools import Columns
from laconic.registry import TENSOR_COLUMNS, find
from laconic.rows.asked import RowsAsked
from laconic.rows.limits import Limits
from laconic.rows.rows import Rows
from laconic.tune.batches import Batches
from laconic.tune.descent import Frame, TunedModel, descend
from laconic.tune.in_integers import HeldOutInIntegers
from laconic.tune.kinds import kind_of
from laconic.tune.settings import Tuning

Told = Callable[[int, float, float], bool]
"""Called after every epoch with the size, the share of the epochs that are done, and the mean loss.
A true answer ends the tuning of this size."""


class TuningGiven(NamedTuple):
    """What a fit knows when its path is grown."""

    every: Any
    """All rows to learn from; see `laconic.estimators.training.Training`."""
    training: Any
    """Those that are not held out."""
    held: HeldOut | HeldOutInIntegers
    """Rows that are held out."""
    device: Any
    loss: Loss
    penalty: Penalty
    tol: float
    n_outputs: int
    intercept: bool
    threads: Threads
    limits: Limits
    seed: int


class Tuner:
    """Tunes the entries of a path, smallest size first.

    Parameters
    ----------
    given : TuningGiven
    tuning : Tuning
    free : bool
        Whether atoms may read more inputs, and take more operations and bytes, than the chosen
        ones.
    told : Told
    """

    def __init__(self, given: TuningGiven, tuning: Tuning, free: bool, told: Told) -> None:
        self._given, self._tuning, self._free, self._told = given, tuning, free, told
        self._before: PathEntry | None = None
        self._start = time.perf_counter()

    def tuned(self, entry: PathEntry) -> PathEntry | None:
        """Return the tuned entry, or None if the held-out rows prefer the chosen one."""
        given, before = self._given, self._before
        kind = kind_of(entry.map)
        own = [-1] * entry.size
        if before is not None:
            own = [before.numbers.index(n) if n in before.numbers else -1 for n in entry.numbers]
        start = kind.start(entry.map, before.map if before else None, own, self._free)
        X = self._rows_there(given.training)
        atoms = kind.tunable(start, X, given.threads, given.device, self._free)
        chosen = self._solved(entry, entry.map, X, weights_of(entry, given.intercept), entry.means)
        first = chosen if before is None else self._solved(entry, start, X)
        frame, model = self._framed(first, atoms.start)
        batches = self._batches(X)

        def told(epoch: int, model: TunedModel, value: float) -> bool:
            return self._told(entry.size, (epoch + 1) / epochs, value)

        rate, epochs = self._tuning.rate, self._tuning.epochs_of(batches.n_batches)
        model = descend(atoms, model, frame, batches, epochs, rate, told)
        made = atoms.map(model.parameters)
        weights = np.vstack([to_host(model.base), to_host(model.weights)])
        weights = weights[int(not given.intercept) :]
        of_descent = weights, first.means
        solved = self._solved(entry, made, X, *of_descent)
        found, last = [solved], batches.rows(epochs - 1)
        found.append(self._solved(entry, made, last, *of_descent, moves=False))
        if self._tuning.copies is not None:
            found.append(self._solved(entry, made, last, *of_descent))
        best = min(found, key=given.held.loss)
        if not given.held.loss(best) < given.held.loss(chosen):
            return None
        if best is solved:
            start = weights_of(best, given.intercept)
            every = self._rows_there(given.every)
            best = self._solved(entry, made, every, start, best.means, of=given.every)
        self._before = replace(best, seconds=entry.seconds + time.perf_counter() - self._start)
        return self._before

    def _rows_there(self, training: Any) -> Any:
        """Return the rows, on the device if there is one."""
        if self._given.device is None:
            return training.X
        from laconic.device.place import moved

        return moved(training.X, self._given.device)

    def _batches(self, X: Any) -> Batches:
        given, tuning = self._given, self._tuning
        codes, weight = given.training.codes, given.training.weight
        if is_tensor(X):
            from laconic.device.place import moved

            codes, weight = (moved(array, X.device) for array in (codes, weight))
        size = tuning.rows_of_a_batch(len(codes))
        return Batches(X, codes, weight, size, given.seed, tuning.copies)

    def _framed(self, entry: PathEntry, parameters: list[Any]) -> tuple[Frame, TunedModel]:
        """Return what stays as it is, and the model to start from, where the parameters are."""
        like = parameters[0]

        def there(array: np.ndarray) -> Any:
            return like.new_tensor(array) if is_tensor(like) else np.array(array, dtype=np.float64)

        given = self._given
        frame = Frame(
            there(entry.scales), there(entry.means), given.loss, given.penalty, given.intercept
        )
        return frame, TunedModel(parameters, there(entry.weights), there(entry.base))

    def _solved(
        self,
        entry: PathEntry,
        made: FeatureMap,
        X: Any,
        start: np.ndarray | None = None,
        means: Any = 0.0,
        moves: bool = True,
        of: Any = None,
    ) -> PathEntry:
        """Return an entry with the atoms of a map. Weights are solved, or kept if not ``moves``.

        ``start`` are weights over columns with the means ``means``. X are the rows of the training
        ``of``, by default of those that are not held out.
        """
        given = self._given
        rows = self._columns(made, X, entry.scales, of or given.training)
        if start is None:
            start = np.zeros((rows.n_columns, given.n_outputs))
        elif given.intercept:  # the same function, over columns with other means
            start = start.copy()
            start[0] += (rows.means[1:] - means) @ start[1:]
        solver = Newton(given.tol) if moves else Newton(given.tol, max_iter=0)
        solution: Solution = solver.solve(rows, given.penalty, start)
        free = int(given.intercept)
        weights = solution.weights
        return replace(
            entry,
            map=made,
            atoms=tuple(made.atoms()),  # type: ignore[attr-defined]
            weights=weights[free:],
            base=weights[0] if free else np.zeros(given.n_outputs),
            means=rows.means[free:],
            loss=solution.loss,
            objective=solution.value,
            certificate=solution.certificate,
            inner=float(np.vdot(solution.loss_gradient, weights)),
            steepest=np.nan,
        )

    def _columns(self, made: FeatureMap, X: Any, scales: np.ndarray, of: Any) -> Rows:
        """Return the rows with the scaled columns of a map, all of them in."""
        given = self._given
        if is_tensor(X):
            values = find(TENSOR_COLUMNS)(made, X)
            values = values * values.new_tensor(scales)
        else:
            values = made.columns(X)
            values = values * scales.astype(values.dtype)
        settings = given.loss, given.n_outputs, given.threads, given.intercept, given.limits
        asked = RowsAsked(Columns(scale=None), False, *settings)
        rows: Rows = of._replace(X=values).rows(asked)
        rows.reset(range(len(scales)))
        return rows
