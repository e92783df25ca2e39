"""The results of hole punching: holes, rows with their predictions, and the loop's state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from laconic.holes.local_models import Weights


@dataclass(frozen=True)
class Hole:
    """A ball in the data space and the model inside it."""

    centre: np.ndarray
    """The centre c, a training row."""
    radius: float
    """The hole is the ball ‖x − c‖ ≤ radius."""
    row: int
    """Number of the centre among the rows given to ``fit``."""
    model: Any
    """A fitted classifier, or a constant (`sklearn.dummy.DummyClassifier`)."""
    kind: str
    """``"fitted"`` or ``"constant"``."""
    n_rows: int
    """Number of training rows inside when it was punched."""
    error_before: float
    """Weighted error of these rows before it was punched. It is more than one half."""
    error_after: float
    """Weighted error of these rows with the hole's model. It is lower."""
    held: tuple[int, float, float] | None = None
    """Number of held-out rows inside, and their weighted errors before and after (NaN if none)."""


@dataclass
class Part:
    """Rows with their labels, weights and the labels predicted so far."""

    X: Any
    y: np.ndarray
    weights: Weights
    number: np.ndarray
    """Numbers of the rows among those given to ``fit``."""
    predicted: np.ndarray = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        self.weight = self.weights.product

    @property
    def wrong(self) -> np.ndarray:
        """Whether each row is misclassified."""
        return self.predicted != self.y

    def error(self) -> float:
        """Return the weighted share of misclassified rows."""
        return float(self.weight[self.wrong].sum() / self.weight.sum())

    def errors(self, rows: np.ndarray, predicted: np.ndarray) -> float:
        """Return the weight of those ``rows`` whose ``predicted`` label is wrong."""
        return float(self.weight[rows[predicted != self.y[rows]]].sum())


@dataclass
class PunchState:
    """What the loop has learned."""

    base: Any
    """The classifier outside the holes, h in eq. (6)."""
    holes: list[Hole] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    """Weighted training error with 0, 1, 2, … holes."""
    held_errors: list[float] = field(default_factory=list)
    """The same on held-out rows, if there are any."""
    status: str = "not started"

    def cut(self, n_holes: int) -> None:
        """Keep only the first ``n_holes`` holes."""
        del self.holes[n_holes:], self.errors[n_holes + 1 :], self.held_errors[n_holes + 1 :]
