"""Sums over parts, in float64 and in the order of the parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

Sums = Iterable[tuple[int, np.ndarray]]


def total(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the sum of the parts, in float64 and in order."""
    out = parts[0].astype(np.float64)
    for part in parts[1:]:
        out += part
    return out


def running_total(parts: Iterable[np.ndarray]) -> np.ndarray:
    """Return the same sum of parts that come one by one, so that few of them are held."""
    out = np.zeros(0)
    for number, part in enumerate(parts):
        out = part.astype(np.float64) if number == 0 else out + part
    return out


def added_up(parts: Sequence[Sums]) -> Iterator[tuple[int, np.ndarray]]:
    """Add up sums that come in blocks of columns. The parts may have different blocks."""
    if len(parts) == 1:
        yield from parts[0]
        return
    streams = [iter(part) for part in parts]
    held: list[Any] = [next(stream, None) for stream in streams]
    while held[0] is not None:
        first = held[0][0]
        length = min(len(sums) for _, sums in held)
        yield first, total([sums[:length] for _, sums in held])
        for at, (_, sums) in enumerate(held):
            rest = (first + length, sums[length:])
            held[at] = rest if len(sums) > length else next(streams[at], None)


def added_in_place(parts: Iterable[Sums], n_columns: int) -> Iterator[tuple[int, np.ndarray]]:
    """Add up the same sums, one part after the other. The blocks are those of the first part.

    Every part is asked for its sums only when the parts before it are done. So at any time only one
    of them needs memory for them. The sums of all ``n_columns`` columns are held.
    """
    blocks: list[tuple[int, int]] = []
    out = np.empty((0, 0))
    for number, part in enumerate(parts):
        for first, sums in part:
            last = first + len(sums)
            if number == 0:
                out = out if len(out) else np.zeros((n_columns, sums.shape[1]))
                blocks.append((first, last))
            out[first:last] += sums
    for first, last in blocks:
        yield first, out[first:last]


def whole(blocks: Sums, n_columns: int) -> np.ndarray:
    """Return sums that come in blocks of columns as one array."""
    out = np.zeros((n_columns, 0))
    for first, sums in blocks:
        out = out if out.shape[1] else np.zeros((n_columns, sums.shape[1]))
        out[first : first + len(sums)] = sums
    return out


def weighted_by_class(
    y: np.ndarray,
    columns: np.ndarray,
    shift: np.ndarray,
    weight: np.ndarray,
    k: int,
    compiled: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return columns (n_rows, n) minus a shift and times a weight, and their sums over classes.

    These are (n, n_rows) and (n, k).
    """
    if not compiled:
        weighted = (columns - shift).T * weight
        return weighted, np.array([np.bincount(y, line, minlength=k) for line in weighted])
    from laconic.rows.tall_products import weigh_into  # here, because it imports Numba

    lines, by_class = np.ascontiguousarray(columns.T), np.zeros((columns.shape[1], k))
    weighted = np.empty_like(lines)
    weigh_into(lines, shift, weight, y, weighted, by_class)
    return weighted, by_class
