"""Bounds on the curvature of losses, so that rows of little curvature need not be looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from laconic.losses.binary import ExponentialLoss, LogisticLoss, SquaredHingeLoss
from laconic.losses.contract import Loss
from laconic.losses.softmax import LogLoss, MarginLoss


def most_curvature(loss: Loss, state: np.ndarray) -> float:
    """Return a bound on the curvature of a row of weight one, summed over its outputs.

    ``state`` is the loss state of all rows. The bound is infinite for a loss that is not known. A
    subclass is not known, because a user may have changed its curvature.
    """
    bound = _BOUNDS.get(type(loss))
    return np.inf if bound is None else bound(state)


def _of_softmax(state: np.ndarray) -> float:
    """Σ_q ρ_q (1 − ρ_q) is below 1."""
    return 1.0


def _of_exponential(u: np.ndarray) -> float:
    """The curvature is u."""
    return float(u.max(initial=0.0))


def _of_logistic(u: np.ndarray) -> float:
    """u (1 − u) is at most 1/4."""
    return 0.25


def _of_squared_hinge(u: np.ndarray) -> float:
    """The curvature is 0 or 2."""
    return 2.0


_BOUNDS: dict[type[Any], Callable[[np.ndarray], float]] = {
    MarginLoss: _of_softmax,
    LogLoss: _of_softmax,
    ExponentialLoss: _of_exponential,
    LogisticLoss: _of_logistic,
    SquaredHingeLoss: _of_squared_hinge,
}
