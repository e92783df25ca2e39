"""Several pools as one, so that one path chooses atoms of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from laconic.numeric.threads import Threads
from laconic.pools.base import Pool, WeakLearner
from laconic.pools.bound_mixed import BoundMixed
from laconic.pools.parts import Place, Unfinished, bind_whole, checked_bound, of_parts


class MixedKnown(NamedTuple):
    """What is known about every pool after a survey of all parts."""

    finished: tuple[bool, ...]
    """Whether the pool's survey is complete."""
    found: tuple[Any, ...]
    """The merged survey of a pool that is finished, otherwise what its next survey must know."""


class MixedSurvey(NamedTuple):
    """The surveys of one part, one for each pool."""

    known: MixedKnown | None
    surveys: tuple[Any, ...]
    """None for a pool that is finished."""


@dataclass(frozen=True)
class Mixed:
    """The atoms of several pools. Estimators make it from a list: ``pool=["columns", "stumps"]``.

    Atoms are numbered one pool after the other. A round asks every pool for its sums, so it costs
    as much as a round of each of them. Of equal scores, the atom of the earlier pool wins.

    Each pool scales its columns as it does alone. With ``scale="max"``, columns, products and
    patches lie between -1 and 1, and stumps are 0 or 1. So the l1 rule compares the decreases that
    Lemma 2 of ShareBoost guarantees. Columns with ``scale="std"`` or without a scale may be larger,
    and then come first. Pieces and groups of columns are scored by the sum over all their columns,
    so they usually come before single columns. ``rule="projection"`` does not depend on the scale.

    Parameters
    ----------
    pools : sequence of pools
        Two or more pool objects. No two may be the same. Two pools may still share atoms, such as
        stumps with other numbers of bins. An atom whose columns the model already spans is not
        chosen again.

    Notes
    -----
    Values may be missing, and text may be categories, only if all pools allow it.
    """

    pools: tuple[Pool, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "pools", tuple(self.pools))
        if not self.pools:
            raise ValueError("Mixed needs at least one pool")
        for number, pool in enumerate(self.pools):
            if any(_same(pool, other) for other in self.pools[:number]):
                raise ValueError(f"pool lists {pool!r} twice; list each pool once")

    @property
    def allows_missing(self) -> bool:
        """Whether values may be missing: only if all pools allow it."""
        return all(getattr(pool, "allows_missing", False) for pool in self.pools)

    @property
    def keeps_only_codes(self) -> bool:
        """Whether the bound pools keep codes of the rows, and not the rows themselves."""
        return all(getattr(pool, "keeps_only_codes", False) for pool in self.pools)

    @property
    def uses_labels(self) -> bool:
        """Whether any of the pools learns its atoms from labels."""
        return any(getattr(pool, "uses_labels", False) for pool in self.pools)

    def with_categories(self, features: Sequence[int]) -> Mixed:
        """Return the same pools with these features as categories, where a pool knows them."""
        return replace(
            self,
            pools=tuple(
                pool.with_categories(features) if hasattr(pool, "with_categories") else pool
                for pool in self.pools
            ),
        )

    def count(self, X: Any, place: Place, threads: Threads) -> np.ndarray | None:
        """Return the counts of every pool, 0 for a pool that counts nothing."""
        counts = [
            pool.count(X, place, threads) if hasattr(pool, "count") else None for pool in self.pools
        ]
        if all(count is None for count in counts):
            return None
        out = np.zeros(len(counts), dtype=object)
        for number, count in enumerate(counts):
            if count is not None:
                out[number] = count
        return out

    def survey(self, X: Any, weight: np.ndarray, place: Place, threads: Threads) -> MixedSurvey:
        """Return the surveys of the pools that are not finished."""
        known: MixedKnown | None = place.known
        surveys = tuple(
            None
            if known is not None and known.finished[number]
            else of_parts(pool).survey(X, weight, self._place(place, number), threads)
            for number, pool in enumerate(self.pools)
        )
        return MixedSurvey(known, surveys)

    def merge(
        self, surveys: Sequence[MixedSurvey], threads: Threads
    ) -> tuple[Any, ...] | Unfinished:
        """Return what every pool must know about all parts, once all pools know it."""
        known = surveys[0].known
        found: list[Any] = []
        for number, pool in enumerate(self.pools):
            if known is not None and known.finished[number]:
                found.append(known.found[number])
            else:
                own = [survey.surveys[number] for survey in surveys]
                found.append(of_parts(pool).merge(own, threads))
        finished = tuple(not isinstance(merged, Unfinished) for merged in found)
        if all(finished):
            return tuple(found)
        told = (merged.known if isinstance(merged, Unfinished) else merged for merged in found)
        return Unfinished(MixedKnown(finished, tuple(told)))

    def bind(
        self,
        X: Any,
        weight: np.ndarray,
        threads: Threads,
        survey: tuple[Any, ...] | None = None,
        place: Place | None = None,
    ) -> BoundMixed:
        """Bind every pool to the rows."""
        bounds = []
        for number, pool in enumerate(self.pools):
            if survey is None:
                bound = bind_whole(pool, X, weight, threads, place)
            elif survey[number] is None:
                raise TypeError(
                    f"{type(pool).__name__}.merge must return a merged survey, not None"
                )
            else:
                own = None if place is None else self._place(place, number)
                bound = of_parts(pool).bind(X, weight, threads, survey[number], own)
            bounds.append(checked_bound(pool, bound))
            if isinstance(bounds[-1], WeakLearner):
                raise TypeError(NOT_MIXED.format(type(pool).__name__))
        return BoundMixed(bounds, X.shape[1])

    def _place(self, place: Place, number: int) -> Place:
        """Return the place of a part as one of the pools sees it."""
        known: MixedKnown | None = place.known
        own = place._replace(known=None if known is None else known.found[number])
        if place.counted is None or place.before is None:
            return own
        if not isinstance(place.counted[number], np.ndarray):  # this pool counts nothing
            return own._replace(before=None, counted=None)
        before = place.before[number] + np.zeros_like(place.counted[number])
        return own._replace(before=before, counted=place.counted[number])


NOT_MIXED = (
    "{} cannot be mixed with other pools, because its atoms have no numbers before they are "
    "fitted; give it alone, or use a pool such as 'stumps'"
)


def _same(pool: Any, other: Any) -> bool:
    """Return whether two pools are the same object, or have the same class and settings."""
    if pool is other:
        return True
    if type(pool) is not type(other) or not type(pool).__module__.startswith("laconic."):
        return False
    import joblib

    return bool(joblib.hash(vars(pool)) == joblib.hash(vars(other)))
