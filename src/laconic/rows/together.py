"""Several shards as one: each answer is the sum of theirs, in float64 and in their order.

A sum of shards answers as a shard does. So `laconic.rows.rows.Rows` asks a single object, and does
not know how many shards there are, or where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from laconic.losses import Loss
from laconic.pools.base import BoundPool, Choice, best_of
from laconic.rows.curvature import placed
from laconic.rows.exchanges import Exchanges
from laconic.rows.sampled_hessian import SampledHessian
from laconic.rows.shard import Shard
from laconic.rows.sums import Sums, added_in_place, added_up, total

# Sums over the pool with at most this many numbers are added in place, one shard after the other.
# More numbers are added in blocks, but then every shard holds its residual meanwhile.
IN_PLACE = 1 << 22


class Together:
    """Shards in memory that answer as one.

    Parameters
    ----------
    shards : list of Shard
        At least one shard. All have the same pool (the same atoms, bound to different rows), the
        same loss and the same number of outputs.
    gathers : bool
        Whether a byte for every row and for every atom ever added may be gathered.
    """

    exchanges: Exchanges | None = None

    def __init__(self, shards: Sequence[Shard], gathers: bool = True) -> None:
        if not shards:
            raise ValueError("rows need at least one shard")
        self._shards = list(shards)
        self.gathers = gathers
        first = self._shards[0]
        self.pool: BoundPool = first.pool
        self.loss: Loss = first.loss
        self.dtype, self.n_outputs = first.dtype, first.n_outputs
        self.n_rows = sum(shard.n_rows for shard in self._shards)

    # -- which columns are in ------------------------------------------------------------------

    def class_shares(self) -> np.ndarray:
        """Return the sum of the weights of every class."""
        return self._sum(lambda shard: shard.class_shares())

    def put_constant(self) -> tuple[np.ndarray, np.ndarray]:
        """Add a column of ones as the first column; see `Shard.put_constant`."""
        return _both([shard.put_constant() for shard in self._shards])

    def offer(self, atoms: Sequence[int]) -> np.ndarray:
        """Write down the columns of some atoms; see `Shard.offer`."""
        return self._sum(lambda shard: shard.offer(atoms))

    def take(self, means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Add the offered columns, minus their means; see `Shard.take`."""
        return _both([shard.take(means) for shard in self._shards])

    def put_local(self, atom: int) -> np.ndarray:
        """Add a local atom, and return its class sums."""
        return self._sum(lambda shard: shard.put_local(atom))

    def cut(self, n_written: int, n_local: int) -> None:
        """Keep the first columns that are written down, and the first local atoms."""
        for shard in self._shards:
            shard.cut(n_written, n_local)

    def unlike(self) -> tuple[int, np.ndarray]:
        """Return the last local atom's number of rows, and in how many shards each differs."""
        answers = [shard.unlike() for shard in self._shards]
        return sum(n for n, _ in answers), np.sum([differ for _, differ in answers], axis=0)

    def forget(self) -> None:
        """Do nothing: no answer depends on what was asked before."""

    def trial(self, keep: bool) -> Together:
        """Return shards in which atoms are tried; see `Shard.trial`."""
        return Together([shard.trial(keep) for shard in self._shards], self.gathers)

    # -- sums over rows ------------------------------------------------------------------------

    def evaluate(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss at weights ``W`` and its gradient there; see `Shard.evaluate`."""
        parts = [shard.evaluate(W) for shard in self._shards]
        return sum(value for value, _ in parts), total([gradient for _, gradient in parts])

    def evaluate_all(self, points: Sequence[np.ndarray]) -> list[tuple[float, np.ndarray]]:
        """Return what `evaluate` returns at several points."""
        return [self.evaluate(W) for W in points]

    def curve(self, V: np.ndarray) -> np.ndarray:
        """Return the Hessian of the loss at the last evaluated weights, applied to ``V``."""
        return self._sum(lambda shard: shard.curve(V))

    def hessian(self, face: np.ndarray) -> np.ndarray | None:
        """Return the Hessian of the loss in the weights of ``face``; see `Shard.hessian`."""
        parts = [shard.hessian(face) for shard in self._shards]
        known = [part for part in parts if part is not None]
        return total(known) if len(known) == len(parts) else None

    def hessian_blocks(self) -> list[np.ndarray]:
        """Return diagonal blocks of the Hessian; see `Shard.hessian_blocks`."""
        if len(self._shards) == 1:
            return self._shards[0].hessian_blocks()
        masses = zip(*(shard.masses() for shard in self._shards), strict=True)
        places = zip(*map(placed, masses), strict=True)
        parts = [s.hessian_blocks(p) for s, p in zip(self._shards, places, strict=True)]
        return [total(same) for same in zip(*parts, strict=True)]

    def cheap_hessian(self) -> SampledHessian | None:
        """Return what returns the Hessian in all weights, or None if products are cheaper."""
        return SampledHessian.of(self._shards, self._shards[0].rest.limits)

    def gram_product(self, t: np.ndarray) -> np.ndarray:
        """Return Σ_i weight_i x_i ⟨x_i, t⟩ of the columns that are in."""
        return self._sum(lambda shard: shard.gram_product(t))

    # -- sums over rows of the columns of the pool ---------------------------------------------

    def best(
        self, forbidden: np.ndarray, normaliser: np.ndarray | None, costs: np.ndarray | None
    ) -> Choice:
        """Return the pool's atom of largest l1 gradient norm, eq. (7); see `BoundPool.best`."""
        if len(self._shards) == 1:  # a pool may have a faster way that stores no sums
            return self._shards[0].best(forbidden, normaliser, costs)
        norms = ((first, np.abs(sums).sum(axis=1)) for first, sums in self.gradients())
        return best_of(self.pool, norms, forbidden, normaliser, costs)

    def gradients(self) -> Iterator[tuple[int, np.ndarray]]:
        """Return negative gradients in the weights of all columns of the pool, in blocks."""
        return self._pool_sums(lambda shard: shard.gradients(), self.n_outputs)

    def along(self, t: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Return Σ_i weight_i z_i ⟨x_i, t⟩ for all columns z of the pool, like `gradients`."""
        return self._pool_sums(lambda shard: shard.along(t), 1)

    def squares(self) -> np.ndarray:
        """Return the weighted squared norms of all columns of the pool."""
        return self._sum(lambda shard: shard.squares())

    # -- what grows with the rows --------------------------------------------------------------

    def residual_of_all_rows(self) -> np.ndarray:
        """Return the negative gradient of the loss in the scores, (n_rows, n_outputs)."""
        return np.concatenate([shard.residual_of_all_rows() for shard in self._shards])

    def labels_of_all_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the class codes and the weights of all rows."""
        parts = [shard.labels_of_all_rows() for shard in self._shards]
        return np.concatenate([codes for codes, _ in parts]), np.concatenate([w for _, w in parts])

    def columns_of_all_rows(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the columns of some atoms, scaled but not centred, (n_rows, width)."""
        return np.concatenate([shard.columns_of_all_rows(atoms) for shard in self._shards])

    # -- sums ----------------------------------------------------------------------------------

    def _sum(self, ask: Callable[[Shard], np.ndarray]) -> np.ndarray:
        return total([ask(shard) for shard in self._shards])

    def _pool_sums(self, ask: Callable[[Shard], Sums], k: int) -> Iterator[tuple[int, np.ndarray]]:
        """Add up sums over the pool. Both ways give the same bits."""
        if len(self._shards) == 1 or self.pool.n_columns * k > IN_PLACE:
            return added_up([ask(shard) for shard in self._shards])
        # A shard is asked when its turn comes, because it makes the residual of all its rows then.
        return added_in_place((ask(shard) for shard in self._shards), self.pool.n_columns)


def _both(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    first, second = zip(*parts, strict=True)
    return total(first), total(second)
