"""A block of rows, and the small computations on one that make up the sums over all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.blas import dsyrk, ssyrk

from laconic.boost.stores import Store
from laconic.pools.local import LocalColumns


class Block:
    """One block of rows: its columns, scores and loss state.

    Columns are held by a store, or local and come after those: see `LocalBlock`.
    """

    def __init__(
        self, target: np.ndarray, weight: np.ndarray, columns: Store, offset: np.ndarray | None
    ) -> None:
        self.target = target
        self.weight = weight
        self.columns = columns
        self.offset = offset
        self.state: np.ndarray | None = None
        self.local = LocalBlock()


class LocalBlock:
    """Local columns on one block of rows: `laconic.pools.local.LocalColumns`, cut to the block."""

    def __init__(self, atoms: Sequence[LocalColumns] = ()) -> None:
        self.atoms = list(atoms)

    def append(self, atom: LocalColumns, s: slice) -> None:
        """Cut an atom to the rows of the slice and keep it."""
        first, last = np.searchsorted(atom.rows, [s.start, s.stop])
        heights = None if atom.heights is None else atom.heights[first:last, None]
        rows = atom.rows[first:last] - s.start
        self.atoms.append(LocalColumns(rows, atom.table[s], atom.change, heights))

    def product(self, weights: Sequence[np.ndarray], n_rows: int) -> np.ndarray:
        """Columns times weights, which are given for the table: (n_outputs, n_rows)."""
        out = np.zeros((n_rows, weights[0].shape[1]), dtype=weights[0].dtype)
        for atom, w in zip(self.atoms, weights, strict=True):
            values = _take(atom.table, atom.rows) @ w
            if atom.heights is not None:
                values *= atom.heights
            values += _take(out, atom.rows)
            out[atom.rows] = values
        return out.T

    def sums(self, values: np.ndarray) -> list[np.ndarray]:
        """Sums over rows of every atom's table times class-major values."""
        by_row = np.ascontiguousarray(values.T)
        out = []
        for atom in self.atoms:
            v = _take(by_row, atom.rows)
            if atom.heights is not None:
                v *= atom.heights
            out.append((v.T @ _take(atom.table, atom.rows)).T)
        return out


def _take(table: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """``table[rows]``: without a check of the row numbers, in a fraction of the time."""
    return table.take(rows, axis=0, mode="clip")


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


def total(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Sum in float64, in order."""
    out = parts[0].astype(np.float64)
    for part in parts[1:]:
        out += part
    return out
