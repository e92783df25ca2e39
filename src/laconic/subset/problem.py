"""The problem that every subset search solves: which columns to keep, under a price or a cap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from laconic.subset import kernels

LOSSES = {
    "exponential": kernels.EXPONENTIAL,
    "logistic": kernels.LOGISTIC,
    "squared_hinge": kernels.SQUARED_HINGE,
}
# Predicted relative gain below which a solve ends; the values compared are then good to about this.
TOLERANCE = 1e-10


class Fit(NamedTuple):
    """Weights optimised on one support."""

    support: tuple[int, ...]
    """Numbers of the columns, ascending."""
    weights: np.ndarray
    """Their weights, and the intercept last where there is one."""
    value: float
    """Mean loss plus the l1 term: the objective without the price on columns."""


@dataclass
class SubsetProblem:
    """Mean loss + l1 ‖w‖₁ over the weights of chosen columns (TotalQBoost eq. (3)).

    Parameters
    ----------
    columns : ndarray of shape (n_rows, n_columns)
        Entries -1, 0 and 1.
    y : ndarray of shape (n_rows,)
        Labels -1 and 1.
    weight : ndarray of shape (n_rows,)
        Row weights that sum to one.
    loss : {"exponential", "logistic", "squared_hinge"}
        Of the margin y f(x).
    l1 : float
        ν for the mean loss; the paper's, for the sum, is m times this.
    nonnegative : bool
        Whether weights must be at least 0, as in the paper.
    intercept : bool
        Whether there is a constant term, without price or penalty.
    """

    columns: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    loss: str = "exponential"
    l1: float = 0.0
    nonnegative: bool = False
    intercept: bool = True
    _code: int = field(init=False)
    _narrow: np.ndarray = field(init=False)
    _labels: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self._code = LOSSES[self.loss]
        narrow = (self.columns * self.y[:, None]).T.astype(np.int8)
        self._narrow = np.ascontiguousarray(narrow)
        self._labels = self.y.astype(np.float64)

    @property
    def n_columns(self) -> int:
        """Columns to choose from."""
        return self.columns.shape[1]

    def fit(self, support: tuple[int, ...], start: np.ndarray | None = None) -> Fit:
        """Optimise the weights of a support, from ``start`` where given."""
        w, value = self.solve(self.matrix(support), np.full(len(support), self.l1), start)
        return Fit(support, w, value)

    def solve(
        self,
        S: np.ndarray,
        price: np.ndarray,
        start: np.ndarray | None = None,
        tilt: np.ndarray | None = None,
    ) -> tuple[np.ndarray, float]:
        """Minimise mean loss + Σ_j (price_j |w_j| − tilt_j w_j) over weights of signed columns."""
        start = np.zeros(len(S)) if start is None else start
        free = np.zeros(len(S) - len(price))
        tilt = np.zeros(len(S)) if tilt is None else tilt
        w, value, _ = kernels.solve(
            S,
            self.weight,
            start,
            self._code,
            np.append(price, free),
            tilt,
            self.nonnegative,
            self.intercept,
            TOLERANCE,
        )
        return w, value

    def with_column(self, fit: Fit, column: int) -> Fit:
        """The fit with one more column."""
        at = int(np.searchsorted(fit.support, column))
        support = (*fit.support[:at], column, *fit.support[at:])
        return self.fit(support, np.insert(fit.weights, at, 0.0))

    def without(self, fit: Fit, column: int) -> Fit:
        """The fit with one column less."""
        at = fit.support.index(column)
        return self.fit(fit.support[:at] + fit.support[at + 1 :], np.delete(fit.weights, at))

    def gains(self, fit: Fit) -> np.ndarray:
        """Decrease by the best step along every column alone; nothing for those in."""
        first, second = self.derivatives(self.matrix(fit.support), fit.weights)[1:]
        out = np.empty(self.n_columns)
        kernels.gains(self._narrow, first, second, self._code, self.l1, self.nonnegative, out)
        out[list(fit.support)] = -np.inf
        return out

    def losses_of_dropping(self, fit: Fit) -> np.ndarray:
        """Increase when each column of the support is dropped, by the quadratic model."""
        n = len(fit.support)
        S = self.matrix(fit.support)
        second = self.derivatives(S, fit.weights)[2]
        H = (S * second) @ S.T
        H[np.diag_indices_from(H)] += 1e-10 * (np.trace(H) / len(H) + 1e-300)
        inverse = np.linalg.inv(H)
        return 0.5 * fit.weights[:n] ** 2 / np.maximum(np.diag(inverse)[:n], 1e-300)

    def matrix(self, support: Sequence[int]) -> np.ndarray:
        """Signed columns of a support, and the labels as the last row beside an intercept."""
        S = self._narrow[list(support)].astype(np.float64)
        return np.vstack([S, self._labels]) if self.intercept else S

    def derivatives(
        self, S: np.ndarray, weights: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Mean loss, and its first and second derivatives in the margins."""
        margins = weights @ S
        first, second = np.empty_like(margins), np.empty_like(margins)
        loss = kernels.differentiate(self._code, margins, self.weight, first, second)
        return loss, first, second
