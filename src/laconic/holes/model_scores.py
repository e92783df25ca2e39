"""What the scores of a classifier mean, and which classifiers can be written as flat arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model._base import LinearClassifierMixin

from laconic.holes.local_models import predicted_labels
from laconic.losses import (
    ExponentialLoss,
    LogisticLoss,
    LogLoss,
    MarginLoss,
    OneVsRest,
    ScoresOnly,
    SquaredHingeLoss,
)
from laconic.model.atoms import ColumnsMap
from laconic.model.feature_maps import FeatureMap
from laconic.model.predictor import Predictor
from laconic.model.regions import UNSEEN, AllColumns

# Losses of one score f for two classes. Each has a loss of two scores ∓c f with the same
# probabilities. The values are the name of that loss and the factor c.
_ONE_SCORE = {
    ExponentialLoss.name: (LogLoss.name, 1.0),
    LogisticLoss.name: (LogLoss.name, 0.5),
    SquaredHingeLoss.name: (OneVsRest.name, 1.0),
}


def _author(model: Any, method: str) -> str:
    """Return the package that defines a model's method.

    A subclass may have a method of its own. If the model itself has it, the result is empty.
    """
    kinds = (kind for kind in type(model).__mro__ if method in vars(kind))
    own = method in vars(model)
    return "" if own else next(kinds, object).__module__.partition(".")[0]


def _own_predictor(model: Any) -> Predictor | None:
    """Return the flat predictor of a Laconic classifier, if it predicts the model's labels."""
    own = getattr(model, "predictor_", None)
    return own if isinstance(own, Predictor) and _author(model, "predict") == "laconic" else None


def _is_linear(model: Any) -> bool:
    """Return whether a model's label is that of the largest of its linear scores."""
    asked = ("predict", "decision_function")
    return isinstance(model, LinearClassifierMixin) and all(
        _author(model, method) == "sklearn" for method in asked
    )


def _is_constant(model: Any) -> bool:
    """Return whether a model always predicts the most common class."""
    return isinstance(model, DummyClassifier) and model.strategy in ("prior", "most_frequent")


def _both(scores: np.ndarray, loss: str) -> np.ndarray:
    """Return scores or weights of both classes, also if the loss has one column for two classes."""
    if loss not in _ONE_SCORE:
        return scores
    own = _ONE_SCORE[loss][1] * scores
    return np.hstack([-own, own])


def link_of(models: list[Any]) -> str:
    """Return the name of the loss that says what the models' scores mean as probabilities.

    It is the loss of all models if they share one. Scores of different kinds stand for no
    probabilities. Nor do scores of models without probabilities, nor scores of constants together
    with the margin loss, whose probabilities are no softmax.
    """
    names, constants = set(), False
    for model in models:
        own = _own_predictor(model)
        if own is not None:
            names.add(_ONE_SCORE.get(own.loss, (own.loss, 1.0))[0])
        elif _is_constant(model) and model.strategy == "prior":
            constants = True
        else:
            names.add(LogLoss.name if _is_softmax(model) else ScoresOnly.name)
    if not names:
        return LogLoss.name
    mixed = len(names) > 1 or (constants and names == {MarginLoss.name})
    return ScoresOnly.name if mixed else names.pop()


def _is_softmax(model: Any) -> bool:
    """Return whether a model's probabilities are the softmax of its class scores."""
    if not isinstance(model, LogisticRegression) or _author(model, "predict_proba") != "sklearn":
        return False
    asked = getattr(model, "multi_class", None)  # a parameter of older versions
    if len(model.classes_) == 2:
        return bool(asked != "multinomial")  # there, two scores differ by twice the decision
    return not (model.solver == "liblinear" or asked == "ovr")


def class_scores(model: Any, X: Any, classes: np.ndarray, link: str) -> np.ndarray:
    """Return the scores of every class, (n_rows, n_classes).

    The predicted class has the largest score. The scores come from a ``predictor_``, from
    ``decision_function`` or from ``predict_proba``. If the model has none of these, the predicted
    class has score 1 and the others 0. The same holds for rows in which the model does not predict
    the class of its largest score. Two classes share a decision d as ∓d/2, so that their difference
    is d.
    """
    if _is_constant(model):
        return np.tile(_constant_scores(model, classes, link), (X.shape[0], 1))
    known = np.searchsorted(classes, model.classes_)
    own = _own_predictor(model)
    if own is not None:
        scores = _both(own.scores(X), own.loss)
    elif hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X))
    elif hasattr(model, "predict_proba"):
        scores = np.asarray(model.predict_proba(X))
    else:
        scores = np.empty((0, 0))
    if scores.ndim == 1:
        scores = np.column_stack([-0.5 * scores, 0.5 * scores])
    if scores.shape != (X.shape[0], len(known)):  # no scores, or one for every pair of classes
        scores = _said(model, X, classes)
    elif own is None and not _is_linear(model):
        said = _said(model, X, classes)
        odd = scores.argmax(axis=1) != said.argmax(axis=1)
        scores = np.where(odd[:, None], said, scores)
    out = np.full((X.shape[0], len(classes)), UNSEEN)
    out[:, known] = scores
    return out


def _said(model: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Return 1 for the class that the model predicts, and 0 for its other classes."""
    labels = predicted_labels(model, X, classes.dtype)
    return (labels[:, None] == model.classes_).astype(np.float64)


def _constant_scores(model: DummyClassifier, classes: np.ndarray, link: str) -> np.ndarray:
    """Return scores that stand for a constant's shares of the classes."""
    shares = np.zeros(len(classes))
    shares[np.searchsorted(classes, model.classes_)] = model.class_prior_
    if link in (OneVsRest.name, ScoresOnly.name):
        return 2.0 * shares - 1.0
    return np.where(shares > 0, np.log(np.maximum(shares, 1e-300)), UNSEEN)


def class_probabilities(model: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Return the probabilities of every class: 0 for classes that the model has never seen."""
    out = np.zeros((X.shape[0], len(classes)))
    out[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(X)
    return out


def flat_parts(
    model: Any, classes: np.ndarray, n_features: int, link: str
) -> tuple[FeatureMap, np.ndarray, np.ndarray]:
    """Return a feature map, weights and an intercept whose scores are those of `class_scores`.

    This works for constants, linear classifiers and models with a ``predictor_`` of their own. For
    other models it raises a `TypeError`.
    """
    if _is_constant(model):
        nothing = ColumnsMap(np.empty(0, dtype=np.int64))
        scores = _constant_scores(model, classes, link)
        return nothing, np.empty((0, len(classes))), scores
    own = _own_predictor(model)
    if own is not None:
        map, weights = own.map, _both(own.weights, own.loss)
        intercept = _both(own.intercept[None], own.loss)[0]
    elif _is_linear(model):
        map = AllColumns(n_features)
        weights, intercept = _linear(model)
    else:
        own_way = isinstance(model, LinearClassifierMixin) or hasattr(model, "predictor_")
        why = "has a predict of its own" if own_way else "is neither linear nor one of Laconic's"
        raise TypeError(
            f"a {type(model).__name__} {why}, so the model cannot be written as flat arrays; use "
            "the fitted classifier itself to predict"
        )
    known = np.searchsorted(classes, model.classes_)
    wide, base = np.zeros((len(weights), len(classes))), np.full(len(classes), UNSEEN)
    wide[:, known] = weights
    base[known] = intercept
    return map, wide, base


def _linear(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return weights (n_features, n_classes) and intercept of a linear scikit-learn model."""
    coef = np.atleast_2d(model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_)
    intercept = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), len(coef))
    if len(coef) == 1:
        return 0.5 * np.vstack([-coef, coef]).T, 0.5 * np.concatenate([-intercept, intercept])
    return coef.T, intercept
