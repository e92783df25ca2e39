"""The training rows: the ordered sum over their shards.

The loop, the rules and the correctors never see a row. Everything they learn comes through the
methods of `Rows`. Each asks every shard for a sum over its rows, and adds the answers up in
float64, in the order of the shards. So it does not matter where a shard lives, nor which one
answers first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from laconic.losses import Loss
from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.base import BoundPool, Choice, best_of
from laconic.rows.columns_in import ColumnsIn
from laconic.rows.curvature import placed
from laconic.rows.limits import Limits
from laconic.rows.shard import Shard, in_memory
from laconic.rows.sums import added_up, total

# Atoms that are let in together where several come at once.
TOGETHER = 64


class Rows:
    """All training rows, as shards that answer with sums.

    Parameters
    ----------
    shards : list of Shard
        At least one. They have the same pool (the same atoms, bound to different rows), loss and
        number of outputs.
    intercept : bool
        Whether a constant column comes first, before those of the atoms. The atoms' columns are
        then centred: the intercept takes up their means, and the weights do not notice, but a
        column far from zero is told from the intercept.
    threads : Threads, optional
        For rules that try many atoms out.

    Attributes
    ----------
    atoms : list of int
        Atoms whose columns are in, in the order they came.
    n_columns : int
        Columns in, the intercept's included.
    """

    def __init__(
        self, shards: Sequence[Shard], intercept: bool = True, threads: Threads | None = None
    ) -> None:
        self._shards = [_checked(shard) for shard in shards]
        if not self._shards:
            raise ValueError("rows need at least one shard")
        self.intercept = intercept
        self.threads = threads or Threads(1)
        first = self._shards[0]
        self.pool: BoundPool = first.pool
        self.loss, self.n_outputs, self.dtype = first.loss, first.n_outputs, first.dtype
        self._shares = total([shard.class_shares() for shard in self._shards])
        self._empty()
        if intercept:
            self._taken([shard.put_constant() for shard in self._shards], np.zeros(1))

    def _empty(self) -> None:
        self.atoms: list[int] = []
        self.n_columns = 0
        self._in = ColumnsIn.none(len(self._shares))
        self._n_local = 0
        self._span: list[np.ndarray] = []

    # -- which columns are in ------------------------------------------------------------------

    @property
    def means(self) -> np.ndarray:
        """What was subtracted from each column, (n_columns,)."""
        return self._in.means

    @property
    def class_sums(self) -> np.ndarray:
        """Σ_i weight_i x_i e_{y_i}ᵀ of the columns in, (n_columns, n_classes)."""
        return self._in.class_sums

    @property
    def gram(self) -> np.ndarray:
        """Σ_i weight_i x_i x_iᵀ of the columns in; local atoms have no part in it."""
        return self._in.gram

    def append(self, atom: int) -> None:
        """Let the columns of an atom in."""
        self._extend([atom])

    def _extend(self, atoms: Sequence[int]) -> None:
        """Let the columns of some atoms in, several at a time: that takes fewer passes."""
        for s in row_blocks(len(atoms), TOGETHER):
            some = atoms[s]
            if self.pool.local_atoms:
                for atom in some:
                    self._put_local(atom)
            else:
                sums = total([shard.offer(some) for shard in self._shards])
                means = sums if self.intercept else np.zeros_like(sums)
                self._taken([shard.take(means) for shard in self._shards], means)
            self.atoms.extend(some)

    def _taken(self, parts: list[tuple[np.ndarray, np.ndarray]], means: np.ndarray) -> None:
        """Note class sums and Gram rows of new columns."""
        class_sums, rows = (total(same) for same in zip(*parts, strict=True))
        self.n_columns += len(means)
        self._in = self._in.joined(means, class_sums, rows)

    def _put_local(self, atom: int) -> None:
        sums = self._sum(lambda shard: shard.put_local(atom))
        self._n_local += 1
        self.n_columns += len(sums)
        self._in = self._in.joined_local(np.zeros(len(sums)), sums)

    def reset(self, atoms: Sequence[int]) -> None:
        """Let in exactly these atoms, in this order; shared leading atoms are kept as they are."""
        keep = 0
        while keep < min(len(atoms), len(self.atoms)) and atoms[keep] == self.atoms[keep]:
            keep += 1
        self.atoms = self.atoms[:keep]
        n = int(self.intercept) + sum(self.pool.width(a) for a in self.atoms)
        self._n_local = min(self._n_local, keep)
        written = int(self.intercept) if self._n_local else n
        for shard in self._shards:
            shard.cut(written, self._n_local)
        self.n_columns = n
        self._in, self._span = self._in.first(n), self._span[:n]
        self._extend(atoms[keep:])

    def adds_nothing(self, atom: int) -> bool:
        """Whether the last atom let in is, up to rounding, a combination of the columns before.

        Of local atoms, only those are found that are as high on just the same rows as another one.
        """
        if self._n_local:
            answers = [shard.unlike() for shard in self._shards]
            differ = np.sum([different for _, different in answers], axis=0)
            return sum(n for n, _ in answers) == 0 or bool(np.any(differ == 0))
        return self._in.explains_last(self.pool.width(atom), self.dtype == np.float32)

    def repeats(self, atom: int) -> bool:
        """Whether the last atom let in is one before it again, up to scale, sign and rounding."""
        if self._n_local or self.pool.width(atom) > 1:
            return self.adds_nothing(atom)
        return self._in.repeats_last(self.dtype == np.float32)

    def trial(self, atom: int, keep: bool) -> Rows:
        """Rows in which an atom is tried out.

        With ``keep`` its columns stand after those already in; without, it stands alone and the
        present scores are a fixed offset.
        """
        out = Rows([shard.trial(keep) for shard in self._shards], intercept=False)
        if keep:
            out.intercept, out.n_columns = self.intercept, self.n_columns
            out.atoms, out._n_local = list(self.atoms), self._n_local
            out._in = self._in
        out.append(atom)
        return out

    def ends(self, atoms: Sequence[int] | None = None) -> np.ndarray:
        """Where the columns of each atom begin, and where the last one's end.

        Of the atoms in, or of others that would be.
        """
        widths = map(self.pool.width, self.atoms if atoms is None else atoms)
        return np.cumsum([int(self.intercept), *widths])

    def padded(self, W: np.ndarray | None) -> np.ndarray:
        """Weights of the first columns, with zeros for those that came since."""
        out = np.zeros((self.n_columns, self.n_outputs))
        if W is not None:
            out[: len(W)] = W
        return out

    # -- sums over rows ------------------------------------------------------------------------

    @property
    def shift_invariant(self) -> bool:
        """Whether a shift of all scores of a row leaves the loss as it is."""
        return self.loss.shift_invariant

    def balance(self, gradient: np.ndarray) -> tuple[float, np.ndarray]:
        """A mixture that makes the intercept's gradient zero: its share t and distribution σ."""
        return self.loss.balance(gradient, self.class_sums[0])

    def constant(self, sigma: np.ndarray) -> tuple[float, np.ndarray]:
        """Dual value and gradient of giving every row the distribution ``sigma``."""
        value = self.loss.constant_value(sigma, self._shares)
        return value, self.loss.constant_gradient(sigma, self.class_sums)

    def evaluate(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Loss at weights ``W`` (n_columns, n_outputs) and its gradient there.

        Scores and residual are those of ``W`` from here on.
        """
        parts = [shard.evaluate(W) for shard in self._shards]
        return sum(value for value, _ in parts), total([gradient for _, gradient in parts])

    def curve(self, V: np.ndarray) -> np.ndarray:
        """Hessian of the loss at the last evaluated weights, applied to ``V``."""
        return self._sum(lambda shard: shard.curve(V))

    def hessian(self, face: np.ndarray) -> np.ndarray | None:
        """Hessian of the loss among the weights of ``face``; see `Shard.hessian`."""
        parts = [shard.hessian(face) for shard in self._shards]
        known = [part for part in parts if part is not None]
        return total(known) if len(known) == len(parts) else None

    def hessian_blocks(self) -> list[np.ndarray]:
        """Diagonal blocks of the Hessian that cover the columns; see `Shard.hessian_blocks`."""
        if len(self._shards) == 1:
            return self._shards[0].hessian_blocks()
        masses = zip(*(shard.masses() for shard in self._shards), strict=True)
        places = zip(*map(placed, masses), strict=True)
        parts = [s.hessian_blocks(p) for s, p in zip(self._shards, places, strict=True)]
        return [total(same) for same in zip(*parts, strict=True)]

    def best(
        self, forbidden: np.ndarray, normaliser: np.ndarray | None, costs: np.ndarray | None
    ) -> Choice:
        """The pool's atom of largest l1 gradient norm, eq. (7); see `BoundPool.best`."""
        if len(self._shards) == 1:  # a pool may know a quicker way than to write sums down
            return self._shards[0].best(forbidden, normaliser, costs)
        norms = ((first, np.abs(sums).sum(axis=1)) for first, sums in self.gradients())
        return best_of(self.pool, norms, forbidden, normaliser, costs)

    def gradients(self) -> Iterator[tuple[int, np.ndarray]]:
        """Negative gradients in the weights of all columns of the pool, in blocks of columns."""
        return added_up([shard.gradients() for shard in self._shards])

    def pool_squares(self) -> np.ndarray:
        """Weighted squared norms of every column of the pool."""
        return self._sum(lambda shard: shard.squares())

    def span_sums(self, done: int) -> Iterator[Iterator[tuple[int, np.ndarray]]]:
        """Products of the pool's columns with an orthonormal basis of the columns in.

        For every column in from number ``done`` on: the weighted inner products of all columns of
        the pool with the direction it adds, in blocks of columns. A direction is a combination of
        the columns in, found by Gram-Schmidt in the weighted inner product; a column that depends
        on earlier ones adds a zero direction.
        """
        for column in range(len(self._span), self.n_columns):
            self._span.append(self._direction(column))
        for direction in self._span[done:]:
            t = np.zeros(self.n_columns)
            t[: len(direction)] = direction
            yield added_up([shard.along(t) for shard in self._shards])

    def _direction(self, column: int) -> np.ndarray:
        """What a column adds to the span of those before it, as weights of the columns."""
        t = np.zeros(self.n_columns)
        t[column] = 1.0
        length = rest = 0.0
        for step in range(3):
            products = self._sum(lambda shard: shard.gram_product(t))
            rest = np.sqrt(max(float(t @ products), 0.0))
            length = length or rest
            if step < 2:  # twice is enough (Kahan, Parlett)
                for other in self._span:
                    t[: len(other)] -= (other @ products[: len(other)]) * other
        found = t[: column + 1]
        return found / rest if rest > 1e-5 * length else np.zeros_like(found)

    # -- what grows with the rows --------------------------------------------------------------

    def residual_of_all_rows(self) -> np.ndarray:
        """Negative gradient of the loss in the scores, (n_rows, n_outputs)."""
        return np.concatenate([shard.residual_of_all_rows() for shard in self._shards])

    def columns_of_all_rows(self, atoms: Sequence[int]) -> np.ndarray:
        """Columns of some atoms, scaled but not centred, (n_rows, width)."""
        return np.concatenate([shard.columns_of_all_rows(atoms) for shard in self._shards])

    def _sum(self, ask: Callable[[Shard], np.ndarray]) -> np.ndarray:
        return total([ask(shard) for shard in self._shards])


def _checked(shard: Any) -> Shard:
    """A shard of any kind, if it has what the rows will ask for."""
    asked = [name for name in vars(Shard) if not name.startswith("_")]
    missing = [name for name in (*asked, "pool", "loss", "dtype") if not hasattr(shard, name)]
    if missing:
        raise TypeError(f"{type(shard).__name__} cannot be a shard: it has no {missing[0]!r}")
    checked: Shard = shard
    return checked


def rows_in_memory(
    pools: Sequence[BoundPool],
    loss: Loss,
    y: np.ndarray,
    weight: np.ndarray,
    n_outputs: int,
    threads: Threads,
    intercept: bool = True,
    limits: Limits | None = None,
) -> Rows:
    """Rows in memory: a shard for each of the bound pools, whose rows follow each other.

    ``y`` and ``weight`` are of all rows; see `laconic.rows.shard.in_memory`.
    """
    limits = limits or Limits()
    shards = [
        in_memory(pool, loss, codes, own, n_outputs, threads, limits)
        for pool, (codes, own) in zip(pools, limits.parts(y, weight), strict=True)
    ]
    return Rows(shards, intercept, threads)
