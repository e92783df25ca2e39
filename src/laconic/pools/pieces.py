"""The pool of pieces: balls, each with a linear function inside (ShareBoost section 3.2).

An atom is a ball (centre, radius) with the group of columns 1[‖v − c‖ < r]·[v, 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

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
from laconic.pools.bound_pieces import BoundPieces
from laconic.pools.parts import Place
from laconic.pools.radii import BallGrid, CodedRows, code_rows, find_balls
from laconic.pools.scaling import LARGEST_UNIT, SMALLEST_UNIT, column_peaks

# Codes are bytes, and one code means that a row is outside every ball.
MOST_RADII = 255
# Rows in a batch of the clustering, and the most passes over the rows.
BATCH, EPOCHS = 4096, 20


class PiecesSurvey(NamedTuple):
    """The survey of one part of the rows."""

    peaks: np.ndarray
    """Largest absolute value of every column, in all rows of the part."""
    rows: np.ndarray
    """The rows that centres and radii are found from, as a dense array."""
    weight: np.ndarray
    """The weights of these rows."""
    numbers: np.ndarray
    """The numbers of these rows among all rows."""


class Pieces(TransformerMixin, BaseEstimator):
    """Balls of many centres and radii, each with a linear function inside.

    The columns of the ball (c, r) are share^(−balance) · 1[‖v − c‖ < r] · [slope (v − o)/s, 1].
    Here share is the fraction of the training rows inside the ball, o is the mean of the rows, and
    s is the root of their mean squared distance from the mean. With ``relative``, o is the centre
    and s is the radius instead. These columns are the paper's ψ(v), scaled. Scaling changes what
    the penalty costs and what the l1 rule prefers, but not which functions a model can represent.
    The columns of a soft ball are also multiplied by 1 − ‖v − c‖²/r², which makes the model
    continuous. The columns of a ball are chosen as a group. The score of a group is the sum of the
    l1 gradient norms of its columns.

    As the ``pool`` of an estimator, this object never writes down its columns. A round costs
    O(m · centres · d · k) for all radii together, with m rows, d features and k outputs. A chosen
    ball stores only the numbers of the rows inside it. As a step of a scikit-learn pipeline
    (`fit`, `transform`), it returns the columns of all balls as a sparse matrix.

    Parameters
    ----------
    n_centres : int, default=1500
        Number of candidate centres. They are found by mini-batch k-means of the distinct rows, with
        their weights. If there are at most this many distinct rows, these rows are the centres. The
        order of the rows does not matter, and a row of weight 2 counts as the same row twice. There
        is one exception: more than 65,536 rows in parts, of which a sample is drawn by row numbers
        (see *Parts* below).
    n_radii : int, default=35
        Number of radii of each centre, at most 255.
    min_share, max_share : float, default=0.01 and 0.5
        Fraction of the rows inside the smallest and the largest ball of a centre. The fractions of
        the balls between grow evenly. A radius is halfway between two rows, so no row is on a
        sphere.
    slope : float, default=None
        Factor of the linear part. ``None`` means the root of the number of features. Coordinates
        then count about as much as the constant.
    soft : bool, default=False
        Whether the functions of a ball decrease to zero at its edge. Choosing a ball then costs
        twice the operations.
    relative : bool, default=False
        Whether the linear function of a ball is a function of (v − c)/r.
    balance : float, default=0.0
        The columns of a ball are divided by this power of its share. At 0 the l1 rule prefers large
        balls. At 0.5 the columns of all balls have about the same norm.
    centres : array-like of shape (n_centres, n_features), default=None
        Centres to use instead of clustering.
    random_state : int, RandomState instance or None, default=0
        Draws the start and the batches of the clustering.

    Attributes
    ----------
    map_ : PiecesMap
        All balls, after `fit`.

    Notes
    -----
    *Memory.* In addition to the data, the pool takes a byte for every row and centre, a copy of the
    rows, and 64 MiB of sums. Soft balls take a byte and a number for every row and centre. The
    projection rule needs two more copies of the rows, in float64, before its first round. A sparse
    matrix is made dense.

    *Parts.* Rows in parts have the same balls as rows in one memory, if there are at most 65,536
    rows in all. If there are more, the centres, the radii, the mean and the shares are found from
    65,536 rows, taken at even distances by their numbers. The results are then the same for any two
    or more parts. But they depend on the order of the rows, and a row of weight 2 may be left out
    of the sample, while one of its two copies would be in. Every row still counts for the balls
    that contain it. A row that is on a sphere up to rounding may be inside for one division into
    parts and outside for another.

    Examples
    --------
    >>> import numpy as np
    >>> from laconic import ShareBoostClassifier
    >>> from laconic.pools import Pieces
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> y = (np.hypot(X[:, 0], X[:, 1]) < 0.6).astype(int)
    >>> pool = Pieces(n_centres=30, n_radii=10)
    >>> ShareBoostClassifier(3, pool=pool).fit(X, y).score(X, y) > 0.95
    True
    """

    _sampled: ClassVar[int] = 65_536  # rows from which the balls of rows in parts are found

    def __init__(
        self,
        n_centres: int = 1500,
        n_radii: int = 35,
        *,
        min_share: float = 0.01,
        max_share: float = 0.5,
        slope: float | None = None,
        soft: bool = False,
        relative: bool = False,
        balance: float = 0.0,
        centres: Any = None,
        random_state: Any = 0,
    ) -> None:
        self.n_centres = n_centres
        self.n_radii = n_radii
        self.min_share = min_share
        self.max_share = max_share
        self.slope = slope
        self.soft = soft
        self.relative = relative
        self.balance = balance
        self.centres = centres
        self.random_state = random_state

    def survey(self, X: Any, weight: np.ndarray, place: Place, threads: Threads) -> PiecesSurvey:
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
        return PiecesSurvey(column_peaks(X), _dense(rows), weight[at], place.first + at)

    def merge(self, surveys: Sequence[PiecesSurvey], threads: Threads) -> BallGrid:
        """Find the centres and radii."""
        X, weight, numbers = (
            np.concatenate(arrays) for arrays in zip(*(part[1:] for part in surveys), strict=True)
        )
        balls, _ = self._balls(
            X, weight, np.max([part.peaks for part in surveys], axis=0), None, threads
        )
        return balls._replace(nearest=numbers[balls.nearest])

    def bind(
        self,
        X: Any,
        weight: np.ndarray,
        threads: Threads,
        survey: BallGrid | None = None,
        place: Place | None = None,
    ) -> BoundPieces:
        """Find the balls of all rows, or use those of the survey. Then code every distance."""
        soft = bool(self.soft)
        if survey is None:
            X = X if sparse.issparse(X) else np.asarray(X)
            self._check()
            self._expect(X, X.shape[0])
            X = _dense(X)
            balls, coded = self._balls(X, weight, column_peaks(X), soft, threads)
            assert coded is not None
        else:
            balls = survey
            coded = code_rows(_in_units(_dense(X), balls.power), balls, soft, threads)
        return BoundPieces(self, balls, coded, threads)

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

    def fit(self, X: Any, y: Any = None) -> Pieces:
        """Find the balls of the training rows. ``y`` is ignored."""
        X = validated(self, X, accept_sparse=["csr", "csc"])
        with Threads() as threads:
            bound = self.bind(X, np.full(X.shape[0], 1.0 / X.shape[0]), threads)
        self.map_ = bound.extract(range(bound.n_atoms))
        return self

    def transform(self, X: Any) -> sparse.csr_matrix:
        """Return the columns of all balls in input units; see `laconic.model.pieces.PiecesMap`."""
        check_is_fitted(self, "map_")
        X = validated(self, X, accept_sparse=["csr", "csc"], reset=False)
        return self.map_.sparse_columns(X)

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
        coded = n_rows * min(n_centres, n_rows) * (1 + X.dtype.itemsize * bool(self.soft))
        copies = n_rows * n_features * X.dtype.itemsize * (1 + sparse.issparse(X))
        warn_if_too_large(
            coded + copies,
            f"a pool of pieces on {n_rows} rows of {n_features} features",
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
        slope = self.slope
        if slope is not None and (not is_at_least(slope, Real, 0) or slope in (0, np.inf)):
            raise ValueError(f"slope must be positive, not {slope!r}")
        if not is_at_least(self.balance, Real, 0) or self.balance > 1:
            raise ValueError(f"balance must be from 0 to 1, not {self.balance!r}")
        for name in ("soft", "relative"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name} must be True or False, not {getattr(self, name)!r}")

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
