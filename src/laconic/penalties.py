"""Penalties on the weights of the chosen columns (ShareBoost section 2.1).

Weights are (n_columns, n_outputs) in scaled units; the intercept, where there is one, is the first
row and is never penalised: correctors pass the other rows only. Each penalty knows its convex
conjugate, from which the corrector makes its certificate.

A solver declares what it needs of a penalty, and `check_penalty` sees to it before the solver
starts: a solver never runs with a penalty whose optimum it cannot find.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, Protocol

import numpy as np

# The smooth norms are all but linear far from zero, where nothing but a shift of all classes may
# move them. So little slows the end of a solve by next to nothing.
DAMPING = 0.05


class Penalty(Protocol):
    """A convex penalty Ω, smooth but for a kink of every weight at zero."""

    alpha: float
    """Strength; 0 means that there is no penalty."""
    centred: bool = False
    """Whether Ω(W) = f(W − W̄) + g(W̄), where W̄ holds the means over the outputs of the rows of W,
    and g is least at zero. Taking the mean off every row of W then never raises Ω, and leaves ∇Ω
    with row means of zero. The best weights for a shift-invariant loss have row means of zero, and
    Newton looks for no others. It checks the row means of ∇Ω wherever it evaluates Ω, and takes Ω
    as not centred where they are not zero. A penalty need not have this attribute."""

    @property
    def kink(self) -> float:
        """Slope of the kinks: Ω(W) − kink ‖W‖₁ is smooth. 0 where Ω itself is smooth."""

    def value(self, W: np.ndarray) -> float:
        """Ω(W)."""

    def gradient(self, W: np.ndarray) -> np.ndarray:
        """∇Ω(W); the middle of the slopes where a weight lies on a kink."""

    def curve(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """∇²Ω(W) applied to V; of the smooth part alone where there are kinks."""

    def curvature(self, W: np.ndarray) -> np.ndarray:
        """Diagonal of ∇²Ω(W)."""

    def damping(self, W: np.ndarray) -> np.ndarray:
        """Curvature to add to the diagonal, for steps that stay in reach where Ω is flat."""

    def shrink(self, U: np.ndarray) -> float:
        """Largest factor in [0, 1] that brings U into the domain of the conjugate."""

    def conjugate(self, U: np.ndarray) -> float:
        """Ω*(U), to rounding."""


NUMBERS = ("alpha", "kink")
# What solvers ask for: values, slopes and a certificate; or curvature as well.
FIRST_ORDER: tuple[str, ...] = (*NUMBERS, "value", "gradient", "shrink", "conjugate")
SECOND_ORDER: tuple[str, ...] = (*FIRST_ORDER, "curve", "curvature", "damping")


class Solver(Protocol):
    """What minimises with a penalty, and declares what it needs of that."""

    needs: tuple[str, ...]
    """Names of the numbers and methods of `Penalty` that it asks for."""
    takes_kinks: bool
    """Whether it finds the optimum where weights may lie on kinks."""


def check_penalty(solver: Solver, penalty: Any) -> None:
    """Refuse a penalty that the solver could not minimise with; the error names what is missing."""
    who, name = type(solver).__name__, type(penalty).__name__
    if isinstance(penalty, type):
        raise TypeError(f"{who} needs a penalty object, not a class: pass {penalty.__name__}(...)")
    for need in solver.needs:
        number = need in NUMBERS
        kind = "number" if number else "method"
        if not hasattr(penalty, need):
            raise TypeError(
                f"{who} cannot minimise with a penalty of type {name}, which has no {need!r}; "
                f"give it that {kind} (see laconic.penalties.Penalty)"
            )
        found = getattr(penalty, need)
        if not (isinstance(found, Real) if number else callable(found)):
            raise TypeError(f"{who} needs {need!r} of {name} to be a {kind}, not {found!r}")
        if number and not 0 <= found < np.inf:
            raise ValueError(f"{who} needs {need} of {name} to be finite and >= 0, not {found}")
    if penalty.kink > 0 and not solver.takes_kinks:
        raise ValueError(
            f"{who} cannot minimise with a penalty of type {name}: it needs a smooth one, and this "
            f"has a kink of {penalty.kink:g} at zero; laconic.correct.Orthant takes kinks"
        )


class L2:
    """Frobenius penalty (alpha/2) ‖W‖². ShareBoost writes λ‖W‖²: λ = alpha/2."""

    kink = 0.0
    centred = True

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
        """A quadratic is never flat."""
        return np.zeros_like(W)

    def shrink(self, U: np.ndarray) -> float:
        """The conjugate is finite everywhere, unless alpha is 0."""
        return 1.0 if self.alpha > 0 else 0.0

    def conjugate(self, U: np.ndarray) -> float:
        """‖U‖² / (2 alpha)."""
        return float(np.vdot(U, U)) / (2.0 * self.alpha) if self.alpha > 0 else 0.0


class L1:
    """alpha ‖W‖₁ itself, ν 1ᵀw of TotalQBoost eq. (1) where every atom also comes negated.

    It bends nowhere and has a kink at zero, where ``gradient`` gives the middle of its slopes:
    `laconic.correct.Orthant` minimises with it.
    """

    centred = False

    def __init__(self, alpha: float, beta: float = 1.0) -> None:
        self.alpha = alpha

    @property
    def kink(self) -> float:
        """All of it is kinks."""
        return self.alpha

    def value(self, W: np.ndarray) -> float:
        """Ω(W)."""
        return self.alpha * float(np.abs(W).sum())

    def gradient(self, W: np.ndarray) -> np.ndarray:
        """alpha times the signs."""
        return self.alpha * np.sign(W)

    def curve(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Zero."""
        return np.zeros_like(V)

    def curvature(self, W: np.ndarray) -> np.ndarray:
        """Zero."""
        return np.zeros_like(W)

    def damping(self, W: np.ndarray) -> np.ndarray:
        """None: steps end where a sign would change."""
        return np.zeros_like(W)

    def shrink(self, U: np.ndarray) -> float:
        """Every entry must lie within ±alpha."""
        return _fit_within(float(np.abs(U).max(initial=0.0)), self.alpha)

    def conjugate(self, U: np.ndarray) -> float:
        """Zero within ±alpha."""
        return 0.0


class SmoothL1:
    """alpha Σ_ij (1/β) ln(e^{βW_ij} + e^{−βW_ij}): alpha‖W‖₁ to within alpha·ln 2/β an entry."""

    kink = 0.0
    centred = False

    def __init__(self, alpha: float, beta: float) -> None:
        self.alpha = alpha
        self.beta = beta

    def value(self, W: np.ndarray) -> float:
        """Ω(W)."""
        return self.alpha / self.beta * float(np.logaddexp(self.beta * W, -self.beta * W).sum())

    def gradient(self, W: np.ndarray) -> np.ndarray:
        """∇Ω(W)."""
        return self.alpha * np.tanh(self.beta * W)

    def curve(self, W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """∇²Ω(W) applied to V."""
        return self.curvature(W) * V

    def curvature(self, W: np.ndarray) -> np.ndarray:
        """Diagonal of ∇²Ω(W)."""
        return self.alpha * self.beta * (1.0 - np.tanh(self.beta * W) ** 2)

    def damping(self, W: np.ndarray) -> np.ndarray:
        """A part of the sharpest quadratic that touches Ω at W and lies above it, alpha·tanh/W."""
        A = self.beta * np.abs(W)
        sharp = np.divide(np.tanh(A), A, out=np.ones_like(A), where=A > 1e-8)
        return DAMPING * self.alpha * self.beta * sharp

    def shrink(self, U: np.ndarray) -> float:
        """Every entry must lie within ±alpha."""
        return _fit_within(float(np.abs(U).max(initial=0.0)), self.alpha)

    def conjugate(self, U: np.ndarray) -> float:
        """(alpha/β) Σ p ln p + (1 − p) ln(1 − p) with p = (1 + U/alpha)/2."""
        if self.alpha == 0:
            return 0.0
        p = np.clip(0.5 * (1.0 + U / self.alpha), 0.0, 1.0)
        return self.alpha / self.beta * float((_xlogx(p) + _xlogx(1.0 - p)).sum())


class SmoothLinfL1:
    """alpha Σ_j (1/β) ln Σ_i (e^{βW_ij} + e^{−βW_ij}), the smooth ‖W‖_{∞,1} of section 2.1.

    Within alpha·ln(2k)/β of alpha·‖W‖_{∞,1} for every column.
    """

    kink = 0.0
    centred = False

    def __init__(self, alpha: float, beta: float) -> None:
        self.alpha = alpha
        self.beta = beta

    def _parts(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """ln of each column's sum, and the soft-max weights of +W and −W."""
        A = self.beta * W
        top = np.abs(A).max(axis=1, keepdims=True, initial=0.0)
        up, down = np.exp(A - top), np.exp(-A - top)
        total = (up + down).sum(axis=1, keepdims=True)
        return np.log(total) + top, up / total, down / total

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
        """A part of the Hessian's diagonal before its rank-one term is taken off."""
        _, up, down = self._parts(W)
        return DAMPING * self.alpha * self.beta * (up + down)

    def shrink(self, U: np.ndarray) -> float:
        """The l1 norm of every column must be at most alpha."""
        return _fit_within(float(np.abs(U).sum(axis=1).max(initial=0.0)), self.alpha)

    def conjugate(self, U: np.ndarray) -> float:
        """Per column Σ_i v_i asinh(C v_i) − ln 2C, with v = U/alpha and Σ_i √(1 + C²v_i²) = C.

        Stationarity of ⟨a, v⟩ − ln Σ 2 cosh a_i says sinh a_i = C v_i with C = Σ cosh a_i.
        """
        if self.alpha == 0 or U.size == 0:
            return 0.0
        v = U / self.alpha
        # Bracket the root: the left side less C falls from k at C = 0 to below 0 as C grows.
        room = np.maximum(1.0 - np.abs(v).sum(axis=1), np.finfo(float).tiny)
        low, high = np.full(len(v), 1.0), np.maximum(v.shape[1] / room, 2.0 * v.shape[1])
        for _ in range(200):
            middle = np.sqrt(low * high)
            above = np.sqrt(1.0 + (middle[:, None] * v) ** 2).sum(axis=1) > middle
            low, high = np.where(above, middle, low), np.where(above, high, middle)
            if np.all(high - low <= 1e-13 * high):
                break
        C = 0.5 * (low + high)
        # The value is stationary at the root: an error in C counts to second order only.
        a = np.arcsinh(C[:, None] * v)
        value = (a * v).sum(axis=1) - np.log(2.0 * np.sqrt(1.0 + (C[:, None] * v) ** 2).sum(axis=1))
        return self.alpha / self.beta * float(value.sum())


def _fit_within(size: float, limit: float) -> float:
    """Factor that brings ``size`` just inside ``limit``."""
    return 1.0 if size < limit else (limit / size * (1.0 - 1e-12) if size > 0 else 1.0)


def _xlogx(p: np.ndarray) -> np.ndarray:
    return np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0)


PENALTIES: dict[str, type[L2] | type[SmoothL1] | type[SmoothLinfL1]] = {
    "l2": L2,
    "l1": SmoothL1,
    "linf_l1": SmoothLinfL1,
}


def find_penalty(penalty: Any, alpha: float, beta: float) -> Penalty:
    """The penalty of that name and strength, or a penalty object as it is."""
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
