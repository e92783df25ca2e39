"""Scorers of scikit-learn for folds. They are checked before anything is fitted."""

from __future__ import annotations

from difflib import get_close_matches
from inspect import Parameter, signature
from numbers import Real
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.metrics import check_scoring, get_scorer_names

# Scores that have another name elsewhere, with scikit-learn's name.
_ALIASES = {"auc": "roc_auc", "pr_auc": "average_precision", "mcc": "matthews_corrcoef"}


def find_scorer(estimator: Any, scoring: Any, y: np.ndarray) -> Any:
    """Return the scorer for ``scoring``.

    A scorer that cannot score labels like those of ``y`` is refused.

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
    """Return a hint for a name that no scorer has."""
    names = get_scorer_names()
    near = _ALIASES.get(scoring.lower()) or next(iter(get_close_matches(scoring, names, 1)), None)
    if near is not None:
        return f"did you mean {near!r}?"
    return (
        "try 'accuracy', 'balanced_accuracy', 'roc_auc', 'neg_log_loss', or another name of "
        "sklearn.metrics.get_scorer_names()"
    )


def _way_out(scorer: Any, classes: np.ndarray) -> str:
    """Return a hint for a scorer that expects the labels 0 and 1."""
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
        f"; give scoring=make_scorer({function.__name__}, pos_label={label!r}{how}), from "
        f"sklearn.metrics, or {other}"
    )


class FoldScorer:
    """Scores the test rows of folds. Its errors name the fold.

    Parameters
    ----------
    estimator : classifier
    scoring : str, callable or None
        Any scorer of scikit-learn.
    y : ndarray of shape (n_rows,)
        Labels of all rows.
    """

    def __init__(self, estimator: Any, scoring: Any, y: np.ndarray) -> None:
        self._scorer = find_scorer(estimator, scoring, y)
        self._scoring, self._n_classes = scoring, len(np.unique(y))

    def __call__(
        self, number: int, model: Any, X: Any, y: np.ndarray, weight: np.ndarray | None = None
    ) -> float:
        """Return the score of a model on the test rows of a fold. It must be a finite number."""
        weighted = {}
        if weight is not None and np.ptp(weight) > 0:
            if not _takes_weights(self._scorer):
                raise ValueError(
                    "rows have different weights, but scoring takes no sample_weight; give a "
                    "scorer from sklearn.metrics.make_scorer, or give no weights"
                )
            weighted["sample_weight"] = weight
        n_classes = len(np.unique(y))
        absent = n_classes < self._n_classes
        where = f"fold {number} of cv" + absent * (
            f", which has test rows of {n_classes} of {self._n_classes} classes"
        )
        hint = absent * "; use fewer folds, or a splitter that puts every class into every fold"
        try:
            score = self._scorer(model, X, y, **weighted)
        except ValueError as error:
            said = (str(error).splitlines() or [""])[0].rstrip(".")
            raise ValueError(
                f"scoring={self._scoring!r} cannot score {where}: {said}{hint}"
            ) from error
        if np.ndim(score) or not isinstance(np.asarray(score).item(), Real):
            what = "None" if score is None else f"a {type(score).__name__}"
            raise ValueError(
                f"scoring must return one number; {self._scoring!r} returned {what} for {where}"
            )
        if not np.isfinite(float(score)):
            raise ValueError(
                f"scoring={self._scoring!r} must be finite for {where}, not {float(score)}{hint}"
            )
        return float(score)


def _takes_weights(scorer: Any) -> bool:
    """Return whether a scorer takes ``sample_weight``, by name or as any keyword."""
    try:
        parameters = signature(scorer).parameters
    except (TypeError, ValueError):  # not all callables have a signature
        return False
    any_keyword = any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values())
    return any_keyword or "sample_weight" in parameters
