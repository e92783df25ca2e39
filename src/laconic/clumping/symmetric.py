"""Make a symmetric graph from pairs of rows that come a few at a time."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from laconic.clumping.graph import (
    BitStore,
    GraphLimits,
    NeighbourGraph,
    graph_of,
    graph_of_bits,
)
from laconic.numeric.memory import warn_if_too_large

# Most bytes that a pair takes while lists are made of all pairs.
PAIR_BYTES = 32
FEWER = "take fewer neighbours (a smaller radius or n_neighbors), or fit a sample of the rows"


class Edges:
    """Collects pairs of rows and makes a graph of them.

    While there are few pairs, they are kept as pairs. As soon as lists would take more memory on
    the way, they are kept as bits. So making a graph never takes much more than m²/8 bytes.

    Parameters
    ----------
    n_rows : int
    limits : GraphLimits
    """

    def __init__(self, n_rows: int, limits: GraphLimits) -> None:
        self.n_rows = n_rows
        self.limits = limits
        self._pairs: list[np.ndarray] = []
        self._count = 0
        self._store: BitStore | None = None

    def expect(self, n_pairs: float) -> None:
        """Warn if a graph of ``n_pairs`` pairs will not fit in memory."""
        n_bytes = min(PAIR_BYTES * n_pairs, self.n_rows * self.n_rows / 8.0)
        warn_if_too_large(n_bytes, f"the graph of the neighbours of {self.n_rows} rows", FEWER)

    def add(self, i: np.ndarray, j: np.ndarray) -> None:
        """Make rows i and j neighbours, pair by pair. Pairs of a row with itself are left out."""
        other = i != j
        pairs = np.stack([i[other], j[other]]).astype(np.int32)
        self._count += pairs.shape[1]
        if self._store is not None:
            self._set(pairs)
            return
        self._pairs.append(pairs)
        if PAIR_BYTES * self._count > self.n_rows * self.n_rows / 8.0:
            self._store = BitStore.empty(self.n_rows, self.limits)
            while self._pairs:
                self._set(self._pairs.pop())

    def _set(self, pairs: np.ndarray) -> None:
        from laconic.clumping.neighbour_kernels import set_bits  # here, because it imports Numba

        assert self._store is not None
        for rows, others in (pairs, pairs[::-1]):
            set_bits(self._store.codes, rows, others)

    def graph(self) -> NeighbourGraph:
        """Return the graph of all pairs so far."""
        m = self.n_rows
        if self._store is not None:
            return graph_of_bits(self._store, m)
        i, j = np.concatenate([np.empty((2, 0), dtype=np.int32), *self._pairs], axis=1)
        self._pairs.clear()
        one_way = sparse.csr_matrix((np.ones(len(i), dtype=bool), (i, j)), shape=(m, m))
        return graph_of(one_way + one_way.T, self.limits)
