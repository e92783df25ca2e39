"""The paper's solver: primal-dual stochastic dual averaging (section 3), as in the paper's text.

Step t draws a row I. Let η_t = γ/√t, w = −η_t u, and ξ_j = max(−η_t μ_j, g_j(w), 0) for all rows.
The step is

    u ← u + λw − Θ_I ξ y_I x_I   (the last term only if ξ_I = g_I(w) and Θ_I ξ > 0),
    μ_I ← μ_I + Θ_I ξ            (if Θ_I ξ < 0, or if ξ_I > max(0, g_I(w)) and Θ_I ξ > 0).

The answer is the mean of all w. The pseudo-code of algorithm 1 leaves out the factor Θ_I ξ in the
first line, but its derivation and convergence need it. A step costs a product with the rows of N_I,
because their slacks depend on w. Rows are drawn with probabilities proportional to their weights,
so that the gradients are right on average.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from laconic.clumping.problem import LARGE, ClumpingProblem, ClumpingSolution, check_slack, finished
from laconic.clumping.solver import Hook
from laconic.files.layout import MOST, Array, Number
from laconic.numeric.compiled import compiled

# Number of steps whose neighbours are listed at a time.
LISTED = 256


@dataclass
class Averages:
    """The state before a pass."""

    u: np.ndarray
    mu: np.ndarray
    total: np.ndarray
    """Sum of all w so far."""
    slack: np.ndarray
    iterations: int = 0
    """Number of passes taken."""

    layout: ClassVar = {
        "u": Array("f", ("weights",), -LARGE, LARGE),
        "mu": Array("f", ("rows",), -LARGE, LARGE),
        "total": Array("f", ("weights",), -LARGE, LARGE),
        "slack": Array("f", ("rows",), 0.0, LARGE),
        "iterations": Number(int, 1, MOST),
    }

    @classmethod
    def start(cls, problem: ClumpingProblem) -> Averages:
        """Return the state before the first pass."""
        m, n = problem.rows.n_rows, problem.rows.n_weights
        return cls(np.zeros(n), np.zeros(m), np.zeros(n), np.ones(m))

    def check(self, problem: ClumpingProblem) -> None:
        """Raise an error if the slack is far beyond what the mean w asks for."""
        check_slack(problem, self.slack, problem.shortfall(self.mean))

    @property
    def mean(self) -> np.ndarray:
        """The mean of all w so far."""
        return self.total / (len(self.mu) * self.iterations)


def average(
    problem: ClumpingProblem,
    tol: float = 1e-10,
    max_iter: int = 100,
    learning_rate: float | None = None,
    seed: int = 0,
    state: Averages | None = None,
    hook: Hook | None = None,
) -> ClumpingSolution:
    """Run the stochastic algorithm for at most ``max_iter`` passes of m steps each.

    Parameters
    ----------
    problem : ClumpingProblem
        Dense rows.
    tol : float
        Stop after a pass if the duality gap of the mean is at most this times the objective.
    max_iter : int
        Most passes.
    learning_rate : float, default=None
        γ. The default is 1 over the mean squared norm of the rows.
    seed : int, default=0
        Seed for the rows drawn. Those of a pass depend only on the seed and the number of the pass.
    state : Averages, default=None
        State to resume from.
    hook : callable, default=None
        Called with the state, λ, the objective and the gap of the mean after every pass.

    Returns
    -------
    ClumpingSolution
        ξ, the objective and the gap are those of the mean w. The slack is the best for this w.
    """
    rows = problem.rows
    if rows.sparse:
        raise ValueError("solver='averaging' needs dense rows; use solver='newton' for sparse rows")
    if learning_rate is None:
        learning_rate = default_rate(problem)
    state = Averages.start(problem) if state is None else state
    begun = state.iterations
    while True:
        if state.iterations:
            answer = finished(problem, state.mean, state.slack, tol, state.iterations)
            state.slack = answer.slack
            if hook is not None and state.iterations > begun:
                hook(state, problem.alpha, answer.objective, answer.gap)
            if answer.converged or state.iterations >= max_iter:
                return answer
        take_pass(problem, state, learning_rate, seed)


def default_rate(problem: ClumpingProblem) -> float:
    """Return 1 over the mean squared norm of the rows."""
    theta = problem.theta
    square = float(problem.rows.squares(theta.weight).sum()) / theta.total
    return 1.0 / square if square > 0 else 1.0


def take_pass(problem: ClumpingProblem, state: Averages, learning_rate: float, seed: int) -> None:
    """Take m steps."""
    rows, theta, m = problem.rows, problem.theta, problem.rows.n_rows
    draw = np.random.default_rng([seed, state.iterations])
    drawn = draw.choice(m, size=m, p=theta.weight / theta.total)
    for first in range(0, m, LISTED):
        some = drawn[first : first + LISTED]
        lists = [theta.graph.neighbours(int(i)) for i in some]
        ends = np.cumsum([0, *map(len, lists)])
        _steps(rows.X, rows.intercept, problem.sign, some, np.concatenate(lists), ends,
               *theta.factors, problem.alpha, learning_rate, m * state.iterations + first,
               state.u, state.mu, state.total)  # fmt: skip
    state.iterations += 1


@compiled(fastmath={"reassoc", "contract"})
def _score(X, row, u):  # type: ignore[no-untyped-def]
    total = 0.0
    for f in range(X.shape[1]):
        total += X[row, f] * u[f]
    return total


@compiled
def _steps(  # type: ignore[no-untyped-def]
    X, intercept, sign, drawn, neighbours, ends, left, right, own, alpha, gamma, taken, u, mu, total
):
    """Take steps of the algorithm. Θ_I ξ = ξ_I − (left_I Σ_{j ∈ N_I} right_j ξ_j + own_I ξ_I)."""
    d = X.shape[1]
    for k in range(len(drawn)):
        rate = gamma / np.sqrt(taken + k if taken + k > 1 else 1)
        i = drawn[k]
        spread = 0.0
        hinge = xi = 0.0
        for p in range(ends[k], ends[k + 1] + 1):
            j = neighbours[p] if p < ends[k + 1] else i
            score = _score(X, j, u)
            if intercept:
                score += u[d]
            g = 1.0 + rate * sign[j] * score
            slack = g if g > 0.0 else 0.0
            slack = -rate * mu[j] if -rate * mu[j] > slack else slack
            if p < ends[k + 1]:
                spread += right[j] * slack
            else:
                hinge, xi = g, slack
        pressed = xi - (left[i] * spread + own[i] * xi)
        for f in range(len(u)):
            total[f] -= rate * u[f]
            u[f] -= alpha * rate * u[f]
        if xi == hinge and pressed > 0:
            for f in range(d):
                u[f] -= pressed * sign[i] * X[i, f]
            if intercept:
                u[d] -= pressed * sign[i]
        if pressed < 0 or (xi > 0.0 and xi > hinge and pressed > 0):
            mu[i] += pressed
