"""A block of rows: its columns, and products and sums with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from laconic.pools.local_columns import LocalColumns
from laconic.rows.stores import Store


class Block:
    """One block of rows: its columns, scores and loss state.

    Written columns are kept in a store. Local columns come after them; see `LocalBlock`.
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


class Flat(NamedTuple):
    """The local atoms of a block as arrays, one atom after another."""

    table: np.ndarray
    rows: np.ndarray
    """Rows of all atoms. Atom j has ``rows[ends[j]:ends[j + 1]]``."""
    ends: np.ndarray
    heights: np.ndarray
    """Heights of the same rows. It is empty if all heights are one."""
    most: int
    """Largest number of rows of an atom."""


class LocalBlock:
    """Local columns (`laconic.pools.local_columns`) on one block of rows, cut to the block."""

    def __init__(self, atoms: Sequence[LocalColumns] = ()) -> None:
        self.atoms = list(atoms)
        self._flat: Flat | None = None

    def append(self, atom: LocalColumns, s: slice) -> None:
        """Cut an atom to the rows of the slice and keep it."""
        first, last = np.searchsorted(atom.rows, [s.start, s.stop])
        heights = None if atom.heights is None else atom.heights[first:last]
        rows = (atom.rows[first:last] - s.start).astype(np.int32)
        self.atoms.append(LocalColumns(rows, atom.table[s], atom.change, heights))
        self._flat = None

    def _arrays(self) -> Flat:
        if self._flat is None:
            rows = [atom.rows for atom in self.atoms]
            heights = [atom.heights for atom in self.atoms if atom.heights is not None]
            table = np.ascontiguousarray(self.atoms[0].table)
            none = np.empty(0, dtype=table.dtype)
            ends = np.cumsum([0, *map(len, rows)])
            self._flat = Flat(
                table,
                np.concatenate(rows),
                ends,
                np.concatenate([none, *heights]),
                max(map(len, rows)),
            )
        return self._flat

    def product(self, weights: np.ndarray) -> np.ndarray:
        """Return the columns times weights of the table.

        Weights are (atoms, t, n_outputs), and the result is (n_outputs, n_rows).
        """
        from laconic.rows.local_products import multiply  # here, because it imports Numba

        flat = self._arrays()
        out = np.zeros((len(flat.table), weights.shape[2]), dtype=weights.dtype)
        multiply(flat, weights, out)
        return out.T

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sums over rows of every atom's table times class-major values.

        They are (atoms, t, n_outputs).
        """
        from laconic.rows.local_products import add_up

        flat = self._arrays()
        out = np.empty((len(self.atoms), flat.table.shape[1], len(values)))
        add_up(flat, np.ascontiguousarray(values.T), out)
        return out

    def exact_product(self, weights: np.ndarray) -> np.ndarray:
        """Return the product for one output and weights (atoms, t), in double precision."""
        out = np.zeros(len(self.atoms[0].table))
        for atom, own in zip(self.atoms, weights, strict=True):
            out[atom.rows] += atom.table[atom.rows] @ own * _heights(atom)
        return out

    def exact_sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sums for one output and values (n_rows,), in double precision: (atoms, t)."""
        return np.array([(values[a.rows] * _heights(a)) @ a.table[a.rows] for a in self.atoms])


def _heights(atom: LocalColumns) -> np.ndarray | float:
    return 1.0 if atom.heights is None else atom.heights
