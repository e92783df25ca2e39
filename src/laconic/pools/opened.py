"""A bound pool that atoms outside its list may join, such as an atom that was tuned.

The atoms of the list keep their numbers. Joined atoms are numbered after them, in the order in
which they joined, and numbers are never used twice. Only the list is searched for the best atom.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from laconic.files.layout import Array, check_arrays
from laconic.model.feature_maps import FeatureMap, feature_map
from laconic.pools.base import BoundPool, Choice, Offer

# Before the names of arrays in a file.
PREFIX = "joined_"
# Factors of the columns in a file.
LAYOUT = {"factor": Array("f", ("columns",))}


class OutsideAtom(NamedTuple):
    """An atom outside the list of a pool."""

    map: Any
    """Feature map of this atom alone. It has the methods ``take`` and ``beside``."""
    factor: float
    """Scaled column = factor · input column."""


def as_open(pools: Sequence[BoundPool], parts: Iterable[Any]) -> list[BoundPool]:
    """Return bound pools that atoms may join. An atom that joins one of them joins all.

    The pools are one pool, bound to the rows of several parts. Each atom has one column.
    """
    outside: list[OutsideAtom] = []
    rows = (X.tocsr() if sparse.issparse(X) else X for X in parts)
    return [OpenPool(pool, X, outside) for pool, X in zip(pools, rows, strict=True)]


class OpenPool(BoundPool):
    """A bound pool with its list, and the atoms that have joined.

    Parameters
    ----------
    listed : BoundPool
    X : array or CSR matrix
        The rows that the pool is bound to.
    outside : list of OutsideAtom
        The atoms that have joined. Pools of other parts of the rows share it.
    """

    def __init__(self, listed: BoundPool, X: Any, outside: list[OutsideAtom]) -> None:
        self.listed, self._X, self._outside = listed, X, outside
        self.n_columns, self.dtype = listed.n_columns, listed.dtype
        self.loads_numba, self.binary, self.signs = listed.loads_numba, listed.binary, listed.signs

    @property
    def n_atoms(self) -> int:  # type: ignore[override]
        """Number of atoms of the list, and of those that have joined."""
        return self.listed.n_atoms + len(self._outside)

    @property
    def n_joined(self) -> int:
        """Number of atoms that have joined."""
        return len(self._outside)

    def join(self, offer: Offer) -> int:
        """Add an `OutsideAtom`, and return its number."""
        self._outside.append(offer.atom)
        return self.n_atoms - 1

    # -- the list ------------------------------------------------------------------------------

    def gradients(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the column sums of the list."""
        return self.listed.gradients(residual)

    def norms(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the l1 norms of the column sums of the list."""
        return self.listed.norms(residual)

    def squares(self, weight: np.ndarray) -> np.ndarray:
        """Return the weighted squared norm of every column of the list."""
        return self.listed.squares(weight)

    def collect(self, first: int, column_scores: np.ndarray) -> tuple[int, np.ndarray]:
        """Turn the scores of columns of the list into those of its atoms."""
        return self.listed.collect(first, column_scores)

    def seams(self) -> list[int]:
        """Return the columns of the list at which a block must begin."""
        return self.listed.seams()

    def best(
        self,
        residual: np.ndarray,
        forbidden: np.ndarray | None = None,
        normaliser: np.ndarray | None = None,
        costs: np.ndarray | None = None,
    ) -> Choice:
        """Return the best atom of the list. The steepest gradient is that of the list, too."""
        return self.listed.best(residual, forbidden, normaliser, costs)

    def index(self, atom: Any) -> int:
        """Return the number of an atom record of the list."""
        return self.listed.index(atom)

    def matching(self, item: Any) -> np.ndarray:
        """Return the numbers of the atoms of the list that an item means."""
        return self.listed.matching(item)

    # -- any atoms -----------------------------------------------------------------------------

    def columns(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the scaled training columns."""
        if not (own := self._joined(atoms)):
            return self.listed.columns(atoms)
        out = np.empty((self._X.shape[0], len(atoms)), dtype=self.dtype, order="F")
        for column, number in zip(out.T, atoms, strict=True):
            if number in own:
                atom = self._of(number)
                column[:] = atom.map.columns(self._X)[:, 0] * atom.factor
            else:
                column[:] = self.listed.columns([number])[:, 0]
        return out

    def scales(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the factor of every column."""
        return self._each(
            atoms, lambda number: self._of(number).factor, lambda some: self.listed.scales(some)
        )

    def shifts(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the shift of every column. Joined atoms have none."""
        return self._each(atoms, lambda number: 0.0, lambda some: self.listed.shifts(some))

    def width(self, index: int) -> int:
        """Return the number of columns of an atom."""
        return self.listed.width(index) if index < self.listed.n_atoms else 1

    def atom(self, index: int) -> Any:
        """Return the record of an atom."""
        if index < self.listed.n_atoms:
            return self.listed.atom(index)
        return self._of(index).map.atoms()[0]

    def extract(self, atoms: Sequence[int]) -> FeatureMap:
        """Return the feature map of the atoms."""
        if not (own := self._joined(atoms)):
            return self.listed.extract(atoms)
        known = [number for number in atoms if number not in own]
        made: Any = self.listed.extract(known)
        for number in own:
            made = made.beside(self._of(number).map)
        place = {number: at for at, number in enumerate([*known, *own])}
        taken: FeatureMap = made.take([place[number] for number in atoms])
        return taken

    # -- costs ---------------------------------------------------------------------------------

    def costs(self, feature_costs: np.ndarray) -> np.ndarray:
        """Return the cost of every atom: the sum of the costs of the features it reads."""
        own = [feature_costs[atom.map.features()].sum() for atom in self._outside]
        return np.append(self.listed.costs(feature_costs), own)

    def alike(self, chosen: Sequence[int] = ()) -> np.ndarray | None:
        """Return kinds of atoms. Those that are alike in the list may differ in new features."""
        own = self._joined(chosen)
        kinds = self.listed.alike([number for number in chosen if number not in own])
        if kinds is None:
            return None
        if own:
            new = np.ones(self._X.shape[1])
            new[self.extract(chosen).features()] = 0.0
            pairs = np.stack([kinds, self.listed.costs(new).astype(np.int64)])
            kinds = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)
        first = int(kinds.max(initial=-1)) + 1
        return np.append(kinds, np.arange(first, first + len(self._outside)))

    def operations(self, chosen: Sequence[int] = (), n_outputs: int = 0) -> np.ndarray | None:
        """Return how many operations each atom adds. Joined atoms share none with the list."""
        own = self._joined(chosen)
        known = self.listed.operations([n for n in chosen if n not in own], n_outputs)
        if known is None:
            return None
        return np.append(known, [atom.map.operations() + n_outputs for atom in self._outside])

    # -- files ---------------------------------------------------------------------------------

    def written(self, first: int, last: int) -> tuple[str, dict[str, np.ndarray]]:
        """Return the kind and the arrays of the atoms that joined, from one place to another."""
        head, *rest = self._outside[first:last]
        made = head.map
        for atom in rest:
            made = made.beside(atom.map)
        factor = np.array([atom.factor for atom in self._outside[first:last]])
        arrays = {**made.arrays(), "factor": factor}
        return made.kind, {PREFIX + name: array for name, array in arrays.items()}

    def read(self, kind: str, arrays: dict[str, np.ndarray]) -> int:
        """Let the atoms of `written` join, and return how many these are.

        The arrays may come from a stranger's file.
        """
        given = {name.removeprefix(PREFIX): array for name, array in arrays.items()}
        own = check_arrays({n: given.pop(n) for n in LAYOUT if n in given}, LAYOUT, {})
        found: Any = feature_map(kind, given, self._X.shape[1])
        if len(found.atoms()) != len(own["factor"]):
            raise ValueError("its atoms and their factors do not fit together")
        for place, factor in enumerate(own["factor"].tolist()):
            self.join(Offer(OutsideAtom(found.take([place]), factor), np.nan))
        return len(own["factor"])

    # -- numbers -------------------------------------------------------------------------------

    def _of(self, number: int) -> OutsideAtom:
        return self._outside[number - self.listed.n_atoms]

    def _joined(self, numbers: Sequence[int]) -> list[int]:
        """Return which of some atoms are not in the list."""
        return [number for number in numbers if number >= self.listed.n_atoms]

    def _each(self, atoms: Sequence[int], joined: Any, listed: Any) -> np.ndarray:
        """Return a number for every column, in the order of the atoms."""
        if not self._joined(atoms):
            return np.asarray(listed(atoms))
        parts = [
            np.array([joined(n)]) if n >= self.listed.n_atoms else np.asarray(listed([n]))
            for n in atoms
        ]
        return np.concatenate(parts)
