"""The corrector: re-optimise all chosen columns (step 6 of ShareBoost's algorithm 1).

It minimises Φ(W) = L(W) + Ω(W) over the weights of the chosen columns, from a warm start, to a
given tolerance. It returns a certificate that bounds what is left to gain.

Notes
-----
This is Newton's method. Preconditioned conjugate gradients find its steps. A Hessian product costs
two skinny matrix products and no exponential, so a solve takes few evaluations and cheap products.
The preconditioner is the class-diagonal of the Hessian, Σ_i ρ_ic (1 − ρ_ic) x_i x_iᵀ for every
class c, between projections onto weights that sum to zero over the classes. A shift common to all
classes does not change the softmax, and so not the loss. Only the penalty has curvature in that
direction. A preconditioner that ignores this takes ten times as many products.

If the Hessian of the loss is at hand, and if the penalty is not quadratic, a step goes to the
minimum of a model with the exact penalty instead (`laconic.correct.loss_model`).
"""

from __future__ import annotations

import numpy as np

from laconic.correct.objective import Objective, Problem, Solution
from laconic.correct.steps import FoundStep, steps_of
from laconic.numeric.newton_steps import backtrack, not_too_far
from laconic.penalties import SECOND_ORDER, Penalty, check_penalty

# A solve is given up if its target is further away than this many times the predicted gain of the
# next step.
HOPE = 3.0


class Newton:
    """Newton's method with preconditioned conjugate gradients: the default corrector.

    Parameters
    ----------
    tol : float
        Stop after a step whose predicted gain, half the squared Newton decrement, is at most
        ``tol * max(Φ, 1e-3)``. Close to the optimum, what remains is of second order in this gain.
        The certificate's gap is a bound everywhere. The absolute part of the tolerance ends the
        solve on separable data, where the loss has its infimum at infinity.
    gradient_tol : float or None
        If given, stop only when the Euclidean norm of ∇Φ is at most this.
    max_iter : int
        Largest number of Newton steps.
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
        """Minimise Φ from ``start``. Give up early if Φ can hardly fall to ``target``."""
        check_penalty(self, penalty)
        objective = Objective(problem, penalty)
        W, value, gradient = objective.start(objective.centre(start))
        steps, renewed = steps_of(objective), False
        decrement, converged, used = np.inf, False, 0
        for _ in range(self.max_iter):
            if self._close(gradient):
                converged = True
                break
            # A new preconditioner costs a few products, so renew it as soon as that may pay off.
            if not renewed or used > 8 + problem.n_columns // 32:
                steps.renew(W)
                renewed = True
            step = steps.find(W, gradient)
            if step is None:
                break
            used, decrement = step.products, step.gain
            if value - HOPE * decrement > target:
                break
            centred = objective.centred
            moved = self._search(objective, W, step, value)
            if moved is None:
                objective.evaluate(W)
                break
            W, value, gradient = moved
            objective.ease(decrement, value)
            if centred != objective.centred:
                continue  # the step left out a direction in which Φ can still fall
            # A gain is below zero only if something went wrong.
            if self.gradient_tol is None and abs(decrement) <= self.tol * max(value, 1e-3):
                converged = True
                break
        return objective.solution(W, value, gradient, decrement, converged)

    def _close(self, gradient: np.ndarray) -> bool:
        norm = float(np.linalg.norm(gradient))
        return norm == 0 or (self.gradient_tol is not None and norm <= self.gradient_tol)

    def _search(
        self, objective: Objective, W: np.ndarray, step: FoundStep, value: float
    ) -> tuple[np.ndarray, float, np.ndarray] | None:
        """Halve the step until Φ falls enough; return ``None`` if it never does."""
        noise = objective.noise(value)
        t = not_too_far(W, step.move)

        def trial(t: float) -> tuple[float, float, tuple[np.ndarray, np.ndarray]]:
            candidate = W + t * step.move
            new, gradient = objective.evaluate(candidate)
            return new, t * step.slope, (candidate, gradient)

        found = backtrack(trial, t, value, noise, tries=40)
        if found is None:
            return None
        _, new, (candidate, gradient) = found
        return candidate, new, gradient
