"""Predict how the value changes if columns are added, dropped or swapped.

Notes
-----
All weights are re-optimised after a move. Around a fit the objective is nearly quadratic. Let S be
the support (and the intercept), w its weights, and A = H_SS⁻¹ the inverse of its curvature. For a
column j outside, let g_j be its slope, b_j = A H_Sj, and c_j = H_jj − H_jS b_j the part of its
curvature that S does not explain. If j gets the weight t and the other weights follow, the
objective changes by g_j t + ½ c_j t² + l1 |t|. Forcing the weight of s to zero as well costs
½ (w_s − b_js t)² / A_ss. So the changes are

    add j           −½ (|g_j| − l1)₊² / c_j
    drop s          ½ w_s² / A_ss
    swap s for j    ½ w_s² / A_ss − ½ (|w_s b_js / A_ss − g_j| − l1)₊² / (c_j + b_js² / A_ss)

If weights must be at least 0, the absolute values are left out. Ranking all n · |S| swaps costs
only the products H_jS, which nested columns make cheap (`laconic.subset.nested_columns`). Under the
exponential loss, the gain of a step along one column alone is known exactly
(`SubsetProblem.step_gains`). Columns to add are ranked by that gain times H_jj / c_j.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

from laconic.subset import solver
from laconic.subset.contract import TOLERANCE, Fit, Move
from laconic.subset.plain_moves import smallest

if TYPE_CHECKING:
    from laconic.subset.problem import SubsetProblem

# A column counts as explained by the support if less than this part of its curvature is left.
SPANNED = 1e-6
# Longest step of a weight for which the model is trusted.
FAR = 3.0


class Moves:
    """The moves from one fit, for columns of 0 and 1 or of signs, ranked by the quadratic model.

    Parameters
    ----------
    problem : SubsetProblem
    fit : Fit
    """

    def __init__(self, problem: SubsetProblem, fit: Fit) -> None:
        self.problem, self.fit = problem, fit
        self.k = len(fit.support)
        # One more row than the support needs, as room for a new column.
        self._S = problem.matrix(fit.support, spare=1)
        S, price = self._S[:-1], np.full(self.k + 1, problem.l1)
        self._added = problem.objective(self._S, price, self.k)
        self._swapped = problem.objective(S, price[:-1], self.k)
        _, first, second = problem.derivatives(S, fit.weights)
        self._inverse = np.linalg.inv(solver.curvature(S, second))
        across, slope, self._own = problem.across(S, first, second)
        self._slope = np.ascontiguousarray(slope)
        self._along = across @ self._inverse
        left = self._own - np.einsum("jk,jk->j", across, self._along)
        self._left = np.maximum(left, SPANNED * self._own + 1e-300)
        self._spare = np.maximum(np.diag(self._inverse)[: self.k], 1e-300)
        self._barred = left <= SPANNED * self._own
        self._barred[list(fit.support)] = True

    def adds(self, count: int) -> list[Move]:
        """Return the best columns to add, best first."""
        problem = self.problem
        gains = problem.step_gains(self._slope, self._own) * (self._own / self._left)
        gains[self._barred] = 0.0
        return [Move(-gains[j], -1, int(j)) for j in smallest(-gains, count) if gains[j] > 0]

    def drops(self, count: int) -> list[Move]:
        """Return the columns that are cheapest to drop, cheapest first."""
        rise = 0.5 * self.fit.weights[: self.k] ** 2 / self._spare
        return [Move(rise[s], int(s), -1) for s in smallest(rise, count)]

    def swaps(self, count: int) -> list[Move]:
        """Return the best swaps, at most one for each column of the support, best first."""
        if self.k == 0:
            return []
        shared = self._along[:, : self.k] / self._spare
        pull = self.fit.weights[: self.k] * shared - self._slope[:, None]
        if not self.problem.nonnegative:
            np.abs(pull, out=pull)
        pull -= self.problem.l1
        np.maximum(pull, 0.0, out=pull)
        pull *= pull
        shared *= self._along[:, : self.k]
        shared += self._left[:, None]  # curvature of j that is not explained without s
        pull /= shared
        pull[self._barred] = -np.inf
        into = pull.argmax(axis=0)
        most = pull[into, np.arange(self.k)]
        change = 0.5 * (self.fit.weights[: self.k] ** 2 / self._spare - most)
        best = smallest(change, count)
        return [Move(change[s], int(s), int(into[s])) for s in best if most[s] >= 0]

    def make(self, move: Move, target: float = np.inf) -> Fit:
        """Return the fit after a move. The solve stops early if it cannot reach ``target``."""
        start, inverse = self.start(move), self._inverse_after(move)
        support, places = list(self.fit.support), list(range(len(self.fit.weights)))
        if move.out >= 0:
            del support[move.out], places[move.out]
        if move.into >= 0:
            at = bisect_left(support, move.into)
            support.insert(at, move.into)
            places.insert(at, move.out)  # -1, the last place, if no column goes
        w, value, promised = self._settled(move, start, inverse, target)
        return Fit(tuple(support), w[places] if move.into >= 0 else w, value, promised)

    def _settled(
        self, move: Move, start: np.ndarray, inverse: np.ndarray, target: float
    ) -> tuple[np.ndarray, float, float]:
        """Return weights in the order of `start`, the value, and the last step's predicted gain."""
        problem, k = self.problem, self.k
        S = self._S if move.out < 0 else self._S[:-1]
        if move.into < 0:
            S = np.delete(S, move.out, axis=0)
            objective = problem.objective(S, np.full(k - 1, problem.l1), k - 1)
            return solver.settle(objective, start, inverse, TOLERANCE, target)
        gone = S[move.out].copy()
        problem.copy_column(move.into, S[move.out])
        objective = self._added if move.out < 0 else self._swapped
        found = solver.settle(objective, start, inverse, TOLERANCE, target)
        S[move.out] = gone
        return found

    def start(self, move: Move) -> np.ndarray:
        """Return the weights after a move, by the quadratic model.

        They are in the order of the old support, followed by the intercept if there is one. A new
        column takes the place of the dropped column. If no column is dropped, it is last.
        """
        n, fit = len(self.fit.weights), self.fit
        shift, step = np.zeros(n), 0.0
        if move.into >= 0:
            step = self._step(move)
            shift -= step * self._along[move.into]
        if move.out >= 0:
            over = fit.weights[move.out] + shift[move.out]
            shift -= self._inverse[:, move.out] * (over / self._spare[move.out])
        np.maximum(shift, -FAR, out=shift)
        np.minimum(shift, FAR, out=shift)
        shift += fit.weights
        if self.problem.nonnegative:
            shift[: self.k] = np.maximum(shift[: self.k], 0.0)
            step = max(step, 0.0)
        if move.out < 0:
            return np.append(shift, step)
        if move.into < 0:
            return np.delete(shift, move.out)
        shift[move.out] = step
        return shift

    def _step(self, move: Move) -> float:
        """Return the weight of the new column, by the quadratic model."""
        j, pull, bend = move.into, -self._slope[move.into], self._left[move.into]
        if move.out >= 0:
            shared = self._along[j, move.out] / self._spare[move.out]
            pull += self.fit.weights[move.out] * shared
            bend += self._along[j, move.out] * shared
        size = min(max(abs(pull) - self.problem.l1, 0.0) / bend, FAR)
        return float(size if pull > 0 else -size)

    def _inverse_after(self, move: Move) -> np.ndarray:
        """Return the inverse curvature among the rows for which `start` has weights."""
        inverse, out, n = self._inverse, move.out, len(self._inverse)
        if move.into >= 0:
            # The inverse of H with one more row and column h, from H⁻¹, H⁻¹h and the curvature of
            # h that is left.
            along = np.full(n + 1, -1.0)
            along[:n] = self._along[move.into]
            grown = along[:, None] * (along / self._left[move.into])
            grown[:n, :n] += inverse
            inverse = grown
        if out < 0:
            return inverse
        column = inverse[:, out].copy()
        inverse = inverse - column[:, None] * (column / max(column[out], 1e-300))
        if move.into < 0:
            return np.delete(np.delete(inverse, out, axis=0), out, axis=1)
        inverse[out], inverse[:, out] = inverse[n], inverse[:, n]
        inverse[out, out] = inverse[n, n]
        return inverse[:n, :n]
