"""What rows are bound to for a fit, wherever they are."""

from __future__ import annotations

from typing import NamedTuple

from laconic.losses import Loss
from laconic.numeric.threads import Threads
from laconic.pools.base import Pool
from laconic.rows.limits import Limits


class RowsAsked(NamedTuple):
    """What a fit asks of its rows."""

    pool: Pool
    signs: bool
    """Whether columns of 0 and 1 are used as columns of -1 and 1."""
    loss: Loss
    n_outputs: int
    threads: Threads
    intercept: bool
    limits: Limits
    opens: bool = False
    """Whether atoms outside the pool's list may join it; see `laconic.pools.opened`."""
