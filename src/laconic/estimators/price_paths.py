"""Models of TotalQBoost at several prices, or several l1, that share what they have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from laconic.boost.search_subset import SearchSubset
from laconic.estimators.booster import Ready, Terms
from laconic.numeric.threads import Threads
from laconic.rows.rows import Rows

if TYPE_CHECKING:
    from laconic.estimators.totalq import TotalQBoostClassifier

# What a fit learns of the data before the loop runs.
_OF_DATA = (
    "classes_", "loss_", "class_prior_", "_class_factors", "n_features_in_", "feature_names_in_",
    "_categories", "_units",
)  # fmt: skip


def fitted_path(
    estimator: TotalQBoostClassifier,
    X: Any,
    y: Any,
    sample_weight: Any,
    name: str,
    values: Iterable[float],
) -> Iterator[TotalQBoostClassifier]:
    """One model for each value of ``price`` or ``l1``; those of prices as each is fitted."""
    models = [clone(estimator).set_params(**{name: float(value)}) for value in values]
    for model in models:
        model._validate_params()
    if not models:
        return
    with Threads(estimator.n_jobs) as threads:
        shared = clone(estimator).set_params(**{name: models[0].get_params()[name]})
        shared._check_fit(None)
        ready = shared._prepared(X, y, sample_weight)
        rows = shared._rows(ready, threads)
        terms = shared._terms(rows.pool)
        known = {name: getattr(shared, name) for name in _OF_DATA if hasattr(shared, name)}
        for model in models:
            model.__dict__.update(known)
        if name == "price":
            yield from _at_prices(shared, models, rows, ready, terms)
        else:
            _at_l1(models, rows, ready, terms)
            yield from models


def _at_prices(
    shared: TotalQBoostClassifier,
    models: list[TotalQBoostClassifier],
    rows: Rows,
    ready: Ready,
    terms: Terms,
) -> Iterator[TotalQBoostClassifier]:
    """Every price from the same hot start; the search over its sizes is done once."""
    master = shared._master(rows, ready, terms)
    hot = min(shared.hot_start, shared.max_rounds)
    hot_start = shared._loop_over(master, ready, terms, search=None, max_rounds=hot)
    start = hot_start.begin()
    if hot:
        hot_start.grow(start)
    found = None
    for model in models:
        state = start.copy()
        loop = model._loop_over(master, ready, terms)
        assert isinstance(loop.settle, SearchSubset)
        loop.settle.sizes = loop.settle.sizes if found is None else found
        model._run(loop, state)
        model._keep(loop, state, ready.held)
        found = loop.settle.sizes
        yield model


def _at_l1(models: list[TotalQBoostClassifier], rows: Rows, ready: Ready, terms: Terms) -> None:
    """Every l1 from the model of the next larger one."""
    start: tuple[int, ...] = ()
    for model in sorted(models, key=lambda m: -m.l1):
        loop = model._loop(rows, ready, terms)
        assert isinstance(loop.settle, SearchSubset)
        state = loop.settle.refitted([n for n in start if n not in terms.include])
        model._run(loop, state)
        model._keep(loop, state, ready.held)
        start = state.entries[-1].numbers
