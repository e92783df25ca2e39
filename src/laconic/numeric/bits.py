"""Columns of zeros and ones, stored as bits, eight columns to a byte.

Products with eight columns at a time are looked up in tables of their 256 patterns. So a pass over
n columns of m rows reads m n / 8 bytes and does m n / 8 additions for each output. Columns stored
as numbers would take up to 64 times the memory traffic.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from laconic.numeric.compiled import compiled

# The eight bits of each of the 256 bytes, and a one, (256, 9).
PATTERNS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little") * 1.0
PATTERNS = np.hstack([PATTERNS, np.ones((256, 1))])


class Bits:
    """Binary columns on some rows: ``codes[j, i]`` holds columns 8j to 8j + 7 of row i."""

    def __init__(self, n_rows: int) -> None:
        self.codes = np.zeros((1, n_rows), dtype=np.uint8)

    @classmethod
    def of(cls, codes: np.ndarray) -> Bits:
        """Wrap columns that are already stored as bits, without a copy."""
        bits = cls(0)
        bits.codes = codes
        return bits

    def put(self, at: int, column: np.ndarray) -> None:
        """Write column number ``at``. All later columns become invalid."""
        byte, bit = divmod(at, 8)
        if byte == len(self.codes):
            grown = np.zeros((2 * byte, self.codes.shape[1]), dtype=np.uint8)
            grown[:byte] = self.codes
            self.codes = grown
        keep = np.uint8((1 << bit) - 1)
        self.codes[byte] = (self.codes[byte] & keep) | (column.astype(np.uint8) << np.uint8(bit))

    def cut(self, n: int) -> None:
        """Keep the first ``n`` columns. Bits of others would change the rounding of sums."""
        byte, bit = divmod(n, 8)
        if byte < len(self.codes):
            self.codes[byte] &= np.uint8((1 << bit) - 1)

    def product(self, weights: np.ndarray, shift: np.ndarray | None = None) -> np.ndarray:
        """Return ``weights`` (n_outputs, n_columns) times the columns, (n_outputs, n_rows).

        Only the first n_columns columns count. The ``shift`` of every output is subtracted.
        """
        (k, n), dtype = weights.shape, weights.dtype
        places, out = _places(n), np.empty((k, self.codes.shape[1]), dtype=dtype)
        shift = np.zeros(k, dtype=dtype) if shift is None else shift
        whole, tables = np.zeros((k, 8 * len(places)), dtype=dtype), np.zeros((4, 256), dtype=dtype)
        whole[:, :n] = weights
        _multiply(self.codes, places, whole, shift, tables, out)
        return out

    def sums(self, values: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return sums over rows of the first ``n`` columns times ``values`` (n_outputs, n_rows).

        The second result has the sums of the values themselves, (n_outputs,).
        """
        places, k = _places(n), len(values)
        totals = np.zeros((k, len(places), 256))
        _add_up(self.codes, places, np.ascontiguousarray(values), totals)
        found = (totals.reshape(-1, 256) @ PATTERNS).reshape(k, -1, 9)
        return found[:, :, :8].reshape(k, -1)[:, :n].T, found[:, 0, 8]

    def take(self, rows: np.ndarray | slice, n: int) -> np.ndarray:
        """Return the first ``n`` columns of some rows as zeros and ones (uint8)."""
        codes = self.codes[: -(-n // 8), rows]
        return np.unpackbits(codes, axis=0, bitorder="little")[:n].T


@cache
def _places(n: int) -> np.ndarray:
    """Return the positions of the bytes of ``n`` columns, in groups of four.

    The position of the last byte is repeated to fill the last group. Without columns there is one
    group too, because sums of all rows come from it.
    """
    count = max(-(-n // 8), 1)
    return np.minimum(np.arange(-(-count // 4) * 4), count - 1)


@compiled
def _multiply(codes, places, weights, shift, tables, out):  # type: ignore[no-untyped-def]
    """Look up the sums of eight weights, for four bytes of every row at a time."""
    for c in range(out.shape[0]):
        for i in range(codes.shape[1]):
            out[c, i] = -shift[c]
        for first in range(0, places.size, 4):
            for b in range(4):
                for bit in range(8):
                    half = 1 << bit
                    for pattern in range(half):
                        weight = weights[c, 8 * (first + b) + bit]
                        tables[b, half + pattern] = tables[b, pattern] + weight
            p, q = places[first], places[first + 1]
            r, s = places[first + 2], places[first + 3]
            for i in range(codes.shape[1]):
                one = tables[0, codes[p, i]] + tables[1, codes[q, i]]
                out[c, i] += one + (tables[2, codes[r, i]] + tables[3, codes[s, i]])


@compiled
def _add_up(codes, places, values, totals):  # type: ignore[no-untyped-def]
    """Add every row's value to the entries of its bytes, four bytes at a time."""
    for c in range(values.shape[0]):
        for j in range(0, places.size, 4):
            p, q = places[j], places[j + 1]
            r, s = places[j + 2], places[j + 3]
            for i in range(codes.shape[1]):
                value = values[c, i]
                totals[c, j, codes[p, i]] += value
                totals[c, j + 1, codes[q, i]] += value
                totals[c, j + 2, codes[r, i]] += value
                totals[c, j + 3, codes[s, i]] += value
