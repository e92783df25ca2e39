"""Choosing the size, or the price: one path per fold, and the one-standard-error rule."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_sample_weight

from laconic.bars import progress_bar
from laconic.doubts import told_already
from laconic.scorers import find_scorer

# Prices to choose from, of one atom in mean loss, dearest first.
PRICES = (0.1, 0.05, 0.02, 0.01, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4)


def cross_validate_sizes(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    weight: np.ndarray,
    cv: Any,
    scoring: Any = None,
    groups: Any = None,
) -> np.ndarray:
    """Score of every size on every fold, (n_folds, n_sizes), from one path per fold.

    ``scoring`` is any of scikit-learn's, by default accuracy. The splitter gets ``groups`` of rows.
    Sizes run from the smallest of the paths on; a fold whose path ends early keeps its last model.
    Test rows count by their weight; a fold whose test rows weigh nothing is left out.
    """
    scorer = None if scoring is None else find_scorer(estimator, scoring, y)
    scores: list[dict[int, float]] = []
    for number, (fit, test) in enumerate(_folds(X, y, cv, groups), 1):
        test = test[weight[test] > 0]
        if len(test) == 0:
            continue
        known = np.unique(y[fit][weight[fit] > 0])
        if len(known) == 1:
            raise ValueError(
                f"fold {number} of cv leaves only rows of class {str(known[0])!r} to learn from; "
                "use fewer folds, or a splitter that shares out the classes (StratifiedGroupKFold)"
            )
        fold = clone(estimator)
        with _whole() as models:
            models.append(fold.fit(X[fit], y[fit], sample_weight=weight[fit]))
        scores.append(_size_scores(fold, X[test], y[test], weight[test], scorer))
        if not np.isfinite([*scores[-1].values()]).all():
            raise ValueError(
                f"scoring={scoring!r} gives no number for fold {number} of cv, which has test rows "
                f"of {len(np.unique(y[test]))} of {len(np.unique(y))} classes; use fewer folds"
            )
    return _by_size(scores)


def _by_size(scores: list[dict[int, float]]) -> np.ndarray:
    """Scores of all folds at every size, from the smallest on.

    A fold that has no model of a size has that of the next smaller one it has.
    """
    first, last = min(min(s) for s in scores), max(max(s) for s in scores)
    out = np.empty((len(scores), last - first + 1))
    for row, of_fold in zip(out, scores, strict=True):
        known = of_fold[min(of_fold)]
        for size in range(first, last + 1):
            known = of_fold.get(size, known)
            row[size - first] = known
    return out


def _folds(X: Any, y: np.ndarray, cv: Any, groups: Any) -> list[Any]:
    """Rows to learn from and rows to test on of every fold."""
    try:
        return list(check_cv(cv, y, classifier=True).split(X, y, groups))
    except ValueError as error:
        if groups is None and "groups" in str(error):
            raise ValueError(
                f"cv={cv!r} keeps groups of rows together, so it must know them: call "
                "fit(X, y, groups=...) (the groups of the constructor are of features)"
            ) from error
        raise


def _size_scores(
    fold: Any, X: Any, y: np.ndarray, weight: np.ndarray, scorer: Any
) -> dict[int, float]:
    """Score of every size of a fold's path on its test rows."""
    sizes = fold.path_.sizes
    if scorer is None:
        right = (np.average(p == y, weights=weight) for p in fold.staged_predict(X))
        return dict(zip(sizes, map(float, right), strict=True))
    weighted = _weighted(scorer, weight)
    return {size: float(scorer(fold.at(size), X, y, **weighted)) for size in sizes}


def _weighted(scorer: Any, weight: np.ndarray) -> dict[str, np.ndarray]:
    """The weights of test rows as a scorer takes them; nothing where all are alike."""
    weighted = {}
    if np.ptp(weight) > 0:
        if "sample_weight" not in signature(scorer).parameters:
            raise ValueError(
                "rows have different weights, but scoring takes no sample_weight; give a scorer of "
                "sklearn.metrics.make_scorer, or no weights"
            )
        weighted["sample_weight"] = weight
    return weighted


def cross_validate_prices(
    estimator: Any,
    X: Any,
    y: Any,
    prices: Sequence[float],
    cv: Any,
    scoring: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    verbose: int = 0,
) -> np.ndarray:
    """Score of a `TotalQBoostClassifier` at every price on every fold, (n_folds, n_prices).

    ``verbose=1`` shows a bar over all folds and prices.
    """
    y, scores = np.asarray(y), []
    scorer = find_scorer(estimator, scoring, y)
    folds = _folds(X, y, cv, groups)
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    with progress_bar("{task.fields[unit]}") if verbose else nullcontext() as bar:
        if bar is not None:
            unit = f"fits: {len(folds)} folds of {len(prices)} prices"
            task = bar.add_task("choosing the price", total=len(folds) * len(prices), unit=unit)
        for fit, test in folds:
            part = _safe_indexing(X, fit), y[fit], weight[fit], "price", prices
            test = test[weight[test] > 0]
            if len(test) == 0:
                continue
            with _whole() as models:
                for model in estimator._fitted(*part):
                    models.append(model)
                    if bar is not None:
                        bar.advance(task)
            given = _safe_indexing(X, test), y[test]
            weighted = _weighted(scorer, weight[test])
            scores.append([float(scorer(m, *given, **weighted)) for m in models])
    return np.array(scores)


@contextmanager
def _whole() -> Iterator[list[Any]]:
    """Collects the models of a fold: part of a path must not count as a whole one."""
    models: list[Any] = []
    with told_already(), warnings.catch_warnings():
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
