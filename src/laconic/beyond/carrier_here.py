"""Shards in this process that are asked as those of a cluster, so that fits have the same bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from laconic.beyond.in_parts import Pattern, shard_of
from laconic.losses import Loss
from laconic.numeric.parts import Here, Parts
from laconic.rows.carrier import FarRows
from laconic.rows.far import Far
from laconic.rows.keeper import Keeper
from laconic.rows.limits import Limits
from laconic.rows.recipe import Call, Recipe
from laconic.rows.tree import tree_sum


class CarrierHere:
    """Brings questions to shards in this process; see `laconic.rows.carrier.Carrier`.

    Parameters
    ----------
    keepers : list of Keeper
    """

    exchanges = None

    def __init__(self, keepers: Sequence[Keeper]) -> None:
        self._keepers = list(keepers)

    def ask(self, recipe: Recipe, calls: Sequence[Call]) -> list[Any]:
        """Bring all shards to the state of a recipe. Return the sums of their answers there."""
        return list(tree_sum(keeper.answer(recipe, calls) for keeper in self._keepers))


def joined_as_far(
    bound: Parts, pattern: Pattern, loss: Loss, n_outputs: int, limits: Limits
) -> Far:
    """Return the shards of parts that are in this process as one shard."""
    assert isinstance(bound, Here)
    lengths = [len(part[-1]) for part in bound.items]
    firsts = np.cumsum([0, *lengths])[:-1].tolist()
    keepers = []
    for first in firsts:  # what a shard does not keep is given up before the next one is made
        part = bound.items.pop(0)
        keepers.append(Keeper(shard_of(part, bound.threads, loss, n_outputs, limits, first)))
        del part
    shares = tree_sum(keeper.class_shares() for keeper in keepers)
    carrier = CarrierHere(keepers)
    return Far(FarRows(carrier, pattern(), loss, n_outputs, sum(lengths), shares, limits))
