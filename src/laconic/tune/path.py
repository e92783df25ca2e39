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
from typing import Any, NamedTuple, Protocol

import numpy as np

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
from laconic.rows.asked import RowsAsked
from laconic.rows.limits import Limits
from laconic.rows.rows import Rows
from laconic.tune.descent import Frame, TunedModel, descend
from laconic.tune.kinds import TunableKind, kind_of
from laconic.tune.rows import RowsToTune
from laconic.tune.settings import Tuning

Told = Callable[[int, float, float], bool]
"""Called after every epoch with the size, the share of the epochs that are done, and the mean loss.
A true answer ends the tuning of this size."""


class Held(Protocol):
    """Rows that are held out, such as `laconic.boost.held_out.HeldOut`."""

    def loss(self, entry: PathEntry) -> float:
        """Return the loss of an entry's model on these rows."""


class TuningGiven(NamedTuple):
    """What a fit knows when its path is grown."""

    every: RowsToTune
    """All rows to learn from."""
    fitted: RowsToTune
    """Those that are not held out."""
    held: Held
    """Rows that are held out."""
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

    _kind: TunableKind

    def __init__(self, given: TuningGiven, tuning: Tuning, free: bool, told: Told) -> None:
        self._given, self._tuning, self._free, self._told = given, tuning, free, told
        self._before: PathEntry | None = None
        self._start = time.perf_counter()

    def tuned(self, entry: PathEntry) -> PathEntry | None:
        """Return the tuned entry, or None if the held-out rows prefer the chosen one."""
        given, before = self._given, self._before
        kind = self._kind = kind_of(entry.map)
        own = [-1] * entry.size
        if before is not None:
            own = [before.numbers.index(n) if n in before.numbers else -1 for n in entry.numbers]
        start = kind.start(entry.map, before.map if before else None, own, self._free)
        fitted = given.fitted
        atoms = fitted.tunable(kind, start, self._free)
        weights = weights_of(entry, given.intercept)
        chosen = self._solved(entry, entry.map, fitted, weights, entry.means)
        first = chosen if before is None else self._solved(entry, start, fitted)
        frame, model = self._framed(first, atoms.start)
        batches = fitted.batches(self._tuning, given.seed)

        def told(epoch: int, model: TunedModel, value: float) -> bool:
            return self._told(entry.size, (epoch + 1) / epochs, value)

        rate, epochs = self._tuning.rate, self._tuning.epochs_of(batches.n_batches)
        model = descend(atoms, model, frame, batches, epochs, rate, told, fitted.sums)
        made = atoms.map(model.parameters)
        weights = np.vstack([to_host(model.base), to_host(model.weights)])
        weights = weights[int(not given.intercept) :]
        of_descent = weights, first.means
        solved = self._solved(entry, made, fitted, *of_descent)
        found, last = [solved], fitted.of_epoch(batches, epochs - 1)
        found.append(self._solved(entry, made, last, *of_descent, moves=False))
        if self._tuning.copies is not None:
            found.append(self._solved(entry, made, last, *of_descent))
        best = min(found, key=given.held.loss)
        if not given.held.loss(best) < given.held.loss(chosen):
            return None
        if best is solved:
            start = weights_of(best, given.intercept)
            best = self._solved(entry, made, given.every, start, best.means)
        if (pool := kind.pool(made, entry.scales, remarks=True)) is not None:
            bound = given.every.rows(self._asked(pool)).pool
            made = bound.extract(range(bound.n_atoms))
        best = replace(best, map=made, atoms=tuple(kind.records(made, entry.atoms)))
        if not self._free and best.predictor_cost.operations > entry.predictor_cost.operations:
            return None
        self._before = replace(best, seconds=entry.seconds + time.perf_counter() - self._start)
        return self._before

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
        on: RowsToTune,
        start: np.ndarray | None = None,
        means: Any = 0.0,
        moves: bool = True,
    ) -> PathEntry:
        """Return an entry with the atoms of a map. Weights are solved, or kept if not ``moves``.

        ``start`` are weights over columns with the means ``means``. ``on`` are the rows to use.
        """
        given = self._given
        rows = self._columns(made, entry.scales, on)
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
            weights=weights[free:],
            base=weights[0] if free else np.zeros(given.n_outputs),
            means=rows.means[free:],
            loss=solution.loss,
            objective=solution.value,
            certificate=solution.certificate,
            inner=float(np.vdot(solution.loss_gradient, weights)),
            steepest=np.nan,
        )

    def _columns(self, made: FeatureMap, scales: np.ndarray, on: RowsToTune) -> Rows:
        """Return the rows with the scaled columns of a map, all of them in."""
        pool = self._kind.pool(made, scales)
        if pool is None:
            rows = on.written(made, scales).rows(self._asked(Columns(scale=None)))
        else:
            rows = on.rows(self._asked(pool))
        rows.reset(range(rows.pool.n_atoms))
        return rows

    def _asked(self, pool: Any) -> RowsAsked:
        given = self._given
        settings = given.loss, given.n_outputs, given.threads, given.intercept, given.limits
        return RowsAsked(pool, False, *settings)
