"""The objective of a corrector, Φ = L + Ω, and its result: weights and a certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from laconic.numeric.threads import Threads
from laconic.penalties import Penalty, Solver

# Above this value Φ is compared with that of zero weights before a solve. No loss of zero scores
# comes near it.
SATURATED = 100.0
# Matrices of this size or more are inverted on several threads.
PARALLEL = 64


class Problem(Protocol):
    """The sums over rows that a corrector needs. `laconic.rows.rows.Rows` computes them."""

    intercept: bool
    n_columns: int
    dtype: np.dtype[Any]
    threads: Threads

    @property
    def shift_invariant(self) -> bool:
        """Whether the loss stays the same if all scores of a row are shifted by one number."""

    def evaluate(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Return loss and gradient at ``W``."""

    def evaluate_all(self, points: Sequence[np.ndarray]) -> list[tuple[float, np.ndarray]]:
        """Return loss and gradient at several points. The last one counts as evaluated last."""

    def curve(self, V: np.ndarray) -> np.ndarray:
        """Return the Hessian of the loss, at the last evaluated weights, times ``V``."""

    def hessian_blocks(self) -> list[np.ndarray]:
        """Return diagonal blocks (n_outputs, w, w) of that Hessian, which cover all columns."""

    def hessian(self, face: np.ndarray) -> np.ndarray | None:
        """Return that Hessian among the weights in the mask ``face``, or None if it is large."""

    def balance(self, gradient: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mixing weight and class distribution that cancel the intercept's gradient."""

    def constant(self, sigma: np.ndarray) -> tuple[float, np.ndarray]:
        """Return dual value and gradient if every row has the distribution ``sigma``."""


class Certificate(NamedTuple):
    """How far from the optimum a corrected model can be."""

    gap: float
    """Proven bound on Φ(W) − min Φ. Without a penalty it bounds Φ(W) − Φ(V) for every V of at most
    twice the norm ‖W‖_{∞,1}, because such sums give no bound on the infimum itself."""
    decrement: float
    """Predicted gain of the last step. That is half its squared Newton decrement, or the fall of
    the model with the exact penalty (`laconic.correct.loss_model`)."""
    gradient: float
    """Euclidean norm of ∇Φ(W)."""
    evaluations: int
    """Number of evaluations of the loss and its gradient."""
    products: int
    """Number of Hessian products."""
    converged: bool
    """Whether the tolerance was met."""


class Solution(NamedTuple):
    """Result of a corrector."""

    weights: np.ndarray
    """Weights (n_columns, n_outputs) in scaled units. The intercept, if any, is the first row."""
    loss: float
    """L at the weights."""
    value: float
    """Φ at the weights."""
    loss_gradient: np.ndarray
    """∇L at the weights."""
    certificate: Certificate


class Corrector(Solver, Protocol):
    """A solver that minimises Φ = L + Ω over the weights of the chosen columns."""

    tol: float

    def solve(
        self, problem: Problem, penalty: Penalty, start: np.ndarray, target: float = np.inf
    ) -> Solution:
        """Minimise Φ from ``start``. The problem's last evaluation must be at the result.

        First refuse a penalty that this solver cannot handle (`laconic.penalties.check_penalty`).
        If Φ can hardly fall to ``target``, the solver may stop early.
        """


class Objective:
    """Φ = L + Ω for one problem, with counts of evaluations and products.

    The intercept's row is left out of Ω.
    """

    def __init__(self, problem: Problem, penalty: Penalty) -> None:
        self.problem = problem
        self.penalty = penalty
        self.free = int(problem.intercept)
        self.centred = False
        self.damp = 1.0
        self.evaluations = 0
        self.products = 0

    def evaluate(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Return Φ(W) and ∇Φ(W)."""
        self.evaluations += 1
        self.loss, gradient = self.problem.evaluate(W)
        self.loss_gradient = self._unshifted(gradient)
        gradient = self.loss_gradient.copy()
        pull = self.penalty.gradient(W[self.free :])
        gradient[self.free :] += pull
        self.centred = self.centred and self._is_centred(pull)
        return self.loss + self.penalty.value(W[self.free :]), gradient

    def start(self, W: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """Return where to start, with Φ and ∇Φ there: at ``W``, or at zero if Φ is lower there.

        Large weights fit each other. If a column among them is dropped, an exponential loss of the
        others can be 1e33, and steps from there gain only rounding errors.
        """
        value, gradient = self.evaluate(W)
        if value > SATURATED:
            zero = np.zeros_like(W)
            at_zero = self.evaluate(zero)
            if at_zero[0] < value:
                return zero, *at_zero
            value, gradient = self.evaluate(W)
        return W, value, gradient

    def curve(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return the damped ∇²Φ(W) times ``V``. ``W`` must be the last evaluated point."""
        self.products += 1
        out = self._unshifted(self.problem.curve(V))
        held, moved = W[self.free :], V[self.free :]
        damping = self.damp * self.penalty.damping(held)
        out[self.free :] += self.penalty.curve(held, moved) + damping * moved
        return out

    def hessian(self, face: np.ndarray) -> np.ndarray:
        """Return ∇²L at the last evaluated point among the weights in the mask ``face``.

        It is computed from products.
        """
        units = np.eye(face.size)[face.ravel()].reshape(-1, *face.shape)
        self.products += len(units)
        return np.array([self.problem.curve(unit)[face] for unit in units], dtype=np.float64)

    def noise(self, value: float) -> float:
        """Return the rounding error of Φ. Smaller differences say nothing about a step."""
        return 4.0 * float(np.finfo(self.problem.dtype).eps) * abs(value)

    def ease(self, decrement: float, value: float) -> None:
        """Damp less near the optimum, so that convergence there stays fast."""
        self.damp = min(1.0, 1e3 * max(decrement, 0.0) / max(value, 1e-3))

    def centre(self, W: np.ndarray) -> np.ndarray:
        """Subtract from every row of W its mean over the outputs, if the penalty is centred.

        Weights that are centred up to rounding stay as they are. The problem may know the loss at
        the weights where the last solve ended.
        """
        self.centred = self.problem.shift_invariant and getattr(self.penalty, "centred", False)
        if not self.centred:
            return W
        means = W.mean(axis=1, keepdims=True)
        rounding = 8.0 * np.finfo(W.dtype).eps * np.abs(W).max(axis=1, keepdims=True, initial=0.0)
        return W if (np.abs(means) <= rounding).all() else W - means

    def _is_centred(self, pull: np.ndarray) -> bool:
        """Return whether the row means of ∇Ω are zero, as they must be for a centred penalty.

        The weights must be centred. Means below the square root of the rounding error count as
        zero, because Φ could gain only their square.
        """
        shift = np.linalg.norm(pull.mean(axis=1)) * np.sqrt(pull.shape[1])
        return bool(shift <= np.sqrt(np.finfo(self.problem.dtype).eps) * np.linalg.norm(pull))

    def _unshifted(self, sums: np.ndarray) -> np.ndarray:
        """Remove the row means from gradients or Hessian products of a shift-invariant loss.

        Such a loss has no gradient in the direction of a shift, but rounding adds a little.
        Conjugate gradients would amplify it step by step, so it is removed here.
        """
        if not self.problem.shift_invariant:
            return sums
        return sums - sums.mean(axis=1, keepdims=True)

    def class_inverses(
        self, W: np.ndarray, inside: np.ndarray | None = None
    ) -> list[tuple[slice | np.ndarray, np.ndarray]]:
        """Return the inverse of the class-diagonal of ∇²Φ(W), for the columns of each block.

        With ``inside``, use only the columns in that mask.
        """
        bend = np.zeros_like(W)
        bend[self.free :] = self.penalty_curvature(W)
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
            # Scale to unit diagonals, so that the units of columns do not matter. Then add a little
            # to the diagonal, because rounding can make Gram matrices of nearly collinear columns
            # indefinite. A column of zeros has no curvature, and keeps its unit.
            unit = 1.0 / np.sqrt(np.maximum(diagonal, np.finfo(np.float32).tiny))
            unit[diagonal == 0.0] = 1.0
            block *= unit[:, :, None] * unit[:, None, :]
            diagonal += 1e-6
            inverse = self._inverses(block) * (unit[:, :, None] * unit[:, None, :])
            out.append((columns, inverse))
        return out

    def _inverses(self, matrices: np.ndarray) -> np.ndarray:
        """Return the inverse of each matrix. Several large ones are inverted at a time."""
        if matrices.shape[1] < PARALLEL:
            return np.linalg.inv(matrices)
        return np.array(list(self.problem.threads.map(np.linalg.inv, matrices)))

    def preconditioner(self, W: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function that applies an approximate inverse of ∇²Φ(W)."""
        inverses = self.class_inverses(W)
        bend = self.penalty_curvature(W).mean(axis=1)
        # If the penalty's curvature is below the rounding error of the loss, a pull in the
        # direction of a shift is rounding error too, and a step along it would be far too long.
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
        """Yield, for the columns J of every atom, the cost of dropping them and the new weights.

        Both come from a quadratic model of Φ. Its Hessian is the class-diagonal, estimated from
        some of the rows if there are many, with inverse A_c for class c. Dropping the columns J
        raises Φ by ½ Σ_c w_Jcᵀ (A_c)_JJ⁻¹ w_Jc after the other weights have moved by
        −(A_c)_:J (A_c)_JJ⁻¹ w_Jc.
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
        """Return the cost of dropping the columns of each atom; see `dropping`."""
        blocks = self.class_inverses(W, inside)
        if len(blocks) != 1 or any(len(J) != 1 for J in atoms):
            return np.array([rise for rise, _ in self._dropping(W, atoms, blocks)])
        [(columns, inverse)] = blocks
        J = np.concatenate([np.empty(0, dtype=np.int64), *atoms])
        own = np.searchsorted(np.arange(len(W))[columns], J)
        bend = np.einsum("cii->ic", inverse)[own]
        return 0.5 * np.sum(W[J] ** 2 / bend, axis=1)

    def penalty_curvature(self, W: np.ndarray) -> np.ndarray:
        """Return the diagonal of the damped ∇²Ω(W), without the intercept's row."""
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
        """Return the solution at ``W``, which must be the last evaluated point.

        With ``inside``, the certificate is for the problem of only the columns in that mask.
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
    """Return a proven bound on Φ(W) − min Φ, using only sums over rows.

    Any distributions ρ_i over the classes give the Fenchel lower bound

        min Φ ≥ Σ_i weight_i (margin (1 − ρ_{i,y_i}) + entropy(ρ_i)) − Ω*(−G),
        G = Σ_i weight_i x_i (ρ_i − e_{y_i})ᵀ,

    provided the intercept's row of G is zero and −G is in the domain of Ω*. At the model's own ρ,
    eq. (6), the first sum is L(W) − ⟨∇L(W), W⟩ and G = ∇L(W). Two mixtures then meet the two
    conditions. The entropy is concave, so the bound holds for mixtures. Mixing in a little of one
    distribution σ, common to all rows, makes the intercept's row zero. Mixing in a little of the
    true classes e_y, whose value and G are zero, shrinks G into the domain.

    Without a penalty the only such bound is 0. The result is then the smaller of Φ(W) and the bound
    of Lemma 3 against every competitor of at most twice the model's own ‖W‖_{∞,1}. With ``inside``
    only the columns in that mask count, and W must be zero elsewhere.

    For a loss of the margin, the same holds with its dual weights u_i, eq. (5) of TotalQBoost.
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
