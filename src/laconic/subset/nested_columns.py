"""Fast sums over many columns of 0 and 1, if the columns contain one another.

The set of rows where ``x > t`` holds shrinks as t grows. So the thresholds of one feature form a
*chain* of sets of rows, each inside the next. In a chain, a row's level is the first set that holds
the row. The sums over all sets of the chain are running sums over the levels. So one pass over the
rows serves a whole chain, while separate columns would need one pass each. The columns can be
anything. A column that fits into no chain is a chain of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from laconic.pools.histograms import accumulate_many

# Rows in one word of packed sets.
WORD = 64


class Chains(NamedTuple):
    """Columns arranged in chains."""

    levels: np.ndarray
    """(n_chains, n_rows): the first set of the chain that holds the row. It is the length of the
    chain if no set does."""
    offsets: np.ndarray
    """Start of each chain in ``order``, and the end of the last."""
    order: np.ndarray
    """Column numbers, chain after chain, each from the smallest set to the largest."""
    sizes: np.ndarray
    """Number of rows in each column's set."""
    packed: np.ndarray
    """(n_columns, n_words): the sets, with one bit per row."""

    def sums(self, rows: np.ndarray) -> np.ndarray:
        """Return sums (n_columns, k) of (n_rows, k) values over the rows of each column's set."""
        lengths = np.diff(self.offsets)
        bases = self.offsets + np.arange(len(self.offsets))  # rows in no set have a level, too
        bins = np.zeros((bases[-1], rows.shape[1]))
        accumulate_many(self.levels, bases, np.ascontiguousarray(rows), bins)
        out = np.empty((len(self.order), rows.shape[1]))
        for begin, base, length in zip(self.offsets, bases, lengths, strict=False):
            sums = bins[base : base + length]
            out[self.order[begin : begin + length]] = sums.cumsum(axis=0) if length > 1 else sums
        return out

    def extended(self, member: np.ndarray) -> Chains:
        """Return the chains with more columns. Each goes into a chain if it fits there."""
        levels, offsets, order, sizes, packed = self
        for one in member:
            number, size, bits = len(order), int(one.sum()), _packed(one[None])[0]
            length = np.diff(offsets)
            at = np.zeros(len(length), dtype=np.int64)  # sets in each chain of this size or less
            if len(order):
                at = np.add.reduceat(sizes[order] <= size, offsets[:-1], dtype=np.int64)
            before = order[np.maximum(offsets[:-1] + at - 1, 0)]
            behind = order[np.minimum(offsets[:-1] + at, number - 1)]
            fits = (at == 0) | ~(packed[before] & ~bits).any(axis=1)
            fits &= (at == length) | ~(bits & ~packed[behind]).any(axis=1)
            if fits.any():
                gap = np.where(fits, size - np.where(at == 0, 0, sizes[before]), size + 1)
                chain = int(gap.argmin())
                levels = levels.copy()
                levels[chain] += ~one
                place = offsets[chain] + at[chain]
                order = np.concatenate([order[:place], [number], order[place:]])
                offsets = offsets + (np.arange(len(offsets)) > chain)
            else:
                levels = np.append(levels, (~one[None]).astype(levels.dtype), axis=0)
                order = np.append(order, number)
                offsets = np.append(offsets, number + 1)
            sizes, packed = np.append(sizes, size), np.append(packed, bits[None], axis=0)
        return Chains(levels, offsets, order, sizes, packed)


def find_chains(member: np.ndarray) -> Chains:
    """Arrange columns in chains, smaller sets first.

    Each set joins the chain whose last set is the largest that it contains.

    Parameters
    ----------
    member : bool ndarray of shape (n_columns, n_rows)
        Which rows each column's set holds.
    """
    n = len(member)
    sizes, packed = member.sum(axis=1), _packed(member)
    by_size = np.argsort(sizes, kind="stable")
    chain, last, place = np.empty((3, n), dtype=np.int64)
    count = 0
    for p, j in enumerate(by_size):
        inside = np.flatnonzero(~(packed[last[:count]] & ~packed[j]).any(axis=1))
        best = inside[place[inside].argmax()] if len(inside) else count
        count = max(count, best + 1)
        chain[j], last[best], place[best] = best, j, p
    order = by_size[np.argsort(chain[by_size], kind="stable")]
    counts = np.bincount(chain, minlength=0)
    offsets = np.append(0, np.cumsum(counts)).astype(np.int64)
    # Sets of a chain contain one another, so a row is in all sets from its level on.
    kind = np.uint16 if n < 2**15 else np.uint32
    within = np.add.reduceat(member[order], offsets[:-1], axis=0, dtype=kind)
    levels = counts.astype(kind)[:, None] - within
    return Chains(levels, offsets, order, sizes, packed)


def _packed(member: np.ndarray) -> np.ndarray:
    """Return the sets as words of 64 bits."""
    n, m = member.shape
    packed = np.zeros((n, -(-max(m, 1) // WORD) * WORD // 8), dtype=np.uint8)
    packed[:, : -(-m // 8)] = np.packbits(member, axis=1)
    return packed.view(np.uint64)
