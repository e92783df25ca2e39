"""The order of columns in shards, where written columns come before those of local atoms.

Rows have their columns in the order of the atoms. If a pool has only local atoms, or none, both
orders are the same. In a mix of pools they may differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np


class Places:
    """Where the columns of the atoms are in a shard.

    Parameters
    ----------
    free : int
        Number of columns before those of the atoms: 1 with an intercept, otherwise 0.
    widths : sequence of int
        Number of columns of every atom.
    local : sequence of bool
        Whether each atom is local.
    """

    def __init__(self, free: int, widths: Sequence[int], local: Sequence[bool]) -> None:
        flags = np.repeat(np.array([False, *local]), [free, *widths])
        self.n_local_columns = int(np.count_nonzero(flags))
        self._moved = bool(np.any(flags[:-1] & ~flags[1:]))
        if self._moved:
            self._order = np.argsort(flags, kind="stable")
            self._back = np.argsort(self._order)
            ends = np.flatnonzero(np.diff(flags, prepend=not flags[0], append=not flags[-1]))
            self._runs = [(a, b) for a, b in pairwise(ends.tolist()) if not flags[a]]
            self._atom_is_local = list(local)
            self._ends = np.cumsum([free, *widths])

    def to_shard(self, columns: np.ndarray) -> np.ndarray:
        """Return numbers of the columns (n_columns, ...) in the order of the shards."""
        return columns[self._order] if self._moved else columns

    def from_shard(self, columns: np.ndarray) -> np.ndarray:
        """Return numbers of the shards' columns (n_columns, ...) in the order of the atoms."""
        return columns[self._back] if self._moved else columns

    def blocks(self, blocks: list[np.ndarray]) -> list[np.ndarray]:
        """Return diagonal blocks of the shards' columns in the order of the atoms.

        A block must cover columns that follow each other. So the block of all written columns is
        cut where a local atom comes between them. The blocks are estimates that speed up solvers,
        and they may be cut.
        """
        if not self._moved:
            return blocks
        written, *local = blocks
        found: list[tuple[int, np.ndarray]] = []
        for first, last in self._runs:
            own = self._back[first:last]
            found.append((first, written[:, own[:, None], own]))
        starts = self._ends[:-1][self._atom_is_local].tolist()
        found += zip(starts, local, strict=True)
        return [block for _, block in sorted(found, key=lambda item: item[0])]
