"""Columns of zeros and ones on a device, used as columns of -1 and 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from laconic.device.pool import DevicePool
from laconic.device.tensors import tensor_type
from laconic.pools.base import BoundPool
from laconic.pools.signs import Signs


class DeviceSigns:
    """A pool of 0/1 columns c on a device, used as h = 2c − 1; see `laconic.pools.signs`."""

    def __init__(self, pool: DevicePool) -> None:
        self._pool = pool
        self.facts: BoundPool = Signs(pool.facts)
        self.dtype: np.dtype[Any] = self.facts.dtype

    def gradients(self, residual: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Yield twice the sums of the 0/1 columns, minus the sums over all rows."""
        whole = residual.sum(1, dtype=torch.float64)
        for first, sums in self._pool.gradients(residual.to(tensor_type(self._pool.dtype))):
            yield first, 2.0 * sums - whole

    def squares(self, weight: Tensor) -> Tensor:
        """Return the sum of the weights for every column, because every h² is 1."""
        return weight.sum(dtype=torch.float64).expand(self.facts.n_columns)

    def columns(self, atoms: Sequence[int]) -> Tensor:
        """Return the training columns of -1 and 1."""
        return 2 * self._pool.columns(atoms).to(tensor_type(self.dtype)) - 1


def as_device_signs(pool: DevicePool) -> DevicePool:
    """Return a pool on a device whose columns of 0 and 1 are used as columns of -1 and 1."""
    return DeviceSigns(pool) if pool.facts.binary else pool
