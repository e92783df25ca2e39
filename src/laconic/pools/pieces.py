"""The pool of pieces: balls, each with a linear function inside (ShareBoost section 3.2).

An atom is a ball (centre, radius) with the group of columns 1[‖v − c‖ < r]·[v, 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

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
from laconic.pools.base import Place
from laconic.pools.bound_pieces import BoundPieces
from laconic.pools.radii import Balls, find_balls
from laconic.pools.scaling import LARGEST_UNIT, SMALLEST_UNIT, column_peaks

# Codes are bytes, and one of them means outside every ball.
MOST_RADII = 255
# Rows of a batch of the clustering, and times that every row is looked at (at most).
BATCH, EPOCHS = 4096, 20


class Pieces(TransformerMixin, BaseEstimator):
    """Balls of many centres and radii, each with a linear function inside.

    The columns of the ball (c, r) are share^(−balance) · 1[‖v − c‖ < r] · [slope (v − o)/s, 1].
    Here share is the part of the training rows inside, o the mean of the rows and s the root of
    their mean squared distance from it, or, ``relative``, o is the centre and s the radius: the
    paper's ψ(v), scaled, which changes what the penalty costs and what the l1 rule prefers, not
    what the model can say. Soft balls have these columns times 1 − ‖v − c‖²/r²: the model is then
    continuous. A group's score is the sum of the l1 gradient norms of its columns.

    As the ``pool`` of an estimator it is never written down: a round costs O(m · centres · d · k)
    for all radii together, and a chosen ball costs the numbers of the rows inside it. As a step of
    a scikit-learn pipeline (`fit`, `transform`) it gives the columns of all balls as a sparse
    matrix.

    Parameters
    ----------
    n_centres : int, default=1500
        Candidate centres, found by mini-batch k-means of the distinct rows, weighted. Where there
        are no more distinct rows than this, the rows themselves. The order of the rows does not
        matter, and a row of weight 2 is the row twice.
    n_radii : int, default=35
        Radii of a centre, at most 255.
    min_share, max_share : float, default=0.01 and 0.5
        Part of the rows inside the smallest and the largest ball of a centre; those between grow
        evenly. Radii lie halfway between two rows, so that no row lies on a sphere.
    slope : float, default=None
        Factor of the linear part. ``None`` is the root of the number of features: coordinates then
        count about as much as the constant.
    soft : bool, default=False
        Whether balls fall off towards their edge. Costs twice the operations to choose a ball.
    relative : bool, default=False
        Whether a ball's linear function is one of (v − c)/r.
    balance : float, default=0.0
        Power of the ball's share that its columns are divided by. At 0 the l1 rule prefers large
        balls, at 0.5 columns of all balls have about the same norm.
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
    Memory beside the data: a byte for every row and centre (soft balls: a byte and a number), a
    copy of the rows, and 64 MiB of sums; the projection rule needs two more copies of the rows, in
    float64, before its first round. A sparse matrix is made dense.

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

    def survey(
        self, X: Any, weight: np.ndarray, place: Place, threads: Threads
    ) -> tuple[np.ndarray, np.ndarray]:
        """The rows themselves, dense, and their weights.

        Centres come from a clustering of all rows and radii from the order of all distances, so
        this pool is surveyed in one memory.
        """
        self._check()
        X = X if sparse.issparse(X) else np.asarray(X)
        if place.first == 0:
            self._expect(X, place.total)
        return X.toarray() if sparse.issparse(X) else X, weight

    def merge(self, surveys: Sequence[tuple[np.ndarray, np.ndarray]], threads: Threads) -> Balls:
        """Find the centres and radii of all rows, and code every distance."""
        rows, weights = zip(*surveys, strict=True)
        several = len(rows) > 1
        X = np.concatenate(rows) if several else rows[0]
        weight = np.concatenate(weights) if several else weights[0]
        power = self._power(X)
        X = np.ldexp(X, -power) if power else X
        centres = self._centres(X, weight, power)
        shares = np.linspace(self.min_share, self.max_share, self.n_radii)
        ends = np.cumsum([0, *map(len, weights)]).tolist()
        parts = [slice(*ends) for ends in pairwise(ends)]
        return find_balls(X, weight, centres, shares, bool(self.soft), power, parts, threads)

    def bind(
        self,
        X: Any,
        weight: np.ndarray,
        threads: Threads,
        survey: Balls | None = None,
        place: Place | None = None,
    ) -> BoundPieces:
        """Take the balls of all rows, and what the survey found of these."""
        place = place or Place(0, X.shape[0])
        if survey is None:
            survey = self.merge([self.survey(X, weight, place, threads)], threads)
        return BoundPieces(self, survey, survey.parts[place.first], threads)

    def fit(self, X: Any, y: Any = None) -> Pieces:
        """Find the balls of the training rows; ``y`` is not read."""
        X = validated(self, X, accept_sparse=["csr", "csc"])
        with Threads() as threads:
            bound = self.bind(X, np.full(X.shape[0], 1.0 / X.shape[0]), threads)
        self.map_ = bound.extract(range(bound.n_atoms))
        return self

    def transform(self, X: Any) -> sparse.csr_matrix:
        """Columns of all balls in the units of the input; see `laconic.model.pieces.PiecesMap`."""
        check_is_fitted(self, "map_")
        X = validated(self, X, accept_sparse=["csr", "csc"], reset=False)
        return self.map_.sparse_columns(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of `transform`."""
        check_is_fitted(self, "map_")
        names = getattr(self, "feature_names_in_", input_features)
        return np.array(self.map_.names(names), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _expect(self, X: Any, n_rows: int) -> None:
        """Warn where the pool will not fit in memory: codes, depths, and copies of the rows."""
        n_features = X.shape[1]
        n_centres = self.n_centres if self.centres is None else len(np.atleast_1d(self.centres))
        coded = n_rows * min(n_centres, n_rows) * (1 + X.dtype.itemsize * bool(self.soft))
        copies = n_rows * n_features * X.dtype.itemsize * (1 + sparse.issparse(X))
        warn_if_too_large(
            coded + copies,
            f"a pool of pieces on {n_rows} rows of {n_features} features",
            "lower n_centres, take fewer features (dense copies of the rows are made), or fit a "
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
                "min_share and max_share must be parts of the rows, 0 < min_share <= max_share <= "
                f"1, not {self.min_share!r} and {self.max_share!r}"
            )
        slope = self.slope
        if slope is not None and (not is_at_least(slope, Real, 0) or slope in (0, np.inf)):
            raise ValueError(f"slope must be positive, not {slope!r}")
        if not is_at_least(self.balance, Real, 0) or self.balance > 1:
            raise ValueError(f"balance must lie between 0 and 1, not {self.balance!r}")
        for name in ("soft", "relative"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name} must be True or False, not {getattr(self, name)!r}")

    def _power(self, X: np.ndarray) -> int:
        """The power of two in whose units distances are found; refuses rows without room for it."""
        peaks = column_peaks(X)
        largest, column = float(peaks.max(initial=0.0)), int(peaks.argmax())
        most = 0.25 * float(np.finfo(X.dtype).max)
        if largest > min(most, LARGEST_UNIT):
            raise ValueError(
                f"column {column} of X holds values up to {largest:.2g}: distances would overflow; "
                f"{SHRINK}"
            )
        if 0 < largest < SMALLEST_UNIT:
            raise ValueError(
                f"X holds no value above {largest:.2g}: weights would overflow; {ENLARGE}"
            )
        return power_of_two(largest)

    def _centres(self, X: np.ndarray, weight: np.ndarray, power: int) -> np.ndarray:
        """Centres, in units of that power of two, as X is."""
        if self.centres is not None:
            centres = np.asarray(self.centres, dtype=np.float64)
            if centres.ndim != 2 or centres.shape[1] != X.shape[1] or len(centres) == 0:
                raise ValueError(
                    f"centres must be points of {X.shape[1]} features, not an array of shape "
                    f"{centres.shape}"
                )
            if not np.isfinite(centres).all():
                raise ValueError("centres hold missing or infinite values")
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
        # Batches are drawn by the numbers of rows. Each row comes once, in the order of the values,
        # so that neither copies nor the order of the rows change what is drawn. In single precision
        # sums of weights do not depend on the order of the terms.
        sums = np.bincount(place.ravel(), weight).astype(np.float32)
        # On one thread: sums of several come in any order, and centres would differ by rounding.
        with threadpool_limits(1):
            kmeans.fit(distinct, sample_weight=sums * len(distinct))
        return kmeans.cluster_centers_.astype(np.float64)
