"""Chances of rows: numbers that look random, but depend on the number of a row alone.

The chance of a row is the fractional part of its number times the golden ratio, to 32 bits. These
parts are spread evenly over any run of rows. So the rows below a chance do not depend on how the
rows are cut into shards.
"""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np

GOLDEN = 2654435769
"""The golden ratio times 2³². Its multiples modulo 2³² are spread more evenly than others."""
WHOLE = 1 << 32


def rows_below(part: float, n_rows: int, first: int) -> np.ndarray:
    """Return the places of the rows whose chance is below a part, among rows from ``first`` on.

    The part is less than one. Only these rows are looked at, and not all ``n_rows``.
    """
    order, sorted_multiples = _sorted(1 << max(n_rows - 1, 0).bit_length())
    low = -first * GOLDEN % WHOLE  # the multiple of a row of chance zero
    high = low + int(np.ceil(part * WHOLE))
    ends = np.array([low, high % WHOLE], dtype=np.uint32)
    start, stop = np.searchsorted(sorted_multiples, ends)
    around = high >= WHOLE
    at = np.concatenate([order[start:], order[:stop]]) if around else order[start:stop]
    return np.sort(at[at < n_rows])


def chances(at: np.ndarray, first: int) -> np.ndarray:
    """Return the chances of rows at some places after the row ``first``, in [0, 1)."""
    multiples = at.astype(np.uint32) * np.uint32(GOLDEN) + np.uint32(first * GOLDEN % WHOLE)
    return multiples / WHOLE


@lru_cache(maxsize=8)
def numbers(n_rows: int) -> np.ndarray:
    """Return the places of the first rows."""
    return np.arange(n_rows)


@cache  # for powers of two only
def _sorted(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first rows in the order of their chances, and the multiples in this order."""
    multiples = np.arange(n_rows, dtype=np.uint32) * np.uint32(GOLDEN)
    order = np.argsort(multiples)
    return order, multiples[order]
