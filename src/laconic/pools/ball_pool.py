"""What pools of balls share: centres, radii, and the codes of rows."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from laconic.data.validation import validated
from laconic.model.patches import is_at_least
from laconic.numeric.magnitudes import ENLARGE, SHRINK, power_of_two
from laconic.numeric.memory import warn_if_too_large
from laconic.numeric.threads import Threads
from laconic.pools.bound_balls import BoundBalls
from laconic.pools.parts import Place, numbers_among_all
from laconic.pools.radii import BallGrid, CodedRows, code_rows, find_balls
from laconic.pools.scaling import LARGEST_UNIT, SMALLEST_UNIT, column_peaks

# Codes are bytes, and one code means that a row is outside every ball.
MOST_RADII = 255
# Rows in a batch of the clustering, and the most passes over the rows.
BATCH, EPOCHS = 4096, 20

Self = TypeVar("Self", bound="BallPool")


class BallSurvey(NamedTuple):
    """The survey of one part of the rows."""

    peaks: np.ndarray
    """Largest absolute value of every column, in all rows of the part."""
    rows: np.ndarray
    """The rows that centres and radii are found from, as a dense array."""
    weight: np.ndarray
    """The weights of these rows."""
    numbers: np.ndarray
    """The numbers of these rows among all rows."""


class BallPool(TransformerMixin, BaseEstimator):
    """A pool whose atoms are balls around many centres, with many radii each.

    A pool has the settings ``n_centres``, ``n_radii``, ``min_share``, ``max_share``, ``centres``
    and ``random_state``. `laconic.pools.pieces.Pieces` describes them.
    """

    _what: ClassVar[str]
    _sampled: ClassVar[int] = 65_536  # rows from which the balls of rows in parts are found

    n_centres: int
    n_radii: int
    min_share: float
    max_share: float
    centres: Any
    random_state: Any
    map_: Any
    _absent: np.ndarray | None = None  # see `numbered_with`

    def numbered_with(self: Self, absent: np.ndarray) -> Self:
        """Return a copy that counts rows which it will not see when it says which row is nearest.

        ``absent`` are the numbers of these rows among all, in order.
        """
        made = copy(self)
        made._absent = absent
        return made

    def _is_soft(self) -> bool:
        """Return whether balls are soft. Soft balls need the distances of rows."""
        raise NotImplementedError

    def _bound(self, balls: BallGrid, coded: CodedRows, threads: Threads) -> BoundBalls:
        """Return the pool over rows that are coded."""
        raise NotImplementedError

    def survey(self, X: Any, weight: np.ndarray, place: Place, threads: Threads) -> BallSurvey:
        """Return the rows of this part that centres and radii are found from.

        These are all rows if all parts together have at most 65,536. Otherwise 65,536 rows of all
        parts are taken, at even distances.
        """
        self._check()
        X = X if sparse.issparse(X) else np.asarray(X)
        if place.first == 0:
            self._expect(X, place.total)
        at = place.sample(X.shape[0], self._sampled)
        rows = X if len(at) == X.shape[0] else X[at]
        return BallSurvey(
            column_peaks(X, threads=threads), _dense(rows), weight[at], place.first + at
        )

    def merge(self, surveys: Sequence[BallSurvey], threads: Threads) -> BallGrid:
        """Find the centres and radii."""
        X, weight, numbers = (
            np.concatenate(arrays) for arrays in zip(*(part[1:] for part in surveys), strict=True)
        )
        balls, _ = self._balls(
            X, weight, np.max([part.peaks for part in surveys], axis=0), None, threads
        )
        return self._numbered(balls._replace(nearest=numbers[balls.nearest]))

    def bind(
        self,
        X: Any,
        weight: np.ndarray,
        threads: Threads,
        survey: BallGrid | None = None,
        place: Place | None = None,
    ) -> BoundBalls:
        """Find the balls of all rows, or use those of the survey. Then code every distance."""
        soft = self._is_soft()
        if survey is None:
            X = X if sparse.issparse(X) else np.asarray(X)
            self._check()
            self._expect(X, X.shape[0])
            X = _dense(X)
            balls, coded = self._balls(X, weight, column_peaks(X, threads=threads), soft, threads)
            assert coded is not None
            balls = self._numbered(balls)
        else:
            balls = survey
            coded = code_rows(_in_units(_dense(X), balls.power), balls, soft, threads)
        return self._bound(balls, coded, threads)

    def _numbered(self, balls: BallGrid) -> BallGrid:
        """Return balls with the numbers that rows have among all, also those that are absent."""
        if self._absent is None:
            return balls
        return balls._replace(nearest=numbers_among_all(balls.nearest, self._absent))

    def _balls(
        self,
        X: np.ndarray,
        weight: np.ndarray,
        peaks: np.ndarray,
        soft: bool | None,
        threads: Threads,
    ) -> tuple[BallGrid, CodedRows | None]:
        """Return the balls of some rows; see `find_balls`. ``peaks`` are the peaks of all rows."""
        power = self._power(peaks, X.dtype)
        X = _in_units(X, power)
        centres = self._centres(X, weight, power)
        shares = np.linspace(self.min_share, self.max_share, self.n_radii)
        return find_balls(X, weight, centres, shares, power, soft, threads)

    def fit(self: Self, X: Any, y: Any = None) -> Self:
        """Find the balls of the training rows. ``y`` is ignored."""
        X = validated(self, X, accept_sparse=["csr", "csc"])
        with Threads() as threads:
            bound = self.bind(X, np.full(X.shape[0], 1.0 / X.shape[0]), threads)
        self.map_ = bound.extract(range(bound.n_atoms))
        return self

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of `transform`."""
        check_is_fitted(self, "map_")
        names = getattr(self, "feature_names_in_", input_features)
        return np.array(self.map_.names(names), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _expect(self, X: Any, n_rows: int) -> None:
        """Warn if codes, depths and copies of the rows will not fit in memory."""
        n_features = X.shape[1]
        n_centres = self.n_centres if self.centres is None else len(np.atleast_1d(self.centres))
        coded = n_rows * min(n_centres, n_rows) * (1 + X.dtype.itemsize * self._is_soft())
        copies = n_rows * n_features * X.dtype.itemsize * (1 + sparse.issparse(X))
        warn_if_too_large(
            coded + copies,
            f"a pool of {self._what} on {n_rows} rows of {n_features} features",
            "lower n_centres, use fewer features (dense copies of the rows are made), or fit a "
            "sample of the rows",
        )

    def _check(self) -> None:
        for name, most in (("n_centres", np.inf), ("n_radii", MOST_RADII)):
            value = getattr(self, name)
            if not is_at_least(value, Integral, 1) or value > most:
                limit = "at least 1" if most == np.inf else f"from 1 to {most}"
                raise ValueError(f"{name} must be a whole number, {limit}, not {value!r}")
        shares = self.min_share, self.max_share
        if not all(is_at_least(s, Real, 0) for s in shares) or not 0 < shares[0] <= shares[1] <= 1:
            raise ValueError(
                "min_share and max_share must be fractions with 0 < min_share <= max_share <= 1, "
                f"not {self.min_share!r} and {self.max_share!r}"
            )

    def _power(self, peaks: np.ndarray, dtype: np.dtype[Any]) -> int:
        """Return the power of two that is the unit of distances. Refuse X out of range."""
        largest, column = float(peaks.max(initial=0.0)), int(peaks.argmax())
        most = 0.25 * float(np.finfo(dtype).max)
        if largest > min(most, LARGEST_UNIT):
            raise ValueError(
                f"column {column} of X holds values up to {largest:.2g}, so distances would "
                f"overflow; {SHRINK}"
            )
        if 0 < largest < SMALLEST_UNIT:
            raise ValueError(
                f"X holds no value above {largest:.2g}, so weights would overflow; {ENLARGE}"
            )
        return power_of_two(largest)

    def _centres(self, X: np.ndarray, weight: np.ndarray, power: int) -> np.ndarray:
        """Return the centres. Like X, they are in units of that power of two."""
        if self.centres is not None:
            centres = np.asarray(self.centres, dtype=np.float64)
            if centres.ndim != 2 or centres.shape[1] != X.shape[1] or len(centres) == 0:
                raise ValueError(
                    f"centres must be one or more rows of {X.shape[1]} features, not an array of "
                    f"shape {centres.shape}"
                )
            if not np.isfinite(centres).all():
                raise ValueError("centres must not hold missing or infinite values")
            return np.ldexp(centres, -power)
        distinct, place = np.unique(X, axis=0, return_inverse=True)
        if len(distinct) <= self.n_centres:
            return distinct.astype(np.float64)
        from sklearn.cluster import MiniBatchKMeans  # here, because it takes a while to import

        kmeans = MiniBatchKMeans(
            self.n_centres,
            batch_size=BATCH,
            max_iter=EPOCHS,
            n_init=1,
            random_state=self.random_state,
        )
        # Batches are drawn by the numbers of rows. Distinct rows come once each and sorted, so that
        # neither copies nor the order of the rows change the draw. Rounded to single precision,
        # sums of weights do not depend on the order of the terms.
        sums = np.bincount(place.ravel(), weight).astype(np.float32)
        # With several threads the order of the sums varies, and centres would differ by rounding.
        with threadpool_limits(1):
            kmeans.fit(distinct, sample_weight=sums * len(distinct))
        return kmeans.cluster_centers_.astype(np.float64)


def _dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if sparse.issparse(X) else X)


def _in_units(X: np.ndarray, power: int) -> np.ndarray:
    """Return the rows in units of a power of two."""
    return np.ldexp(X, -power) if power else X
