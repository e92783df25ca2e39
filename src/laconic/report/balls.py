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
# Most errors to try as centres, drawn at random if there are more, and most distances to compute.
CENTRES, DISTANCES = 400, 20_000_000
# For the number of balls that are tried: ways to weigh the columns, and radii that count. Balls
# around one centre overlap, so that far fewer count than are tried. (On tables without pockets the
# evidence of the best ball is about the logarithm of this number.)
METRICS, RADII = 2, 16
# Largest share of the rows that a ball may hold.
LARGEST = 0.2
# Balls whose centre is moved to the middle of their errors. Of these, balls in which other centres
# are tried, and most rows of each that are tried.
MOVED, CLIMBED, NEAR = 8, 2, 64
# How far a centre is moved away from rows that are right, in units of the distance between their
# middle and that of the errors.
STEPS = (0.0, 1.0, 3.0)
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
    """The search for balls among some rows.

    Parameters
    ----------
    Z : ndarray of shape (n_table, n_columns)
        Rows of the table as points.
    rows : ndarray of int of shape (n_rows,)
        Rows to search, in random order.
    weights : ndarray of shape (n_columns,)
        How much every column counts in distances.
    error, expected : ndarray of shape (n_rows,)
        Errors become centres. If they are many, some are drawn: the more an error counts, the
        likelier.
    least : int
        Smallest number of rows in a ball.
    rng : Generator
        Draws the centres.
    threads : Threads
        Their number does not change the result.
    """

    def __init__(
        self,
        Z: np.ndarray,
        rows: np.ndarray,
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
        self.points = Z[rows[:n]] * weights
        self.squares = np.einsum("ij,ij->i", self.points, self.points)
        most = min(CENTRES, max(DISTANCES // max(n, 1), 20))
        weight = error * np.maximum(gains(error, expected)[:, MIDDLE], 0.0)
        self.centres = _places(self.points, weight[:n], most, rng)
        self.near = min(NEAR, max(DISTANCES // (4 * max(n, 1)), 20))
        self.arounds = self._arounds(self.centres)

    def best(self, alive: np.ndarray, gain: np.ndarray) -> Candidate | None:
        """Return the ball with the most evidence among the rows left.

        The best balls around errors are moved to the middle of their errors. In the best of these,
        every row is tried as a centre, or ``NEAR`` of them, until none is better. The ball then
        grows while its evidence falls short by less than half its price, as the search flatters the
        ball that it picks by about its price, and small balls most.
        """
        n = len(self.points)
        left = _left(alive[:n], gain[:n], self.least if n == len(alive) else FEW)
        found = self._around(self.centres, self.arounds, MOVED, left)
        climbed = self.threads.map(lambda ball: self._climbed(ball, left), _distinct(found))
        top = max(climbed, key=lambda placed: placed.evidence, default=None)
        return None if top is None else self._grown(top.centre, alive, gain)

    def _grown(self, centre: np.ndarray, alive: np.ndarray, gain: np.ndarray) -> Candidate:
        """Return the largest ball around a centre, among all rows, that has nearly the most."""
        price = log(METRICS * RADII * (len(self.centres) + self.near))
        ball = ErrorBall(centre, self.weights, 0.0)
        d2 = ball.distances(self.Z, self.rows)
        near = Nearest.at(d2, float(centre @ centre))
        evidence, last = near.best(_left(alive, gain, self.least), 0.5 * price)
        # There is a next row, as a ball holds a small part of the rows that are left.
        radius = float(np.sqrt(d2[near.order[last : last + 2]]).mean())
        inside = near.order[: last + 1].astype(np.intp)
        ball = ErrorBall(centre, self.weights, radius)
        return Candidate(ball, inside[alive[inside]], evidence, price)

    def _climbed(self, ball: Placed, left: Left) -> Placed:
        """Move the centre to the best of the rows inside, until none is better."""
        while True:
            inside = ball.inside[left.alive[ball.inside]]
            near = inside[:: -(-len(inside) // self.near)]
            others = self._around(near, self._arounds(near), 1, left)
            if not others or others[0].evidence <= ball.evidence:
                return ball
            ball = others[0]

    def _arounds(self, centres: np.ndarray) -> list[Nearest]:
        """Return the rows around each centre."""

        def some(block: slice) -> list[Nearest]:
            points = self.points[centres[block]]
            distances = np.ascontiguousarray(ball_distances(self.points, points).T)
            return [Nearest.at(*pair) for pair in zip(distances, offsets(points), strict=True)]

        blocks = row_blocks(len(centres), TOGETHER)
        return [near for block in self.threads.map(some, blocks) for near in block]

    def _around(
        self, centres: np.ndarray, arounds: list[Nearest], most: int, left: Left
    ) -> list[Placed]:
        """Return the best balls around the centres, best first, after ``most`` were moved."""
        tried = np.array([near.best(left)[0] for near in arounds])
        order = np.argsort(-tried, kind="stable")[:most]
        rows = [int(centres[k]) for k in order if tried[k] > 0]
        moved = self.threads.map(lambda row: self._moved(row, left), rows)
        return sorted(moved, key=lambda ball: -ball.evidence)

    def _moved(self, row: int, left: Left) -> Placed:
        """Move the centre of a ball while this adds evidence.

        The centre goes to the middle of the errors inside, and from there away from the middle of
        the rows around that are right. So it also reaches the centre of a ball at the rim of the
        data. An error counts by its gain, so that unexpected errors count most.
        """
        best = self._placed(self.points[row][None], left)[0]
        while True:
            inside = best.inside[left.alive[best.inside]]
            around = best.order[: 2 * len(inside)]
            right = around[(left.weight[around] == 0) & left.alive[around]]
            middle = np.average(self.points[inside], axis=0, weights=left.weight[inside])
            away = middle - (self.points[right].mean(axis=0) if len(right) else middle)
            tried = self._placed(middle + np.outer(STEPS, away), left)
            other = max(tried, key=lambda ball: ball.evidence)
            if other.evidence <= best.evidence:
                return best
            best = other

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
    weight = np.where(alive, np.maximum(gain[:, MIDDLE], 0.0), 0.0)
    return Left(alive, np.ascontiguousarray(gain), weight, least, LARGEST * int(alive.sum()))


def _distinct(balls: list[Placed]) -> list[Placed]:
    """Return the best few balls of which none has its middle in the rows of a better one."""
    kept: list[Placed] = []
    for ball in balls:
        if len(kept) < CLIMBED and not any(ball.order[0] in other.inside for other in kept):
            kept.append(ball)
    return kept


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
