"""Limits that say how the work over stumps is cut."""

from __future__ import annotations

from typing import NamedTuple

from laconic.pools.quantiles import LISTED, POINTS


class StumpLimits(NamedTuple):
    """Limits of the work. Only the first three change an answer by more than rounding."""

    sample: int = 200_000
    """Most rows that bin edges are found from."""
    listed: int = LISTED
    """Most values of a feature that a part of the rows lists. For more it gives a summary."""
    points: int = POINTS
    """Number of equal masses into which a summary cuts the whole."""
    narrow: int = 65_536
    """A feature with more codes stores its rows in sorted order instead of codes."""
    read: int = 16_384
    """Rows read at once. A block of eight features then stays in a core's cache."""
    block: int = 2**19
    """Sums in a block of a feature with very many thresholds (4 MiB)."""
    wave: int = 2**22
    """Sums that may wait until they are asked for (32 MiB)."""
