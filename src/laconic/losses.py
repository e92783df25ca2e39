"""Losses of a score matrix, shared by every estimator.

A loss sees blocks of scores laid out class-major, ``(n_outputs, n_rows)``, so that sums over
classes run along contiguous rows. It does not know what an atom is. Every value is weighted by the
row weights it is given; weights that sum to one make it a weighted mean.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Loss(Protocol):
    """What rows and correctors need of a loss."""

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

    def constant_value(self, sigma: np.ndarray, share: np.ndarray) -> float:
        """Dual value of giving every row the distribution ``sigma``; ``share`` of each class.

        See `laconic.objective.duality_gap`.
        """

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


class OneVsRest:
    """Scores of one squared hinge problem per class; a predictor's loss, nothing is boosted by it.

    The population optimum of the squared hinge is f = 2p − 1.
    """

    name = "one_vs_rest"

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """(1 + f)/2 of every class, at least 0 and at most 1, made to sum to one."""
        p: np.ndarray = 0.5 * (1.0 + np.clip(scores, -1.0, 1.0))
        p[p.sum(axis=1) == 0.0] = 1.0
        p /= p.sum(axis=1, keepdims=True)
        return p


def softmax(scores: np.ndarray) -> np.ndarray:
    """Row-wise softmax of (n_rows, n_outputs), stable for any finite scores."""
    shifted: np.ndarray = np.exp(scores - scores.max(axis=1, keepdims=True))
    shifted /= shifted.sum(axis=1, keepdims=True)
    return shifted


LOSSES: dict[str, type[MarginLoss] | type[LogLoss]] = {
    loss.name: loss for loss in (MarginLoss, LogLoss)
}

LINKS = {**LOSSES, OneVsRest.name: OneVsRest}
"""What a predictor's scores may mean as probabilities."""
