"""Gram matrices of columns weighted by the curvature of the loss, estimated where rows are many.

An estimate takes rows at even steps of accumulated curvature: rows predicted with confidence
hardly bend the loss, and hardly count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from scipy.linalg.blas import dsyrk, ssyrk

from laconic.boost.blocks import total
from laconic.boost.stores import Which
from laconic.pools.local import LocalColumns
from laconic.threads import row_blocks

Take = Callable[[Which], np.ndarray]


class Map(Protocol):
    """`map`, perhaps on several threads."""

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Apply a function to items, in order."""


def column_grams(
    takes: Sequence[Take], curvatures: list[np.ndarray], few: int, block: int, run: Map
) -> np.ndarray:
    """Σ_i h_ic x_i x_iᵀ for every c, from about ``few`` rows where there are many.

    ``takes`` give the columns of some rows of each block, ``curvatures`` (n_outputs, rows) those
    of its rows. Sums are formed ``block`` rows at a time.
    """
    masses = np.cumsum([0.0] + [float(h.sum()) for h in curvatures])
    if sum(h.shape[1] for h in curvatures) <= 2 * few or not masses[-1] > 0:
        columns = [take(slice(None)) for take in takes]
    else:

        def one(item: tuple[Take, np.ndarray, float]) -> tuple[np.ndarray, np.ndarray]:
            at, h = spread(item[1], item[2], masses[-1] / few)
            return item[0](at), h

        some = list(run(one, zip(takes, curvatures, masses[:-1].tolist(), strict=True)))
        # An estimate needs no more than single precision.
        taken = np.concatenate([c for c, _ in some], dtype=np.float32)
        h = np.hstack([h for _, h in some], dtype=np.float32)
        blocks = row_blocks(len(taken), block)
        columns, curvatures = [taken[s] for s in blocks], [h[:, s] for s in blocks]
    return total(list(run(weighted_grams, zip(columns, curvatures, strict=True))))


def local_grams(
    local: LocalColumns, curvature: np.ndarray, mass: np.ndarray, few: int
) -> np.ndarray:
    """The same for one local atom; ``curvature`` of all rows, ``mass`` its sums over outputs."""
    inside = mass[local.rows]
    at, factor = np.arange(len(inside)), np.ones(len(inside))
    if len(inside) > 2 * few and inside.any():
        step = float(inside.sum()) / few
        at = even_steps(inside, 0.0, step)
        factor = step / inside[at]
    rows = local.rows[at]
    columns, h = local.table[rows], curvature[:, rows] * factor.astype(curvature.dtype)
    if local.heights is not None:
        h *= np.square(local.heights[at])
    grams: np.ndarray = local.change.T @ weighted_grams((columns, h)) @ local.change
    return grams


def spread(h: np.ndarray, before: float, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Rows at even steps of accumulated curvature, each standing for one step of it.

    ``before`` is the curvature of the blocks before this one.
    """
    at = even_steps(h.sum(axis=0, dtype=np.float64), before, step)
    return at, step * h[:, at] / h[:, at].sum(axis=0)


def even_steps(mass: np.ndarray, before: float, step: float) -> np.ndarray:
    """Places where the mass accumulated, ``before`` included, passes even steps."""
    upto = before + np.cumsum(mass)
    first, last = np.ceil(np.array([before, upto[-1]]) / step - 0.5)
    at = np.searchsorted(upto, (np.arange(first, last) + 0.5) * step)
    return np.minimum(at, len(upto) - 1)


def weighted_grams(piece: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Σ_i h_ci x_i x_iᵀ for every c."""
    columns, h = np.asfortranarray(piece[0]), np.sqrt(piece[1])
    syrk = ssyrk if columns.dtype == np.float32 else dsyrk
    upper = np.array([syrk(1.0, columns * root[:, None], trans=1) for root in h])
    return upper + np.triu(upper, 1).transpose(0, 2, 1)
