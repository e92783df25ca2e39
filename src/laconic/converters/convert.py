"""Turn a fitted model of scikit-learn or LightGBM into a predictor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from laconic.converters.columns import Column, Value, WordCodes
from laconic.converters.front import after
from laconic.converters.light import booster, classifier
from laconic.converters.linear import Converted, linear
from laconic.converters.stumps import ada_boost, gradient_boosting, hist_gradient_boosting
from laconic.model.predictor import Predictor


def convert(
    model: Any, feature_names: Sequence[str] | None = None, missing: bool = True
) -> Predictor:
    """Return a fitted model of scikit-learn or LightGBM as a predictor with the same decisions.

    The predictor quantises, exports to C, saves, and prints a card, like that of a Laconic
    estimator. It holds neither the model nor its library.

    Parameters
    ----------
    model : estimator or Booster
        One of these, fitted, alone or as the last step of a ``Pipeline``:

        * a linear classifier: LogisticRegression, LinearSVC, RidgeClassifier, SGDClassifier,
          Perceptron, LinearDiscriminantAnalysis;
        * an ensemble of trees with at most one split each: AdaBoostClassifier,
          GradientBoostingClassifier, HistGradientBoostingClassifier, LGBMClassifier, or a Booster
          of LightGBM.

        Steps before it may be StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler,
        SimpleImputer, OneHotEncoder, selectors of columns, and a ColumnTransformer of these. Of a
        search such as GridSearchCV, the best model is converted.
    feature_names : sequence of str, optional
        Names of the columns of X. By default they are those that the model was fitted with. With
        names, the predictor finds the columns of a data frame by name. LightGBM writes ``_`` for
        spaces in names; give ``feature_names=X.columns`` to keep them.
    missing : bool, default=True
        Whether the rows to predict may have missing values. Most ensembles, and pipelines with an
        imputer, know what to do with a missing value in any feature. If your rows have none, set
        ``missing=False``. The predictor is then smaller.

    Returns
    -------
    Predictor
        If the model reads text columns, give it data frames.

    Raises
    ------
    TypeError, ValueError
        If the model cannot be converted. The message says why, and what would do.

    Notes
    -----
    Stumps decide as the model does for every float64 input, also right at a threshold. Sums may
    differ in their last digits. So a row whose best two scores are equal up to rounding may get
    the other label.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    >>> predictor = convert(model)
    >>> bool((predictor.predict(X) == model.predict(X)).all())
    True
    """
    if isinstance(model, Predictor):
        return model
    if isinstance(getattr(model, "predictor_", None), Predictor):
        own: Predictor = model.predictor_
        return own
    if not hasattr(model, "predict"):
        raise TypeError(f"convert needs a fitted classifier, not {type(model).__name__}")
    model = _unwrapped(model)
    n_features, names = _inputs(model)
    if feature_names is not None:
        names = [str(name) for name in feature_names]
        if len(names) != n_features:
            raise ValueError(f"feature_names must have {n_features} names, not {len(names)}")
    words, columns = WordCodes(), [Value(f) for f in range(n_features)]
    terms, classes, loss = _converted(model, list(columns), words)
    if len(classes) < 2:
        raise ValueError("the model knows only one class; a predictor needs two or more")
    return terms.predictor(classes, loss, n_features, names, words.codes, missing)


def _converted(model: Any, columns: list[Column], words: WordCodes) -> Converted:
    if _is(model, "Pipeline"):
        for _, step in model.steps[:-1]:
            columns = after(step, columns, words)
        return _converted(_unwrapped(model.steps[-1][1]), columns, words)
    for kind in type(model).__mro__:
        make = _MODELS.get((kind.__module__.partition(".")[0], kind.__name__))
        if make is not None:
            _check_own_way(model, kind.__module__.partition(".")[0])
            if _width(model) != len(columns):
                raise ValueError(
                    f"{type(model).__name__} expects {_width(model)} columns, but the steps before "
                    f"it give {len(columns)}"
                )
            return make(model, columns, words)
    raise TypeError(_why_not(model))


def _unwrapped(model: Any) -> Any:
    """Return the best model of a search, or the model itself."""
    if _is(model, "BaseSearchCV"):
        if not hasattr(model, "best_estimator_"):
            raise ValueError("the search has no best model; fit it with refit=True")
        return _unwrapped(model.best_estimator_)
    return model


def _is(model: Any, name: str) -> bool:
    """Return whether a model is of a class of scikit-learn, without importing the class."""
    return any(
        kind.__name__ == name and kind.__module__.startswith("sklearn.")
        for kind in type(model).__mro__
    )


def _width(model: Any) -> int:
    """Return the number of columns that a fitted model expects."""
    if hasattr(model, "num_feature"):
        return int(model.num_feature())
    width = getattr(model, "n_features_in_", None)
    if width is None:
        raise ValueError(f"this {type(model).__name__} is not fitted; fit it first")
    return int(width)


def _inputs(model: Any) -> tuple[int, list[str] | None]:
    """Return the number of input columns of a model or pipeline, and their names if known."""
    first = model
    while _is(first, "Pipeline"):
        steps = [step for _, step in first.steps if step is not None and step != "passthrough"]
        if not steps:
            raise ValueError("the pipeline has no model")
        first = steps[0]
    known = getattr(first, "feature_names_in_", None)
    if known is None and hasattr(first, "feature_name"):  # a Booster
        known = first.feature_name()
    names = None if known is None else [str(name) for name in known]
    if names == [f"Column_{f}" for f in range(len(names or ()))]:  # LightGBM makes these up
        names = None
    return _width(first), names


def _check_own_way(model: Any, library: str) -> None:
    """Refuse a subclass that predicts in its own way."""
    author = next(kind for kind in type(model).__mro__ if "predict" in vars(kind))
    if "predict" in vars(model) or author.__module__.partition(".")[0] != library:
        raise TypeError(
            f"{type(model).__name__} has a predict() of its own, so its decisions may be others "
            f"than those of {library}; give the model that it was made from"
        )


def _why_not(model: Any) -> str:
    name = type(model).__name__
    hint = "; fit boosted trees of depth 1, or one of Laconic's classifiers, instead"
    if "Forest" in name or "Tree" in name:
        return f"a {name} has trees with more than one split, which cannot be converted{hint}"
    if "Regress" in name:
        return f"a {name} predicts numbers; only classifiers can be converted"
    known = ", ".join(sorted(found for _, found in _MODELS if not found.endswith("Mixin")))
    return f"a {name} cannot be converted; known models are linear classifiers and {known}{hint}"


_MODELS: dict[tuple[str, str], Callable[[Any, list[Column], WordCodes], Converted]] = {
    ("sklearn", "LinearClassifierMixin"): linear,
    ("sklearn", "AdaBoostClassifier"): ada_boost,
    ("sklearn", "GradientBoostingClassifier"): gradient_boosting,
    ("sklearn", "HistGradientBoostingClassifier"): hist_gradient_boosting,
    ("lightgbm", "LGBMClassifier"): classifier,
    ("lightgbm", "Booster"): booster,
}
"""The functions that convert models, by library and name. Neither library is imported."""
