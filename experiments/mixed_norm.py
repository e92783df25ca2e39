"""Mixed-norm regularisation, the convex rival of ShareBoost: its whole path, on any pool.

It solves, for a falling sequence of λ,

    min_{W, b} L(W, b) + λ ‖W‖,

with the losses of Laconic and one of three norms of W. The columns of W, one for each atom, are the
rows of the arrays here. The norms are ‖W‖_{∞,1}, eq. (5) of ShareBoost (Duchi, Singer 2009),
‖W‖_{2,1}, the group lasso, and the entrywise ‖W‖_{1,1}. The intercept b is not penalised.

The solver is FISTA (Beck, Teboulle 2009) with adaptive restarts (O'Donoghue, Candès 2015) on a
working set of atoms. The pool's gradients then show which atoms outside violate the optimality
condition ‖∇_r L‖_* ≤ λ in the dual norm, and the worst of them are added. So the result is exact
even for pools that are too large for an explicit matrix (190,036 products). A point is done when
its duality gap is at most ``tol`` times its value. The gap bounds the distance from the optimum
over the *whole* pool.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from linear import Linear, linear, make_rows

from laconic.correct import Newton
from laconic.correct.objective import Objective, duality_gap
from laconic.numeric.threads import Threads
from laconic.penalties import L2
from laconic.pools import Pool

# Evaluations between two checks of the duality gap, each of which costs one more evaluation.
CHECK = 10
# A working set may grow by this many atoms at once, or by half its size if that is more.
GROWTH = 32


class Norm(NamedTuple):
    """A norm of W that is a sum over its columns, here rows of an array (n, k)."""

    each: Callable[[np.ndarray], np.ndarray]
    """Terms of the norm, one for each row."""
    dual: Callable[[np.ndarray], np.ndarray]
    """The dual norm of every row."""
    prox: Callable[[np.ndarray, np.ndarray], np.ndarray]
    """Function of V (n, k) and t (n, 1) that returns argmin_U ½‖U − V‖² + t · norm(U) by rows."""


def prox_largest(V: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the prox of t‖·‖_∞.

    By Moreau's identity it is V minus its projection on the l1 ball of radius t. Entries are cut at
    the level θ ≥ 0 at which Σ_q (|v_q| − θ)₊ = t.
    """
    size = np.abs(V)
    down = -np.sort(-size, axis=1)
    level = (np.cumsum(down, axis=1) - t) / np.arange(1, V.shape[1] + 1)
    above = np.count_nonzero(down > level, axis=1, keepdims=True)
    theta = np.take_along_axis(level, np.maximum(above, 1) - 1, axis=1)
    return np.sign(V) * np.minimum(size, np.maximum(theta, 0.0))


def prox_length(V: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the prox of t‖·‖₂, which shortens every row by t."""
    length = np.linalg.norm(V, axis=1, keepdims=True)
    return V * np.maximum(1.0 - t / np.maximum(length, np.finfo(float).tiny), 0.0)


def prox_entries(V: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the prox of t‖·‖₁, which shortens every entry by t."""
    return np.sign(V) * np.maximum(np.abs(V) - t, 0.0)


def _length(W: np.ndarray) -> np.ndarray:
    return np.linalg.norm(W, axis=1)


def _largest(W: np.ndarray) -> np.ndarray:
    return np.abs(W).max(axis=1, initial=0.0)


def _total(W: np.ndarray) -> np.ndarray:
    return np.abs(W).sum(axis=1)


NORMS = {
    "linf_l1": Norm(_largest, _total, prox_largest),
    "l2_l1": Norm(_length, _length, prox_length),
    "l1": Norm(_total, _largest, prox_entries),
}


class Penalty:
    """λ times a norm, with the methods that `laconic.correct.objective.duality_gap` needs."""

    def __init__(self, norm: Norm, alpha: float) -> None:
        self.norm = norm
        self.alpha = alpha
        self.outside = 0.0
        """Largest dual norm of the gradients of atoms that are not in the working set."""

    def value(self, W: np.ndarray) -> float:
        """Return λ‖W‖."""
        return self.alpha * float(self.norm.each(W).sum())

    def shrink(self, U: np.ndarray) -> float:
        """Return the factor that brings U and gradients outside into the dual ball of radius λ."""
        largest = max(float(self.norm.dual(U).max(initial=0.0)), self.outside)
        return min(1.0, self.alpha / largest) if largest > 0 else 1.0

    def conjugate(self, U: np.ndarray) -> float:
        """Return 0, the conjugate in the dual ball."""
        return 0.0


class Point(NamedTuple):
    """The solution at one λ."""

    alpha: float
    model: Linear
    value: float
    """Value of L + λ‖W‖."""
    gap: float
    """Bound, from duality, on the distance of the value from the optimum over the whole pool. It is
    proven up to the rounding of the intercept's condition for atoms outside the working set."""
    seconds: float
    """Time since the start of the path."""


class MixedNorm:
    """Solver for one data set. Each λ starts from the solution of the one before.

    Parameters
    ----------
    pool : Pool
        Settings of the atoms, for example `laconic.pools.Products()`.
    X : array of shape (n_rows, n_features)
    codes : ndarray of shape (n_rows,)
        Classes numbered from 0.
    threads : Threads
    norm : {"linf_l1", "l2_l1", "l1"}
    loss : {"margin", "log"}
    tol : float
        Largest duality gap relative to the value (a value below 1e-3 counts as 1e-3).
    max_iter : int
        Largest number of iterations on one working set.
    weight : ndarray of shape (n_rows,), optional
    fit_intercept : bool
    """

    def __init__(
        self,
        pool: Pool,
        X: Any,
        codes: np.ndarray,
        threads: Threads,
        *,
        norm: str = "linf_l1",
        loss: str = "margin",
        tol: float = 1e-4,
        max_iter: int = 5000,
        weight: np.ndarray | None = None,
        fit_intercept: bool = True,
    ) -> None:
        self._clock = time.perf_counter()
        self.rows = make_rows(
            pool, X, codes, threads, loss=loss, weight=weight, fit_intercept=fit_intercept
        )
        self.norm = NORMS[norm]
        self.tol = tol
        self.max_iter = max_iter
        self._free = int(fit_intercept)
        self._stiffness = 0.5
        start = np.zeros((self._free, self.rows.n_outputs))
        self._W = Newton(gradient_tol=1e-9).solve(self.rows, L2(0.0), start).weights
        self._dual = self._dual_norms()

    @property
    def largest_alpha(self) -> float:
        """Return the smallest λ for which all weights are zero."""
        if self.rows.atoms:
            raise ValueError("the largest λ is known only before the first solve")
        return float(self._dual.max())

    def path(self, alphas: Sequence[float], max_atoms: float = np.inf) -> Iterator[Point]:
        """Yield solutions for falling λ, until one has more than ``max_atoms`` atoms."""
        for alpha in alphas:
            point = self.solve(alpha)
            yield point
            if point.model.size > max_atoms:
                return

    def solve(self, alpha: float) -> Point:
        """Return the solution at one λ, starting from the last one."""
        penalty = Penalty(self.norm, alpha)
        if len(self.rows.atoms) > 2 * np.count_nonzero(self._in_use()):
            self._prune()
        while True:
            self._grow(alpha)
            penalty.outside = 0.0
            loss, value = self._fit_working_set(penalty, 0.5 * self.tol)
            self._dual = self._dual_norms()
            penalty.outside = float(np.delete(self._dual, self.rows.atoms).max(initial=0.0))
            gap = self._gap(penalty, self._W, loss, self._gradient)
            if gap <= self.tol * max(value, 1e-3) or penalty.outside <= alpha:
                return self._point(alpha, value, gap)

    def start(self, atoms: Sequence[int], scaled: np.ndarray) -> None:
        """Start the next solve from given weights (in scaled units) of some atoms."""
        self.rows.reset(list(atoms))
        self._W = np.vstack([self._W[: self._free], scaled])
        self.rows.evaluate(self._W)
        self._dual = self._dual_norms()

    # -- the working set -----------------------------------------------------------------------

    def _dual_norms(self) -> np.ndarray:
        """Return the dual norm of the gradient of every atom at the present weights."""
        out = np.empty(self.rows.pool.n_atoms)
        for first, sums in self.rows.gradients():
            out[first : first + len(sums)] = self.norm.dual(sums)
        return out

    def _grow(self, alpha: float) -> None:
        """Add the atoms outside that violate the optimality condition most."""
        inside = self.rows.atoms
        dual = self._dual.copy()
        dual[inside] = 0.0
        room = max(GROWTH, len(inside) // 2)
        violating = np.flatnonzero(dual > alpha)
        if len(violating) > room:
            violating = violating[np.argsort(-dual[violating], kind="stable")[:room]]
        for atom in violating:
            self.rows.append(int(atom))
        more = np.zeros((len(violating), self._W.shape[1]))
        self._W = np.vstack([self._W, more])

    def _in_use(self) -> np.ndarray:
        return np.abs(self._W[self._free :]).max(axis=1, initial=0.0) > 0

    def _prune(self) -> None:
        used = self._in_use()
        self.rows.reset([a for a, keep in zip(self.rows.atoms, used, strict=True) if keep])
        self._W = np.vstack([self._W[: self._free], self._W[self._free :][used]])

    # -- one working set -----------------------------------------------------------------------

    def _fit_working_set(self, penalty: Penalty, tol: float) -> tuple[float, float]:
        """Run FISTA from the present weights and replace them; return the new loss and value.

        Steps are taken in the metric of the columns' variances, so that columns of any scale
        converge alike. The prox still works column by column.
        """
        W = V = self._W
        spread = np.diag(self.rows.gram)[:, None]
        metric = np.maximum(spread, 1e-6 * float(spread.max(initial=1e-300)))
        momentum = 1.0
        self._stiffness *= 0.5
        for iteration in range(self.max_iter):
            if iteration % CHECK == 0:
                loss, gradient = self.rows.evaluate(W)
                value = loss + penalty.value(W[self._free :])
                if self._gap(penalty, W, loss, gradient) <= tol * max(value, 1e-3):
                    break
            new = self._step(penalty, V, metric)
            if float(np.vdot((V - new) * metric, new - W)) > 0:
                W = V = new
                momentum = 1.0
                continue
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            V = new + (momentum - 1.0) / following * (new - W)
            W, momentum = new, following
        self._W = W
        self._loss, self._gradient = self.rows.evaluate(W)
        return self._loss, self._loss + penalty.value(W[self._free :])

    def _step(self, penalty: Penalty, V: np.ndarray, metric: np.ndarray) -> np.ndarray:
        """Take a proximal gradient step from V, so short that the quadratic model is above L."""
        loss, gradient = self.rows.evaluate(V)
        while True:
            stiff = self._stiffness * metric
            new = V - gradient / stiff
            new[self._free :] = self.norm.prox(
                new[self._free :], penalty.alpha / stiff[self._free :]
            )
            step = new - V
            bend = 0.5 * float(np.vdot(stiff * step, step))
            value, turned = self.rows.evaluate(new)
            # By convexity the second condition implies the first, and suffers less from rounding.
            if (
                value <= loss + float(np.vdot(gradient, step)) + bend
                or float(np.vdot(turned - gradient, step)) <= bend
            ):
                return new
            self._stiffness *= 2.0

    def _gap(self, penalty: Penalty, W: np.ndarray, loss: float, gradient: np.ndarray) -> float:
        objective = Objective(self.rows, penalty)
        objective.loss, objective.loss_gradient = loss, gradient
        value = loss + penalty.value(W[self._free :])
        return duality_gap(objective, W, value, gradient)

    def _point(self, alpha: float, value: float, gap: float) -> Point:
        model = linear(self.rows, self._W)
        return Point(alpha, model, value, gap, time.perf_counter() - self._clock)
