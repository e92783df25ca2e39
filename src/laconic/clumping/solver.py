"""The solver of error clumping, eq. (1): a semismooth Newton method on F (see `ClumpingProblem`).

A Newton step minimises the quadratic of the present tied rows over w and the other slacks jointly,
by conjugate gradients: a product with X, one with the graph, and one with Xᵀ an iteration. The
Hessian with the identity in place of Θ is its preconditioner. As the eigenvalues of Θ lie in
[1 − η, 1 + η], iterations shrink the error by (√κ − 1)/(√κ + 1), κ = (1 + η)/(1 − η): for η = 0.5
by 0.27, whatever the data, while the ties are those that the preconditioner was made for. Every
row whose tie has changed since may cost an iteration more. Iterations end by the duality gap, which
certifies the answer.

Where rows are few, or separable, and λ is small beside ‖x‖², one step from w = 0 makes all rows fit
and F small, but ties at random: half of the slacks are a little below 0. The next step lets go of
those rows, which lets them fall short by as much as 1 where F has room for √F. Only a small share
of it lowers F, at which a few rows are tied again, and so on, row by row. A step cut short while
the gap is wide is the sign of that. Then λ is first taken as large as the mean ‖x‖², where one step
does it, and halved again and again: every w is near the next, and few ties change in between.
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

# Most weights for which the Hessian's Gram matrix is factored; beyond, its diagonal has to do.
FACTORED = 3000
# Share of the rows whose tie may have changed since the Gram matrix was made.
STALE = 0.3
# λ, in units of the Gram matrix's trace, from which on single precision will do for the matrix.
SINGLE = 1e-5
# Sums of squares, beside 1, that single precision has room for.
ROOM = 1e30
# A Newton step is accepted where F falls by this share of what its slope promises.
SUFFICIENT = 1e-4
# A point where F rises by more than this share of its first slope is too far: one more is tried.
STEEP = 0.3
# λ is approached from above after a step cut to less than this, while the relative gap is wide.
SHORT, WIDE = 0.3, 0.5
# Relative gap at which the next λ is taken.
ROUGH = 0.1
# Newton steps are computed to the relative gap, or to these: at first, and on the way down in λ.
LOOSE, TIGHT = 0.1, 1e-3
ROUNDING = 1e-15
MOST_CONJUGATE, MOST_TRIALS, MOST_DOUBLINGS = 200, 30, 100
# Part of the scores' size by which rounding may take a shortfall away from that of the weights.
DRIFT = 1e-9


@dataclass
class SolverState:
    """What a Newton iteration starts from; enough to go on as if nothing had happened."""

    w: np.ndarray
    g: np.ndarray
    slack: np.ndarray
    factored: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=bool))
    """Tied rows of the Gram matrix in use; none where there is none yet."""
    exactness: float = 1e-2
    """Tolerance to which the slack was computed."""
    iterations: int = 0
    step: float = 1.0
    """Share of the last Newton step that was taken; 0 where none of it lowered F."""
    doublings: int = 0
    """How often the λ asked for is doubled in the present problem."""
    direct: bool = True
    """Whether λ itself is tried first; False once the path to it has been taken."""

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
        """At w = 0."""
        m, n = problem.rows.n_rows, problem.rows.n_weights
        return cls(np.zeros(n), np.ones(m), np.ones(m), **settings)

    def check(self, problem: ClumpingProblem) -> None:
        """Refuse a shortfall that is not that of the weights, and slack far beyond it."""
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
        Most Newton iterations, those at larger λ included.
    state : SolverState, default=None
        Where to start or go on; by default w = 0.
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
    """How many doublings of λ reach the mean ‖x‖²; no more than rounding could tell apart."""
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
    """Newton iterations at one λ, to a relative gap or as long as F falls.

    Returns whether they were left because larger λ should be solved first.
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
    """Solves with λI + Σ_{tied} s_i x_i x_iᵀ / m.

    With its diagonal only, where there are more than ``most`` weights.
    """

    def __init__(self, problem: ClumpingProblem, tied: np.ndarray, most: int) -> None:
        rows, weight = problem.rows, problem.theta.weight * tied / problem.theta.total
        squares = rows.squares(weight)
        self._diagonal = problem.alpha + squares
        self._factor: Any = None
        self._live = np.flatnonzero(squares > 0)
        if not 0 < len(self._live) <= most:  # LAPACK need not take matrices without rows
            return
        # Where λ drowns the rounding of single precision, which has room for the squares, that is
        # good enough here.
        total = float(squares.sum())
        single = problem.alpha >= SINGLE * total and 1.0 / ROOM < total < ROOM
        matrix = rows.gram(weight, self._live, np.float32 if single else None)
        diagonal = np.einsum("ii->i", matrix)
        # Rounding must not cost the matrix its definiteness.
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

    Returns the step of w, the change of the shortfall g, and that of the slack.
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
    """A point of sufficiently lower F along the step, and how much of the step that is.

    The same point and 0 where rounding leaves none.

    Along the line the slope is λ⟨w, p⟩ + Σ α_i (change of g_i), which takes no product with X:
    where the full step is too long, the secant of the slope says where to look next. A point that
    is lower, but lies far up the other side, is kept for the lower of it and the next.
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
