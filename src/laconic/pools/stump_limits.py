"""Where the work over stumps is cut."""

from __future__ import annotations

from typing import NamedTuple

from laconic.pools.quantiles import LISTED, POINTS


class StumpLimits(NamedTuple):
    """Where the work is cut. Only the first three change an answer by more than rounding."""

    sample: int = 200_000
    """Rows that bin edges are found from."""
    listed: int = LISTED
    """Values of a feature that a part of the rows lists; of more it gives a summary."""
    points: int = POINTS
    """What a summary cuts the mass into."""
    narrow: int = 65_536
    """A feature with more codes keeps its rows in sorted order instead of codes."""
    read: int = 16_384
    """Rows read at once: a block of eight features stays in a core's cache."""
    block: int = 2**19
    """Sums in a block of a feature with very many thresholds (4 MiB)."""
    wave: int = 2**22
    """Sums waiting to be asked for (32 MiB)."""
