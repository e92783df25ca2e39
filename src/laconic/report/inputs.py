"""What a report is made from: labels, probabilities and losses, of a model or from elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.holes.local_models import few_labels
from laconic.report.models import known_labels, may_classify, model_name, read_by

# Largest share of rows in which the predicted one of two labels may have a probability below 1/2.
UNLIKELY = 0.2


def given_labels(labels: Any) -> np.ndarray:
    """Return labels that were given in place of a model."""
    predicted = np.asarray(labels)
    if predicted.ndim == 0:
        what = "None" if labels is None else f"an object of type {type(labels).__name__}"
        raise ValueError(
            f"{what} is not a classifier: it has no predict, and is not a list of labels. If a "
            "model cannot be run here, give the labels that it predicted in its place, and their "
            "probabilities."
        )
    return predicted


def predicted_by(model: Any, X: Any, kept: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the labels that a model predicts, and their probabilities if it has any.

    The model gets the columns that it was fitted on.
    """
    if not may_classify(model):
        raise ValueError(
            f"{model_name(model)} is not a classifier. Give the loss of every row instead (losses)."
        )
    read = read_by(model, X, kept)
    predicted = np.asarray(model.predict(read))
    return predicted, own_probability(model, read, predicted)


def own_probability(model: Any, read: Any, predicted: np.ndarray) -> np.ndarray | None:
    """Return the probability that a model gives to each label that it predicted, or None."""
    known = known_labels(model)
    if known is None or not hasattr(model, "predict_proba"):
        return None
    every = np.asarray(model.predict_proba(read))
    if every.shape != (len(predicted), len(known)):
        return None
    place = {str(label): j for j, label in enumerate(known.tolist())}
    which = np.array([place.get(str(label), -1) for label in predicted.tolist()])
    if (which < 0).any():
        return None
    with np.errstate(invalid="ignore"):
        sound = (every >= 0) & (every <= 1) & (np.abs(every.sum(axis=1, keepdims=True) - 1) < 1e-2)
    if not sound.all():
        row = int(np.flatnonzero(~sound.all(axis=1))[0])
        raise ValueError(
            f"{model_name(model)}.predict_proba gives {every[row].tolist()} for row {row}. These "
            "are no probabilities: they must be between 0 and 1 and sum to 1. Give the predicted "
            "labels in place of the model."
        )
    return every[np.arange(len(which)), which]


def checked_probability(given: Any, predicted: np.ndarray, labels: int) -> np.ndarray:
    """Return probabilities of the predicted labels, after a check that they can be such.

    ``labels`` is the number of different labels.
    """
    values = np.asarray(given, dtype=np.float64)
    if values.shape != predicted.shape:
        raise ValueError(
            f"probabilities must have one number for each of {len(predicted)} rows, the "
            f"probability of its predicted label, not shape {values.shape}."
        )
    if not (np.isfinite(values) & (values >= 0) & (values <= 1)).all():
        raise ValueError("probabilities must be between 0 and 1.")
    low = float((values < 0.5 - 1e-9).mean())
    if labels <= 2 and low > UNLIKELY:
        raise ValueError(
            f"probabilities must be those of the predicted labels, but in {low:.0%} of the rows "
            "they are below 1/2, and there are two labels. They may be the probabilities of one of "
            "them."
        )
    return values


def checked_losses(given: Any) -> np.ndarray:
    """Return the loss of every row."""
    values = np.asarray(given, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError("losses must be a list of finite numbers, one for each row.")
    return values


def comparable(truth: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both kinds of labels in one type, as a table may hold numbers as text."""
    broken = predicted[predicted % 1 != 0] if predicted.dtype.kind == "f" else predicted[:0]
    if truth.dtype.kind in "OUS" or predicted.dtype.kind in "OUS":
        truth, predicted = truth.astype(str), predicted.astype(str)
    said, known = np.unique(predicted), np.unique(truth)
    if not np.isin(said, known).any():
        if len(broken):
            raise ValueError(
                f"the model is not a classifier: it predicts numbers such as {broken[0]:.3g}. Give "
                "the loss of every row instead (losses)."
            )
        raise ValueError(
            f"the model predicts {few_labels(said.tolist())}, and the true labels are "
            f"{few_labels(known.tolist())}. They have none in common. Give y in the labels that "
            "the model predicts."
        )
    return truth, predicted
