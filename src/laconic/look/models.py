"""What the report asks of a classifier of any make: its name, what it reads, what it knows."""

from __future__ import annotations

from typing import Any


def may_classify(model: Any) -> bool:
    """Whether a model does not tell scikit-learn that it predicts something else than labels."""
    try:
        kind = model.__sklearn_tags__().estimator_type
    except (AttributeError, TypeError):  # no estimator of scikit-learn's, or only the class of one
        return True
    return kind not in ("regressor", "clusterer")


def read_by(model: Any, X: Any, kept: Any) -> Any:
    """The columns of a frame that a model was fitted on, where some are ignored in distances.

    By the same rules as on the command line: ignored columns reach a model that was fitted on them.
    Where they do not tell, the model gets all columns and speaks for itself.
    """
    from laconic.cli_columns import columns_of
    from laconic.tables import UserError

    if not hasattr(X, "iloc"):
        return X
    try:
        return columns_of(model, X, kept, "X")
    except UserError:
        return X
