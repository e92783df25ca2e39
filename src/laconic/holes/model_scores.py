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
    LINKS,
    ExponentialLoss,
    LogisticLoss,
    LogLoss,
    MarginLoss,
    OneVsRest,
    ScoresOnly,
    SquaredHingeLoss,
)
from laconic.model.atoms import ColumnsMap
from laconic.model.feature_maps import FeatureMap, map_width
from laconic.model.predictor import Predictor
from laconic.model.regions import UNSEEN, AllColumns

# Losses of one score f for two classes. Each has a loss of two scores ∓c f with the same
# probabilities. The values are the name of that loss and the factor c.
_ONE_SCORE = {
    ExponentialLoss.name: (LogLoss.name, 1.0),
    LogisticLoss.name: (LogLoss.name, 0.5),
    SquaredHingeLoss.name: (OneVsRest.name, 1.0),
}


# -- which models are what they seem -----------------------------------------------------------


def _author(model: Any, method: str) -> str:
    """Return the package that defines a model's method.

    A subclass may have a method of its own. If the model itself has it, the result is empty.
    """
    kinds = (kind for kind in type(model).__mro__ if method in vars(kind))
    own = method in vars(model)
    return "" if own else next(kinds, object).__module__.partition(".")[0]


def _is_by(author: str, model: Any, *methods: str) -> bool:
    """Return whether a package defines all of these methods of a model."""
    return all(_author(model, method) == author for method in methods)


def _own_predictor(model: Any) -> Predictor | None:
    """Return the flat predictor of a Laconic classifier, if it predicts the model's labels."""
    own = getattr(model, "predictor_", None)
    asked = ("predict", "_predictor", "_new_rows", "_validated")
    return own if type(own) is Predictor and _is_by("laconic", model, *asked) else None


def _is_linear(model: Any) -> bool:
    """Return whether a model's label is that of the largest of its linear scores."""
    linear = isinstance(model, LinearClassifierMixin)
    return linear and _is_by("sklearn", model, "predict", "decision_function")


def _is_constant(model: Any) -> bool:
    """Return whether a model always predicts the most common class."""
    constant = isinstance(model, DummyClassifier) and model.strategy in ("prior", "most_frequent")
    return constant and _is_by("sklearn", model, "predict")


def _is_softmax(model: Any) -> bool:
    """Return whether a model's probabilities are the softmax of its class scores."""
    if not isinstance(model, LogisticRegression) or not _is_by("sklearn", model, "predict_proba"):
        return False
    asked = getattr(model, "multi_class", None)  # a parameter of older versions
    if len(model.classes_) == 2:
        return bool(asked != "multinomial")  # there, two scores differ by twice the decision
    return not (model.solver == "liblinear" or asked == "ovr")


# -- what scores mean --------------------------------------------------------------------------


def link_of(models: list[Any]) -> str:
    """Return the name of the loss that says what the models' scores mean as probabilities.

    It is the loss of all models if they share one. Scores of different kinds stand for no
    probabilities. Nor do scores of models without probabilities, nor scores of constants together
    with the margin loss, whose probabilities are no softmax.
    """
    names, constants = set(), False
    for model in models:
        if _is_constant(model) and model.strategy == "prior":
            constants = True
            if not _is_by("sklearn", model, "predict_proba"):
                names.add(ScoresOnly.name)
        else:
            names.add(_meaning(model))
    if not names:
        return LogLoss.name
    mixed = len(names) > 1 or (constants and names == {MarginLoss.name})
    return ScoresOnly.name if mixed else names.pop()


def _meaning(model: Any) -> str:
    """Return the name of the loss that turns class scores into the model's probabilities."""
    own = _own_predictor(model)
    if own is None:
        return LogLoss.name if _is_softmax(model) else ScoresOnly.name
    # A loss of the user's own has any name, and its probabilities cannot be looked up by it.
    if type(own.link) is not LINKS.get(own.loss) or not _is_by("laconic", model, "predict_proba"):
        return ScoresOnly.name
    return _ONE_SCORE[own.loss][0] if own.loss in _ONE_SCORE else own.loss


# -- scores and probabilities by the model itself ----------------------------------------------


def class_scores(model: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Return the scores of every class by a model that is no flat array, (n_rows, n_classes).

    The predicted class has the largest score. The scores come from ``decision_function`` or from
    ``predict_proba``. If the model has none of these, the predicted class has score 1 and the
    others 0. The same holds for rows in which the model does not predict the class of its largest
    score. Two classes share a decision d as ∓d/2, so that their difference is d.
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
    labels = predicted_labels(model, X, classes.dtype)
    said = (labels[:, None] == model.classes_).astype(np.float64)
    if scores.shape != said.shape:  # no scores, or one for every pair of classes
        scores = said
    odd = scores.argmax(axis=1) != said.argmax(axis=1)
    out = np.full((X.shape[0], len(classes)), UNSEEN)
    out[:, known] = np.where(odd[:, None], said, scores)
    return out


def class_probabilities(model: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Return the probabilities of every class: 0 for classes that the model has never seen."""
    out = np.zeros((X.shape[0], len(classes)))
    out[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(X)
    return out


# -- flat arrays -------------------------------------------------------------------------------


def flat_model(model: Any, classes: np.ndarray, n_features: int, link: str) -> Predictor:
    """Return a predictor with one score for every class that predicts the model's labels.

    This works for constants, linear classifiers and models with a ``predictor_`` of their own. For
    other models it raises a `TypeError`.
    """
    map: FeatureMap = ColumnsMap(np.empty(0, dtype=np.int64))
    own, known = _own_predictor(model), np.searchsorted(classes, model.classes_)
    if _is_constant(model):
        scores = _constant_scores(model, classes, link)
        weights, intercept, known = np.empty((0, len(classes))), scores, np.arange(len(classes))
    elif own is not None:
        map, weights, intercept = own.map, _both(own.weights, own), _both(own.intercept, own)
    elif _is_linear(model):
        map = AllColumns(n_features)
        weights, intercept = _linear(model)
    else:
        named = isinstance(model, LinearClassifierMixin | DummyClassifier)
        changed = named and not _is_by("sklearn", model, "predict", "decision_function")
        own_way = hasattr(model, "predictor_") or changed
        why = "predicts in its own way" if own_way else "is neither linear nor one of Laconic's"
        raise TypeError(
            f"a {type(model).__name__} {why}, so the model cannot be written as flat arrays; use "
            "the fitted classifier itself to predict"
        )
    wide, base = np.zeros((len(weights), len(classes))), np.full(len(classes), UNSEEN)
    wide[:, known] = weights
    base[known] = intercept
    return Predictor(map, wide, base, classes, link, [map_width(map)], n_features)


def _both(weights: np.ndarray, own: Predictor) -> np.ndarray:
    """Return the weights of both classes, also if a predictor has one score for two classes."""
    if own.weights.shape[1] > 1:
        return weights
    factor = _ONE_SCORE[own.loss][1] if own.loss in _ONE_SCORE else 0.5
    return np.concatenate([-factor * weights, factor * weights], axis=-1)


def _linear(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return weights (n_features, n_classes) and intercept of a linear scikit-learn model."""
    coef = np.atleast_2d(model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_)
    intercept = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), len(coef))
    if len(coef) == 1:
        return 0.5 * np.vstack([-coef, coef]).T, 0.5 * np.concatenate([-intercept, intercept])
    return coef.T, intercept


def _constant_scores(model: DummyClassifier, classes: np.ndarray, link: str) -> np.ndarray:
    """Return scores that stand for a constant's shares of the classes."""
    shares = np.zeros(len(classes))
    shares[np.searchsorted(classes, model.classes_)] = model.class_prior_
    if link in (OneVsRest.name, ScoresOnly.name):
        scores = 2.0 * shares - 1.0
    else:
        scores = np.where(shares > 0, np.log(np.maximum(shares, 1e-300)), UNSEEN)
    best = int(shares.argmax())
    if scores.argmax() != best:  # shares that differ by rounding may have equal scores
        scores[best] = np.nextafter(scores.max(), np.inf)
    return scores
