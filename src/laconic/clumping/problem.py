"""The convex problem of error clumping, eq. (1): its value, gradient, and a lower bound.

For fixed w, the best slack solves a problem of its own (`Theta.relax`). So the function to minimise
is

    F(w) = λ/2 ‖w‖² + φ(1 − y⟨w, x⟩),   φ(g) = min {ξᵀΘξ / (2m) : ξ ≥ max(0, g)}.

F is convex and differentiable. A row is *tied* if its slack is on the hinge, ξ = g > 0, because its
neighbours allow it less, Mξ < g. All other rows have the slack that their neighbours allow them,
ξ = Mξ, at no price. As long as the same rows are tied, F is quadratic. Only tied rows pull on w:
∇φ is the dual variable α_i = (Θξ)_i / m for a tied row and 0 for all other rows.

Any α ≥ 0 with mα ≤ Θζ for some slack ζ gives a lower bound on the optimum,

    min F ≥ Σ_i α_i − ‖Σ_i α_i y_i x_i‖² / (2λ) − ζᵀΘζ / (2m).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from laconic.clumping.margins import Margins
from laconic.clumping.theta import Theta

# Numbers of a stored state must be smaller, so that no sum of their squares overflows.
LARGE = 1e100
# No solver finds slack beyond this many times what the largest shortfall asks for.
BEYOND = 1e3


class ClumpingProblem:
    """Eq. (1) for labels ±1: F, its gradient and its lower bound.

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

    def at(self, alpha: float) -> ClumpingProblem:
        """Return the same problem with another λ."""
        return ClumpingProblem(self.rows, self.sign, self.theta, alpha)

    def shortfall(self, w: np.ndarray) -> np.ndarray:
        """Return g = 1 − y⟨w, x⟩, computed in float64."""
        return 1.0 - self.sign * self.rows.scores(w, exact=True)

    def point(self, w: np.ndarray, g: np.ndarray, start: np.ndarray, tol: float) -> Point:
        """Return the point at ``w``, with shortfall ``g``. The slack is computed to ``tol``."""
        slack, spread = self.theta.relax(np.maximum(g, 0.0), start, tol)
        tied = (g > 0) & (spread < g)
        price = np.where(tied, self.theta.weight * (slack - spread) / self.theta.total, 0.0)
        value = 0.5 * self.alpha * float(w @ w) + self.theta.value(slack, spread)
        return Point(w, g, slack, spread, tied, price, value)

    def gradient(self, at: Point) -> np.ndarray:
        """Return ∇F = λw − Σ_i α_i y_i x_i."""
        return self.alpha * at.w - self.rows.sums(self.sign * at.price, exact=True)

    def bound(self, at: Point, gradient: np.ndarray) -> float:
        """Return a proven lower bound on min F, from the α of the point.

        The slack ξ is computed only to a tolerance, so Θξ may be negative in places. Raising ξ by a
        small multiple of u (`Theta.scale`) gives ζ with Θζ ≥ max(0, Θξ). The bound is taken at the
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
    """A point of the problem. ``spread`` is the slack that neighbours allow, Mξ."""

    w: np.ndarray
    g: np.ndarray
    slack: np.ndarray
    spread: np.ndarray
    tied: np.ndarray
    price: np.ndarray
    """α, the dual variables of the constraints that tie the slack to the hinge."""
    value: float
    """F(w), or a little more if the slack is not yet exact."""


class ClumpingSolution(NamedTuple):
    """The answer of a solver of eq. (1)."""

    weights: np.ndarray
    """w. The coordinate of the constant feature is the last."""
    slack: np.ndarray
    """ξ of every row."""
    price: np.ndarray
    """α of every row."""
    objective: float
    """Value of eq. (1) at the answer."""
    gap: float
    """Proven bound on how far the objective is above the optimum."""
    iterations: int
    converged: bool
    """Whether the gap is at most ``tol`` times the objective."""


def finished(
    problem: ClumpingProblem, w: np.ndarray, start: np.ndarray, tol: float, iterations: int
) -> ClumpingSolution:
    """Return the answer at ``w``, with everything computed again to high accuracy."""
    at = problem.point(w, problem.shortfall(w), start, exactness(problem, 0.1 * tol))
    gap = max(at.value - problem.bound(at, problem.gradient(at)), 0.0)
    return ClumpingSolution(w, at.slack, at.price, at.value, gap, iterations, gap <= tol * at.value)


def check_slack(problem: ClumpingProblem, slack: np.ndarray, g: np.ndarray) -> None:
    """Raise an error if slack from a file is far beyond what shortfalls ``g`` ask for.

    In units of u (`Theta.scale`), neighbours allow no row more than the largest hinge.
    """
    scale = problem.theta.scale
    most = BEYOND * float(((1.0 + np.maximum(g, 0.0)) / scale).max())
    if not float((slack / scale).max()) <= most:
        raise ValueError("its slacks are far beyond the shortfalls")


def exactness(problem: ClumpingProblem, gap: float) -> float:
    """Return the tolerance to which slacks are worth computing while the gap has this size.

    An error e u of the slack raises the value by about e² ‖u‖²/m, and the gap by about
    e ‖u‖ ‖ξ‖/m. The latter should be a hundredth of the gap.
    """
    unit = float(np.sqrt(np.mean(problem.theta.scale**2)))
    return float(np.clip(0.01 * gap, 1e-15, 1e-2)) / unit
