"""Choosing the size, or the price: one path per fold, and the one-standard-error rule."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from inspect import Parameter, signature
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_sample_weight

from laconic.data.doubts import told_already
from laconic.estimators.scorers import find_scorer
from laconic.look.bars import progress_bar

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
    scorer = None if scoring is None else _Scorer(estimator, scoring, y)
    scores: list[dict[int, float]] = []
    for number, fit, test in _folds(X, y, weight, cv, groups):
        fold = clone(estimator)
        with _whole() as models:
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


def _folds(
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


class _Scorer:
    """Scores the test rows of folds; errors name the fold.

    Parameters
    ----------
    estimator : classifier
    scoring : str, callable or None
        Any of scikit-learn's.
    y : ndarray of shape (n_rows,)
        Labels of all rows.
    """

    def __init__(self, estimator: Any, scoring: Any, y: np.ndarray) -> None:
        self._scorer = find_scorer(estimator, scoring, y)
        self._scoring, self._n_classes = scoring, len(np.unique(y))

    def __call__(
        self, number: int, model: Any, X: Any, y: np.ndarray, weight: np.ndarray | None = None
    ) -> float:
        """Score of a model on the test rows of a fold, which must be a finite number."""
        weighted = {}
        if weight is not None and np.ptp(weight) > 0:
            if not _takes_weights(self._scorer):
                raise ValueError(
                    "rows have different weights, but scoring takes no sample_weight; give a "
                    "scorer of sklearn.metrics.make_scorer, or no weights"
                )
            weighted["sample_weight"] = weight
        n_classes = len(np.unique(y))
        absent = n_classes < self._n_classes
        where = f"fold {number} of cv" + absent * (
            f", which has test rows of {n_classes} of {self._n_classes} classes"
        )
        hint = absent * "; use fewer folds, or a splitter that shares out the classes"
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
                f"scoring must give one number; {self._scoring!r} gave {what} for {where}"
            )
        if not np.isfinite(float(score)):
            raise ValueError(
                f"scoring={self._scoring!r} gives no number for {where}, but {float(score)}{hint}"
            )
        return float(score)


def _takes_weights(scorer: Any) -> bool:
    """Whether a scorer takes ``sample_weight``, by name or among any keywords."""
    try:
        parameters = signature(scorer).parameters
    except (TypeError, ValueError):  # of what is no Python
        return False
    any_keyword = any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values())
    return any_keyword or "sample_weight" in parameters


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
    from laconic.estimators.price_paths import fitted_path  # which builds on this file

    y, scores = np.asarray(y), []
    scorer = _Scorer(estimator, scoring, y)
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    folds = _folds(X, y, weight, cv, groups)
    with progress_bar("{task.fields[unit]}") if verbose else nullcontext() as bar:
        if bar is not None:
            unit = f"fits: {len(folds)} folds of {len(prices)} prices"
            task = bar.add_task("choosing the price", total=len(folds) * len(prices), unit=unit)
        for number, fit, test in folds:
            part = _safe_indexing(X, fit), y[fit], weight[fit], "price", prices
            with _whole() as models:
                for model in fitted_path(estimator, *part):
                    models.append(model)
                    if bar is not None:
                        bar.advance(task)
            rows = _safe_indexing(X, test), y[test], weight[test]
            scores.append([scorer(number, model, *rows) for model in models])
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
