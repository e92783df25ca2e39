"""Minimise a quadratic model of the loss plus the exact penalty, to find a step of `Newton`.

Notes
-----
The rows are needed only for the loss L. The penalty Ω is known here. So if the Hessian H of L is
here too, nothing forces the penalty into a quadratic model. Let G be ∇L(W). The model is

    m(d) = ⟨G, d⟩ + ½ ⟨d, H d⟩ + Ω(W + d) − Ω(W).

It is convex, m(0) = 0, and its slopes at d = 0 are those of Φ = L + Ω. Any d with m(d) < 0 leads
down. To see this, let Δ = ⟨G, d⟩ + Ω(W + d) − Ω(W) = m(d) − ½ ⟨d, H d⟩ ≤ m(d) < 0. As Ω is convex,

    Φ(W + t d) − Φ(W) ≤ t Δ + O(t²)    for 0 < t ≤ 1,

so Φ falls by any given part of t |Δ| if t is small enough. This is Armijo's rule. Near the optimum,
t = 1 serves, and the distance to the optimum is squared in each step, as in Newton's method (Lee,
Sun and Saunders, Proximal Newton-type methods for minimizing composite functions, 2014). H may be
an estimate: then the distance shrinks by a factor in each step.

A quadratic model of Φ serves only where the curvature of Ω hardly changes. That of a smooth l1 norm
is large within 1/β of zero and vanishes beyond. So a weight that crosses zero takes several steps,
and each of them needs all rows. Here, those steps need no rows.

The model is minimised by Newton's method again. Conjugate gradients find its steps. The
preconditioner is the inverse of H plus the diagonal of ∇²Ω. It is exact if ∇²Ω is diagonal, and
then one product is enough.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from laconic.correct.conjugate import conjugate_gradients
from laconic.correct.objective import Objective
from laconic.numeric.newton_steps import backtrack, not_too_far

# The model counts as minimised if the next step gains at most this part of the gain so far.
ENOUGH = 1e-3
# Largest number of steps within one model.
STEPS = 100
# Added to the scaled diagonal of a matrix until it is positive definite.
RIDGES = 10.0 ** np.arange(-12, 7, 2)


class LossModel:
    """The model at the last evaluated weights of an objective.

    Parameters
    ----------
    objective : Objective
    W : ndarray of shape (n_columns, n_outputs)
        The last evaluated weights.
    hessian : ndarray of shape (W.size, W.size)
        H, in the order of ``W.ravel()``.
    """

    def __init__(self, objective: Objective, W: np.ndarray, hessian: np.ndarray) -> None:
        self._objective, self._W = objective, W
        self._shifts = objective.problem.shift_invariant
        self._H = self._unshifted(hessian)
        self._start = self._penalty(W)

    def least(self) -> np.ndarray | None:
        """Return the step ``d`` near the minimum of the model, or None if rounding hides it."""
        objective, d = self._objective, np.zeros_like(self._W)
        slopes, gained = objective.loss_gradient, 0.0
        noise = 4.0 * float(np.finfo(np.float64).eps) * (1.0 + abs(self._start))
        damp = 1.0
        for _ in range(STEPS):
            move = self._newton_step(self._W + d, slopes, damp)
            bent = self._curve(move)
            moved = self._search(d, move, slopes, bent, noise)
            if moved is None:
                return d if d.any() else None
            t, fall = moved
            d = d + t * move
            slopes = slopes + t * bent
            gained += fall
            if t == 1.0 and damp < 1.0 and fall <= ENOUGH * gained + noise:
                break
            # If a step gains little, the damping may be why.
            damp = min(1.0, max(fall, 0.0) / max(gained, noise))
        return d

    def change(self, d: np.ndarray) -> tuple[float, float]:
        """Return m(d) and Δ, the bound on the first-order change of Φ."""
        first = float(np.vdot(self._objective.loss_gradient, d))
        first += self._penalty(self._W + d) - self._start
        return first + 0.5 * float(np.vdot(d, self._curve(d))), first

    def _penalty(self, W: np.ndarray) -> float:
        return self._objective.penalty.value(W[self._objective.free :])

    def _curve(self, V: np.ndarray) -> np.ndarray:
        out: np.ndarray = (self._H @ V.ravel()).reshape(V.shape)
        return out

    def _unshifted(self, hessian: np.ndarray) -> np.ndarray:
        """Return a Hessian without what rounding adds to it in the direction of a shift."""
        if not self._shifts:
            return hessian
        n, k = self._W.shape
        blocks = hessian.reshape(n, k, n, k).astype(np.float64)
        blocks -= blocks.mean(axis=1, keepdims=True)
        blocks -= blocks.mean(axis=3, keepdims=True)
        return blocks.reshape(n * k, n * k)

    def _newton_step(self, at: np.ndarray, slopes: np.ndarray, damp: float) -> np.ndarray:
        """Return a Newton step of the model. ``slopes`` are those of its quadratic part."""
        objective, free = self._objective, self._objective.free
        held = at[free:]
        damping = damp * objective.penalty.damping(held)
        bend = np.zeros_like(at)
        bend[free:] = objective.penalty.curvature(held) + damping
        downhill = -slopes
        downhill[free:] -= objective.penalty.gradient(held)

        def curve(V: np.ndarray) -> np.ndarray:
            out = self._curve(V)
            out[free:] += objective.penalty.curve(held, V[free:]) + damping * V[free:]
            return out

        return conjugate_gradients(curve, self._preconditioner(bend), downhill)[0]

    def _preconditioner(self, bend: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function that applies the inverse of H + diag(bend).

        If nothing bends when all weights of a column shift, nothing pulls there but rounding. Then
        steps leave out this direction.
        """
        n, k = bend.shape
        K = self._H.copy()
        K.ravel()[:: n * k + 1] += bend.ravel()
        held = np.zeros(n, dtype=bool)
        if self._shifts:
            sizes = np.diagonal(K).reshape(n, k).mean(axis=1)
            least = np.finfo(self._objective.problem.dtype).eps * sizes
            held = (bend.mean(axis=1) <= least) | self._objective.centred
            K.reshape(n, k, n, k)[held, :, held, :] += sizes[held, None, None] / k
        unit, factor = _cholesky(K)

        def without_shifts(r: np.ndarray) -> np.ndarray:
            return np.where(held[:, None], r - r.mean(axis=1, keepdims=True), r)

        def apply(r: np.ndarray) -> np.ndarray:
            found, _ = dpotrs(factor, unit * without_shifts(r).ravel())
            return without_shifts((unit * found).reshape(r.shape))

        return apply

    def _search(
        self, d: np.ndarray, move: np.ndarray, slopes: np.ndarray, bent: np.ndarray, noise: float
    ) -> tuple[float, float] | None:
        """Return the part of a move that lowers the model enough, and how far it falls."""
        at = self._W + d
        linear, quadratic = float(np.vdot(slopes, move)), 0.5 * float(np.vdot(move, bent))
        free, here = self._objective.free, self._penalty(at)
        pull = float(np.vdot(self._objective.penalty.gradient(at[free:]), move[free:]))

        def trial(t: float) -> tuple[float, float, None]:
            change = t * linear + t * t * quadratic + self._penalty(at + t * move) - here
            return change, t * (linear + pull), None

        found = backtrack(trial, not_too_far(at, move), 0.0, noise)
        return None if found is None else (found[0], -found[1])


def _cholesky(K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return units of the weights, and the Cholesky factor of a matrix in these units.

    Units make all diagonals one, so that the units of columns do not matter.
    """
    diagonal = np.diagonal(K)
    unit = 1.0 / np.sqrt(np.maximum(diagonal, np.finfo(np.float32).tiny))
    unit[diagonal <= 0.0] = 1.0
    K = K * unit[:, None] * unit
    for ridge in RIDGES:
        K.ravel()[:: len(K) + 1] += ridge
        factor, failed = dpotrf(K)
        if not failed:
            break
    return unit, factor
