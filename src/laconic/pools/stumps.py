"""The pool of all decision stumps (ShareBoost section 3.1).

An atom is one yes/no question about one feature: 1[v ≤ θ], 1[v = c] for a category c, or
1[v is missing]. A trick of the paper makes the pool cheap. A feature is sorted once. Then a single
pass over the rows gives the sums of all of its thresholds. So a round costs O(rows x features).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse

from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.bound_stumps import TOGETHER, BoundStumps
from laconic.pools.parts import Place
from laconic.pools.stump_limits import StumpLimits

if TYPE_CHECKING:
    from laconic.pools.codings import Coding
    from laconic.pools.cuts import FeatureSurvey


@dataclass(frozen=True)
class Stumps:
    """Every decision stump over the input features.

    A numeric feature has an atom 1[v ≤ θ] for each θ halfway between two consecutive distinct
    training values (or bins). A categorical feature has an atom 1[v = c] for each category c. A
    feature with missing values (NaN) also has the atom 1[v is missing]. All other atoms are 0 where
    the value is missing. Columns that are constant are left out, and so are columns that are the
    complement of another one of the same feature. Atoms are numbered feature by feature, by
    ascending threshold or category. The atom for missing values comes last.

    Parameters
    ----------
    bins : int from 2 to 255, or None
        A numeric feature with more distinct values than this is cut into ``bins`` bins of about
        equal weight. A value heavier than a bin counts as one bin. If there are more than 200,000
        rows, every ⌈n/200,000⌉-th row is used to find the cuts. ``None`` keeps every threshold.
    categorical : sequence of int, or boolean mask over the features, optional
        Features whose values are category codes. Codes can be any finite numbers. Categories are
        never binned.

    Notes
    -----
    *Memory.* The pool takes one byte for every row and feature, and two bytes for features with
    more than 256 codes. With ``bins=None``, a feature with more than 65,536 distinct values takes
    4 bytes per row and 12 bytes per distinct value. The input is read a few features at a time and
    never copied as a whole. The exception is a sparse matrix that is not in CSC format, which is
    converted to CSC.

    *Parts.* If the rows come in parts, the atoms are the same as for rows in one memory, up to the
    rounding of sums of weights. There are two exceptions. First, a numeric feature may be cut into
    bins and have more than 65,536 distinct values in the sample of a part. Its cuts are then found
    from summaries, and their ranks are off by less than 0.1 %. Second, with ``bins=None`` a
    numeric feature may have more than 65,536 distinct values. Its thresholds are then the points of
    a summary, at most 65,536. Between two neighbouring thresholds there is less than 0.1 % of the
    weight, or a single value. Categories are always listed, however many there are.
    """

    allows_missing: ClassVar[bool] = True
    keeps_only_codes: ClassVar[bool] = True
    _limits: ClassVar[StumpLimits] = StumpLimits()

    bins: int | None = 255
    categorical: Sequence[int] | Sequence[bool] | None = None

    def __post_init__(self) -> None:
        if self.categorical is not None:  # a tuple compares and hashes, an array does not
            listed = tuple(np.asarray(self.categorical).ravel().tolist())
            object.__setattr__(self, "categorical", listed)

    def count(self, X: Any, place: Place, threads: Threads) -> np.ndarray | None:
        """Return the number of rows that have a value of each feature.

        Return None if the cuts need no sample.
        """
        from laconic.pools import codings as coder

        limits = self._limits
        if place.total <= limits.sample or self.bins is None:
            return None
        X, blocks = by_feature(X)
        return coder.n_present(X, blocks, threads)

    def survey(
        self, X: Any, weight: np.ndarray, place: Place, threads: Threads
    ) -> list[FeatureSurvey]:
        """Return what this part says about the values of every feature.

        Of a categorical feature these are all categories. Of another feature these are the values
        and weights of the rows that the cuts are found from. If a part has more than 65,536 such
        values, it gives a summary; see `laconic.pools.quantiles.summary`.
        """
        from laconic.pools import cuts

        bins = self.checked_bins()
        X, weight, blocks = checked_rows(X, weight)
        categorical = self.categories(X.shape[1])
        how = (weight, bins, categorical, place, self._limits)
        found = threads.map(lambda b: cuts.survey_features(X, b, *how), blocks)
        return [feature for block in found for feature in block]

    def merge(self, surveys: Sequence[list[FeatureSurvey]], threads: Threads) -> list[Coding]:
        """Return the coding of every feature.

        If no summary was made, the codings and atoms are the same as for rows in one part.
        """
        from laconic.pools import cuts

        bins, categorical = self.checked_bins(), self.categories(len(surveys[0]))
        features, limits = zip(zip(*surveys, strict=True), categorical, strict=True), self._limits
        return list(threads.map(lambda f: cuts.merged(f[0], bins, bool(f[1]), limits), features))

    def bind(
        self,
        X: Any,
        weight: np.ndarray,
        threads: Threads,
        survey: list[Coding] | None = None,
        place: Place | None = None,
    ) -> BoundStumps:
        """Code every feature of the training rows.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_rows, n_features)
            Finite values, or NaN for a missing value.
        weight : ndarray of shape (n_rows,)
            Positive weights. With at most 200,000 rows, the cuts treat a row of weight 2 like the
            same row twice.
        threads : Threads
            Workers. They are kept to compute the sums.
        survey : list of Coding, optional
            The codings for all parts, if these rows are one part.
        place : Place, optional
            Place of these rows among all rows. It is not read.
        """
        from laconic.pools import codings as coder  # it imports Numba

        bins = self.checked_bins()
        X, weight, blocks = checked_rows(X, weight)
        categorical = self.categories(X.shape[1])
        if survey is None:
            limits, most = self._limits, coder.most_listed(bins)
            values = coder.listed_in_runs(X, blocks, most, limits.read, threads)

            def coding(feature: int) -> Coding:
                named = bool(categorical[feature])
                return coder.coding_of(X, feature, values[feature], weight, bins, named, limits)

            codings = list(threads.map(coding, range(X.shape[1])))
        else:
            narrow = self._limits.narrow
            codings = list(threads.map(lambda f: coder.placed(X, *f, narrow), enumerate(survey)))
        return BoundStumps(X, codings, blocks, threads, self._limits)

    def with_categories(self, features: Sequence[int]) -> Stumps:
        """Return the same pool with these features as further categorical features."""
        given = np.asarray([] if self.categorical is None else self.categorical)
        given = np.flatnonzero(given) if given.dtype == bool else given
        return replace(self, categorical=tuple(sorted({*features, *given.astype(int).tolist()})))

    def checked_bins(self) -> int | None:
        """Return the number of bins. Refuse a wrong one."""
        bins = self.bins
        if bins is None:
            return None
        if isinstance(bins, bool) or not isinstance(bins, int | np.integer):
            raise TypeError(f"bins must be an integer from 2 to 255, or None, not {bins!r}")
        if not 2 <= bins <= 255:
            raise ValueError(f"bins must be from 2 to 255, or None for every threshold, not {bins}")
        return int(bins)

    def categories(self, n_features: int) -> np.ndarray:
        """Return which features are categorical. Refuse a wrong list."""
        mask = np.zeros(n_features, dtype=bool)
        if self.categorical is None or len(self.categorical) == 0:
            return mask
        listed = np.asarray(self.categorical)
        if listed.dtype.kind == "b":
            if len(listed) != n_features:
                raise ValueError(
                    f"categorical as a mask must have one entry per feature, {n_features}, "
                    f"not {len(listed)}"
                )
            return listed
        if listed.dtype.kind not in "iu":
            raise TypeError(
                "categorical must be feature numbers or a boolean mask over the features, "
                f"not {self.categorical!r}"
            )
        wrong = listed[(listed < 0) | (listed >= n_features)]
        if wrong.size:
            raise ValueError(
                f"categorical names feature {wrong[0]}, but features are numbered "
                f"0 to {n_features - 1}"
            )
        mask[listed] = True
        return mask


def by_feature(X: Any) -> tuple[Any, list[slice]]:
    """Return X in the format that is read, and the blocks of features that are read together."""
    X = X.tocsc() if sparse.issparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"X must have two dimensions, rows and features, not {X.ndim}; "
            "reshape a single feature with X.reshape(-1, 1)"
        )
    return X, row_blocks(X.shape[1], 1 if sparse.issparse(X) else TOGETHER)


def checked_rows(X: Any, weight: np.ndarray) -> tuple[Any, np.ndarray, list[slice]]:
    """Return rows and weights as they are read, and the blocks of features read together."""
    X, blocks = by_feature(X)
    weight = np.asarray(weight, dtype=np.float64)
    if weight.shape != (X.shape[0],):
        raise ValueError(
            f"weight must have one number per row, shape ({X.shape[0]},), not {weight.shape}"
        )
    return X, weight, blocks
