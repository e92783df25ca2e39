"""Columns of zeros and ones, stored as bits, eight columns to a byte.

Products with eight columns at a time are looked up in tables of their 256 patterns. So a pass over
n columns of m rows reads m n / 8 bytes and does m n / 8 additions for each output. Columns stored
as numbers would take up to 64 times the memory traffic.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from laconic.numeric.compiled import compiled


class Factors(NamedTuple):
    """What a product with the columns reads, and room for its tables."""

    places: np.ndarray
    weights: np.ndarray
    shift: np.ndarray
    tables: np.ndarray


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
        factors = self.factors(weights, shift)
        out = np.empty((len(weights), self.codes.shape[1]), dtype=weights.dtype)
        multiply_into(self.codes, *factors, out)
        return out

    def factors(self, weights: np.ndarray, shift: np.ndarray | None = None) -> Factors:
        """Return the factors of a product; see `product`."""
        (k, n), dtype = weights.shape, weights.dtype
        places = _places(n)
        whole, tables = np.zeros((k, 8 * len(places)), dtype=dtype), np.zeros((4, 256), dtype=dtype)
        whole[:, :n] = weights
        return Factors(places, whole, np.zeros(k, dtype=dtype) if shift is None else shift, tables)

    def sums(self, values: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return sums over rows of the first ``n`` columns times ``values`` (n_outputs, n_rows).

        The second result has the sums of the values themselves, (n_outputs,).
        """
        totals, found = room_for_sums(len(values), _places(n))
        add_up_into(self.codes, _places(n), np.ascontiguousarray(values), totals, found)
        return sums_of(found, n)

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
def multiply_into(codes, places, weights, shift, tables, out):  # type: ignore[no-untyped-def]
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
def add_up_into(codes, places, values, totals, found):  # type: ignore[no-untyped-def]
    """Write the sums of every column to ``found``, (n_outputs, places, 9).

    First add every row's value to the entries of its bytes in ``totals``, four bytes at a time.
    Then add up the entries of the patterns that have a bit. The last bit halves the patterns. When
    both halves are added, the bit before it does. The last sum is that of all values. Values of
    more outputs than ``found`` has are not read.
    """
    for c in range(found.shape[0]):
        for j in range(0, places.size, 4):
            p, q = places[j], places[j + 1]
            r, s = places[j + 2], places[j + 3]
            for i in range(codes.shape[1]):
                value = values[c, i]
                totals[c, j, codes[p, i]] += value
                totals[c, j + 1, codes[q, i]] += value
                totals[c, j + 2, codes[r, i]] += value
                totals[c, j + 3, codes[s, i]] += value
        for j in range(places.size):
            for bit in range(7, -1, -1):
                half = 1 << bit
                whole = 0.0
                for pattern in range(half):
                    value = totals[c, j, half + pattern]
                    whole += value
                    totals[c, j, pattern] += value
                found[c, j, bit] = whole
            found[c, j, 8] = totals[c, j, 0]


def room_for_sums(k: int, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``totals`` and ``found`` for `add_up_into`."""
    return np.zeros((k, len(places), 256)), np.empty((k, len(places), 9))


def sums_of(found: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of the first n columns (n, n_outputs), and those of all values.

    Without columns, nobody needs the sums of the values, so they are zero.
    """
    whole = found[:, 0, 8] if found.shape[1] else np.zeros(len(found))
    return found[:, :, :8].reshape(len(found), -1)[:, :n].T, whole
