"""The contract of a shard: what `laconic.rows.rows.Rows` asks of the training rows.

A shard is a part of the rows, or several parts that answer as one. It answers only with sums over
its rows, except for the last three methods.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from laconic.losses import Loss
from laconic.pools.base import BoundPool, Choice
from laconic.rows.exchanges import Exchanges


class AnyShard(Protocol):
    """Rows that answer with sums. The columns of chosen atoms are *in*."""

    pool: BoundPool
    """The pool bound to the rows. `Rows` also asks it for facts about atoms."""
    loss: Loss
    dtype: np.dtype[Any]
    n_outputs: int
    n_rows: int
    gathers: bool
    """Whether a byte for every row and for every atom ever added may be gathered here."""
    exchanges: Exchanges | None
    """What went over a network; None for rows in this process."""

    def class_shares(self) -> np.ndarray:
        """Return the sum of the weights of every class."""

    def put_constant(self) -> tuple[np.ndarray, np.ndarray]:
        """Add a column of ones as the first column. Return the same sums as `take`."""

    def offer(self, atoms: Sequence[int]) -> np.ndarray:
        """Write down the columns of some atoms, for `take` to add. Return their weighted sums."""

    def take(self, means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Add the offered columns, minus their means.

        Return their class sums (new columns, n_classes) and their rows of the Gram matrix
        (new columns, all columns in).
        """

    def put_local(self, atom: int) -> np.ndarray:
        """Add a local atom, and return its class sums."""

    def cut(self, n_written: int, n_local: int) -> None:
        """Keep the first columns that are written down, and the first local atoms."""

    def unlike(self) -> tuple[int, np.ndarray]:
        """Return the last local atom's number of rows, and which earlier atoms are unlike it.

        An earlier atom that is like it has 0, all others have a positive number.
        """

    def forget(self) -> None:
        """Let later answers not depend on what was asked before, but only on the columns in."""

    def trial(self, keep: bool) -> AnyShard:
        """Return a shard in which atoms are tried.

        With ``keep``, it has the columns that are in. Without, it has no columns, and the current
        scores are a fixed offset.
        """

    def evaluate(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss at weights ``W`` (n_columns, n_outputs) and its gradient there.

        From then on, scores and residual are those of ``W``.
        """

    def evaluate_all(self, points: Sequence[np.ndarray]) -> list[tuple[float, np.ndarray]]:
        """Return what `evaluate` returns at several points. It is left at the last one."""

    def curve(self, V: np.ndarray) -> np.ndarray:
        """Return the Hessian of the loss at the last evaluated weights, applied to ``V``.

        Shards that are far away may estimate it from some of their rows.
        """

    def hessian(self, face: np.ndarray) -> np.ndarray | None:
        """Return the Hessian in the weights of ``face``, a mask (n_columns, n_outputs), or None.

        The weights are in the order of ``np.nonzero``. None means that products are cheaper.
        """

    def hessian_blocks(self) -> list[np.ndarray]:
        """Return diagonal blocks of the Hessian for the columns in order, (n_outputs, w, w) each.

        There is one block for all columns that are written down, and one for every local atom.
        """

    def gram_product(self, t: np.ndarray) -> np.ndarray:
        """Return Σ_i weight_i x_i ⟨x_i, t⟩ of the columns that are in."""

    def best(
        self, forbidden: np.ndarray, normaliser: np.ndarray | None, costs: np.ndarray | None
    ) -> Choice:
        """Return the pool's atom of largest l1 gradient norm; see `BoundPool.best`."""

    def gradients(self) -> Iterator[tuple[int, np.ndarray]]:
        """Return negative gradients in the weights of all columns of the pool, in blocks."""

    def along(self, t: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Return Σ_i weight_i z_i ⟨x_i, t⟩ for all columns z of the pool, like `gradients`."""

    def squares(self) -> np.ndarray:
        """Return the weighted squared norms of all columns of the pool."""

    def residual_of_all_rows(self) -> np.ndarray:
        """Return the negative gradient of the loss in the scores, (n_rows, n_outputs)."""

    def labels_of_all_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the class codes and the weights of all rows."""

    def columns_of_all_rows(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the columns of some atoms, scaled but not centred, (n_rows, width).

        Columns of signs may be in any type.
        """


def checked_shard(shard: Any) -> AnyShard:
    """Return a shard of any kind, if it has all that `laconic.rows.rows.Rows` will ask for."""
    attributes = list(AnyShard.__annotations__)
    methods = [name for name in vars(AnyShard) if not name.startswith("_")]
    missing = [name for name in (*methods, *attributes) if not hasattr(shard, name)]
    if missing:
        raise TypeError(f"{type(shard).__name__} cannot be a shard: it has no {missing[0]!r}")
    checked: AnyShard = shard
    return checked
