"""What a shard and its trials share: the rows of the shard in blocks, without columns."""

from __future__ import annotations

from math import isqrt
from typing import NamedTuple

import numpy as np

from laconic.losses import Loss
from laconic.losses.quick import quick
from laconic.numeric.threads import row_blocks
from laconic.pools.base import BoundPool
from laconic.rows.limits import Limits

# The loss of a score takes about as long as so many multiplications.
OF_SCORE = 8
# Columns of bits take as long as so many, if there are fewer; see `laconic.numeric.bits`.
OF_BITS = 32
# Calls for a block with local columns, instead of one.
LOCAL_CALLS = 4


class Rest(NamedTuple):
    """Targets and weights of the rows in blocks, the pool that is bound to them, and the loss."""

    pool: BoundPool
    loss: Loss
    work: Loss
    """The loss, perhaps compiled."""
    y: np.ndarray
    n_outputs: int
    compiled: bool
    """Whether the work on a block is compiled."""
    slices: list[slice]
    targets: list[np.ndarray]
    weights: list[np.ndarray]
    shares: np.ndarray
    limits: Limits
    first: int
    """Number of the first row among the rows of all shards."""

    @classmethod
    def of(
        cls,
        pool: BoundPool,
        loss: Loss,
        y: np.ndarray,
        weight: np.ndarray,
        n_outputs: int,
        limits: Limits,
        first: int,
    ) -> Rest:
        """Cut rows into blocks; see `laconic.rows.shard.in_memory`."""
        loads_numba = pool.loads_numba or pool.binary or pool.signs or pool.local_atoms
        many = limits.loaded if loads_numba else limits.compiled
        work = quick(loss) if len(y) * n_outputs >= many else loss
        compiled = work is not loss
        rows_of_block = limits.rows_of_block(len(y), n_outputs, compiled)
        slices = row_blocks(len(y), rows_of_block)
        targets = [loss.targets(y[s], n_outputs) for s in slices]
        if weight.strides == (0,):  # one number for all rows: all blocks share their weights
            same = np.full(rows_of_block, weight[0], dtype=pool.dtype)
            weights = [same[: s.stop - s.start] for s in slices]
        else:
            weights = [weight[s].astype(pool.dtype) for s in slices]
        n_classes = max(n_outputs, 2)  # one score tells two classes apart
        shares = np.bincount(y, weight, minlength=n_classes)[:n_classes]
        blocks = slices, targets, weights
        return cls(pool, loss, work, y, n_outputs, compiled, *blocks, shares, limits, first)

    def threads_for(self, n_columns: int, has_locals: bool) -> int:
        """Return on how many threads a pass over so many columns of all rows is fastest.

        With n threads, the work takes work / n plus the time to wake n threads. That is least for a
        number that grows like the square root of the work.
        """
        grain = self.limits.serial if self.compiled else self.limits.serial * self.limits.waiting
        if has_locals:
            grain *= LOCAL_CALLS
        if n_columns and (self.pool.binary or self.pool.signs):
            n_columns = max(n_columns, OF_BITS)
        work = len(self.y) * (n_columns + OF_SCORE) * self.n_outputs
        return isqrt(work // max(grain, 1))
