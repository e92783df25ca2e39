"""Columns of zeros and ones, eight to a byte.

Products with eight columns at a time are looked up in tables of their 256 patterns, so that a pass
over n columns of m rows reads m n / 8 bytes and does m n / 8 additions an output, where columns
written as numbers would take up to 64 times the memory traffic.
"""

from __future__ import annotations

import numpy as np

from laconic.compiled import compiled


class Bits:
    """Binary columns on some rows: ``codes[j, i]`` holds columns 8j to 8j + 7 of row i."""

    def __init__(self, n_rows: int) -> None:
        self.codes = np.zeros((1, n_rows), dtype=np.uint8)

    @classmethod
    def of(cls, codes: np.ndarray) -> Bits:
        """Columns that are written already, as they are."""
        bits = cls(0)
        bits.codes = codes
        return bits

    def put(self, at: int, column: np.ndarray) -> None:
        """Write column number ``at``; columns after it are forgotten."""
        byte, bit = divmod(at, 8)
        if byte == len(self.codes):
            grown = np.zeros((2 * byte, self.codes.shape[1]), dtype=np.uint8)
            grown[:byte] = self.codes
            self.codes = grown
        keep = np.uint8((1 << bit) - 1)
        self.codes[byte] = (self.codes[byte] & keep) | (column.astype(np.uint8) << np.uint8(bit))

    def product(self, weights: np.ndarray) -> np.ndarray:
        """``weights`` (n_outputs, n_columns) times the first columns: (n_outputs, n_rows)."""
        out = np.zeros((len(weights), self.codes.shape[1]), dtype=weights.dtype)
        _multiply(self.codes, np.ascontiguousarray(weights), out)
        return out

    def sums(self, values: np.ndarray, n: int) -> np.ndarray:
        """Sums over rows of the first ``n`` columns times ``values`` (n_outputs, n_rows)."""
        out = np.zeros((n, len(values)))
        _add_up(self.codes, np.ascontiguousarray(values), out)
        return out

    def take(self, rows: np.ndarray | slice, n: int) -> np.ndarray:
        """The first ``n`` columns of some rows, as zeros and ones (uint8)."""
        codes = self.codes[: -(-n // 8), rows]
        return np.unpackbits(codes, axis=0, bitorder="little")[:n].T


@compiled
def _multiply(codes, weights, out):  # type: ignore[no-untyped-def]
    """Look the sums of eight weights up, for four bytes of every row at a time."""
    rows, n = codes.shape[1], weights.shape[1]
    tables = np.zeros((4, 256), dtype=weights.dtype)
    for c in range(len(weights)):
        line = out[c]
        for first in range(0, n, 32):
            for b in range(4):
                for bit in range(8):
                    at, half = first + 8 * b + bit, 1 << bit
                    weight = weights[c, at] if at < n else weights.dtype.type(0)
                    for pattern in range(half):
                        tables[b, half + pattern] = tables[b, pattern] + weight
            j = first // 8
            last = min(j + 4, (n + 7) // 8) - 1
            t0, t1, t2, t3 = tables[0], tables[1], tables[2], tables[3]
            b0, b1 = codes[j], codes[min(j + 1, last)]
            b2, b3 = codes[min(j + 2, last)], codes[min(j + 3, last)]
            for i in range(rows):
                line[i] += (t0[b0[i]] + t1[b1[i]]) + (t2[b2[i]] + t3[b3[i]])


@compiled
def _add_up(codes, values, out):  # type: ignore[no-untyped-def]
    """Add every row's value to the entry of its byte, and entries to the columns they have."""
    rows, n = codes.shape[1], len(out)
    totals = np.empty((4, 256))
    for c in range(len(values)):
        line = values[c]
        for first in range(0, n, 32):
            totals[:] = 0.0
            j = first // 8
            last = min(j + 4, (n + 7) // 8) - 1
            t0, t1, t2, t3 = totals[0], totals[1], totals[2], totals[3]
            b0, b1 = codes[j], codes[min(j + 1, last)]
            b2, b3 = codes[min(j + 2, last)], codes[min(j + 3, last)]
            for i in range(rows):
                v = line[i]
                t0[b0[i]] += v
                t1[b1[i]] += v
                t2[b2[i]] += v
                t3[b3[i]] += v
            for b in range(4):
                for bit in range(7, -1, -1):
                    at, half = first + 8 * b + bit, 1 << bit
                    whole = 0.0
                    for pattern in range(half):
                        whole += totals[b, half + pattern]
                        totals[b, pattern] += totals[b, half + pattern]
                    if at < n:
                        out[at, c] = whole
