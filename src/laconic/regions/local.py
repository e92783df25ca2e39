"""Models inside regions: fitted to some rows, a constant, and what their scores mean."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils.validation import has_fit_parameter

from laconic.model.atoms import ColumnsMap, FeatureMap
from laconic.model.predictor import Predictor
from laconic.model.regions import AllColumns

# Score of a class that a local model has never seen: below every other, and still a number.
UNSEEN = -1e30


def fit_model(
    estimator: Any, X: Any, y: np.ndarray, weight: np.ndarray | None, seed: int | None
) -> Any:
    """A fitted clone; ``weight`` is None where every row counts the same."""
    model = clone(estimator)
    if seed is not None:
        names = [n for n in model.get_params() if n.split("__")[-1] == "random_state"]
        model.set_params(**dict.fromkeys(sorted(names), seed))
    if weight is None:
        return model.fit(X, y)
    return model.fit(X, y, sample_weight=weight)


def check_takes_weights(estimator: Any) -> None:
    """Refuse weights that an estimator would not see."""
    if not has_fit_parameter(estimator, "sample_weight"):
        raise TypeError(
            f"{type(estimator).__name__} takes no sample_weight; give an estimator that does, or "
            "leave sample_weight and class_weight out"
        )


def fit_local(
    estimator: Any, X: Any, y: np.ndarray, weight: np.ndarray | None, seed: int | None
) -> Any | None:
    """A model of the rows in a hole; None where they are of one class or the fit fails."""
    if np.all(y == y[0]):
        return None
    try:
        return fit_model(estimator, X, y, weight, seed)
    except ValueError as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else "no reason given"
        warnings.warn(
            f"{type(estimator).__name__} could not be fitted to the {len(y)} rows of a hole "
            f"({first}); a constant takes its place",
            stacklevel=2,
        )
        return None


def constant(X: Any, y: np.ndarray, weight: np.ndarray | None) -> DummyClassifier:
    """The most common class of the rows, and the shares of all."""
    return DummyClassifier(strategy="prior").fit(X, y, sample_weight=weight)


def class_scores(model: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Scores of every class, (n_rows, n_classes), the largest where the model's prediction is.

    From ``decision_function``, else ``predict_proba``, else 1 for the prediction and 0 for the
    others. Two classes share a decision d as ∓d/2, so that their difference is d.
    """
    known = np.searchsorted(classes, model.classes_)
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X))
    elif hasattr(model, "predict_proba"):
        scores = np.asarray(model.predict_proba(X))
    else:
        scores = np.empty((0, 0))
    if scores.ndim == 1:
        scores = np.column_stack([-0.5 * scores, 0.5 * scores])
    if scores.shape != (X.shape[0], len(known)):  # no scores, or one for every pair of classes
        scores = (model.predict(X)[:, None] == model.classes_).astype(np.float64)
    out = np.full((X.shape[0], len(classes)), _unseen(model))
    out[:, known] = scores
    return out


def _unseen(model: Any) -> float:
    """Score of a class that the model has never seen: a constant's is its share, 0."""
    return 0.0 if isinstance(model, DummyClassifier) else UNSEEN


def class_probabilities(model: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Probabilities of every class; 0 for those that the model has never seen."""
    out = np.zeros((X.shape[0], len(classes)))
    out[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(X)
    return out


def flat_parts(
    model: Any, classes: np.ndarray, n_features: int
) -> tuple[FeatureMap, np.ndarray, np.ndarray]:
    """Feature map, weights and intercept whose scores are `class_scores`.

    For constants, linear classifiers and models with a ``predictor_`` of their own; a `TypeError`
    for others.
    """
    known = np.searchsorted(classes, model.classes_)
    own = getattr(model, "predictor_", None)
    if isinstance(own, Predictor):
        return _spread(own.map, own.weights, own.intercept, known, _base(model, classes))
    if isinstance(model, DummyClassifier):
        shares = np.asarray(model.class_prior_, dtype=np.float64)
        nothing = ColumnsMap(np.empty(0, dtype=np.int64))
        return _spread(nothing, np.empty((0, len(known))), shares, known, _base(model, classes))
    if not isinstance(model, LinearClassifierMixin):
        raise TypeError(
            f"a {type(model).__name__} is neither linear nor one of Laconic's, so the model cannot "
            "be written as flat arrays; the fitted classifier itself predicts"
        )
    weights = model.coef_.toarray() if sparse.issparse(model.coef_) else np.asarray(model.coef_)
    intercept = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), len(weights))
    if len(weights) == 1:
        weights = np.vstack([-0.5 * weights, 0.5 * weights])
        intercept = np.concatenate([-0.5 * intercept, 0.5 * intercept])
    return _spread(AllColumns(n_features), weights.T, intercept, known, _base(model, classes))


def _base(model: Any, classes: np.ndarray) -> np.ndarray:
    return np.full(len(classes), _unseen(model))


def _spread(
    map: FeatureMap, weights: np.ndarray, intercept: np.ndarray, known: np.ndarray, base: np.ndarray
) -> tuple[FeatureMap, np.ndarray, np.ndarray]:
    """The same model with a column for every class; ``base`` scores those it does not know."""
    wide = np.zeros((len(weights), len(base)))
    wide[:, known] = weights
    base[known] = intercept
    return map, wide, base
