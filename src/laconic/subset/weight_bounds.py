"""Bounds on the size of each weight, in all solutions that are good enough to matter.

Let F(w) be the mean loss + l1 ‖w‖₁ over all columns. A solution of level R has F(w) ≤ R. Then for
every t > 0

    w_j ≤ (R − min_w {F(w) − t w_j}) / t .

Each t gives a line in R. The smallest of a few lines bounds the weight at every level. These bounds
are the M_j of the big-M relaxation in `laconic.subset.exact`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from laconic.subset.problem import SubsetProblem
from laconic.subset.solver import curvature

# Largest bound on a weight. Beyond it the level set is almost unbounded.
LARGEST = 1e6
# Smallest bound on a weight. It keeps the price of a column that cannot be used finite.
SMALLEST = 1e-12
# Largest number of lines of one weight, and the ratio of two t at which more lines gain nothing.
LINES, CLOSE = 24, 1.2
# First t of a weight, as a part of the t that is expected to be tight. Two steps by a factor of 4
# lead there.
DEEP = 1.0 / 16.0
# Predicted relative gain below which a solve for a line ends. The line is lowered by what the solve
# may have missed.
ROUGH = 1e-7
# How far above the minimum a solve may have ended, in units of the predicted gain of its last step.
MISSED = 10.0


class LevelSet:
    """Bounds on every weight and on the intercept, for any level."""

    def __init__(self, sides: list[np.ndarray]) -> None:
        self._sides = sides

    @classmethod
    def of(
        cls, problem: SubsetProblem, level: float, late: Callable[[], bool] = lambda: False
    ) -> LevelSet | None:
        """Return the bounds of a problem, or None if time runs out.

        Parameters
        ----------
        problem : SubsetProblem
        level : float
            Level at which the bounds should be tight. They hold at every level.
        late : callable
            Returns whether time has run out. It is called before every weight.
        """
        S = problem.matrix(range(problem.n_columns))
        price = np.full(problem.n_columns, problem.l1)
        lowest, lowest_value, _ = problem.solve(S, price)
        spare = np.diag(np.linalg.inv(curvature(S, problem.derivatives(S, lowest)[2])))
        # In the quadratic model F(w) = min F + ½ t² A_jj, with A the inverse curvature.
        tight = np.sqrt(2.0 * max(level - lowest_value, SMALLEST) / np.maximum(spare, 1e-300))
        sides = []
        for sign in (1.0, -1.0):
            one_sided = problem.nonnegative and sign < 0
            columns = range(problem.n_columns, len(S)) if one_sided else range(len(S))
            lines = np.full((2, len(S), LINES), np.inf)
            lines[1] = 0.0  # no weight can have this sign: the bound is zero at every level
            for j in columns:
                if late():
                    return None
                lines[:, j] = _lines(problem, S, price, level, j, sign, lowest, tight[j])
            sides.append(lines)
        return cls(sides)

    def bounds(self, level: float) -> np.ndarray:
        """Return bounds on |w_j| over all weights with F(w) ≤ ``level``. The intercept is last."""
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
    """Return values of t, and the minima of F(w) − t sign w_j, near the tightest t for a level.

    The bound is tight at the t where F(w) at the minimum equals the level. The search for this t
    starts below ``tight``, the expected value. It raises t until F exceeds the level or has no
    minimum, and then bisects. The smaller t come first. They are tight for the levels of nodes deep
    in the tree.
    """
    out = np.empty((2, LINES))
    tilt, w = np.zeros(len(S)), start
    low, high, t, at = 0.0, np.inf, tight * DEEP, 0
    while at < LINES and not (np.isfinite(high) and high < CLOSE * low):
        tilt[j] = sign * t
        found, lowest, promised = problem.solve(S, price, w, tilt, tol=ROUGH)
        out[:, at] = t, lowest - MISSED * promised  # minus infinity if there is no minimum
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
