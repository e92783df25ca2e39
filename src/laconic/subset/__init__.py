"""Choose which of given columns to keep, with a price on each column or a cap on their number.

Use `search` to choose columns at one price or cap, and `path` to get the best choice of every size.
All methods of `search` return the same kind of result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from laconic.numeric.threads import Threads
from laconic.subset.contract import Fit
from laconic.subset.problem import SubsetProblem

__all__ = ["METHODS", "Fit", "SubsetProblem", "SubsetResult", "path", "search"]


# Number of randomised local searches in addition to the greedy one.
RESTARTS = 8


class SubsetResult(NamedTuple):
    """Result of a subset search."""

    support: np.ndarray
    """Numbers of the chosen columns, in ascending order. None of them has weight zero."""
    weights: np.ndarray
    """Weights of the chosen columns."""
    intercept: float
    """The constant term, 0 without an intercept."""
    objective: float
    """Weighted mean loss + l1 ‖w‖₁ + price · number of chosen columns."""
    bound: float
    """Proven lower bound on the objective of every allowed support. It is -inf if nothing is
    proven: only the method "exact" proves a bound."""


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
    """Choose a few columns and their weights for a classifier of two classes.

    The search minimises mean loss + l1 ‖w‖₁ + price · |support| (TotalQBoost eq. (3)). The support
    is the set of chosen columns.

    Parameters
    ----------
    columns : array-like of shape (n_rows, n_columns)
        Each column holds 0 and 1, or -1 and 1.
    y : array-like of shape (n_rows,)
        Labels with two different values. The larger value is the positive class.
    loss : {"exponential", "logistic", "squared_hinge"}, default="exponential"
        Loss of the margin, which is f(x) for the positive class and −f(x) for the other.
    method : {"local", "exact", "tabu", "anneal"} or dimod sampler, default="local"
        How to search:

        * "local" adds, drops and swaps columns until no move that it tries helps.
        * "exact" uses branch and bound. It also returns a proven lower bound on the objective.
        * "tabu" and "anneal" work as in the paper. They give each weight a few bits and choose the
          bits by tabu search or simulated annealing. A sampler of D-Wave's Ocean chooses the bits
          in the same way. Install these methods with ``pip install ".[dwave]"``.
    price : float, default=None
        λ, the price of one column for the *mean* loss. The paper's λ is for the sum of the losses,
        so it is n_rows times this. None means that columns have no price.
    max_atoms : int, default=None
        Largest number of columns. None means no limit. Set ``price``, ``max_atoms`` or both.
    l1 : float, default=0.0
        ν, the l1 penalty for the mean loss. A small value keeps weights finite on separable data.
    nonnegative : bool, default=False
        Whether all weights must be at least 0.
    intercept : bool, default=True
        Whether to add a constant term. It has no price and no penalty.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows. Without them all rows count equally.
    starts : iterable of supports
        Supports to start from, each a list of column numbers. The result is at least as good as
        each of them that ``max_atoms`` allows.
    **options
        Options of the method:

        * "local": ``restarts=8``, ``sweeps=4``, ``tries=5``, ``seed=0`` and ``n_jobs=None`` (see
          `laconic.subset.at_every_size.local_search`).
        * "exact": ``max_nodes`` and ``max_seconds``. By default there is no limit.
        * "tabu", "anneal" and samplers: ``bits=6``, ``rounds=20``, ``seed=0`` and ``parameters``
          (a dict of arguments for the sampler).

    Returns
    -------
    SubsetResult
        The chosen columns, their weights, the objective and a bound.

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
        raise ValueError("price and max_atoms are both None. Set at least one of them.")
    if price is not None:
        check_number("price", price)
    if max_atoms is not None:
        check_number("max_atoms", max_atoms, whole=True)
    cap = problem.n_columns if max_atoms is None else min(max_atoms, problem.n_columns)
    starts = checked_supports(starts, problem.n_columns)
    run = find_method(method)
    check_options(method, options)
    with Threads(1):  # products are small, so more BLAS threads would only slow them down
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
    """Return the best support found of every size up to ``max_atoms``, by the local search.

    Neighbouring sizes start from each other. The parameters are those of `search`. Columns have no
    price here, so ``objective`` is the mean loss + l1 ‖w‖₁. To find the answer at a price, add the
    price times the size to each objective and take the smallest sum.

    Returns
    -------
    list of SubsetResult
        One result for each size, starting with size 0. A size at which no column helps any more is
        left out.

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
    """Check the arguments of a user and return them as a problem."""
    from laconic.data.labels import check_labels
    from laconic.losses import BINARY_LOSSES

    check_labels(y)
    columns, y = np.asarray(columns), np.asarray(y)
    if columns.ndim != 2 or y.shape != columns.shape[:1] or len(y) == 0:
        raise ValueError(
            "columns must be a matrix with one row for each label of y, "
            f"but their shapes are {columns.shape} and {y.shape}."
        )
    known = (columns == 0) | (columns == 1) | (columns == -1)
    mixed = (columns == 0).any(axis=0) & (columns == -1).any(axis=0)
    if not known.all() or mixed.any():
        raise ValueError("Each of columns must hold only 0 and 1, or only -1 and 1.")
    if loss not in BINARY_LOSSES:
        known = ", ".join(repr(name) for name in BINARY_LOSSES)
        raise ValueError(f"loss must be one of {known}, not {loss!r}.")
    check_number("l1", l1)
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weight.shape != y.shape or not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight must have a finite weight of at least 0 for every row.")
    if not weight.sum() > 0:
        raise ValueError("sample_weight must be positive for at least one row.")
    kept = weight > 0
    if y.dtype.kind == "f" and np.isnan(y[kept]).any():
        raise ValueError("y must not contain NaN. Remove these rows.")
    labels = np.unique(y[kept])
    if len(labels) != 2:
        rows = "" if kept.all() else " in rows of positive weight"
        raise ValueError(f"y must have two different labels{rows}, not {len(labels)}.")
    signs = np.where(y == labels[1], 1.0, -1.0)
    return SubsetProblem(
        columns[kept], signs[kept], weight[kept] / weight.sum(), loss, l1, nonnegative, intercept
    )


def checked_supports(supports: Iterable[Iterable[int]], n_columns: int) -> list[tuple[int, ...]]:
    """Check the supports of a user and return each as ascending column numbers."""
    out = []
    for support in supports:
        numbers = np.asarray(list(support))
        whole = numbers.size == 0 or numbers.dtype.kind in "iu"
        if not whole or len(set(numbers.tolist()) & set(range(n_columns))) < numbers.size:
            raise ValueError(
                f"Each of starts must hold different column numbers from 0 to {n_columns - 1}, "
                f"not {numbers.tolist()}."
            )
        out.append(tuple(sorted(numbers.tolist())))
    return out


def _result(problem: SubsetProblem, fit: Fit, price: float, bound: float) -> SubsetResult:
    """Return a fit as a result. Columns of weight zero are left out, because they only cost."""
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
    """Refuse anything but a finite number of at least 0."""
    if not isinstance(value, Integral if whole else Real) or not 0 <= float(value) < np.inf:
        kind = "whole" if whole else "finite"
        raise ValueError(f"{name} must be a {kind} number of at least 0, not {value!r}.")


def check_options(method: Any, options: Mapping[str, Any]) -> None:
    """Refuse options that a method does not have, and values that are not valid."""
    by_name = isinstance(method, str)
    known = OPTIONS[method] if by_name else OPTIONS["anneal"]
    whose = repr(method) if by_name else "a sampler"
    for name, value in options.items():
        if name not in known:
            raise ValueError(f"{whose} has no option {name!r}. Its options are {', '.join(known)}.")
        if name not in ("parameters", "n_jobs") and value is not None:
            check_number(name, value, whole=name != "max_seconds")


def find_method(
    method: Any, parameter: str = "method", others: str = ""
) -> Callable[..., tuple[Fit, float]]:
    """Return the search function of a method's name or of a sampler.

    Call it with problem, price, cap and starts. ``parameter`` and ``others`` are for the error
    message: the name of the parameter, and other values that it may have.
    """
    if isinstance(method, str) and method in METHODS:
        return METHODS[method]
    if callable(getattr(method, "sample", None)) and not isinstance(method, type):
        return partial(_sampled, method)
    known = ", ".join(repr(name) for name in METHODS)
    raise ValueError(
        f"{parameter} must be one of {others}{known} or an object with a method sample(model), "
        f"not {method!r}."
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
"""Options of each method. A sampler has the options of "tabu" and "anneal"."""
