"""The pool of rules: two conditions on two different features, such as sex = male and age > 45."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from laconic.numeric.threads import Threads
from laconic.pools.bound_rules import BoundRules
from laconic.pools.parts import Place
from laconic.pools.stump_limits import StumpLimits
from laconic.pools.stumps import Stumps, checked_rows

if TYPE_CHECKING:
    from laconic.pools.cuts import FeatureSurvey
    from laconic.pools.feature_conditions import FeatureConditions

# Either limit gives a feature at most 202 codes. A byte has room for a few more. But the number of
# rules, and so the time of a round, grows with the square of the number of codes.
MOST_CUTS, MOST_CATEGORIES = 200, 100


@dataclass(frozen=True)
class Rules:
    """Every pair of conditions on two different features.

    The column of a rule is 1 if both of its conditions hold, and 0 otherwise. A numeric feature has
    the conditions v ≤ θ and v > θ for a few thresholds θ. A categorical feature has v = c for each
    of its common categories c. A feature with missing values (NaN) also has "v is missing". A
    missing value meets no other condition. Features that are constant have no conditions.

    Atoms are numbered by their first condition, then by their second one. Conditions are numbered
    feature by feature: v ≤ θ by ascending θ, then v > θ, or v = c by ascending c. The condition for
    missing values comes last. The first condition is about the feature with the lower number.

    Parameters
    ----------
    cuts : int from 1 to 200, default=32
        Most thresholds of a numeric feature. They cut it into bins of about equal weight, as those
        of `laconic.pools.Stumps` with ``bins=cuts + 1``.
    max_categories : int from 1 to 100, default=32
        Most categories of a feature that have a condition. They are those of the largest weight.
    categorical : sequence of int, or boolean mask over the features, optional
        Features whose values are category codes. Codes can be any finite numbers.

    Notes
    -----
    *Time.* One pass over the rows gives the sums of all rules on two features. Running sums over
    codes lead from there to every rule. So a round takes O(rows · features² · outputs) for the
    passes, and O(rules · outputs) for the rules. There are about 2 (features · cuts)² rules.

    *Memory.* The pool takes one byte for every row and feature. A round takes 18 bytes for every
    row and thread. Sums wait in 32 MB, or in more if rules with the same first feature need it.
    They take 8 bytes for every rule and output.

    *Parts.* If the rows come in parts, conditions are found as the thresholds of
    `laconic.pools.Stumps` are. The weights of categories are added up, so equally common categories
    may change places if sums are rounded.

    Examples
    --------
    >>> import numpy as np
    >>> from laconic import ShareBoostClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 3))
    >>> y = (X[:, 0] > 0) & (X[:, 1] > 0)
    >>> model = ShareBoostClassifier(1, pool="rules").fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    allows_missing: ClassVar[bool] = True
    keeps_only_codes: ClassVar[bool] = True
    _limits: ClassVar[StumpLimits] = StumpLimits()

    cuts: int = 32
    max_categories: int = 32
    categorical: Sequence[int] | Sequence[bool] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "categorical", Stumps(categorical=self.categorical).categorical)

    def count(self, X: Any, place: Place, threads: Threads) -> np.ndarray | None:
        """Return the number of rows that have a value of each feature, as stumps do."""
        return self._stumps().count(X, place, threads)

    def survey(
        self, X: Any, weight: np.ndarray, place: Place, threads: Threads
    ) -> list[FeatureSurvey]:
        """Return the surveys of stumps, with the weights of categories."""
        from laconic.pools import codings

        X, weight, _ = checked_rows(X, weight)
        found = self._stumps().survey(X, weight, place, threads)
        named = np.flatnonzero(self._stumps().categories(len(found))).tolist()

        def with_weights(f: int) -> FeatureSurvey:
            listed = codings.sampled(X, f, weight, found[f].missing, len(weight))
            return found[f]._replace(sample=listed)

        for f, survey in zip(named, threads.map(with_weights, named), strict=True):
            found[f] = survey
        return found

    def merge(
        self, surveys: Sequence[list[FeatureSurvey]], threads: Threads
    ) -> list[FeatureConditions]:
        """Return the conditions of every feature."""
        from laconic.pools import cuts
        from laconic.pools.feature_conditions import category_conditions, threshold_conditions

        stumps = self._stumps()
        bins, named = stumps.checked_bins(), stumps.categories(len(surveys[0]))

        def conditions(feature: tuple[Sequence[FeatureSurvey], bool]) -> FeatureConditions:
            parts, categorical = feature
            if categorical:
                return category_conditions(parts, self.max_categories)
            return threshold_conditions(cuts.merged(parts, bins, False, self._limits))

        features = zip(zip(*surveys, strict=True), named.tolist(), strict=True)
        return list(threads.map(conditions, features))

    def bind(
        self,
        X: Any,
        weight: np.ndarray,
        threads: Threads,
        survey: list[FeatureConditions] | None = None,
        place: Place | None = None,
    ) -> BoundRules:
        """Code every feature of the training rows; see `laconic.pools.Stumps.bind`."""
        X, weight, blocks = checked_rows(X, weight)
        if X.shape[1] < 2:
            raise ValueError(f"X must have at least two columns to form rules, not {X.shape[1]}")
        if survey is None:
            survey = self.merge([self.survey(X, weight, Place(0, len(weight)), threads)], threads)
        return BoundRules(X, survey, blocks, threads, self._limits)

    def with_categories(self, features: Sequence[int]) -> Rules:
        """Return the same pool with these features as further categorical features."""
        return replace(self, categorical=self._stumps().with_categories(features).categorical)

    def _stumps(self) -> Stumps:
        """Return stumps with the same thresholds. Refuse wrong settings."""
        for name, most in (("cuts", MOST_CUTS), ("max_categories", MOST_CATEGORIES)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise TypeError(f"{name} must be an integer from 1 to {most}, not {value!r}")
            if not 1 <= value <= most:
                raise ValueError(f"{name} must be from 1 to {most}, not {value}")
        return Stumps(int(self.cuts) + 1, self.categorical)
