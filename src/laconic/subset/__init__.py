"""Which of the columns in hand to keep, under a price on each or a cap on their number.

`search` is the one entry: its methods are interchangeable, and answer with one kind of result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from laconic.numeric.threads import Threads
from laconic.subset.problem import Fit, SubsetProblem

__all__ = ["METHODS", "Fit", "SubsetProblem", "SubsetResult", "path", "search"]


# Local searches from random choices beside the greedy one.
RESTARTS = 8


class SubsetResult(NamedTuple):
    """What a subset search found."""

    support: np.ndarray
    """Numbers of the columns that were kept, ascending. None of them has weight zero."""
    weights: np.ndarray
    """Their weights."""
    intercept: float
    objective: float
    """Weighted mean loss + l1 ‖w‖₁ + price · number of columns."""
    bound: float
    """No support that was asked for has an objective below this; -inf where nothing is proven."""


def search(
    columns: Any,
    y: Any,
    *,
    loss: str = "exponential",
    method: Any = "local",
    price: float | None = None,
    max_atoms: int | None = None,
    l1: float = 0.0,
    nonnegative: bool = False,
    intercept: bool = True,
    sample_weight: Any = None,
    starts: Iterable[Iterable[int]] = (),
    **options: Any,
) -> SubsetResult:
    """Choose columns and weights: mean loss + l1 ‖w‖₁ + price · |support| (TotalQBoost eq. (3)).

    Parameters
    ----------
    columns : array-like of shape (n_rows, n_columns)
        Columns of 0 and 1, or of -1 and 1.
    y : array-like of shape (n_rows,)
        Labels, two different ones; the larger is the positive class.
    loss : {"exponential", "logistic", "squared_hinge"}, default="exponential"
        Of the margin ±f(x).
    method : {"local", "exact", "tabu", "anneal"} or dimod sampler, default="local"
        Add, drop and swap moves; branch and bound with a proven gap; or the paper's way: weights of
        a few bits, chosen by tabu search, by simulated annealing, or by any sampler of D-Wave's
        Ocean (``pip install laconic[dwave]``).
    price : float, default=None
        λ, of one column, for the *mean* loss (the paper's, for the sum, is n_rows times this).
    max_atoms : int, default=None
        Largest support. With ``price=None`` columns cost nothing up to here. Give at least one of
        the two.
    l1 : float, default=0.0
        ν, for the mean loss. A little of it keeps weights finite on separable data.
    nonnegative : bool, default=False
        Whether weights must be at least 0.
    intercept : bool, default=True
        Whether there is a constant term, which costs nothing.
    sample_weight : array-like of shape (n_rows,), default=None
    starts : iterable of supports
        Supports that the answer must be at least as good as.
    **options
        Of the method: ``restarts=8``, ``sweeps=4``, ``tries=5``, ``seed=0`` and ``n_jobs=None`` of
        the local search (see `laconic.subset.at_every_size.local_search`); ``max_nodes`` and
        ``max_seconds`` of the exact one, which has no limits unless they are given; ``bits=6``,
        ``rounds=20``, ``seed=0`` and ``parameters`` (for the sampler) of the others.

    Returns
    -------
    SubsetResult

    Examples
    --------
    >>> import numpy as np
    >>> from laconic.subset import search
    >>> X = np.array([[1, 1, -1], [1, -1, 1], [-1, 1, 1], [-1, -1, -1], [1, 1, 1], [-1, 1, -1]])
    >>> y = np.array([1, 1, 0, 0, 1, 1])
    >>> search(X, y, price=0.2, l1=0.01).support
    array([0])
    """
    problem = make_problem(columns, y, loss, l1, nonnegative, intercept, sample_weight)
    if price is None and max_atoms is None:
        raise ValueError("give a price on every column, or max_atoms, the largest number of them")
    if price is not None:
        check_number("price", price)
    if max_atoms is not None:
        check_number("max_atoms", max_atoms, whole=True)
    cap = problem.n_columns if max_atoms is None else min(max_atoms, problem.n_columns)
    starts = checked_supports(starts, problem.n_columns)
    run = find_method(method)
    check_options(method, options)
    with Threads(1):  # many small products, which more threads of BLAS only slow down
        fit, bound = run(problem, price or 0.0, cap, starts, **options)
    return _result(problem, fit, price or 0.0, bound)


def path(
    columns: Any,
    y: Any,
    max_atoms: int,
    *,
    loss: str = "exponential",
    l1: float = 0.0,
    nonnegative: bool = False,
    intercept: bool = True,
    sample_weight: Any = None,
    starts: Iterable[Iterable[int]] = (),
    restarts: int = RESTARTS,
    **options: Any,
) -> list[SubsetResult]:
    """The best support found of every size up to ``max_atoms``, by the local search.

    Neighbouring sizes start from each other. The parameters are those of `search`; columns have no
    price, so ``objective`` is the mean loss + l1 ‖w‖₁. Add ``price`` times the size to it, and the
    least is the answer at that price.

    Returns
    -------
    list of SubsetResult
        By size, from none. A size at which no column helps any more is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from laconic.subset import path
    >>> X = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]])
    >>> y = np.array([1, 1, 0, 0, 1, 1])
    >>> [result.support.tolist() for result in path(X, y, 2, l1=0.01)]
    [[], [0], [0, 1]]
    """
    from laconic.subset.at_every_size import local_search

    problem = make_problem(columns, y, loss, l1, nonnegative, intercept, sample_weight)
    check_number("max_atoms", max_atoms, whole=True)
    check_options("local", options)
    starts = checked_supports(starts, problem.n_columns)
    with Threads(1):
        cap = min(max_atoms, problem.n_columns)
        fits = local_search(problem, cap, starts, restarts=restarts, **options)
    return [_result(problem, fit, 0.0, -np.inf) for fit in fits]


def make_problem(
    columns: Any,
    y: Any,
    loss: str,
    l1: float,
    nonnegative: bool,
    intercept: bool,
    sample_weight: Any,
) -> SubsetProblem:
    """Check what a user gives, and make it a problem."""
    from laconic.data.labels import check_labels
    from laconic.losses import BINARY_LOSSES

    check_labels(y)
    columns, y = np.asarray(columns), np.asarray(y)
    if columns.ndim != 2 or y.shape != columns.shape[:1] or len(y) == 0:
        raise ValueError(
            "columns must be a matrix with a row for every label; "
            f"got shapes {columns.shape} and {y.shape}"
        )
    known = (columns == 0) | (columns == 1) | (columns == -1)
    mixed = (columns == 0).any(axis=0) & (columns == -1).any(axis=0)
    if not known.all() or mixed.any():
        raise ValueError("columns must hold 0 and 1, or -1 and 1, only")
    if loss not in BINARY_LOSSES:
        known = ", ".join(repr(name) for name in BINARY_LOSSES)
        raise ValueError(f"loss must be one of {known}, not {loss!r}")
    check_number("l1", l1)
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weight.shape != y.shape or not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight must have a finite weight of at least 0 for every row")
    if not weight.sum() > 0:
        raise ValueError("sample_weight must not be zero everywhere")
    kept = weight > 0
    if y.dtype.kind == "f" and np.isnan(y[kept]).any():
        raise ValueError("y must not be NaN; leave such rows out")
    labels = np.unique(y[kept])
    if len(labels) != 2:
        rows = "" if kept.all() else " in rows of positive weight"
        raise ValueError(f"y must have two different labels{rows}, not {len(labels)}")
    signs = np.where(y == labels[1], 1.0, -1.0)
    return SubsetProblem(
        columns[kept], signs[kept], weight[kept] / weight.sum(), loss, l1, nonnegative, intercept
    )


def checked_supports(supports: Iterable[Iterable[int]], n_columns: int) -> list[tuple[int, ...]]:
    """Supports as a user gives them: numbers of columns, ascending."""
    out = []
    for support in supports:
        numbers = np.asarray(list(support))
        whole = numbers.size == 0 or numbers.dtype.kind in "iu"
        if not whole or len(set(numbers.tolist()) & set(range(n_columns))) < numbers.size:
            raise ValueError(
                f"each of starts must hold different numbers of columns, 0 to {n_columns - 1}, "
                f"not {numbers.tolist()}"
            )
        out.append(tuple(sorted(numbers.tolist())))
    return out


def _result(problem: SubsetProblem, fit: Fit, price: float, bound: float) -> SubsetResult:
    """Leave columns of weight zero out: they only cost."""
    n = len(fit.support)
    used = fit.weights[:n] != 0
    support = np.array(fit.support, dtype=np.int64)[used]
    return SubsetResult(
        support,
        fit.weights[:n][used],
        float(fit.weights[n]) if problem.intercept else 0.0,
        fit.value + price * len(support),
        bound,
    )


def check_number(name: str, value: Any, whole: bool = False) -> None:
    """Refuse what is not a finite number of at least 0."""
    if not isinstance(value, Integral if whole else Real) or not 0 <= float(value) < np.inf:
        kind = "whole" if whole else "finite"
        raise ValueError(f"{name} must be a {kind} number of at least 0, not {value!r}")


def check_options(method: Any, options: Mapping[str, Any]) -> None:
    """Refuse options that a method does not have, and limits that are none."""
    by_name = isinstance(method, str)
    known = OPTIONS[method] if by_name else OPTIONS["anneal"]
    whose = repr(method) if by_name else "a sampler"
    for name, value in options.items():
        if name not in known:
            raise ValueError(f"{whose} has no option {name!r}; it has {', '.join(known)}")
        if name not in ("parameters", "n_jobs") and value is not None:
            check_number(name, value, whole=name != "max_seconds")


def find_method(
    method: Any, parameter: str = "method", others: str = ""
) -> Callable[..., tuple[Fit, float]]:
    """The search of that name, or by a sampler: called with problem, price, cap and starts.

    Errors name the parameter that it was given as, and what else that may be.
    """
    if isinstance(method, str) and method in METHODS:
        return METHODS[method]
    if callable(getattr(method, "sample", None)) and not isinstance(method, type):
        return partial(_sampled, method)
    known = ", ".join(repr(name) for name in METHODS)
    raise ValueError(
        f"{parameter} must be one of {others}{known} or an object with a method sample(model), "
        f"not {method!r}"
    )


def _local(
    problem: SubsetProblem,
    price: float,
    cap: int,
    starts: Iterable[Iterable[int]],
    restarts: int = RESTARTS,
    **options: Any,
) -> tuple[Fit, float]:
    from laconic.subset.at_every_size import local_search

    fits = local_search(problem, cap, starts, restarts=restarts, **options)
    return min(fits, key=lambda fit: fit.value + price * len(fit.support)), -np.inf


def _exact(
    problem: SubsetProblem, price: float, cap: int, starts: Iterable[Iterable[int]], **options: Any
) -> tuple[Fit, float]:
    from laconic.subset.exact import branch_and_bound

    proof = branch_and_bound(problem, price, cap, starts, **options)
    return proof.fit, proof.bound


def _tabu(*args: Any, parameters: Mapping[str, Any] = {}, **options: Any) -> tuple[Fit, float]:
    from laconic.subset.qubo import TABU, tabu_sampler

    return _sampled(tabu_sampler(), *args, parameters={**TABU, **parameters}, **options)


def _anneal(*args: Any, parameters: Mapping[str, Any] = {}, **options: Any) -> tuple[Fit, float]:
    from laconic.subset.qubo import ANNEAL, annealing_sampler

    return _sampled(annealing_sampler(), *args, parameters={**ANNEAL, **parameters}, **options)


def _sampled(sampler: Any, *args: Any, **options: Any) -> tuple[Fit, float]:
    from laconic.subset.qubo import qubo_search

    return qubo_search(*args, sampler=sampler, **options), -np.inf


METHODS: dict[str, Callable[..., tuple[Fit, float]]] = {
    "local": _local,
    "exact": _exact,
    "tabu": _tabu,
    "anneal": _anneal,
}
OPTIONS = {
    "local": ("restarts", "sweeps", "tries", "seed", "n_jobs"),
    "exact": ("max_nodes", "max_seconds"),
    "tabu": ("bits", "rounds", "seed", "parameters"),
    "anneal": ("bits", "rounds", "seed", "parameters"),
}
"""What else each method takes; a sampler takes what the last two do."""
