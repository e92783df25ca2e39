"""Cuts of features whose rows come in parts: the survey of a part, and the merged coding.

This module imports Numba, so it is imported at first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from laconic.pools import codings
from laconic.pools.codings import Coding
from laconic.pools.parts import Place
from laconic.pools.quantiles import Weighted, summary, united
from laconic.pools.stump_limits import StumpLimits


class FeatureSurvey(NamedTuple):
    """The survey of one feature in one part. A survey of stumps is a list of these."""

    distinct: np.ndarray
    """Distinct values in ascending order. All are listed for a categorical feature. For another
    feature with many values some are left out, but then its ``sample`` has more."""
    missing: bool
    """Whether a value is missing."""
    sample: Weighted | None = None
    """Values that the cuts are found from, or a summary of them. Categorical features have none."""
    whole: bool = True
    """Whether the sample is complete, not a summary."""

    def __repr__(self) -> str:  # a cluster may log the surveys of hundreds of features
        return f"FeatureSurvey({len(self.distinct)} distinct values)"


def survey_features(
    X: Any,
    features: slice,
    weight: np.ndarray,
    bins: int | None,
    categorical: np.ndarray,
    place: Place,
    limits: StumpLimits,
) -> list[FeatureSurvey]:
    """Return the surveys of a few neighbouring features in a part."""
    found = []
    counted = place.counted
    complete = counted is not None and bool((counted[features] == place.total).all())
    values = codings.listed(X, features, codings.most_listed(bins), limits.read, None, complete)
    for feature, (distinct, missing) in enumerate(values, features.start):
        if categorical[feature]:
            if len(distinct) > codings.most_listed(bins):
                distinct = codings.distinct_values(X, feature)
            found.append(FeatureSurvey(distinct, missing))
        else:
            most = X.shape[0] if bins is None else limits.sample
            sample = _sample(X, feature, weight, missing, place, most)
            short = summary(sample, limits.listed, limits.points)
            found.append(FeatureSurvey(distinct, missing, short, short is sample))
    return found


def _sample(
    X: Any, feature: int, weight: np.ndarray, missing: bool, place: Place, most: int
) -> Weighted:
    """Return the part of the sample of all rows that is drawn from these rows."""
    if place.before is None or place.counted is None:  # then all rows are in the sample
        return codings.sampled(X, feature, weight, missing, most)
    present = int(place.counted[feature])
    if present == place.total:
        return codings.sampled(X, feature, weight, False, most, (place.first, place.total))
    return codings.sampled(X, feature, weight, True, most, (int(place.before[feature]), present))


def merged(
    parts: Sequence[FeatureSurvey], bins: int | None, categorical: bool, limits: StumpLimits
) -> Coding:
    """Return the coding of a feature, from its surveys in all parts."""
    missing = any(part.missing for part in parts)
    distinct = np.unique(np.concatenate([part.distinct for part in parts]))
    if categorical or (bins is not None and len(distinct) <= bins):
        return codings.exact_coding(distinct, missing, categorical)
    sample = united([part.sample for part in parts if part.sample is not None])
    if bins is not None:
        return codings.binned_coding(sample, missing, bins)
    short = summary(sample, limits.listed, limits.points)
    if short is sample and all(part.whole for part in parts):
        return codings.exact_coding(sample.values, missing, categorical)
    return codings.coding_at(short.values[:-1], missing)
