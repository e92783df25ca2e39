"""What a corrector minimises, Φ = L + Ω, and what it returns: weights and a certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from laconic.penalties import Penalty, Solver


class Problem(Protocol):
    """Sums over rows that a corrector asks for (`laconic.rows.rows.Rows` gives them)."""

    intercept: bool
    n_columns: int
    dtype: np.dtype[Any]

    @property
    def shift_invariant(self) -> bool:
        """Whether a shift of all scores of a row leaves the loss as it is."""

    def evaluate(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Loss and gradient at ``W``."""

    def curve(self, V: np.ndarray) -> np.ndarray:
        """Hessian of the loss at the last evaluated weights, applied to ``V``."""

    def hessian_blocks(self) -> list[np.ndarray]:
        """Diagonal blocks of that Hessian, (n_outputs, w, w), that cover the columns in order."""

    def hessian(self, face: np.ndarray) -> np.ndarray | None:
        """That Hessian among the weights of ``face``, a mask, in their order; or None if large."""

    def balance(self, gradient: np.ndarray) -> tuple[float, np.ndarray]:
        """The mixing weight and class distribution that cancel the intercept's gradient."""

    def constant(self, sigma: np.ndarray) -> tuple[float, np.ndarray]:
        """Dual value and gradient of giving every row the distribution ``sigma``."""


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


class Corrector(Solver, Protocol):
    """Minimises Φ = L + Ω over the weights of the columns in."""

    tol: float

    def solve(
        self, problem: Problem, penalty: Penalty, start: np.ndarray, target: float = np.inf
    ) -> Solution:
        """Minimise Φ from ``start``; the problem's last evaluation is at the answer.

        A penalty that it cannot minimise with is refused first (`laconic.penalties.check_penalty`).
        Where Φ can hardly come down to ``target``, the answer may be short of the best.
        """


class Objective:
    """Φ = L + Ω for one problem, the intercept's row left out of Ω; counts its work."""

    def __init__(self, problem: Problem, penalty: Penalty) -> None:
        self.problem = problem
        self.penalty = penalty
        self.free = int(problem.intercept)
        self.centred = False
        self.damp = 1.0
        self.evaluations = 0
        self.products = 0

    def evaluate(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Φ(W) and ∇Φ(W)."""
        self.evaluations += 1
        self.loss, gradient = self.problem.evaluate(W)
        self.loss_gradient = self._unshifted(gradient)
        gradient = self.loss_gradient.copy()
        pull = self.penalty.gradient(W[self.free :])
        gradient[self.free :] += pull
        self.centred = self.centred and self._is_centred(pull)
        return self.loss + self.penalty.value(W[self.free :]), gradient

    def curve(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """∇²Φ(W), damped, applied to ``V``; ``W`` must be the last evaluated point."""
        self.products += 1
        out = self._unshifted(self.problem.curve(V))
        held, moved = W[self.free :], V[self.free :]
        damping = self.damp * self.penalty.damping(held)
        out[self.free :] += self.penalty.curve(held, moved) + damping * moved
        return out

    def hessian(self, face: np.ndarray) -> np.ndarray:
        """∇²L at the last evaluated point among the weights of ``face``, a mask, by products."""
        units = np.eye(face.size)[face.ravel()].reshape(-1, *face.shape)
        self.products += len(units)
        return np.array([self.problem.curve(unit)[face] for unit in units], dtype=np.float64)

    def noise(self, value: float) -> float:
        """The rounding of Φ at a value: smaller differences say nothing about a step."""
        return 4.0 * float(np.finfo(self.problem.dtype).eps) * abs(value)

    def ease(self, decrement: float, value: float) -> None:
        """Damp less as the end comes near, which keeps its convergence fast."""
        self.damp = min(1.0, 1e3 * max(decrement, 0.0) / max(value, 1e-3))

    def centre(self, W: np.ndarray) -> np.ndarray:
        """W with the mean over the outputs taken off every row, if the penalty is centred."""
        self.centred = self.problem.shift_invariant and getattr(self.penalty, "centred", False)
        return W - W.mean(axis=1, keepdims=True) if self.centred else W

    def _is_centred(self, pull: np.ndarray) -> bool:
        """Whether the row means of ∇Ω at centred weights are zero, as a centred penalty promises.

        What is below the root of the rounding counts as zero: Φ would gain its square only.
        """
        shift = np.linalg.norm(pull.mean(axis=1)) * np.sqrt(pull.shape[1])
        return bool(shift <= np.sqrt(np.finfo(self.problem.dtype).eps) * np.linalg.norm(pull))

    def _unshifted(self, sums: np.ndarray) -> np.ndarray:
        """Gradients or Hessian products of the loss, without their row means.

        A shift-invariant loss has no gradient in the direction of a shift. Rounding adds a little.
        Conjugate gradients would amplify it step by step, so it is removed here.
        """
        if not self.problem.shift_invariant:
            return sums
        return sums - sums.mean(axis=1, keepdims=True)

    def class_inverses(
        self, W: np.ndarray, inside: np.ndarray | None = None
    ) -> list[tuple[slice | np.ndarray, np.ndarray]]:
        """Inverse of the class-diagonal of ∇²Φ(W), for the columns of each of its blocks.

        With ``inside``, a mask, of those columns only.
        """
        bend = np.zeros_like(W)
        bend[self.free :] = self._penalty_curvature(W)
        out: list[tuple[slice | np.ndarray, np.ndarray]] = []
        first = 0
        for block in self.problem.hessian_blocks():
            columns: slice | np.ndarray = slice(first, first + block.shape[1])
            first += block.shape[1]
            if inside is not None:
                own = np.flatnonzero(inside[columns])
                columns = first - block.shape[1] + own
                block = block[:, own[:, None], own]
            diagonal = np.einsum("cii->ci", block)
            diagonal += bend[columns].T
            # With unit diagonals, columns in different units are alike. Gram matrices of nearly
            # collinear columns can lose definiteness to rounding.
            unit = 1.0 / np.sqrt(np.maximum(diagonal, np.finfo(np.float32).tiny))
            block *= unit[:, :, None] * unit[:, None, :]
            diagonal += 1e-6
            inverse = np.linalg.inv(block) * (unit[:, :, None] * unit[:, None, :])
            out.append((columns, inverse))
        return out

    def preconditioner(self, W: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Apply an approximate inverse of ∇²Φ(W)."""
        inverses = self.class_inverses(W)
        bend = self._penalty_curvature(W).mean(axis=1)
        # Where the penalty bends less than the loss's rounding, a pull in the direction of a shift
        # is rounding too, and would lead far astray.
        sizes = [1.0 / np.einsum("cii->ic", inverse).mean(axis=1) for _, inverse in inverses]
        least = np.finfo(self.problem.dtype).eps * np.concatenate(sizes)[self.free :]
        shift = np.zeros(len(W))
        bends = bend > np.maximum(least, 0.0)
        shift[self.free :] = np.divide(1.0, bend, where=bends, out=np.zeros_like(bend))

        def solve(r: np.ndarray) -> np.ndarray:
            parts = [np.matmul(inverse, r[c].T[:, :, None])[:, :, 0].T for c, inverse in inverses]
            return parts[0] if len(parts) == 1 else np.vstack(parts)

        def apply(r: np.ndarray) -> np.ndarray:
            if not self.problem.shift_invariant:
                return solve(r)
            mean = r.mean(axis=1, keepdims=True)
            z = solve(r - mean)
            z -= z.mean(axis=1, keepdims=True)
            return z if self.centred else z + shift[:, None] * mean

        return apply

    def dropping(
        self, W: np.ndarray, atoms: list[np.ndarray], inside: np.ndarray | None = None
    ) -> Iterator[tuple[float, np.ndarray]]:
        """For the columns J of every atom: what dropping them costs, and where the others go.

        By the quadratic model of Φ whose Hessian is its class-diagonal (estimated from some of the
        rows where they are many), with inverse A_c for class c: dropping the columns J raises Φ by
        ½ Σ_c w_Jcᵀ (A_c)_JJ⁻¹ w_Jc once the others have moved by −(A_c)_:J (A_c)_JJ⁻¹ w_Jc.
        """
        return self._dropping(W, atoms, self.class_inverses(W, inside))

    @staticmethod
    def _dropping(
        W: np.ndarray, atoms: list[np.ndarray], blocks: list[tuple[slice | np.ndarray, np.ndarray]]
    ) -> Iterator[tuple[float, np.ndarray]]:
        every = np.arange(len(W))
        inverses = [(every[columns], A) for columns, A in blocks if A.size]
        for J in atoms:
            columns, inverse = next(pair for pair in inverses if J[-1] <= pair[0][-1])
            own = np.searchsorted(columns, J)
            pull = np.linalg.solve(inverse[:, own[:, None], own], W[J].T[:, :, None])
            moved = W.copy()
            moved[columns] -= np.matmul(inverse[:, :, own], pull)[:, :, 0].T
            moved[J] = 0.0
            yield 0.5 * float(np.sum(W[J].T * pull[:, :, 0])), moved

    def costs_of_dropping(
        self, W: np.ndarray, atoms: list[np.ndarray], inside: np.ndarray | None = None
    ) -> np.ndarray:
        """What dropping the columns of every atom costs; see `dropping`."""
        blocks = self.class_inverses(W, inside)
        if len(blocks) != 1 or any(len(J) != 1 for J in atoms):
            return np.array([rise for rise, _ in self._dropping(W, atoms, blocks)])
        [(columns, inverse)] = blocks
        J = np.concatenate([np.empty(0, dtype=np.int64), *atoms])
        own = np.searchsorted(np.arange(len(W))[columns], J)
        bend = np.einsum("cii->ic", inverse)[own]
        return 0.5 * np.sum(W[J] ** 2 / bend, axis=1)

    def _penalty_curvature(self, W: np.ndarray) -> np.ndarray:
        held = W[self.free :]
        return self.penalty.curvature(held) + self.damp * self.penalty.damping(held)

    def solution(
        self,
        W: np.ndarray,
        value: float,
        gradient: np.ndarray,
        decrement: float,
        converged: bool,
        inside: np.ndarray | None = None,
    ) -> Solution:
        """The answer at ``W``, which must be the last evaluated point.

        With ``inside``, a mask, for the problem of those columns only.
        """
        certificate = Certificate(
            duality_gap(self, W, value, gradient, inside),
            float(decrement),
            float(np.linalg.norm(gradient)),
            self.evaluations,
            self.products,
            converged,
        )
        return Solution(W, self.loss, value, self.loss_gradient, certificate)


def duality_gap(
    objective: Objective,
    W: np.ndarray,
    value: float,
    gradient: np.ndarray,
    inside: np.ndarray | None = None,
) -> float:
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
    ‖W‖_{∞,1}. With ``inside`` only those columns count, and W must be zero elsewhere.

    For a loss of the margin the same holds of its dual weights u_i, eq. (5) of TotalQBoost.
    """
    problem, penalty, free = objective.problem, objective.penalty, objective.free
    G = objective.loss_gradient
    dual = objective.loss - float(np.vdot(G, W))
    if free:
        t, sigma = problem.balance(G[0])
        if t > 0:
            value_of, gradient_of = problem.constant(sigma)
            G = (1.0 - t) * G + t * gradient_of
            dual = (1.0 - t) * dual + t * value_of
    if inside is not None:
        G, W, gradient = G[inside], W[inside], gradient[inside]
    shrink = penalty.shrink(G[free:])
    bound = shrink * dual - penalty.conjugate(-shrink * G[free:])
    gap = value - max(bound, 0.0)
    if penalty.alpha == 0:
        norms = np.abs(gradient).sum(axis=1)
        size = float(np.abs(W).max(axis=1, initial=0.0).sum())
        first_order = float(np.vdot(gradient, W)) + 2.0 * size * float(norms.max(initial=0.0))
        gap = min(gap, first_order)
    return max(gap, 0.0)
