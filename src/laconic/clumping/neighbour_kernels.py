"""Kernels for what BLAS cannot do: sums over lists of neighbours, and distances to bits."""

from __future__ import annotations

import numpy as np

from laconic.numeric.compiled import compiled


@compiled
def add_lists(starts, indices, values, out):  # type: ignore[no-untyped-def]
    """Write sums of ``values`` (n_outputs, m) over lists of neighbours, bounded by ``starts``."""
    for c in range(len(values)):
        line = values[c]
        for i in range(len(starts) - 1):
            total = 0.0
            for p in range(starts[i], starts[i + 1]):
                total += line[indices[p]]
            out[c, i] = total


@compiled
def near_bits(inner, row, column, out):  # type: ignore[no-untyped-def]
    """Set bit i % 8 of ``out[i // 8, j]`` if ``inner[i, j] >= row[i] + column[j]``."""
    n, width = inner.shape
    for i in range(n):
        line, bytes_, need = inner[i], out[i // 8], row[i]
        bit = np.uint8(1 << (i % 8))
        for j in range(width):
            bytes_[j] |= bit * np.uint8(line[j] >= need + column[j])


@compiled
def set_bits(codes, rows, others):  # type: ignore[no-untyped-def]
    """Set the bits of a `laconic.clumping.graph.BitStore`: ``others`` neighbour ``rows``."""
    run = codes.shape[2]
    for k in range(len(rows)):
        i, j = rows[k], others[k]
        codes[i // run, j // 8, i % run] |= np.uint8(1 << (j % 8))


@compiled
def transpose_bits(codes, out):  # type: ignore[no-untyped-def]
    """Transpose a matrix of bits. Both matrices have eight rows to a byte.

    Squares of eight by eight bits are transposed within a 64-bit word, by swapping ever larger
    off-diagonal squares.
    """
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1] // 8):
            word = np.uint64(0)
            for k in range(8):
                word |= np.uint64(codes[i, 8 * j + k]) << np.uint64(8 * k)
            for shift, mask in (
                (np.uint64(7), np.uint64(0x00AA00AA00AA00AA)),
                (np.uint64(14), np.uint64(0x0000CCCC0000CCCC)),
                (np.uint64(28), np.uint64(0x00000000F0F0F0F0)),
            ):
                swap = (word ^ (word >> shift)) & mask
                word ^= swap ^ (swap << shift)
            for k in range(8):
                out[j, 8 * i + k] = np.uint8((word >> np.uint64(8 * k)) & np.uint64(255))
