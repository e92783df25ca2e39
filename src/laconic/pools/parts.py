"""Pools over rows that come in parts.

First every part is surveyed. Then the surveys are merged. Then the pool is bound to every part,
with the merged survey of all rows. So all parts have the same atoms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from laconic.numeric.parts import Here, Parts
from laconic.numeric.threads import Threads
from laconic.pools.base import BoundPool, Pool

# Most times that all parts are surveyed. Patches are surveyed once for every size of templates.
MOST_SURVEYS = 1000


class Place(NamedTuple):
    """The place of a part among all rows. Samples are drawn by the numbers of rows."""

    first: int
    """Number of the part's first row."""
    total: int
    """Number of rows in all parts."""
    before: np.ndarray | None = None
    """Sum of the pool's counts in the parts before this one; see `PoolOfParts`."""
    counted: np.ndarray | None = None
    """Sum of the pool's counts in all parts."""
    seed: int | None = None
    """Random seed for pools without a seed of their own. It is drawn once for all parts."""
    known: Any = None
    """Results of earlier surveys of all parts; see `Unfinished`."""
    labels: np.ndarray | None = None
    """The class codes of the part's rows, for pools that learn their atoms from labels."""

    def sample(self, n_rows: int, most: int) -> np.ndarray:
        """Return which of the part's ``n_rows`` rows are in a sample of all rows.

        The sample has at most ``most`` rows at even distances. It is drawn by the numbers of rows,
        so it does not depend on how the rows are cut into parts. If there are at most ``most`` rows
        in all, all of them are in the sample.
        """
        if self.total <= most:
            return np.arange(n_rows)
        numbers = np.arange(most, dtype=np.int64) * self.total // most - self.first
        return numbers[(numbers >= 0) & (numbers < n_rows)]


def numbers_among_all(numbers: np.ndarray, absent: np.ndarray) -> np.ndarray:
    """Return the numbers among all rows of some that are counted without those that are absent.

    ``absent`` are the numbers of the absent rows among all, in order.
    """
    before = np.searchsorted(absent - np.arange(len(absent)), numbers, side="right")
    every: np.ndarray = numbers + before
    return every


class Unfinished(NamedTuple):
    """What ``merge`` returns to have all parts surveyed again, with the results so far."""

    known: Any


@runtime_checkable
class PoolOfParts(Pool, Protocol):
    """A pool that can be bound to rows in parts.

    It may also have a method ``count(X, place, threads)``. This is called for every part before any
    part is surveyed. It returns an array for every part, or ``None`` for every part. The arrays are
    added up, and `survey` finds the sums in its ``place``.

    A pool that learns its atoms from labels finds the class codes of the rows in the ``place`` of
    `survey`. With ``uses_labels = True``, it also gets a ``place`` with them when it is bound to
    rows in one memory, without a survey.
    """

    def survey(self, X: Any, weight: np.ndarray, place: Place, threads: Threads) -> Any:
        """Return what `merge` must know about one part."""

    def merge(self, surveys: Sequence[Any], threads: Threads) -> Any:
        """Return what ``bind`` must know about all parts. Surveys are in the order of the rows.

        If the answer is `Unfinished`, all parts are surveyed once more, up to 1000 times. The new
        surveys find the answer in their ``place``.
        """

    def bind(
        self,
        X: Any,
        weight: np.ndarray,
        threads: Threads,
        survey: Any = None,
        place: Place | None = None,
    ) -> BoundPool:
        """Prepare once for a part, with the merged survey, or for all rows without a survey."""


def bind_parts(pool: Pool, parts: Sequence[tuple[Any, ...]], threads: Threads) -> list[BoundPool]:
    """Bind a pool to rows in parts, and check the bound pools.

    Each part is ``(X, weight)`` or ``(X, class codes, weight)``.
    """
    if not all(map(_length, parts, [threads] * len(parts))):
        raise ValueError("every part must have at least one row")
    if len(parts) > 1:
        bound = BoundInPlace(pool, Here(parts, threads)).parts
        return [item[0] for item in bound.ask(_itself)]
    [part] = parts
    place = Place(0, _length(part, threads), labels=_labels(part))
    only = checked_bound(pool, bind_whole(pool, part[0], part[-1], threads, place))
    if (late := only.late()) is not None:
        only.settle([late])
    return [only]


def bind_whole(
    pool: Pool, X: Any, weight: np.ndarray, threads: Threads, place: Place | None
) -> BoundPool:
    """Bind a pool to all rows, without a survey. Only pools that use labels get their place."""
    if getattr(pool, "uses_labels", False):
        return of_parts(pool).bind(X, weight, threads, None, place)
    return pool.bind(X, weight, threads)


class BoundInPlace:
    """A pool that is bound to parts, wherever they are.

    Parameters
    ----------
    pool : Pool
    parts : Parts
        A part is a tuple that begins with X and ends with the weights of its rows. The class codes
        of the rows may be between them.

    Attributes
    ----------
    parts : Parts
        The same parts with the bound pool in the place of X.
    """

    def __init__(self, pool: Pool, parts: Parts) -> None:
        self._pool = of_parts(pool)
        self._places = _places(self._pool, parts)
        self._merged = surveyed(self._pool, parts, self._places)
        if self._merged is None:  # ``bind`` would take each part for all rows
            raise TypeError(f"{type(pool).__name__}.merge must return a merged survey, not None")
        self._given = parts
        self.parts = parts.become(_bound, (self._pool, self._merged), self._places)
        kinds = set(self.parts.ask(_kind))
        if len(kinds) > 1:
            raise ValueError(
                f"{type(pool).__name__} must have the same atoms for all parts of the rows, not "
                f"{' and '.join(str(n) for n in sorted({n for n, _, _ in kinds}))} atoms"
            )
        self._late = self.parts.ask(_late)
        if self._late[0] is not None:
            self.parts = self.parts.become(_settled, (self._late,))

    def pattern(self) -> BoundPool:
        """Return the pool bound to a single row. It knows all facts about atoms."""
        first = self._given.chosen([0])
        row = first.ask(_first_row)[0]
        pool: BoundPool = _bound(row, first.threads, self._pool, self._merged, self._places[0])[0]
        if self._late[0] is not None:
            pool.settle(self._late)
        return pool


# -- questions to one part -------------------------------------------------------------------------


def _itself(part: Any, threads: Threads) -> Any:
    return part


def _length(part: Any, threads: Threads) -> int:
    return len(part[-1])


def _labels(part: Any) -> np.ndarray | None:
    """Return the class codes of a part, if it has any."""
    return part[1] if len(part) == 3 else None


def _first_row(part: Any, threads: Threads) -> Any:
    return part[0][:1], *(column[:1].copy() for column in part[1:])


def _count(part: Any, threads: Threads, pool: Any, place: Place) -> Any:
    return pool.count(part[0], place, threads)


def _survey(part: Any, threads: Threads, pool: PoolOfParts, known: Any, place: Place) -> Any:
    place = place._replace(known=known, labels=_labels(part))
    return pool.survey(part[0], part[-1], place, threads)


def _bound(part: Any, threads: Threads, pool: PoolOfParts, merged: Any, place: Place) -> Any:
    X, *rest = part
    bound = pool.bind(X, rest[-1], threads, merged, place)
    return checked_bound(pool, bound), *rest


def _kind(part: Any, threads: Threads) -> tuple[int, int, str]:
    bound = part[0]
    return bound.n_atoms, bound.n_columns, str(bound.dtype)


def _late(part: Any, threads: Threads) -> Any:
    return part[0].late()


def _settled(part: Any, threads: Threads, late: Sequence[Any]) -> Any:
    part[0].settle(late)
    return part


# -- surveys ---------------------------------------------------------------------------------------


def of_parts(pool: Pool) -> PoolOfParts:
    """Return a pool, if it can be bound to rows in parts."""
    if not isinstance(pool, PoolOfParts):
        missing = "merge" if hasattr(pool, "survey") else "survey"
        why = getattr(pool, "in_one_memory", f"it has no {missing!r}")
        called = getattr(pool, "called", type(pool).__name__)
        raise TypeError(
            f"{called} cannot be bound to rows in parts: {why}; keep the rows in one memory"
        )
    return pool


def surveyed(pool: PoolOfParts, parts: Parts, places: Sequence[Place]) -> Any:
    """Return the merged survey of all parts. Survey as often as needed."""
    known = None
    for _ in range(MOST_SURVEYS):
        surveys = parts.ask(_survey, (pool, known), places)
        merged = pool.merge(surveys, parts.threads)
        if not isinstance(merged, Unfinished):
            return merged
        known = merged.known
    raise RuntimeError(
        f"{type(pool).__name__}.merge still returns Unfinished after {MOST_SURVEYS} surveys of all "
        "parts; it must return a merged survey in the end"
    )


def _places(pool: PoolOfParts, parts: Parts) -> list[Place]:
    """Return the place of every part, with the pool's counts."""
    ends = np.cumsum([0, *(parts.lengths or parts.ask(_length))]).tolist()
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    places = [Place(first, ends[-1], seed=seed) for first in ends[:-1]]
    if not hasattr(pool, "count"):
        return places
    counts = parts.ask(_count, (pool,), places)
    if counts[0] is None:
        return places
    sums = np.cumsum([np.zeros_like(counts[0]), *counts], axis=0)
    return [
        p._replace(before=before, counted=sums[-1]) for p, before in zip(places, sums, strict=False)
    ]


def checked_bound(pool: Pool, bound: Any) -> BoundPool:
    """Return the bound pool that ``bind`` returned, if it has all methods of a `BoundPool`."""
    needed = ("n_atoms", "n_columns", "dtype", *sorted(BoundPool.__abstractmethods__), "best")
    missing = [name for name in needed if not hasattr(bound, name)]
    if missing:
        raise TypeError(
            f"{type(pool).__name__}.bind must return a laconic.pools.BoundPool; "
            f"it returned a {type(bound).__name__}, which has no {missing[0]!r}"
        )
    checked: BoundPool = bound
    return checked
