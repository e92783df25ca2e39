"""The conditions of a feature, each as a set of codes, for `laconic.pools.rules`.

This module imports Numba, so it is imported at first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from laconic.pools.codings import Coding, coding_at, exact_coding
from laconic.pools.cuts import FeatureSurvey
from laconic.pools.quantiles import united

# Sums are rounded, so weights of categories are compared by buckets of this relative width. Weights
# in one bucket are a tie. Rounding can still separate two weights at the edge of a bucket.
ROUNDING = 1e-9


class FeatureConditions(NamedTuple):
    """The conditions of one feature."""

    coding: Coding
    """How values become codes."""
    kinds: tuple[str, ...]
    """The kind of every condition; see `laconic.model.rules.Condition`."""
    values: tuple[float, ...]
    """The threshold or category of every condition."""
    holds: np.ndarray
    """Which codes meet each condition, (n_conditions, n_codes)."""

    def met(self, sums: np.ndarray) -> np.ndarray:
        """Return the sums over the codes that meet each condition, from sums by code.

        Both have codes or conditions on their first axis. Sums of thresholds are running sums, from
        the lowest code for v ≤ θ and from the highest for v > θ.
        """
        n, last = self.kinds.count("le"), len(sums) - self.coding.missing
        if n:
            above = np.cumsum(sums[last - 1 : 0 : -1], axis=0)[::-1]
            parts = [np.cumsum(sums[:n], axis=0), above]
        else:
            parts = [sums[self.holds[: self.kinds.count("eq")].argmax(axis=1)]]
        return np.concatenate([*parts, sums[last:]])


def threshold_conditions(coding: Coding) -> FeatureConditions:
    """Return the conditions v ≤ θ and v > θ for all thresholds of a numeric feature."""
    thresholds, code = coding.values.tolist(), np.arange(coding.n_codes)
    below = code <= np.arange(len(thresholds))[:, None]
    above = ~below & (code <= len(thresholds))  # a missing value has the last code
    kinds = ("le",) * len(thresholds) + ("gt",) * len(thresholds)
    return _with_missing(coding, kinds, [*thresholds, *thresholds], np.vstack([below, above]))


def category_conditions(parts: Sequence[FeatureSurvey], most: int) -> FeatureConditions:
    """Return the conditions v = c for the most common categories c of all parts."""
    missing = any(part.missing for part in parts)
    categories, mass = united([part.sample for part in parts if part.sample is not None])
    if len(categories) <= most:
        coding = exact_coding(categories, missing, True)
        place = np.arange(len(categories))
    else:
        categories = np.sort(categories[_heaviest(mass, most)])
        # A cut on either side of a category gives it a code of its own.
        around = np.column_stack([np.nextafter(categories, -np.inf), categories])
        coding = coding_at(around.ravel(), missing)
        place = 2 * np.arange(most) + 1
    if coding.n_atoms == 0:
        categories, place = categories[:0], place[:0]
    holds = np.arange(coding.n_codes) == place[:, None]
    return _with_missing(coding, ("eq",) * len(categories), categories.tolist(), holds)


def _heaviest(mass: np.ndarray, most: int) -> np.ndarray:
    """Return the places of the largest masses. Of those in one bucket, the first are taken."""
    ranks = np.floor(np.log(mass) / ROUNDING)
    return np.argsort(-ranks, kind="stable")[:most]


def _with_missing(
    coding: Coding, kinds: tuple[str, ...], values: list[float], holds: np.ndarray
) -> FeatureConditions:
    if coding.missing:
        last = np.arange(coding.n_codes) == coding.n_codes - 1
        kinds, values, holds = (*kinds, "missing"), [*values, 0.0], np.vstack([holds, last])
    return FeatureConditions(coding, kinds, tuple(values), holds)
