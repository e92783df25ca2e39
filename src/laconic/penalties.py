"""Penalties on the weights of the chosen columns (ShareBoost section 2.1).

Weights have the shape (n_columns, n_outputs) and are in scaled units. The first row holds the
intercept, if there is one. It is never penalised, so correctors pass only the other rows. Each
penalty knows its convex conjugate. The corrector needs it for its certificate.

A solver declares what it needs of a penalty. `check_penalty` checks this. Estimators call it before
they look at the data, and every solver calls it before it starts. So a solver never runs with a
penalty whose optimum it cannot find.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, Protocol

import numpy as np

from laconic.numeric.namespaces import namespace

# Factor of the damping. Far from zero the smooth norms are almost linear, and along a shift of all
# classes nothing else may bend. So small a factor hardly slows the end of a solve.
DAMPING = 0.05


class Penalty(Protocol):
    """A convex penalty Ω. It is smooth except for a kink at zero in every weight.

    All methods take weights without the intercept's row.
    """

    alpha: float
    """Strength; 0 means no penalty."""
    centred: bool = False
    """Whether Ω(W) = f(W − W̄) + g(W̄), where every row of W̄ holds the mean of that row of W, and
    the minimum of g is at zero. Then subtracting the mean from every row of W never raises Ω, and
    ∇Ω has row means of zero there. So the best weights for a shift-invariant loss have row means
    of zero, and Newton searches only among those. It checks the row means of ∇Ω whenever it
    evaluates Ω. If they are not zero, it treats Ω as not centred. This attribute is optional."""
    diagonal: bool = False
    """Whether ∇²Ω(W) is diagonal, so that ``curve`` is ``curvature`` times V. This attribute is
    optional. If it is set, Newton's steps can be found where the rows are."""
    quadratic: bool = False
    """Whether Ω is quadratic, so that a quadratic model of the objective is exact in Ω. This
    attribute is optional. If it is not set, and if the Hessian of the loss is at hand, Newton's
    steps keep Ω exact (`laconic.correct.loss_model`)."""

    @property
    def kink(self) -> float:
        """Slope of the kinks: Ω(W) − kink ‖W‖₁ is smooth. It is 0 if Ω itself is smooth."""

    def value(self, W: np.ndarray) -> float:
        """Return Ω(W)."""

    def gradient(self, W: np.ndarray) -> np.ndarray:
        """Return ∇Ω(W). At a kink, this is the mean of the slopes on both sides."""

    def curve(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return ∇²Ω(W) times V. If there are kinks, only the smooth part of Ω counts."""

    def curvature(self, W: np.ndarray) -> np.ndarray:
        """Return the diagonal of ∇²Ω(W)."""

    def damping(self, W: np.ndarray) -> np.ndarray:
        """Return curvature to add to the diagonal. It keeps steps short where Ω is flat."""

    def shrink(self, U: np.ndarray) -> float:
        """Return the largest factor in [0, 1] that brings U into the domain of the conjugate."""

    def conjugate(self, U: np.ndarray) -> float:
        """Return Ω*(U), exact up to rounding."""


NUMBERS = ("alpha", "kink")
# What first-order solvers need (values, gradients and a certificate), and what second-order solvers
# need (also curvature).
FIRST_ORDER: tuple[str, ...] = (*NUMBERS, "value", "gradient", "shrink", "conjugate")
SECOND_ORDER: tuple[str, ...] = (*FIRST_ORDER, "curve", "curvature", "damping")


class Solver(Protocol):
    """An object that minimises an objective with a penalty, and declares what it needs of it."""

    needs: tuple[str, ...]
    """Names of the numbers and methods of `Penalty` that the solver uses."""
    takes_kinks: bool
    """Whether the solver finds the optimum of a penalty with kinks."""


def check_penalty(solver: Solver, penalty: Any) -> None:
    """Refuse a penalty that the solver cannot handle. The error names what is missing."""
    who, name = type(solver).__name__, type(penalty).__name__
    if isinstance(penalty, type):
        raise TypeError(f"{who} needs a penalty object, not a class: pass {penalty.__name__}(...)")
    for need in solver.needs:
        number = need in NUMBERS
        kind = "number" if number else "method"
        if not hasattr(penalty, need):
            raise TypeError(
                f"{who} cannot minimise with a penalty of type {name}, which has no {need!r}; "
                f"add that {kind} (see laconic.penalties.Penalty)"
            )
        found = getattr(penalty, need)
        if not (isinstance(found, Real) if number else callable(found)):
            raise TypeError(f"{who} needs {need!r} of {name} to be a {kind}, not {found!r}")
        if number and not 0 <= found < np.inf:
            raise ValueError(f"{who} needs {need} of {name} to be finite and >= 0, not {found}")
    if penalty.kink > 0 and not solver.takes_kinks:
        raise ValueError(
            f"{who} cannot minimise with a penalty of type {name}: it needs a smooth penalty, but "
            f"this one has a kink of {penalty.kink:g} at zero. Use a smooth one, such as SmoothL1, "
            'which is penalty="l1" of ShareBoostClassifier. If you can choose the solver, use '
            "laconic.correct.Orthant, which takes kinks."
        )


class L2:
    """Frobenius penalty (alpha/2) ‖W‖². ShareBoost writes λ‖W‖²: λ = alpha/2."""

    kink = 0.0
    diagonal = True
    centred = True
    quadratic = True

    def __init__(self, alpha: float, beta: float = 1.0) -> None:
        self.alpha = alpha

    def value(self, W: np.ndarray) -> float:
        """Ω(W)."""
        return 0.5 * self.alpha * float(np.vdot(W, W))

    def gradient(self, W: np.ndarray) -> np.ndarray:
        """∇Ω(W)."""
        return self.alpha * W

    def curve(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """∇²Ω(W) applied to V."""
        return self.alpha * V

    def curvature(self, W: np.ndarray) -> np.ndarray:
        """Diagonal of ∇²Ω(W)."""
        return np.full_like(W, self.alpha)

    def damping(self, W: np.ndarray) -> np.ndarray:
        """Return zeros, because a quadratic is never flat."""
        return np.zeros_like(W)

    def shrink(self, U: np.ndarray) -> float:
        """Return 1, because the conjugate is finite everywhere; 0 if alpha is 0."""
        return 1.0 if self.alpha > 0 else 0.0

    def conjugate(self, U: np.ndarray) -> float:
        """‖U‖² / (2 alpha)."""
        return float(np.vdot(U, U)) / (2.0 * self.alpha) if self.alpha > 0 else 0.0


class L1:
    """The exact l1 penalty alpha ‖W‖₁.

    It is ν 1ᵀw of TotalQBoost eq. (1) if the pool has every atom with both signs. It has a kink at
    zero and no curvature. At zero, ``gradient`` gives the mean of the slopes on both sides.
    `laconic.correct.Orthant` can minimise with it.
    """

    centred = False
    diagonal = True
    quadratic = False

    def __init__(self, alpha: float, beta: float = 1.0) -> None:
        self.alpha = alpha

    @property
    def kink(self) -> float:
        """Slope of the kinks, alpha: without them nothing of the penalty is left."""
        return self.alpha

    def value(self, W: np.ndarray) -> float:
        """Ω(W)."""
        return self.alpha * float(np.abs(W).sum())

    def gradient(self, W: np.ndarray) -> np.ndarray:
        """Return alpha times the signs of the weights."""
        return self.alpha * namespace(W).sign(W)

    def curve(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return zeros."""
        return np.zeros_like(V)

    def curvature(self, W: np.ndarray) -> np.ndarray:
        """Return zeros."""
        return np.zeros_like(W)

    def damping(self, W: np.ndarray) -> np.ndarray:
        """Return zeros, because a step ends where a sign would change."""
        return np.zeros_like(W)

    def shrink(self, U: np.ndarray) -> float:
        """Return the factor that brings every entry within ±alpha."""
        return _fit_within(float(np.abs(U).max(initial=0.0)), self.alpha)

    def conjugate(self, U: np.ndarray) -> float:
        """Return 0, the conjugate within ±alpha."""
        return 0.0


class SmoothL1:
    """The smooth l1 penalty alpha Σ_ij (1/β) ln(e^{βW_ij} + e^{−βW_ij}).

    It differs from alpha‖W‖₁ by at most alpha·ln 2/β for each entry.
    """

    kink = 0.0
    diagonal = True
    centred = False
    quadratic = False

    def __init__(self, alpha: float, beta: float) -> None:
        self.alpha = alpha
        self.beta = beta

    def value(self, W: np.ndarray) -> float:
        """Ω(W)."""
        return self.alpha / self.beta * float(np.logaddexp(self.beta * W, -self.beta * W).sum())

    def gradient(self, W: np.ndarray) -> np.ndarray:
        """∇Ω(W)."""
        return self.alpha * namespace(W).tanh(self.beta * W)

    def curve(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """∇²Ω(W) applied to V."""
        return self.curvature(W) * V

    def curvature(self, W: np.ndarray) -> np.ndarray:
        """Diagonal of ∇²Ω(W)."""
        return self.alpha * self.beta * (1.0 - np.tanh(self.beta * W) ** 2)

    def damping(self, W: np.ndarray) -> np.ndarray:
        """Return `DAMPING` times alpha·tanh(βW)/W.

        That is the curvature of the sharpest quadratic that touches Ω at W and is never below it.
        """
        A = self.beta * np.abs(W)
        sharp = np.divide(np.tanh(A), A, out=np.ones_like(A), where=A > 1e-8)
        return DAMPING * self.alpha * self.beta * sharp

    def shrink(self, U: np.ndarray) -> float:
        """Return the factor that brings every entry within ±alpha."""
        return _fit_within(float(np.abs(U).max(initial=0.0)), self.alpha)

    def conjugate(self, U: np.ndarray) -> float:
        """(alpha/β) Σ p ln p + (1 − p) ln(1 − p) with p = (1 + U/alpha)/2."""
        if self.alpha == 0:
            return 0.0
        p = np.clip(0.5 * (1.0 + U / self.alpha), 0.0, 1.0)
        return self.alpha / self.beta * float((_xlogx(p) + _xlogx(1.0 - p)).sum())


class SmoothLinfL1:
    """alpha Σ_j (1/β) ln Σ_i (e^{βW_ij} + e^{−βW_ij}), the smooth ‖W‖_{∞,1} of section 2.1.

    It differs from alpha·‖W‖_{∞,1} by at most alpha·ln(2k)/β for each column.
    """

    kink = 0.0
    centred = False
    diagonal = False
    quadratic = False

    def __init__(self, alpha: float, beta: float) -> None:
        self.alpha = alpha
        self.beta = beta

    def _parts(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the logarithm of each column's sum, and the softmax weights of +W and −W."""
        A, xp = self.beta * W, namespace(W)
        top = xp.amax(xp.abs(A), axis=1, keepdims=True)
        up, down = xp.exp(A - top), xp.exp(-A - top)
        total = (up + down).sum(axis=1, keepdims=True)
        return xp.log(total) + top, up / total, down / total

    def value(self, W: np.ndarray) -> float:
        """Ω(W)."""
        return self.alpha / self.beta * float(self._parts(W)[0].sum())

    def gradient(self, W: np.ndarray) -> np.ndarray:
        """∇Ω(W)."""
        _, up, down = self._parts(W)
        return self.alpha * (up - down)

    def curve(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """∇²Ω(W) applied to V."""
        _, up, down = self._parts(W)
        g = up - down
        return self.alpha * self.beta * ((up + down) * V - g * (g * V).sum(axis=1, keepdims=True))

    def curvature(self, W: np.ndarray) -> np.ndarray:
        """Diagonal of ∇²Ω(W)."""
        _, up, down = self._parts(W)
        return self.alpha * self.beta * (up + down - (up - down) ** 2)

    def damping(self, W: np.ndarray) -> np.ndarray:
        """Return `DAMPING` times the Hessian's diagonal without its rank-one term."""
        _, up, down = self._parts(W)
        return DAMPING * self.alpha * self.beta * (up + down)

    def shrink(self, U: np.ndarray) -> float:
        """Return the factor that brings the l1 norm of every column to at most alpha."""
        return _fit_within(float(np.abs(U).sum(axis=1).max(initial=0.0)), self.alpha)

    def conjugate(self, U: np.ndarray) -> float:
        """Sum Σ_i v_i asinh(C v_i) − ln 2C over the columns, times alpha/β.

        Here v = U/alpha, and C is the root of Σ_i √(1 + C²v_i²) = C. This follows because
        ⟨a, v⟩ − ln Σ 2 cosh a_i is stationary where sinh a_i = C v_i with C = Σ cosh a_i.
        """
        if self.alpha == 0 or U.size == 0:
            return 0.0
        v = U / self.alpha
        # Bracket the root: the left side minus C falls from k at C = 0 to below 0 as C grows.
        room = np.maximum(1.0 - np.abs(v).sum(axis=1), np.finfo(float).tiny)
        low, high = np.full(len(v), 1.0), np.maximum(v.shape[1] / room, 2.0 * v.shape[1])
        for _ in range(200):
            middle = np.sqrt(low * high)
            above = np.sqrt(1.0 + (middle[:, None] * v) ** 2).sum(axis=1) > middle
            low, high = np.where(above, middle, low), np.where(above, high, middle)
            if np.all(high - low <= 1e-13 * high):
                break
        C = 0.5 * (low + high)
        # The value is stationary at the root, so an error in C has only a second-order effect.
        a = np.arcsinh(C[:, None] * v)
        value = (a * v).sum(axis=1) - np.log(2.0 * np.sqrt(1.0 + (C[:, None] * v) ** 2).sum(axis=1))
        return self.alpha / self.beta * float(value.sum())


def _fit_within(size: float, limit: float) -> float:
    """Return the factor that brings ``size`` just inside ``limit``."""
    return 1.0 if size < limit else (limit / size * (1.0 - 1e-12) if size > 0 else 1.0)


def _xlogx(p: np.ndarray) -> np.ndarray:
    return np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0)


PENALTIES: dict[str, type[L2] | type[SmoothL1] | type[SmoothLinfL1]] = {
    "l2": L2,
    "l1": SmoothL1,
    "linf_l1": SmoothLinfL1,
}
# These take tensors, too.
BUILT_IN: tuple[type, ...] = (L1, *PENALTIES.values())


def find_penalty(penalty: Any, alpha: float, beta: float) -> Penalty:
    """Return the penalty of a name and strength, or a penalty object unchanged."""
    if isinstance(penalty, str):
        if penalty not in PENALTIES:
            known = ", ".join(map(repr, PENALTIES))
            raise ValueError(f"penalty must be one of {known}, not {penalty!r}")
        return PENALTIES[penalty](alpha, beta)
    if isinstance(penalty, type) or not hasattr(penalty, "alpha"):
        why = "is a class; pass an object" if isinstance(penalty, type) else "has no 'alpha'"
        raise TypeError(f"penalty must be a name or a penalty object; {penalty!r} {why}")
    given: Penalty = penalty
    return given
