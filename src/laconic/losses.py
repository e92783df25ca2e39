"""Losses of a score matrix, shared by every estimator.

A loss gets blocks of scores of shape ``(n_outputs, n_rows)``, so that sums over classes run along
contiguous rows. It does not know what an atom is. Every value is a sum weighted by the given row
weights. If they sum to one, it is a weighted mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any, Protocol

import numpy as np


class Loss(Protocol):
    """What rows and correctors need of a loss.

    A loss must be convex in the scores and never below 0. The certificates (duality gaps and dual
    values) rely on both.
    """

    name: str
    shift_invariant: bool
    """Whether the loss of a row stays the same if one number is added to all its scores."""

    def n_outputs(self, n_classes: int) -> int:
        """Return the number of scores of a row."""

    def targets(self, y: np.ndarray, n_outputs: int) -> np.ndarray:
        """Convert the class codes ``y`` of a block to the form that `evaluate` takes."""

    def evaluate(
        self, scores: np.ndarray, target: np.ndarray, weight: np.ndarray, state: np.ndarray
    ) -> float:
        """Return the weighted sum of the losses, and fill ``state`` for the methods below."""

    def residual(self, target: np.ndarray, weight: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Return the negative gradient of the weighted sum in the scores."""

    def curve(self, weight: np.ndarray, state: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Return the second derivative in the scores times ``direction``, row by row."""

    def curvature(self, weight: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Return the diagonal of the second derivative in the scores."""

    def balance(self, gradient: np.ndarray, share: np.ndarray) -> tuple[float, np.ndarray]:
        """Return a mixing weight t and class distribution σ that cancel the intercept's gradient.

        In the mixture, each row has the distribution σ with weight t and its own with weight 1 − t.
        ``gradient`` is the intercept's gradient. ``share`` holds the share of each class.
        `laconic.correct.objective.duality_gap` calls this method and the next two.
        """

    def constant_gradient(self, sigma: np.ndarray, class_sums: np.ndarray) -> np.ndarray:
        """Return the gradient in the weights if every row has the distribution ``sigma``."""

    def constant_value(self, sigma: np.ndarray, share: np.ndarray) -> float:
        """Return the dual value if every row has the distribution ``sigma``.

        ``share`` holds the share of each class.
        """

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return the class probabilities for scores of shape (n_rows, n_outputs)."""


class _SoftmaxLoss:
    """ln Σ_q exp(margin·1[q ≠ y] + f_q − f_y), with ``margin`` 0 or 1.

    The state is the matrix of probabilities ρ_q of eq. (6). The gradient in the scores is ρ − e_y.
    The second derivative is diag(ρ) − ρρᵀ, at most ½ (I − 11ᵀ/k).
    """

    margin: float
    shift_invariant = True

    def n_outputs(self, n_classes: int) -> int:
        """One score per class."""
        return n_classes

    def targets(self, y: np.ndarray, n_outputs: int) -> np.ndarray:
        """Return the class codes themselves, because the targets of all rows are kept."""
        return y

    def evaluate(
        self, scores: np.ndarray, target: np.ndarray, weight: np.ndarray, state: np.ndarray
    ) -> float:
        """Return the weighted sum of the losses, and store ρ in ``state``."""
        flat, at = state.reshape(-1), _flat(target)
        np.add(scores, scores.dtype.type(self.margin), out=state)
        flat[at] = scores.reshape(-1)[at]
        # Subtracting the largest entry keeps every exponent at most 0, so nothing overflows.
        state -= state.max(axis=0)
        true = flat[at]
        np.exp(state, out=state)
        total = state.sum(axis=0)
        state /= total
        return float(np.dot(np.log(total).astype(np.float64) - true, weight.astype(np.float64)))

    def residual(self, target: np.ndarray, weight: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Weight times (e_y − ρ)."""
        out = state * -weight
        out.reshape(-1)[_flat(target)] += weight
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
        """Return the smallest t for which σ is a distribution, and that σ."""
        excess = gradient - gradient.sum() * share  # make its sum exactly zero
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
        """Return the margin times the mass outside the true class, plus the entropy of σ."""
        inside = sigma[sigma > 0]
        entropy = -float(np.dot(inside, np.log(inside)))
        return self.margin * (1.0 - float(np.dot(share, sigma))) + entropy


def _flat(target: np.ndarray) -> np.ndarray:
    """Return the flat positions of the true classes in a block (n_outputs, n_rows)."""
    flat = target.astype(np.intp)
    flat *= len(flat)
    flat += _numbers(len(flat))
    return flat


@lru_cache(maxsize=8)  # nearly all blocks have the same length
def _numbers(n_rows: int) -> np.ndarray:
    """Return the numbers of the rows of a block."""
    return np.arange(n_rows)


class MarginLoss(_SoftmaxLoss):
    """ShareBoost's loss, eq. (3): ln Σ_q exp(1[q ≠ y] − f_y + f_q).

    A smooth upper bound on the multiclass hinge and on the 0-1 loss.
    """

    name = "margin"
    margin = 1.0

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return the probabilities under which the scores would be the population optimum.

        The margin stretches the scores, so their softmax s is over-confident. Setting the expected
        gradient Σ_y p_y (ρ(y) − e_y) to zero and solving for p gives p_q ∝ s_q (e − (e − 1) s_q).
        These probabilities have the same ranking but are less extreme.
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
        """Return the softmax of the scores."""
        return softmax(scores)


class BinaryLoss(ABC):
    """A convex loss l of the margin y f, y = ±1, for one score f (TotalQBoost eq. (1)).

    A subclass defines a name and the four abstract methods. The first two take arrays of any shape.
    The state is u = −l′(margin), the dual weight of every row, eq. (5). The second class is the
    positive one.
    """

    name: str
    shift_invariant = False

    @staticmethod
    @abstractmethod
    def at(margin: Any) -> tuple[Any, Any]:
        """Return the loss and the dual weight u = −l′, eq. (5)."""

    @staticmethod
    @abstractmethod
    def bend(u: Any) -> Any:
        """Return l″ as a function of u."""

    @abstractmethod
    def dual(self, u: float) -> float:
        """Return −l*(−u), the contribution of a row of dual weight u to the dual (7)."""

    @abstractmethod
    def positive(self, score: np.ndarray) -> np.ndarray:
        """Return the probability of the second class that makes a score the population optimum."""

    def n_outputs(self, n_classes: int) -> int:
        """Return 1, the number of scores for two classes."""
        if n_classes != 2:
            raise ValueError(
                f"Only binary classification is supported. The {self.name} loss is for two "
                f'classes, not {n_classes}; use loss="log" or loss="margin" for more'
            )
        return 1

    def targets(self, y: np.ndarray, n_outputs: int) -> np.ndarray:
        """Return the labels as -1 and 1."""
        return 2 * y.astype(np.int8) - 1

    def evaluate(
        self, scores: np.ndarray, target: np.ndarray, weight: np.ndarray, state: np.ndarray
    ) -> float:
        """Return the weighted sum of the losses, and store u in ``state``."""
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
        """Return a mixture in which all rows of one class have the dual weight one half.

        This is the class whose dual weights have the smaller sum.
        """
        g = float(gradient[0])
        light = int(g > 0)
        sigma = np.zeros(2)
        sigma[1 - light] = 0.5
        return abs(g) / (abs(g) + 0.5 * share[light]), sigma

    def constant_gradient(self, sigma: np.ndarray, class_sums: np.ndarray) -> np.ndarray:
        """Return −Σ_i weight_i y_i u_i x_i, where u_i is σ of the class that row i is not in."""
        return class_sums[:, :1] * sigma[1] - class_sums[:, 1:] * sigma[0]

    def constant_value(self, sigma: np.ndarray, share: np.ndarray) -> float:
        """Return the dual value of the u of `constant_gradient`."""
        return float(share[1] * self.dual(sigma[0]) + share[0] * self.dual(sigma[1]))

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return the probabilities of both classes."""
        p = self.positive(scores[:, 0])
        return np.column_stack([1.0 - p, p])


class ExponentialLoss(BinaryLoss):
    """e^−margin, the loss of AdaBoost and of all the paper's experiments.

    The loss is constant for margins below -80, so that no score makes it overflow.
    """

    name = "exponential"

    @staticmethod
    def at(margin: Any) -> tuple[Any, Any]:
        """Return the loss twice: it is its own dual weight."""
        u = np.exp(np.minimum(-margin, 80.0))
        return u, u

    @staticmethod
    def bend(u: Any) -> Any:
        """Return u: the loss is also its own curvature."""
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
        """Return the loss and the dual weight, which is the probability of the wrong class."""
        small = np.exp(-np.abs(margin))
        wrong = np.exp(-np.maximum(margin, 0.0)) / (1.0 + small)
        return np.log1p(small) + np.maximum(-margin, 0.0), wrong

    @staticmethod
    def bend(u: Any) -> Any:
        """u (1 − u)."""
        return u * (1.0 - u)

    def dual(self, u: float) -> float:
        """Return the entropy of u."""
        return float(-u * np.log(u) - (1.0 - u) * np.log1p(-u)) if 0 < u < 1 else 0.0

    def positive(self, score: np.ndarray) -> np.ndarray:
        """1 / (1 + e^−f)."""
        return sigmoid(score)


class SquaredHingeLoss(BinaryLoss):
    """max(1 − margin, 0)²."""

    name = "squared_hinge"

    @staticmethod
    def at(margin: Any) -> tuple[Any, Any]:
        """Return the loss and the dual weight, 2 max(1 − margin, 0)."""
        short = np.maximum(1.0 - margin, 0.0)
        return short * short, 2.0 * short

    @staticmethod
    def bend(u: Any) -> Any:
        """Return 2 where the margin is below 1, else 0."""
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
    """Return the class code of every row.

    It is the position of the largest score. With a single score, it is 1 above zero and else 0.
    """
    return scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(np.intp)


class OneVsRest:
    """Link for the scores of one squared hinge problem per class.

    Predictors use it; no fit minimises it. The population optimum of the squared hinge is
    f = 2p − 1.
    """

    name = "one_vs_rest"

    def n_outputs(self, n_classes: int) -> int:
        """Return one score per class."""
        return n_classes

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return (1 + f)/2 of every class, clipped to [0, 1] and scaled to sum to one."""
        p: np.ndarray = 0.5 * (1.0 + np.clip(scores, -1.0, 1.0))
        p[p.sum(axis=1) == 0.0] = 1.0
        p /= p.sum(axis=1, keepdims=True)
        return p


class ScoresOnly:
    """Link for one score per class that gives no probability, as in error clumping.

    A discount moves scores away from f = 2p − 1, the optimum of the squared hinge.
    """

    name = "scores"

    def n_outputs(self, n_classes: int) -> int:
        """Return one score per class."""
        return n_classes


class OneScore:
    """Link for two classes and one score that gives no probability, as of a linear classifier."""

    name = "one_score"

    def n_outputs(self, n_classes: int) -> int:
        """Return one score. More than two classes are refused."""
        if n_classes != 2:
            raise ValueError(f"one score tells 2 classes apart, not {n_classes}")
        return 1


def softmax(scores: np.ndarray) -> np.ndarray:
    """Return the row-wise softmax of (n_rows, n_outputs), stable for any finite scores."""
    shifted: np.ndarray = np.exp(scores - scores.max(axis=1, keepdims=True))
    shifted /= shifted.sum(axis=1, keepdims=True)
    return shifted


LOSSES: dict[str, type[MarginLoss] | type[LogLoss]] = {
    loss.name: loss for loss in (MarginLoss, LogLoss)
}
"""Losses with one score per class."""

BINARY_LOSSES: dict[str, type[BinaryLoss]] = {
    loss.name: loss for loss in (ExponentialLoss, LogisticLoss, SquaredHingeLoss)
}
"""Losses for two classes, functions of the margin of one score."""


def find_loss(loss: Any) -> Loss:
    """Return the loss of a name, or a loss object unchanged."""
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

    If the scores give probabilities, a link also has the method ``probabilities(scores)``, which
    returns them in the shape (n_rows, n_classes).
    """

    name: str

    def n_outputs(self, n_classes: int) -> int:
        """Return the number of scores of a row."""


LINKS: dict[str, Any] = {
    **LOSSES, **BINARY_LOSSES, OneVsRest.name: OneVsRest, ScoresOnly.name: ScoresOnly,
    OneScore.name: OneScore,
}  # fmt: skip
"""Links that a saved predictor can have, by name."""


def find_link(link: Any) -> Link:
    """Return the link of a name, or a loss object unchanged."""
    made: Link = LINKS[link]() if isinstance(link, str) and link in LINKS else find_loss(link)
    return made
