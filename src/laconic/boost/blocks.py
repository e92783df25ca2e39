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
        self._flat: tuple[np.ndarray, ...] | None = None

    def append(self, atom: LocalColumns, s: slice) -> None:
        """Cut an atom to the rows of the slice and keep it."""
        first, last = np.searchsorted(atom.rows, [s.start, s.stop])
        heights = None if atom.heights is None else atom.heights[first:last]
        rows = (atom.rows[first:last] - s.start).astype(np.int32)
        self.atoms.append(LocalColumns(rows, atom.table[s], atom.change, heights))
        self._flat = None

    def _arrays(self) -> tuple[np.ndarray, ...]:
        """The table; rows of all atoms one after another; where each one's end; heights, if any."""
        if self._flat is None:
            rows = [atom.rows for atom in self.atoms]
            heights = [atom.heights for atom in self.atoms if atom.heights is not None]
            table = np.ascontiguousarray(self.atoms[0].table)
            none = np.empty(0, dtype=table.dtype)
            ends = np.cumsum([0, *map(len, rows)])
            self._flat = table, np.concatenate(rows), ends, np.concatenate([none, *heights])
        return self._flat

    def product(self, weights: np.ndarray) -> np.ndarray:
        """Columns times weights (atoms, t, n_outputs) of the table: (n_outputs, n_rows)."""
        from laconic.boost.gathers import multiply  # here, because it imports Numba

        arrays = self._arrays()
        out = np.zeros((len(arrays[0]), weights.shape[2]), dtype=weights.dtype)
        multiply(*arrays, weights, out)
        return out.T

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums over rows of every atom's table times class-major values: (atoms, t, n_outputs)."""
        from laconic.boost.gathers import add_up

        arrays = self._arrays()
        out = np.empty((len(self.atoms), arrays[0].shape[1], len(values)))
        add_up(*arrays, np.ascontiguousarray(values.T), out)
        return out


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
