"""`BoostedClassifier`: the parts of `fit` that the estimators with the boosting loop share."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _check_sample_weight

from laconic.boost.checkpoint import Checkpoint
from laconic.boost.costs import Costs
from laconic.boost.held_out import HeldOut
from laconic.boost.loop import Hook, Loop
from laconic.boost.path import Path, PathEntry
from laconic.boost.propose import Admissible
from laconic.boost.stages import State
from laconic.data.doubts import stacklevel_of_user
from laconic.data.elsewhere import is_on_device
from laconic.data.fingerprint import fingerprint, settings_of
from laconic.data.labels import held_out_rows, normalised_weights
from laconic.estimators.budgets import check_caps, in_order, make_costs, resolve_target
from laconic.estimators.on_device import (
    TrainingOnDevice,
    asked_device,
    brought,
    check_pool,
    checked,
)
from laconic.estimators.path_classifier import PathClassifier
from laconic.estimators.prepared import prepared, takes_parts
from laconic.estimators.sizes import cross_validate_sizes, one_standard_error
from laconic.estimators.terms import check_base_terms, check_repeatable, resolve_atoms
from laconic.estimators.training import Training, TrainingInMemory
from laconic.estimators.tuning import (
    asked_sizes,
    asked_tuning,
    given_to_tuner,
    judged_rows,
    mark_of_tuning,
    may_grow,
    moving,
    shown,
    tuned_path,
    tuning_of_a_fold,
)
from laconic.export.footprint import Target, find_target
from laconic.look.parts_bar import parts_progress
from laconic.look.progress import Shown, progress
from laconic.losses import Loss
from laconic.numeric.namespaces import to_host
from laconic.numeric.threads import Threads
from laconic.pools import Pool, make_pool
from laconic.rows.asked import RowsAsked
from laconic.rows.rows import Rows
from laconic.tune.kept import KeptTuning

Self = TypeVar("Self", bound="BoostedClassifier")


class Ready(NamedTuple):
    """The checked input: all rows if they are here, and the rows to learn from."""

    X: Any
    y: np.ndarray
    pool: Pool
    loss: Loss
    training: Training
    held: HeldOut | None
    target: Target | None
    """What the bytes of a model are counted for, if they have a cap."""
    hooks: tuple[Hook, ...] = ()
    """Are called after every round, before the user's callbacks."""


class Terms(NamedTuple):
    """The atoms that must, may and must not be in the model, and what they cost."""

    include: list[int]
    admissible: Admissible

    @property
    def costs(self) -> Costs:
        """What models cost."""
        return self.admissible.costs


class BoostedClassifier(PathClassifier):
    """An estimator that runs the loop: checks, held-out rows, folds, checkpoints, Ctrl-C.

    A subclass implements `_check_own`, `_pool_object`, `_loss_of`, `_largest`, `_loop`,
    `_fingerprinted`, `_entries` and `_finish`.
    """

    _limits_of_fit: tuple[str, ...] = ()
    """Settings that say how far a fit goes or which size it uses, but not what it finds."""
    _signs = False
    """Whether columns of 0 and 1 are treated as columns of -1 and 1."""
    _minimal = False
    """Whether the objective is the answer, so that the weights of tuned atoms must minimise it."""

    scale: str | None
    groups: Any
    costs: Any
    max_cost: float | None
    max_features: int | None
    max_operations: float | None
    max_bytes: int | None
    chip: Any
    include: Any
    exclude: Any
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    cv: Any
    scoring: Any
    class_weight: Any
    checkpoint: Any
    callbacks: Any
    random_state: Any
    n_jobs: int | None
    verbose: int
    fit_intercept: bool
    tune: Any
    device: Any

    # -- for subclasses to override ------------------------------------------------------------

    def _check_own(self) -> None:
        """Refuse wrong settings of the subclass before looking at the data."""

    def _pool_object(self) -> Any:
        """Return the pool to use, in a form that `make_pool` takes."""
        return self.pool

    def _loss_of(self, total: float) -> Loss:
        """Return the loss, and set ``loss_``.

        It is called when the classes and ``total``, the sum of the weights, are known.
        """
        raise NotImplementedError

    def _largest(self) -> tuple[int, int]:
        """Return the largest number of atoms and the largest number of rounds."""
        raise NotImplementedError

    def _loop(self, rows: Rows, ready: Ready, terms: Terms) -> Loop:
        """Return the loop with this estimator's stages."""
        raise NotImplementedError

    def _fingerprinted(self) -> dict[str, Any]:
        """Return what the result depends on besides the settings."""
        return {}

    def _hooks(self, ready: Ready) -> list[Hook]:
        """Return what is called after every round."""
        return [*ready.hooks, *(self.callbacks or ())]

    def _finish(self, loop: Loop, state: State, shown: Shown) -> None:
        """Run the loop, and any steps after it."""
        loop.grow(state)

    def _entries(self, loop: Loop, state: State) -> list[PathEntry]:
        """Return the path of a finished state, smallest size first."""
        raise NotImplementedError

    def _folds_choose_settings(self) -> bool:
        """Return whether folds choose a setting that the fit depends on.

        The checkpoint then depends on it too, so the folds must run before the checkpoint is
        opened.
        """
        return False

    def _kept_beside(self, state: State) -> list[PathEntry]:
        """Return entries that are kept in addition to the path."""
        return []

    def _size(self, state: State, path: list[PathEntry]) -> int:
        """Return the size to use if neither held-out rows nor folds choose it."""
        return path[-1].size

    # -- fitting -------------------------------------------------------------------------------

    def _fit(self: Self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Self:
        """Check the input, cross-validate, run the loop, and keep the result."""
        self._check_fit(groups)
        with parts_progress(self.verbose):
            return self._fit_checked(X, y, sample_weight, groups)

    def _fit_checked(self: Self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Self:
        """Fit with settings that were checked."""
        ready = self._prepared(X, y, sample_weight)
        (ready, judged), mark = judged_rows(self, ready), mark_of_tuning(self)
        folds_first = self.cv is not None and self._folds_choose_settings()
        if folds_first:
            self.cv_scores_ = self._cross_validate(ready, sample_weight, groups)
        # The folds take long, so refuse a checkpoint that cannot be used before they run.
        with self._saver(ready, judged) as saver:
            if self.cv is not None and not folds_first:
                self.cv_scores_ = self._cross_validate(ready, sample_weight, groups)
            with Threads(self.n_jobs) as threads:
                rows = self._rows(ready, threads)
                loop = self._loop(rows, ready, self._terms(rows, ready))
                state = loop.begin()
                if saver is not None:
                    state = saver.resume(rows.pool, rows.n_outputs, loop.settle)
                    loop.hooks.insert(len(ready.hooks), saver)  # a round may be refused first
                kept = KeptTuning(saver, mark, ready.hooks)
                self._run(loop, state)
                tuned = self._tuned(ready, judged, loop, state, threads, kept)
        if rows.exchanges is not None:
            self.exchanges_ = rows.exchanges
        self._keep(loop, state, ready.held, tuned)
        return self

    def _check_fit(self, groups: Any) -> None:
        """Refuse wrong arguments before looking at the data."""
        self._check_settings()
        for chosen in ("cv_scores_", "validation_losses_", "exchanges_"):  # of an earlier fit
            self.__dict__.pop(chosen, None)
        if self.cv is not None and self.early_stopping:
            raise ValueError("cv and early_stopping both choose the size; set only one of them")
        for given, name in ((self.scoring, "scoring"), (groups, "groups")):
            if given is not None and self.cv is None:
                raise ValueError(f"{name} is for cross-validation; set cv too, or leave it out")
        find_target(self.chip)
        self._check_own()
        if asked_device(self) is not None:
            check_pool(self)
        asked_tuning(self)

    def _draws(self) -> tuple[str, str] | None:
        draws = {
            "early_stopping": self.early_stopping,
            "tune": self.tune is not False and getattr(self.tune, "joint", True),
        }
        for name in filter(draws.get, draws):
            return f"of a fit with {name}", "holds out the same rows"
        return None

    def _prepared(self, X: Any, y: Any, sample_weight: Any) -> Ready:
        """Check the data, and hold out rows if that is asked for."""
        X, device = brought(self, X)
        if is_on_device(X):
            return self._prepared_there(X, y, sample_weight)
        if device is None and takes_parts(self, X):
            return self._prepared_parts(X, y, sample_weight)
        y, sample_weight = to_host(y), to_host(sample_weight)
        target = self._target(X)
        X, y = self._validated(X, y, reset=True, weight=sample_weight)
        pool = make_pool(self._pool_object(), self.scale, self.groups, list(self._categories))
        check_repeatable(pool, self.checkpoint)
        rows, codes, weight, total = normalised_weights(self, X, y, sample_weight)
        loss = self._loss_of(total)
        held: HeldOut | None = None
        if self.early_stopping:
            rows, codes, weight, kept = held_out_rows(self, rows, codes, weight)
            held = HeldOut(*kept, loss, self.n_iter_no_change)
        training: Training = TrainingInMemory(rows, codes, weight)
        if device is not None:
            training = TrainingOnDevice(rows, codes, weight, device)
        return Ready(X, y, pool, loss, training, held, target)

    def _prepared_there(self, X: Any, y: Any, sample_weight: Any) -> Ready:
        """Check rows that are on a device."""
        check_pool(self)
        found = checked(self, X, y, sample_weight)
        pool = make_pool(self._pool_object(), self.scale, self.groups, [])
        check_repeatable(pool, self.checkpoint)
        loss, target = self._loss_of(found.total), self._target(found.few)
        held = None if found.held is None else HeldOut(*found.held, loss, self.n_iter_no_change)
        return Ready(None, np.empty(0), pool, loss, found.training, held, target)

    def _prepared_parts(self, X: Any, y: Any, sample_weight: Any) -> Ready:
        """Check rows that are elsewhere."""
        found = prepared(self, X, y, sample_weight)
        check_repeatable(found.pool, self.checkpoint)
        loss, target = self._loss_of(found.total), self._target(found.first)
        seen = None, np.empty(0)
        return Ready(*seen, found.pool, loss, found.training, None, target, found.hooks)

    def _target(self, X: Any) -> Target | None:
        """Return what the bytes of a model are counted for, if they have a cap."""
        return None if self.max_bytes is None else resolve_target(self.chip, X)

    def _rows(self, ready: Ready, threads: Threads) -> Rows:
        """Return the pool bound to the rows to learn from."""
        n_outputs = ready.loss.n_outputs(len(self.classes_))
        settings = n_outputs, threads, self.fit_intercept, self._limits
        asked = RowsAsked(ready.pool, self._signs, ready.loss, *settings, moving(self) is not None)
        return ready.training.rows(asked)

    def _terms(self, rows: Rows, ready: Ready) -> Terms:
        """Return the costs, and the atoms that are always or never in the model."""
        pool, names = rows.pool, getattr(self, "feature_names_in_", None)
        costs = make_costs(self, rows, ready.target, names)
        include = resolve_atoms(self.include, pool, names, "include").tolist()
        exclude = resolve_atoms(self.exclude, pool, names, "exclude")
        check_base_terms(np.array(include, int), exclude, self._largest()[0])
        check_caps(costs, include)
        return Terms(include, Admissible(exclude, costs))

    def _saver(self, ready: Ready, judged: Any) -> AbstractContextManager[Checkpoint | None]:
        """Return the checkpoint, or an empty context if there is none.

        Rows that are held out count as data, too: they choose the size, or judge tuned atoms.
        """
        if self.checkpoint is None:
            return nullcontext()
        names = getattr(self, "feature_names_in_", None)
        settings = settings_of(self, *self._limits_of_fit)
        # A feature may be given by name or by number. Both must give the same fingerprint.
        settings |= {name: self._by_number(name) for name in ("include", "exclude")}
        costs = in_order(self.costs, names, self.n_features_in_)
        settings |= {"costs": costs, "categorical": [*self._categories], "units": self._units}
        settings["chip"] = ready.target
        settings |= self._fingerprinted()
        if (held := ready.held) is not None:
            own = to_host(held.X), to_host(held.y), to_host(held.weight)
            settings["held out"] = fingerprint(*own, {})
        mark = (judged or ready.training).fingerprint(settings)
        return Checkpoint(self.checkpoint, mark, self._save_every)

    def _by_number(self, argument: str) -> list[Any]:
        """Return the items of an include or exclude list, with numbers for feature names."""
        names = list(getattr(self, "feature_names_in_", ()))
        listed = getattr(self, argument) or ()
        return [names.index(i) if isinstance(i, str) and i in names else i for i in listed]

    def _run(self, loop: Loop, state: State) -> None:
        """Run the loop from the given state. After Ctrl-C, keep what was learned."""
        with self._progress() as shown:
            loop.hooks.append(shown)

            def kept() -> str | None:
                return f"{state.entries[-1].size} atoms" if state.entries else None

            self._until_interrupted(lambda: self._finish(loop, state, shown), state, kept)

    def _progress(self) -> AbstractContextManager[Shown]:
        return progress(self.verbose, self._largest()[1], False)

    # -- folds ---------------------------------------------------------------------------------

    def _cross_validate(self, ready: Ready, sample_weight: Any, groups: Any) -> np.ndarray:
        """Return the score of every size on every fold."""
        weight = _check_sample_weight(
            to_host(sample_weight), ready.X, dtype=np.float64, ensure_non_negative=True
        )
        given = ready.X, ready.y, weight, self.cv, self.scoring, groups
        return cross_validate_sizes(self._of_a_fold(ready), *given)

    def _of_a_fold(self: Self, ready: Ready) -> Self:
        """Return a copy of this estimator for the rows of a fold.

        These rows are arrays without feature names, so names in its settings become numbers. They
        are fewer, and are cut into shards in proportion.
        """
        assert isinstance(ready.training, TrainingInMemory | TrainingOnDevice)
        only_once = ("cv", "scoring", "checkpoint", "callbacks")
        # A generator of folds cannot be cloned, so cv is removed before cloning.
        fold = clone(
            copy(self).set_params(
                verbose=0, tune=tuning_of_a_fold(self), **dict.fromkeys(only_once)
            )
        )
        fold._limits = self._limits._replace(rows=len(ready.training.codes))
        if self._categories:
            pool = make_pool(self._pool_object(), self.scale, self.groups, list(self._categories))
            fold.set_params(pool=pool)
        names = list(getattr(self, "feature_names_in_", ()))
        fold.set_params(costs=in_order(self.costs, names or None, self.n_features_in_))
        if ready.target is not None:
            fold.set_params(chip=ready.target)  # it knows the type of the features as given
        for argument in ("include", "exclude"):
            fold.set_params(**{argument: self._by_number(argument) or None})
        return fold

    # -- what is kept --------------------------------------------------------------------------

    def _tuned(
        self,
        ready: Ready,
        judged: Any,
        loop: Loop,
        state: State,
        threads: Threads,
        kept: KeptTuning | None = None,
    ) -> dict[int, PathEntry]:
        """Return the accepted tuned entries by size. After Ctrl-C, those that were finished.

        ``kept`` is what a checkpoint knows of tuning.
        """
        tuning, found = asked_tuning(self), dict[int, PathEntry]()
        if tuning is None or not tuning.joint or state.status == "interrupted":
            return found
        from laconic.tune.path import Tuner

        kept = kept or KeptTuning(None, "")
        path = self._entries(loop, state)
        sizes = asked_sizes(tuning, path, self._chosen_size(state, path, ready.held))
        given = given_to_tuner(self, ready, judged, loop, threads)
        with shown(self.verbose) as told, kept:
            tuner = Tuner(given, tuning, may_grow(self, tuning), told, kept)

            def what() -> str:
                sizes = "size" if len(found) == 1 else "sizes"
                return f"{len(found)} tuned {sizes}, and the others as they were chosen"

            self._until_interrupted(lambda: tuned_path(tuner, path, sizes, found), state, what)
        return found

    def _keep(
        self,
        loop: Loop,
        state: State,
        held: HeldOut | None,
        tuned: Mapping[int, PathEntry] = MappingProxyType({}),
    ) -> None:
        """Set the fitted attributes from the loop's state, and from tuned entries by size."""
        chosen = self._entries(loop, state)
        path = [tuned.get(entry.size, entry) for entry in chosen]
        tuning = asked_tuning(self)
        self.path_ = Path(path, Path(chosen) if tuning is not None and tuning.joint else None)
        self._keep_asked([*path, *self._kept_beside(state)])
        self.status_ = state.status
        if held is not None:
            self.validation_losses_ = np.array([held.loss(entry) for entry in path])
        size = self._chosen_size(state, path, held)
        self._keep_own(loop, state, size)
        self._use(size)

    def _chosen_size(self, state: State, path: list[PathEntry], held: HeldOut | None) -> int:
        """Return the size that is used: by held-out rows, by folds, or by the subclass."""
        size = self._size(state, path)
        if held is not None:
            size = path[int(np.argmin([held.loss(entry) for entry in path]))].size
        if self.cv is not None:
            size = self._size_of_folds(size, path)
        return size

    def _keep_own(self, loop: Loop, state: State, size: int) -> None:
        """Keep what only the subclass has, and give its warnings."""

    def _size_of_folds(self, size: int, path: list[PathEntry]) -> int:
        """Return the smallest size whose score is within one standard error of the best."""
        most = min(size, path[0].size + one_standard_error(self.cv_scores_))
        size = max(entry.size for entry in path if entry.size <= most)
        if size == 0:
            warnings.warn(
                "cross-validation chooses no atom, so the model predicts the same for every row. "
                "No size is clearly better by accuracy, or by the scoring given. If one class is "
                'rare, try scoring="roc_auc" or "average_precision".',
                stacklevel=stacklevel_of_user(),
            )
        return size
