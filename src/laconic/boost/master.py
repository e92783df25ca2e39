"""The restricted master problem (TotalQBoost 3.2): loss + l1 ‖w‖₁ over the columns taken so far.

Two forms of one contract, `laconic.subset.problem.Searchable`: columns of signs under a loss of
the margin are handed to `laconic.subset`, whose kernels know nothing else; atoms of any kind and
width under any loss are asked for through `Rows`. Columns of the problem are numbered as they came.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from laconic.boost.costs import Costs
from laconic.correct import Orthant
from laconic.correct.objective import Objective
from laconic.losses import BINARY_LOSSES
from laconic.penalties import L1
from laconic.rows.rows import Rows
from laconic.subset import check_options, find_method
from laconic.subset.problem import Fit, Searchable, SubsetProblem


class Master(Protocol):
    """The problem over the atoms that the rows hold, and fits as the rows' weights."""

    rows: Rows
    l1: float

    def problem(self) -> Searchable[Fit]:
        """The problem over the columns in."""

    def weights(self, fit: Fit) -> np.ndarray:
        """A fit as weights (n_columns, n_outputs) of the rows' columns."""

    def start(self, W: np.ndarray, support: tuple[int, ...], value: float) -> Fit:
        """Weights of the rows' columns as a fit on a support."""

    def grown(self, fit: Fit) -> np.ndarray:
        """A fit's weights as those of a fit of all columns in: zero where it has none."""


def make_master(rows: Rows, y: np.ndarray, weight: np.ndarray, l1: float, fixed: int = 0) -> Master:
    """The master problem in the form that the rows' pool and loss allow.

    The first ``fixed`` atoms of the rows are always in.
    """
    by_kernels = rows.pool.signs and type(rows.loss) in BINARY_LOSSES.values() and not fixed
    return SignsMaster(rows, y, weight, l1) if by_kernels else RowsMaster(rows, l1, fixed)


class SignsMaster:
    """Columns of -1 and 1, two classes, a loss of the margin."""

    def __init__(self, rows: Rows, y: np.ndarray, weight: np.ndarray, l1: float) -> None:
        self.rows = rows
        self.l1 = l1
        self._labels = 2.0 * y - 1.0
        self._weight = weight
        self._columns = np.empty((len(y), 0), dtype=np.int8, order="F")
        self._held: list[int] = []
        self._last: SubsetProblem | None = None

    def problem(self) -> SubsetProblem:
        """The problem over the columns in."""
        atoms = self.rows.atoms
        keep = len(self._held) if atoms[: len(self._held)] == self._held else 0
        if keep < len(atoms):
            new = self.rows.columns_of_all_rows(atoms[keep:]).astype(np.int8)
            self._columns = np.asfortranarray(np.hstack([self._columns[:, :keep], new]))
        problem = SubsetProblem(
            self._columns[:, : len(atoms)],
            self._labels,
            self._weight,
            self.rows.loss.name,
            self.l1,
            nonnegative=False,
            intercept=self.rows.intercept,
        )
        if self._last is not None and keep == self._last.n_columns:
            problem.take_over(self._last)
        self._held, self._last = list(atoms), problem
        return problem

    def weights(self, fit: Fit) -> np.ndarray:
        """A fit as weights of the rows' columns, which are centred beside an intercept."""
        n, free = len(fit.support), int(self.rows.intercept)
        W = np.zeros((self.rows.n_columns, 1))
        W[free + np.array(fit.support, dtype=np.int64), 0] = fit.weights[:n]
        if free:
            W[0] = fit.weights[n] + self.rows.means @ W[:, 0]
        return W

    def start(self, W: np.ndarray, support: tuple[int, ...], value: float) -> Fit:
        """Weights of the rows' columns as a fit."""
        free = int(self.rows.intercept)
        w = W[free + np.array(support, dtype=np.int64), 0]
        base = W[0] - self.rows.means[1:] @ W[1:, 0] if free else np.empty(0)
        return Fit(support, np.append(w, base), value)

    def grown(self, fit: Fit) -> np.ndarray:
        """Weights of all columns in, and the intercept."""
        n, out = len(fit.support), np.zeros(self.rows.n_columns)
        out[list(fit.support)] = fit.weights[:n]
        out[len(self.rows.atoms) :] = fit.weights[n:]
        return out


class RowsMaster:
    """Atoms of any kind and width, and any loss; a fit's weights are those of the rows' columns."""

    def __init__(self, rows: Rows, l1: float, fixed: int = 0) -> None:
        self.rows = rows
        self.l1 = l1
        self._fixed = fixed

    def problem(self) -> RowsProblem:
        """The problem over the columns in."""
        return RowsProblem(self.rows, self.l1, self._fixed)

    def weights(self, fit: Fit) -> np.ndarray:
        """Padded for columns that came since."""
        return self.rows.padded(fit.weights)

    def start(self, W: np.ndarray, support: tuple[int, ...], value: float) -> Fit:
        """Weights as they are."""
        return Fit(support, W, value)

    def grown(self, fit: Fit) -> np.ndarray:
        """Padded for columns that came since."""
        return self.rows.padded(fit.weights)


class RowsProblem:
    """Loss + l1 ‖W‖₁ over the weights of chosen atoms, through sums over rows.

    An atom's columns times outputs are a group: in or out together. The first ``fixed`` atoms are
    always in, and not among those to choose from.
    """

    def __init__(self, rows: Rows, l1: float, fixed: int = 0) -> None:
        self.rows = rows
        self.penalty = L1(l1)  # what `gains` and the dual constraints are derived for
        self._corrector = Orthant()
        ends = rows.ends()
        self._free = int(ends[min(fixed, len(rows.atoms))])
        self._groups = [np.arange(first, last) for first, last in pairwise(ends)][fixed:]

    @property
    def n_columns(self) -> int:
        """Atoms to choose from."""
        return len(self._groups)

    def fit(
        self, support: tuple[int, ...], start: np.ndarray | None = None, target: float = np.inf
    ) -> Fit:
        """Optimise the weights of a support, from ``start`` where given.

        Where the value can hardly come down to ``target``, the weights may be short of the best.
        """
        W = self.rows.padded(start)
        inside = self._inside(support)
        W[~inside] = 0.0
        solution = self._corrector.solve(self.rows, self.penalty, W, target, inside)
        promised = solution.certificate.decrement
        return Fit(support, solution.weights, solution.value, promised)

    def with_column(self, fit: Fit, column: int, target: float = np.inf) -> Fit:
        """The fit with one more atom; ``target`` as in `fit`."""
        return self.fit(tuple(sorted((*fit.support, column))), fit.weights, target)

    def without(self, fit: Fit, column: int, target: float = np.inf) -> Fit:
        """The fit with one atom less; ``target`` as in `fit`."""
        return self.fit(tuple(c for c in fit.support if c != column), fit.weights, target)

    def gains(self, fit: Fit) -> np.ndarray:
        """Decrease by a Newton step along every weight alone, added up over each atom's."""
        objective = self._at(fit)
        diagonal = np.concatenate(
            [np.einsum("cii->ic", block) for block in self.rows.hessian_blocks()]
        )
        pull = np.maximum(np.abs(objective.loss_gradient) - self.penalty.alpha, 0.0)
        gain = 0.5 * pull**2 / np.maximum(diagonal, 1e-300)
        out = np.array([gain[group].sum() for group in self._groups])
        out[list(fit.support)] = -np.inf
        return out

    def losses_of_dropping(self, fit: Fit) -> np.ndarray:
        """Increase when each atom of the support is dropped, by the quadratic model."""
        return self._at(fit).costs_of_dropping(
            self.rows.padded(fit.weights),
            [self._groups[atom] for atom in fit.support],
            self._inside(fit.support),
        )

    def _at(self, fit: Fit) -> Objective:
        objective = Objective(self.rows, self.penalty)
        objective.evaluate(self.rows.padded(fit.weights))
        return objective

    def _inside(self, support: tuple[int, ...]) -> np.ndarray:
        inside = np.zeros(self.rows.n_columns, dtype=bool)
        inside[: self._free] = True
        for atom in support:
            inside[self._groups[atom]] = True
        return inside


def check_search(search: Any, options: Any) -> None:
    """Refuse a search that is not known, and options that it does not take."""
    if search is not None:
        find_method(search, "search", "None, ")
        check_options(search, options or {})
    elif options:
        raise ValueError("search=None keeps every atom, and takes no search_options")


def check_searchable(
    search: Any,
    master: Master,
    include: list[int],
    costs: Costs | None,
    classes: np.ndarray,
    auto: bool,
) -> None:
    """Refuse what only the local search can do; ``auto`` if the classes chose the loss."""
    if not isinstance(master, SignsMaster) and not include:
        many = len(classes)
        chosen = f' (loss="auto" is "log" for the {many} classes of y)' * (auto and many > 2)
        raise ValueError(
            f"search={search!r} needs stumps or a classifier as pool and a loss of the "
            'margin ("exponential", "logistic", "squared_hinge"), thus two classes'
            f'{chosen}; search="local" takes any'
        )
    if include or costs is not None:
        what = "include" if include else "costs and max_cost"
        raise ValueError(f'search={search!r} knows nothing of {what}; take search="local"')
