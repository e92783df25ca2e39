"""Groups of labels: turn many labels into few groups, and score predicted groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from laconic.data.labels import check_labels


def group_labels(groups: Mapping[Any, Any], y: Any) -> np.ndarray:
    """Return the group of every label.

    Parameters
    ----------
    groups : mapping
        Names of groups, with the labels in each: one label, or any collection of labels. A name
        must not be a label, because the group could be mistaken for that label. The only exception
        is a group whose single label is its own name.
    y : array-like of shape (n_rows,)
        Labels. Each must be in a group.

    Examples
    --------
    >>> group_labels({"low": range(5), "high": range(5, 10)}, [3, 7]).tolist()
    ['low', 'high']
    """
    if len({isinstance(name, str) for name in groups}) > 1:
        raise ValueError("the names of label_groups must all be text, or none of them may be text")
    group_of: dict[Any, Any] = {}
    for name, labels in groups.items():
        for label in _listed(labels):
            if group_of.setdefault(label, name) != name:
                raise ValueError(f"label_groups has label {label!r} in two groups")
    for name, labels in groups.items():
        if name in group_of and _listed(labels) != [name]:
            raise ValueError(
                f"label_groups has a group {name!r}, which is also a label of group "
                f"{group_of[name]!r}. A score that compares predicted groups with labels would be "
                f"wrong. Give the group another name, such as {f'group {name}'!r}."
            )
    y = np.asarray(y)
    check_labels(y)
    strange = [label for label in np.unique(y).tolist() if label not in group_of]
    if strange:
        raise ValueError(f"label_groups has no group for label {strange[0]!r} of y")
    return np.array([group_of[label] for label in y.tolist()])


def _listed(labels: Any) -> list[Any]:
    """Return the labels of a group as a list. The group may be one label or any collection."""
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        return [labels]
    return np.ravel(labels).tolist() if isinstance(labels, np.ndarray) else list(labels)


def grouped_scorer(scoring: Any) -> GroupedScorer:
    """Return a scikit-learn scorer for a classifier with ``label_groups``. It compares groups.

    A plain scorer would compare the groups that such a classifier predicts with the labels in y.
    This scorer turns the labels into their groups first.

    Parameters
    ----------
    scoring : str or scorer
        Anything that `sklearn.metrics.get_scorer` takes, such as ``"balanced_accuracy"`` or
        ``"roc_auc"``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import cross_val_score
    >>> from laconic import ErrorClumpingClassifier, grouped_scorer
    >>> X, y = load_digits(return_X_y=True)
    >>> model = ErrorClumpingClassifier(label_groups={"low": range(5), "high": range(5, 10)})
    >>> scores = cross_val_score(model, X[:600], y[:600], scoring=grouped_scorer("roc_auc"), cv=3)
    >>> bool(scores.min() > 0.8)
    True
    """
    return GroupedScorer(scoring)


class GroupedScorer:
    """The result of `grouped_scorer`. Call it with a fitted classifier, rows and their labels."""

    def __init__(self, scoring: Any) -> None:
        from sklearn.metrics import get_scorer

        self.scoring = scoring
        self._scorer = get_scorer(scoring)

    def __call__(self, estimator: Any, X: Any, y: Any, **settings: Any) -> float:
        """Return the score on labels ``y`` of a classifier, or of a pipeline that ends with one."""
        last = getattr(estimator, "steps", [(None, estimator)])[-1][1]
        groups = getattr(last, "label_groups", None)
        if groups is None:
            raise ValueError(
                f"{type(last).__name__} has no label_groups, so there are no groups to compare; "
                f"use scoring={self.scoring!r} itself"
            )
        return float(self._scorer(estimator, X, group_labels(groups, y), **settings))

    def __repr__(self) -> str:
        return f"grouped_scorer({self.scoring!r})"
