"""Choosing the size, or the price: one path per fold, and the one-standard-error rule."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing

# Prices to choose from, of one atom in mean loss, dearest first.
PRICES = (0.1, 0.05, 0.02, 0.01, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4)


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
        with _whole() as models:
            models.append(fold.fit(X[fit], y[fit], sample_weight=weight[fit]))
        predicted = fold.staged_predict(X[test])
        scores.append([float(np.average(p == y[test], weights=weight[test])) for p in predicted])
    longest = max(len(s) for s in scores)
    return np.array([s + [s[-1]] * (longest - len(s)) for s in scores])


def cross_validate_prices(
    estimator: Any, X: Any, y: Any, prices: Sequence[float], cv: Any
) -> np.ndarray:
    """Accuracy of a `TotalQBoostClassifier` at every price on every fold, (n_folds, n_prices)."""
    y, scores = np.asarray(y), []
    for fit, test in check_cv(cv, y, classifier=True).split(X, y):
        with _whole() as models:
            models += estimator.fit_path(_safe_indexing(X, fit), y[fit], price=prices)
        scores.append([model.score(_safe_indexing(X, test), y[test]) for model in models])
    return np.array(scores)


@contextmanager
def _whole() -> Iterator[list[Any]]:
    """Collects the models of a fold: part of a path must not count as a whole one."""
    models: list[Any] = []
    with warnings.catch_warnings():
        for message in ("fit was interrupted", "no atom is worth its price"):
            warnings.filterwarnings("ignore", message=message)
        yield models
    if any(model.status_ == "interrupted" for model in models):
        raise KeyboardInterrupt


def one_standard_error(scores: np.ndarray) -> int:
    """Position of the first (smallest size, dearest price) within one standard error of the best.

    Examples
    --------
    >>> one_standard_error(np.array([[0.5, 0.79, 0.80, 0.81], [0.5, 0.81, 0.84, 0.83]]))
    1
    """
    mean = scores.mean(axis=0)
    error = scores.std(axis=0, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else mean * 0
    best = int(np.argmax(mean))
    return int(np.flatnonzero(mean >= mean[best] - error[best])[0])
