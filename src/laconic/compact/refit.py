"""The models of the frontier, fitted to all rows, in the form that ships."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from laconic.compact.averages import cost_of
from laconic.compact.checked import compared_rows
from laconic.compact.frontier import Tried
from laconic.compact.search import Search
from laconic.compact.trials import FLOAT, AnyPath, model_at, promised_bytes
from laconic.data.doubts import stacklevel_of_user
from laconic.estimators.independent import quiet_fits, whole
from laconic.estimators.share import ShareBoostClassifier
from laconic.model.choose_codes import TooWide
from laconic.model.integer_predictor import IntegerPredictor, change_of
from laconic.model.predictor import Predictor


class FrontierModel(NamedTuple):
    """A model of the frontier. ``tried`` has its scores in cross-validation."""

    tried: Tried
    predictor: Any
    bytes: int
    costs: Any
    cost: float

    @property
    def score(self) -> float:
        """The score in cross-validation."""
        return self.tried.score


def fit_frontier(
    search: Search,
    wanted: list[Tried],
    named: Callable[[ShareBoostClassifier], Predictor],
    n_jobs: int | None,
    done: Callable[[str], None],
) -> dict[Tried, FrontierModel]:
    """Fit one path to all rows for each setting, and return the wanted models.

    ``named`` gives a predictor the names, categories and units of the rows. ``done`` is called with
    the pool of every path. The setting of the first wanted model comes first. After that, Ctrl-C
    keeps what is fitted.
    """
    rows, found = search.rows, {}
    for setting in dict.fromkeys(tried.setting for tried in wanted):
        own = [tried for tried in wanted if tried.setting == setting]
        path = search.path_of(setting)
        path.set_params(max_atoms=max(tried.size for tried in own), n_jobs=n_jobs)
        try:
            with quiet_fits():
                whole(path.fit(rows.X, rows.y, rows.weight))
        except KeyboardInterrupt:
            if wanted[0] not in found:
                raise
            warnings.warn(
                "fit was interrupted; the frontier lacks models", stacklevel=stacklevel_of_user()
            )
            search.found.status = "interrupted"
            break
        for tried in own:
            if (model := _model(search, tried, path, named)) is not None:
                found[tried] = model
        done(search.settings[setting].title)
    return found


def _model(
    search: Search,
    tried: Tried,
    path: AnyPath,
    named: Callable[[ShareBoostClassifier], Predictor],
) -> FrontierModel | None:
    """Return one model of a path, or None if it does not fit the budget or the integers."""
    target = search.form.target(tried.bits)
    _, model = model_at(path, tried.size, target, search.most)
    if model is None:
        return None
    predictor: Any = named(model)
    if tried.bits != FLOAT:
        X, y, weight, _ = search.rows
        # The rows are encoded already, so this predictor must not know the units of dates.
        bare = model.predictor_
        try:
            integers = search.form.shipped(bare, X, weight, tried.bits).integers
        except TooWide as error:
            warnings.warn(
                f"a model of the frontier is left out: {error}", stacklevel=stacklevel_of_user()
            )
            return None
        some = compared_rows(weight)
        change = change_of(bare, integers, X[some], y[some], weight[some])
        predictor = IntegerPredictor.of(predictor, integers, change)
    took = promised_bytes(model.predictor_, target)
    return FrontierModel(tried, predictor, took, *cost_of(model))
