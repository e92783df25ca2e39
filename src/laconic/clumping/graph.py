"""A symmetric graph of neighbouring rows, and sums over neighbours.

A graph is stored in the smaller of two ways: as lists of neighbours (4 bytes each), or as bits,
eight to a byte (m²/8 bytes for any number of neighbours). Lists are smaller if fewer than one in 32
rows is a neighbour.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from laconic.numeric.threads import Threads, row_blocks

# Number of rows whose bits are written out at a time, one byte for each bit.
WRITTEN = 256


class GraphLimits(NamedTuple):
    """Settings for making and storing graphs. None of them changes which rows are neighbours."""

    rows: int = 4096
    """Rows in a run. One thread adds up the sums of a run. The look-up tables of the bits are made
    again for each run. There are enough rows for the tables to cost little, and few enough for the
    sums to stay in cache."""
    lists_below: float = 1 / 32
    """Below this share of the pairs, lists of neighbours take less memory than bits."""
    side: int = 1024
    """Longest side of a tile of a radius graph. It divides ``rows``."""
    panel: int = 4
    """Most blocks of rows that a thread holds. It makes as many others one by one, and uses each
    for all blocks that it holds."""
    listed: int = 1 << 20
    """Number of nearest rows that are listed at a time."""
    held: int = 1 << 22
    """Number of distances (of metrics that are not Euclidean), or of entries of a given graph, that
    are held at a time."""

    def prefer_lists(self, n_entries: float, n_rows: int) -> bool:
        """Return whether lists of neighbours take less memory than bits."""
        return n_entries < self.lists_below * n_rows * n_rows


class EdgeStore(Protocol):
    """Storage of the neighbours of every row."""

    nbytes: int
    limits: GraphLimits

    def sums(self, values: np.ndarray, rows: slice) -> np.ndarray:
        """Return sums of values (n_outputs, m) over neighbours of rows: (n_outputs, n_rows)."""

    def neighbours(self, row: int) -> np.ndarray:
        """Return the sorted numbers of a row's neighbours."""

    def matrix(self, rows: slice) -> sparse.csr_matrix:
        """Return the rows of the 0/1 matrix, sparse."""

    def subset(self, rows: np.ndarray) -> NeighbourGraph:
        """Return the graph of some rows, in their order."""


class ListStore:
    """Lists of neighbours, one after another."""

    def __init__(self, starts: np.ndarray, indices: np.ndarray, limits: GraphLimits) -> None:
        self.limits = limits
        self.starts = starts
        self.indices = indices
        self.nbytes = starts.nbytes + indices.nbytes

    def sums(self, values: np.ndarray, rows: slice) -> np.ndarray:
        """Return sums of values over the neighbours of some rows."""
        from laconic.clumping.neighbour_kernels import add_lists  # here, because it imports Numba

        out = np.empty((len(values), rows.stop - rows.start))
        add_lists(self.starts[rows.start : rows.stop + 1], self.indices, values, out)
        return out

    def neighbours(self, row: int) -> np.ndarray:
        """Return the sorted numbers of a row's neighbours."""
        return self.indices[self.starts[row] : self.starts[row + 1]]

    def matrix(self, rows: slice) -> sparse.csr_matrix:
        """Return the rows of the 0/1 matrix, sparse."""
        starts = self.starts[rows.start : rows.stop + 1]
        indices = self.indices[starts[0] : starts[-1]]
        shape = (rows.stop - rows.start, len(self.starts) - 1)
        ones = np.ones(len(indices), dtype=np.int8)
        return sparse.csr_matrix((ones, indices, starts - starts[0]), shape=shape)

    def subset(self, rows: np.ndarray) -> NeighbourGraph:
        """Return the graph of some rows, in their order."""
        whole = self.matrix(slice(0, len(self.starts) - 1))
        return graph_of(whole[rows][:, rows], self.limits)


class BitStore:
    """Neighbours as bits, in runs of ``limits.rows`` rows.

    Byte ``codes[r, j, i]`` says which of rows 8j to 8j + 7 are neighbours of row i of run r.
    """

    def __init__(self, codes: np.ndarray, n_rows: int, limits: GraphLimits) -> None:
        self.limits = limits
        self.codes = codes
        self.n_rows = n_rows
        self.nbytes = codes.nbytes

    @classmethod
    def empty(cls, n_rows: int, limits: GraphLimits) -> BitStore:
        """Return a store in which no row has neighbours yet."""
        runs, width = -(-n_rows // limits.rows), min(n_rows, limits.rows)
        return cls(np.zeros((runs, -(-n_rows // 8), width), dtype=np.uint8), n_rows, limits)

    @classmethod
    def of(cls, near: Callable[[slice], np.ndarray], n_rows: int, limits: GraphLimits) -> BitStore:
        """Return the store of ``near``, which gives the neighbours of some rows as a 0/1 matrix."""
        store = cls.empty(n_rows, limits)
        for run, rows in enumerate(row_blocks(n_rows, limits.rows)):
            for some in row_blocks(rows.stop - rows.start, WRITTEN):
                bits = near(slice(rows.start + some.start, rows.start + some.stop))
                store.codes[run, :, some] = np.packbits(bits, axis=1, bitorder="little").T
        return store

    def sums(self, values: np.ndarray, rows: slice) -> np.ndarray:
        """Return sums of values over the neighbours of a run of rows."""
        from laconic.numeric.bits import Bits  # here, because it imports Numba

        product = Bits.of(self.codes[rows.start // self.limits.rows]).product(values)
        return product[:, : rows.stop - rows.start]

    def neighbours(self, row: int) -> np.ndarray:
        """Return the sorted numbers of a row's neighbours."""
        run, place = divmod(row, self.limits.rows)
        return np.flatnonzero(np.unpackbits(self.codes[run, :, place], bitorder="little"))

    def matrix(self, rows: slice) -> sparse.csr_matrix:
        """Return a run of rows of the 0/1 matrix, sparse."""
        codes, parts = self.codes[rows.start // self.limits.rows], []
        for some in row_blocks(rows.stop - rows.start, WRITTEN):
            bits = np.unpackbits(codes[:, some], axis=0, count=self.n_rows, bitorder="little")
            parts.append(sparse.csr_matrix(bits.T.view(np.int8)))
        return sparse.vstack(parts, format="csr")

    def subset(self, rows: np.ndarray) -> NeighbourGraph:
        """Return the graph of some rows, in their order. It never takes more memory than bits."""

        def near(some: slice) -> np.ndarray:
            run, place = np.divmod(rows[some], self.limits.rows)
            bits = np.unpackbits(self.codes[run, :, place], axis=1, bitorder="little")
            return bits[:, rows]

        return graph_of_bits(BitStore.of(near, len(rows), self.limits), len(rows))


class NeighbourGraph:
    """A symmetric graph of neighbouring rows. No row is its own neighbour.

    `laconic.clumping.neighbours` makes such graphs.

    Attributes
    ----------
    n_rows : int
    degrees : ndarray of shape (n_rows,)
        Number of neighbours of every row.
    share : float
        Share of the pairs of rows that are neighbours.
    nbytes : int
        Bytes of memory that the neighbours take.
    """

    def __init__(self, store: EdgeStore, n_rows: int, degrees: np.ndarray | None = None) -> None:
        self._store = store
        self.n_rows = n_rows
        if degrees is None:
            degrees = self.sums(np.ones(n_rows)).round().astype(np.int64)
        self.degrees = degrees
        pairs = max(n_rows * (n_rows - 1), 1)
        self.share = float(self.degrees.sum()) / pairs
        self.nbytes = store.nbytes

    def __repr__(self) -> str:
        return (
            f"NeighbourGraph({self.n_rows} rows, {100 * self.share:.3g} % of pairs, "
            f"{self.nbytes / 1e6:.3g} MB)"
        )

    def sums(self, values: np.ndarray, threads: Threads | None = None) -> np.ndarray:
        """Return the sums over the neighbours of every row, A v.

        Parameters
        ----------
        values : ndarray of shape (n_rows,) or (n_outputs, n_rows)
        threads : Threads, default=None
            Threads that compute. By default, the calling thread does it alone. The number of
            threads does not change the answer.

        Returns
        -------
        ndarray of the same shape, float64
        """
        flat = np.ascontiguousarray(np.atleast_2d(values), dtype=np.float64)
        if flat.shape[1] != self.n_rows:
            raise ValueError(f"values must have {self.n_rows} entries per row, not {flat.shape[1]}")
        out = np.empty_like(flat)

        def part(rows: slice) -> None:
            out[:, rows] = self._store.sums(flat, rows)

        runs = self._runs()
        list(map(part, runs) if threads is None else threads.map(part, runs))
        return out[0] if np.ndim(values) == 1 else out

    def weighted_share(self, weight: np.ndarray, threads: Threads | None = None) -> float:
        """Return the share of the pairs of copies that are neighbours.

        A row of weight s has s copies, which are neighbours of each other.
        """
        part = weight / weight.max()  # products of the weights themselves might overflow
        whole = 1.0 / weight.max()
        near = self.sums(part, threads) + np.maximum(part - whole, 0.0)
        others = part.sum() - np.minimum(part, whole)
        pairs = float(part @ others)
        return float(part @ near) / pairs if pairs > 0 else 0.0

    def neighbours(self, row: int) -> np.ndarray:
        """Return the sorted numbers of the neighbours of one row."""
        return self._store.neighbours(row)

    def to_sparse(self) -> sparse.csr_matrix:
        """Return the 0/1 matrix as a sparse matrix of int8."""
        parts = [self._store.matrix(rows) for rows in self._runs()]
        return (
            sparse.vstack(parts, format="csr") if parts else sparse.csr_matrix((0, 0), dtype="i1")
        )

    def digest(self) -> str:
        """Return a digest of which rows are neighbours."""
        sha = hashlib.sha256()
        for rows in self._runs():
            part = self._store.matrix(rows)
            sha.update(part.indptr.astype(np.int64).data)
            sha.update(part.indices.astype(np.int32).data)
        return sha.hexdigest()

    def subset(self, rows: np.ndarray) -> NeighbourGraph:
        """Return the graph of some rows, in their order."""
        return self._store.subset(rows)

    def _runs(self) -> list[slice]:
        return row_blocks(self.n_rows, self._store.limits.rows)


def empty_graph(n_rows: int) -> NeighbourGraph:
    """Return the graph in which no row has a neighbour."""
    starts, indices = np.zeros(n_rows + 1, dtype=np.int64), np.empty(0, dtype=np.int32)
    nothing = ListStore(starts, indices, GraphLimits())
    return NeighbourGraph(nothing, n_rows, np.zeros(n_rows, dtype=np.int64))


def graph_of_bits(store: BitStore, n_rows: int) -> NeighbourGraph:
    """Return the graph of symmetric bits, stored in the way that is smaller."""
    graph = NeighbourGraph(store, n_rows)
    if store.limits.prefer_lists(float(graph.degrees.sum()), n_rows):
        return graph_of(graph.to_sparse(), store.limits)
    return graph


def graph_of(matrix: Any, limits: GraphLimits) -> NeighbourGraph:
    """Return the graph of a symmetric sparse matrix without a diagonal. Its entries are edges."""
    matrix = sparse.csr_matrix(matrix)
    matrix.sort_indices()
    starts, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    m = matrix.shape[0]
    if not limits.prefer_lists(len(indices), m):
        store = BitStore.of(lambda some: matrix[some].toarray() != 0, m, limits)
        return NeighbourGraph(store, m, np.diff(starts))
    return NeighbourGraph(ListStore(starts, indices, limits), m, np.diff(starts))
