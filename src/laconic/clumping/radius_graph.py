"""The exact graph of a Euclidean radius, tile by tile.

As ‖x − z‖² = ‖x‖² + ‖z‖² − 2⟨x, z⟩, rows x and z are neighbours if

    ⟨x, z⟩ ≥ (‖x‖² − ρ²/2)/2 + (‖z‖² − ρ²/2)/2.

An inner product of d terms, in a precision of unit roundoff u, has an error of at most about
d u ‖x‖ ‖z‖ ≤ d u (‖x‖² + ‖z‖²)/2. With both terms on the right shifted up by that much, the pairs
found are surely neighbours. With both shifted down, the pairs found may be neighbours. The pairs
that only the second test finds are decided in float64. Centring the rows makes the norms small, and
with them the number of doubtful pairs.

Rows of few values stay sparse, in float64, and are not centred. Their inner products have no more
terms than a row has values, so few pairs are doubtful all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from laconic.clumping.graph import BitStore, GraphLimits, NeighbourGraph
from laconic.clumping.symmetric import Edges
from laconic.model.distances import row_squares
from laconic.numeric.sparse_rows import is_thin, most_values, squared_gaps
from laconic.numeric.threads import Threads, row_blocks

# Most bytes that one of the two factors of a tile may take.
FACTOR_BYTES = 1 << 26
# If more than this share of a tile is in doubt, it is computed again in float64.
DOUBTFUL = 0.02
# A graph has at least this many panels of blocks, if it has so many blocks. Threads share the
# squares that two panels form.
FEW_PANELS = 5
# The share of neighbours is estimated from this many rows and this many other rows.
ESTIMATED = 512, 2048
# Numbers in the differences of pairs that are decided at a time. While SciPy works on a number of a
# sparse row, it takes the room of SPARSE_COPIES numbers.
DIFFERENCES = 1 << 21
SPARSE_COPIES = 16


class _Block(NamedTuple):
    """Some rows, centred and scaled, and their squared norms."""

    which: Any
    rows: Any
    squares: np.ndarray


class _Tiles:
    """Tiles of the 0/1 matrix of neighbours, eight rows to a byte."""

    def __init__(self, X: Any, radius: float, side: int) -> None:
        self.X = X
        m, self.d = X.shape
        self.thin = is_thin(X)
        self._terms = most_values(X) if self.thin else self.d
        largest = float(max(X.max(), -X.min())) if m and self.d else 0.0
        # This power of two brings every centred number into [-1, 1] and changes no digit.
        power = min(-1 - int(np.frexp(largest)[1]), 1023)  # more would overflow
        self.scale = float(np.ldexp(1.0, power)) if largest else 1.0
        self.centre = np.zeros(self.d)
        for s in row_blocks(0 if self.thin else m, side):
            self.centre += np.asarray((X[s] * self.scale).sum(axis=0)).ravel() / m
        self.radius = radius * self.scale
        self.limit = min(self.radius, 1e15) ** 2

    def block(self, which: Any, dtype: Any = np.float32) -> _Block:
        """Return rows, dense, centred and scaled. Thin rows are only scaled and stay sparse."""
        part = self.X[which]
        if self.thin:
            thin = part.astype(np.float64) * self.scale
            return _Block(which, thin, row_squares(thin))
        part = part.toarray() if sparse.issparse(part) else part
        rows = (part * self.scale - self.centre).astype(dtype)
        return _Block(which, rows, np.einsum("ij,ij->i", rows, rows, dtype=np.float64))

    def bits(self, a: _Block, b: _Block) -> np.ndarray:
        """Return the exact bits of rows ``a`` by columns ``b``."""
        sure, doubt = self._decided(a, b)
        single = a.rows.dtype == np.float32
        if single and np.count_nonzero(doubt) > DOUBTFUL * doubt.size:
            sure, doubt = self._decided(*(self.block(x.which, np.float64) for x in (a, b)))
        byte, column = np.nonzero(doubt)
        if len(byte):
            lines = np.unpackbits(doubt[byte, column][:, None], axis=1, bitorder="little")
            at, bit = np.nonzero(lines)
            byte, column = byte[at], column[at]
            pairs = a.which.start + 8 * byte + bit, b.which.start + column
            near = within(self.X, *pairs, self.radius, self.scale)
            np.bitwise_or.at(sure, (byte[near], column[near]), (1 << bit[near]).astype(np.uint8))
        if a.which == b.which:
            diagonal = np.arange(a.rows.shape[0])
            sure[diagonal // 8, diagonal] &= ~(1 << (diagonal % 8)).astype(np.uint8)
        return sure

    def _decided(self, a: _Block, b: _Block) -> tuple[np.ndarray, np.ndarray]:
        """Return the bits of sure neighbours, and of the pairs that rounding leaves in doubt."""
        from laconic.clumping.neighbour_kernels import near_bits  # here, because it imports Numba

        # This covers the products and sums of BLAS in any order, the rounding of the rows, and the
        # few other operations. The 1e-30 below covers numbers too small for the format.
        dtype = a.rows.dtype
        unit = (self._terms + 40) * float(np.finfo(dtype).eps) / 2.0
        slack = unit / (1.0 - unit) if unit < 0.5 else 1e3
        bits = []
        inner = a.rows @ b.rows.T
        inner = np.asarray(inner.toarray() if self.thin else inner)
        for sign in (1.0, -1.0):
            needs = [
                (0.5 * (1.0 + sign * slack) * x.squares - 0.25 * self.limit + sign * 1e-30)
                for x in (a, b)
            ]
            codes = np.zeros((-(-len(inner) // 8), 8 * -(-inner.shape[1] // 8)), dtype=np.uint8)
            near_bits(inner, *(need.astype(dtype) for need in needs), codes)
            bits.append(codes)
        return bits[0], bits[0] ^ bits[1]

    def share(self) -> float:
        """Estimate the share of pairs that are neighbours."""
        m = self.X.shape[0]
        most = m if self.thin else min(m, max(64, FACTOR_BYTES // (4 * max(self.d, 1))))
        some, others = (
            np.unique(np.linspace(0, m - 1, min(n, most)).round().astype(np.int64))
            for n in ESTIMATED
        )
        sure, _ = self._decided(self.block(some), self.block(others))
        found = int(np.unpackbits(sure).sum()) - np.isin(some, others).sum()
        return max(found, 0) / (len(some) * len(others))


def within(X: Any, i: np.ndarray, j: np.ndarray, radius: float, scale: float = 1.0) -> np.ndarray:
    """Return whether rows i and j, times ``scale``, are within a radius of each other.

    Distances are computed from differences in float64.
    """
    return distances(X, i, j, scale) <= radius


def distances(X: Any, i: np.ndarray, j: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Return the distances of rows i and j, times ``scale``, from differences in float64."""
    out = np.empty(len(i))
    copies = SPARSE_COPIES if sparse.issparse(X) else 1
    for s in row_blocks(len(i), max(1, DIFFERENCES // (copies * most_values(X)))):
        one, other = X[i[s]].astype(np.float64), X[j[s]]
        if sparse.issparse(X):
            out[s] = np.sqrt(squared_gaps(one * scale, other.astype(np.float64) * scale))
        else:
            gap = (one - other) * scale
            out[s] = np.sqrt(np.einsum("ij,ij->i", gap, gap))
    return out


def euclidean_graph(
    X: Any,
    radius: float,
    threads: Threads,
    watch: Callable[[float], None] | None,
    limits: GraphLimits,
) -> NeighbourGraph:
    """Return the graph of rows of ``X`` (dense or CSR) within ``radius`` of each other.

    ``watch`` is called with the share of the tiles that are done.
    """
    from laconic.clumping.neighbour_kernels import transpose_bits

    m, side = X.shape[0], limits.side
    tiles = _Tiles(X, radius, side)
    while not tiles.thin and side > 64 and 4 * side * tiles.d > FACTOR_BYTES:
        side //= 2
    cuts = row_blocks(m, side)
    n_panel = max(1, min(limits.panel, len(cuts) // FEW_PANELS))
    edges, share = Edges(m, limits), tiles.share()
    listed = limits.prefer_lists(share * m * m, m)
    edges.expect(share * m * m / 2.0 if listed else np.inf)
    store = BitStore.empty(0 if listed else m, limits)

    def square(corner: tuple[int, int]) -> list[np.ndarray]:
        """Make the tiles of a few blocks of rows with a few blocks from them on.

        Bits go to the store, with their mirror images. Lists of pairs are returned.
        """
        first, start = corner
        pairs = []
        lefts = [tiles.block(cut) for cut in cuts[first : first + n_panel]]
        for at in range(start, min(start + n_panel, len(cuts))):
            right = lefts[at - first] if at < first + n_panel else tiles.block(cuts[at])
            for left in lefts[: at - first + 1]:
                codes = tiles.bits(left, right)
                if listed:
                    pairs.append(_pairs(codes, left.which, right.which))
                    continue
                # In the mirror image, a column holds the neighbours of one row of the tile.
                mirror = np.zeros((codes.shape[1] // 8, 8 * codes.shape[0]), dtype=np.uint8)
                transpose_bits(codes, mirror)
                _put(store, mirror, left.which, right.which)
                _put(store, codes, right.which, left.which)
        return pairs

    panels = range(0, len(cuts), n_panel)
    corners = [(first, start) for first in panels for start in panels if start >= first]
    for done, part in enumerate(threads.map(square, corners), 1):
        for pairs in part:
            edges.add(*pairs)
        if watch is not None:
            watch(done / len(corners))
    return edges.graph() if listed else NeighbourGraph(store, m)


def _pairs(codes: np.ndarray, a: slice, b: slice) -> np.ndarray:
    """Return the numbers (2, n) of the neighbouring rows i < j of a tile."""
    bits = np.unpackbits(codes, axis=0, count=a.stop - a.start, bitorder="little")
    i, j = np.nonzero(bits)
    i, j = i + a.start, j + b.start
    upper = i < j
    return np.stack([i[upper], j[upper]]).astype(np.int32)


def _put(store: BitStore, codes: np.ndarray, rows: slice, others: slice) -> None:
    """Write which of ``others``, eight to a byte, are neighbours of ``rows``."""
    run, place = divmod(rows.start, store.limits.rows)
    n, bytes_ = rows.stop - rows.start, -(-(others.stop - others.start) // 8)
    first = others.start // 8
    store.codes[run, first : first + bytes_, place : place + n] = codes[:bytes_, :n]
