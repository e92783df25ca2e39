"""What the report asks of any classifier: its name, the columns it reads, the labels it knows."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from laconic.data.cells import is_frame
from laconic.estimators.label_groups import group_labels
from laconic.model.predictor import Predictor


def may_classify(model: Any) -> bool:
    """Return False if a model tells scikit-learn that it predicts something other than labels."""
    try:
        kind = model.__sklearn_tags__().estimator_type
    except (AttributeError, TypeError):  # not a scikit-learn estimator, or only the class of one
        return True
    return kind not in ("regressor", "clusterer")


def read_by(model: Any, X: Any, kept: Any) -> Any:
    """Return the columns that a model was fitted on.

    ``kept`` are the columns that are not ignored in distances. The rules are those of the command
    line: ignored columns reach a model that was fitted on them. If the rules do not apply, the
    model gets all columns, and may raise its own error.
    """
    from laconic.data.errors import UserError
    from laconic.report.given_columns import columns_of

    if not is_frame(X):
        return kept if getattr(model, "n_features_in_", None) == np.shape(kept)[-1] else X
    try:
        return columns_of(model, X, kept, "X")
    except UserError:
        return X


def model_name(model: Any) -> str:
    """Return the name of a model: its class, or the class of the last step of a pipeline."""
    from laconic.model.card import atoms_in_words

    if isinstance(model, Predictor):
        return f"the Laconic model of {atoms_in_words(model)}"
    return type(_last(model)).__name__


def known_labels(model: Any) -> np.ndarray | None:
    """Return the labels that a model knows, or None if it does not tell."""
    known = getattr(model, "classes_", getattr(model, "classes", None))
    if isinstance(known, list | tuple | np.ndarray) and np.ndim(known) == 1:
        return np.asarray(known)
    return None


def in_groups(model: Any, y: Any) -> Any:
    """Return labels as the model predicts them: their groups if it has ``label_groups``.

    Labels that are already names of groups, or are in no group, stay as they are.
    """
    groups = getattr(_last(getattr(model, "best_estimator_", model)), "label_groups", None)
    if groups is None:
        return y
    y = np.asarray(y)
    found = {str(name): name for name in groups}
    for label in np.unique(y).tolist():
        if str(label) not in found:
            with contextlib.suppress(
                ValueError
            ):  # a label in no group, which the model does not know
                found[str(label)] = group_labels(groups, [label])[0]
    return np.array([found.get(str(label), label) for label in y.tolist()], dtype=object)


def _last(model: Any) -> Any:
    """Return the model, or the last step of a pipeline."""
    steps = getattr(model, "steps", None)
    return steps[-1][1] if isinstance(steps, list) and steps else model
