"""The pool of pieces: balls, each with a linear function inside (ShareBoost section 3.2).

An atom is a ball (centre, radius) with the group of columns 1[‖v − c‖ < r]·[v, 1].
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from laconic.data.validation import validated
from laconic.model.patches import is_at_least
from laconic.numeric.threads import Threads
from laconic.pools.ball_pool import BallPool
from laconic.pools.bound_pieces import BoundPieces
from laconic.pools.radii import BallGrid, CodedRows


class Pieces(BallPool):
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

    not_tunable = (
        "hard balls cannot be tuned, because no column changes with a small step of a centre or a "
        "radius"
    )
    """Why atoms that are not `tunable` cannot be tuned."""

    _what = "pieces"

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

    @property
    def tunable(self) -> bool:
        """Whether its atoms have parameters that can be tuned: those of soft balls."""
        return bool(self.soft)

    def _is_soft(self) -> bool:
        return bool(self.soft)

    def _bound(self, balls: BallGrid, coded: CodedRows, threads: Threads) -> BoundPieces:
        return BoundPieces(self, balls, coded, threads)

    def transform(self, X: Any) -> sparse.csr_matrix:
        """Return the columns of all balls in input units; see `laconic.model.pieces.PiecesMap`."""
        check_is_fitted(self, "map_")
        X = validated(self, X, accept_sparse=["csr", "csc"], reset=False)
        return self.map_.sparse_columns(X)

    def _check(self) -> None:
        super()._check()
        slope = self.slope
        if slope is not None and (not is_at_least(slope, Real, 0) or slope in (0, np.inf)):
            raise ValueError(f"slope must be positive, not {slope!r}")
        if not is_at_least(self.balance, Real, 0) or self.balance > 1:
            raise ValueError(f"balance must be from 0 to 1, not {self.balance!r}")
        for name in ("soft", "relative"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name} must be True or False, not {getattr(self, name)!r}")
