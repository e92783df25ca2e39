"""A held-out part that the loop watches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from laconic.boost.path import PathEntry
from laconic.losses import Loss


@dataclass
class HeldOut:
    """Watches the loss on held-out rows and says when it no longer falls.

    Attributes
    ----------
    X, y, weight
        The held-out rows; ``y`` are class codes, ``weight`` sums to one.
    training_loss : Loss
    patience : int
        Rounds without a new lowest loss after which to stop.
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray
    training_loss: Loss
    patience: int
    losses: list[float] = field(default_factory=list)

    def __call__(self, entry: PathEntry) -> bool:
        """Note the entry's held-out loss; whether the path has grown enough."""
        self.losses.append(self.loss(entry))
        return len(self.losses) - 1 - int(np.argmin(self.losses)) >= self.patience

    def again(self) -> HeldOut:
        """The same rows for another path, of which nothing has been seen."""
        return replace(self, losses=[])

    def loss(self, entry: PathEntry) -> float:
        """Held-out loss of an entry's model."""
        scores = np.ascontiguousarray(entry.scores(self.X).T, dtype=np.float64)
        target = self.training_loss.targets(self.y, len(scores))
        return self.training_loss.evaluate(scores, target, self.weight, np.empty_like(scores))
