"""Pools over rows that come in parts.

Every part is surveyed, the surveys are merged, and the pool is bound to every part with what the
merged survey says of all rows. All parts have the same atoms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from laconic.numeric.threads import Threads
from laconic.pools.base import BoundPool, Pool


class Place(NamedTuple):
    """Where a part stands among all rows: samples are drawn by the numbers of rows."""

    first: int
    """Number of its first row."""
    total: int
    """All rows, of all parts."""
    before: np.ndarray | None = None
    """What the pool counted in the parts before, added up; see `PoolOfParts`."""
    counted: np.ndarray | None = None
    """What the pool counted in all parts."""
    seed: int | None = None
    """Drawn once for all parts, for pools that are given no seed."""
    known: Any = None
    """What earlier surveys of all parts found; see `Unfinished`."""

    def sample(self, n_rows: int, most: int) -> np.ndarray:
        """Which of the part's ``n_rows`` are among at most ``most`` of all, at even distances.

        They are drawn by the numbers of rows, so all parts together have the same sample, whatever
        the parts. All rows are in it where there are no more.
        """
        if self.total <= most:
            return np.arange(n_rows)
        numbers = np.arange(most, dtype=np.int64) * self.total // most - self.first
        return numbers[(numbers >= 0) & (numbers < n_rows)]


class Unfinished(NamedTuple):
    """What ``merge`` returns to have all parts surveyed again, which then know more."""

    known: Any


@runtime_checkable
class PoolOfParts(Pool, Protocol):
    """A pool that can be bound to rows in parts.

    It may also have ``count(X, place, threads)``, which is asked of every part before any is
    surveyed. Its answers are arrays (or all ``None``). They are added up, and `survey` finds the
    sums in its place.
    """

    def survey(self, X: Any, weight: np.ndarray, place: Place, threads: Threads) -> Any:
        """What must be known of one part, for `merge`."""

    def merge(self, surveys: Sequence[Any], threads: Threads) -> Any:
        """What must be known of all parts, for ``bind``; surveys come in the order of the rows.

        An `Unfinished` answer has all parts surveyed once more. They find it in their place.
        """

    def bind(
        self,
        X: Any,
        weight: np.ndarray,
        threads: Threads,
        survey: Any = None,
        place: Place | None = None,
    ) -> BoundPool:
        """Prepare once for a part, with the merged survey; without one, for all rows."""


def bind_parts(
    pool: Pool, parts: Sequence[tuple[Any, np.ndarray]], threads: Threads
) -> list[BoundPool]:
    """Bind a pool to rows in parts, each ``(X, weight)``, and see that it can answer."""
    if not all(len(weight) for _, weight in parts):
        raise ValueError("every part must have a row")
    if len(parts) == 1:
        bounds = [_checked(pool, pool.bind(*parts[0], threads))]
    else:
        if not isinstance(pool, PoolOfParts):
            missing = "merge" if hasattr(pool, "survey") else "survey"
            why = getattr(pool, "in_one_memory", f"it has no {missing!r}")
            raise TypeError(
                f"{type(pool).__name__} cannot be bound to rows in parts: {why}; keep the rows in "
                "one memory"
            )
        places = _places(pool, parts, threads)
        merged = surveyed(pool, parts, places, threads)
        if merged is None:  # which would mean to bind that these rows are all
            raise TypeError(f"{type(pool).__name__}.merge must return what is known of all rows")
        bounds = [
            _checked(pool, pool.bind(X, weight, threads, merged, place))
            for (X, weight), place in zip(parts, places, strict=True)
        ]
    kinds = {(bound.n_atoms, bound.n_columns, str(bound.dtype)) for bound in bounds}
    if len(kinds) > 1:
        raise ValueError(
            f"{type(pool).__name__} is not the same for all parts of the rows: it has "
            f"{' and '.join(str(n) for n in sorted({n for n, _, _ in kinds}))} atoms"
        )
    late = [bound.late() for bound in bounds]
    if late[0] is not None:
        for bound in bounds:
            bound.settle(late)
    return bounds


def surveyed(
    pool: PoolOfParts,
    parts: Sequence[tuple[Any, np.ndarray]],
    places: Sequence[Place],
    threads: Threads,
) -> Any:
    """What is known of all parts, each ``(X, weight)``, after as many surveys as it takes."""
    merged: Any = Unfinished(None)
    while isinstance(merged, Unfinished):
        known = [place._replace(known=merged.known) for place in places]
        at = zip(parts, known, strict=True)
        surveys = [pool.survey(X, weight, place, threads) for (X, weight), place in at]
        merged = pool.merge(surveys, threads)
    return merged


def _places(
    pool: PoolOfParts, parts: Sequence[tuple[Any, np.ndarray]], threads: Threads
) -> list[Place]:
    """Where every part stands, with what the pool counts."""
    ends = np.cumsum([0, *(len(weight) for _, weight in parts)]).tolist()
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    places = [Place(first, ends[-1], seed=seed) for first in ends[:-1]]
    if not hasattr(pool, "count"):
        return places
    counts = [pool.count(X, p, threads) for (X, _), p in zip(parts, places, strict=True)]
    if counts[0] is None:
        return places
    sums = np.cumsum([np.zeros_like(counts[0]), *counts], axis=0)
    return [
        p._replace(before=before, counted=sums[-1]) for p, before in zip(places, sums, strict=False)
    ]


def _checked(pool: Pool, bound: Any) -> BoundPool:
    """What a pool's ``bind`` returned, if it can answer."""
    needed = ("n_atoms", "n_columns", "dtype", *sorted(BoundPool.__abstractmethods__), "best")
    missing = [name for name in needed if not hasattr(bound, name)]
    if missing:
        raise TypeError(
            f"{type(pool).__name__}.bind must return a laconic.pools.BoundPool; "
            f"what it returned, a {type(bound).__name__}, has no {missing[0]!r}"
        )
    checked: BoundPool = bound
    return checked
