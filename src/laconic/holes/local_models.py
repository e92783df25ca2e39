"""Models inside regions: a model fitted to some rows, or a constant."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.utils.validation import has_fit_parameter

from laconic.clumping.ties import WEIGHT_TIE
from laconic.data.labels import class_prices


@dataclass(frozen=True)
class Weights:
    """Sample weights, which count copies of rows, and class weights, which do not."""

    copies: np.ndarray
    price: np.ndarray
    """Cost of an error, for one copy of each row."""

    def __getitem__(self, rows: Any) -> Weights:
        return Weights(self.copies[rows], self.price[rows])

    @property
    def product(self) -> np.ndarray:
        """Cost of an error of each row."""
        return self.copies * self.price


def fit_model(
    estimator: Any, X: Any, y: np.ndarray, weights: Weights | None, seed: int | None
) -> Any:
    """Return a fitted clone. ``weights`` is None if every row counts the same.

    An estimator that has a ``class_weight`` gets the class weights there, times its own, because it
    may count copies by the sample weights, as error clumping does. For other estimators the class
    weights multiply the sample weights.
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
    """Return the first labels as text, for messages."""
    return ", ".join(map(repr, labels[:5])) + (", …" if len(labels) > 5 else "")


def predicted_labels(model: Any, X: Any, dtype: Any) -> np.ndarray:
    """Return the label that the model predicts for every row, as a new array with the labels' type.

    An estimator may return text that is too short for other labels, or a column.
    """
    said, n = np.asarray(model.predict(X)), X.shape[0]
    if said.shape not in ((n,), (n, 1)):
        raise ValueError(
            f"{type(model).__name__} predicted an array of shape {said.shape} for {n} rows; "
            "predict must return one label per row"
        )
    return said.reshape(-1).astype(dtype)


def check_models(estimators: tuple[Any, ...], weighted: bool) -> None:
    """Refuse estimators that are not classifiers.

    If rows are weighted, refuse estimators that take no weights.
    """
    for estimator in estimators:
        if not is_classifier(estimator):
            raise TypeError(f"{type(estimator).__name__} is not a classifier; give a classifier")
    for estimator in estimators if weighted else ():
        if not has_fit_parameter(estimator, "sample_weight"):
            raise TypeError(
                f"{type(estimator).__name__} takes no sample_weight; give an estimator that does, "
                "or leave sample_weight and class_weight out"
            )


def fit_local(
    estimator: Any, X: Any, y: np.ndarray, weights: Weights | None, seed: int | None
) -> Any | None:
    """Return a model of the rows in a hole.

    It is None if the rows are of one class, or if the fit fails.
    """
    if np.all(y == y[0]):
        return None
    try:
        return fit_model(estimator, X, y, weights, seed)
    except ValueError as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else "no reason given"
        warnings.warn(
            f"{type(estimator).__name__} could not be fitted to the {len(y)} rows of a hole "
            f"({first}); a constant is used instead",
            stacklevel=2,
        )
        return None


def constant(X: Any, y: np.ndarray, weight: np.ndarray | None) -> DummyClassifier:
    """Return a model that predicts the most common class of the rows.

    If several classes are equally common, it predicts the first. It also knows the shares of all
    classes.
    """
    model = DummyClassifier(strategy="prior").fit(X, y, sample_weight=weight)
    shares = model.class_prior_
    tied = shares >= shares.max() - WEIGHT_TIE
    shares[tied] = shares[tied].mean()
    return model
