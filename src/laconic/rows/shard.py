"""A shard: one part of the rows, in memory. It answers only with sums over its rows.

Rows are cut into blocks of fixed size. A block is computed by one thread, sums over blocks are
taken in float64 in the order of the blocks, and so no answer depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from laconic.losses import Loss
from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.base import BoundPool, Choice
from laconic.pools.local_columns import LocalColumns
from laconic.rows.blocks import Block, LocalBlock
from laconic.rows.curvature import Among, Mass, column_grams, column_mass, local_grams, placed
from laconic.rows.limits import Limits
from laconic.rows.stores import Packed, Store, Written
from laconic.rows.sums import total

S = TypeVar("S")
T = TypeVar("T")


class Rest(NamedTuple):
    """The rows of a shard without the columns that are in: what a shard and its trials share."""

    pool: BoundPool
    loss: Loss
    y: np.ndarray
    n_outputs: int
    slices: list[slice]
    targets: list[np.ndarray]
    weights: list[np.ndarray]
    shares: np.ndarray
    limits: Limits


class Shard:
    """One part of the training rows in memory: its columns, scores and residual.

    Parameters
    ----------
    rest : Rest
        What does not change; see `in_memory`.
    threads : Threads
    columns : list of Store, optional
        For each block, the columns that are in already.
    offsets : list of ndarray, optional
        For each block, scores (n_outputs, rows) that are added to those of the columns.
    """

    def __init__(
        self,
        rest: Rest,
        threads: Threads,
        columns: list[Store] | None = None,
        offsets: Sequence[np.ndarray | None] | None = None,
    ) -> None:
        self._rest = rest
        self._threads = threads
        self.pool, self.loss, self.n_outputs = rest.pool, rest.loss, rest.n_outputs
        self.dtype = rest.pool.dtype
        self.n_rows = len(rest.y)
        self._n_classes = max(rest.n_outputs, 2)  # one score tells two classes apart
        stores = columns or [self._store(len(w)) for w in rest.weights]
        given = offsets or [None for _ in stores]
        parts = zip(rest.targets, rest.weights, stores, given, strict=True)
        self._blocks = [Block(*part) for part in parts]
        self._n_written = 0
        self._locals: list[LocalColumns] = []
        self._coming: np.ndarray | None = None

    def _store(self, n_rows: int) -> Store:
        if self.pool.binary or self.pool.signs:
            return Packed(n_rows, self.dtype, self.pool.signs)
        return Written(n_rows, self.dtype, self._rest.limits.multiplied)

    # -- which columns are in ------------------------------------------------------------------

    @property
    def n_columns(self) -> int:
        """Columns in."""
        return self._n_written + sum(local.width for local in self._locals)

    def class_shares(self) -> np.ndarray:
        """Sum of the weights of every class."""
        return self._rest.shares

    def put_constant(self) -> tuple[np.ndarray, np.ndarray]:
        """Let a column of ones in, the first one; class sums and Gram rows, as `take` gives."""
        self._coming = np.ones((self.n_rows, 1), dtype=self.dtype)
        return self.take(np.zeros(1))

    def offer(self, atoms: Sequence[int]) -> np.ndarray:
        """Write the columns of some atoms down, to be let in by `take`; their weighted sums."""
        # One by one and each in one piece, so that no sum depends on which come together.
        written = [self.pool.columns([atom]) for atom in atoms]
        self._coming = columns = np.asfortranarray(np.hstack(written))

        def one(item: tuple[slice, Block]) -> np.ndarray:
            s, block = item
            return np.array([np.dot(block.weight, column) for column in columns[s].T])

        return total(list(self._map(one, self._pieces())))

    def take(self, means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Let the offered columns in, less their means.

        Returns their class sums (new columns, n_classes) and their rows of the Gram matrix
        (new columns, all columns in).
        """
        columns, self._coming = self._coming, None
        assert columns is not None
        y, n_classes, first = self._rest.y, self._n_classes, self._n_written
        last = first + columns.shape[1]
        shift = means.astype(self.dtype)

        def one(item: tuple[slice, Block]) -> tuple[np.ndarray, np.ndarray]:
            s, block = item
            block.columns.put(first, columns[s], means)
            weighted = (columns[s] - shift).T * block.weight
            by_class = [np.bincount(y[s], w, minlength=n_classes) for w in weighted]
            return np.array(by_class), block.columns.sums(weighted, last).T

        self._n_written = last
        parts = list(self._map(one, self._pieces()))
        return total([p for p, _ in parts]), total([p for _, p in parts])

    def put_local(self, atom: int) -> np.ndarray:
        """Let a local atom in, which is not centred: zeros must stay zeros. Its class sums."""
        local = self.pool.local(atom)
        hot = np.eye(self._n_classes, dtype=self.dtype)
        sums = []
        for s, block in self._pieces():
            block.local.append(local, s)
            rows = block.local.atoms[-1].rows
            by_class = np.zeros((len(block.weight), self._n_classes), dtype=self.dtype)
            by_class[rows] = hot[self._rest.y[s][rows]] * block.weight[rows, None]
            sums.append(LocalBlock(block.local.atoms[-1:]).sums(by_class.T)[0])
        self._locals.append(local)
        class_sums: np.ndarray = local.change.T @ total(sums)
        return class_sums

    def cut(self, n_written: int, n_local: int) -> None:
        """Keep the first columns that are written down, and the first local atoms."""
        self._n_written = n_written
        self._locals = self._locals[:n_local]
        for block in self._blocks:
            block.local = LocalBlock(block.local.atoms[:n_local])

    def unlike(self) -> tuple[int, np.ndarray]:
        """Of the last local atom: its number of rows, and 1 for each one before that differs."""
        *before, last = self._locals
        return len(last.rows), np.array([not last.spans(other) for other in before], dtype=int)

    def trial(self, keep: bool) -> Shard:
        """A shard in which atoms are tried out, on one thread.

        With ``keep`` it has the columns that are in; without, none, and the present scores are a
        fixed offset.
        """
        if not keep:
            return Shard(self._rest, Threads(1), None, [self._scores(b) for b in self._blocks])
        columns = [block.columns.copy(self._n_written) for block in self._blocks]
        out = Shard(self._rest, Threads(1), columns)
        out._n_written, out._locals = self._n_written, list(self._locals)
        for own, block in zip(out._blocks, self._blocks, strict=True):
            own.local = LocalBlock(block.local.atoms)
        return out

    # -- sums over rows ------------------------------------------------------------------------

    def evaluate(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Loss at weights ``W`` (n_columns, n_outputs) and its gradient there.

        Scores and residual are those of ``W`` from here on.
        """
        self._weights = W.astype(self.dtype)
        self._inner = self._table_weights(W)

        def one(block: Block) -> tuple[float, np.ndarray]:
            scores = self._scores(block)
            if block.state is None:
                block.state = np.empty_like(scores)
            value = self.loss.evaluate(scores, block.target, block.weight, block.state)
            residual = self.loss.residual(block.target, block.weight, block.state)
            return value, -self._sums(block, residual)

        parts = self._over_blocks(one)
        return sum(value for value, _ in parts), self._column_sums([g for _, g in parts])

    def curve(self, V: np.ndarray) -> np.ndarray:
        """Hessian of the loss at the last evaluated weights, applied to ``V``."""
        step, inner = V.T.astype(self.dtype), self._table_weights(V)

        def one(block: Block) -> np.ndarray:
            assert block.state is not None
            moved = self._product(block, step, inner)
            return self._sums(block, self.loss.curve(block.weight, block.state, moved))

        return self._column_sums(self._over_blocks(one))

    def hessian(self, face: np.ndarray) -> np.ndarray | None:
        """Hessian of the loss among the weights of ``face``, a mask (n_columns, n_outputs).

        In the order of ``np.nonzero``, in float64. None where they are more than the limit, or
        columns are local.
        """
        if self._locals or np.count_nonzero(face) > self._rest.limits.face:
            return None
        columns, outputs = np.nonzero(face)
        held = slice(0, self._n_written)

        def one(block: Block) -> np.ndarray:
            assert block.state is not None
            written = block.columns.take(slice(None), held).T[columns].astype(np.float64)
            out = np.empty((len(columns), len(columns)))
            for c in np.unique(outputs):
                unit = np.zeros_like(block.state)
                unit[c] = 1.0
                bend = self.loss.curve(block.weight, block.state, unit)
                own = outputs == c
                out[:, own] = (written * bend[outputs]) @ written[own].T
            return out

        return total(self._over_blocks(one))

    def masses(self) -> list[Mass]:
        """Curvature of the rows that each of the `hessian_blocks` is made from."""
        written = [column_mass(self._bends())] if self._n_written else []
        if not self._locals:
            return written
        mass = np.hstack(self._over_blocks(self._curvature)).sum(axis=0, dtype=np.float64)
        inside = [mass[local.rows] for local in self._locals]
        return [*written, *(Mass(len(m), m.sum()) for m in inside)]

    def hessian_blocks(self, among: Sequence[Among] | None = None) -> list[np.ndarray]:
        """Diagonal blocks of the Hessian that cover the columns in order, (n_outputs, w, w) each.

        One block for all columns that are written down, and one for every local atom: beside wide
        atoms a Hessian of all columns would be the largest thing in memory. Where rows are many
        they are estimated from some of them; ``among`` says for each where these rows stand among
        those of other shards.
        """
        places = list(among) if among is not None else []
        written = [self._class_hessians(places[0] if places else None)] if self._n_written else []
        if not self._locals:
            return written
        own = places[len(written) :] or [place for mass in self.masses()[len(written) :]
                                         for place in placed([mass])]  # fmt: skip
        return [*written, *self._local_hessians(own)]

    def _bends(self) -> list[np.ndarray]:
        """Curvature of every block: of the first of two classes, which bend the loss alike."""
        curvatures = self._over_blocks(self._curvature)
        return [h[:1] for h in curvatures] if self._alike else curvatures

    @property
    def _alike(self) -> bool:
        return self.n_outputs == 2 and self.loss.shift_invariant

    def _class_hessians(self, among: Among | None) -> np.ndarray:
        """Σ_i h_ic x_i x_iᵀ of the columns that are written down, for every output.

        They serve as a preconditioner, and to rank atoms by what dropping them would cost; where
        rows are many they are an estimate.
        """
        first = slice(0, self._n_written)
        takes = [partial(block.columns.take, columns=first) for block in self._blocks]
        few = self._rest.limits.preconditioner_rows * max(self._n_written, 64)
        grams = column_grams(takes, self._bends(), few, self._map, among)
        return np.repeat(grams, 2, axis=0) if self._alike else grams

    def _local_hessians(self, places: Sequence[Among]) -> list[np.ndarray]:
        curvature = np.hstack(self._over_blocks(self._curvature))
        mass = curvature.sum(axis=0, dtype=np.float64)
        few = self._rest.limits.local_rows * len(self._locals[0].change)

        def one(item: tuple[LocalColumns, Among]) -> np.ndarray:
            return local_grams(*item, curvature, mass, few)

        return list(self._map(one, zip(self._locals, places, strict=True)))

    def _curvature(self, block: Block) -> np.ndarray:
        assert block.state is not None
        return self.loss.curvature(block.weight, block.state)

    def gram_product(self, t: np.ndarray) -> np.ndarray:
        """Σ_i weight_i x_i ⟨x_i, t⟩ over the columns in."""

        def one(block: Block) -> np.ndarray:
            along = self._along(block, t) * block.weight.astype(np.float64)
            sums = self._written(block).T @ along
            if not self._locals:
                return sums[:, None]
            return np.concatenate([sums, block.local.exact_sums(along).ravel()])[:, None]

        return self._column_sums(self._over_blocks(one))[:, 0]

    def _along(self, block: Block, t: np.ndarray) -> np.ndarray:
        """⟨x_i, t⟩ for the rows of a block, in float64."""
        out: np.ndarray = self._written(block) @ t[: self._n_written]
        if not self._locals:
            return out
        parts = t[self._n_written :].reshape(len(self._locals), -1)
        tables = [local.change @ own for local, own in zip(self._locals, parts, strict=True)]
        return out + block.local.exact_product(np.array(tables))

    def _written(self, block: Block) -> np.ndarray:
        return block.columns.take(slice(None), slice(0, self._n_written)).astype(np.float64)

    # -- sums over rows of the columns of the pool ---------------------------------------------

    def best(
        self, forbidden: np.ndarray, normaliser: np.ndarray | None, costs: np.ndarray | None
    ) -> Choice:
        """The pool's atom of largest l1 gradient norm over these rows; see `BoundPool.best`."""
        return self.pool.best(self.residual_of_all_rows(), forbidden, normaliser, costs)

    def gradients(self) -> Iterator[tuple[int, np.ndarray]]:
        """Negative gradients of the loss in the weights of all columns of the pool, in blocks."""
        return self.pool.gradients(self.residual_of_all_rows())

    def along(self, t: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Σ_i weight_i z_i ⟨x_i, t⟩ over all columns z of the pool, in blocks, as `gradients`."""
        parts = self._over_blocks(lambda block: self._along(block, t) * block.weight)
        return self.pool.gradients(np.concatenate(parts).astype(self.dtype)[:, None])

    def squares(self) -> np.ndarray:
        """Weighted squared norms of all columns of the pool."""
        return self.pool.squares(np.concatenate(self._rest.weights))

    # -- what grows with the rows --------------------------------------------------------------

    def residual_of_all_rows(self) -> np.ndarray:
        """Negative gradient of the loss in the scores, (n_rows, n_outputs)."""
        out = np.empty((self.n_rows, self.n_outputs), dtype=self.dtype)

        def one(item: tuple[slice, Block]) -> None:
            s, block = item
            assert block.state is not None
            out[s] = self.loss.residual(block.target, block.weight, block.state).T

        list(self._threads.map(one, self._pieces()))
        return out

    def columns_of_all_rows(self, atoms: Sequence[int]) -> np.ndarray:
        """Columns of some atoms, scaled but not centred, (n_rows, width)."""
        return self.pool.columns(atoms)

    # -- blocks --------------------------------------------------------------------------------

    def _table_weights(self, W: np.ndarray) -> np.ndarray | None:
        """Weights of the local atoms as weights of what their columns are made of."""
        if not self._locals:
            return None
        parts = W[self._n_written :].reshape(len(self._locals), -1, W.shape[1])
        out = np.empty((len(parts), len(self._locals[0].change), W.shape[1]), dtype=self.dtype)
        for local, part, own in zip(self._locals, parts, out, strict=True):
            own[:] = local.change @ part
        return out

    def _scores(self, block: Block) -> np.ndarray:
        scores = self._product(block, self._weights.T, self._inner)
        if block.offset is not None:
            scores += block.offset
        return scores

    def _product(self, block: Block, weights: np.ndarray, inner: np.ndarray | None) -> np.ndarray:
        """Weights (n_outputs, n_columns) times the columns in, class-major.

        ``inner`` are the weights of the local atoms, for the table.
        """
        out = block.columns.product(weights[:, : self._n_written])
        if inner is not None:
            out += block.local.product(inner)
        return out

    def _sums(self, block: Block, values: np.ndarray) -> np.ndarray:
        """Sums over the block's rows of columns (or tables) times class-major values."""
        out = block.columns.sums(values, self._n_written)
        if not self._locals:
            return out
        return np.vstack([out, block.local.sums(values).reshape(-1, self.n_outputs)])

    def _column_sums(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """Add the sums of the blocks, and make those of columns of those of tables."""
        sums, n = total(parts), self._n_written
        if not self._locals:
            return sums
        tables = sums[n:].reshape(len(self._locals), -1, sums.shape[1])
        out = np.empty((self.n_columns, sums.shape[1]))
        out[:n] = sums[:n]
        columns = out[n:].reshape(len(tables), -1, sums.shape[1])
        for local, table, own in zip(self._locals, tables, columns, strict=True):
            own[:] = local.change.T @ table
        return out

    def _pieces(self) -> Iterator[tuple[slice, Block]]:
        return zip(self._rest.slices, self._blocks, strict=True)

    def _over_blocks(self, function: Callable[[Block], T]) -> list[T]:
        return list(self._map(function, self._blocks))

    def _map(self, function: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
        small = self.n_rows * self.n_columns * self.n_outputs < self._rest.limits.serial
        return map(function, items) if small else self._threads.map(function, items)


def in_memory(
    pool: BoundPool,
    loss: Loss,
    y: np.ndarray,
    weight: np.ndarray,
    n_outputs: int,
    threads: Threads,
    limits: Limits | None = None,
) -> Shard:
    """A shard of rows in memory.

    Parameters
    ----------
    pool : BoundPool
        The atoms over these rows.
    loss : Loss
    y : ndarray of shape (n_rows,)
        Class codes.
    weight : ndarray of shape (n_rows,)
        Positive row weights; over all shards they sum to one.
    n_outputs : int
    threads : Threads
    limits : Limits, optional
    """
    limits = limits or Limits()
    slices = row_blocks(len(y), limits.block_rows)
    targets = [loss.targets(y[s], n_outputs) for s in slices]
    weights = [weight[s].astype(pool.dtype) for s in slices]
    n_classes = max(n_outputs, 2)
    shares = np.bincount(y, weight, minlength=n_classes)[:n_classes]
    rest = Rest(pool, loss, y, n_outputs, slices, targets, weights, shares, limits)
    return Shard(rest, threads)
