"""Linear classifiers of scikit-learn."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from laconic.converters.columns import Column, WordCodes
from laconic.converters.terms import TermSums
from laconic.losses import LogisticLoss, LogLoss, OneScore, OneVsRest, ScoresOnly, SquaredHingeLoss


class Converted(NamedTuple):
    """What a model adds up, its classes, and the link of its scores."""

    terms: TermSums
    classes: Any
    loss: str


def linear(model: Any, columns: list[Column], words: WordCodes) -> Converted:
    """Convert any classifier whose label is that of the largest of its linear scores."""
    target = getattr(getattr(model, "_label_binarizer", None), "y_type_", "")
    if target.startswith("multilabel"):
        raise ValueError(
            f"this {type(model).__name__} was fitted to several labels per row; fit one model for "
            "each label"
        )
    coef = model.coef_.toarray() if sparse.issparse(model.coef_) else np.asarray(model.coef_)
    coef = np.atleast_2d(coef).astype(np.float64)
    loss, factor = _link(model)
    terms = TermSums(len(coef))
    for column, weights in zip(columns, factor * coef.T, strict=True):
        if weights.any():
            column.add_linear(terms, weights)
    terms.constant = terms.constant + factor * np.asarray(model.intercept_, dtype=np.float64)
    return Converted(terms, model.classes_, loss)


def _link(model: Any) -> tuple[str, float]:
    """Return the link whose probabilities are those of the model, and a factor of the scores."""
    two = len(model.classes_) == 2
    kinds = {kind.__name__ for kind in type(model).__mro__}
    if "LogisticRegression" in kinds:
        asked = getattr(model, "multi_class", None)  # a parameter of older versions
        if two:
            return LogisticLoss.name, 2.0 if asked == "multinomial" else 1.0
        apart = model.solver == "liblinear" or asked == "ovr"
        return (ScoresOnly.name if apart else LogLoss.name), 1.0
    if "LinearDiscriminantAnalysis" in kinds:
        return (LogisticLoss.name if two else LogLoss.name), 1.0
    if "SGDClassifier" in kinds and model.loss == "log_loss" and two:
        return LogisticLoss.name, 1.0
    if "SGDClassifier" in kinds and model.loss == "modified_huber":
        return (SquaredHingeLoss.name if two else OneVsRest.name), 1.0
    return (OneScore.name if two else ScoresOnly.name), 1.0
