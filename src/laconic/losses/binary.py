"""Losses of the margin of one score, for two classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from laconic.numeric.namespaces import as_type, namespace, number


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
    def positive(self, score: Any) -> Any:
        """Return the probability of the second class that makes a score the population optimum."""

    def n_outputs(self, n_classes: int) -> int:
        """Return 1, the number of scores for two classes."""
        if n_classes != 2:
            raise ValueError(
                f"Only binary classification is supported. The {self.name} loss is for two "
                f'classes, not {n_classes}; use loss="log" or loss="margin" for more'
            )
        return 1

    def targets(self, y: Any, n_outputs: int) -> Any:
        """Return the labels as -1 and 1."""
        return 2 * as_type(y, "int8") - 1

    def evaluate(self, scores: Any, target: Any, weight: Any, state: Any) -> float:
        """Return the weighted sum of the losses, and store u in ``state``."""
        value, u = self.at(scores[0] * as_type(target, scores.dtype))
        state[0] = u
        values = as_type(value, "float64")
        return number(namespace(state).dot(values, as_type(weight, "float64")))

    def residual(self, target: Any, weight: Any, state: Any) -> Any:
        """Weight times y u."""
        return state * (weight * as_type(target, state.dtype))

    def curve(self, weight: Any, state: Any, direction: Any) -> Any:
        """Weight times l″ z."""
        return self.curvature(weight, state) * direction

    def curvature(self, weight: Any, state: Any) -> Any:
        """Weight times l″."""
        return self.bend(state) * weight

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

    def probabilities(self, scores: Any) -> Any:
        """Return the probabilities of both classes."""
        p = self.positive(scores[:, 0])
        return namespace(scores).column_stack([1.0 - p, p])


class ExponentialLoss(BinaryLoss):
    """e^−margin, the loss of AdaBoost and of all the paper's experiments.

    The loss is constant for margins below -80, so that no score makes it overflow.
    """

    name = "exponential"

    @staticmethod
    def at(margin: Any) -> tuple[Any, Any]:
        """Return the loss twice: it is its own dual weight."""
        u = namespace(margin).exp((-margin).clip(None, 80.0))
        return u, u

    @staticmethod
    def bend(u: Any) -> Any:
        """Return u: the loss is also its own curvature."""
        return u

    def dual(self, u: float) -> float:
        """u − u ln u."""
        return float(u - u * np.log(u)) if u > 0 else 0.0

    def positive(self, score: Any) -> Any:
        """1 / (1 + e^−2f)."""
        return sigmoid(2.0 * score)


class LogisticLoss(BinaryLoss):
    """ln(1 + e^−margin)."""

    name = "logistic"

    @staticmethod
    def at(margin: Any) -> tuple[Any, Any]:
        """Return the loss and the dual weight, which is the probability of the wrong class."""
        xp = namespace(margin)
        small = xp.exp(-xp.abs(margin))
        wrong = xp.exp(-margin.clip(0.0)) / (1.0 + small)
        return xp.log1p(small) + (-margin).clip(0.0), wrong

    @staticmethod
    def bend(u: Any) -> Any:
        """u (1 − u)."""
        return u * (1.0 - u)

    def dual(self, u: float) -> float:
        """Return the entropy of u."""
        return float(-u * np.log(u) - (1.0 - u) * np.log1p(-u)) if 0 < u < 1 else 0.0

    def positive(self, score: Any) -> Any:
        """1 / (1 + e^−f)."""
        return sigmoid(score)


class SquaredHingeLoss(BinaryLoss):
    """max(1 − margin, 0)²."""

    name = "squared_hinge"

    @staticmethod
    def at(margin: Any) -> tuple[Any, Any]:
        """Return the loss and the dual weight, 2 max(1 − margin, 0)."""
        short = (1.0 - margin).clip(0.0)
        return short * short, 2.0 * short

    @staticmethod
    def bend(u: Any) -> Any:
        """Return 2 where the margin is below 1, else 0."""
        return 2.0 * namespace(u).sign(u)

    def dual(self, u: float) -> float:
        """u − u²/4."""
        return u - 0.25 * u * u

    def positive(self, score: Any) -> Any:
        """(1 + f) / 2, at least 0 and at most 1."""
        return 0.5 * (1.0 + score.clip(-1.0, 1.0))


def sigmoid(score: Any) -> Any:
    """1 / (1 + e^−score), stable for any finite score."""
    xp = namespace(score)
    small = xp.exp(-xp.abs(score))
    return xp.exp(-(-score).clip(0.0)) / (1.0 + small)


BINARY_LOSSES: dict[str, type[BinaryLoss]] = {
    loss.name: loss for loss in (ExponentialLoss, LogisticLoss, SquaredHingeLoss)
}
"""Losses for two classes, functions of the margin of one score."""
