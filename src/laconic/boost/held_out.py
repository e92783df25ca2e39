"""Held-out rows that decide when the loop stops."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from laconic.boost.path import PathEntry
from laconic.losses import Loss
from laconic.numeric.namespaces import contiguous, namespace


@dataclass
class HeldOut:
    """Watches the loss on held-out rows and tells the loop when it no longer falls.

    Attributes
    ----------
    X, y, weight
        The held-out rows. ``y`` holds class codes, and ``weight`` sums to one. All three are
        arrays, or all are tensors on one device.
    training_loss : Loss
    patience : int
        Stop after this many rounds without a new lowest loss.
    """

    X: Any
    y: Any
    weight: Any
    training_loss: Loss
    patience: int
    losses: list[float] = field(default_factory=list)

    def __call__(self, entry: PathEntry) -> bool:
        """Record the entry's held-out loss. Return whether the path has grown enough."""
        self.losses.append(self.loss(entry))
        return len(self.losses) - 1 - int(np.argmin(self.losses)) >= self.patience

    def again(self) -> HeldOut:
        """Return a copy with the same rows and no recorded losses, for another path."""
        return replace(self, losses=[])

    def loss(self, entry: PathEntry) -> float:
        """Return the held-out loss of an entry's model."""
        return self.loss_of(entry.scores(self.X))

    def loss_of(self, scores: Any) -> float:
        """Return the loss of the scores (n_rows, n_outputs) of the held-out rows."""
        scores = contiguous(scores.T, "float64")
        target = self.training_loss.targets(self.y, len(scores))
        state = namespace(scores).empty_like(scores)
        return float(self.training_loss.evaluate(scores, target, self.weight, state))
