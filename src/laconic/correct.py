"""The corrector: re-optimise all chosen columns (step 6 of ShareBoost's algorithm 1).

It minimises Φ(W) = L(W) + Ω(W) over the weights of the columns in, warm-started, to a stated
tolerance, and returns a certificate of what remains.

Notes
-----
Newton's method, its steps found by preconditioned conjugate gradients. A Hessian product costs two
skinny matrix products and no exponential, so few evaluations and cheap products make a solve. The
preconditioner is the class-diagonal of the Hessian, Σ_i ρ_ic (1 − ρ_ic) x_i x_iᵀ for every class c,
between projections onto weights that sum to zero over the classes. A shift common to all classes
leaves the softmax, and so the loss, as it is: there only the penalty bends, and a preconditioner
that ignores this costs ten times the products.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from laconic.objective import Objective, Problem, Solution
from laconic.penalties import Penalty

# How far conjugate gradients reduce the residual of a Newton step, in the preconditioner's norm.
# Tenfold was fastest: coarser takes more evaluations, finer more products.
FORCING = 0.1


class Newton:
    """Newton's method with preconditioned conjugate gradients: the default corrector.

    Parameters
    ----------
    tol : float
        Stop after a step whose predicted gain, half the squared Newton decrement, is at most
        ``tol * max(Φ, 1e-3)``. Close to the optimum what remains is of second order in that; the
        certificate's gap is what holds anywhere. The absolute part of the tolerance ends the
        solve on separable data, where the infimum of the loss lies at infinity.
    gradient_tol : float or None
        Where given, stop when the Euclidean norm of ∇Φ is at most this, and not before.
    max_iter : int
        Most Newton steps.
    """

    def __init__(
        self, tol: float = 1e-5, gradient_tol: float | None = None, max_iter: int = 100
    ) -> None:
        self.tol = tol
        self.gradient_tol = gradient_tol
        self.max_iter = max_iter

    def solve(self, problem: Problem, penalty: Penalty, start: np.ndarray) -> Solution:
        """Minimise Φ from ``start``."""
        objective = Objective(problem, penalty)
        W = start
        value, gradient = objective.evaluate(W)
        apply: Callable[[np.ndarray], np.ndarray] | None = None
        decrement, converged, used = np.inf, False, 0
        for _ in range(self.max_iter):
            if self._close(gradient):
                converged = True
                break
            # A new preconditioner costs a few products: renew it as soon as that may pay.
            if apply is None or used > 8 + problem.n_columns // 32:
                apply = objective.preconditioner(W)
            step, used = self._step(objective, W, gradient, apply)
            slope = float(np.vdot(gradient, step))
            decrement = -0.5 * slope
            moved = self._search(objective, W, step, value, slope)
            if moved is None:
                objective.evaluate(W)
                break
            W, value, gradient = moved
            # Less damping as the end comes near keeps its convergence fast.
            objective.damp = min(1.0, 1e3 * max(decrement, 0.0) / max(value, 1e-3))
            if self.gradient_tol is None and decrement <= self.tol * max(value, 1e-3):
                converged = True
                break
        return objective.solution(W, value, gradient, decrement, converged)

    def _close(self, gradient: np.ndarray) -> bool:
        norm = float(np.linalg.norm(gradient))
        return norm == 0 or (self.gradient_tol is not None and norm <= self.gradient_tol)

    def _step(
        self,
        objective: Objective,
        W: np.ndarray,
        gradient: np.ndarray,
        apply: Callable[[np.ndarray], np.ndarray],
    ) -> tuple[np.ndarray, int]:
        """Solve ∇²Φ step = −∇Φ roughly; returns the step and the products it took."""
        r = -gradient
        z = apply(r)
        p, rz = z, float(np.vdot(r, z))
        goal = rz * FORCING**2
        step = np.zeros_like(W)
        limit = 2 * W.size + 10
        for products in range(1, limit + 1):
            Hp = objective.curve(W, p)
            pHp = float(np.vdot(p, Hp))
            if not pHp > 0:
                return (step if products > 1 else z), products
            a = rz / pHp
            step = step + a * p
            r = r - a * Hp
            z = apply(r)
            rz, old = float(np.vdot(r, z)), rz
            if not rz > goal:
                break
            p = z + (rz / old) * p
        return step, products

    def _search(
        self, objective: Objective, W: np.ndarray, step: np.ndarray, value: float, slope: float
    ) -> tuple[np.ndarray, float, np.ndarray] | None:
        """Halve the step until Φ falls enough; ``None`` if rounding lets it fall no more."""
        # Differences of Φ below its own rounding say nothing about the step.
        noise = 4.0 * np.finfo(objective.problem.dtype).eps * abs(value)
        # Where Φ is all but flat a Newton step can be absurdly long.
        t = min(1.0, 10.0 * (1.0 + np.abs(W).max()) / max(np.abs(step).max(), 1e-300))
        for _ in range(40):
            candidate = W + t * step
            new, gradient = objective.evaluate(candidate)
            if new <= value + 1e-4 * t * slope + noise:
                return candidate, new, gradient
            t *= 0.5
        return None


class Nesterov:
    """Nesterov's accelerated gradient, the corrector the paper used: kept as the reference.

    Steps of 1/β with β doubled from 1 until it bounds the curvature along the step, and restarts
    when the momentum points uphill. Stops at a gradient norm of ``gradient_tol``.
    """

    def __init__(
        self, tol: float = 1e-5, gradient_tol: float = 1e-6, max_iter: int = 20000
    ) -> None:
        self.tol = tol
        self.gradient_tol = gradient_tol
        self.max_iter = max_iter

    def solve(self, problem: Problem, penalty: Penalty, start: np.ndarray) -> Solution:
        """Minimise Φ from ``start``."""
        objective = Objective(problem, penalty)
        W = V = start
        smooth, momentum, converged = 1.0, 1.0, False
        value, gradient = objective.evaluate(V)
        for _ in range(self.max_iter):
            norm2 = float(np.vdot(gradient, gradient))
            if norm2 <= self.gradient_tol**2:
                W, converged = V, True
                break
            while smooth < 1e30:
                new = V - gradient / smooth
                new_value, new_gradient = objective.evaluate(new)
                if new_value <= value - norm2 / (2 * smooth) + 1e-15 * abs(value):
                    break
                smooth *= 2.0
            if float(np.vdot(gradient, new - W)) > 0:
                W = V = new
                momentum, value, gradient = 1.0, new_value, new_gradient
                continue
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            V = new + (momentum - 1.0) / following * (new - W)
            W, momentum = new, following
            value, gradient = objective.evaluate(V)
        value, gradient = objective.evaluate(W)
        return objective.solution(W, value, gradient, np.nan, converged)
