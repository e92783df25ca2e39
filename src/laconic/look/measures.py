"""How good a classifier is on given rows, and how good it is to say always the same."""

from __future__ import annotations

from typing import Any

import numpy as np


def measures(model: Any, X: Any, y: Any) -> dict[str, float]:
    """Area under the ROC curve and log loss, where they apply.

    The area is for two classes that both occur in ``y``. The log loss is for models that have
    probabilities, and labels that they know.
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
    """The commonest label of the training rows."""
    return model.classes_[np.argmax(model.class_prior_)]


def majority_rate(model: Any, y: Any = None) -> float:
    """Share of the rows that have the commonest label: of the training rows, or of given ones."""
    if y is None:
        return float(model.class_prior_.max())
    return float(np.mean(np.asarray(y) == majority(model)))
