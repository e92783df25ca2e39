"""How large a weight can be in any solution that is good enough to matter.

With F(w) the mean loss + l1 ‖w‖₁ over all columns, a solution of level R has F(w) ≤ R, and for
every t > 0

    w_j ≤ (R − min_w {F(w) − t w_j}) / t .

Each t gives a line in R; the least of a few lines bounds the weight at every level. These are the
M_j of the big-M relaxation in `laconic.subset.exact`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from laconic.subset.problem import SubsetProblem
from laconic.subset.solver import curvature

# Largest bound on a weight that is believed; beyond, the level set is all but unbounded.
LARGEST = 1e6
# Smallest bound on a weight: a column that cannot be used gets a price beyond reach, not infinity.
SMALLEST = 1e-12
# Most lines of one weight, and the ratio of two t at which more of them would gain nothing.
LINES, CLOSE = 24, 1.2
# The first t of a weight, as a part of what is thought to be tight: the fourth of a fourth.
DEEP = 1.0 / 16.0
# Predicted relative gain below which a solve for a line ends: what it may have missed is taken off.
ROUGH = 1e-7
# What a solve may have missed of a minimum, in decreases that its last Newton step promised.
MISSED = 10.0


class LevelSet:
    """Bounds on every weight, and on the intercept, for any level."""

    def __init__(self, sides: list[np.ndarray]) -> None:
        self._sides = sides

    @classmethod
    def of(
        cls, problem: SubsetProblem, level: float, late: Callable[[], bool] = lambda: False
    ) -> LevelSet | None:
        """The bounds of a problem, or ``None`` if it gets too late for all of them.

        Parameters
        ----------
        problem : SubsetProblem
        level : float
            Where the bounds are to be tight. They hold everywhere.
        late : callable
            Asked before every weight's.
        """
        S = problem.matrix(range(problem.n_columns))
        price = np.full(problem.n_columns, problem.l1)
        lowest, lowest_value, _ = problem.solve(S, price)
        spare = np.diag(np.linalg.inv(curvature(S, problem.derivatives(S, lowest)[2])))
        # By the quadratic model F(w) = min F + ½ t² A_jj, with A the inverse curvature.
        tight = np.sqrt(2.0 * max(level - lowest_value, SMALLEST) / np.maximum(spare, 1e-300))
        sides = []
        for sign in (1.0, -1.0):
            one_sided = problem.nonnegative and sign < 0
            columns = range(problem.n_columns, len(S)) if one_sided else range(len(S))
            lines = np.full((2, len(S), LINES), np.inf)
            lines[1] = 0.0  # a side that no weight can be on: zero at every level
            for j in columns:
                if late():
                    return None
                lines[:, j] = _lines(problem, S, price, level, j, sign, lowest, tight[j])
            sides.append(lines)
        return cls(sides)

    def bounds(self, level: float) -> np.ndarray:
        """Bounds on |w_j| over all weights with F(w) ≤ ``level``; the intercept last."""
        most = np.zeros(self._sides[0].shape[1])
        for t, lowest in self._sides:
            reach = np.maximum(level - lowest, 0.0) / t
            most = np.maximum(most, reach.min(axis=1) * (1.0 + 1e-6))
        return np.clip(most, SMALLEST, LARGEST)


def _lines(
    problem: SubsetProblem,
    S: np.ndarray,
    price: np.ndarray,
    level: float,
    j: int,
    sign: float,
    start: np.ndarray,
    tight: float,
) -> np.ndarray:
    """Values of t and the minima of F(w) − t sign w_j, around the tightest for a level.

    The bound is tight at the t where F(w) reaches the level. That is sought from ``tight``, by
    doubling until F reaches the level, or halving until it does not, and then between. Smaller t
    come first: they are tight for the levels of nodes deep in a tree.
    """
    out = np.empty((2, LINES))
    tilt, w = np.zeros(len(S)), start
    low, high, t, at = 0.0, np.inf, tight * DEEP, 0
    while at < LINES and not (np.isfinite(high) and high < CLOSE * low):
        tilt[j] = sign * t
        found, lowest, promised = problem.solve(S, price, w, tilt, tol=ROUGH)
        out[:, at] = t, lowest - MISSED * promised  # minus infinity where there is no least point
        if np.isinf(promised):
            high = t
        else:
            w = found
            low, high = (low, t) if lowest + t * sign * w[j] > level else (t, high)
        if np.isfinite(high):
            t = 0.5 * (low + high)
        else:
            t *= 4.0 if t < tight else 2.0
        at += 1
    out[:, at:] = out[:, at - 1 : at]
    return out
