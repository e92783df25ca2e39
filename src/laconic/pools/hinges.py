"""The pool of hinges: max(0, ⟨v, x⟩ − b) for directions v that classes suggest."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted

from laconic.data.validation import validated
from laconic.model.patches import is_at_least
from laconic.numeric.memory import warn_if_too_large
from laconic.numeric.threads import Threads
from laconic.pools.bound_hinges import BoundHinges
from laconic.pools.directions import PRINCIPAL, HingeGrid, find_grid
from laconic.pools.parts import Place
from laconic.pools.scaling import column_peaks

# Codes are bytes, from 0 to the number of knots.
MOST_KNOTS = 254
# Directions and knots are found from at most this many rows, and at most this many numbers.
SAMPLED, ENTRIES, LEAST = 65_536, 1 << 25, 1024


class HingeSurvey(NamedTuple):
    """The survey of one part of the rows."""

    peaks: np.ndarray
    """Largest absolute value of every column, in all rows of the part."""
    rows: np.ndarray
    """The rows that directions and knots are found from, as a dense array."""
    weight: np.ndarray
    """The weights of these rows."""
    labels: np.ndarray | None
    """Their class codes, if they are known."""
    seed: int | None
    """Random seed, for a pool without its own."""


def sampled(shape: tuple[int, int], place: Place) -> np.ndarray:
    """Return which rows of a part directions and knots are found from."""
    n_rows, n_features = shape
    return place.sample(n_rows, min(SAMPLED, max(LEAST, ENTRIES // max(n_features, 1))))


class Hinges(TransformerMixin, BaseEstimator):
    """Hinges of sums of inputs: the units of a small neural network, added one at a time.

    A hinge is the column max(0, ⟨v, x⟩ − b), with a direction v and a knot b. It is zero on one
    side of a plane and rises on the other side. A model of n hinges is a network with one hidden
    layer of n units, and one fit has a network of every size. A hinge may read only a few inputs,
    so that it takes few bytes and operations.

    The candidates are directions of three kinds, in standardised units: differences of rows of
    different classes, principal directions, and single features. Each has several knots, and hinges
    to both sides of a knot.

    As the ``pool`` of an estimator, this object never writes down its columns. A round costs
    O(m · directions · k) for all knots together, with m rows and k outputs. As a step of a
    scikit-learn pipeline (`fit`, `transform`), it returns the columns of all hinges.

    Parameters
    ----------
    n_directions : int, default=200
        Number of differences of two rows of different classes. Principal directions (up to 16, with
        at most 1,024 features) and single features come in addition. If there are more features
        than this number, only those whose class means differ most come alone. Of equal directions,
        one is kept.
    n_knots : int, default=15
        Number of knots of a direction, at most 254. The knots are quantiles of ⟨v, x⟩ over the
        rows, at even shares. The first one is below all rows, so its hinge is a straight line. The
        others have a hinge to both sides.
    n_inputs : int, default=None
        Most inputs that a hinge reads. The largest entries of a direction are kept. ``None`` means
        all inputs.
    scale : {"max", "std"} or None, default=None
        What columns are divided by: their largest value, their standard deviation, or nothing. With
        ``None``, they are in standardised units, and the l1 rule prefers directions along which the
        rows spread. This makes the best small models. In a list of pools, ``"max"`` makes hinges
        comparable with stumps and with columns that are scaled by their largest value.
    random_state : int, RandomState instance or None, default=0
        Draws the pairs of rows.

    Attributes
    ----------
    map_ : HingesMap
        All hinges, after `fit`.

    Notes
    -----
    *Sample.* If there are more than 65,536 rows, directions and knots are found from 65,536 of
    them, at even distances by their numbers. With more than 512 features the sample is smaller: it
    has about 33 million numbers. The sample does not depend on how the rows are cut into parts, so
    other parts have the same hinges. The draw of pairs depends on the order of the rows. A row of
    weight 2 is drawn like the same row twice.

    *Memory.* The pool takes a byte and a number for every row and direction, and the sample.

    Examples
    --------
    The function |x| needs two hinges.

    >>> import numpy as np
    >>> from laconic import ShareBoostClassifier
    >>> from laconic.pools import Hinges
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 1))
    >>> y = (np.abs(X[:, 0]) > 0.5).astype(int)
    >>> ShareBoostClassifier(2, pool=Hinges(10)).fit(X, y).score(X, y) > 0.98
    True
    """

    uses_labels = True
    keeps_only_codes = True

    tunable = True
    """Whether its atoms have parameters that can be tuned; see `laconic.tune`."""
    movable = True
    """Whether its atoms can be moved when they are chosen; see `laconic.tune.at_selection`."""

    def __init__(
        self,
        n_directions: int = 200,
        n_knots: int = 15,
        *,
        n_inputs: int | None = None,
        scale: str | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_directions = n_directions
        self.n_knots = n_knots
        self.n_inputs = n_inputs
        self.scale = scale
        self.random_state = random_state

    # -- as a pool -----------------------------------------------------------------------------

    def survey(self, X: Any, weight: np.ndarray, place: Place, threads: Threads) -> HingeSurvey:
        """Return the rows of this part that directions and knots are found from."""
        self.check()
        X = _readable(X)
        at = sampled(X.shape, place)
        rows = X if len(at) == X.shape[0] else X[at]
        rows = np.asarray(rows.toarray() if sparse.issparse(rows) else rows)
        labels = None if place.labels is None else np.asarray(place.labels, np.int64)[at]
        return HingeSurvey(column_peaks(X, threads=threads), rows, weight[at], labels, place.seed)

    def merge(self, surveys: Sequence[HingeSurvey], threads: Threads) -> HingeGrid:
        """Find the directions and knots."""
        known = [survey.labels for survey in surveys if survey.labels is not None]
        random = check_random_state(
            surveys[0].seed if self.random_state is None else self.random_state
        )
        return find_grid(
            np.concatenate([survey.rows for survey in surveys]),
            np.concatenate([survey.weight for survey in surveys]),
            np.concatenate(known) if known else None,
            np.max([survey.peaks for survey in surveys], axis=0),
            int(self.n_directions),
            int(self.n_knots),
            self.n_inputs,
            deepcopy(random),  # the user's generator must not change
            threads,
        )

    def bind(
        self,
        X: Any,
        weight: np.ndarray,
        threads: Threads,
        survey: HingeGrid | None = None,
        place: Place | None = None,
    ) -> BoundHinges:
        """Find the directions and knots, or use those of the survey. Then code all rows.

        Without the labels of the rows, directions are differences of any two rows.
        """
        X = _readable(X)
        grid = survey
        if grid is None:
            self.check()
            self._expect(X)
            place = Place(0, X.shape[0]) if place is None else place
            grid = self.merge([self.survey(X, weight, place, threads)], threads)
        bound = BoundHinges(grid, X, weight, self.scale, threads)
        if survey is None and (told := bound.late()) is not None:
            bound.settle([told])
        return bound

    # -- as a transformer ----------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Hinges:
        """Find the hinges of the training rows. ``y`` may have their classes."""
        X = validated(self, X, accept_sparse=["csr", "csc"])
        check_consistent_length(X, y)
        codes = None if y is None else np.unique(np.asarray(y), return_inverse=True)[1].ravel()
        place, weight = Place(0, X.shape[0], labels=codes), np.full(X.shape[0], 1.0 / X.shape[0])
        with Threads() as threads:
            bound = self.bind(X, weight, threads, None, place)
        self.map_ = bound.extract(range(bound.n_atoms))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the columns of all hinges; see `laconic.model.hinges.HingesMap`."""
        check_is_fitted(self, "map_")
        X = validated(self, X, accept_sparse=["csr", "csc"], reset=False)
        return self.map_.columns(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of `transform`."""
        check_is_fitted(self, "map_")
        names = getattr(self, "feature_names_in_", input_features)
        return np.array(self.map_.names(names), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- checks --------------------------------------------------------------------------------

    def check(self) -> None:
        """Refuse wrong settings."""
        for name, most in (("n_directions", np.inf), ("n_knots", MOST_KNOTS), ("n_inputs", np.inf)):
            value = getattr(self, name)
            if name == "n_inputs" and value is None:
                continue
            if not is_at_least(value, Integral, 1) or value > most:
                limit = "at least 1" if most == np.inf else f"from 1 to {most}"
                also = ", or None" * (name == "n_inputs")
                raise ValueError(f"{name} must be a whole number, {limit}{also}, not {value!r}")
        if not (self.scale is None or self.scale in ("max", "std")):
            raise ValueError(f"scale must be 'max', 'std' or None, not {self.scale!r}")

    def _expect(self, X: Any) -> None:
        """Warn if codes and projections of the rows will not fit in memory."""
        n_rows, n_features = X.shape
        n_directions = self.n_directions + min(n_features, self.n_directions) + PRINCIPAL
        warn_if_too_large(
            float(n_rows) * n_directions * (1 + X.dtype.itemsize),
            f"a pool of hinges on {n_rows} rows of {n_features} features",
            "lower n_directions, or fit a sample of the rows",
        )


def _readable(X: Any) -> Any:
    """Return rows that can be taken one by one."""
    return X.tocsr() if sparse.issparse(X) else np.asarray(X)
