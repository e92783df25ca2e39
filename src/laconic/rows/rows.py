"""The training rows as a sum over their shards.

The loop, the rules and the correctors never see a row. All they know comes from the methods of
`Rows`. Each method asks for a sum over all rows. One object answers: a shard, or several shards
whose answers are added in float64 and in a fixed order. So it does not matter where a shard is, or
which shard answers first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from laconic.losses import Loss
from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.base import BoundPool, Choice
from laconic.rows.columns_in import ColumnsIn
from laconic.rows.contract import AnyShard, checked_shard
from laconic.rows.limits import Limits
from laconic.rows.places import Places
from laconic.rows.shard import Shard, in_memory
from laconic.rows.span import Span
from laconic.rows.together import Together

# Number of atoms that are added together.
TOGETHER = 64


class Rows:
    """All training rows, as shards that answer with sums.

    Parameters
    ----------
    shard : AnyShard
        The shard of all rows, or several shards that answer as one
        (`laconic.rows.together.Together`).
    intercept : bool
        Whether a constant column comes first, before the columns of the atoms. The columns of the
        atoms are then centred. The intercept absorbs their means, so the weights stay the same. But
        a column far from zero is no longer confused with the intercept.
    threads : Threads, optional
        Threads for rules that try many atoms.

    Attributes
    ----------
    atoms : list of int
        Atoms whose columns are in, in the order in which they were added.
    n_columns : int
        Number of columns that are in, including the intercept.
    """

    def __init__(
        self, shard: AnyShard, intercept: bool = True, threads: Threads | None = None
    ) -> None:
        self._shard = checked_shard(shard)
        self.intercept = intercept
        self.threads = threads or Threads(1)
        self.pool: BoundPool = shard.pool
        self.loss, self.n_outputs, self.dtype = shard.loss, shard.n_outputs, shard.dtype
        self.gathers, self.exchanges = shard.gathers, shard.exchanges
        self._shares = shard.class_shares()
        self._empty()
        if intercept:
            self._taken(shard.put_constant(), np.zeros(1))

    def _empty(self) -> None:
        self.atoms: list[int] = []
        self.n_columns = 0
        self._in = ColumnsIn.none(len(self._shares))
        self._local: list[bool] = []
        self._places = Places(int(self.intercept), [], [])
        self._span = Span()

    # -- which columns are in ------------------------------------------------------------------

    @property
    def means(self) -> np.ndarray:
        """The means that were subtracted from the columns, (n_columns,)."""
        return self._in.means

    @property
    def class_sums(self) -> np.ndarray:
        """Σ_i weight_i x_i e_{y_i}ᵀ of the columns that are in, (n_columns, n_classes)."""
        return self._in.class_sums

    @property
    def gram(self) -> np.ndarray:
        """Σ_i weight_i x_i x_iᵀ of the columns that are in, without those of local atoms."""
        return self._in.gram

    def append(self, atom: int) -> None:
        """Add the columns of an atom."""
        self._extend([atom])

    def _extend(self, atoms: Sequence[int]) -> None:
        """Add the columns of some atoms, several at a time to save passes over the rows."""
        for s in row_blocks(len(atoms), TOGETHER):
            for local, same in groupby(atoms[s], self._is_local):
                some = list(same)
                if local:
                    for atom in some:
                        self._put_local(atom)
                else:
                    sums = self._shard.offer(some)
                    means = sums if self.intercept else np.zeros_like(sums)
                    self._taken(self._shard.take(means), means)
                self.atoms.extend(some)
                self._local.extend([local] * len(some))
        self._place()

    def _is_local(self, atom: int) -> bool:
        return self.pool.local_atoms and self.pool.is_local(atom)

    def _place(self) -> None:
        """Find where the columns of the atoms are in the shards, if some of them may be local."""
        if not self.pool.local_atoms:
            return
        widths = [self.pool.width(atom) for atom in self.atoms]
        self._places = Places(int(self.intercept), widths, self._local)

    def _taken(self, sums: tuple[np.ndarray, np.ndarray], means: np.ndarray) -> None:
        """Record the class sums and Gram rows of new columns."""
        class_sums, rows = sums
        self.n_columns += len(means)
        self._in = self._in.joined(means, class_sums, rows)

    def _put_local(self, atom: int) -> None:
        sums = self._shard.put_local(atom)
        self.n_columns += len(sums)
        self._in = self._in.joined_local(np.zeros(len(sums)), sums)

    def reset(self, atoms: Sequence[int]) -> None:
        """Replace the atoms that are in by these, in this order. Equal first atoms are kept."""
        keep = 0
        while keep < min(len(atoms), len(self.atoms)) and atoms[keep] == self.atoms[keep]:
            keep += 1
        self.atoms, self._local = self.atoms[:keep], self._local[:keep]
        self._place()
        self.n_columns = n = int(self.ends()[-1])
        written = n - self._places.n_local_columns
        self._shard.cut(written, sum(self._local))
        self._in = self._in.first(n, written)
        self._span.cut(n)
        self._extend(atoms[keep:])

    def adds_nothing(self, atom: int) -> bool:
        """Return whether the last atom is a combination of the columns before it, up to rounding.

        A local atom is found only if another one has the same rows and heights, or if it has no
        rows.
        """
        if self._local[-1]:
            n_rows, differ = self._shard.unlike()
            return n_rows == 0 or bool(np.any(differ == 0))
        return self._in.explains_last(self.pool.width(atom), self.dtype == np.float32)

    def repeats(self, atom: int) -> bool:
        """Return whether the last atom equals an earlier one, up to scale, sign and rounding."""
        if self._local[-1] or self.pool.width(atom) > 1:
            return self.adds_nothing(atom)
        return self._in.repeats_last(self.dtype == np.float32)

    def forget(self) -> None:
        """Let later answers not depend on what was asked before, but only on the columns in."""
        self._shard.forget()

    def trial(self, atom: int, keep: bool) -> Rows:
        """Return rows in which an atom is tried.

        With ``keep``, its columns come after the columns that are in. Without, it is alone, and the
        current scores are a fixed offset.
        """
        out = Rows(self._shard.trial(keep), intercept=False)
        if keep:
            out.intercept, out.n_columns = self.intercept, self.n_columns
            out.atoms, out._local = list(self.atoms), list(self._local)
            out._in = self._in
        out.append(atom)
        return out

    def ends(self, atoms: Sequence[int] | None = None) -> np.ndarray:
        """Return where the columns of each atom begin, and where the last ones end.

        ``atoms`` are the atoms that are in, unless others are given.
        """
        widths = map(self.pool.width, self.atoms if atoms is None else atoms)
        return np.cumsum([int(self.intercept), *widths])

    def padded(self, W: np.ndarray | None) -> np.ndarray:
        """Return the weights of the first columns, with zeros for the columns added since."""
        out = np.zeros((self.n_columns, self.n_outputs))
        if W is not None:
            out[: len(W)] = W
        return out

    # -- sums over rows ------------------------------------------------------------------------

    @property
    def shift_invariant(self) -> bool:
        """Whether the loss stays the same if all scores of a row are shifted."""
        return self.loss.shift_invariant

    def balance(self, gradient: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mixing weight t and the class distribution σ of a mixture.

        The mixture makes the gradient of the intercept zero.
        """
        return self.loss.balance(gradient, self.class_sums[0])

    def constant(self, sigma: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the dual value and gradient if every row has the distribution ``sigma``."""
        value = self.loss.constant_value(sigma, self._shares)
        return value, self.loss.constant_gradient(sigma, self.class_sums)

    def evaluate(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss at weights ``W`` (n_columns, n_outputs) and its gradient there.

        From then on, scores and residual are those of ``W``.
        """
        value, gradient = self._shard.evaluate(self._places.to_shard(W))
        return value, self._places.from_shard(gradient)

    def evaluate_all(self, points: Sequence[np.ndarray]) -> list[tuple[float, np.ndarray]]:
        """Return loss and gradient at several points; scores are then those of the last one."""
        found = self._shard.evaluate_all([self._places.to_shard(W) for W in points])
        return [(value, self._places.from_shard(gradient)) for value, gradient in found]

    def curve(self, V: np.ndarray) -> np.ndarray:
        """Return the Hessian of the loss at the last evaluated weights, applied to ``V``."""
        V = self._places.to_shard(V)
        return self._places.from_shard(self._shard.curve(V))

    def steps(self) -> Any:
        """Return what finds steps where the rows are, or None; see `laconic.correct.steps`."""
        steps = getattr(self._shard, "steps", None)
        return None if steps is None else steps()

    def cheap_hessian(self) -> Callable[[], np.ndarray] | None:
        """Return what returns the Hessian of the loss in the order of ``W.ravel()``, or None.

        None means that products are cheaper. The Hessian may be estimated from some of the rows.
        """
        cheap = getattr(self._shard, "cheap_hessian", None)
        return None if cheap is None else cheap()

    def hessian(self, face: np.ndarray) -> np.ndarray | None:
        """Return the Hessian of the loss in the weights of ``face``; see `AnyShard.hessian`."""
        return self._shard.hessian(face)

    def hessian_blocks(self) -> list[np.ndarray]:
        """Return diagonal blocks of the Hessian for all columns; see `AnyShard.hessian_blocks`."""
        return self._places.blocks(self._shard.hessian_blocks())

    def best(
        self, forbidden: np.ndarray, normaliser: np.ndarray | None, costs: np.ndarray | None
    ) -> Choice:
        """Return the pool's atom of largest l1 gradient norm, eq. (7); see `BoundPool.best`."""
        return self._shard.best(forbidden, normaliser, costs)

    def gradients(self) -> Iterator[tuple[int, np.ndarray]]:
        """Return negative gradients in the weights of all columns of the pool, in blocks."""
        return self._shard.gradients()

    def pool_squares(self) -> np.ndarray:
        """Return the weighted squared norm of every column of the pool."""
        return self._shard.squares()

    def span_sums(self, done: int) -> Iterator[Iterator[tuple[int, np.ndarray]]]:
        """Yield products of the pool's columns with an orthonormal basis of the columns in.

        Each column that is in adds a direction to the basis (`laconic.rows.span`). For every column
        from number ``done`` on, this yields the weighted inner products of its direction with all
        columns of the pool, in blocks of columns.
        """
        for direction in self._span.grown(self.n_columns, self._gram_product)[done:]:
            yield self._shard.along(self._places.to_shard(direction))

    def _gram_product(self, t: np.ndarray) -> np.ndarray:
        """Return Σ_i weight_i x_i ⟨x_i, t⟩ of the columns that are in."""
        return self._places.from_shard(self._shard.gram_product(self._places.to_shard(t)))

    # -- what grows with the rows --------------------------------------------------------------

    def residual_of_all_rows(self) -> np.ndarray:
        """Return the negative gradient of the loss in the scores, (n_rows, n_outputs)."""
        return self._shard.residual_of_all_rows()

    def labels_of_all_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the class codes and the weights of all rows."""
        return self._shard.labels_of_all_rows()

    def columns_of_all_rows(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the columns of some atoms, scaled but not centred, (n_rows, width)."""
        return self._shard.columns_of_all_rows(atoms)


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
    """Return rows in memory, with a shard for each bound pool. Their rows follow each other.

    ``y`` and ``weight`` are those of all rows; see `laconic.rows.shard.in_memory`.
    """
    limits = limits or Limits()
    shards: list[Shard] = []
    for pool, (codes, own) in zip(pools, limits.parts(y, weight), strict=True):
        first = sum(shard.n_rows for shard in shards)
        shards.append(in_memory(pool, loss, codes, own, n_outputs, threads, limits, first))
    return Rows(Together(shards), intercept, threads)
