"""Choose the size by folds: one path per fold, and the one-standard-error rule."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing

from laconic.estimators.independent import independent, whole
from laconic.estimators.scorers import FoldScorer


def cross_validate_sizes(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    weight: np.ndarray,
    cv: Any,
    scoring: Any = None,
    groups: Any = None,
) -> np.ndarray:
    """Return the score of every size on every fold, (n_folds, n_sizes), from one path per fold.

    ``scoring`` is any scorer of scikit-learn. The default is accuracy. The splitter gets the
    ``groups`` of rows. The first size is the smallest of all paths. If the path of a fold ends
    early, its last model stands for the larger sizes. Test rows count by their weight. A fold whose
    test rows all have weight 0 is left out.
    """
    scorer = None if scoring is None else FoldScorer(estimator, scoring, y)
    folds, shared = used_folds(X, y, weight, cv, groups), (estimator, scorer, X, y, weight)
    return _by_size(list(independent(_scores_of_fold, folds, shared, threads=estimator.n_jobs)))


def _scores_of_fold(
    n_jobs: int | None,
    number: int,
    fit: np.ndarray,
    test: np.ndarray,
    estimator: Any,
    scorer: FoldScorer | None,
    X: Any,
    y: np.ndarray,
    weight: np.ndarray,
) -> dict[int, float]:
    """Return the score of every size of the path of a fold."""
    fold = clone(estimator).set_params(n_jobs=n_jobs)
    whole(fold.fit(*part_of(fit, X, y, weight)))
    rows = part_of(test, X, y, weight)
    if scorer is None:
        found = [np.average(p == rows[1], weights=rows[2]) for p in fold.staged_predict(rows[0])]
    else:
        found = [scorer(number, fold.at(size), *rows) for size in fold.path_.sizes]
    return dict(zip(fold.path_.sizes.tolist(), map(float, found), strict=True))


def _by_size(scores: list[dict[int, float]]) -> np.ndarray:
    """Return the scores of all folds at every size, smallest first.

    If a fold has no model of a size, its model of the next smaller size counts.
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
    """Return the number, training rows and test rows of every fold that has test rows."""
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
                "use fewer folds, or a splitter that puts every class into every fold "
                "(StratifiedGroupKFold)"
            )
        used.append((number, fit, test))
    if not used:
        raise ValueError("no fold of cv has test rows with a positive weight")
    return used


def part_of(
    rows: np.ndarray, X: Any, y: np.ndarray, weight: np.ndarray
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return the given rows of X, y and the weights. X may be sparse, or a frame."""
    return _safe_indexing(X, rows), y[rows], weight[rows]


def _numbers(rows: Any, number: int, n_rows: int) -> np.ndarray:
    """Return the numbers of a fold's rows, which may be given as numbers or as a mask."""
    given = np.asarray(rows)
    if given.size == 0:
        return np.empty(0, dtype=np.intp)
    if given.ndim != 1 or given.dtype.kind not in "biu":
        raise ValueError(f"fold {number} of cv must give rows as numbers or as a mask")
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
    """Return the training and test rows of every fold, as the splitter gives them."""
    try:
        return list(check_cv(cv, y, classifier=True).split(X, y, groups))
    except TypeError as error:  # folds that are not pairs
        raise ValueError(f"cv must be a number, a splitter or pairs of rows, not {cv!r}") from error
    except ValueError as error:
        if groups is None and "groups" in str(error):
            raise ValueError(
                f"cv={cv!r} keeps groups of rows together, so it needs the groups: call "
                "fit(X, y, groups=...). (The groups of the constructor are groups of features.)"
            ) from error
        raise


def one_standard_error(scores: np.ndarray) -> int:
    """Return the first position within one standard error of the best.

    The first position is the smallest size, or the highest price.

    Examples
    --------
    >>> one_standard_error(np.array([[0.5, 0.79, 0.80, 0.81], [0.5, 0.81, 0.84, 0.83]]))
    1
    """
    mean = scores.mean(axis=0)
    error = scores.std(axis=0, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else mean * 0
    best = int(np.argmax(mean))
    return int(np.flatnonzero(mean >= mean[best] - error[best])[0])
