"""Gram matrices of columns, weighted by the curvature of the loss.

With many rows they are estimates. An estimate takes rows at even steps of accumulated curvature.
Rows that are predicted with confidence have little curvature, so they hardly count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg.blas import dsyrk, ssyrk

from laconic.numeric.threads import row_blocks
from laconic.pools.local_columns import LocalColumns
from laconic.rows.stores import Which
from laconic.rows.sums import total

# Largest values of columns whose squares can be summed in single precision.
LARGEST = 1e15
# Numbers in the columns that are taken for an estimate at a time. They are taken for at least one
# output.
HELD = 1 << 24

Take = Callable[[Which], np.ndarray]


class Map(Protocol):
    """A function like `map` that may use several threads."""

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Apply a function to items, in order."""


class Mass(NamedTuple):
    """Number and curvature of some rows."""

    rows: int
    sums: np.ndarray
    """Sum of the curvature for every output, or one number for all outputs together."""


class Among(NamedTuple):
    """The place of a shard's rows among all rows that an estimate is made from."""

    before: np.ndarray
    """Sums of the curvature over the shards before this one."""
    whole: Mass
    """Number and curvature of the rows of all shards."""


def placed(parts: Sequence[Mass]) -> list[Among]:
    """Return the place of every shard among all shards, from the curvature of each."""
    sums = np.array([part.sums for part in parts])
    whole = Mass(sum(part.rows for part in parts), sums.sum(axis=0))
    return [Among(before, whole) for before in np.cumsum(sums, axis=0) - sums]


class Bend(NamedTuple):
    """The curvature of the rows of a block."""

    rows: np.ndarray
    """(n_outputs, rows)"""
    sums: np.ndarray
    """Its sums over the rows, (n_outputs,) in float64."""

    @classmethod
    def of(cls, curvature: np.ndarray) -> Bend:
        """Add up a curvature."""
        return cls(curvature, curvature.sum(axis=1, dtype=np.float64))

    def first(self, n: int) -> Bend:
        """Return the curvature of the first n outputs."""
        return Bend(self.rows[:n], self.sums[:n])


def column_mass(bends: Sequence[Bend]) -> Mass:
    """Return the number and curvature of the rows of some blocks."""
    return Mass(sum(b.rows.shape[1] for b in bends), np.sum([b.sums for b in bends], axis=0))


def column_grams(
    takes: Sequence[Take],
    bends: Sequence[Bend],
    few: int,
    run: Map,
    among: Among | None = None,
    compiled: bool = False,
) -> np.ndarray:
    """Return Σ_i h_ic x_i x_iᵀ for every output c. With many rows, about ``few`` give an estimate.

    Each block has a function of ``takes``, which returns the columns of some rows, and its
    curvature. Every output uses rows of its own, because rows with much curvature in one of many
    classes have little in most others. ``among`` gives the place of these rows among the rows of
    all shards. All shards together take the same rows as a single shard would.
    """
    whole = column_mass(bends) if among is None else among.whole
    if whole.rows <= 2 * few or not whole.sums.any():
        pieces = [(take(slice(None)), bend.rows) for take, bend in zip(takes, bends, strict=True)]
        return total(list(run(weighted_grams, pieces)))
    edges = np.cumsum([0.0 * whole.sums, *(bend.sums for bend in bends)], axis=0)
    if among is not None:
        edges += among.before
    steps = whole.sums / few

    n_columns = takes[0](slice(0)).shape[1]
    flat = np.zeros((n_columns, n_columns), dtype=np.float32)
    grams = [flat for _ in steps]
    bent = [c for c in range(len(steps)) if steps[c] > 0]
    for s in row_blocks(len(bent), max(1, HELD // (few * n_columns))):
        wave = np.array(bent[s])
        numbers = np.ceil(edges[:, wave] / steps[wave] - 0.5).astype(np.int64)
        blocks = zip(takes, bends, edges[:, wave], numbers, np.diff(numbers, axis=0), strict=False)
        found = list(run(partial(_taken, wave, steps[wave], compiled), blocks))
        parts = [(steps[c], [of[n] for of in found]) for n, c in enumerate(wave)]
        for c, gram in zip(wave, run(_gram, parts), strict=True):
            grams[c] = gram
    return np.array(grams)


def _taken(
    outputs: np.ndarray,
    steps: np.ndarray,
    compiled: bool,
    block: tuple[Take, Bend, np.ndarray, np.ndarray, np.ndarray],
) -> list[np.ndarray]:
    """Return the columns of the rows of a block that some outputs use.

    The block has the curvature before it, and the numbers of its first step and of its steps.
    """
    take, bend, before, first, counts = block
    ends = np.cumsum(counts)
    if compiled:
        from laconic.rows.even_steps import even_steps_into  # here, because it imports Numba

        places = np.empty(ends[-1], dtype=np.int64)
        even_steps_into(bend.rows, outputs, before, steps, first, ends, places)
    else:
        known = zip(outputs, before, steps, first, counts, strict=True)
        places = np.concatenate([_stepped(bend.rows[c], *rest) for c, *rest in known])
    return np.split(take(places), ends[:-1])


def _gram(output: tuple[float, list[np.ndarray]]) -> np.ndarray:
    """Return Σ_i h_i x_i x_iᵀ of an output, whose rows stand for one step of curvature each.

    Single precision is enough for an estimate, unless the squares would overflow.
    """
    step, taken = output
    columns = np.asfortranarray(np.concatenate(taken))
    if np.abs(columns).max(initial=0.0) < LARGEST:
        columns = columns.astype(np.float32, copy=False)
    if len(columns) == 0:  # BLAS complains about an empty matrix
        return np.zeros((columns.shape[1],) * 2, dtype=columns.dtype)
    upper = _syrk(columns)(float(step), columns, trans=1)
    return np.asarray(upper + np.triu(upper, 1).T)


def local_grams(
    local: LocalColumns,
    among: Among,
    curvature: np.ndarray,
    mass: np.ndarray,
    few: int,
) -> np.ndarray:
    """Return the same sums as `column_grams` for one local atom.

    ``curvature`` is (n_outputs, rows) for all rows, and ``mass`` has its sums over the outputs.
    """
    inside, whole = mass[local.rows], among.whole
    at, factor = np.arange(len(inside)), np.ones(len(inside))
    if whole.rows > 2 * few and whole.sums.any():
        step = float(whole.sums) / few
        at = even_steps(inside, float(among.before), step)
        factor = step / inside[at]
    rows = local.rows[at]
    columns, h = local.table[rows], curvature[:, rows] * factor.astype(curvature.dtype)
    if local.heights is not None:
        h *= np.square(local.heights[at])
    grams: np.ndarray = local.change.T @ weighted_grams((columns, h)) @ local.change
    return grams


def even_steps(mass: np.ndarray, before: float, step: float) -> np.ndarray:
    """Return the places where the accumulated mass, with ``before``, passes even steps."""
    after = before + mass.sum(dtype=np.float64)
    first, last = np.ceil(np.array([before, after]) / step - 0.5).astype(int)
    return _stepped(mass, before, step, first, last - first)


def _stepped(mass: np.ndarray, before: float, step: float, first: int, count: int) -> np.ndarray:
    """Return the same places for so many steps from step number ``first`` on."""
    if count < 1:
        return np.empty(0, dtype=np.int64)
    upto = before + np.cumsum(mass, dtype=np.float64)
    at = np.searchsorted(upto, (np.arange(first, first + count) + 0.5) * step)
    return np.minimum(at, len(upto) - 1)


def weighted_grams(piece: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return Σ_i h_ci x_i x_iᵀ for every output c."""
    columns, h = np.asfortranarray(piece[0]), np.sqrt(piece[1])
    n_rows, width = columns.shape
    if n_rows == 0:  # a ball may have no rows here, and BLAS complains about an empty matrix
        return np.zeros((len(h), width, width), dtype=columns.dtype)
    syrk = _syrk(columns)
    upper = np.array([syrk(1.0, columns * root[:, None], trans=1) for root in h])
    return upper + np.triu(upper, 1).transpose(0, 2, 1)


def _syrk(columns: np.ndarray) -> Any:
    return ssyrk if columns.dtype == np.float32 else dsyrk
