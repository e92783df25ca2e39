"""The input columns themselves, one at a time or in groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from laconic.model.atoms import Column, ColumnGroup, ColumnsMap
from laconic.numeric.skinny import transpose_product
from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.base import BoundPool, feature_number
from laconic.pools.parts import Place
from laconic.pools.scaling import ColumnsSurvey, ScaledPool, column_scales, needs_double
from laconic.pools.sparse_passes import TASK, SparsePasses

# Rows of a dense matrix whose columns are written together.
ROWS = 1 << 15


@dataclass(frozen=True)
class Columns(ScaledPool):
    """The pool of input columns (ShareBoost algorithm 1), or of groups of them (section 2.1).

    A round reads the data once. It takes O(m d k) operations for m rows, d columns and k outputs.
    Dense arrays in C or Fortran order, memory maps, and CSR and CSC matrices are read in place.
    The pool stores only d scales. It applies them to the sums.

    Parameters
    ----------
    scale : {"max", "std"} or None, default="max"
        How columns are scaled; see `laconic.pools.scaling.column_scales`. The scale changes which
        atoms the l1 rule chooses. The paper assumes columns in [-1, 1], which ``"max"`` ensures.
    groups : sequence, default=None
        One label per input feature, or a list of lists of feature numbers. Features with the same
        label form a group. The lists together must name every feature once. A group is one atom.
        Its score is the sum of the l1 gradient norms of its columns. ``None`` makes every column an
        atom.
    """

    scale: str | None = "max"
    groups: Any = None

    def bind(
        self,
        X: Any,
        weight: np.ndarray,
        threads: Threads,
        survey: ColumnsSurvey | None = None,
        place: Place | None = None,
    ) -> BoundColumns:
        """Prepare for the training rows. Find the scales, and keep X as it is."""
        members = None if self.groups is None else group_members(self.groups, X.shape[1])
        sizes = self.sizes(X, weight, threads) if survey is None else survey
        return BoundColumns(X, column_scales(sizes, self.scale), members, threads)


def group_members(groups: Any, n_features: int) -> list[np.ndarray]:
    """Return the feature numbers of every group, with groups sorted by label or as listed."""
    lists = [isinstance(g, list | tuple | np.ndarray | range) for g in groups]
    if any(lists):
        members = [np.asarray(g) for g in groups]
        if not all(lists) or any(g.size and g.dtype.kind not in "iu" for g in members):
            raise ValueError("groups must be lists of feature numbers or one label per feature")
        members = [g.astype(np.int64).ravel() for g in members]
    else:
        labels = np.asarray(groups)
        if labels.shape != (n_features,):
            raise ValueError(
                f"groups must have one label per feature ({n_features}) or be a list of lists of "
                f"feature numbers, not an array of shape {labels.shape}"
            )
        codes = np.unique(labels, return_inverse=True)[1].ravel()
        return [np.flatnonzero(codes == g) for g in range(codes.max() + 1)]
    for number, g in enumerate(members):
        if g.size == 0:
            raise ValueError(f"group {number} of groups is empty; give it features or leave it out")
    named = np.sort(np.concatenate(members))
    if not np.array_equal(named, np.arange(n_features)):
        raise ValueError(
            f"groups must name each of the {n_features} features exactly once; "
            "put a feature without a group into a group of its own"
        )
    return members


class BoundColumns(BoundPool):
    """`Columns` over training rows."""

    def __init__(
        self,
        X: Any,
        factors: np.ndarray,
        members: list[np.ndarray] | None,
        threads: Threads,
        task: int = TASK,
    ) -> None:
        self._X: Any = X if sparse.issparse(X) else np.asarray(X)
        self._factors = factors
        self._members = members
        self._threads = threads
        self._passes = SparsePasses(self._X, threads, task)
        self.dtype = self._X.dtype
        self._double = needs_double(self._X, factors)
        self.n_columns = self._X.shape[1]
        self.n_atoms = self.n_columns if members is None else len(members)
        if members is not None:
            self._group_of = np.empty(self.n_columns, dtype=np.int64)
            for number, g in enumerate(members):
                self._group_of[g] = number

    def gradients(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield all column sums in one block."""
        yield 0, self._sums(self._X, residual) * self._factors[:, None]

    def squares(self, weight: np.ndarray) -> np.ndarray:
        """Return the weighted squared norm of every column."""
        total = np.zeros(self.n_columns)
        for s in row_blocks(self._X.shape[0], 4096):
            block = self._X[s]
            # Values are scaled first, so that their squares neither overflow nor vanish.
            if sparse.issparse(block):
                scaled = block.astype(np.float64).multiply(self._factors).tocsr()
                squared = scaled.multiply(scaled)
            else:
                squared = np.square(block * self._factors)
            total += np.asarray(squared.T @ weight[s], dtype=np.float64)
        return total

    def _sums(self, X: Any, residual: np.ndarray) -> np.ndarray:
        if sparse.issparse(X):
            return self._passes.sums(residual)
        if self._double:
            residual = residual.astype(np.float64)
        return transpose_product(X, residual, self._threads)

    def columns(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the scaled training columns."""
        features = self._features(atoms)
        factors = self._factors[features]
        if sparse.issparse(self._X):
            return self._passes.columns(features, factors, self.dtype)
        out = np.empty((self._X.shape[0], len(features)), dtype=self.dtype, order="F")

        def write(rows: slice) -> None:
            out[rows] = self._X[rows][:, features] * factors

        list(self._threads.map(write, row_blocks(len(out), ROWS)))
        return out

    def scales(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the factors of the columns."""
        return self._factors[self._features(atoms)]

    def atom(self, index: int) -> Column | ColumnGroup:
        """Return the record of atom ``index``."""
        if self._members is None:
            return Column(int(index))
        return ColumnGroup(tuple(int(f) for f in self._members[index]))

    def index(self, atom: Any) -> int:
        """Return the number of an atom record."""
        if self._members is None and isinstance(atom, Column) and 0 <= atom[0] < self.n_columns:
            return atom.feature
        if self._members is not None and isinstance(atom, ColumnGroup) and atom.features:
            first = atom.features[0]
            if 0 <= first < self.n_columns:
                number = int(self._group_of[first])
                if self.atom(number) == atom:
                    return number
        raise ValueError(f"{atom!r} is not an atom of this pool")

    def matching(self, item: Any) -> np.ndarray:
        """Return the number of an atom record, or of the column or group of a feature."""
        if isinstance(item, (Column, ColumnGroup)):
            return np.array([self.index(item)])
        feature = feature_number(item, self.n_columns)
        return np.array([feature if self._members is None else self._group_of[feature]])

    def extract(self, atoms: Sequence[int]) -> ColumnsMap:
        """Return the feature map of the atoms."""
        return ColumnsMap(self._features(atoms))

    def costs(self, feature_costs: np.ndarray) -> np.ndarray:
        """Return the cost of every atom. A group costs the sum of its columns' costs."""
        return self.collect(0, feature_costs)[1]

    def alike(self, chosen: Sequence[int] = ()) -> np.ndarray:
        """Return kinds of atoms: those of as many columns."""
        if self._members is None:
            return np.zeros(self.n_columns, dtype=np.int64)
        return np.array([len(group) for group in self._members])

    def width(self, index: int) -> int:
        """Return the number of columns of atom ``index``."""
        return 1 if self._members is None else len(self._members[index])

    def collect(self, first: int, column_scores: np.ndarray) -> tuple[int, np.ndarray]:
        """Sum the scores of each group's columns."""
        if self._members is None:
            return first, column_scores
        return 0, np.bincount(self._group_of, column_scores, minlength=self.n_atoms)

    def _features(self, atoms: Sequence[int]) -> np.ndarray:
        if self._members is None:
            return np.asarray(atoms, dtype=np.int64)
        return np.concatenate([self._members[a] for a in atoms] or [np.empty(0, dtype=np.int64)])
