"""Which rows are held out and which are in a batch, by the numbers of rows among all rows.

So neither depends on how rows are cut into parts, or where the parts are. Everyone draws the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from laconic.data.labels import held_out_rows
from laconic.numeric.parts import Parts
from laconic.numeric.threads import Threads
from laconic.pools.parts import Place
from laconic.tune.batches import order_of

# Rows are held out of at most so many, which are at even distances.
CANDIDATES = 1 << 20
# Neighbouring rows come together if there are more rows than these. So files are read in pieces,
# and drawing takes a few milliseconds whatever the number of rows.
RUNS = 1 << 18


def held_numbers(estimator: Any, parts: Parts, places: Sequence[Place]) -> np.ndarray:
    """Return the numbers of the rows that are held out, in order.

    Up to `CANDIDATES` rows, they are those that would be held out in one memory. With more rows,
    all that are not candidates stay.
    """
    codes = np.concatenate(parts.ask(_candidates, (CANDIDATES,), places))
    lengths = np.diff([*(place.first for place in places), places[0].total])
    numbers = np.concatenate([
        place.first + place.sample(length, CANDIDATES)
        for place, length in zip(places, lengths.tolist(), strict=True)
    ])  # fmt: skip
    if len(numbers) < places[0].total:
        usual = (np.bincount(codes) > 1)[codes]  # other rows of rare classes are no candidates
        numbers, codes = numbers[usual], np.unique(codes[usual], return_inverse=True)[1]
    *_, kept = held_out_rows(estimator, numbers, codes, np.ones(len(codes)))
    held: np.ndarray = kept[0]
    return held


def _candidates(part: Any, threads: Threads, most: int, place: Place) -> np.ndarray:
    codes: np.ndarray = part[1][place.sample(len(part[1]), most)]
    return codes


class Drawn(NamedTuple):
    """A batch of rows by what it is drawn with. Each part finds which of its rows are in it."""

    n_rows: int
    """Number of all rows to draw from."""
    run: int
    """Number of neighbouring rows that come together."""
    seed: int
    epoch: int
    first: int
    """The batch has the runs of the epoch from this place on."""
    last: int
    """It ends before this place."""

    @property
    def _starts(self) -> np.ndarray:
        """The first rows of the runs of the batch."""
        order = _order(self.seed, self.epoch, -(-self.n_rows // self.run))
        starts: np.ndarray = order[self.first : self.last] * self.run
        return starts

    @property
    def size(self) -> int:
        """Number of rows of the batch."""
        return int(np.minimum(self.run, self.n_rows - self._starts).sum())

    def among(self, first: int, length: int) -> np.ndarray:
        """Return which of the rows from number ``first`` on are in the batch, counted from it."""
        starts = self._starts
        near = np.sort(starts[(starts > first - self.run) & (starts < first + length)])
        numbers = (near[:, None] + np.arange(self.run)).ravel() - first
        found: np.ndarray = numbers[(numbers >= 0) & (numbers < length)]
        return found


@lru_cache(maxsize=2)
def _order(seed: int, epoch: int, n_runs: int) -> np.ndarray:
    return order_of(seed, epoch, n_runs)


class DrawnBatches:
    """The batches of rows in parts; see `laconic.tune.rows.AnyBatches`.

    Up to `RUNS` rows, they have the same rows as `laconic.tune.batches.Batches`.

    Parameters
    ----------
    n_rows : int
        Number of all rows.
    size : int
        Rows of a batch. The last one of an epoch may have fewer.
    seed : int
    """

    def __init__(self, n_rows: int, size: int, seed: int) -> None:
        run = -(-n_rows // RUNS)
        self._drawn = Drawn(n_rows, run, seed, 0, 0, -(-min(size, n_rows) // run))
        self._n_runs = -(-n_rows // run)
        self.n_batches = -(-self._n_runs // self._drawn.last)

    def epoch(self, number: int) -> Iterator[Drawn]:
        """Yield the batches of an epoch."""
        own = self._drawn._replace(epoch=number)
        for first in range(0, self._n_runs, own.last):
            yield own._replace(first=first, last=min(first + own.last, self._n_runs))
