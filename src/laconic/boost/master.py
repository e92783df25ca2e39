"""The restricted master problem (TotalQBoost 3.2): loss + l1 ‖w‖₁ over the columns taken so far.

There are two forms of one contract, `laconic.subset.contract.Searchable`. Columns of signs with a
loss of the margin go to `laconic.subset`, whose kernels handle only these. Atoms of any kind and
width, with any loss, use the sums that `Rows` computes. Columns of the problem are numbered in the
order in which they came.
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
from laconic.subset.contract import Fit, Searchable
from laconic.subset.plain_moves import PlainMoves
from laconic.subset.problem import SubsetProblem


class Master(Protocol):
    """The problem over the atoms that the rows hold.

    It also converts between fits and weights of the rows' columns.
    """

    rows: Rows
    l1: float

    def problem(self) -> Searchable[Fit]:
        """Return the problem over the rows' columns."""

    def weights(self, fit: Fit) -> np.ndarray:
        """Return a fit as weights (n_columns, n_outputs) of the rows' columns."""

    def intercept(self, fit: Fit) -> np.ndarray:
        """Return the intercept (n_outputs,) of a fit, or zeros if there is none."""

    def start(
        self, W: np.ndarray, support: tuple[int, ...], value: float, intercept: np.ndarray | None
    ) -> Fit:
        """Return weights of the rows' columns as a fit on a support.

        With the ``intercept`` of the fit from which the weights come, the fit is the same to the
        bit. Without it, the intercept is computed from the weights, and so it is rounded.
        """

    def narrowed(self, fit: Fit, support: tuple[int, ...]) -> Fit:
        """Return the fit on a part of its support. The other weights must be zero."""

    def grown(self, fit: Fit) -> np.ndarray:
        """Return a fit's weights as those of a fit of all columns, with zeros for the others."""


def make_master(rows: Rows, l1: float, fixed: int = 0) -> Master:
    """Return the master problem in the form that the rows, their pool and the loss allow.

    The first ``fixed`` atoms of the rows are always in the model.
    """
    of_margin = rows.pool.signs and type(rows.loss) in BINARY_LOSSES.values()
    by_kernels = of_margin and rows.gathers and not fixed
    return SignsMaster(rows, l1) if by_kernels else RowsMaster(rows, l1, fixed)


class SignsMaster:
    """The master problem for columns of -1 and 1, two classes and a loss of the margin."""

    def __init__(self, rows: Rows, l1: float) -> None:
        self.rows = rows
        self.l1 = l1
        y, self._weight = rows.labels_of_all_rows()
        self._labels = 2.0 * y - 1.0
        self._columns = np.empty((len(y), 0), dtype=np.int8, order="F")
        self._held: list[int] = []
        self._last: SubsetProblem | None = None

    def problem(self) -> SubsetProblem:
        """Return the problem over the rows' columns."""
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
        """Return a fit as weights of the rows' columns.

        With an intercept these columns are centred, so its weight changes.
        """
        n, free = len(fit.support), int(self.rows.intercept)
        W = np.zeros((self.rows.n_columns, 1))
        W[free + np.array(fit.support, dtype=np.int64), 0] = fit.weights[:n]
        if free:
            W[0] = fit.weights[n] + self.rows.means @ W[:, 0]
        return W

    def intercept(self, fit: Fit) -> np.ndarray:
        """Return the intercept of a fit. Its columns are not centred."""
        return fit.weights[-1:].copy() if self.rows.intercept else np.zeros(1)

    def start(
        self, W: np.ndarray, support: tuple[int, ...], value: float, intercept: np.ndarray | None
    ) -> Fit:
        """Return weights of the rows' columns as a fit."""
        free = int(self.rows.intercept)
        w = W[free + np.array(support, dtype=np.int64), 0]
        if intercept is None:
            intercept = W[:free, 0] - self.rows.means[free:] @ W[free:, 0]
        return Fit(support, np.append(w, intercept[:free]), value)

    def narrowed(self, fit: Fit, support: tuple[int, ...]) -> Fit:
        """Return the fit without the columns that are not in the support."""
        out = [at for at, column in enumerate(fit.support) if column not in support]
        return fit._replace(support=support, weights=np.delete(fit.weights, out)) if out else fit

    def grown(self, fit: Fit) -> np.ndarray:
        """Return the weights of all columns, then the intercept."""
        n, out = len(fit.support), np.zeros(self.rows.n_columns)
        out[list(fit.support)] = fit.weights[:n]
        out[len(self.rows.atoms) :] = fit.weights[n:]
        return out


class RowsMaster:
    """The master problem for atoms of any kind and width, and for any loss.

    The weights of a fit are those of the rows' columns.
    """

    def __init__(self, rows: Rows, l1: float, fixed: int = 0) -> None:
        self.rows = rows
        self.l1 = l1
        self._fixed = fixed

    def problem(self) -> RowsProblem:
        """Return the problem over the rows' columns."""
        return RowsProblem(self.rows, self.l1, self._fixed)

    def weights(self, fit: Fit) -> np.ndarray:
        """Return the fit's weights, padded with zeros for columns that came later."""
        return self.rows.padded(fit.weights)

    def intercept(self, fit: Fit) -> np.ndarray:
        """Return the intercept, which is also the one of the rows' columns."""
        return fit.weights[0].copy() if self.rows.intercept else np.zeros(self.rows.n_outputs)

    def start(
        self, W: np.ndarray, support: tuple[int, ...], value: float, intercept: np.ndarray | None
    ) -> Fit:
        """Return the weights, unchanged, as a fit on a support."""
        return Fit(support, W, value)

    def narrowed(self, fit: Fit, support: tuple[int, ...]) -> Fit:
        """Return the fit on the support. Its weights are those of all columns."""
        return fit._replace(support=support)

    def grown(self, fit: Fit) -> np.ndarray:
        """Return the fit's weights, padded with zeros for columns that came later."""
        return self.rows.padded(fit.weights)


class RowsProblem:
    """Loss + l1 ‖W‖₁ over the weights of chosen atoms, computed from sums over rows.

    All weights of an atom form a group: they are in the model together or not at all. The first
    ``fixed`` atoms are always in, and the search does not choose among them.
    """

    def __init__(self, rows: Rows, l1: float, fixed: int = 0) -> None:
        self.rows = rows
        self.penalty = L1(l1)  # `gains` and the dual constraints are derived for this penalty
        self._corrector = Orthant()
        ends = rows.ends()
        self._free = int(ends[min(fixed, len(rows.atoms))])
        self._groups = [np.arange(first, last) for first, last in pairwise(ends)][fixed:]

    @property
    def n_columns(self) -> int:
        """Number of atoms to choose from."""
        return len(self._groups)

    def fit(
        self, support: tuple[int, ...], start: np.ndarray | None = None, target: float = np.inf
    ) -> Fit:
        """Optimise the weights of a support, from ``start`` if given.

        If the value can hardly fall to ``target``, the solve may stop before the optimum.
        """
        W = self.rows.padded(start)
        inside = self._inside(support)
        W[~inside] = 0.0
        solution = self._corrector.solve(self.rows, self.penalty, W, target, inside)
        promised = solution.certificate.decrement
        return Fit(support, solution.weights, solution.value, promised)

    def with_column(self, fit: Fit, column: int, target: float = np.inf) -> Fit:
        """Return the fit with one more atom. ``target`` is as in `fit`."""
        return self.fit(tuple(sorted((*fit.support, column))), fit.weights, target)

    def without(self, fit: Fit, column: int, target: float = np.inf) -> Fit:
        """Return the fit with one atom less. ``target`` is as in `fit`."""
        return self.fit(tuple(c for c in fit.support if c != column), fit.weights, target)

    def gains(self, fit: Fit) -> np.ndarray:
        """Return the decrease by a Newton step along each weight alone, summed over each atom."""
        objective = self._at(fit)
        diagonal = np.concatenate(
            [np.einsum("cii->ic", block) for block in self.rows.hessian_blocks()], dtype=np.float64
        )
        pull = np.maximum(np.abs(objective.loss_gradient) - self.penalty.alpha, 0.0)
        gain = 0.5 * pull**2 / np.maximum(diagonal, 1e-300)
        out = np.array([gain[group].sum() for group in self._groups])
        out[list(fit.support)] = -np.inf
        return out

    def losses_of_dropping(self, fit: Fit) -> np.ndarray:
        """Return the increase if an atom is dropped, for each atom of the support.

        The increase is that of the quadratic model.
        """
        return self._at(fit).costs_of_dropping(
            self.rows.padded(fit.weights),
            [self._groups[atom] for atom in fit.support],
            self._inside(fit.support),
        )

    def moves(self, fit: Fit) -> PlainMoves[Fit]:
        """Return the moves from a fit."""
        return PlainMoves(self, fit)

    def openings(self, empty: Fit, count: int) -> list[int]:
        """Return no openings. Each small model would take several passes over the rows."""
        return []

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
    """Refuse an unknown search, and options that the search does not have."""
    if search is not None:
        find_method(search, "search", "None, ")
        check_options(search, options or {})
    elif options:
        raise ValueError(
            "search_options must be empty for search=None, which keeps every atom. "
            "Leave them out, or choose a search."
        )


def check_searchable(
    search: Any,
    master: Master,
    include: list[int],
    costs: Costs,
    classes: np.ndarray,
    auto: bool,
) -> None:
    """Refuse problems that only the local search can solve.

    ``auto`` tells whether the loss was chosen from the number of classes.
    """
    if not master.rows.gathers:
        raise ValueError(
            f"search={search!r} needs all rows in one memory, and there are too many for that. Use "
            'search="local", or fit on a sample of the rows.'
        )
    if not isinstance(master, SignsMaster) and not include:
        many = len(classes)
        chosen = f' y has {many} classes, so loss="auto" is "log".' * (auto and many > 2)
        raise ValueError(
            f"search={search!r} needs two classes, a pool of stumps, rules or a classifier, and a "
            f'loss of the margin: "exponential", "logistic" or "squared_hinge".{chosen} '
            'Use search="local", which takes any pool and loss.'
        )
    if include or costs.paid is not None:
        what = "include" if include else "costs"
        raise ValueError(f'search={search!r} does not support {what}. Use search="local".')
