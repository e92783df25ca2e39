"""What hole punching learns: holes, rows with their predictions, the state of the loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from laconic.holes.local_models import Weights


@dataclass(frozen=True)
class Hole:
    """A ball in the data space and the model inside it."""

    centre: np.ndarray
    """c, a training row."""
    radius: float
    """The hole is ‖x − c‖ ≤ radius."""
    row: int
    """Number of the centre among the rows given to ``fit``."""
    model: Any
    """A fitted classifier, or a constant (`sklearn.dummy.DummyClassifier`)."""
    kind: str
    """``"fitted"`` or ``"constant"``."""
    n_rows: int
    """Training rows inside, when it was punched."""
    error_before: float
    """Their weighted error before it was punched, more than one half."""
    error_after: float
    """Their weighted error with its model; lower."""
    held: tuple[int, float, float] | None = None
    """Held-out rows inside, and their weighted errors before and after (NaN without rows)."""


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
        """Weighted share of misclassified rows."""
        return float(self.weight[self.wrong].sum() / self.weight.sum())

    def errors(self, rows: np.ndarray, predicted: np.ndarray) -> float:
        """Weight of those rows that a prediction of them gets wrong."""
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
    """The same on held-out rows, where there are any."""
    status: str = "not started"

    def cut(self, n_holes: int) -> None:
        """Forget all holes but the first ones."""
        del self.holes[n_holes:], self.errors[n_holes + 1 :], self.held_errors[n_holes + 1 :]
