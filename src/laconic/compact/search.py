"""Run the plan of a search: trial after trial, rung after rung, in a fixed order."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import zip_longest
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from laconic.compact.averages import AveragedPath
from laconic.compact.frontier import Tried, best_scores, tried_models
from laconic.compact.plan import PARTS, make_splitter, rows_of_rungs, survivors
from laconic.compact.settings import Setting
from laconic.compact.trials import AnyPath, Fold, Form, fold_table
from laconic.compact.tuned import FEWEST_ROWS, tuned_settings
from laconic.compact.tuned_path import TunedPath
from laconic.data.doubts import stacklevel_of_user
from laconic.estimators.independent import independent
from laconic.estimators.scorers import FoldScorer
from laconic.estimators.share import ShareBoostClassifier
from laconic.estimators.sizes import part_of, used_folds
from laconic.numeric.threads import Threads
from laconic.tune import Tuning


class Given(NamedTuple):
    """The rows to learn from, with labels, weights and groups of rows (or None)."""

    X: Any
    y: np.ndarray
    weight: np.ndarray
    groups: Any


class Task(NamedTuple):
    """A path that is to be fitted: one setting on one fold of a rung."""

    rung: int
    setting: int
    fold: Fold


class Outcome(NamedTuple):
    """The table of a task, or why there is none."""

    table: np.ndarray | None
    why: str = ""


@dataclass
class Findings:
    """What a search has found so far."""

    models: list[Tried] = field(default_factory=list)
    left_out: dict[int, str] = field(default_factory=dict)
    """Settings that cannot be fitted, and why."""
    n_fits: int = 0
    status: str = "the plan is complete"

    @property
    def last(self) -> list[Tried]:
        """The models of the last rung that has any."""
        top = max((model.rung for model in self.models), default=0)
        return [model for model in self.models if model.rung == top]


@dataclass
class Search:
    """A search over settings. `run` fills ``found``, and may be interrupted.

    ``model`` is the estimator that fits the paths, without pool and penalty. Settings that fail
    are left out if ``may_fail``. With ``tune``, the best tunable settings are tuned in the end.
    ``known`` has outcomes of a checkpoint, in order.
    """

    model: ShareBoostClassifier
    settings: list[Setting]
    rows: Given
    sizes: list[int]
    form: Form
    cv: Any
    scoring: Any
    random: np.random.RandomState
    n_jobs: int | None
    time_limit: float | None
    may_fail: bool
    tune: bool | Tuning = False
    known: list[Outcome] = field(default_factory=list)
    found: Findings = field(default_factory=Findings)

    def run(self, done: Any) -> None:
        """Run all trials. ``done(task, outcome, total)`` is called after every fit."""
        began = monotonic()
        groups = self._by_pool()
        codes = np.unique(self.rows.y, return_inverse=True)[1]
        rungs = rows_of_rungs(codes, self.cv, self.random)
        seeds = self.random.randint(np.iinfo(np.int32).max, size=len(rungs))
        alive = [group[0] for group in groups] if len(rungs) > 1 else [*range(len(self.settings))]
        for rung, (kept, seed) in enumerate(zip(rungs, seeds, strict=True)):
            part = self._part(kept)
            folds = self._folds(part, int(seed))
            left = len(rungs) - rung - 1
            for setting in self._trials(rung, alive, folds, part, done, left):
                if (left or setting != alive[-1]) and self._is_over(began, rung, len(rungs)):
                    return
            if not self.found.models:
                reason = (
                    "no model fits the budget and the integers; raise max_bytes, or use bits=16"
                )
                raise ValueError(next(iter(self.found.left_out.values()), reason))
            alive = self._next(alive, groups, first=rung == 0)
        tuned = self._add_tuned(len(part.y))
        if tuned and not self._is_over(began, rung, len(rungs)):
            for setting in self._trials(rung, tuned, folds, part, done, 0):
                if setting != tuned[-1] and self._is_over(began, rung, len(rungs)):
                    return

    def _is_over(self, began: float, rung: int, n_rungs: int) -> bool:
        """Return whether the time is over and there are models. If so, say it in the status."""
        if self.time_limit is None or monotonic() - began <= self.time_limit:
            return False
        if self.found.models:
            self.found.status = (
                f"the time limit of {self.time_limit:g} s ended the plan on rung {rung + 1} of "
                f"{n_rungs}{self._untried()}"
            )
        return bool(self.found.models)

    def _add_tuned(self, n_rows: int) -> list[int]:
        """Add the settings of tuned paths, and return their numbers."""
        if not self.tune or n_rows < FEWEST_ROWS:
            return []
        before = len(self.settings)
        self.settings += tuned_settings(self.settings, self.found.last, self.most, self.tune)
        return list(range(before, len(self.settings)))

    @property
    def most(self) -> float:
        """The budget of bytes, or infinity."""
        return np.inf if self.model.max_bytes is None else float(self.model.max_bytes)

    def _untried(self) -> str:
        """Say which pools were not tried."""
        seen = {self.settings[model.setting].title for model in self.found.models}
        left = [s.title for s in self.settings if s.title not in seen]
        return f", before {', '.join(dict.fromkeys(left))} could be tried" if left else ""

    def _by_pool(self) -> list[list[int]]:
        """Return the numbers of the settings of every pool. On the first rung, one of each runs."""
        pools: dict[int, list[int]] = {}
        for number, setting in enumerate(self.settings):
            pools.setdefault(id(setting.pool), []).append(number)
        return list(pools.values())

    def _part(self, kept: np.ndarray) -> Given:
        groups = None if self.rows.groups is None else np.asarray(self.rows.groups)[kept]
        return Given(*part_of(kept, *self.rows[:3]), groups)

    def _folds(self, part: Given, seed: int) -> list[Fold]:
        splitter = make_splitter(self.cv, part.y, np.random.RandomState(seed))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class")
            pairs = used_folds(*part[:3], splitter, part.groups)
        return [Fold(*pair) for pair in pairs]

    def _trials(
        self, rung: int, alive: list[int], folds: list[Fold], part: Given, done: Any, left: int
    ) -> Iterator[int]:
        """Fit all settings of a rung, and yield every setting that is complete."""
        tasks = [Task(rung, setting, fold) for setting in alive for fold in folds]
        total = self.found.n_fits + len(tasks) * (1 + left)
        tables: list[np.ndarray] = []
        with closing(self._outcomes(tasks, part)) as outcomes:
            for task, outcome in zip(tasks, outcomes, strict=True):
                self.found.n_fits += 1
                done(task, outcome, total)
                if outcome.table is None:
                    self._leave_out(task.setting, outcome.why)
                else:
                    tables.append(outcome.table)
                if task.fold is folds[-1]:
                    if len(tables) == len(folds):
                        given = self.form.bits, self.sizes, tables
                        rows = len(part.y)
                        self.found.models += tried_models(rung, rows, task.setting, *given)
                    tables = []
                    yield task.setting

    def _leave_out(self, setting: int, why: str) -> None:
        title = self.settings[setting].title
        told = {self.settings[number].title for number in self.found.left_out}
        self.found.left_out[setting] = why
        if title not in told:
            warnings.warn(f"pool {title!r} is left out: {why}", stacklevel=stacklevel_of_user())

    def _outcomes(self, tasks: list[Task], part: Given) -> Generator[Outcome, None, None]:
        """Yield the outcome of every task in order: first those of a checkpoint."""
        kept, self.known = self.known[: len(tasks)], self.known[len(tasks) :]
        yield from kept
        tasks = tasks[len(kept) :]
        scorer = None
        if self.scoring is not None:
            scorer = FoldScorer(self.model, self.scoring, self.rows.y)
        given = self.sizes, self.form, scorer, self.may_fail, *part[:3]
        paths = [(self.path_of(task.setting), task.fold) for task in tasks]
        with closing(independent(_outcome, paths, given, self.n_jobs, self.n_jobs)) as outcomes:
            yield from outcomes

    def path_of(self, setting: int) -> AnyPath:
        """Return the estimator of a setting, not fitted."""
        own = self.settings[setting]
        path: ShareBoostClassifier = clone(self.model).set_params(
            pool=own.pool, alpha=own.alpha, rule=own.rule
        )
        if own.tuning is not None:
            return TunedPath(path, own.tuning)
        return path if own.averaged == 1 else AveragedPath(path, own.averaged)

    def _next(self, alive: list[int], groups: list[list[int]], first: bool) -> list[int]:
        """Return the settings of the next rung. Other penalties and means of a pool join later."""
        models = self.found.last
        largest = min(self.most, max(model.bytes for model in models))
        best = best_scores(models, alive, self.most)
        at_parts = [best_scores(models, alive, largest * part) for part in PARTS]
        kept = [alive[place] for place in survivors(best, at_parts)]
        kept = [setting for setting in kept if setting not in self.found.left_out]
        if not first:
            return kept
        own = [group for setting in kept for group in groups if setting in group]
        turns = zip_longest(*own)  # some pools have more settings, because they can be averaged
        return [number for turn in turns for number in turn if number is not None]


def _outcome(
    n_jobs: int | None,
    path: AnyPath,
    fold: Fold,
    sizes: list[int],
    form: Form,
    scorer: FoldScorer | None,
    may_fail: bool,
    X: Any,
    y: np.ndarray,
    weight: np.ndarray,
) -> Outcome:
    """Run a task. A setting that cannot be fitted has no table, if it may fail."""
    try:
        with Threads(1):  # products of models are small, so more BLAS threads would slow them down
            path.set_params(n_jobs=n_jobs)
            return Outcome(fold_table(path, (X, y, weight), fold, sizes, form, scorer))
    except (TypeError, ValueError) as error:
        if not may_fail:
            raise
        return Outcome(None, str(error).splitlines()[0])
