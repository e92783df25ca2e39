"""Losses of many rows, on many threads."""

from __future__ import annotations

from typing import Any

from laconic.losses.contract import Loss
from laconic.losses.softmax import SoftmaxLoss


def quick(loss: Loss) -> Loss:
    """Return a loss that computes in a few long calls without the interpreter's lock.

    Its answers are the same up to rounding. A loss without such a form is returned as it is. So is
    a loss whose methods are not those of `SoftmaxLoss`, because a user may have changed one.
    """
    usual = all(
        getattr(type(loss), name, None) is getattr(SoftmaxLoss, name)
        for name in ("evaluate", "residual", "curve", "curvature")
    )
    return QuickSoftmax(loss) if usual else loss


class QuickSoftmax:
    """A softmax loss whose sums over the rows of a block are compiled."""

    def __init__(self, loss: Any) -> None:
        self._loss = loss

    def evaluate(self, scores: Any, target: Any, weight: Any, state: Any) -> float:
        """Return the weighted sum of the losses, and store ρ in ``state``."""
        from laconic.losses import softmax_kernels  # here, because it imports Numba

        return softmax_kernels.evaluate(self._loss.margin, scores, target, weight, state)

    def residual(self, target: Any, weight: Any, state: Any) -> Any:
        """Return the negative gradient of the weighted sum in the scores."""
        from laconic.losses import softmax_kernels

        return softmax_kernels.residual(target, weight, state)

    def curvature(self, weight: Any, state: Any) -> Any:
        """Return the diagonal of the second derivative in the scores."""
        from laconic.losses import softmax_kernels

        return softmax_kernels.curvature(weight, state)

    def curve(self, weight: Any, state: Any, direction: Any) -> Any:
        """Return the second derivative in the scores times ``direction``."""
        from laconic.losses import softmax_kernels

        return softmax_kernels.curve(weight, state, direction)

    def __getattr__(self, name: str) -> Any:
        if name == "_loss":  # while it is unpickled
            raise AttributeError(name)
        return getattr(self._loss, name)
