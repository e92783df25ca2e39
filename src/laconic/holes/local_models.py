"""Models inside regions: fitted to some rows, a constant, and what their scores mean."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils.validation import has_fit_parameter

from laconic.clumping.ties import WEIGHT_TIE
from laconic.data.labels import class_prices
from laconic.losses import (
    ExponentialLoss,
    LogisticLoss,
    LogLoss,
    MarginLoss,
    OneVsRest,
    ScoresOnly,
    SquaredHingeLoss,
)
from laconic.model.atoms import ColumnsMap, FeatureMap
from laconic.model.predictor import Predictor
from laconic.model.regions import UNSEEN, AllColumns


@dataclass(frozen=True)
class Weights:
    """Sample weights, which count copies of rows, and class weights, which do not."""

    copies: np.ndarray
    price: np.ndarray
    """What an error of one copy costs."""

    def __getitem__(self, rows: Any) -> Weights:
        return Weights(self.copies[rows], self.price[rows])

    @property
    def product(self) -> np.ndarray:
        """What an error of every row costs."""
        return self.copies * self.price


def fit_model(
    estimator: Any, X: Any, y: np.ndarray, weights: Weights | None, seed: int | None
) -> Any:
    """A fitted clone; ``weights`` are None where every row counts the same.

    An estimator that has a ``class_weight`` gets the class weights there, times its own, because it
    may count copies by the sample weights, as error clumping does. For others they are multiplied.
    """
    model = clone(estimator)
    if seed is not None:
        names = [n for n in model.get_params() if n.split("__")[-1] == "random_state"]
        model.set_params(**dict.fromkeys(sorted(names), seed))
    if weights is None:
        model = model.fit(X, y)
    else:
        weight = weights.product
        own = model.get_params(deep=False).get("class_weight", "has none")
        if own is None or own == "balanced" or isinstance(own, dict):
            if np.any(weights.price != 1.0):
                classes, codes = np.unique(y, return_inverse=True)
                price = weights.price * class_prices(own, classes, codes, weights.copies)
                prices = dict(zip(y.tolist(), price.tolist(), strict=True))
                model.set_params(class_weight=prices)
            weight = weights.copies
        model = model.fit(X, y, sample_weight=weight)
    learned, labels = np.ravel(model.classes_).tolist(), np.unique(y).tolist()
    if set(learned) != set(labels):
        raise ValueError(
            f"{type(estimator).__name__} learned the classes {few_labels(learned)}, but y has "
            f"{few_labels(labels)}; give an estimator that predicts the labels themselves"
        )
    return model


def few_labels(labels: list[Any]) -> str:
    """The first labels, for messages."""
    return ", ".join(map(repr, labels[:5])) + (", …" if len(labels) > 5 else "")


def predicted_labels(model: Any, X: Any, dtype: Any) -> np.ndarray:
    """What the model says of every row, as a new array in the type of the labels.

    An estimator may answer with shorter text than other labels have, or with a column.
    """
    said, n = np.asarray(model.predict(X)), X.shape[0]
    if said.shape not in ((n,), (n, 1)):
        raise ValueError(
            f"{type(model).__name__} predicted an array of shape {said.shape} for {n} rows; "
            "predict must give one label a row"
        )
    return said.reshape(-1).astype(dtype)


def check_classifier(estimator: Any) -> None:
    """Refuse what does not predict classes."""
    if not is_classifier(estimator):
        raise TypeError(f"{type(estimator).__name__} is no classifier; give one")


def check_takes_weights(estimator: Any) -> None:
    """Refuse weights that an estimator would not see."""
    if not has_fit_parameter(estimator, "sample_weight"):
        raise TypeError(
            f"{type(estimator).__name__} takes no sample_weight; give an estimator that does, or "
            "leave sample_weight and class_weight out"
        )


def fit_local(
    estimator: Any, X: Any, y: np.ndarray, weights: Weights | None, seed: int | None
) -> Any | None:
    """A model of the rows in a hole; None where they are of one class or the fit fails."""
    if np.all(y == y[0]):
        return None
    try:
        return fit_model(estimator, X, y, weights, seed)
    except ValueError as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else "no reason given"
        warnings.warn(
            f"{type(estimator).__name__} could not be fitted to the {len(y)} rows of a hole "
            f"({first}); a constant takes its place",
            stacklevel=2,
        )
        return None


def constant(X: Any, y: np.ndarray, weight: np.ndarray | None) -> DummyClassifier:
    """The most common class of the rows (the first of those that tie), and the shares of all."""
    model = DummyClassifier(strategy="prior").fit(X, y, sample_weight=weight)
    shares = model.class_prior_
    tied = shares >= shares.max() - WEIGHT_TIE
    shares[tied] = shares[tied].mean()
    return model


# Losses of one score f for two classes: the loss of two scores with the same probabilities, and
# the multiple of f that they differ from zero by.
_ONE_SCORE = {
    ExponentialLoss.name: (LogLoss.name, 1.0),
    LogisticLoss.name: (LogLoss.name, 0.5),
    SquaredHingeLoss.name: (OneVsRest.name, 1.0),
}


def _both(scores: np.ndarray, loss: str) -> np.ndarray:
    """Scores or weights of both classes where the loss has one column for two."""
    if loss not in _ONE_SCORE:
        return scores
    own = _ONE_SCORE[loss][1] * scores
    return np.hstack([-own, own])


def link_of(models: list[Any]) -> str:
    """Name of the loss that says what the models' scores mean as probabilities.

    That of all models where they share one. Scores of different kinds, or those of models that have
    no probabilities, stand for none. Neither do those of constants beside the margin loss, whose
    probabilities are no softmax.
    """
    names, constants = set(), False
    for model in models:
        own = getattr(model, "predictor_", None)
        if isinstance(own, Predictor):
            names.add(_ONE_SCORE.get(own.loss, (own.loss, 1.0))[0])
        elif isinstance(model, DummyClassifier):
            constants = True
        else:
            names.add(LogLoss.name if _is_softmax(model) else ScoresOnly.name)
    if not names:
        return LogLoss.name
    mixed = len(names) > 1 or (constants and names == {MarginLoss.name})
    return ScoresOnly.name if mixed else names.pop()


def _is_softmax(model: Any) -> bool:
    """Whether a model's probabilities are the softmax of its scores of the classes."""
    if not isinstance(model, LogisticRegression):
        return False
    apart = model.solver == "liblinear" or getattr(model, "multi_class", None) == "ovr"
    return len(model.classes_) == 2 or not apart


def class_scores(model: Any, X: Any, classes: np.ndarray, link: str) -> np.ndarray:
    """Scores of every class, (n_rows, n_classes), the largest where the model's prediction is.

    From a ``predictor_``, ``decision_function``, ``predict_proba``, or else 1 for the prediction
    and 0 for the others, also in rows where the model itself does not go by its largest score. Two
    classes share a decision d as ∓d/2, so that their difference is d.
    """
    if isinstance(model, DummyClassifier):
        return np.tile(_constant_scores(model, classes, link), (X.shape[0], 1))
    known = np.searchsorted(classes, model.classes_)
    own = getattr(model, "predictor_", None)
    if isinstance(own, Predictor):
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
    elif not isinstance(own, Predictor) and not isinstance(model, LinearClassifierMixin):
        said = _said(model, X, classes)
        odd = scores.argmax(axis=1) != said.argmax(axis=1)
        scores = np.where(odd[:, None], said, scores)
    out = np.full((X.shape[0], len(classes)), UNSEEN)
    out[:, known] = scores
    return out


def _said(model: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """1 for the class that the model predicts, 0 for its others."""
    labels = predicted_labels(model, X, classes.dtype)
    return (labels[:, None] == model.classes_).astype(np.float64)


def _constant_scores(model: DummyClassifier, classes: np.ndarray, link: str) -> np.ndarray:
    """Scores that stand for a constant's shares of the classes."""
    shares = np.zeros(len(classes))
    shares[np.searchsorted(classes, model.classes_)] = model.class_prior_
    if link in (OneVsRest.name, ScoresOnly.name):
        return 2.0 * shares - 1.0
    return np.where(shares > 0, np.log(np.maximum(shares, 1e-300)), UNSEEN)


def class_probabilities(model: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Probabilities of every class; 0 for those that the model has never seen."""
    out = np.zeros((X.shape[0], len(classes)))
    out[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(X)
    return out


def flat_parts(
    model: Any, classes: np.ndarray, n_features: int, link: str
) -> tuple[FeatureMap, np.ndarray, np.ndarray]:
    """Feature map, weights and intercept whose scores are `class_scores`.

    For constants, linear classifiers and models with a ``predictor_`` of their own; a `TypeError`
    for others.
    """
    if isinstance(model, DummyClassifier):
        nothing = ColumnsMap(np.empty(0, dtype=np.int64))
        scores = _constant_scores(model, classes, link)
        return nothing, np.empty((0, len(classes))), scores
    own = getattr(model, "predictor_", None)
    if isinstance(own, Predictor):
        map, weights = own.map, _both(own.weights, own.loss)
        intercept = _both(own.intercept[None], own.loss)[0]
    elif isinstance(model, LinearClassifierMixin):
        map = AllColumns(n_features)
        weights, intercept = _linear(model)
    else:
        raise TypeError(
            f"a {type(model).__name__} is neither linear nor one of Laconic's, so the model cannot "
            "be written as flat arrays; the fitted classifier itself predicts"
        )
    known = np.searchsorted(classes, model.classes_)
    wide, base = np.zeros((len(weights), len(classes))), np.full(len(classes), UNSEEN)
    wide[:, known] = weights
    base[known] = intercept
    return map, wide, base


def _linear(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Weights (n_features, n_classes) and intercept of a linear classifier of scikit-learn."""
    coef = np.atleast_2d(model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_)
    intercept = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), len(coef))
    if len(coef) == 1:
        return 0.5 * np.vstack([-coef, coef]).T, 0.5 * np.concatenate([-intercept, intercept])
    return coef.T, intercept
