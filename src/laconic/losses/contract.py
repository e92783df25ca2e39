"""Losses of a score matrix, shared by every estimator.

A loss gets blocks of scores of shape ``(n_outputs, n_rows)``, so that sums over classes run along
contiguous rows. It does not know what an atom is. Every value is a sum weighted by the given row
weights. If they sum to one, it is a weighted mean.

Scores, targets, weights and states are arrays of NumPy, or all of them are tensors of torch on one
device. A loss is written once for both; see `laconic.numeric.namespaces`.
"""

from __future__ import annotations

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

    def targets(self, y: Any, n_outputs: int) -> Any:
        """Convert the class codes ``y`` of a block to the form that `evaluate` takes."""

    def evaluate(self, scores: Any, target: Any, weight: Any, state: Any) -> float:
        """Return the weighted sum of the losses, and fill ``state`` for the methods below.

        Of tensors, it is a tensor of one number in float64, so that nothing waits for the device.
        """

    def residual(self, target: Any, weight: Any, state: Any) -> Any:
        """Return the negative gradient of the weighted sum in the scores."""

    def curve(self, weight: Any, state: Any, direction: Any) -> Any:
        """Return the second derivative in the scores times ``direction``, row by row."""

    def curvature(self, weight: Any, state: Any) -> Any:
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

    def probabilities(self, scores: Any) -> Any:
        """Return the class probabilities for scores of shape (n_rows, n_outputs)."""


class Link(Protocol):
    """What a predictor's scores mean.

    If the scores give probabilities, a link also has the method ``probabilities(scores)``, which
    returns them in the shape (n_rows, n_classes).
    """

    name: str

    def n_outputs(self, n_classes: int) -> int:
        """Return the number of scores of a row."""
