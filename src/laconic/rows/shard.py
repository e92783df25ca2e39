"""A shard is one part of the rows, in memory. It answers only with sums over its rows.

Rows are cut into blocks of fixed size. One thread computes a block. Sums over blocks are added in
float64, in the order of the blocks. So no answer depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from laconic.losses import Loss
from laconic.numeric.threads import Threads
from laconic.pools.base import BoundPool, Choice
from laconic.rows.blocks import Block, LocalBlock
from laconic.rows.curvature import Among, Mass
from laconic.rows.design import Design
from laconic.rows.exchanges import Exchanges
from laconic.rows.hessians import Hessians
from laconic.rows.limits import Limits
from laconic.rows.passes import Passes
from laconic.rows.rest import Rest
from laconic.rows.stores import Packed, Store, Written
from laconic.rows.sums import total, weighted_by_class, whole

S = TypeVar("S")
T = TypeVar("T")


# Numbers in written columns for each thread. With fewer, handing them out costs more than it saves.
WRITTEN = 1 << 18


class Shard:
    """One part of the training rows in memory: its columns, scores and residual.

    Parameters
    ----------
    rest : Rest
        The parts that do not change; see `in_memory`.
    threads : Threads
    columns : list of Store, optional
        For each block, the columns that are already in.
    offsets : list of ndarray, optional
        For each block, scores (n_outputs, rows) that are added to the scores of the columns.
    """

    gathers = True
    exchanges: Exchanges | None = None

    def __init__(
        self,
        rest: Rest,
        threads: Threads,
        columns: list[Store] | None = None,
        offsets: Sequence[np.ndarray | None] | None = None,
    ) -> None:
        self.rest = rest
        self._threads = threads
        self.pool, self.loss, self.n_outputs = rest.pool, rest.loss, rest.n_outputs
        self.dtype = rest.pool.dtype
        self.n_rows = len(rest.y)
        self._n_classes = max(rest.n_outputs, 2)  # one score tells two classes apart
        stores = columns or [self._store(len(w)) for w in rest.weights]
        given = offsets or [None for _ in stores]
        parts = zip(rest.targets, rest.weights, stores, given, strict=True)
        self._blocks = [Block(*part) for part in parts]
        self._design = Design(self.dtype)
        self._coming: Sequence[np.ndarray] = ()

    def _store(self, n_rows: int) -> Store:
        if self.pool.binary or self.pool.signs:
            return Packed(n_rows, self.dtype, self.pool.signs)
        return Written(n_rows, self.dtype, self.rest.limits.multiplied, self.rest.compiled)

    # -- which columns are in ------------------------------------------------------------------

    @property
    def n_columns(self) -> int:
        """Number of columns that are in."""
        return self._design.n_columns

    @property
    def has_locals(self) -> bool:
        """Whether some of them belong to local atoms."""
        return bool(self._design.locals)

    def class_shares(self) -> np.ndarray:
        """Return the sum of the weights of every class."""
        return self.rest.shares

    def put_constant(self) -> tuple[np.ndarray, np.ndarray]:
        """Add a column of ones as the first column. Return the same sums as `take`."""
        ones = np.ones((self.n_rows, 1), dtype=self.dtype)
        self._coming = [block.columns.held(ones[s]) for s, block in self._pieces()]
        return self.take(np.zeros(1))

    def offer(self, atoms: Sequence[int]) -> np.ndarray:
        """Write down the columns of some atoms, for `take` to add. Return their weighted sums."""
        columns = self._written(atoms)

        def one(item: tuple[slice, Block]) -> tuple[np.ndarray, np.ndarray]:
            s, block = item
            sums = np.array([np.dot(block.weight, column) for column in columns[s].T])
            return sums, block.columns.held(columns[s])

        sums, self._coming = zip(*self._map(one, self._pieces()), strict=True)
        return total(sums)

    def _written(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the columns of some atoms, written one by one so that none depends on others."""
        if len(atoms) == 1:
            return np.asfortranarray(self.pool.columns(atoms))
        ends = np.cumsum([0, *map(self.pool.width, atoms)])
        out = np.empty((self.n_rows, ends[-1]), dtype=self.dtype, order="F")

        def write(number: int) -> None:
            out[:, ends[number] : ends[number + 1]] = self.pool.columns([atoms[number]])

        work = self.n_rows * len(atoms)
        list(self._threads.map(write, range(len(atoms)), most=work // WRITTEN))
        return out

    def take(self, means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Add the offered columns, minus their means.

        Return their class sums (new columns, n_classes) and their rows of the Gram matrix
        (new columns, all columns in).
        """
        coming, self._coming = self._coming, ()
        y, n_classes, first = self.rest.y, self._n_classes, self._design.n_written
        last = first + len(means)
        shift = means.astype(self.dtype)

        def one(item: tuple[slice, Block, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
            s, block, held = item
            columns = block.columns.written(held)
            block.columns.put(first, columns, means)
            how = (shift, block.weight, n_classes, self.rest.compiled)
            weighted, by_class = weighted_by_class(y[s], columns, *how)
            return by_class, block.columns.sums(weighted, last).T

        self._design.n_written = last
        pieces = zip(self.rest.slices, self._blocks, coming, strict=True)
        parts = list(self._map(one, pieces))
        return total([p for p, _ in parts]), total([p for _, p in parts])

    def put_local(self, atom: int) -> np.ndarray:
        """Add a local atom, and return its class sums.

        It is not centred, because zeros must stay zeros.
        """
        local = self.pool.local(atom)
        hot = np.eye(self._n_classes, dtype=self.dtype)
        sums = []
        for s, block in self._pieces():
            block.local.append(local, s)
            rows = block.local.atoms[-1].rows
            by_class = np.zeros((len(block.weight), self._n_classes), dtype=self.dtype)
            by_class[rows] = hot[self.rest.y[s][rows]] * block.weight[rows, None]
            sums.append(LocalBlock(block.local.atoms[-1:]).sums(by_class.T)[0])
        self._design.locals.append(local)
        class_sums: np.ndarray = local.change.T @ total(sums)
        return class_sums

    def cut(self, n_written: int, n_local: int) -> None:
        """Keep the first columns that are written down, and the first local atoms."""
        self._design = Design(self.dtype, n_written, self._design.locals[:n_local])
        for block in self._blocks:
            block.columns.cut(n_written)
            block.local = LocalBlock(block.local.atoms[:n_local])

    def unlike(self) -> tuple[int, np.ndarray]:
        """Return the last local atom's number of rows, and 1 for each earlier atom unlike it."""
        *before, last = self._design.locals
        return len(last.rows), np.array([not last.spans(other) for other in before], dtype=int)

    def forget(self) -> None:
        """Do nothing: no answer depends on what was asked before."""

    def trial(self, keep: bool) -> Shard:
        """Return a shard in which atoms are tried, on one thread.

        With ``keep``, it has the columns that are in. Without, it has no columns, and the current
        scores are a fixed offset.
        """
        if not keep:
            return Shard(self.rest, Threads(1), None, self._all_scores())
        n_written, locals = self._design.n_written, self._design.locals
        columns = [block.columns.copy(n_written) for block in self._blocks]
        out = Shard(self.rest, Threads(1), columns)
        out._design = Design(self.dtype, n_written, locals)
        for own, block in zip(out._blocks, self._blocks, strict=True):
            own.local = LocalBlock(block.local.atoms)
        return out

    # -- sums over rows ------------------------------------------------------------------------

    def evaluate(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss at weights ``W`` (n_columns, n_outputs) and its gradient there.

        From then on, scores and residual are those of ``W``.
        """
        self._weights = np.ascontiguousarray(W.T, dtype=self.dtype)
        self._inner = self._design.inner(W)
        passes = self._passes()
        parts = self._over_blocks(lambda b: passes.evaluate(b, self._weights, self._inner))
        return sum(value for value, _ in parts), self._design.column_sums([g for _, g in parts])

    def curve(self, V: np.ndarray) -> np.ndarray:
        """Return the Hessian of the loss at the last evaluated weights, applied to ``V``."""
        step, inner = np.ascontiguousarray(V.T, dtype=self.dtype), self._design.inner(V)
        passes = self._passes()
        parts = self._over_blocks(lambda block: passes.curve(block, step, inner))
        return self._design.column_sums(parts)

    def hessian(self, face: np.ndarray) -> np.ndarray | None:
        """Return the Hessian of the loss in the weights of ``face``, a mask (n_columns, n_outputs).

        The weights are in the order of ``np.nonzero``. The Hessian is in float64. Return None if
        there are more weights than the limit, or if columns are local.
        """
        return self._hessians().whole(face)

    def whole_hessian(self, step: float | None = None) -> tuple[np.ndarray, float]:
        """Return the Hessian in the weights of all columns, and the curvature of all rows.

        With ``step``, it is estimated from some rows; see `Hessians.of_some_rows`. The second
        answer then estimates the curvature of all rows. Otherwise it is zero. All columns must be
        written down.
        """
        if step is None:
            return self._hessians().of_all(), 0.0
        return self._hessians().of_some_rows(step, self.rest.first)

    def curvature(self) -> float:
        """Return the sum of the curvature of all rows at the last evaluated weights."""
        return self._hessians().curvature()

    def masses(self) -> list[Mass]:
        """Return the curvature of the rows from which each of the `hessian_blocks` is made."""
        return self._hessians().masses()

    def hessian_blocks(self, among: Sequence[Among] | None = None) -> list[np.ndarray]:
        """Return diagonal blocks of the Hessian for the columns in order, (n_outputs, w, w) each.

        There is one block for all columns that are written down, and one for every local atom. With
        wide atoms, a Hessian of all columns would take more memory than anything else. With many
        rows, the blocks are estimated from some of the rows. For each block, ``among`` gives the
        place of this shard's rows among those of other shards.
        """
        return self._hessians().diagonal(among)

    def _hessians(self) -> Hessians:
        rest, parts = self.rest, (self._blocks, self._design)
        return Hessians(rest.work, self.n_outputs, *parts, rest.limits, self._map, rest.compiled)

    def gram_product(self, t: np.ndarray) -> np.ndarray:
        """Return Σ_i weight_i x_i ⟨x_i, t⟩ of the columns that are in."""
        design = self._design
        parts = self._over_blocks(lambda block: design.gram_sums(block, t))
        return design.column_sums(parts)[:, 0]

    # -- sums over rows of the columns of the pool ---------------------------------------------

    def best(
        self, forbidden: np.ndarray, normaliser: np.ndarray | None, costs: np.ndarray | None
    ) -> Choice:
        """Return the pool's atom of largest l1 gradient norm over these rows.

        See `BoundPool.best`.
        """
        return self.pool.best(self.residual_of_all_rows(), forbidden, normaliser, costs)

    def gradients(self) -> Iterator[tuple[int, np.ndarray]]:
        """Return negative gradients in the weights of all columns of the pool, in blocks."""
        return self.pool.gradients(self.residual_of_all_rows())

    def along(self, t: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Return Σ_i weight_i z_i ⟨x_i, t⟩ for all columns z of the pool, like `gradients`."""
        parts = self._over_blocks(lambda block: self._design.along(block, t) * block.weight)
        return self.pool.gradients(np.concatenate(parts).astype(self.dtype)[:, None])

    def squares(self) -> np.ndarray:
        """Return the weighted squared norms of all columns of the pool."""
        return self.pool.squares(np.concatenate(self.rest.weights))

    def sums_of_pool(self) -> np.ndarray:
        """Return the weighted sum of every column of the pool."""
        weight = np.concatenate(self.rest.weights)[:, None]
        return whole(self.pool.gradients(weight), self.pool.n_columns)[:, 0]

    # -- what grows with the rows --------------------------------------------------------------

    def residual_of_all_rows(self) -> np.ndarray:
        """Return the negative gradient of the loss in the scores, (n_rows, n_outputs)."""
        out = np.empty((self.n_rows, self.n_outputs), dtype=self.dtype)

        def one(item: tuple[slice, Block]) -> None:
            s, block = item
            assert block.state is not None
            rest = (block.target, block.weight, block.state)
            if self.rest.compiled:
                from laconic.losses.softmax_kernels import residual_to_rows  # it imports Numba

                residual_to_rows(*rest, out[s])
            else:
                out[s] = self.loss.residual(*rest).T

        list(self._map(one, self._pieces(), 0))
        return out

    def labels_of_all_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the class codes and the weights of the rows."""
        return self.rest.y, np.concatenate(self.rest.weights)

    def columns_of_all_rows(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the columns of some atoms, scaled but not centred, (n_rows, width)."""
        return self.pool.columns(atoms)

    # -- blocks --------------------------------------------------------------------------------

    def _all_scores(self) -> list[np.ndarray]:
        passes = self._passes()
        return [passes.scores(block, self._weights, self._inner) for block in self._blocks]

    def _passes(self) -> Passes:
        return Passes(self.rest.work, self._design, self.rest.compiled)

    def _pieces(self) -> Iterator[tuple[slice, Block]]:
        return zip(self.rest.slices, self._blocks, strict=True)

    def _over_blocks(self, function: Callable[[Block], T]) -> list[T]:
        return list(self._map(function, self._blocks))

    def _map(
        self, function: Callable[[S], T], items: Iterable[S], n_columns: int | None = None
    ) -> Iterator[T]:
        """Call a function with each item, on a number of threads that suits so many columns."""
        n = self.n_columns if n_columns is None else n_columns
        most = self.rest.threads_for(n, self.has_locals)
        return self._threads.map(function, items, most=most)


def in_memory(
    pool: BoundPool,
    loss: Loss,
    y: np.ndarray,
    weight: np.ndarray,
    n_outputs: int,
    threads: Threads,
    limits: Limits | None = None,
    first: int = 0,
) -> Shard:
    """Return a shard of rows in memory.

    Parameters
    ----------
    pool : BoundPool
        The atoms over these rows.
    loss : Loss
    y : ndarray of shape (n_rows,)
        Class codes.
    weight : ndarray of shape (n_rows,)
        Positive row weights. The weights of all shards sum to one.
    n_outputs : int
    threads : Threads
    limits : Limits, optional
    first : int
        Number of the first row among the rows of all shards.
    """
    rest = Rest.of(pool, loss, y, weight, n_outputs, limits or Limits(), first)
    return Shard(rest, threads)
