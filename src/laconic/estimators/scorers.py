"""Scorers by name: those of scikit-learn, checked before anything is fitted."""

from __future__ import annotations

from difflib import get_close_matches
from inspect import signature
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.metrics import check_scoring, get_scorer_names

# What scikit-learn calls scores that have other names elsewhere.
_ALIASES = {"auc": "roc_auc", "pr_auc": "average_precision", "mcc": "matthews_corrcoef"}


def find_scorer(estimator: Any, scoring: Any, y: np.ndarray) -> Any:
    """The scorer that ``scoring`` means, where it can score labels such as those of ``y``.

    Examples
    --------
    >>> find_scorer(DummyClassifier(), "auc", np.array([0, 1]))
    Traceback (most recent call last):
    ...
    ValueError: scoring='auc' is unknown; did you mean 'roc_auc'?
    """
    if not isinstance(scoring, str):
        return check_scoring(estimator, scoring)
    if scoring not in get_scorer_names():
        raise ValueError(f"scoring={scoring!r} is unknown; {_known(scoring)}")
    scorer = check_scoring(estimator, scoring)
    classes = np.unique(y)
    rows = np.zeros((2 * len(classes), 1))
    guess = DummyClassifier(strategy="prior").fit(rows, np.tile(classes, 2))
    try:
        scorer(guess, rows, np.tile(classes, 2))
    except (TypeError, ValueError) as error:
        said = str(error).splitlines()[0].rstrip(".")
        raise ValueError(
            f"scoring={scoring!r} cannot score the labels of y: {said}{_way_out(scorer, classes)}"
        ) from error
    return scorer


def _known(scoring: str) -> str:
    """What may be meant by a name that is no scorer's."""
    names = get_scorer_names()
    near = _ALIASES.get(scoring.lower()) or next(iter(get_close_matches(scoring, names, 1)), None)
    if near is not None:
        return f"did you mean {near!r}?"
    return (
        "try 'accuracy', 'balanced_accuracy', 'roc_auc', 'neg_log_loss', or another name of "
        "sklearn.metrics.get_scorer_names()"
    )


def _way_out(scorer: Any, classes: np.ndarray) -> str:
    """What to give instead of a scorer that looks for the class 1 of 0 and 1."""
    function = scorer._score_func
    if "pos_label" not in signature(function).parameters:
        return ""
    mean = function.__name__.removesuffix("_score") + "_macro"
    other = f"scoring={mean!r}" if mean in get_scorer_names() else "scoring='roc_auc_ovr'"
    if len(classes) > 2:
        return f"; give {other}"
    answers = scorer._response_method
    how = "" if answers == "predict" else f", response_method={answers!r}"
    label = classes[-1:].tolist()[0]
    return (
        f"; give scoring=make_scorer({function.__name__}, pos_label={label!r}{how}), of "
        f"sklearn.metrics, or {other}"
    )
