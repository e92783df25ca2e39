"""The training rows: they own scores and residual, and answer only with sums over rows.

The loop, the rules and the corrector never see a row. Everything they learn comes through the
methods of `Rows`, each a sum over rows (losses, gradients, Hessian products, Gram matrices), so
that rows can live in memory, as here, or elsewhere behind the same seam.

Rows are cut into blocks of fixed size. A block is computed by one thread, sums over blocks are
taken in float64 in the order of the blocks, and so no answer depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs

from laconic.boost.blocks import Block, LocalBlock, total
from laconic.boost.curvature import column_grams, local_grams
from laconic.boost.stores import Packed, Store, Written
from laconic.losses import Loss
from laconic.pools.base import BoundPool, Choice
from laconic.pools.local import LocalColumns
from laconic.threads import Threads, row_blocks

S = TypeVar("S")
T = TypeVar("T")

# Rows in a block: large enough to hide Python's overhead, small enough to stay in a core's cache.
BLOCK_ROWS = 4096
# Atoms that are let in together where several come at once.
TOGETHER = 64
# Multiplications below which handing blocks to threads costs more than it saves.
SERIAL = 1 << 22
# Rows per column that the preconditioner of a class is estimated from; for local atoms, whose rows
# serve all classes, more.
PRECONDITIONER_ROWS = 12
# Most weights among which a Hessian is written down: with more, conjugate gradients are quicker.
FACE = 1000
LOCAL_ROWS = 16


class Rows:
    """Training rows in memory.

    Parameters
    ----------
    pool : BoundPool
        The atoms over these rows.
    loss : Loss
    y : ndarray of shape (n_rows,)
        Class codes.
    weight : ndarray of shape (n_rows,)
        Positive row weights that sum to one.
    n_outputs : int
    threads : Threads
    intercept : bool
        Whether a constant column comes first, before those of the atoms. The atoms' columns are
        then centred: the intercept takes up their means, and the weights do not notice, but a
        column far from zero is told from the intercept.

    Attributes
    ----------
    atoms : list of int
        Atoms whose columns are in, in the order they came.
    n_columns : int
        Columns in, the intercept's included.
    means : ndarray of shape (n_columns,)
        What was subtracted from each column.
    """

    def __init__(
        self,
        pool: BoundPool,
        loss: Loss,
        y: np.ndarray,
        weight: np.ndarray,
        n_outputs: int,
        threads: Threads,
        intercept: bool = True,
    ) -> None:
        self.pool = pool
        self.loss = loss
        self.n_outputs = n_outputs
        self.threads = threads
        self.intercept = intercept
        self.dtype = pool.dtype
        self.atoms: list[int] = []
        self.n_columns = 0
        self._slices = row_blocks(len(y), BLOCK_ROWS)
        self._y = y
        self._blocks = [
            Block(
                loss.targets(y[s], n_outputs),
                weight[s].astype(self.dtype),
                self._store(s.stop - s.start),
                None,
            )
            for s in self._slices
        ]
        self._n_classes = max(n_outputs, 2)  # one score tells two classes apart
        self._class_sums = np.zeros((0, self._n_classes))
        self._gram = np.zeros((0, 0))
        self.means = np.zeros(0)
        self._locals: list[LocalColumns] = []
        self._basis: list[np.ndarray] = []
        self._class_shares = np.bincount(y, weight, minlength=self._n_classes)[: self._n_classes]
        if intercept:
            self._put(np.ones((len(y), 1), dtype=self.dtype), np.zeros(1))

    def _store(self, n_rows: int) -> Store:
        if self.pool.binary or self.pool.signs:
            return Packed(n_rows, self.dtype, self.pool.signs)
        return Written(n_rows, self.dtype)

    # -- which columns are in ------------------------------------------------------------------

    def append(self, atom: int) -> None:
        """Let the columns of an atom in."""
        self._extend([atom])

    def _extend(self, atoms: Sequence[int]) -> None:
        """Let the columns of some atoms in, several at a time: that takes fewer passes."""
        for s in row_blocks(len(atoms), TOGETHER):
            some = atoms[s]
            local = [self.pool.local(atom) for atom in some]
            if local[0] is not None:
                for columns in local:
                    assert columns is not None
                    self._put_local(columns)
            else:
                # One by one and each in one piece, so that no sum depends on which come together.
                written = np.asfortranarray(np.hstack([self.pool.columns([atom]) for atom in some]))
                self._put(written, self._means_of(written))
            self.atoms.extend(some)

    def _means_of(self, columns: np.ndarray) -> np.ndarray:
        """What is subtracted from columns: their weighted means beside an intercept."""
        if not self.intercept:
            return np.zeros(columns.shape[1])

        def one(item: tuple[slice, Block]) -> np.ndarray:
            s, block = item
            return np.array([np.dot(block.weight, column) for column in columns[s].T])

        return total(list(self._map(one, zip(self._slices, self._blocks, strict=True))))

    def reset(self, atoms: Sequence[int]) -> None:
        """Let in exactly these atoms, in this order; shared leading atoms are kept as they are."""
        keep = 0
        while keep < min(len(atoms), len(self.atoms)) and atoms[keep] == self.atoms[keep]:
            keep += 1
        self.atoms = self.atoms[:keep]
        self.n_columns = int(self.intercept) + sum(self.pool.width(a) for a in self.atoms)
        self._class_sums = self._class_sums[: self.n_columns]
        self._gram = self._gram[: self.n_columns, : self.n_columns]
        self.means = self.means[: self.n_columns]
        self._basis = self._basis[: self.n_columns]
        self._locals = self._locals[:keep]
        for block in self._blocks:
            block.local = LocalBlock(block.local.atoms[:keep])
        self._extend(atoms[keep:])

    def _put(self, columns: np.ndarray, means: np.ndarray) -> None:
        first, last = self.n_columns, self.n_columns + columns.shape[1]
        shift = means.astype(self.dtype)

        def one(item: tuple[slice, Block]) -> tuple[np.ndarray, np.ndarray]:
            s, block = item
            block.columns.put(first, columns[s], means)
            weighted = (columns[s] - shift).T * block.weight
            by_class = [np.bincount(self._y[s], w, minlength=self._n_classes) for w in weighted]
            return np.array(by_class), block.columns.sums(weighted, last).T

        self.n_columns = last
        parts = list(self._map(one, zip(self._slices, self._blocks, strict=True)))
        self._class_sums = np.vstack([self._class_sums, total([p for p, _ in parts])])
        gram = np.empty((last, last))
        gram[:first, :first] = self._gram
        gram[first:] = total([p for _, p in parts])
        gram[:, first:] = gram[first:].T
        self._gram = gram
        self.means = np.append(self.means, means)

    def _put_local(self, local: LocalColumns) -> None:
        """Keep the rows of a local atom. Its columns are not centred: zeros must stay zeros."""
        hot = np.eye(self._n_classes, dtype=self.dtype)
        sums = []
        for s, block in zip(self._slices, self._blocks, strict=True):
            block.local.append(local, s)
            rows = block.local.atoms[-1].rows
            by_class = np.zeros((len(block.weight), self._n_classes), dtype=self.dtype)
            by_class[rows] = hot[self._y[s][rows]] * block.weight[rows, None]
            sums.append(LocalBlock(block.local.atoms[-1:]).sums(by_class.T)[0])
        self._locals.append(local)
        self.n_columns += local.width
        self._class_sums = np.vstack([self._class_sums, local.change.T @ total(sums)])
        self.means = np.append(self.means, np.zeros(local.width))

    @property
    def _n_written(self) -> int:
        """Columns that are written down; they come before the local ones."""
        return int(self.intercept) if self._locals else self.n_columns

    def _table_weights(self, W: np.ndarray) -> np.ndarray | None:
        """Weights of the local atoms as weights of what their columns are made of."""
        if not self._locals:
            return None
        parts = W[self._n_written :].reshape(len(self._locals), -1, W.shape[1])
        out = np.empty((len(parts), len(self._locals[0].change), W.shape[1]), dtype=self.dtype)
        for local, part, own in zip(self._locals, parts, out, strict=True):
            own[:] = local.change @ part
        return out

    def adds_nothing(self, atom: int) -> bool:
        """Whether the last atom let in is, up to rounding, a combination of the columns before.

        Of local atoms, only those are found that are as high on just the same rows as another one.
        """
        if self._locals:
            *before, last = self._locals
            return len(last.rows) == 0 or any(last.spans(b) for b in before)
        width = self.pool.width(atom)
        old, new = np.s_[: self.n_columns - width], np.s_[self.n_columns - width :]
        own = np.diag(self._gram)[new]
        whole = own + self.means[new] ** 2
        cross = self._gram[old, new]
        explained = _explained(self._gram[old, old], cross)
        rounding = 1e-9 if self.dtype == np.float64 else 1e-5
        nothing = (64.0 * np.finfo(self.dtype).eps) ** 2 * whole
        return bool(np.all(own - explained <= np.maximum(rounding * own, nothing)))

    def repeats(self, atom: int) -> bool:
        """Whether the last atom let in is one before it again, up to scale, sign and rounding."""
        if self._locals or self.pool.width(atom) > 1:
            return self.adds_nothing(atom)
        size = np.sqrt(np.diag(self._gram))
        cross, rounding = np.abs(self._gram[-1, :-1]), 64.0 * np.finfo(self.dtype).eps
        return bool(np.any(cross >= (1.0 - rounding) * size[-1] * size[:-1]))

    def trial(self, atom: int, keep: bool) -> Rows:
        """Rows in which an atom is tried out.

        With ``keep`` its columns stand after those already in; without, it stands alone and the
        present scores are a fixed offset.
        """
        out = object.__new__(Rows)
        out.__dict__.update(self.__dict__)
        out.threads = Threads(1)
        out._basis = []
        out.atoms = list(self.atoms) if keep else []
        out._locals = list(self._locals) if keep else []
        out._blocks = []
        for block in self._blocks:
            if keep:
                columns = block.columns.copy(self._n_written)
                out._blocks.append(Block(block.target, block.weight, columns, None))
                out._blocks[-1].local = LocalBlock(block.local.atoms)
            else:
                columns = self._store(len(block.weight))
                out._blocks.append(Block(block.target, block.weight, columns, self._scores(block)))
        if not keep:
            out.intercept = False
            out.n_columns = 0
            out._class_sums = np.zeros((0, self._n_classes))
            out._gram = np.zeros((0, 0))
            out.means = np.zeros(0)
        out.append(atom)
        return out

    # -- sums over rows ------------------------------------------------------------------------

    @property
    def shift_invariant(self) -> bool:
        """Whether a shift of all scores of a row leaves the loss as it is."""
        return self.loss.shift_invariant

    @property
    def class_sums(self) -> np.ndarray:
        """Σ_i weight_i x_i e_{y_i}ᵀ of the columns in, (n_columns, n_classes)."""
        return self._class_sums

    def balance(self, gradient: np.ndarray) -> tuple[float, np.ndarray]:
        """How much of which distribution over the classes takes that of the intercept to zero."""
        return self.loss.balance(gradient, self._class_sums[0])

    def constant(self, sigma: np.ndarray) -> tuple[float, np.ndarray]:
        """Dual value and gradient of giving every row the distribution ``sigma``."""
        value = self.loss.constant_value(sigma, self._class_shares)
        return value, self.loss.constant_gradient(sigma, self._class_sums)

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

        In the order of ``np.nonzero``, in float64. None where they are more than `FACE`, or columns
        are local.
        """
        if self._locals or np.count_nonzero(face) > FACE:
            return None
        columns, outputs = np.nonzero(face)
        held = slice(0, self.n_columns)

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

    def hessian_blocks(self) -> list[np.ndarray]:
        """Diagonal blocks of the Hessian that cover the columns in order, (n_outputs, w, w) each.

        One block for all columns that are written down, and one for every local atom: beside wide
        atoms a Hessian of all columns would be the largest thing in memory.
        """
        written = [self.class_hessians()] if self._n_written else []
        return [*written, *self._local_hessians()]

    def class_hessians(self) -> np.ndarray:
        """Diagonal blocks Σ_i h_ic x_i x_iᵀ of the Hessian, a square matrix for every output.

        Of the columns that are not local. They serve as a preconditioner, and to rank atoms by
        what dropping them would cost; where rows are many they are an estimate.
        """
        first = slice(0, self._n_written)
        takes = [partial(block.columns.take, columns=first) for block in self._blocks]
        curvatures = self._over_blocks(self._curvature)
        alike = self.n_outputs == 2 and self.shift_invariant  # two classes bend the loss alike
        if alike:
            curvatures = [h[:1] for h in curvatures]
        few = PRECONDITIONER_ROWS * max(self._n_written, 64)
        grams = column_grams(takes, curvatures, few, self._map)
        return np.repeat(grams, 2, axis=0) if alike else grams

    def _local_hessians(self) -> list[np.ndarray]:
        if not self._locals:
            return []
        curvature = np.hstack(self._over_blocks(self._curvature))
        mass = curvature.sum(axis=0, dtype=np.float64)
        few = LOCAL_ROWS * len(self._locals[0].change)
        one = partial(local_grams, curvature=curvature, mass=mass, few=few)
        return list(self._map(one, self._locals))

    def _curvature(self, block: Block) -> np.ndarray:
        assert block.state is not None
        return self.loss.curvature(block.weight, block.state)

    def residual(self) -> np.ndarray:
        """Negative gradient of the loss in the scores, (n_rows, n_outputs): for pools only."""
        out = np.empty((len(self._y), self.n_outputs), dtype=self.dtype)

        def one(item: tuple[slice, Block]) -> None:
            s, block = item
            assert block.state is not None
            out[s] = self.loss.residual(block.target, block.weight, block.state).T

        list(self.threads.map(one, zip(self._slices, self._blocks, strict=True)))
        return out

    def best(
        self, forbidden: np.ndarray, normaliser: np.ndarray | None, costs: np.ndarray | None
    ) -> Choice:
        """The pool's atom of largest l1 gradient norm, eq. (7); see `BoundPool.best`."""
        return self.pool.best(self.residual(), forbidden, normaliser, costs)

    def pool_squares(self) -> np.ndarray:
        """Weighted squared norms of every column of the pool."""
        return self.pool.squares(self._weight())

    def span_sums(self, done: int) -> Iterator[Iterator[tuple[int, np.ndarray]]]:
        """Products of the pool's columns with an orthonormal basis of the columns in.

        For every column in from number ``done`` on: the weighted inner products of all columns of
        the pool with the direction it adds, as `BoundPool.gradients` gives them. Gram-Schmidt in
        the weighted inner product; a column that depends on earlier ones adds a zero direction.
        """
        weight = self._weight().astype(np.float64)
        for column in range(len(self._basis), self.n_columns):
            q = self._written(column).astype(np.float64)
            length = np.sqrt(np.dot(weight * q, q))
            for _ in range(2):  # twice is enough (Kahan, Parlett)
                for other in self._basis:
                    q -= np.dot(weight * other, q) * other
            rest = np.sqrt(np.dot(weight * q, q))
            q = q / rest if rest > 1e-5 * length else np.zeros_like(q)
            self._basis.append(q.astype(self.dtype))
        for q in self._basis[done:]:
            yield self.pool.gradients((q * weight).astype(self.dtype)[:, None])

    def _written(self, column: int) -> np.ndarray:
        """One of the columns in, written down."""
        if column < self._n_written:
            part = slice(column, column + 1)
            return np.concatenate([b.columns.take(slice(None), part)[:, 0] for b in self._blocks])
        at, inside = divmod(column - self._n_written, self._locals[0].width)
        return self._locals[at].written(slice(inside, inside + 1))[:, 0]

    def _weight(self) -> np.ndarray:
        return np.concatenate([block.weight for block in self._blocks])

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
        tables = sums[n:].reshape(len(self._locals), -1, self.n_outputs)
        out = np.empty((self.n_columns, self.n_outputs))
        out[:n] = sums[:n]
        columns = out[n:].reshape(len(tables), -1, self.n_outputs)
        for local, table, own in zip(self._locals, tables, columns, strict=True):
            own[:] = local.change.T @ table
        return out

    def _over_blocks(self, function: Callable[[Block], T]) -> list[T]:
        return list(self._map(function, self._blocks))

    def _map(self, function: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
        small = len(self._y) * self.n_columns * self.n_outputs < SERIAL
        return map(function, items) if small else self.threads.map(function, items)


def _explained(gram: np.ndarray, cross: np.ndarray) -> np.ndarray:
    """Squared norms of new columns' projections on those in: diag(Cᵀ G⁺ C)."""
    if len(gram) == 0:  # LAPACK complains on stdout of a matrix without rows
        return np.zeros(cross.shape[1])
    lower, info = dpotrf(gram, lower=1)
    pivots = np.diag(lower) ** 2
    # Columns that are combinations of each other, as included ones may be, need a pseudo-inverse.
    if info != 0 or np.any(pivots <= 1e-12 * np.diag(gram)):
        return np.sum(cross * np.linalg.lstsq(gram, cross, rcond=None)[0], axis=0)
    return np.sum(np.square(dtrtrs(lower, cross, lower=1)[0]), axis=0)
