"""The pool of pieces: balls, each with a linear function inside (ShareBoost section 3.2).

An atom is a ball (centre, radius) with the group of columns 1[‖v − c‖ < r]·[v, 1]. All radii of a
centre share one pass over the rows: distances are coded once, a round sums the rows of every code,
and a running sum over the codes answers for every ball.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from laconic.model.patches import is_at_least
from laconic.model.pieces import Piece, PiecesMap, squared_distances
from laconic.pools.base import BoundPool, feature_number
from laconic.pools.local import LocalColumns
from laconic.threads import Threads, row_blocks

# Codes are bytes, and one of them means outside every ball.
MOST_RADII = 255
# Centres that one task sums together: rows are read once for all of them.
TOGETHER = 8
# Bytes of sums that may wait to be asked for.
WAVE = 1 << 26
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
        Candidate centres, found by mini-batch k-means. Where there are no more distinct rows than
        this, the rows themselves.
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
    copy of the rows, and 64 MiB of sums. A sparse matrix is made dense.

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

    def bind(self, X: Any, weight: np.ndarray, threads: Threads) -> BoundPieces:
        """Find the centres and radii of the training rows, and code every distance."""
        self._check()
        X = X.toarray() if sparse.issparse(X) else np.asarray(X)
        centres = self._centres(X, weight)
        shares = np.linspace(self.min_share, self.max_share, self.n_radii)
        return BoundPieces(self, X, weight, centres, shares, threads)

    def fit(self, X: Any, y: Any = None) -> Pieces:
        """Find the balls of the training rows; ``y`` is not read."""
        X = validate_data(self, X, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32])
        with Threads() as threads:
            bound = self.bind(X, np.full(X.shape[0], 1.0 / X.shape[0]), threads)
        self.map_ = bound.extract(range(bound.n_atoms))
        return self

    def transform(self, X: Any) -> sparse.csr_matrix:
        """Columns of all balls in the units of the input; see `laconic.model.pieces.PiecesMap`."""
        check_is_fitted(self, "map_")
        X = validate_data(self, X, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32],
                          reset=False)  # fmt: skip
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

    def _centres(self, X: np.ndarray, weight: np.ndarray) -> np.ndarray:
        if self.centres is not None:
            centres = np.asarray(self.centres, dtype=np.float64)
            if centres.ndim != 2 or centres.shape[1] != X.shape[1] or len(centres) == 0:
                raise ValueError(
                    f"centres must be points of {X.shape[1]} features, not an array of shape "
                    f"{centres.shape}"
                )
            if not np.isfinite(centres).all():
                raise ValueError("centres hold missing or infinite values")
            return centres
        distinct = np.unique(X, axis=0)
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
        # On one thread: sums of several come in any order, and centres would differ by rounding.
        with threadpool_limits(1):
            kmeans.fit(X, sample_weight=weight * len(X))
        return kmeans.cluster_centers_.astype(np.float64)


class BoundPieces(BoundPool):
    """`Pieces` over training rows; ball ``radius`` of ``centre`` is atom centre · n_radii + radius.

    Parameters
    ----------
    settings : Pieces
    X : ndarray of shape (n_rows, n_features)
    weight : ndarray of shape (n_rows,)
    centres : ndarray of shape (n_centres, n_features)
    shares : ndarray of shape (n_radii,)
        Part of the rows inside the balls of a centre, ascending.
    threads : Threads
    """

    def __init__(
        self,
        settings: Pieces,
        X: np.ndarray,
        weight: np.ndarray,
        centres: np.ndarray,
        shares: np.ndarray,
        threads: Threads,
    ) -> None:
        self._threads = threads
        self._soft, self._relative = bool(settings.soft), bool(settings.relative)
        self._centres = centres
        self._n_features = n = X.shape[1]
        self._n_radii = len(shares)
        self.dtype = X.dtype
        self.n_atoms = len(centres) * len(shares)
        self.n_columns = self.n_atoms * (n + 1)
        # Rows far from zero would lose their differences to rounding.
        self._mean = np.average(X, axis=0, weights=weight)
        self._table = np.ones((len(X), n + 1), dtype=X.dtype)
        self._table[:, :n] = X - self._mean
        self._code(X, weight, shares)
        spread = np.sqrt(weight @ np.square(self._table[:, :n], dtype=np.float64).sum(axis=1))
        unit = self._radii if settings.relative else np.full_like(self._radii, spread or 1.0)
        self._origins = centres if settings.relative else np.tile(self._mean, (len(centres), 1))
        slope = np.sqrt(n) if settings.slope is None else float(settings.slope)
        height = self._shares**-settings.balance
        fall = (self._radii[:, -1:] / self._radii) ** 2
        self._factors = np.stack([height * slope / unit, height, fall], axis=-1)

    def _code(self, X: np.ndarray, weight: np.ndarray, shares: np.ndarray) -> None:
        """Radii, codes of the rows, what the balls hold and the row nearest to every centre."""
        n_centres, n_rows = len(self._centres), len(X)
        self._codes = np.empty((n_centres, n_rows), dtype=np.uint8)
        self._radii = np.empty((n_centres, len(shares)))
        self._shares = np.empty((n_centres, len(shares)))
        self._nearest = np.empty(n_centres, dtype=np.int64)
        # Squared distances in units of the largest ball, for soft balls only.
        self._depths = np.empty((n_centres, n_rows if self._soft else 0), dtype=X.dtype)

        def some(s: slice) -> None:
            for j, d2 in enumerate(squared_distances(X, self._centres[s]).T, s.start):
                order = np.argsort(d2, kind="stable")
                self._nearest[j] = order[0]
                squares, below = _squared_radii(d2[order], weight[order], shares)
                self._radii[j] = np.sqrt(squares)
                self._shares[j] = below
                squares = self._radii[j] ** 2
                self._codes[j] = np.searchsorted(squares, d2, side="right")
                if self._soft:
                    self._depths[j] = d2 / squares[-1]

        list(self._threads.map(some, row_blocks(n_centres, TOGETHER)))

    # -- sums over rows ------------------------------------------------------------------------

    def _ball_sums(self, residual: np.ndarray) -> Callable[[slice], np.ndarray]:
        """A function that sums the columns of all balls of some centres.

        It gives (centres, radii, at least k, width), of which the first k outputs are the sums.
        """
        from laconic.pools.balls import sums_by_ball, sums_by_code  # it imports Numba

        residual = np.ascontiguousarray(residual, dtype=self.dtype)
        k = residual.shape[1]
        shape = (self._n_radii, 2 * k if self._soft else k, self._n_features + 1)
        origins = self._origins - self._mean

        def sums_of(s: slice) -> np.ndarray:
            sums = np.zeros((s.stop - s.start, *shape))
            sums_by_code(self._codes[s], self._depths[s], self._table, residual, sums)
            sums_by_ball(sums, k, origins[s], self._factors[s])
            return sums

        return sums_of

    def gradients(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Column sums, a few centres at a time."""
        k, size = residual.shape[1], self._n_radii * (self._n_features + 1)
        sums_of, tasks = self._ball_sums(residual), row_blocks(len(self._centres), TOGETHER)
        for wave in row_blocks(len(tasks), max(1, WAVE // (16 * TOGETHER * size * k))):
            for s, sums in zip(tasks[wave], self._threads.map(sums_of, tasks[wave]), strict=True):
                yield s.start * size, sums[:, :, :k].transpose(0, 1, 3, 2).reshape(-1, k)

    def norms(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """l1 norms of the column sums, a few centres at a time."""
        from laconic.pools.balls import column_norms

        k, width = residual.shape[1], self._n_features + 1
        sums_of, tasks = self._ball_sums(residual), row_blocks(len(self._centres), TOGETHER)

        def norms_of(s: slice) -> np.ndarray:
            sums = sums_of(s)
            out = np.empty((*sums.shape[:2], width))
            column_norms(sums, k, out)
            return out.reshape(-1)

        for s, norms in zip(tasks, self._threads.map(norms_of, tasks), strict=True):
            yield s.start * self._n_radii * width, norms

    def squares(self, weight: np.ndarray) -> np.ndarray:
        """Weighted squared norms of every column."""
        width = self._n_features + 1
        out = np.empty((self.n_atoms, width))
        for atom in range(self.n_atoms):
            out[atom] = weight @ np.square(self.local(atom).written(), dtype=np.float64)
        return out.reshape(-1)

    def collect(self, first: int, column_scores: np.ndarray) -> tuple[int, np.ndarray]:
        """Sum the scores of each ball's columns."""
        width = self._n_features + 1
        return first // width, column_scores.reshape(-1, width).sum(axis=1)

    # -- atoms ---------------------------------------------------------------------------------

    def local(self, index: int) -> LocalColumns:
        """The columns of a ball: the rows inside it, and how to make them of the table."""
        centre, radius = divmod(int(index), self._n_radii)
        n = self._n_features
        linear, constant, fall = self._factors[centre, radius]
        change = np.zeros((n + 1, n + 1))
        np.fill_diagonal(change, linear)
        change[n, :n] = -linear * (self._origins[centre] - self._mean)
        change[n, n] = constant
        rows = np.flatnonzero(self._codes[centre] <= radius)
        heights = None
        if self._soft:
            heights = 1.0 - self.dtype.type(fall) * self._depths[centre, rows]
        return LocalColumns(rows, self._table, change, heights)

    def columns(self, atoms: Sequence[int]) -> np.ndarray:
        """Scaled training columns, written down."""
        parts = [self.local(a).written() for a in atoms]
        return np.hstack(parts or [np.empty((len(self._table), 0), dtype=self.dtype)])

    def scales(self, atoms: Sequence[int]) -> np.ndarray:
        """Factors of the columns."""
        factors = self._factors.reshape(-1, 3)[list(atoms), :2]
        return np.repeat(factors, [self._n_features, 1], axis=1).reshape(-1)

    def width(self, index: int) -> int:
        """Number of columns of a ball."""
        return self._n_features + 1

    def atom(self, index: int) -> Piece:
        """The record of atom ``index``."""
        centre, radius = divmod(int(index), self._n_radii)
        return Piece(centre, float(self._radii[centre, radius]), self._n_features)

    def index(self, atom: Any) -> int:
        """The number of an atom record."""
        if isinstance(atom, Piece) and 0 <= atom.centre < len(self._centres):
            found = np.flatnonzero(self._radii[atom.centre] == atom.radius)
            if len(found) and atom.n_features == self._n_features:
                return int(atom.centre * self._n_radii + found[0])
        raise ValueError(f"{atom!r} is not an atom of this pool")

    def matching(self, item: Any) -> np.ndarray:
        """An atom record, or a feature's number: every ball reads it."""
        if isinstance(item, Piece):
            return np.array([self.index(item)])
        feature_number(item, self._n_features)
        return np.arange(self.n_atoms)

    def extract(self, atoms: Sequence[int]) -> PiecesMap:
        """The feature map of the balls."""
        centre, radius = np.divmod(np.asarray(atoms, dtype=np.int64), self._n_radii)
        return PiecesMap(
            self._centres[centre],
            self._radii[centre, radius],
            self._origins[centre] if self._relative else self._mean[None],
            self._soft,
            self._shares[centre, radius],
            self._nearest[centre],
        )

    def costs(self, feature_costs: np.ndarray) -> np.ndarray:
        """Every ball reads every feature."""
        return np.full(self.n_atoms, float(np.sum(feature_costs)))


def _squared_radii(
    d2: np.ndarray, weight: np.ndarray, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Squared radii of balls that hold at least some shares of the rows, and what they hold.

    ``d2`` are sorted squared distances. A radius lies halfway to the next row outside; beyond the
    last row there is thought to be one at twice its distance, so that rows in other units get the
    same balls.
    """
    mass = np.cumsum(weight)
    # The tolerance makes a sum that should equal a share reach it whatever its rounding.
    inside = np.searchsorted(mass, shares * mass[-1] * (1.0 - 1e-9))
    inside = np.minimum(inside, len(d2) - 1)
    after = np.searchsorted(d2, d2[inside], side="right")  # rows at the same distance come too
    farther = np.append(d2, 4.0 * d2[-1] or 1.0)[after]
    squares = 0.5 * (d2[inside] + farther)
    return squares, mass[after - 1] / mass[-1]
