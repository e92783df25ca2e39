"""`PricedClassifier`: a price on every atom. Folds choose it, or each price gets its own model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _check_sample_weight

from laconic.boost.constraints import dual_value, objective_bound
from laconic.boost.loop import Loop
from laconic.boost.master import Master
from laconic.boost.path import PathEntry, best_of_every_size
from laconic.boost.search_state import SearchState
from laconic.boost.search_subset import SearchSubset
from laconic.boost.stages import State
from laconic.estimators.booster import BoostedClassifier, Ready, Terms
from laconic.estimators.independent import at_the_same_time, independent, whole
from laconic.estimators.scorers import FoldScorer
from laconic.estimators.sizes import one_standard_error, part_of, used_folds
from laconic.estimators.terms import check_prices
from laconic.estimators.tuning import judged_rows
from laconic.look.bars import progress_bar
from laconic.numeric.threads import Threads
from laconic.rows.rows import Rows

# Prices to choose from, highest first. A price is of one atom, for the mean loss.
PRICES = (0.1, 0.05, 0.02, 0.01, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4)
# A relative gap above this means that a limit stopped an exact search.
OPEN = 1e-6

Priced = TypeVar("Priced", bound="PricedClassifier")


class PricedClassifier(BoostedClassifier):
    """An estimator that pays a price for every atom: prices, bounds, paths of models.

    A subclass implements `_master`, `_search_over` and `_loop_of`. It calls `_keep_proof` before a
    size is used.
    """

    price: Any
    l1: float
    hot_start: int
    max_rounds: int
    price_: float
    rounds_: list[PathEntry]
    dual_value_: float
    _search_bounds: dict[int, float]

    def _master(self, rows: Rows, ready: Ready, terms: Terms) -> Master:
        """Return the problem over the atoms taken."""
        raise NotImplementedError

    def _search_over(self, master: Master, terms: Terms, **changed: Any) -> SearchSubset:
        """Return the settling stage with this estimator's settings, some of them changed."""
        raise NotImplementedError

    def _loop_of(self, settle: SearchSubset, ready: Ready, terms: Terms) -> Loop:
        """Return the loop with this settling stage."""
        raise NotImplementedError

    def _loop(self, rows: Rows, ready: Ready, terms: Terms) -> Loop:
        settle = self._search_over(self._master(rows, ready, terms), terms)
        return self._loop_of(settle, ready, terms)

    # -- prices --------------------------------------------------------------------------------

    def _check_own(self) -> None:
        self.__dict__.pop("price_", None)  # of an earlier fit
        if check_prices(self.price) is not None and self.cv is None:
            raise ValueError("only cross-validation chooses from several prices; set cv")

    def _price(self) -> float:
        """Return the price of an atom: the one given, or the one that folds chose."""
        return float(getattr(self, "price_", self.price))

    def _folds_choose_settings(self) -> bool:
        return check_prices(self.price) is not None

    def _cross_validate(self, ready: Ready, sample_weight: Any, groups: Any) -> np.ndarray:
        """Return the score on every fold of every price, or of every size if there is one price."""
        prices = check_prices(self.price)
        if prices is None:
            return super()._cross_validate(ready, sample_weight, groups)
        fold = self._of_a_fold(ready).set_params(price=prices[0])
        given = ready.X, ready.y, prices, self.cv, self.scoring, sample_weight, groups
        scores = cross_validate_prices(fold, *given, verbose=self.verbose)
        self.price_ = prices[one_standard_error(scores)]
        return scores

    def _size_of_folds(self, size: int, path: list[PathEntry]) -> int:
        if check_prices(self.price) is not None:
            return size  # the folds have chosen the price
        return super()._size_of_folds(size, path)

    # -- what is kept --------------------------------------------------------------------------

    def _entries(self, loop: Loop, state: State) -> list[PathEntry]:
        """Return the best model of every size within the caps. (Hot starts do not keep them.)"""
        most, costs = self._largest()[0], loop.record.costs

        def allowed(entry: PathEntry) -> bool:
            return entry.size <= most and costs.allows(entry.numbers)

        return best_of_every_size(state.entries, SearchState.of(state).offered, allowed)

    def _kept_beside(self, state: State) -> list[PathEntry]:
        return state.entries

    def _size(self, state: State, path: list[PathEntry]) -> int:
        """Return the size of the last round.

        A hot start that was stopped has no caps. Its last round may be beyond them. Then the size
        is the largest of the path.
        """
        last = state.entries[-1]  # the path may have a tuned entry in its place
        return last.size if any(e.numbers == last.numbers for e in path) else path[-1].size

    def _keep_proof(self, loop: Loop, state: State) -> None:
        """Keep every round, and the bounds that hold for all weights over the pool."""
        bound, last = SearchState.of(state).bound, state.entries[-1]
        if not any(entry is last for entry in self.path_):
            bound = -np.inf  # it is of other weights than those in use
        self.price_ = self._price()
        self.rounds_ = state.entries
        self.dual_value_ = dual_value(state.entries, self.l1)
        proven = self.dual_value_, self.price_, loop.record.costs
        self.bound_ = objective_bound(state.entries[0], *proven)
        self._search_bounds = {self._size(state, list(self.path_)): bound}
        value = last.objective + self._charge(last)
        if np.isfinite(bound) and value - bound > OPEN * value:
            self.status_ += "; the exact search reached its limits; see search_bound_"

    def _charge(self, entry: PathEntry) -> float:
        """Return the price of an entry's atoms. Atoms that are always in are free."""
        return self.price_ * (entry.cost - self.rounds_[0].cost)

    def _use(self, size: int) -> None:
        """Use the path's model of ``size`` atoms, with its objective and bounds."""
        super()._use(size)
        self.objective_ = self.path_[size].objective + self._charge(self.path_[size])
        # The dual value is of the atoms of the pool, and tuned atoms are others.
        tuned = self.path_.is_tuned(size)
        self.duality_gap_ = np.nan if tuned else self.objective_ - self.dual_value_
        self.search_bound_ = self._search_bounds.get(size, -np.inf)

    # -- several models -----------------------------------------------------------------------

    def fit_path(
        self: Priced,
        X: Any,
        y: Any,
        *,
        price: Iterable[float] | None = None,
        l1: Iterable[float] | None = None,
        sample_weight: Any = None,
    ) -> list[Priced]:
        """Fit one model for every price, or for every l1, and share the work between them.

        Models of different prices share the hot start and its search. Each is the same as if it
        were fitted alone. With several ``l1``, the largest comes first, and each fit starts from
        the atoms of the one before. These atoms count among the ``max_rounds``.

        Returns
        -------
        list of estimators like this one
            The fitted models, in the order given. This estimator itself is not fitted.
        """
        if (price is None) == (l1 is None):
            both = "" if price is None else ", not both"
            raise ValueError(f"give a sequence of prices or a sequence of l1{both}")
        if self.checkpoint is not None:
            raise ValueError("fit_path takes no checkpoint; to use one, fit the models one by one")
        if self.cv is not None:
            raise ValueError(
                "fit_path fits a model for every value and takes no cv; to choose a price by cv, "
                "call fit with price=[...] and cv"
            )
        name, values = ("price", price) if price is not None else ("l1", l1)
        if not isinstance(values, Iterable):
            raise TypeError(f"{name} must be a sequence, such as [{values!r}], not {values!r}")
        return list(fitted_path(self, X, y, sample_weight, name, values))


def cross_validate_prices(
    estimator: Any,
    X: Any,
    y: Any,
    prices: Sequence[float],
    cv: Any,
    scoring: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    verbose: int = 0,
) -> np.ndarray:
    """Return the score of a `PricedClassifier` at every price on every fold, (n_folds, n_prices).

    ``verbose=1`` shows a progress bar over all folds and prices.
    """
    y, scores = np.asarray(y), []
    scorer = FoldScorer(estimator, scoring, y)
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    folds = used_folds(X, y, weight, cv, groups)
    with progress_bar("{task.fields[unit]}") if verbose else nullcontext() as bar:
        if bar is not None:
            unit = f"fits: {len(folds)} folds of {len(prices)} prices"
            task = bar.add_task("choosing the price", total=len(folds) * len(prices), unit=unit)
        # Folds that run elsewhere cannot tell the bar of each price.
        alone = not at_the_same_time(None, len(folds))
        step = partial(bar.advance, task) if bar is not None and alone else None
        shared = estimator, prices, step, scorer, X, y, weight
        for found in independent(_scores_of_fold, folds, shared, threads=estimator.n_jobs):
            scores.append(found)
            if bar is not None:
                bar.update(task, completed=len(scores) * len(prices))
    return np.array(scores)


def _scores_of_fold(
    n_jobs: int | None,
    number: int,
    fit: np.ndarray,
    test: np.ndarray,
    estimator: Any,
    prices: Sequence[float],
    step: Callable[[], None] | None,
    scorer: FoldScorer,
    X: Any,
    y: np.ndarray,
    weight: np.ndarray,
) -> list[float]:
    """Return the score at every price on a fold. ``step`` is called after every fit."""
    fold, models = clone(estimator).set_params(n_jobs=n_jobs), []
    for model in fitted_path(fold, *part_of(fit, X, y, weight), "price", prices):
        models.append(whole(model))
        if step is not None:
            step()
    rows = part_of(test, X, y, weight)
    return [scorer(number, model, *rows) for model in models]


# Attributes that a fit sets from the data before the loop runs.
_OF_DATA = (
    "classes_", "loss_", "class_prior_", "_class_factors", "n_features_in_", "feature_names_in_",
    "_categories", "_units",
)  # fmt: skip


def fitted_path(
    estimator: Priced,
    X: Any,
    y: Any,
    sample_weight: Any,
    name: str,
    values: Iterable[float],
) -> Iterator[Priced]:
    """Yield one fitted model for each value of ``price`` or ``l1``, in the order of the values.

    Models of prices are yielded as soon as they are fitted, models of ``l1`` after all are.
    """
    models = [clone(estimator).set_params(**{name: float(value)}) for value in values]
    for model in models:
        model._validate_params()
    if not models:
        return
    with Threads(estimator.n_jobs) as threads:
        shared = clone(estimator).set_params(**{name: models[0].get_params()[name]})
        shared._check_fit(None)
        ready = shared._prepared(X, y, sample_weight)
        ready, judged = judged_rows(shared, ready)
        rows = shared._rows(ready, threads)
        terms = shared._terms(rows, ready)
        known = {name: getattr(shared, name) for name in _OF_DATA if hasattr(shared, name)}
        for model in models:
            model.__dict__.update(known)
        given = rows, ready, judged, terms, threads
        if name == "price":
            yield from _at_prices(shared, models, *given)
        else:
            _at_l1(models, *given)
            yield from models


def _at_prices(
    shared: Priced,
    models: list[Priced],
    rows: Rows,
    ready: Ready,
    judged: Any,
    terms: Terms,
    threads: Threads,
) -> Iterator[Priced]:
    """Fit every price from the same hot start.

    The search over all sizes of the hot start is done once.
    """
    master = shared._master(rows, ready, terms)
    hot = min(shared.hot_start, shared.max_rounds)
    settle = shared._search_over(master, terms, search=None, max_rounds=hot)
    hot_start = shared._loop_of(settle, ready, terms)
    start = hot_start.begin()
    if hot:
        hot_start.grow(start)
    for model in models:
        sizes, settle = settle.sizes, model._search_over(master, terms)
        settle.sizes = sizes
        state, loop = start.copy(), model._loop_of(settle, ready, terms)
        model._run(loop, state)
        tuned = model._tuned(ready, judged, loop, state, threads)
        _keep(model, loop, state, ready, rows, tuned)
        yield model


def _at_l1(
    models: list[Priced],
    rows: Rows,
    ready: Ready,
    judged: Any,
    terms: Terms,
    threads: Threads,
) -> None:
    """Fit every l1, each from the model of the next larger l1."""
    start: tuple[int, ...] = ()
    for model in sorted(models, key=lambda m: -m.l1):
        settle = model._search_over(model._master(rows, ready, terms), terms)
        loop = model._loop_of(settle, ready, terms)
        state = settle.refitted([n for n in start if n not in terms.include])
        model._run(loop, state)
        tuned = model._tuned(ready, judged, loop, state, threads)
        _keep(model, loop, state, ready, rows, tuned)
        start = state.entries[-1].numbers


def _keep(
    model: Priced,
    loop: Loop,
    state: State,
    ready: Ready,
    rows: Rows,
    tuned: dict[int, PathEntry],
) -> None:
    """Set the fitted attributes. A question to a cluster counts for the next model that is kept."""
    model._keep(loop, state, ready.held, tuned)
    if rows.exchanges is not None:
        model.exchanges_ = rows.exchanges.taken()
