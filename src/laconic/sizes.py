"""Choosing the size: one path per fold, and the one-standard-error rule."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv


def cross_validate_sizes(
    estimator: Any, X: Any, y: np.ndarray, weight: np.ndarray, cv: Any
) -> np.ndarray:
    """Accuracy of every size on every fold, (n_folds, n_sizes), from one path per fold.

    Sizes run from the smallest of the paths on; a fold whose path ends early keeps its last model.
    Test rows count by their weight; a fold whose test rows weigh nothing is left out.
    """
    scores: list[list[float]] = []
    for fit, test in check_cv(cv, y, classifier=True).split(X, y):
        if not weight[test].sum() > 0:
            continue
        fold = clone(estimator)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="fit was interrupted")
            fold.fit(X[fit], y[fit], sample_weight=weight[fit])
        if fold.status_ == "interrupted":  # part of a path must not count as a whole one
            raise KeyboardInterrupt
        predicted = fold.staged_predict(X[test])
        scores.append([float(np.average(p == y[test], weights=weight[test])) for p in predicted])
    longest = max(len(s) for s in scores)
    return np.array([s + [s[-1]] * (longest - len(s)) for s in scores])


def one_standard_error(scores: np.ndarray) -> int:
    """Position of the smallest size whose mean score is within one standard error of the best.

    Examples
    --------
    >>> one_standard_error(np.array([[0.5, 0.79, 0.80, 0.81], [0.5, 0.81, 0.84, 0.83]]))
    1
    """
    mean = scores.mean(axis=0)
    error = scores.std(axis=0, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else mean * 0
    best = int(np.argmax(mean))
    return int(np.flatnonzero(mean >= mean[best] - error[best])[0])
