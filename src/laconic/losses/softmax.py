"""Losses with one score per class: the margin loss of ShareBoost and the multinomial log-loss."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from laconic.numeric.namespaces import as_type, is_tensor, namespace, number


class SoftmaxLoss:
    """ln Σ_q exp(margin·1[q ≠ y] + f_q − f_y), with ``margin`` 0 or 1.

    The state is the matrix of probabilities ρ_q of eq. (6). The gradient in the scores is ρ − e_y.
    The second derivative is diag(ρ) − ρρᵀ, at most ½ (I − 11ᵀ/k).
    """

    margin: float
    shift_invariant = True

    def n_outputs(self, n_classes: int) -> int:
        """One score per class."""
        return n_classes

    def targets(self, y: Any, n_outputs: int) -> Any:
        """Return the class codes themselves, because the targets of all rows are kept.

        Of a tensor, return where the true classes are. A device has the memory for it, and each
        step saved there is one launch less.
        """
        return _positions(y) if is_tensor(y) else y

    def evaluate(self, scores: Any, target: Any, weight: Any, state: Any) -> float:
        """Return the weighted sum of the losses, and store ρ in ``state``."""
        xp = namespace(state)
        flat, at = state.reshape(-1), _flat(target)
        xp.add(scores, self.margin, out=state)
        flat[at] = scores.reshape(-1)[at]
        # Subtracting the largest entry keeps every exponent at most 0, so nothing overflows.
        state -= xp.amax(state, axis=0)
        true = flat[at]
        xp.exp(state, out=state)
        total = state.sum(axis=0)
        state /= total
        lost = as_type(xp.log(total), "float64") - true
        return number(xp.dot(lost, as_type(weight, "float64")))

    def residual(self, target: Any, weight: Any, state: Any) -> Any:
        """Weight times (e_y − ρ)."""
        out = state * -weight
        out.reshape(-1)[_flat(target)] += weight
        return out

    def curve(self, weight: Any, state: Any, direction: Any) -> Any:
        """Weight times (ρ ∘ z − ρ ⟨ρ, z⟩)."""
        out = state * direction
        mean = out.sum(axis=0)
        direction = direction - mean
        namespace(state).multiply(state, direction, out=out)
        out *= weight
        return out

    def curvature(self, weight: Any, state: Any) -> Any:
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


def _flat(target: Any) -> Any:
    """Return the flat positions of the true classes in a block (n_outputs, n_rows)."""
    if is_tensor(target):
        return target
    flat = target.astype(np.intp)
    flat *= len(flat)
    flat += _numbers(len(flat))
    return flat


def _positions(y: Any) -> Any:
    """Return the same positions as a tensor."""
    return as_type(y, "int64") * len(y) + namespace(y).arange(len(y), device=y.device)


@lru_cache(maxsize=8)  # nearly all blocks have the same length
def _numbers(n_rows: int) -> np.ndarray:
    """Return the numbers of the rows of a block."""
    return np.arange(n_rows)


class MarginLoss(SoftmaxLoss):
    """ShareBoost's loss, eq. (3): ln Σ_q exp(1[q ≠ y] − f_y + f_q).

    A smooth upper bound on the multiclass hinge and on the 0-1 loss.
    """

    name = "margin"
    margin = 1.0

    def probabilities(self, scores: Any) -> Any:
        """Return the probabilities under which the scores would be the population optimum.

        The margin stretches the scores, so their softmax s is over-confident. Setting the expected
        gradient Σ_y p_y (ρ(y) − e_y) to zero and solving for p gives p_q ∝ s_q (e − (e − 1) s_q).
        These probabilities have the same ranking but are less extreme.
        """
        s = softmax(scores)
        p = s * (np.e - (np.e - 1.0) * s)
        p /= p.sum(axis=1, keepdims=True)
        return p


class LogLoss(SoftmaxLoss):
    """Multinomial log-loss: ln Σ_q exp(f_q − f_y)."""

    name = "log"
    margin = 0.0

    def probabilities(self, scores: Any) -> Any:
        """Return the softmax of the scores."""
        return softmax(scores)


def softmax(scores: Any) -> Any:
    """Return the row-wise softmax of (n_rows, n_outputs), stable for any finite scores."""
    xp = namespace(scores)
    shifted = xp.exp(scores - xp.amax(scores, axis=1, keepdims=True))
    shifted /= shifted.sum(axis=1, keepdims=True)
    return shifted


LOSSES: dict[str, type[MarginLoss] | type[LogLoss]] = {
    loss.name: loss for loss in (MarginLoss, LogLoss)
}
"""Losses with one score per class."""
