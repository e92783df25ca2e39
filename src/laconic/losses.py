"""Losses of a score matrix, shared by every estimator.

A loss sees blocks of scores laid out class-major, ``(n_outputs, n_rows)``, so that sums over
classes run along contiguous rows. It does not know what an atom is. Every value is weighted by the
row weights it is given; weights that sum to one make it a weighted mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np


class Loss(Protocol):
    """What rows and correctors need of a loss: convex in the scores, and never below 0.

    The certificates rest on both: a duality gap, a dual value.
    """

    name: str
    shift_invariant: bool
    """Whether adding one number to all scores of a row leaves its loss as it is."""

    def n_outputs(self, n_classes: int) -> int:
        """Number of scores a row gets."""

    def targets(self, y: np.ndarray, n_outputs: int) -> np.ndarray:
        """What `evaluate` is given of the class codes ``y`` of a block."""

    def evaluate(
        self, scores: np.ndarray, target: np.ndarray, weight: np.ndarray, state: np.ndarray
    ) -> float:
        """Weighted sum of the losses; fills ``state`` for the methods below."""

    def residual(self, target: np.ndarray, weight: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Negative gradient of the weighted sum in the scores."""

    def curve(self, weight: np.ndarray, state: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Second derivative in the scores applied to ``direction``, row by row."""

    def curvature(self, weight: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Diagonal of the second derivative in the scores."""

    def balance(self, gradient: np.ndarray, share: np.ndarray) -> tuple[float, np.ndarray]:
        """A mixture that makes the intercept's gradient zero: its share t and distribution σ.

        In it every row has the distribution σ to the part t. ``gradient`` is that of the intercept,
        ``share`` that of every class. See `laconic.correct.objective.duality_gap`, which
        also asks for the next two.
        """

    def constant_gradient(self, sigma: np.ndarray, class_sums: np.ndarray) -> np.ndarray:
        """Gradient in the weights where every row has the distribution ``sigma``."""

    def constant_value(self, sigma: np.ndarray, share: np.ndarray) -> float:
        """Dual value of giving every row the distribution ``sigma``; ``share`` of each class."""

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Class probabilities that scores (n_rows, n_outputs) stand for."""


class _SoftmaxLoss:
    """ln Σ_q exp(margin·1[q ≠ y] + f_q − f_y), with ``margin`` 0 or 1.

    The state is the matrix of probabilities ρ_q of eq. (6); the gradient in the scores is
    ρ − e_y and the second derivative diag(ρ) − ρρᵀ, at most ½ (I − 11ᵀ/k).
    """

    margin: float
    shift_invariant = True

    def n_outputs(self, n_classes: int) -> int:
        """One score per class."""
        return n_classes

    def targets(self, y: np.ndarray, n_outputs: int) -> np.ndarray:
        """Flat positions of the true classes in a class-major block."""
        return y.astype(np.int64) * len(y) + np.arange(len(y))

    def evaluate(
        self, scores: np.ndarray, target: np.ndarray, weight: np.ndarray, state: np.ndarray
    ) -> float:
        """Weighted sum of the losses; ``state`` becomes ρ."""
        flat = state.reshape(-1)
        np.add(scores, scores.dtype.type(self.margin), out=state)
        flat[target] = scores.reshape(-1)[target]
        # Shifting by the largest entry first keeps every exponent at most 0: no overflow to NaN.
        state -= state.max(axis=0)
        true = flat[target]
        np.exp(state, out=state)
        total = state.sum(axis=0)
        state /= total
        return float(np.dot(np.log(total).astype(np.float64) - true, weight.astype(np.float64)))

    def residual(self, target: np.ndarray, weight: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Weight times (e_y − ρ)."""
        out = state * -weight
        out.reshape(-1)[target] += weight
        return out

    def curve(self, weight: np.ndarray, state: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Weight times (ρ ∘ z − ρ ⟨ρ, z⟩)."""
        out = state * direction
        mean = out.sum(axis=0)
        direction = direction - mean
        np.multiply(state, direction, out=out)
        out *= weight
        return out

    def curvature(self, weight: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Weight times ρ (1 − ρ)."""
        return (state - state * state) * weight

    def balance(self, gradient: np.ndarray, share: np.ndarray) -> tuple[float, np.ndarray]:
        """The least part of a distribution that lies in the simplex."""
        excess = gradient - gradient.sum() * share  # sums to zero but for rounding, here exactly
        need = float((excess / share).max())
        if need <= 1e-14:  # the gradient is zero up to rounding
            return 0.0, share
        t = need / (1.0 + need)
        sigma = np.maximum(share - (1.0 - t) / t * excess, 0.0)
        return t, sigma / sigma.sum()

    def constant_gradient(self, sigma: np.ndarray, class_sums: np.ndarray) -> np.ndarray:
        """Σ_i weight_i x_i (σ − e_{y_i})ᵀ."""
        out: np.ndarray = class_sums.sum(axis=1, keepdims=True) * sigma - class_sums
        return out

    def constant_value(self, sigma: np.ndarray, share: np.ndarray) -> float:
        """Margin times the mass off the true class, plus the entropy of ``sigma``."""
        inside = sigma[sigma > 0]
        entropy = -float(np.dot(inside, np.log(inside)))
        return self.margin * (1.0 - float(np.dot(share, sigma))) + entropy


class MarginLoss(_SoftmaxLoss):
    """ShareBoost's loss, eq. (3): ln Σ_q exp(1[q ≠ y] − f_y + f_q).

    A smooth upper bound on the multiclass hinge and on the 0-1 loss.
    """

    name = "margin"
    margin = 1.0

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities under which the scores would be the population optimum.

        The margin stretches the scores, so their softmax s is over-confident. Setting the
        expected gradient Σ_y p_y (ρ(y) − e_y) to zero and solving for p gives
        p_q ∝ s_q (e − (e − 1) s_q): same ranking, less extreme.
        """
        s = softmax(scores)
        p: np.ndarray = s * (np.e - (np.e - 1.0) * s)
        p /= p.sum(axis=1, keepdims=True)
        return p


class LogLoss(_SoftmaxLoss):
    """Multinomial log-loss: ln Σ_q exp(f_q − f_y)."""

    name = "log"
    margin = 0.0

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """The softmax of the scores."""
        return softmax(scores)


class BinaryLoss(ABC):
    """A convex loss l of the margin y f, y = ±1, for one score f (TotalQBoost eq. (1)).

    A subclass has a name and the four abstract methods; the first two see margins of any shape. The
    state is u = −l′(margin), the dual weight of every row, eq. (5). The second class is the
    positive one.
    """

    name: str
    shift_invariant = False

    @staticmethod
    @abstractmethod
    def at(margin: Any) -> tuple[Any, Any]:
        """The loss, and the dual weight u = −l′, eq. (5)."""

    @staticmethod
    @abstractmethod
    def bend(u: Any) -> Any:
        """l″, as a function of u."""

    @abstractmethod
    def dual(self, u: float) -> float:
        """−l*(−u), what a row of dual weight u adds to the dual (7)."""

    @abstractmethod
    def positive(self, score: np.ndarray) -> np.ndarray:
        """Probability of the second class under which a score is the population optimum."""

    def n_outputs(self, n_classes: int) -> int:
        """One score for two classes."""
        if n_classes != 2:
            raise ValueError(
                f"Only binary classification is supported. The {self.name} loss is for two "
                f'classes, not {n_classes}: loss="log" and loss="margin" are for more'
            )
        return 1

    def targets(self, y: np.ndarray, n_outputs: int) -> np.ndarray:
        """Labels -1 and 1."""
        return 2 * y.astype(np.int64) - 1

    def evaluate(
        self, scores: np.ndarray, target: np.ndarray, weight: np.ndarray, state: np.ndarray
    ) -> float:
        """Weighted sum of the losses; ``state`` becomes u."""
        value, u = self.at(scores[0] * target.astype(scores.dtype))
        state[0] = u
        return float(np.dot(value.astype(np.float64), weight.astype(np.float64)))

    def residual(self, target: np.ndarray, weight: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Weight times y u."""
        return state * (weight * target.astype(state.dtype))

    def curve(self, weight: np.ndarray, state: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Weight times l″ z."""
        return self.curvature(weight, state) * direction

    def curvature(self, weight: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Weight times l″."""
        out: np.ndarray = self.bend(state) * weight
        return out

    def balance(self, gradient: np.ndarray, share: np.ndarray) -> tuple[float, np.ndarray]:
        """A dual weight of one half for all rows of the class whose dual weights sum to less."""
        g = float(gradient[0])
        light = int(g > 0)
        sigma = np.zeros(2)
        sigma[1 - light] = 0.5
        return abs(g) / (abs(g) + 0.5 * share[light]), sigma

    def constant_gradient(self, sigma: np.ndarray, class_sums: np.ndarray) -> np.ndarray:
        """−Σ_i weight_i y_i u_i x_i with u_i = σ of the class that row i is not of."""
        return class_sums[:, :1] * sigma[1] - class_sums[:, 1:] * sigma[0]

    def constant_value(self, sigma: np.ndarray, share: np.ndarray) -> float:
        """Dual value of those u."""
        return float(share[1] * self.dual(sigma[0]) + share[0] * self.dual(sigma[1]))

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Both classes' probabilities."""
        p = self.positive(scores[:, 0])
        return np.column_stack([1.0 - p, p])


class ExponentialLoss(BinaryLoss):
    """e^−margin, the loss of AdaBoost and of all the paper's experiments.

    Where a margin lies below -80 the loss stands still, so that no score overflows it.
    """

    name = "exponential"

    @staticmethod
    def at(margin: Any) -> tuple[Any, Any]:
        """The loss is its own dual weight."""
        u = np.exp(np.minimum(-margin, 80.0))
        return u, u

    @staticmethod
    def bend(u: Any) -> Any:
        """And its own curvature."""
        return u

    def dual(self, u: float) -> float:
        """u − u ln u."""
        return float(u - u * np.log(u)) if u > 0 else 0.0

    def positive(self, score: np.ndarray) -> np.ndarray:
        """1 / (1 + e^−2f)."""
        return sigmoid(2.0 * score)


class LogisticLoss(BinaryLoss):
    """ln(1 + e^−margin)."""

    name = "logistic"

    @staticmethod
    def at(margin: Any) -> tuple[Any, Any]:
        """The dual weight is the probability of the wrong class."""
        small = np.exp(-np.abs(margin))
        wrong = np.exp(-np.maximum(margin, 0.0)) / (1.0 + small)
        return np.log1p(small) + np.maximum(-margin, 0.0), wrong

    @staticmethod
    def bend(u: Any) -> Any:
        """u (1 − u)."""
        return u * (1.0 - u)

    def dual(self, u: float) -> float:
        """The entropy of u."""
        return float(-u * np.log(u) - (1.0 - u) * np.log1p(-u)) if 0 < u < 1 else 0.0

    def positive(self, score: np.ndarray) -> np.ndarray:
        """1 / (1 + e^−f)."""
        return sigmoid(score)


class SquaredHingeLoss(BinaryLoss):
    """max(1 − margin, 0)²."""

    name = "squared_hinge"

    @staticmethod
    def at(margin: Any) -> tuple[Any, Any]:
        """Twice what is short of a margin of 1."""
        short = np.maximum(1.0 - margin, 0.0)
        return short * short, 2.0 * short

    @staticmethod
    def bend(u: Any) -> Any:
        """2 where the margin is short."""
        return 2.0 * np.sign(u)

    def dual(self, u: float) -> float:
        """u − u²/4."""
        return u - 0.25 * u * u

    def positive(self, score: np.ndarray) -> np.ndarray:
        """(1 + f) / 2, at least 0 and at most 1."""
        return 0.5 * (1.0 + np.clip(score, -1.0, 1.0))


def sigmoid(score: np.ndarray) -> np.ndarray:
    """1 / (1 + e^−score), stable for any finite score."""
    small = np.exp(-np.abs(score))
    out: np.ndarray = np.exp(-np.maximum(-score, 0.0)) / (1.0 + small)
    return out


def decide(scores: np.ndarray) -> np.ndarray:
    """Class code of every row: of the largest score; of one score, whether it is above zero."""
    return scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(np.intp)


class OneVsRest:
    """Scores of one squared hinge problem per class; a predictor's loss, nothing is boosted by it.

    The population optimum of the squared hinge is f = 2p − 1.
    """

    name = "one_vs_rest"

    def n_outputs(self, n_classes: int) -> int:
        """One score per class."""
        return n_classes

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """(1 + f)/2 of every class, at least 0 and at most 1, made to sum to one."""
        p: np.ndarray = 0.5 * (1.0 + np.clip(scores, -1.0, 1.0))
        p[p.sum(axis=1) == 0.0] = 1.0
        p /= p.sum(axis=1, keepdims=True)
        return p


class ScoresOnly:
    """One score per class that stands for no probability, as those of error clumping.

    A discount moves scores away from the f = 2p − 1 that the squared hinge would aim at.
    """

    name = "scores"

    def n_outputs(self, n_classes: int) -> int:
        """One score per class."""
        return n_classes


def softmax(scores: np.ndarray) -> np.ndarray:
    """Row-wise softmax of (n_rows, n_outputs), stable for any finite scores."""
    shifted: np.ndarray = np.exp(scores - scores.max(axis=1, keepdims=True))
    shifted /= shifted.sum(axis=1, keepdims=True)
    return shifted


LOSSES: dict[str, type[MarginLoss] | type[LogLoss]] = {
    loss.name: loss for loss in (MarginLoss, LogLoss)
}
"""Losses of one score per class."""

BINARY_LOSSES: dict[str, type[BinaryLoss]] = {
    loss.name: loss for loss in (ExponentialLoss, LogisticLoss, SquaredHingeLoss)
}
"""Losses of the margin of one score, for two classes."""


def find_loss(loss: Any) -> Loss:
    """The loss of that name, or a loss object as it is."""
    known: dict[str, Any] = {**LOSSES, **BINARY_LOSSES}
    if isinstance(loss, str):
        if loss not in known:
            raise ValueError(f"loss must be one of {', '.join(map(repr, known))}, not {loss!r}")
        made: Loss = known[loss]()
        return made
    wanted = [name for name in vars(Loss) if not name.startswith("_")]
    missing = [name for name in ("name", "shift_invariant", *wanted) if not hasattr(loss, name)]
    if missing or isinstance(loss, type):
        why = "is a class; pass an object" if isinstance(loss, type) else f"has no {missing[0]!r}"
        raise TypeError(f"loss must be a name or a loss object; {loss!r} {why}")
    given: Loss = loss
    return given


class Link(Protocol):
    """What a predictor's scores mean.

    It also has ``probabilities(scores)``, (n_rows, n_classes), where scores stand for any.
    """

    name: str

    def n_outputs(self, n_classes: int) -> int:
        """Scores of a row."""


LINKS: dict[str, Any] = {
    **LOSSES, **BINARY_LOSSES, OneVsRest.name: OneVsRest, ScoresOnly.name: ScoresOnly,
}  # fmt: skip
"""Links that predictors can be saved with, by name."""


def find_link(link: Any) -> Link:
    """The link of that name, or a loss object as it is."""
    made: Link = LINKS[link]() if isinstance(link, str) and link in LINKS else find_loss(link)
    return made
