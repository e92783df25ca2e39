"""Sums over many columns at the cost of few: columns of 0 and 1 that contain one another.

The rows where ``x > t`` holds shrink as t grows, so the thresholds of one feature form a *chain* of
sets of rows, each within the next. Along a chain a row has a level, the first set that holds it;
sums over all sets of the chain are running sums over the levels. A pass over the rows then serves a
whole chain, where columns by themselves take a pass each. Nothing is assumed of the columns: one
that fits no chain is a chain of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from laconic.compiled import compiled

# Rows in one word of packed sets.
WORD = 64


class Chains(NamedTuple):
    """Columns arranged in chains."""

    levels: np.ndarray
    """(n_chains, n_rows): the first set of the chain that holds the row; its length if none."""
    offsets: np.ndarray
    """Where each chain begins in ``order``, and the end."""
    order: np.ndarray
    """Columns, chain after chain, each from the smallest set to the largest."""

    def sums(self, rows: np.ndarray) -> np.ndarray:
        """Sums of (n_rows, k) values over the rows of each column's set: (n_columns, k)."""
        out = np.empty((len(self.order), rows.shape[1]))
        add_up(self.levels, self.offsets, self.order, np.ascontiguousarray(rows), out)
        return out


def find_chains(member: np.ndarray) -> Chains:
    """Arrange columns in chains, larger sets behind the nearest smaller one that they contain.

    Parameters
    ----------
    member : bool ndarray of shape (n_columns, n_rows)
        Which rows each column's set holds.
    """
    n, m = member.shape
    words = -(-max(m, 1) // WORD)
    packed = np.zeros((n, words * WORD // 8), dtype=np.uint8)
    packed[:, : -(-m // 8)] = np.packbits(member, axis=1)
    sizes = member.sum(axis=1)
    by_size = np.argsort(sizes, kind="stable")
    chain = link(packed.view(np.uint64), by_size)
    order = by_size[np.argsort(chain[by_size], kind="stable")]
    counts = np.bincount(chain, minlength=0)
    offsets = np.append(0, np.cumsum(counts)).astype(np.int64)
    levels = np.empty((len(counts), m), dtype=np.uint16 if n < 2**16 else np.uint32)
    assign_levels(member, offsets, order, levels)
    return Chains(levels, offsets, order)


@compiled
def link(packed, by_size):  # type: ignore[no-untyped-def]
    """Number of the chain of each column: that whose last set is the largest one within it."""
    n, words = packed.shape
    chain = np.empty(n, dtype=np.int64)
    last = np.empty(n, dtype=np.int64)
    place = np.empty(n, dtype=np.int64)  # of the last set of a chain among the sizes
    count = 0
    for p in range(n):
        j = by_size[p]
        best = -1
        for c in range(count):
            if best >= 0 and place[c] < place[best]:
                continue
            inside = True
            for k in range(words):
                if packed[last[c], k] & ~packed[j, k]:
                    inside = False
                    break
            if inside:
                best = c
        if best < 0:
            best = count
            count += 1
        chain[j], last[best], place[best] = best, j, p
    return chain


@compiled
def assign_levels(member, offsets, order, levels):  # type: ignore[no-untyped-def]
    """Fill the level of every row in every chain."""
    chains, m = levels.shape
    for c in range(chains):
        begin, end = offsets[c], offsets[c + 1]
        for i in range(m):
            low, high = 0, end - begin  # the first set that holds the row, by halving
            while low < high:
                mid = (low + high) // 2
                if member[order[begin + mid], i]:
                    high = mid
                else:
                    low = mid + 1
            levels[c, i] = low


@compiled
def add_up(levels, offsets, order, rows, out):  # type: ignore[no-untyped-def]
    """Sums of the rows' values over every column's set, by running sums along the chains."""
    chains, m = levels.shape
    k = rows.shape[1]
    for c in range(chains):
        begin, length = offsets[c], offsets[c + 1] - offsets[c]
        if length == 1:
            add_up_one(levels[c], rows, out[order[begin]])
            continue
        bins = np.zeros((length + 1, k))
        for i in range(m):
            level = levels[c, i]
            for a in range(k):
                bins[level, a] += rows[i, a]
        for t in range(length):
            for a in range(k):
                if t > 0:
                    bins[t, a] += bins[t - 1, a]
                out[order[begin + t], a] = bins[t, a]


@compiled
def add_up_one(level, rows, out):  # type: ignore[no-untyped-def]
    """Sums over the one set of a chain."""
    out[:] = 0.0
    for i in range(len(level)):
        if level[i] == 0:
            for a in range(len(out)):
                out[a] += rows[i, a]
