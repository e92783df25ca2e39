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
from functools import partial

import numpy as np

from laconic.correct.objective import Objective, Problem, Solution
from laconic.penalties import SECOND_ORDER, Penalty, check_penalty

# How far conjugate gradients reduce the residual of a Newton step, in the preconditioner's norm.
# Tenfold was fastest: coarser takes more evaluations, finer more products.
FORCING = 0.1
# Numbers in the residuals that conjugate gradients remember (they keep twice as many).
REMEMBERED = 1 << 20
# A solve is given up if its target is further than so many times what the next step promises.
HOPE = 3.0


def conjugate_gradients(
    curve: Callable[[np.ndarray], np.ndarray],
    apply: Callable[[np.ndarray], np.ndarray],
    r: np.ndarray,
    forcing: float = FORCING,
) -> tuple[np.ndarray, int]:
    """Solve curve(step) = r roughly, preconditioned; returns the step and the products it took.

    ``forcing`` says how far the residual is reduced, in the preconditioner's norm.

    Every residual is orthogonal to the ones before it in the preconditioner's inner product.
    Rounding would undo that, the more the farther a step goes, until it decides where a rough
    solve ends. So residuals are made orthogonal again, at next to no cost beside the products.
    """
    z = apply(r)
    p, rz = z, float(np.vdot(r, z))
    goal = rz * forcing**2
    step = np.zeros_like(r)
    limit = 2 * r.size + 10
    room = min(limit, REMEMBERED // r.size)
    residuals, duals = np.empty((2, room, r.size))
    for products in range(1, limit + 1):
        Hp = curve(p)
        pHp = float(np.vdot(p, Hp))
        if not pHp > 0:
            return (step if products > 1 else z), products
        a = rz / pHp
        step = step + a * p
        if products <= room:
            residuals[products - 1], duals[products - 1] = r.ravel(), z.ravel() / rz
        r = r - a * Hp
        known = slice(min(products, room))
        r -= ((duals[known] @ r.ravel()) @ residuals[known]).reshape(r.shape)
        z = apply(r)
        rz, old = float(np.vdot(r, z)), rz
        if not rz > goal:
            break
        p = z + (rz / old) * p
    return step, products


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

    needs = SECOND_ORDER
    takes_kinks = False

    def __init__(
        self, tol: float = 1e-5, gradient_tol: float | None = None, max_iter: int = 100
    ) -> None:
        self.tol = tol
        self.gradient_tol = gradient_tol
        self.max_iter = max_iter

    def solve(
        self, problem: Problem, penalty: Penalty, start: np.ndarray, target: float = np.inf
    ) -> Solution:
        """Minimise Φ from ``start``; not to the end where it can hardly come down to ``target``."""
        check_penalty(self, penalty)
        objective = Objective(problem, penalty)
        W = objective.centre(start)
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
            step, used = conjugate_gradients(partial(objective.curve, W), apply, -gradient)
            slope = float(np.vdot(gradient, step))
            decrement = -0.5 * slope
            if value - HOPE * decrement > target:
                break
            centred = objective.centred
            moved = self._search(objective, W, step, value, slope)
            if moved is None:
                objective.evaluate(W)
                break
            W, value, gradient = moved
            objective.ease(decrement, value)
            if centred != objective.centred:
                continue  # the step left out a direction in which Φ can still fall
            if self.gradient_tol is None and decrement <= self.tol * max(value, 1e-3):
                converged = True
                break
        return objective.solution(W, value, gradient, decrement, converged)

    def _close(self, gradient: np.ndarray) -> bool:
        norm = float(np.linalg.norm(gradient))
        return norm == 0 or (self.gradient_tol is not None and norm <= self.gradient_tol)

    def _search(
        self, objective: Objective, W: np.ndarray, step: np.ndarray, value: float, slope: float
    ) -> tuple[np.ndarray, float, np.ndarray] | None:
        """Halve the step until Φ falls enough; ``None`` if rounding lets it fall no more."""
        noise = objective.noise(value)
        # Where Φ is all but flat a Newton step can be absurdly long.
        t = min(1.0, 10.0 * (1.0 + np.abs(W).max()) / max(np.abs(step).max(), 1e-300))
        for _ in range(40):
            candidate = W + t * step
            new, gradient = objective.evaluate(candidate)
            if new <= value + 1e-4 * t * slope + noise:
                return candidate, new, gradient
            t *= 0.5
        return None
