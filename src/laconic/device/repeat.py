"""Steps over batches of one size, repeated as a graph on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laconic.device.newton_steps import captured


class Repeated:
    """A step over batches. On a GPU its kernels are launched together.

    The first batch is worked on as it is, so that libraries are ready. The second one of its shape
    is recorded. Batches of another shape, such as the last one of an epoch, are worked on as they
    are.

    Parameters
    ----------
    step : callable
        Takes a batch, a named tuple of tensors. What it changes, it changes in place.
    """

    def __init__(self, step: Callable[[Any], None]) -> None:
        self._step = step
        self._graph: Any = None
        self._held: Any = None

    def __call__(self, batch: Any) -> None:
        """Take a step."""
        if not batch[0].is_cuda:
            self._step(batch)
        elif self._held is None:
            self._step(batch)
            self._held = type(batch)(*(array.clone() for array in batch))
        elif any(a.shape != b.shape for a, b in zip(batch, self._held, strict=True)):
            self._step(batch)
        else:
            for held, array in zip(self._held, batch, strict=True):
                held.copy_(array)
            if self._graph is None:
                self._graph = captured(lambda: self._step(self._held), held.device, None)
            self._graph.replay()
