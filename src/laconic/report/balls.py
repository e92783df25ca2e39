"""Search for the ball with the most evidence of errors beyond those expected."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from laconic.holes.bad_balls import offsets
from laconic.model.distances import ball_distances
from laconic.numeric.threads import Threads, row_blocks
from laconic.report.nearest import Left, Nearest, Placed
from laconic.report.scan import MIDDLE, Candidate, gains

# Most numbers, rows times columns, among which balls are placed. In a larger table a sample of the
# rows places them, and all rows choose their radius.
PLACED = 6_000_000
# Fewest rows of such a sample, and fewest of its rows in a ball.
FEWEST, FEW = 4000, 3
# Most errors to start from, drawn at random if there are more, and most distances to compute.
CENTRES, DISTANCES = 400, 20_000_000
# For the number of balls that are tried: ways to weigh the columns, and radii that count. Balls
# around one centre overlap, so that far fewer count than are tried. (On tables without pockets the
# evidence of the best ball is about the logarithm of this number.)
METRICS, RADII = 2, 16
# Largest share of the rows that a ball may hold.
LARGEST = 0.2
# Balls from which the search climbs, and most rows of either half in a ball that are tried as its
# next centre: at first, and in the best ball.
CLIMBED, NEAR, LAST = 4, 64, 256
# To compare these centres, rows up to so many times as many as the ball holds, and at least so
# many. The best few are then compared on all rows.
AROUND, FEWEST_AROUND, COMPARED = 4, 500, 4
# Centres whose distances are computed together, and rows whose distances from one centre are.
TOGETHER, ROWS = 64, 8192


@dataclass(frozen=True)
class ErrorBall:
    """The rows within ``radius`` of ``centre``, after every column is multiplied by its weight."""

    centre: np.ndarray
    weights: np.ndarray
    radius: float

    def distances(self, Z: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Return the squared distance from the centre, of every row or of some rows."""
        n = len(Z) if rows is None else len(rows)
        out = np.empty(n)
        for block in row_blocks(n, ROWS):
            part = Z[block if rows is None else rows[block]] * self.weights - self.centre
            out[block] = np.einsum("ij,ij->i", part, part)
        return out


class BallSearch:
    """The search for balls around rows.

    Parameters
    ----------
    Z : ndarray of shape (n_table, n_columns)
        Rows of the table as points.
    rows : ndarray of int of shape (n_rows,)
        Rows to search, in random order.
    beside : ndarray of int
        Other rows that may be centres, in random order. It does not matter which are errors.
    weights : ndarray of shape (n_columns,)
        How much every column counts in distances.
    error, expected : ndarray of shape (n_rows,)
        The search starts from errors. If they are many, some are drawn: the more an error counts,
        the likelier.
    least : int
        Smallest number of rows in a ball.
    rng : Generator
        Draws the errors.
    threads : Threads
        Their number does not change the result.
    """

    def __init__(
        self,
        Z: np.ndarray,
        rows: np.ndarray,
        beside: np.ndarray,
        weights: np.ndarray,
        error: np.ndarray,
        expected: np.ndarray,
        least: int,
        rng: np.random.Generator,
        threads: Threads,
    ) -> None:
        self.Z, self.rows, self.weights, self.least = Z, rows, weights, least
        self.threads = threads
        n = min(len(rows), max(PLACED // max(Z.shape[1], 1), FEWEST))
        self.points, self.beside = Z[rows[:n]] * weights, Z[beside[:n]] * weights
        self.squares = np.einsum("ij,ij->i", self.points, self.points)
        most = min(CENTRES, max(DISTANCES // max(n, 1), 20))
        weight = error * np.maximum(gains(error, expected)[:, MIDDLE], 0.0)
        self.starts = _places(self.points, weight[:n], most, rng)
        self.arounds = self._arounds(self.starts)

    def best(self, alive: np.ndarray, gain: np.ndarray) -> Candidate | None:
        """Return the ball with the most evidence among the rows left.

        From the best few balls around errors, the search climbs to better balls. All rows then
        choose the radius of the best one.
        """
        n = len(self.points)
        left = _left(alive[:n], gain[:n], self.least if n == len(alive) else FEW)
        found = self.threads.map(lambda ball: self._climbed(ball, left, NEAR), self._started(left))
        top = max(found, key=lambda placed: placed.evidence, default=None)
        if top is None:
            return None
        return self._whole(self._climbed(top, left, LAST).centre, alive, gain)

    def _started(self, left: Left) -> list[Placed]:
        """Return the best few balls around errors of which none has its middle in a better one."""
        tried = [near.best(left) for near in self.arounds]
        kept: list[Placed] = []
        for k in np.argsort([-evidence for evidence, _ in tried], kind="stable").tolist():
            if len(kept) == CLIMBED or not tried[k][0] > 0:
                break
            row = self.starts[k]
            if not any(row in ball.inside for ball in kept):
                kept.append(Placed(self.points[row], self.arounds[k].order, *tried[k]))
        return kept

    def _whole(self, centre: np.ndarray, alive: np.ndarray, gain: np.ndarray) -> Candidate:
        """Return the best ball around a centre among all rows."""
        price = log(METRICS * RADII * (len(self.starts) + LAST))
        ball = ErrorBall(centre, self.weights, 0.0)
        d2 = ball.distances(self.Z, self.rows)
        near = Nearest.at(d2, float(centre @ centre))
        evidence, last = near.best(_left(alive, gain, self.least))
        # There is a next row, as a ball holds a small part of the rows that are left.
        radius = float(np.sqrt(d2[near.order[last : last + 2]]).mean())
        inside = near.order[: last + 1].astype(np.intp)
        ball = ErrorBall(centre, self.weights, radius)
        return Candidate(ball, inside[alive[inside]], evidence, price)

    def _climbed(self, ball: Placed, left: Left, most: int) -> Placed:
        """Move the centre to the best of the rows inside, of either half, until none is better."""
        while True:
            inside = ball.inside[left.alive[ball.inside]]
            edge = np.square(self.points[ball.order[ball.last]] - ball.centre).sum()
            within = np.einsum("ij,ij->i", self.beside, self.beside)
            within += ball.centre @ ball.centre - 2.0 * (self.beside @ ball.centre)
            others = np.flatnonzero(within <= edge)
            centres = np.vstack(
                [self.points[_evenly(inside, most)], self.beside[_evenly(others, most)]]
            )
            best = max(self._compared(centres, ball, len(inside), left), key=lambda b: b.evidence)
            if best.evidence <= ball.evidence:
                return ball
            ball = best

    def _compared(self, centres: np.ndarray, ball: Placed, size: int, left: Left) -> list[Placed]:
        """Return the best balls around the best few of some centres in a ball."""
        local = ball.order[: max(AROUND * size, FEWEST_AROUND)]
        nearby = left._replace(alive=left.alive[local], gain=left.gain[local])
        distances = np.ascontiguousarray(ball_distances(self.points[local], centres).T)
        tried = [
            Nearest.at(d2, far, 1.0).best(nearby)[0]
            for d2, far in zip(distances, offsets(centres), strict=True)
        ]
        top = np.argsort(-np.array(tried), kind="stable")[:COMPARED]
        return self._placed(centres[top], left)

    def _arounds(self, starts: np.ndarray) -> list[Nearest]:
        """Return the rows around each start."""

        def some(block: slice) -> list[Nearest]:
            points = self.points[starts[block]]
            distances = np.ascontiguousarray(ball_distances(self.points, points).T)
            return [Nearest.at(*pair) for pair in zip(distances, offsets(points), strict=True)]

        blocks = row_blocks(len(starts), TOGETHER)
        return [near for block in self.threads.map(some, blocks) for near in block]

    def _placed(self, centres: np.ndarray, left: Left) -> list[Placed]:
        """Return the best ball around each centre."""
        offset = np.einsum("ij,ij->i", centres, centres)
        distances = self.squares - 2.0 * (centres @ self.points.T) + offset[:, None]
        out = []
        for centre, d2, far in zip(centres, np.maximum(distances, 0.0), offset, strict=True):
            near = Nearest.at(d2, float(far))
            out.append(Placed(centre, near.order, *near.best(left)))
        return out


def _left(alive: np.ndarray, gain: np.ndarray, least: int) -> Left:
    return Left(alive, np.ascontiguousarray(gain), least, LARGEST * int(alive.sum()))


def _evenly(rows: np.ndarray, most: int) -> np.ndarray:
    """Return at most so many of the rows, evenly spaced."""
    return rows[:: max(-(-len(rows) // most), 1)]


def _places(
    points: np.ndarray, weight: np.ndarray, most: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw ``most`` rows by weight, and keep one of those in the same place.

    The places and their order do not depend on the order of the rows.
    """
    errors = np.flatnonzero(weight > 0)
    if len(errors) == 0 or points.shape[1] == 0:
        return errors[:0]
    spelled = np.ascontiguousarray(points[errors])
    spelled = spelled.view(np.dtype((np.void, points.shape[1] * points.itemsize)))
    ordered = errors[np.argsort(spelled.reshape(-1), kind="stable")]
    if len(errors) > most:
        chance = weight[ordered] / weight[ordered].sum()
        ordered = ordered[np.sort(rng.choice(len(errors), most, replace=False, p=chance))]
    differs = (points[ordered[1:]] != points[ordered[:-1]]).any(axis=1)
    return ordered[np.append(True, differs)]
