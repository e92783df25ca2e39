"""The exact graph of a Euclidean radius, tile by tile.

‖x − z‖² = ‖x‖² + ‖z‖² − 2⟨x, z⟩, so that x and z are neighbours where

    ⟨x, z⟩ ≥ (‖x‖² − ρ²/2)/2 + (‖z‖² − ρ²/2)/2.

An inner product of d terms in a precision of unit roundoff u is off by at most about
d u ‖x‖ ‖z‖ ≤ d u (‖x‖² + ‖z‖²)/2. Shifting both terms on the right by that much, once up and once
down, tells the pairs that are surely neighbours from those that may be; the difference is decided
in float64. Centring the rows makes the norms, and with them the doubtful band, small.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from laconic.regions.graph import ROWS, BitStore, NeighbourGraph, graph_of, lists_are_smaller
from laconic.threads import Threads, row_blocks

# Side of a tile at most (it divides ROWS), and the bytes that one of its two factors may take.
SIDE = 1024
FACTOR_BYTES = 1 << 26
# Where more than this share of a tile is in doubt, it is computed again in float64.
DOUBTFUL = 0.02
# Rows and others that the share of neighbours is estimated from.
ESTIMATED = 512, 2048
# Numbers in the differences of pairs that are decided at a time.
DIFFERENCES = 1 << 21


class _Tiles:
    """Tiles of the 0/1 matrix of neighbours, eight rows to a byte."""

    def __init__(self, X: Any, radius: float) -> None:
        self.X = X
        m, self.d = X.shape
        largest = float(max(X.max(), -X.min())) if m and self.d else 0.0
        # A power of two that brings every centred number into [-1, 1]: no digit changes.
        self.scale = float(np.ldexp(1.0, -1 - int(np.frexp(largest)[1]))) if largest else 1.0
        self.centre = np.zeros(self.d)
        for s in row_blocks(m, SIDE):
            self.centre += np.asarray((X[s] * self.scale).sum(axis=0)).ravel() / m
        self.radius = radius * self.scale
        self.limit = min(self.radius, 1e15) ** 2

    def rows(self, which: Any, dtype: Any) -> np.ndarray:
        """Some rows, dense, centred and scaled."""
        part = self.X[which]
        part = part.toarray() if sparse.issparse(part) else part
        return (part * self.scale - self.centre).astype(dtype)

    def bits(self, a: slice, b: slice, left: np.ndarray) -> np.ndarray:
        """Bits of rows ``a`` by columns ``b``, exact; ``left`` are the rows in float32."""
        sure, doubt = self._decided(left, self.rows(b, np.float32))
        if np.count_nonzero(doubt) > DOUBTFUL * doubt.size:
            sure, doubt = self._decided(self.rows(a, np.float64), self.rows(b, np.float64))
        byte, column = np.nonzero(doubt)
        if len(byte):
            lines = np.unpackbits(doubt[byte, column][:, None], axis=1, bitorder="little")
            at, bit = np.nonzero(lines)
            byte, column = byte[at], column[at]
            near = self._near(a.start + 8 * byte + bit, b.start + column)
            np.bitwise_or.at(sure, (byte[near], column[near]), (1 << bit[near]).astype(np.uint8))
        if a == b:
            diagonal = np.arange(a.stop - a.start)
            sure[diagonal // 8, diagonal] &= ~(1 << (diagonal % 8)).astype(np.uint8)
        return sure

    def _decided(self, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bits of the sure neighbours, and of the pairs that rounding leaves in doubt."""
        from laconic.regions.kernels import near_bits  # here, because it imports Numba

        # The factor covers the products and sums of BLAS in any order, the rounding of the rows,
        # and the few operations beside them; the second term numbers too small for the format.
        info = np.finfo(left.dtype)
        slack = 1.1 * (self.d + 40) * float(info.eps) / 2.0
        bits = []
        inner = left @ right.T
        for side in (1.0 + slack, 1.0 - slack):
            needs = [
                (0.5 * side * np.einsum("ij,ij->i", part, part, dtype=np.float64)
                 - 0.25 * self.limit + np.sign(side - 1.0) * 1e-30).astype(left.dtype)
                for part in (left, right)
            ]  # fmt: skip
            codes = np.zeros((-(-len(left) // 8), 8 * -(-len(right) // 8)), dtype=np.uint8)
            near_bits(inner, *needs, codes)
            bits.append(codes)
        return bits[0], bits[0] ^ bits[1]

    def _near(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Whether pairs are neighbours, by their differences in float64."""
        out = np.empty(len(i), dtype=bool)
        for s in row_blocks(len(i), max(1, DIFFERENCES // max(self.d, 1))):
            one, other = self.X[i[s]], self.X[j[s]]
            if sparse.issparse(one):
                one, other = one.toarray(), other.toarray()
            gap = (one.astype(np.float64) - other) * self.scale
            out[s] = np.sqrt(np.einsum("ij,ij->i", gap, gap)) <= self.radius
        return out

    def share(self) -> float:
        """About the share of pairs that are neighbours."""
        m = self.X.shape[0]
        some, others = (
            np.unique(np.linspace(0, m - 1, min(n, m)).round().astype(np.int64)) for n in ESTIMATED
        )
        sure, _ = self._decided(self.rows(some, np.float32), self.rows(others, np.float32))
        found = int(np.unpackbits(sure).sum()) - np.isin(some, others).sum()
        return max(found, 0) / (len(some) * len(others))


def euclidean_graph(X: Any, radius: float, threads: Threads) -> NeighbourGraph:
    """Rows of ``X`` (dense or CSR) within ``radius`` of each other."""
    from laconic.regions.kernels import transpose_bits

    m = X.shape[0]
    tiles = _Tiles(X, radius)
    side = SIDE
    while side > 64 and 4 * side * tiles.d > FACTOR_BYTES:
        side //= 2
    cuts = row_blocks(m, side)
    listed = lists_are_smaller(tiles.share() * m * m, m)
    store = BitStore.empty(0 if listed else m)

    def panel(at: int) -> list[np.ndarray]:
        """All tiles to the right of one on the diagonal, and their mirror images."""
        a, pairs = cuts[at], []
        left = tiles.rows(a, np.float32)
        for b in cuts[at:]:
            codes = tiles.bits(a, b, left)
            if listed:
                pairs.append(_pairs(codes, a, b))
                continue
            # A row's neighbours are the columns of the tile's mirror image.
            mirror = np.zeros((codes.shape[1] // 8, 8 * codes.shape[0]), dtype=np.uint8)
            transpose_bits(codes, mirror)
            _put(store, mirror, a, b)
            _put(store, codes, b, a)
        return pairs

    found = [pair for part in threads.map(panel, range(len(cuts))) for pair in part]
    if not listed:
        return NeighbourGraph(store, m)
    i, j = np.concatenate(found, axis=1) if found else np.empty((2, 0), dtype=np.int32)
    ends = np.concatenate([i, j]), np.concatenate([j, i])
    return graph_of(sparse.csr_matrix((np.ones(2 * len(i), dtype=np.int8), ends), shape=(m, m)))


def _pairs(codes: np.ndarray, a: slice, b: slice) -> np.ndarray:
    """Numbers (2, n) of the neighbouring rows i < j of a tile."""
    bits = np.unpackbits(codes, axis=0, count=a.stop - a.start, bitorder="little")
    i, j = np.nonzero(bits)
    i, j = i + a.start, j + b.start
    upper = i < j
    return np.stack([i[upper], j[upper]]).astype(np.int32)


def _put(store: BitStore, codes: np.ndarray, rows: slice, others: slice) -> None:
    """Write which of ``others``, eight to a byte, neighbour ``rows``."""
    run, place = divmod(rows.start, ROWS)
    n, bytes_ = rows.stop - rows.start, -(-(others.stop - others.start) // 8)
    first = others.start // 8
    store.codes[run, first : first + bytes_, place : place + n] = codes[:bytes_, :n]
