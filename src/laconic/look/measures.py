"""Scores of a classifier on given rows, and of always predicting the commonest label."""

from __future__ import annotations

from typing import Any

import numpy as np


def measures(model: Any, X: Any, y: Any) -> dict[str, float]:
    """Return the area under the ROC curve and the log loss, if they apply.

    The area needs two classes that both occur in ``y``. The log loss needs a model with
    probabilities. Both need labels that the model knows.
    """
    from sklearn.metrics import log_loss, roc_auc_score

    truth, out = np.asarray(y), {}
    known = np.isin(truth, model.classes_).all()
    if known and len(model.classes_) == 2 and len(np.unique(truth)) == 2:
        out["AUC"] = float(roc_auc_score(truth == model.classes_[1], model.decision_function(X)))
    if known and len(truth) and hasattr(model, "predict_proba"):
        out["log loss"] = float(log_loss(truth, model.predict_proba(X), labels=model.classes_))
    return out


def majority(model: Any) -> Any:
    """Return the commonest label of the training rows."""
    return model.classes_[np.argmax(model.class_prior_)]


def majority_rate(model: Any, y: Any = None) -> float:
    """Return the share of rows with the commonest label: of ``y``, or of the training rows."""
    if y is None:
        return float(model.class_prior_.max())
    return float(np.mean(np.asarray(y) == majority(model)))
