"""Several bound pools as one. Atoms and columns are numbered one pool after the other."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from laconic.model.cost import model_operations
from laconic.model.feature_maps import FeatureMap
from laconic.model.mixed import MixedMap
from laconic.pools.base import BoundPool
from laconic.pools.local_columns import LocalColumns
from laconic.pools.signs import Signs


class BoundMixed(BoundPool):
    """The atoms of several pools over the same training rows.

    Each pool answers for its own atoms, with its own scales. If several pools have local atoms, the
    columns of all but the first of them are written down, because local atoms must share a table.

    Parameters
    ----------
    pools : sequence of BoundPool
    n_features : int
        Number of columns of X.
    """

    def __init__(self, pools: Sequence[BoundPool], n_features: int) -> None:
        self.pools = list(pools)
        self._n_features = n_features
        *self._atoms, self.n_atoms = accumulate((p.n_atoms for p in self.pools), initial=0)
        *self._columns, self.n_columns = accumulate((p.n_columns for p in self.pools), initial=0)
        self.dtype = np.result_type(*(pool.dtype for pool in self.pools))
        self.binary = all(pool.binary for pool in self.pools)
        self.signs = all(pool.signs for pool in self.pools)
        self.loads_numba = any(p.loads_numba or p.binary or p.signs for p in self.pools)
        local = [number for number, pool in enumerate(self.pools) if pool.local_atoms]
        self._local = local[0] if local else -1
        self.local_atoms = bool(local)
        self._table: np.ndarray | None = None

    def signed(self) -> BoundMixed:
        """Return the same pools with columns of 0 and 1 as columns of -1 and 1."""
        pools = [Signs(pool) if pool.binary else pool for pool in self.pools]
        return BoundMixed(pools, self._n_features)

    # -- sums over rows ------------------------------------------------------------------------

    def gradients(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the column sums of one pool after the other."""
        yield from self._blocks(lambda pool: pool.gradients(_in_type(residual, pool)))

    def norms(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the l1 norms of the column sums of one pool after the other."""
        yield from self._blocks(lambda pool: pool.norms(_in_type(residual, pool)))

    def _blocks(
        self, ask: Callable[[BoundPool], Iterator[tuple[int, np.ndarray]]]
    ) -> Iterator[tuple[int, np.ndarray]]:
        for pool, start in zip(self.pools, self._columns, strict=True):
            for first, block in ask(pool):
                if len(block):  # the first column of an empty pool is that of the next pool
                    yield start + first, block

    def collect(self, first: int, column_scores: np.ndarray) -> tuple[int, np.ndarray]:
        """Turn the scores of a block of columns into scores of atoms, as their pool does."""
        number = bisect_right(self._columns, first) - 1
        start, scores = self.pools[number].collect(first - self._columns[number], column_scores)
        return start + self._atoms[number], scores

    def seams(self) -> list[int]:
        """Return the first columns of the pools, because a block has columns of one pool."""
        return sorted(set(self._columns) - {self.n_columns})

    def squares(self, weight: np.ndarray) -> np.ndarray:
        """Return the weighted squared norm of every column."""
        return np.concatenate([pool.squares(_in_type(weight, pool)) for pool in self.pools])

    def columns(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the scaled training columns."""
        return np.asfortranarray(
            self._joined(atoms, lambda pool, own: pool.columns(own).T).T, dtype=self.dtype
        )

    def late(self) -> list[Any] | None:
        """Return what every pool must tell all parts, or None if no pool must."""
        late = [pool.late() for pool in self.pools]
        return None if all(told is None for told in late) else late

    def settle(self, late: Sequence[Any]) -> None:
        """Tell every pool the answers of all parts."""
        for number, pool in enumerate(self.pools):
            told = [part[number] for part in late]
            if told[0] is not None:
                pool.settle(told)

    # -- atoms ---------------------------------------------------------------------------------

    def _find(self, index: int) -> tuple[int, int]:
        """Return the pool of an atom, and its number there."""
        if not 0 <= index < self.n_atoms:
            raise ValueError(f"the pool has no atom {index}; it has 0 to {self.n_atoms - 1}")
        number = bisect_right(self._atoms, index) - 1
        return number, int(index) - self._atoms[number]

    def _chosen(self, atoms: Sequence[int]) -> list[list[int]]:
        """Return the atoms of every pool, with their numbers there, in the order given."""
        out: list[list[int]] = [[] for _ in self.pools]
        for number, own in map(self._find, atoms):
            out[number].append(own)
        return out

    def _owners(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the pool of every column of the atoms."""
        found = [self._find(atom) for atom in atoms]
        widths = [self.pools[number].width(own) for number, own in found]
        return np.repeat(np.array([number for number, _ in found], dtype=np.int64), widths)

    def _joined(
        self, atoms: Sequence[int], ask: Callable[[BoundPool, list[int]], np.ndarray]
    ) -> np.ndarray:
        """Return answers of the pools about the columns of some atoms, in the order of the atoms.

        An answer has an entry for each column.
        """
        owners, parts = self._owners(atoms), self._chosen(atoms)
        answers = [
            ask(pool, own) for pool, own in zip(self.pools, parts, strict=True) if own or not atoms
        ]
        if len(answers) == 1:
            return answers[0]
        back = np.empty(len(owners), dtype=np.int64)
        back[np.argsort(owners, kind="stable")] = np.arange(len(owners))
        return np.concatenate(answers)[back]

    def scales(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the factors of the columns."""
        return self._joined(atoms, lambda pool, own: pool.scales(own))

    def shifts(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the shifts of the columns."""
        return self._joined(atoms, lambda pool, own: pool.shifts(own))

    def width(self, index: int) -> int:
        """Return the number of columns of atom ``index``."""
        number, own = self._find(index)
        return self.pools[number].width(own)

    def is_local(self, index: int) -> bool:
        """Return whether the atom is one of the pool whose atoms are local."""
        return self._find(index)[0] == self._local

    def local(self, index: int) -> LocalColumns:
        """Return the columns of a local atom."""
        number, own = self._find(index)
        local = self.pools[number].local(own)
        if self._table is None:  # kernels need the type of the mix, which may be wider
            self._table = local.table.astype(self.dtype, copy=False)
        return local._replace(table=self._table)

    def atom(self, index: int) -> Any:
        """Return the record of atom ``index``."""
        number, own = self._find(index)
        return self.pools[number].atom(own)

    def index(self, atom: Any) -> int:
        """Return the number of an atom record, in the first pool that has it."""
        return int(self.matching(atom)[0])

    def matching(self, item: Any) -> np.ndarray:
        """Return the atoms of all pools that an item means."""
        found, errors = [np.empty(0, dtype=np.int64)], []
        for pool, start in zip(self.pools, self._atoms, strict=True):
            try:
                own = [int(number) for number in pool.matching(item)]
                if hasattr(item, "reads"):  # a pool may misread the record of another pool
                    own = [number for number in own if type(pool.atom(number)) is type(item)]
                found.append(np.array(own, dtype=np.int64) + start)
            except (AttributeError, IndexError, TypeError, ValueError) as error:
                errors.append(error)
        numbers = np.concatenate(found)
        if len(errors) == len(self.pools) or (hasattr(item, "reads") and not len(numbers)):
            if isinstance(item, int | np.integer) and not isinstance(item, bool):
                raise errors[0]
            raise ValueError(f"no pool of the list has the atom {item!r}")
        return numbers

    def extract(self, atoms: Sequence[int]) -> FeatureMap:
        """Return the map of the atoms. If all are of one pool, it is the map of that pool."""
        parts = self._chosen(atoms)
        used = [number for number, own in enumerate(parts) if own]
        if len(used) < 2:
            number = used[0] if used else 0
            return self.pools[number].extract(parts[number])
        place = np.searchsorted(used, self._owners(atoms))
        return MixedMap([self.pools[number].extract(parts[number]) for number in used], place)

    # -- costs ---------------------------------------------------------------------------------

    def costs(self, feature_costs: np.ndarray) -> np.ndarray:
        """Return the cost of every atom."""
        return np.concatenate([pool.costs(feature_costs) for pool in self.pools])

    def alike(self, chosen: Sequence[int] = ()) -> np.ndarray | None:
        """Return kinds of atoms: those that their pool calls alike, with as many new features.

        A pool does not know which features atoms of other pools read, so they are counted here.
        """
        new = np.ones(self._n_features)
        new[self.extract(chosen).features()] = 0.0
        kinds, first = [], 0
        for pool, own in zip(self.pools, self._chosen(chosen), strict=True):
            alike = pool.alike(own)
            if alike is None:
                return None
            pairs = np.stack([alike, pool.costs(new).astype(np.int64)])
            each = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)
            kinds.append(each + first)
            first += int(each.max(initial=-1)) + 1
        return np.concatenate(kinds)

    def operations(self, chosen: Sequence[int] = (), n_outputs: int = 0) -> np.ndarray | None:
        """Return the operations that each atom adds. Atoms of two pools share no operation."""
        each = []
        for pool, own in zip(self.pools, self._chosen(chosen), strict=True):
            known = pool.operations(own, n_outputs)
            if known is None:
                known = _operations(pool, own, n_outputs)
            if known is None:
                return None
            each.append(known)
        return np.concatenate(each)


def _in_type(values: np.ndarray, pool: BoundPool) -> np.ndarray:
    """Return numbers in the type of a pool, as the pool gets them alone."""
    return values.astype(pool.dtype, copy=False)


def _operations(pool: BoundPool, chosen: list[int], n_outputs: int) -> np.ndarray | None:
    """Return the operations that each atom adds, from one atom of every kind."""
    kinds = pool.alike(chosen)
    if kinds is None:
        return None
    kinds = kinds + 1
    kinds[chosen] = 0

    def measured(atoms: list[int]) -> float:
        found = pool.extract(atoms)
        if n_outputs == 0:
            return float(found.operations())
        return float(model_operations(found, sum(map(pool.width, atoms)), n_outputs))

    before, added = measured(chosen), np.zeros(kinds.max(initial=0) + 1)
    for kind in np.unique(kinds[kinds > 0]).tolist():
        added[kind] = measured([*chosen, int(np.argmax(kinds == kind))]) - before
    return np.asarray(added[kinds])
