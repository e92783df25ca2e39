"""Choosing the size by folds: one path per fold, and the one-standard-error rule."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv

from laconic.data.doubts import told_already
from laconic.estimators.scorers import FoldScorer

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
    scorer = None if scoring is None else FoldScorer(estimator, scoring, y)
    scores: list[dict[int, float]] = []
    for number, fit, test in used_folds(X, y, weight, cv, groups):
        fold = clone(estimator)
        with whole_fits() as models:
            models.append(fold.fit(X[fit], y[fit], sample_weight=weight[fit]))
        rows = X[test], y[test], weight[test]
        if scorer is None:
            found = [
                np.average(p == rows[1], weights=rows[2]) for p in fold.staged_predict(rows[0])
            ]
        else:
            found = [scorer(number, fold.at(size), *rows) for size in fold.path_.sizes]
        scores.append(dict(zip(fold.path_.sizes, map(float, found), strict=True)))
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


def used_folds(
    X: Any, y: np.ndarray, weight: np.ndarray, cv: Any, groups: Any = None
) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Number, rows to learn from and rows to test on of every fold that has both."""
    used = []
    pairs = _pairs(X, y, cv, groups)
    if not pairs:
        raise ValueError("cv has no folds; give a number of folds, a splitter or pairs of rows")
    for number, (fit, test) in enumerate(pairs, 1):
        fit, test = (_numbers(rows, number, len(y)) for rows in (fit, test))
        test = test[weight[test] > 0]
        if len(test) == 0:
            continue
        known = np.unique(y[fit][weight[fit] > 0])
        if len(known) == 0:
            raise ValueError(f"fold {number} of cv leaves no rows to learn from")
        if len(known) == 1:
            raise ValueError(
                f"fold {number} of cv leaves only rows of class {str(known[0])!r} to learn from; "
                "use fewer folds, or a splitter that shares out the classes (StratifiedGroupKFold)"
            )
        used.append((number, fit, test))
    if not used:
        raise ValueError("no fold of cv has test rows that weigh anything")
    return used


def _numbers(rows: Any, number: int, n_rows: int) -> np.ndarray:
    """Rows of a fold by their numbers; they may come as a list, or as a mask."""
    given = np.asarray(rows)
    if given.size == 0:
        return np.empty(0, dtype=np.intp)
    if given.ndim != 1 or given.dtype.kind not in "biu":
        raise ValueError(f"fold {number} of cv must name rows by their numbers or a mask")
    if given.dtype.kind == "b":
        if len(given) != n_rows:
            raise ValueError(
                f"fold {number} of cv has a mask of {len(given)} rows, but X has {n_rows} rows"
            )
        return np.flatnonzero(given)
    outside = given[(given < -n_rows) | (given >= n_rows)]
    if len(outside):
        most = outside[np.argmax(np.abs(outside))]
        raise ValueError(f"fold {number} of cv names row {most}, but X has {n_rows} rows")
    return given.astype(np.intp)


def _pairs(X: Any, y: np.ndarray, cv: Any, groups: Any) -> list[Any]:
    """Rows to learn from and rows to test on of every fold, as the splitter has them."""
    try:
        return list(check_cv(cv, y, classifier=True).split(X, y, groups))
    except TypeError as error:  # of folds that are no pairs
        raise ValueError(f"cv must be a number, a splitter or pairs of rows, not {cv!r}") from error
    except ValueError as error:
        if groups is None and "groups" in str(error):
            raise ValueError(
                f"cv={cv!r} keeps groups of rows together, so it must know them: call "
                "fit(X, y, groups=...) (the groups of the constructor are of features)"
            ) from error
        raise


@contextmanager
def whole_fits() -> Iterator[list[Any]]:
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
