"""Euclidean balls over rows: count the errors near every row, and find the largest bad ball."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from laconic.clumping.radius_graph import within
from laconic.clumping.ties import WEIGHT_TIE
from laconic.model.distances import CLOSE, ball_distances, row_squares
from laconic.numeric.memory import warn_if_too_large
from laconic.numeric.sparse_rows import most_values
from laconic.numeric.threads import Threads, row_blocks

# Numbers of rows and of errors whose distances are computed together. A block this small stays in
# the cache of a core, and in memory that the allocator does not give back after every block.
ROWS, ERRORS = 128, 512
# Squared distances count as equal if they differ by less than this part of the numbers they are
# computed from. Otherwise rounding would decide on which side of a ball's edge a row is.
TIE = 1e-12
# Number of centres whose distances are computed together, and bytes of surroundings that are kept.
TOGETHER = 128
HELD = 1 << 28
# Bytes for each distance from a centre while rows are sorted.
SORTED = 24
# Number of rows from which the middle of the data is computed.
SAMPLE = 1000


class BadBall(NamedTuple):
    """A ball around a row, given by the rows on both sides of its edge.

    Every radius between these two rows holds the same rows. The middle is safe from rounding.
    """

    inside: np.ndarray
    """Numbers of the rows inside, nearest first."""
    beyond: int | None
    """Number of the first row outside, if there is one."""


class ErrorCounts:
    """The weight of the errors within ``radius`` of every row (the row itself included).

    The counts are exact: if rounding leaves a distance in doubt, the difference of the two rows
    decides. They are kept up to date as rows become right or wrong. If e rows change, this costs e
    distances for every row. A matrix of all pairs is never made.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
    radius : float
        ρ, the radius of a neighbourhood.
    threads : Threads
        The result does not depend on their number.
    """

    def __init__(self, X: Any, radius: float, threads: Threads) -> None:
        self.X = X
        self.radius = radius
        self.threads = threads
        self.counts = np.zeros(X.shape[0])
        # Rounding is small if rows are measured from the middle. A median is used because a far
        # row does not move it. Sparse rows are not shifted, so that they stay sparse.
        some = X[:: -(-X.shape[0] // SAMPLE)]
        self._origin = None if sparse.issparse(X) else np.median(some, axis=0).astype(X.dtype)
        self._terms = most_values(X)
        squares = threads.map(lambda s: row_squares(self._rows(s)), row_blocks(X.shape[0], ROWS))
        self._squares = np.concatenate(list(squares))

    def _rows(self, which: Any) -> Any:
        return self.X[which] if self._origin is None else self.X[which] - self._origin

    def change(self, rows: np.ndarray, weight: np.ndarray) -> None:
        """Add the weight of errors at ``rows``. It is negative for errors that are gone."""
        for few in row_blocks(len(rows), ERRORS):
            self._add(rows[few], weight[few])

    def _add(self, rows: np.ndarray, weight: np.ndarray) -> None:
        centres, squares = self._rows(rows) * -2.0, self._squares[rows]
        info = np.finfo(self.X.dtype)
        # This covers rounding of products, squares and rows; see `laconic.clumping.radius_graph`.
        doubt = (self._terms + 40) * float(info.eps)
        raised = ((1.0 + doubt) * squares).astype(self.X.dtype)

        def near(block: slice) -> np.ndarray:
            found = self._rows(block) @ centres.T
            gap = np.asarray(found.toarray() if sparse.issparse(found) else found)
            # ‖c‖² − 2⟨v, c⟩ ≤ ρ² − ‖v‖², minus the largest possible rounding.
            gap += raised
            own = self._squares[block]
            limit = self.radius**2 - (1.0 + doubt) * own
            sure = gap <= np.minimum(limit, info.max).astype(gap.dtype)[:, None]
            counts = sure @ weight
            # Pairs in doubt are rare. Counting two masks tells whether this block has any.
            highest = limit + 2.0 * doubt * (own + squares.max())
            maybe = gap <= np.minimum(highest, info.max).astype(gap.dtype)[:, None]
            if np.count_nonzero(maybe) > np.count_nonzero(sure):
                at, centre = np.divmod(np.flatnonzero(maybe ^ sure), len(rows))
                close = gap[at, centre] <= limit[at] + 2.0 * doubt * (own[at] + squares[centre])
                at, centre = at[close], centre[close]
                inside = within(self.X, block.start + at, rows[centre], self.radius)
                counts += np.bincount(at[inside], weight[centre[inside]], minlength=len(counts))
            return counts

        blocks = row_blocks(self.X.shape[0], ROWS)
        for block, found in zip(blocks, self.threads.map(near, blocks), strict=True):
            self.counts[block] += found


class Around(NamedTuple):
    """The rows around a centre, nearest first.

    Thousands of these are kept, so they take as few bytes as possible.
    """

    order: np.ndarray
    """Numbers of the rows, nearest first."""
    ties: np.ndarray
    """Places in the order whose row is as far as the next row. No ball ends there."""

    @classmethod
    def at(cls, d2: np.ndarray, offset: float = 0.0) -> Around:
        """Make it from the squared distances of all rows.

        ``offset`` is the squared distance between the centre and the origin that the distances were
        computed from.
        """
        order = np.argsort(d2, kind="stable")
        distance = d2[order]
        noise = distance + np.where(distance < CLOSE * offset, 0.0, offset)
        tied = np.diff(distance) <= TIE * noise[1:]
        if tied.any():  # sort ties by row number, whatever their rounding
            order = order[np.lexsort((order, np.cumsum(np.append(True, ~tied))))]
        ties = np.flatnonzero(tied).astype(np.int32)
        return cls(order.astype(np.min_scalar_type(len(d2))), ties)

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        return self.order.nbytes + self.ties.nbytes


class Surroundings:
    """The rows around centres. They are kept for later rounds while there is room.

    Most centres come again from round to round. ``room`` is in bytes.
    """

    def __init__(self, X: Any, threads: Threads, room: int = HELD) -> None:
        self.X = X
        self.threads = threads
        self.room = room
        warn_if_too_large(
            SORTED * TOGETHER * X.shape[0] + room,
            f"finding the {X.shape[0]} rows around {TOGETHER} centres",
            "fit a sample of the rows",
        )
        self._known: dict[int, Around] = {}
        self._held = 0

    def around(self, centres: list[int]) -> list[Around]:
        """Return the rows around each of at most ``TOGETHER`` centres."""
        new = [centre for centre in centres if centre not in self._known]
        arounds: list[Around] = []
        if new:
            rows = self.X[new]
            blocks = row_blocks(self.X.shape[0], ROWS)
            parts = self.threads.map(lambda s: ball_distances(self.X[s], rows), blocks)
            distances = np.vstack(list(parts)).T
            pairs = zip(distances, offsets(rows), strict=True)
            arounds = list(self.threads.map(lambda pair: Around.at(*pair), pairs))
        found = dict(zip(new, arounds, strict=True))
        for centre, around in found.items():
            if self._held + around.nbytes <= self.room:
                self._known[centre] = around
                self._held += around.nbytes
        return [found[c] if c in found else self._known[c] for c in centres]


def offsets(centres: Any) -> np.ndarray:
    """Return the squared distance of every centre from the origin that `ball_distances` uses.

    The centres are sparse if the rows are.
    """
    centres = centres.astype(np.float64)
    return row_squares(centres if sparse.issparse(centres) else centres - centres.mean(axis=0))


def largest_ball(
    around: Around,
    wrong: np.ndarray,
    weight: np.ndarray | None = None,
    least: float = 0.0,
    codes: np.ndarray | None = None,
) -> BadBall | None:
    """Return the largest ball of which more than half of the weight is misclassified (section 5.2).

    Parameters
    ----------
    around : Around
        The rows around the centre.
    wrong : ndarray of bool of shape (n_rows,)
    weight : ndarray of shape (n_rows,), default=None
        Weights of the rows. The default is 1 for each, which takes a fraction of the time.
    least : float, default=0
        Least weight that the ball must hold.
    codes : ndarray of int of shape (n_rows,), default=None
        Class codes. If given, a constant must also make fewer errors in the ball: one that always
        predicts the most common class. With two classes this holds for every ball that is mostly
        wrong.

    Returns
    -------
    BadBall or None
        None if no ball around this centre meets the conditions.

    Examples
    --------
    >>> around = Around.at(np.array([0.0, 1.0, 4.0, 9.0, 16.0]))
    >>> ball = largest_ball(around, np.array([True, False, True, False, False]))
    >>> ball.inside.tolist(), ball.beyond
    ([0, 1, 2], 3)
    """
    order, ties = around
    if weight is None and codes is None:
        # Copy, not view: NumPy 1.24.0 may store true as another byte than 1 if it compares truths.
        sign = 2 * wrong.astype(np.int8) - 1
        fits = np.cumsum(sign[order], dtype=np.int32) > 0
        fits[: max(math.ceil(least) - 1, 0)] = False
    else:
        weight = np.ones(len(wrong)) if weight is None else weight
        held = np.cumsum(weight[order])
        missed = np.cumsum(np.where(wrong[order], weight[order], 0.0))
        rounding = WEIGHT_TIE * held
        fits = (2.0 * missed > held + rounding) & (held >= least - rounding)
        if codes is not None:
            common = np.zeros(len(order))
            for code in range(codes.max() + 1):
                of_class = np.where(codes[order] == code, weight[order], 0.0)
                np.maximum(common, np.cumsum(of_class), out=common)
            fits &= common > held - missed + rounding
    fits[ties] = False  # a ball holds all rows at the same distance, or none of them
    if not fits.any():
        return None
    last = len(fits) - 1 - int(fits[::-1].argmax())
    inside = order[: last + 1].astype(np.intp)
    return BadBall(inside, int(order[last + 1]) if last + 1 < len(order) else None)
