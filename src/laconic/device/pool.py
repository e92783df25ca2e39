"""The contract of a pool on a device, and the list of the pools that have such a form.

A pool on a device answers like a `laconic.pools.base.BoundPool`, but in tensors. Rows are along the
last axis, so that a column, or the residual of one output, is contiguous. Nothing is copied to the
host here: the shard copies sums when it needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from laconic.numeric.threads import Threads
from laconic.pools.base import BoundPool, Pool
from laconic.pools.mixed import Mixed
from laconic.registry import find

if TYPE_CHECKING:
    from torch import Tensor

DEVICE_POOLS = {
    "Columns": "laconic.device.columns:bind",
    "Products": "laconic.device.products:bind",
    "Stumps": "laconic.device.stumps:bind",
    "Patches": "laconic.device.patches:bind",
    "Hinges": "laconic.device.hinges:bind",
}
"""Functions that bind a pool to rows on a device, by the name of the pool's class.

They are called as ``bind(pool, X, weight, threads)`` and return a `DevicePool`. X (n_rows, d) is a
tensor in float32 or float64, finite or NaN if the pool allows missing values. The weights (n_rows,)
are a tensor in float64 on the same device. They are positive and sum to one. A function may keep X
or copy what it needs, for example codes. A pool with ``uses_labels = True`` gets one more argument:
the class codes of the rows, a tensor on the same device, or None.
"""


class DevicePool(Protocol):
    """A pool over rows on a device."""

    facts: BoundPool
    """The same pool bound on the host to a single row, with the survey of all rows. It knows
    everything about atoms that is no sum over rows: names, numbers, costs, maps."""
    dtype: np.dtype[Any]
    """Type of the training columns: float32 or float64."""

    def gradients(self, residual: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Yield the column sums of the residual, in few blocks ``(first_column, sums)``.

        ``residual`` is (n_outputs, n_rows) in `dtype`, weights included. ``sums`` is (columns in
        the block, n_outputs) in float64, on the device. The blocks begin where `BoundPool.seams`
        allows it. The same residual gives the same bits.
        """

    def squares(self, weight: Tensor) -> Tensor:
        """Return Σ_i weight_i x_ir² of every column, (n_columns,) in float64."""

    def columns(self, atoms: Sequence[int]) -> Tensor:
        """Return the scaled training columns of some atoms, (total width, n_rows), in `dtype`."""


def device_pool(
    pool: Pool, X: Tensor, weight: Tensor, threads: Threads, codes: Tensor | None = None
) -> DevicePool:
    """Return a pool bound to rows on a device; see `DEVICE_POOLS`.

    ``codes`` are the class codes of the rows, for pools that learn their atoms from labels.
    """
    from laconic.device.precision import full_precision  # it imports torch

    labels = (codes,) if getattr(pool, "uses_labels", False) else ()
    with full_precision():
        bound: DevicePool = find(DEVICE_POOLS[named(pool)])(pool, X, weight, threads, *labels)
    return bound


def named(pool: Pool, given: Any = None) -> str:
    """Return the name of a pool in `DEVICE_POOLS`. Refuse a pool that is not there.

    ``given`` is the pool as the user gave it, for the message.
    """
    name = type(pool).__name__
    if name not in DEVICE_POOLS:
        kind = (
            "a list of pools" if isinstance(pool, Mixed) else f"the pool {_in_words(pool, given)}"
        )
        raise TypeError(
            f'{kind} does not run on a device; use "columns", "products", "stumps", "hinges" '
            "or laconic.pools.Patches(...), or leave device out and give rows in the memory of the "
            "processor"
        )
    return name


def _in_words(pool: Pool, given: Any) -> str:
    given = given[0] if type(given) in (list, tuple) else given
    if isinstance(given, str):
        return f'"{given}"'
    return type(pool if given is None else given).__name__


def on_a_row(pool: Any, row: np.ndarray, survey: Any, threads: Threads) -> BoundPool:
    """Return the `facts` of a pool: bind it to one row (1, d), with the survey of all rows."""
    bound: BoundPool = pool.bind(row, np.ones(1), threads, survey)
    return bound
