"""Cuts of a feature whose rows come in parts: what a part says of its values, and all together.

This module imports Numba, so it is imported at first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from laconic.pools import codings
from laconic.pools.base import Place
from laconic.pools.codings import Coding
from laconic.pools.quantiles import Weighted, summary, united
from laconic.pools.stump_limits import StumpLimits


class Seen(NamedTuple):
    """What a part says of one feature."""

    distinct: np.ndarray
    """Ascending distinct values; of a feature that is cut into bins, not all if there are more."""
    missing: bool
    """Whether a value is missing."""
    sample: Weighted | None = None
    """What the cuts of a feature that is cut into bins are found from, or a summary of it."""


def seen(
    X: Any,
    features: slice,
    weight: np.ndarray,
    bins: int | None,
    categorical: np.ndarray,
    place: Place,
    limits: StumpLimits,
) -> list[Seen]:
    """What a part says of a few neighbouring features."""
    found = []
    values = codings.listed(X, features, codings.most_listed(bins), limits.read)
    for feature, (distinct, missing) in enumerate(values, features.start):
        if bins is not None and not categorical[feature]:
            sample = _sample(X, feature, weight, missing, place, limits.sample)
            found.append(Seen(distinct, missing, summary(sample)))
        elif len(distinct) > codings.most_listed(bins):
            found.append(Seen(codings.distinct_values(X, feature), missing))
        else:
            found.append(Seen(distinct, missing))
    return found


def _sample(
    X: Any, feature: int, weight: np.ndarray, missing: bool, place: Place, most: int
) -> Weighted:
    """The part of the sample of all rows that is drawn from these."""
    if place.before is None or place.counted is None:  # so few rows that all are in the sample
        return codings.sampled(X, feature, weight, missing, most)
    present = int(place.counted[feature])
    if present == place.total:
        return codings.sampled(X, feature, weight, False, most, (place.first, place.total))
    return codings.sampled(X, feature, weight, True, most, (int(place.before[feature]), present))


def merged(parts: Sequence[Seen], bins: int | None, categorical: bool) -> Coding:
    """The coding of a feature, from what all parts say of it."""
    missing = any(part.missing for part in parts)
    distinct = np.unique(np.concatenate([part.distinct for part in parts]))
    if bins is None or categorical or len(distinct) <= bins:
        return codings.exact_coding(distinct, missing, categorical)
    samples = [part.sample for part in parts if part.sample is not None]
    return codings.binned_coding(united(samples), missing, bins)
