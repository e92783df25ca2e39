"""The pool of bumps: soft balls whose only column is their height."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from laconic.data.validation import validated
from laconic.numeric.threads import Threads
from laconic.pools.ball_pool import BallPool
from laconic.pools.bound_bumps import BoundBumps
from laconic.pools.radii import BallGrid, CodedRows


class Bumps(BallPool):
    """Bumps around many centres, with many radii each.

    A bump is the column max(0, 1 − ‖v − c‖²/r²). It is 1 at its centre and 0 outside the ball. It
    is a soft ball of `laconic.pools.pieces.Pieces` with a constant in place of the linear function.
    So a bump has one weight for each class. A piece has one for each feature and one for its
    constant, for each class. In a given number of bytes, a model has many more bumps than pieces.

    As the ``pool`` of an estimator, this object never writes down its columns. A round costs
    O(m · centres · k) for all radii together, with m rows and k outputs. As a step of a
    scikit-learn pipeline (`fit`, `transform`), it returns the columns of all bumps.

    Parameters
    ----------
    n_centres : int, default=500
        Number of candidate centres. They are found by mini-batch k-means of the distinct rows, with
        their weights. If there are at most this many distinct rows, these rows are the centres.
    n_radii : int, default=20
        Number of radii of each centre, at most 255.
    min_share, max_share : float, default=0.01 and 0.5
        Fraction of the rows inside the smallest and the largest ball of a centre. The fractions of
        the balls between grow evenly.
    centres : array-like of shape (n_centres, n_features), default=None
        Centres to use instead of clustering.
    random_state : int, RandomState instance or None, default=0
        Draws the start and the batches of the clustering.

    Attributes
    ----------
    map_ : BumpsMap
        All bumps, after `fit`.

    Notes
    -----
    *Scale.* Distances add up all features. If features have different units, scale them first.

    *Memory.* In addition to the data, the pool takes a byte and a number for every row and centre.
    While it codes the rows, it also takes a copy of them. A sparse matrix is made dense.

    *Parts.* Rows in parts are treated as by `laconic.pools.pieces.Pieces`.

    Examples
    --------
    >>> import numpy as np
    >>> from laconic import ShareBoostClassifier
    >>> from laconic.pools import Bumps
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> y = (np.hypot(X[:, 0], X[:, 1]) < 0.6).astype(int)
    >>> ShareBoostClassifier(3, pool=Bumps(n_centres=30, n_radii=10)).fit(X, y).score(X, y) > 0.95
    True
    """

    tunable = True
    """Whether its atoms have parameters that can be tuned; see `laconic.tune`."""

    _what = "bumps"

    def __init__(
        self,
        n_centres: int = 500,
        n_radii: int = 20,
        *,
        min_share: float = 0.01,
        max_share: float = 0.5,
        centres: Any = None,
        random_state: Any = 0,
    ) -> None:
        self.n_centres = n_centres
        self.n_radii = n_radii
        self.min_share = min_share
        self.max_share = max_share
        self.centres = centres
        self.random_state = random_state

    def _is_soft(self) -> bool:
        return True

    def _bound(self, balls: BallGrid, coded: CodedRows, threads: Threads) -> BoundBumps:
        return BoundBumps(balls, coded, threads)

    def transform(self, X: Any) -> np.ndarray:
        """Return the columns of all bumps; see `laconic.model.bumps.BumpsMap`."""
        check_is_fitted(self, "map_")
        X = validated(self, X, accept_sparse=["csr", "csc"], reset=False)
        columns: np.ndarray = self.map_.columns(X)
        return columns
