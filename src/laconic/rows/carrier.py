"""How questions come to shards that are far away, and what such shards have in common."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, Protocol

import numpy as np

from laconic.losses import Loss
from laconic.pools.base import BoundPool
from laconic.rows.exchanges import Exchanges
from laconic.rows.limits import Limits
from laconic.rows.recipe import Call, Recipe


class Carrier(Protocol):
    """Brings questions to shards."""

    @property
    def exchanges(self) -> Exchanges | None:
        """How often it did; None for shards in this process."""

    def ask(self, recipe: Recipe, calls: Sequence[Call]) -> list[Any]:
        """Bring all shards to the state of a recipe. Return the sums of their answers there.

        A call is a method of `laconic.rows.keeper.Answers` with its arguments. The order of the
        sums is fixed (`laconic.rows.tree`).
        """


class FarRows:
    """What `laconic.rows.far.Far` and its trials share.

    Parameters
    ----------
    carrier : Carrier
    pool : BoundPool
        The pool bound to any rows. It is asked only for facts about atoms.
    loss : Loss
    n_outputs : int
    n_rows : int
        Number of all rows.
    shares : ndarray
        Sum of the weights of every class.
    limits : Limits
    """

    def __init__(
        self,
        carrier: Carrier,
        pool: BoundPool,
        loss: Loss,
        n_outputs: int,
        n_rows: int,
        shares: np.ndarray,
        limits: Limits,
    ) -> None:
        self.carrier, self.pool, self.loss = carrier, pool, loss
        self.n_outputs, self.n_rows, self.shares, self.limits = n_outputs, n_rows, shares, limits
        self.trials = count()
        self.sums_of_pool: np.ndarray | None = None
