"""Check whether a loss of the user takes tensors, before a fit on a device needs it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from laconic.losses import Loss


class NotOfNumPy(Tensor):
    """A tensor that NumPy cannot read, wherever it is, like the tensors of a GPU.

    NumPy reads tensors in the memory of the processor. So without it, a loss that calls NumPy would
    be refused on a GPU only.
    """

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("a function of NumPy was given a tensor")

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse, as a tensor on a GPU does."""
        raise TypeError("the tensor is on a device, and was asked for an array of NumPy")

    def cpu(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return a usual tensor in the memory of the processor, which NumPy reads."""
        return self.as_subclass(Tensor).cpu(*args, **kwargs)


def check_loss(loss: Loss, scores: Tensor) -> None:
    """Refuse a loss of the user that cannot take tensors. Scores are (n_outputs, n_rows)."""
    y, weight = torch.zeros_like(scores[0], dtype=torch.int64), torch.ones_like(scores[0])
    given = scores, y, weight, torch.zeros_like(scores)
    scores, y, weight, state = (tensor.as_subclass(NotOfNumPy) for tensor in given)
    try:
        target = loss.targets(y, len(scores))
        loss.evaluate(scores, target, weight, state)
        loss.residual(target, weight, state)
        loss.curve(weight, state, scores)
        loss.curvature(weight, state)
    except (TypeError, AttributeError) as error:
        raise TypeError(
            f"the loss {loss.name!r} does not take tensors ({error}); write it with the functions "
            "of laconic.numeric.namespaces.namespace(scores), or fit on the processor"
        ) from error
