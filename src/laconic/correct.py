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
from typing import Any, NamedTuple, Protocol

import numpy as np

from laconic.penalties import Penalty

# How far conjugate gradients reduce the residual of a Newton step, in the preconditioner's norm.
# Tenfold was fastest: coarser takes more evaluations, finer more products.
FORCING = 0.1


class Problem(Protocol):
    """Sums over rows that a corrector asks for (`laconic.boost.rows.Rows` gives them)."""

    intercept: bool
    n_columns: int
    dtype: np.dtype[Any]

    @property
    def shift_invariant(self) -> bool:
        """Whether a shift of all scores of a row leaves the loss as it is."""

    @property
    def class_sums(self) -> np.ndarray:
        """Σ_i weight_i x_i e_{y_i}ᵀ of the columns in."""

    def evaluate(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Loss and gradient at ``W``."""

    def curve(self, V: np.ndarray) -> np.ndarray:
        """Hessian of the loss at the last evaluated weights, applied to ``V``."""

    def class_hessians(self) -> np.ndarray:
        """Diagonal blocks of that Hessian, one per output."""

    def constant_value(self, sigma: np.ndarray) -> float:
        """Dual value of giving every row the distribution ``sigma``."""


class Certificate(NamedTuple):
    """How far from the optimum a corrected model can be."""

    gap: float
    """Proven bound on Φ(W) − min Φ. Without a penalty: on Φ(W) − Φ(V) for every V of at most twice
    the norm ‖W‖_{∞,1}, since no bound on the infimum itself can be had from sums like these."""
    decrement: float
    """Predicted gain of the last step, half its squared Newton decrement."""
    gradient: float
    """Euclidean norm of ∇Φ(W)."""
    evaluations: int
    """Evaluations of the loss and its gradient."""
    products: int
    """Hessian products."""
    converged: bool
    """Whether the tolerance was met."""


class Solution(NamedTuple):
    """What a corrector returns."""

    weights: np.ndarray
    """(n_columns, n_outputs) in scaled units, the intercept first where there is one."""
    loss: float
    """L at the weights."""
    value: float
    """Φ at the weights."""
    loss_gradient: np.ndarray
    """∇L at the weights."""
    certificate: Certificate


class Corrector(Protocol):
    """Minimises Φ = L + Ω over the weights of the columns in."""

    tol: float

    def solve(self, problem: Problem, penalty: Penalty, start: np.ndarray) -> Solution:
        """Minimise Φ from ``start``; the problem's last evaluation is at the answer."""


class Objective:
    """Φ = L + Ω for one problem, the intercept's row left out of Ω; counts its work."""

    def __init__(self, problem: Problem, penalty: Penalty) -> None:
        self.problem = problem
        self.penalty = penalty
        self.free = int(problem.intercept)
        self.damp = 1.0
        self.evaluations = 0
        self.products = 0

    def evaluate(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Φ(W) and ∇Φ(W)."""
        self.evaluations += 1
        self.loss, self.loss_gradient = self.problem.evaluate(W)
        gradient = self.loss_gradient.copy()
        gradient[self.free :] += self.penalty.gradient(W[self.free :])
        return self.loss + self.penalty.value(W[self.free :]), gradient

    def curve(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """∇²Φ(W), damped, applied to ``V``; ``W`` must be the last evaluated point."""
        self.products += 1
        out = self.problem.curve(V)
        held, moved = W[self.free :], V[self.free :]
        damping = self.damp * self.penalty.damping(held)
        out[self.free :] += self.penalty.curve(held, moved) + damping * moved
        return out

    def class_inverses(self, W: np.ndarray) -> np.ndarray:
        """Inverse of the class-diagonal of ∇²Φ(W), (n_outputs, n_columns, n_columns)."""
        blocks = self.problem.class_hessians()
        diagonal = np.einsum("cii->ci", blocks)
        diagonal[:, self.free :] += self._penalty_curvature(W).T
        # Gram matrices of nearly collinear columns can lose definiteness to rounding.
        diagonal += 1e-6 * diagonal.mean(axis=1, keepdims=True) + np.finfo(np.float32).tiny
        out: np.ndarray = np.linalg.inv(blocks)
        return out

    def preconditioner(self, W: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Apply an approximate inverse of ∇²Φ(W)."""
        inverse = self.class_inverses(W)
        bend = self._penalty_curvature(W).mean(axis=1)
        shift = np.zeros(len(W))
        shift[self.free :] = np.divide(1.0, bend, where=bend > 0, out=np.zeros_like(bend))

        def apply(r: np.ndarray) -> np.ndarray:
            if not self.problem.shift_invariant:
                return np.matmul(inverse, r.T[:, :, None])[:, :, 0].T
            mean = r.mean(axis=1, keepdims=True)
            z = np.matmul(inverse, (r - mean).T[:, :, None])[:, :, 0].T
            return z - z.mean(axis=1, keepdims=True) + shift[:, None] * mean

        return apply

    def _penalty_curvature(self, W: np.ndarray) -> np.ndarray:
        held = W[self.free :]
        return self.penalty.curvature(held) + self.damp * self.penalty.damping(held)

    def solution(
        self, W: np.ndarray, value: float, gradient: np.ndarray, decrement: float, converged: bool
    ) -> Solution:
        """The answer at ``W``, which must be the last evaluated point."""
        certificate = Certificate(
            duality_gap(self, W, value, gradient),
            float(decrement),
            float(np.linalg.norm(gradient)),
            self.evaluations,
            self.products,
            converged,
        )
        return Solution(W, self.loss, value, self.loss_gradient, certificate)


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


def duality_gap(objective: Objective, W: np.ndarray, value: float, gradient: np.ndarray) -> float:
    """Proven bound on Φ(W) − min Φ, from sums over rows alone.

    Any distributions ρ_i over the classes give the Fenchel lower bound

        min Φ ≥ Σ_i weight_i (margin (1 − ρ_{i,y_i}) + entropy(ρ_i)) − Ω*(−G),
        G = Σ_i weight_i x_i (ρ_i − e_{y_i})ᵀ,

    provided the intercept's row of G is zero and −G lies in the domain of Ω*. At the model's own ρ,
    eq. (6), the first sum is L(W) − ⟨∇L(W), W⟩ and G = ∇L(W). Mixing in, by concavity of the
    entropy, a little of one distribution σ common to all rows makes the intercept's row zero;
    mixing in a little of the true classes e_y, whose value and G are zero, shrinks G into the
    domain. Without a penalty there is no such bound but 0; then the answer is the smaller of
    Φ(W) and the bound of Lemma 3 against every competitor of at most twice the model's own
    ‖W‖_{∞,1}.
    """
    problem, penalty, free = objective.problem, objective.penalty, objective.free
    G = objective.loss_gradient
    dual = objective.loss - float(np.vdot(G, W))
    if free:
        share, excess = problem.class_sums[0], G[0]
        need = float((excess / share).max())
        if need > 1e-14:  # below, the row is zero up to rounding
            t = need / (1.0 + need)
            sigma = np.maximum(share - (1.0 - t) / t * excess, 0.0)
            sigma /= sigma.sum()
            mean = problem.class_sums.sum(axis=1, keepdims=True)
            G = (1.0 - t) * G + t * (mean * sigma - problem.class_sums)
            dual = (1.0 - t) * dual + t * problem.constant_value(sigma)
    shrink = penalty.shrink(G[free:])
    bound = shrink * dual - penalty.conjugate(-shrink * G[free:])
    gap = value - max(bound, 0.0)
    if penalty.alpha == 0:
        norms = np.abs(gradient).sum(axis=1)
        size = float(np.abs(W).max(axis=1, initial=0.0).sum())
        first_order = float(np.vdot(gradient, W)) + 2.0 * size * float(norms.max(initial=0.0))
        gap = min(gap, first_order)
    return max(gap, 0.0)
