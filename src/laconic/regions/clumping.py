"""The convex problem of error clumping, eq. (1), solved by a semismooth Newton method.

For fixed w the best slack solves a problem of its own (`Theta.relax`), so what is minimised is

    F(w) = λ/2 ‖w‖² + φ(1 − y⟨w, x⟩),   φ(g) = min {ξᵀΘξ / (2m) : ξ ≥ max(0, g)}.

F is convex and differentiable, and quadratic wherever the *tied* rows stay the same: those whose
slack sits on the hinge, ξ = g > 0, because their neighbours allow them less, Mξ < g. All other
rows have the slack that their neighbours allow them, ξ = Mξ, at no price. Only tied rows pull on w:
∇φ is the dual variable α_i = (Θξ)_i / m of a tied row and 0 elsewhere.

A Newton step minimises the quadratic of the present tied rows over w and the other slacks jointly,
by conjugate gradients: a product with X, one with the graph, and one with Xᵀ an iteration. The
Hessian with the identity in place of Θ is its preconditioner. As the eigenvalues of Θ lie in
[1 − η, 1 + η], iterations shrink the error by (√κ − 1)/(√κ + 1), κ = (1 + η)/(1 − η): for η = 0.5
by 0.27, whatever the data.

Any α ≥ 0 with mα ≤ Θζ for some slack ζ bounds the optimum from below,

    min F ≥ Σ_i α_i − ‖Σ_i α_i y_i x_i‖² / (2λ) − ζᵀΘζ / (2m),

which is the duality gap that ends the iterations and certifies the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from laconic.regions.margins import Margins
from laconic.regions.theta import Theta

# Most weights for which the Hessian's Gram matrix is factored; beyond, its diagonal has to do.
FACTORED = 3000
# Share of the rows whose tie may have changed since the Gram matrix was made.
STALE = 0.05
# A Newton step is accepted where F falls by this share of what its slope promises.
SUFFICIENT = 1e-4
MOST_CONJUGATE, MOST_TRIALS = 200, 30


class Problem:
    """Eq. (1) for labels ±1: rows, Θ and λ; F, its gradient and its lower bound.

    Parameters
    ----------
    rows : Margins
    sign : ndarray of shape (n_rows,)
        Labels y, -1 or 1.
    theta : Theta
    alpha : float
        λ > 0.
    """

    def __init__(self, rows: Margins, sign: np.ndarray, theta: Theta, alpha: float) -> None:
        self.rows = rows
        self.sign = sign.astype(np.float64)
        self.theta = theta
        self.alpha = float(alpha)

    def shortfall(self, w: np.ndarray) -> np.ndarray:
        """g = 1 − y⟨w, x⟩, computed in float64."""
        return 1.0 - self.sign * self.rows.scores(w, exact=True)

    def point(self, w: np.ndarray, g: np.ndarray, start: np.ndarray, tol: float) -> Point:
        """Everything at ``w``, where the shortfall is ``g``; the slack to ``tol``."""
        slack, spread = self.theta.relax(np.maximum(g, 0.0), start, tol)
        tied = (g > 0) & (spread < g)
        price = np.where(tied, self.theta.weight * (slack - spread) / self.theta.total, 0.0)
        value = 0.5 * self.alpha * float(w @ w) + self.theta.value(slack, spread)
        return Point(w, g, slack, spread, tied, price, value)

    def gradient(self, at: Point) -> np.ndarray:
        """∇F = λw − Σ_i α_i y_i x_i."""
        return self.alpha * at.w - self.rows.sums(self.sign * at.price, exact=True)

    def bound(self, at: Point, gradient: np.ndarray) -> float:
        """A proven lower bound on min F, from the α of the point.

        As the slack is computed to a tolerance only, Θξ may be negative in places; raised by a
        small multiple of u, `Theta.scale`, it is ζ with Θζ ≥ max(0, Θξ). The bound is taken at the
        multiple of (α, ζ) where it is largest.
        """
        theta = self.theta
        excess = at.slack - at.spread
        lift = float((-excess / theta.scale).max(initial=0.0)) / (1.0 - theta.rate)
        zeta = at.slack + lift * theta.scale
        excess = np.maximum(excess + lift * theta.scale_excess, 0.0)
        pull = self.alpha * at.w - gradient
        quadratic = float(pull @ pull) / self.alpha
        quadratic += float(np.dot(theta.weight * zeta, excess)) / theta.total
        total = float(at.price.sum())
        return 0.5 * total * total / quadratic if quadratic > 0 else 0.0


class Point(NamedTuple):
    """A point of the problem: w, shortfall, slack and what neighbours allow, ties and prices."""

    w: np.ndarray
    g: np.ndarray
    slack: np.ndarray
    spread: np.ndarray
    tied: np.ndarray
    price: np.ndarray
    """α, the dual variables of the constraints that tie the slack to the hinge."""
    value: float
    """F(w), or a little more where the slack is not yet exact."""


class Solution(NamedTuple):
    """What a solver of eq. (1) returns."""

    weights: np.ndarray
    """w, the constant feature's coordinate last."""
    slack: np.ndarray
    """ξ of every row."""
    price: np.ndarray
    """α of every row."""
    objective: float
    """Eq. (1) at the answer."""
    gap: float
    """Proven bound on how far that is above the optimum."""
    iterations: int
    converged: bool
    """Whether the gap is at most ``tol`` times the objective."""


@dataclass
class State:
    """What a Newton iteration starts from; enough to go on as if nothing had happened."""

    w: np.ndarray
    g: np.ndarray
    slack: np.ndarray
    factored: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=bool))
    """Tied rows of the Gram matrix in use."""
    exactness: float = 1e-2
    """Tolerance to which the slack was computed."""
    iterations: int = 0


Hook = Callable[[Any, float, float], Any]
"""Called with the state, F and the gap after every iteration."""


def solve(
    problem: Problem,
    tol: float = 1e-10,
    max_iter: int = 100,
    state: State | None = None,
    hook: Hook | None = None,
) -> Solution:
    """Minimise eq. (1) until the duality gap is at most ``tol`` times the objective.

    Parameters
    ----------
    problem : Problem
    tol : float
    max_iter : int
        Most Newton iterations.
    state : State, default=None
        Where to start or go on; by default w = 0.
    hook : callable, default=None
        Called with the state, the objective and the gap after every iteration.

    Returns
    -------
    Solution
    """
    m, n = problem.rows.n_rows, problem.rows.n_weights
    state = State(np.zeros(n), np.ones(m), np.ones(m)) if state is None else state
    preconditioner: Preconditioner | None = None
    at = problem.point(state.w, state.g, state.slack, state.exactness)
    while True:
        gradient = problem.gradient(at)
        gap = max(at.value - problem.bound(at, gradient), 0.0)
        state.w, state.g, state.slack = at.w, at.g, at.slack
        if hook is not None and state.iterations:
            hook(state, at.value, gap)
        if gap <= tol * at.value or state.iterations >= max_iter:
            break
        changed = state.factored.shape != at.tied.shape or (
            np.count_nonzero(state.factored != at.tied) > STALE * m
        )
        if changed:
            state.factored = at.tied
        if changed or preconditioner is None:
            preconditioner = Preconditioner(problem, state.factored)
        accuracy = float(np.clip(gap / at.value, 1e-8, 0.1))
        p, move, slide = _newton_step(problem, at, gradient, preconditioner, accuracy)
        state.exactness = exactness(problem, gap)
        at, moved = _search(problem, at, gradient, p, move, slide, state.exactness)
        state.iterations += 1
        if not moved:
            break
    return finished(problem, state.w, state.slack, tol, state.iterations)


def finished(
    problem: Problem, w: np.ndarray, start: np.ndarray, tol: float, iterations: int
) -> Solution:
    """The answer at ``w``, with everything about it computed anew and to high accuracy."""
    at = problem.point(w, problem.shortfall(w), start, exactness(problem, 0.1 * tol))
    gap = max(at.value - problem.bound(at, problem.gradient(at)), 0.0)
    return Solution(w, at.slack, at.price, at.value, gap, iterations, gap <= tol * at.value)


def exactness(problem: Problem, gap: float) -> float:
    """To what tolerance slacks are worth computing while the gap is of this size.

    An error e u of the slack raises the value by about e² ‖u‖²/m, and the gap by some e ‖u‖ ‖ξ‖/m,
    which shall be a hundredth of it.
    """
    unit = float(np.sqrt(np.mean(problem.theta.scale**2)))
    return float(np.clip(0.01 * gap, 1e-15, 1e-2)) / unit


class Preconditioner:
    """Solves with λI + Σ_{tied} s_i x_i x_iᵀ / m, or with its diagonal where it is too large."""

    def __init__(self, problem: Problem, tied: np.ndarray) -> None:
        rows, weight = problem.rows, problem.theta.weight * tied / problem.theta.total
        self._factor: Any = None
        if rows.n_weights > FACTORED:
            self._diagonal = problem.alpha + rows.squares(weight)
            return
        matrix = rows.gram(weight)
        diagonal = np.einsum("ii->i", matrix)
        # Rounding must not cost the matrix its definiteness.
        shake = 4.0 * float(np.finfo(rows.X.dtype).eps) * float(diagonal.max(initial=0.0))
        diagonal += problem.alpha
        while self._factor is None:
            try:
                self._factor = cho_factor(matrix)
            except LinAlgError:
                diagonal += shake
                shake *= 10.0

    def __call__(self, r: np.ndarray) -> np.ndarray:
        """Apply the inverse."""
        if self._factor is None:
            return r / self._diagonal
        return cho_solve(self._factor, r, check_finite=False)


def _newton_step(
    problem: Problem,
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
    problem: Problem,
    at: Point,
    gradient: np.ndarray,
    step: np.ndarray,
    move: np.ndarray,
    slide: np.ndarray,
    tol: float,
) -> tuple[Point, bool]:
    """A point of sufficiently lower F along the step, and whether there was one.

    Along the line the slope is λ⟨w, p⟩ + Σ α_i (change of g_i), which takes no product with X:
    where the full step is too long, the secant of the slope says where to look next.
    """
    slope = float(gradient @ step)
    low, low_slope, high, t = 0.0, slope, np.inf, 1.0
    for _ in range(MOST_TRIALS):
        trial = problem.point(at.w + t * step, at.g + t * move, at.slack + t * slide, tol)
        if trial.value <= at.value + SUFFICIENT * t * slope:
            return trial, True
        here = problem.alpha * float(trial.w @ step) + float(trial.price @ move)
        if here > 0:
            high = t
        else:
            low, low_slope = t, here
        aim = low + (t - low) * low_slope / (low_slope - here) if here > low_slope else 0.5 * t
        room = high - low if np.isfinite(high) else t
        t = float(np.clip(aim, low + 0.1 * room, low + 0.9 * room))
    return at, False
