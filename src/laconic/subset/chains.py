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
from laconic.pools.histograms import accumulate_many

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
        lengths = np.diff(self.offsets)
        bases = self.offsets + np.arange(len(self.offsets))  # rows of no set have a level, too
        bins = np.zeros((bases[-1], rows.shape[1]))
        accumulate_many(self.levels, bases, np.ascontiguousarray(rows), bins)
        out = np.empty((len(self.order), rows.shape[1]))
        for begin, base, length in zip(self.offsets, bases, lengths, strict=False):
            sums = bins[base : base + length]
            out[self.order[begin : begin + length]] = sums.cumsum(axis=0) if length > 1 else sums
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
    chain, last, place = np.empty((3, n), dtype=np.int64)
    link(packed.view(np.uint64), by_size, last, place, chain)
    order = by_size[np.argsort(chain[by_size], kind="stable")]
    counts = np.bincount(chain, minlength=0)
    offsets = np.append(0, np.cumsum(counts)).astype(np.int64)
    # Sets of a chain contain one another, so a row is in as many as come from its level on.
    kind = np.uint16 if n < 2**16 else np.uint32
    within = np.add.reduceat(member[order], offsets[:-1], axis=0, dtype=kind)
    return Chains(counts.astype(kind)[:, None] - within, offsets, order)


@compiled
def link(packed, by_size, last, place, chain):  # type: ignore[no-untyped-def]
    """Fill the number of the chain of each column: that whose last set is the largest one within.

    ``last`` gets the last set of every chain, and ``place`` where that is among the sizes.
    """
    n, words = packed.shape
    count = 0
    for p in range(n):
        j = by_size[p]
        best = -1
        for c in range(count):
            if best >= 0 and place[c] < place[best]:
                continue
            k = 0
            while k < words and packed[last[c], k] & ~packed[j, k] == 0:
                k += 1
            if k == words:
                best = c
        if best < 0:
            best = count
            count += 1
        chain[j] = best
        last[best] = j
        place[best] = p
