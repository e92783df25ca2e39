"""The problem of every subset search: choose which columns to keep, with a price or a cap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from laconic.losses import BINARY_LOSSES, BinaryLoss
from laconic.subset import solver
from laconic.subset.contract import TOLERANCE, Fit
from laconic.subset.moves import Moves
from laconic.subset.nested_columns import Chains, find_chains

# Columns whose correlation is larger than this are alike.
ALIKE = 0.7
# Openings are taken from this many of the best columns.
RANKED = 400


@dataclass
class SubsetProblem:
    """Mean loss + l1 ‖w‖₁ over the weights of chosen columns (TotalQBoost eq. (3)).

    Parameters
    ----------
    columns : ndarray of shape (n_rows, n_columns)
        Columns of 0 and 1, or of -1 and 1.
    y : ndarray of shape (n_rows,)
        Labels -1 and 1.
    weight : ndarray of shape (n_rows,)
        Row weights that sum to one.
    loss : {"exponential", "logistic", "squared_hinge"}
        Loss of the margin y f(x).
    l1 : float
        ν for the mean loss. The paper's ν is for the sum of the losses, so it is m times this.
    nonnegative : bool
        Whether weights must be at least 0, as in the paper.
    intercept : bool
        Whether there is a constant term, which has no price and no penalty.
    """

    columns: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    loss: str = "exponential"
    l1: float = 0.0
    nonnegative: bool = False
    intercept: bool = True
    _loss: BinaryLoss = field(init=False)
    _most: float = field(init=False)
    _narrow: np.ndarray = field(init=False)
    _two_sided: np.ndarray = field(init=False)
    _labels: np.ndarray = field(init=False)
    _chains: Chains | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._loss = BINARY_LOSSES[self.loss]()
        self._most = solver.LOST * float(self._loss.at(np.float64(0.0))[0])
        self.l1 = float(self.l1)  # the compiled parts need a float
        columns = np.ascontiguousarray(self.columns.T, dtype=np.int8)
        self._two_sided = columns.min(axis=1, initial=0) < 0
        self._narrow = columns * self.y.astype(np.int8)
        self._labels = self.y.astype(np.float64)

    @property
    def n_columns(self) -> int:
        """Number of columns to choose from."""
        return self.columns.shape[1]

    @property
    def chains(self) -> Chains:
        """The columns as nested sets of rows."""
        # Before Python 3.12, `cached_property` has one lock for all problems. A child process that
        # is forked while another thread holds the lock would wait for ever.
        if self._chains is None:
            self._chains = find_chains(self._sets())
        return self._chains

    def take_over(self, smaller: SubsetProblem) -> None:
        """Reuse the chains, if known, of a problem that has the first columns of this one."""
        if smaller._chains is not None:
            self._chains = smaller._chains.extended(self._sets(smaller.n_columns))

    def _sets(self, first: int = 0) -> np.ndarray:
        """Return for the columns from ``first`` on in which rows they are positive.

        The shape is (n_columns, n_rows).
        """
        return self._narrow[first:] * self.y.astype(np.int8) > 0

    def fit(
        self, support: tuple[int, ...], start: np.ndarray | None = None, target: float = np.inf
    ) -> Fit:
        """Optimise the weights of a support, from ``start`` if given.

        If the value cannot fall to ``target``, the solve may stop before the optimum.
        """
        price = np.full(len(support), self.l1)
        return Fit(support, *self.solve(self.matrix(support), price, start, target=target))

    def solve(
        self,
        S: np.ndarray,
        price: np.ndarray,
        start: np.ndarray | None = None,
        tilt: np.ndarray | None = None,
        target: float = np.inf,
        tol: float = TOLERANCE,
    ) -> tuple[np.ndarray, float, float]:
        """Minimise mean loss + Σ_j (price_j |w_j| − tilt_j w_j) over weights of signed columns.

        Return the weights, the objective and the predicted decrease of the last Newton step.
        """
        start = np.zeros(len(S)) if start is None else start
        objective = self.objective(S, price, len(price), tilt)
        return solver.solve(objective, start, tol, target)

    def objective(
        self, S: np.ndarray, price: np.ndarray, k: int, tilt: np.ndarray | None = None
    ) -> solver.SubsetObjective:
        """Return the objective over the weights of ``S``, whose row ``k`` may be the intercept."""
        free = -1
        if self.intercept:
            free, price = k, np.concatenate([price[:k], np.zeros(1), price[k:]])
        return solver.SubsetObjective(
            self._loss, S, self.weight, price, self.nonnegative, free, self._most, tilt
        )

    def moves(self, fit: Fit) -> Moves:
        """Return the moves from a fit, ranked by the quadratic model."""
        return Moves(self, fit)

    def openings(self, empty: Fit, count: int) -> list[int]:
        """Return the best single columns that are not alike."""
        return self.unlike([move.into for move in self.moves(empty).adds(RANKED)], count)

    def unlike(self, ranked: Sequence[int], count: int) -> list[int]:
        """Return up to ``count`` of the first columns that are not alike, by `ALIKE`."""
        kept: list[int] = []
        scaled = np.empty((0, len(self.y)))
        for column in ranked:
            own = self.columns[:, column] - self.weight @ self.columns[:, column]
            own = own * np.sqrt(self.weight)
            own /= max(np.linalg.norm(own), 1e-300)
            if len(kept) == count:
                break
            if not (np.abs(scaled @ own) > ALIKE).any():
                kept.append(column)
                scaled = np.vstack([scaled, own])
        return kept

    def with_column(self, fit: Fit, column: int, target: float = np.inf) -> Fit:
        """Return the fit with one more column. ``target`` is as in `fit`."""
        at = int(np.searchsorted(fit.support, column))
        support = (*fit.support[:at], column, *fit.support[at:])
        return self.fit(support, np.insert(fit.weights, at, 0.0), target)

    def without(self, fit: Fit, column: int, target: float = np.inf) -> Fit:
        """Return the fit with one column less. ``target`` is as in `fit`."""
        at = fit.support.index(column)
        support = fit.support[:at] + fit.support[at + 1 :]
        return self.fit(support, np.delete(fit.weights, at), target)

    def losses_of_dropping(self, fit: Fit) -> np.ndarray:
        """Return the increase if a column is dropped, for each column of the support.

        The increase is that of the quadratic model.
        """
        n = len(fit.support)
        S = self.matrix(fit.support)
        second = self.derivatives(S, fit.weights)[2]
        inverse = np.linalg.inv(solver.curvature(S, second))
        return 0.5 * fit.weights[:n] ** 2 / np.maximum(np.diag(inverse)[:n], 1e-300)

    def gains(self, fit: Fit) -> np.ndarray:
        """Return the decrease by the best step along each column alone.

        It is -inf for columns in the fit.
        """
        S = self.matrix(fit.support)
        first, second = self.derivatives(S, fit.weights)[1:]
        _, slope, own = self.across(S[:0], first, second)
        out = self.step_gains(slope, own)
        out[list(fit.support)] = -np.inf
        return out

    def step_gains(self, slope: np.ndarray, bend: np.ndarray) -> np.ndarray:
        """Return the decrease by the best step along each column alone.

        ``slope`` and ``bend`` are the column's slope and curvature at zero. The result is exact for
        the exponential loss. Let P and N be the loss of the rows that agree and disagree with the
        column. Then the slope is N − P, the curvature is P + N, and P e^-d + N e^d + l1 d is
        smallest at e^d = 2P / (l1 + √(l1² + 4PN)). For other losses the result is that of the
        quadratic model.
        """
        pull = -slope if self.nonnegative else np.abs(slope)
        over = np.maximum(pull - self.l1, 0.0)
        if self.loss != "exponential":
            return 0.5 * over**2 / np.maximum(bend, 1e-300)
        P, N = 0.5 * (bend + pull), np.maximum(0.5 * (bend - pull), 0.0)
        root = self.l1 + np.sqrt(self.l1**2 + 4.0 * P * N)
        grow = np.maximum(2.0 * P, 1e-300) / np.maximum(root, 1e-300)
        gain = P + N - P / grow - N * grow
        if self.l1 > 0:
            gain -= self.l1 * np.log(grow)
        return np.where(over > 0, gain, 0.0)

    def across(
        self, S: np.ndarray, first: np.ndarray, second: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return each column's curvature with the rows of ``S``, its slope and its own curvature.

        ``first`` and ``second`` are derivatives of the loss with respect to the margins.
        """
        n = len(S)
        rows = np.empty((len(second), n + 2))
        rows[:, :n] = (S * (second * self._labels)).T
        rows[:, n] = first * self._labels
        rows[:, n + 1] = second
        sums = self.chains.sums(rows)
        own = np.where(self._two_sided, second.sum(), sums[:, n + 1])
        other = self._two_sided
        sums[other] = 2.0 * sums[other] - rows.sum(axis=0)
        return sums[:, :n], sums[:, n], own

    def matrix(self, support: Sequence[int], spare: int = 0) -> np.ndarray:
        """Return the signed columns of a support as rows.

        With an intercept, a row of labels follows. Then come ``spare`` rows of zeros.
        """
        n = len(support)
        S = np.zeros((n + int(self.intercept) + spare, len(self._labels)))
        S[:n] = self._narrow[list(support)]
        if self.intercept:
            S[n] = self._labels
        return S

    def copy_column(self, column: int, out: np.ndarray) -> None:
        """Fill a row with a signed column, or with zeros for column -1."""
        out[:] = self._narrow[column] if column >= 0 else 0.0

    def derivatives(
        self, S: np.ndarray, weights: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the mean loss, and its first and second derivatives in the margins."""
        return solver.differentiate(self._loss, weights @ S, self.weight)
