"""Training rows in parts, on a cluster or in files, as the loop needs them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from laconic.beyond.files import KnownFile
from laconic.data.fingerprint import fingerprint
from laconic.losses import Loss
from laconic.numeric.parts import Here, Parts
from laconic.numeric.threads import Threads
from laconic.pools.base import BoundPool
from laconic.pools.parts import BoundInPlace
from laconic.pools.signs import as_signs
from laconic.rows.asked import RowsAsked
from laconic.rows.contract import AnyShard
from laconic.rows.limits import Limits
from laconic.rows.rows import Rows
from laconic.rows.shard import Shard, in_memory
from laconic.rows.together import Together

Pattern = Callable[[], BoundPool]
"""Returns a bound pool that knows facts about atoms, but no rows."""
Join = Callable[[Parts, Pattern, Loss, int, Limits], AnyShard]
"""Turns bound parts into one shard."""


class TrainingInParts:
    """Rows in parts. They stay where they are.

    It does for rows in parts what `laconic.estimators.training.TrainingInMemory` does for rows in
    one memory.

    Parameters
    ----------
    parts : Parts
        Each part is a `laconic.beyond.check.CheckedPart`.
    join : Join
    files : sequence, optional
        Files that must not change while the rows are in use.
    """

    def __init__(self, parts: Parts, join: Join, files: Sequence[KnownFile] = ()) -> None:
        self.parts, self.join, self._files = parts, join, files

    def rows(self, asked: RowsAsked) -> Rows:
        """Bind a pool to the parts, and return their shards. This can be done once."""
        given = self.parts
        del self.parts  # a pool that keeps only codes needs the parts no more
        given.threads = asked.threads
        bound = BoundInPlace(asked.pool, given)
        del given
        parts = bound.parts.become(_with_signs) if asked.signs else bound.parts

        def pattern() -> BoundPool:
            return as_signs(bound.pattern()) if asked.signs else bound.pattern()

        shard = self.join(parts, pattern, asked.loss, asked.n_outputs, asked.limits)
        return Rows(shard, asked.intercept, asked.threads)

    def check_files(self, *_: Any) -> None:
        """Refuse files that were changed since the fit began. It may be called after rounds."""
        for file in self._files:
            file.check_in_place()

    def fingerprint(self, settings: dict[str, Any]) -> str:
        """Return a digest of the settings and of the rows, their labels and weights."""
        digests = self.parts.ask(_digest)
        return hashlib.sha256(" ".join([*digests, _digest_of(settings)]).encode()).hexdigest()


def joined_here(
    bound: Parts, pattern: Pattern, loss: Loss, n_outputs: int, limits: Limits
) -> AnyShard:
    """Return the shards of parts that are in this process as one shard."""
    assert isinstance(bound, Here)
    shards: list[Shard] = []
    while bound.items:  # what a shard does not keep is given up before the next one is made
        first = sum(shard.n_rows for shard in shards)
        shards.append(shard_of(bound.items.pop(0), bound.threads, loss, n_outputs, limits, first))
    return Together(shards, sum(shard.n_rows for shard in shards) <= limits.gathered)


def shard_of(
    part: Any, threads: Threads, loss: Loss, n_outputs: int, limits: Limits, first: int = 0
) -> Shard:
    """Return a shard of a part that is bound; see `laconic.rows.shard.in_memory`."""
    pool, codes, weight = part
    return in_memory(pool, loss, codes, weight, n_outputs, threads, limits, first)


def _with_signs(part: Any, threads: Threads) -> Any:
    bound, *rest = part
    return as_signs(bound), *rest


def _digest(part: Any, threads: Threads) -> str:
    X, codes, weight = part
    return fingerprint(X, codes, weight, {})


def _digest_of(settings: dict[str, Any]) -> str:
    return fingerprint(np.zeros((0, 0)), np.zeros(0), np.zeros(0), settings)
