"""Tune entries of a path: descend, solve the weights again, and accept what held-out rows like.

An entry is tuned on the rows that its path was grown on. It competes with the entry as chosen in
the loss on other rows, which are held out of both. The tuned atoms come with several sets of
weights: those of the corrector for these rows, those of the descent, and with copies those of the
corrector for the last copies. The set that is best on the held-out rows is used. In the first case
the weights are solved once more, on all rows. Either way the weights have a certificate for the
tuned atoms. It holds on all rows, on those that are not held out, or on the last copies: where the
weights were last solved or compared. The loss and the objective of a tuned entry are those of all
rows, without copies.

If the objective is the answer, as in TotalQBoost, weights of the descent do not compete, because
they do not minimise it. A penalty with a kink, such as l1, can then make all weights of an atom
zero. Such a model has fewer atoms, so it does not count as one of this size.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from laconic.boost.path import PathEntry
from laconic.boost.record import weights_of
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
from laconic.tune.contract import Tunable
from laconic.tune.descent import Frame, TunedModel, descend
from laconic.tune.kept import KeptSize, KeptTuning
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
    """Those that are not held out, on which the path was grown."""
    held: Held
    """Rows that are held out."""
    loss: Loss
    penalty: Penalty
    corrector: Any
    """Solves the weights. With ``max_iter=0`` it only certifies them."""
    minimal: bool
    """Whether weights must minimise the objective for their atoms."""
    n_outputs: int
    intercept: bool
    operations_count: bool
    """Whether a model that needs more operations than the chosen one is refused."""
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
    kept : KeptTuning, optional
        What a checkpoint knows of earlier fits.
    """

    _kind: TunableKind

    def __init__(
        self,
        given: TuningGiven,
        tuning: Tuning,
        free: bool,
        told: Told,
        kept: KeptTuning | None = None,
    ) -> None:
        self._given, self._tuning, self._free, self._told = given, tuning, free, told
        self._kept = kept or KeptTuning(None, "")
        self._before: tuple[PathEntry, KeptSize] | None = None

    def tuned(self, entry: PathEntry) -> PathEntry | None:
        """Return the tuned entry, or None if the held-out rows prefer the chosen one."""
        before, earlier = self._before or (None, None)
        kind = self._kind = kind_of(entry.map)
        own = [-1] * entry.size
        if before is not None:
            own = [before.numbers.index(n) if n in before.numbers else -1 for n in entry.numbers]
        start = kind.start(entry.map, before.map if before else None, own, self._free)
        kept = self._kept.of(entry, earlier)
        atoms = self._given.fitted.tunable(kind, start, self._free)
        if kept.done:
            self._told(entry.size, 1.0, kept.loss)
            found = self._recorded(kept.result(entry, atoms), entry)
        else:
            found = self._descended(entry, start, atoms, kept)
        if found is not None:
            self._before = found, kept
        return found

    def _recorded(self, found: PathEntry | None, entry: PathEntry) -> PathEntry | None:
        """Return a tuned entry with the records of its atoms, and what they say about the rows."""
        if found is None:
            return None
        made: Any = found.map
        if (pool := self._kind.pool(made, entry.scales, remarks=True)) is not None:
            bound = self._given.every.rows(self._asked(pool)).pool
            made = bound.extract(range(bound.n_atoms))
        return replace(found, map=made, atoms=tuple(self._kind.records(made, entry.atoms)))

    def _descended(
        self, entry: PathEntry, start: FeatureMap, atoms: Tunable, kept: KeptSize
    ) -> PathEntry | None:
        """Descend from a map, choose the weights, and keep the answer."""
        given, fitted = self._given, self._given.fitted
        first = entry if self._before is None else self._solved(entry, start, fitted)
        frame, model = self._framed(first, atoms.start)
        batches = fitted.batches(self._tuning, given.seed)

        def told(epoch: int, model: TunedModel, value: float) -> bool:
            return self._told(entry.size, (epoch + 1) / epochs, value)

        rate, epochs = self._tuning.rate, self._tuning.epochs_of(batches.n_batches)
        if kept.epochs:
            self._told(entry.size, kept.epochs / epochs, kept.loss)
        model = descend(atoms, model, frame, batches, epochs, rate, told, fitted.sums, kept)
        last = fitted.of_epoch(batches, epochs - 1)
        best = self._best(entry, first.means, atoms, model, last)
        found = self._recorded(best, entry)
        if found is not None and given.operations_count:
            more = found.predictor_cost.operations > entry.predictor_cost.operations
            found = None if more else found
        kept.finish(found, model.parameters)
        return found

    def _best(
        self,
        entry: PathEntry,
        means: np.ndarray,
        atoms: Tunable,
        model: TunedModel,
        last: RowsToTune,
    ) -> PathEntry | None:
        """Return the tuned model with the weights that held-out rows like best.

        ``last`` are the rows of the last epoch. None means that the entry as chosen is better.
        """
        given = self._given
        weights = np.vstack([to_host(model.base), to_host(model.weights)])
        weights = weights[int(not given.intercept) :]
        if not all(np.isfinite(to_host(a)).all() for a in (weights, *model.parameters)):
            return None  # the steps were too long
        made = atoms.map(model.parameters)
        of_descent = weights, means
        solved = self._solved(entry, made, given.fitted, *of_descent)
        found = [solved]
        if not given.minimal:
            found.append(self._solved(entry, made, last, *of_descent, moves=False))
        if self._tuning.copies is not None:
            found.append(self._solved(entry, made, last, *of_descent))
        found = [model for model in found if self._is_whole(model, entry)]
        losses = np.array([given.held.loss(model) for model in (entry, *found)])
        first = int(np.argmin(np.where(np.isnan(losses), np.inf, losses)))
        if first == 0:
            return None
        best = found[first - 1]
        of_best = weights_of(best, given.intercept), best.means
        every = partial(self._solved, entry, made, given.every, *of_best)
        if best is solved and self._is_whole(again := every(), entry):
            best = again
        else:
            same = every(moves=False)
            best = replace(best, loss=same.loss, objective=same.objective)
        return replace(best, seconds=entry.seconds + time.perf_counter() - self._kept.started)

    def _is_whole(self, model: PathEntry, entry: PathEntry) -> bool:
        """Return whether a model uses all atoms that an entry uses."""
        if not self._given.minimal:
            return True
        first = np.cumsum([0, *(atom.width for atom in entry.atoms)])[:-1]
        used, asked = (np.logical_or.reduceat(e.weights.any(axis=1), first) for e in (model, entry))
        return bool((used >= asked).all())

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
        solver = copy(given.corrector)
        if not moves:
            solver.max_iter = 0
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
