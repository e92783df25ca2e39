"""The naive twin of every pool on a device: it asks the pool of the processor."""

import numpy as np
import torch

from laconic.numeric.parts import Here
from laconic.pools.parts import BoundInPlace


class StandIn:
    """A pool whose answers are those of NumPy, as tensors."""

    def __init__(self, pool, X, *rest, threads):
        parts = [tuple(array.cpu().numpy() for array in (X, *rest))]
        bound = BoundInPlace(pool, Here(parts, threads))
        self.facts, self._device = bound.pattern(), X.device
        self._bound = bound.parts.ask(lambda part, threads: part[0])[0]
        self.dtype = self._bound.dtype

    def gradients(self, residual):
        for first, sums in self._bound.gradients(np.ascontiguousarray(residual.cpu().numpy().T)):
            yield first, torch.from_numpy(sums).to(self._device)

    def squares(self, weight):
        return torch.from_numpy(self._bound.squares(weight.cpu().numpy())).to(self._device)

    def columns(self, atoms):
        columns = np.ascontiguousarray(self._bound.columns(atoms).T)
        return torch.from_numpy(columns).to(self._device)


def bind(pool, X, weight, threads, *labels):
    return StandIn(pool, X, *labels, weight, threads=threads)
