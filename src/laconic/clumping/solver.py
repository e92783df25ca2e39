"""The solver of error clumping, eq. (1): a semismooth Newton method on F (see `ClumpingProblem`).

A Newton step minimises the quadratic of the present tied rows, jointly over w and the other slacks.
It uses conjugate gradients. Each of their iterations takes one product with X, one with the graph,
and one with Xᵀ. The preconditioner is the Hessian with the identity in place of Θ. The eigenvalues
of Θ lie in [1 − η, 1 + η]. So an iteration multiplies the error by (√κ − 1)/(√κ + 1), where
κ = (1 + η)/(1 − η). For η = 0.5 this factor is 0.27, whatever the data, while the ties are those
that the preconditioner was made for. Every row whose tie has changed since then may cost one more
iteration. Newton steps end when the duality gap is small enough. The gap certifies the answer.

One case needs more care: rows are few or separable, and λ is small compared with ‖x‖². Then one
step from w = 0 makes all rows fit and F small, but the ties are random: half of the slacks are a
little below 0. The next step lets go of those rows. They may then fall short by as much as 1, but F
has room for only √F. So only a small share of the step lowers F. A few rows are tied again, and so
on, row by row. The sign of this is a step that is cut short while the gap is wide. Then the solver
starts again with λ as large as the mean ‖x‖², where one step is enough. It halves λ again and
again. Every w is near the next, and few ties change in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from laconic.clumping.problem import (
    LARGE,
    ClumpingProblem,
    ClumpingSolution,
    Point,
    check_slack,
    exactness,
    finished,
)
from laconic.files.layout import MOST, Array, Number

# Most weights for which the Gram matrix of the Hessian is factored. With more weights, only its
# diagonal is used.
FACTORED = 3000
# Largest share of rows whose tie may change before the Gram matrix is made again.
STALE = 0.3
# Smallest λ, in units of the Gram matrix's trace, for which the matrix may be in single precision.
SINGLE = 1e-5
# Sums of squares from 1/ROOM to ROOM fit in single precision.
ROOM = 1e30
# A Newton step is accepted if F falls by at least this share of what its slope promises.
SUFFICIENT = 1e-4
# If the slope of F at a point is above this share of its first slope (with the sign changed), the
# point is too far. Then one more is tried.
STEEP = 0.3
# λ is approached from above if a step is cut to less than SHORT while the relative gap is above
# WIDE.
SHORT, WIDE = 0.3, 0.5
# At this relative gap, the solver goes on to the next λ.
ROUGH = 0.1
# Newton steps are computed to an accuracy of the relative gap, but at least to LOOSE, and on the
# way down in λ at least to TIGHT.
LOOSE, TIGHT = 0.1, 1e-3
ROUNDING = 1e-15
MOST_CONJUGATE, MOST_TRIALS, MOST_DOUBLINGS = 200, 30, 100
# By rounding, a shortfall may differ from that of the weights by this part of the scores' size.
DRIFT = 1e-9


@dataclass
class SolverState:
    """The state before a Newton iteration. A fit that resumes from it continues unchanged."""

    w: np.ndarray
    g: np.ndarray
    slack: np.ndarray
    factored: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=bool))
    """Tied rows of the Gram matrix in use. Empty if there is no matrix yet."""
    exactness: float = 1e-2
    """Tolerance to which the slack was computed."""
    iterations: int = 0
    step: float = 1.0
    """Share of the last Newton step that was taken. It is 0 if no share of the step lowered F."""
    doublings: int = 0
    """How often the λ asked for is doubled in the current problem."""
    direct: bool = True
    """Whether λ itself is tried. It is False once the path to λ from above has begun."""

    layout: ClassVar = {
        "w": Array("f", ("weights",), -LARGE, LARGE),
        "g": Array("f", ("rows",), -LARGE, LARGE),
        "slack": Array("f", ("rows",), 0.0, LARGE),
        "factored": Array("b", ("rows",)),
        "exactness": Number(float, float(np.finfo(float).tiny)),
        "iterations": Number(int, 1, MOST),
        "step": Number(float, 0.0),
        "doublings": Number(int, 0, MOST_DOUBLINGS),
        "direct": Number(bool),
    }

    @classmethod
    def start(cls, problem: ClumpingProblem, **settings: Any) -> SolverState:
        """Return the state at w = 0."""
        m, n = problem.rows.n_rows, problem.rows.n_weights
        return cls(np.zeros(n), np.ones(m), np.ones(m), **settings)

    def check(self, problem: ClumpingProblem) -> None:
        """Raise an error if shortfall and weights do not match, or the slack is far too large."""
        rows = problem.rows
        size = 1.0 + float(np.abs(self.w) @ np.sqrt(rows.squares(np.ones(rows.n_rows))))
        if not np.abs(self.g - problem.shortfall(self.w)).max() <= DRIFT * size:
            raise ValueError("its weights and shortfalls do not belong together")
        check_slack(problem, self.slack, self.g)


Hook = Callable[[Any, float, float, float], Any]
"""Called with the state, λ, F and the gap after every iteration."""


def solve(
    problem: ClumpingProblem,
    tol: float = 1e-10,
    max_iter: int = 100,
    state: SolverState | None = None,
    hook: Hook | None = None,
    factored: int = FACTORED,
) -> ClumpingSolution:
    """Minimise eq. (1) until the duality gap is at most ``tol`` times the objective.

    Parameters
    ----------
    problem : ClumpingProblem
    tol : float
    max_iter : int
        Most Newton iterations, including those at larger λ.
    state : SolverState, default=None
        State to start or resume from. The default is w = 0.
    hook : callable, default=None
        Called with the state, λ, the objective and the gap after every iteration.
    factored : int
        Most weights for which a Gram matrix is factored.

    Returns
    -------
    ClumpingSolution
    """
    state = SolverState.start(problem) if state is None else state
    while True:
        posed = problem.at(problem.alpha * 2.0**state.doublings)
        goal = ROUGH if state.doublings else tol
        stuck = _descend(posed, goal, max_iter, state, hook, factored)
        if state.iterations >= max_iter:
            break
        if stuck:
            done, above = state.iterations, _doublings(problem)
            state = SolverState.start(problem, iterations=done, doublings=above, direct=False)
        elif state.doublings:
            state.doublings -= 1
            state.step, state.factored = 1.0, np.empty(0, dtype=bool)
        else:
            break
    return finished(problem, state.w, state.slack, tol, state.iterations)


def _doublings(problem: ClumpingProblem) -> int:
    """Return how many doublings of λ reach the mean ‖x‖², at most `MOST_DOUBLINGS`.

    More could not be told apart because of rounding.
    """
    share = problem.theta.weight / problem.theta.total
    size = float(problem.rows.squares(share).sum())
    ratio = np.log2(max(size, problem.alpha)) - np.log2(problem.alpha)
    return min(int(np.ceil(ratio)), MOST_DOUBLINGS)


def _descend(
    problem: ClumpingProblem,
    tol: float,
    max_iter: int,
    state: SolverState,
    hook: Hook | None,
    factored: int,
) -> bool:
    """Take Newton iterations at one λ, to a relative gap or as long as F falls.

    Return whether they stopped because a larger λ should be solved first.
    """
    # Fewer ties change on the way down in λ, and all of them matter.
    stale, loose = (STALE, LOOSE) if state.direct else (0.0, TIGHT)
    preconditioner: Preconditioner | None = None
    at = problem.point(state.w, state.g, state.slack, state.exactness)
    gradient = problem.gradient(at)
    gap = max(at.value - problem.bound(at, gradient), 0.0)
    while gap > tol * at.value and state.iterations < max_iter:
        if state.direct and state.step < SHORT and gap > WIDE * at.value:
            return True
        if state.step == 0.0:
            break
        changed = state.factored.shape != at.tied.shape or (
            np.count_nonzero(state.factored != at.tied) > stale * len(at.tied)
        )
        if changed:
            state.factored = at.tied
        if changed or preconditioner is None:
            preconditioner = Preconditioner(problem, state.factored, factored)
        accuracy = float(np.clip(gap / at.value, 1e-8, loose))
        p, move, slide = _newton_step(problem, at, gradient, preconditioner, accuracy)
        state.exactness = exactness(problem, gap)
        before = at.value
        at, share = _search(problem, at, gradient, p, move, slide, state.exactness)
        state.step = share if at.value < before else 0.0
        state.w, state.g, state.slack = at.w, at.g, at.slack
        state.iterations += 1
        gradient = problem.gradient(at)
        gap = max(at.value - problem.bound(at, gradient), 0.0)
        if hook is not None:
            hook(state, problem.alpha, at.value, gap)
    return False


class Preconditioner:
    """Solves linear systems with λI + Σ_{tied} s_i x_i x_iᵀ / m.

    If there are more than ``most`` weights, only the diagonal is used.
    """

    def __init__(self, problem: ClumpingProblem, tied: np.ndarray, most: int) -> None:
        rows, weight = problem.rows, problem.theta.weight * tied / problem.theta.total
        squares = rows.squares(weight)
        self._diagonal = problem.alpha + squares
        self._factor: Any = None
        self._live = np.flatnonzero(squares > 0)
        if not 0 < len(self._live) <= most:  # LAPACK may refuse matrices without rows
            return
        # Single precision is good enough here if λ is much larger than its rounding errors and the
        # squares fit in its range.
        total = float(squares.sum())
        single = problem.alpha >= SINGLE * total and 1.0 / ROOM < total < ROOM
        matrix = rows.gram(weight, self._live, np.float32 if single else None)
        diagonal = np.einsum("ii->i", matrix)
        # If rounding makes the matrix indefinite, its diagonal is raised by this much.
        shake = 4.0 * float(np.finfo(rows.X.dtype).eps) * float(squares.max(initial=0.0))
        diagonal += problem.alpha
        while self._factor is None:
            try:
                self._factor = cho_factor(matrix, check_finite=False)
            except LinAlgError:
                diagonal += shake
                shake *= 10.0

    def __call__(self, r: np.ndarray) -> np.ndarray:
        """Apply the inverse."""
        out = r / self._diagonal
        if self._factor is not None:
            out[self._live] = cho_solve(self._factor, r[self._live], check_finite=False)
        return out


def _newton_step(
    problem: ClumpingProblem,
    at: Point,
    gradient: np.ndarray,
    preconditioner: Preconditioner,
    accuracy: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Minimise the quadratic of the tied rows over w and the other slacks, to an accuracy.

    Return the step of w, the change of the shortfall g, and the change of the slack.
    """
    theta, rows, sign, tied = problem.theta, problem.rows, problem.sign, at.tied
    share = theta.weight / theta.total
    step, slide = np.zeros_like(gradient), np.zeros(rows.n_rows)
    r = -gradient
    rest = np.where(tied, 0.0, share * (at.spread - at.slack))
    z, zest = preconditioner(r), rest / share
    p, pest = z, zest
    rz = first = float(r @ z + rest @ zest)
    for _ in range(MOST_CONJUGATE):
        if not rz > accuracy**2 * first:
            break
        both = np.where(tied, -sign * rows.scores(p), pest)
        pressed = share * (both - theta.spread(both))
        Hp = problem.alpha * p - rows.sums(np.where(tied, sign * pressed, 0.0))
        Hest = np.where(tied, 0.0, pressed)
        curvature = float(p @ Hp + pest @ Hest)
        if not curvature > 0:
            break
        t = rz / curvature
        step += t * p
        slide += t * both
        r = r - t * Hp
        rest = rest - t * Hest
        z, zest = preconditioner(r), rest / share
        fresh = float(r @ z + rest @ zest)
        p, pest = z + (fresh / rz) * p, zest + (fresh / rz) * pest
        rz = fresh
    return step, -sign * rows.scores(step, exact=True), slide


def _search(
    problem: ClumpingProblem,
    at: Point,
    gradient: np.ndarray,
    step: np.ndarray,
    move: np.ndarray,
    slide: np.ndarray,
    tol: float,
) -> tuple[Point, float]:
    """Return a point of sufficiently lower F along the step, and its share of the step.

    If rounding leaves no such point, return the same point and 0.

    Along the line the slope is λ⟨w, p⟩ + Σ α_i (change of g_i), which takes no product with X. If
    the full step is too long, the secant of the slope says where to look next. A point may be lower
    but lie far up the other side. Then one more point is tried, and the lower of the two is
    returned.
    """
    slope = float(gradient @ step)
    low, low_slope, high, t = 0.0, slope, np.inf, 1.0
    kept: tuple[Point, float] | None = None
    for _ in range(MOST_TRIALS):
        trial = problem.point(at.w + t * step, at.g + t * move, at.slack + t * slide, tol)
        here = problem.alpha * float(trial.w @ step) + float(trial.price @ move)
        if kept is not None:
            return (trial, t) if trial.value < kept[0].value else kept
        if trial.value <= at.value * (1.0 + ROUNDING) + SUFFICIENT * t * slope:
            if here <= STEEP * -slope:
                return trial, t
            kept = trial, t
        if here > 0:
            high = t
        else:
            low, low_slope = t, here
        aim = low + (t - low) * low_slope / (low_slope - here) if here > low_slope else 0.5 * t
        room = high - low if np.isfinite(high) else t
        t = float(np.clip(aim, low + 0.1 * room, low + 0.9 * room))
    return at, 0.0
