"""Search for the ball with the most evidence of errors beyond those expected."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from laconic.holes.bad_balls import Around, offsets
from laconic.model.distances import ball_distances
from laconic.report.scan import MIDDLE, Candidate, gains

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
# Share of the rows that are sorted by distance: those that a ball may hold, and some that are gone.
SORTED = 0.4
# Centres whose distances are computed together, and rows whose distances from one centre are.
TOGETHER, ROWS = 64, 8192


@dataclass(frozen=True)
class ErrorBall:
    """The rows within ``radius`` of ``centre``, after every column is multiplied by its weight."""

    centre: np.ndarray
    weights: np.ndarray
    radius: float

    def distances(self, Z: np.ndarray) -> np.ndarray:
        """Return the squared distance of every row from the centre."""
        out = np.empty(len(Z))
        for start in range(0, len(Z), ROWS):
            part = Z[start : start + ROWS] * self.weights - self.centre
            out[start : start + ROWS] = np.einsum("ij,ij->i", part, part)
        return out


class BallSearch:
    """The search for balls among some rows.

    Parameters
    ----------
    points : ndarray of shape (n_rows, n_columns)
        Rows to search, without weights.
    weights : ndarray of shape (n_columns,)
        How much every column counts in distances.
    error, expected : ndarray of shape (n_rows,)
        Errors become centres. If they are many, some are drawn: the more an error counts, the
        likelier.
    least : int
        Smallest number of rows in a ball.
    rng : Generator
        Draws the centres.
    """

    def __init__(
        self,
        points: np.ndarray,
        weights: np.ndarray,
        error: np.ndarray,
        expected: np.ndarray,
        least: int,
        rng: np.random.Generator,
        most_centres: int = CENTRES,
    ) -> None:
        self.points = points if (weights == 1).all() else points * weights
        self.squares = np.einsum("ij,ij->i", self.points, self.points)
        self.weights, self.least = weights, least
        most = min(most_centres, max(DISTANCES // max(len(error), 1), 20))
        weight = error * np.maximum(gains(error, expected)[:, MIDDLE], 0.0)
        self.centres = _places(self.points, weight, most, rng)
        self.near = min(NEAR, max(DISTANCES // (4 * max(len(error), 1)), 20))
        self.moved = min(MOVED, max(DISTANCES // (20 * max(len(error), 1)), 3))
        self.arounds = self._arounds(self.centres)

    def best(self, alive: np.ndarray, gain: np.ndarray) -> Candidate | None:
        """Return the ball with the most evidence among the rows left.

        The best balls around errors are moved to the middle of their errors. In the best of these,
        every row is tried as a centre, or ``NEAR`` of them, until none is better. The ball then
        grows while its evidence falls short by less than half its price, as the search flatters the
        ball that it picks by about its price, and small balls most.
        """
        left = np.where(alive[:, None], gain, 0.0)
        moved = self._around(self.centres, self.arounds, self.moved, alive, left)
        climbed = [self._climbed(ball, alive, left) for ball in _distinct(moved)]
        top = max(climbed, key=lambda candidate: candidate.evidence, default=None)
        if top is None:
            return None
        return self._balls(top.shape.centre[None], alive, left, 0.5 * top.price)[0][0]

    def _climbed(self, ball: Candidate, alive: np.ndarray, gain: np.ndarray) -> Candidate:
        """Move the centre to the best of the rows inside, until none is better."""
        while True:
            near = ball.inside[:: -(-len(ball.inside) // self.near)]
            others = self._around(near, self._arounds(near), 1, alive, gain)
            if not others or others[0].evidence <= ball.evidence:
                return ball
            ball = others[0]

    def _arounds(self, centres: np.ndarray) -> list[Around]:
        """Return the rows around each centre."""
        out: list[Around] = []
        for start in range(0, len(centres), TOGETHER):
            some = self.points[centres[start : start + TOGETHER]]
            distances = np.ascontiguousarray(ball_distances(self.points, some).T)
            pairs = zip(distances, offsets(some), strict=True)
            out += [_nearest(d2, offset) for d2, offset in pairs]
        return out

    def _around(
        self,
        centres: np.ndarray,
        arounds: list[Around],
        most: int,
        alive: np.ndarray,
        gain: np.ndarray,
    ) -> list[Candidate]:
        """Return the best balls around the centres, best first, after ``most`` were moved."""
        tried = [self._at(around, alive, gain) for around in arounds]
        order = np.argsort([-found[0] for found in tried], kind="stable")[:most]
        moved = [self._moved(int(centres[k]), alive, gain) for k in order if tried[k][0] > 0]
        return sorted(moved, key=lambda candidate: -candidate.evidence)

    def _at(
        self, around: Around, alive: np.ndarray, gain: np.ndarray, slack: float = 0.0
    ) -> tuple[float, int]:
        """Return the evidence of the best ball around a centre, and the place of its last row.

        With ``slack``, the ball is the largest one that has nearly the most evidence.
        """
        left = int(alive.sum())
        # Rows that a ball may hold, and all that are gone.
        reach = int(LARGEST * left) + len(alive) - left
        order, ties = around.order[:reach], around.ties[: np.searchsorted(around.ties, reach)]
        held = np.cumsum(alive[order])
        fits = (held >= self.least) & (held <= LARGEST * left)
        fits[ties] = False  # a ball holds all rows at the same distance or none
        ends = np.flatnonzero(fits)
        if len(ends) == 0:
            return 0.0, 0
        found = np.cumsum(gain[order], axis=0)[ends].max(axis=1)
        top = int(np.argmax(found))
        if slack:
            top = int(np.flatnonzero(found >= found[top] - min(slack, 0.5 * found[top]))[-1])
        return float(found.max()), int(ends[top])

    def _moved(self, row: int, alive: np.ndarray, gain: np.ndarray) -> Candidate:
        """Move the centre of a ball while this adds evidence.

        The centre goes to the middle of the errors inside, and from there away from the middle of
        the rows around that are right. So it also reaches the centre of a ball at the rim of the
        data. An error counts by its gain, so that unexpected errors count most.
        """
        weight = np.maximum(gain[:, MIDDLE], 0.0)
        best, order = self._balls(self.points[row][None], alive, gain)[0]
        while True:
            inside = best.inside
            around = order[: 2 * len(inside)]
            right = around[(weight[around] == 0) & alive[around]]
            middle = np.average(self.points[inside], axis=0, weights=weight[inside])
            away = middle - (self.points[right].mean(axis=0) if len(right) else middle)
            tried = self._balls(middle + np.outer(STEPS, away), alive, gain)
            other = max(tried, key=lambda ball: ball[0].evidence)
            if other[0].evidence <= best.evidence:
                return best
            best, order = other

    def _balls(
        self, centres: np.ndarray, alive: np.ndarray, gain: np.ndarray, slack: float = 0.0
    ) -> list[tuple[Candidate, np.ndarray]]:
        """Return the best ball around each centre, and the rows around it, nearest first."""
        offset = np.einsum("ij,ij->i", centres, centres)
        distances = self.squares - 2.0 * (centres @ self.points.T) + offset[:, None]
        price = log(METRICS * RADII * (len(self.centres) + self.near))
        out = []
        for centre, d2, far in zip(centres, np.maximum(distances, 0.0), offset, strict=True):
            around = _nearest(d2, far)
            found, last = self._at(around, alive, gain, slack)
            # There is a next row, as a ball holds a small part of the rows that are left.
            edge = float(np.sqrt(d2[around.order[last : last + 2]]).mean())
            inside = around.order[: last + 1].astype(np.intp)
            ball = ErrorBall(centre.astype(np.float64), self.weights, edge)
            out.append((Candidate(ball, inside[alive[inside]], found, price), around.order))
        return out


def _distinct(balls: list[Candidate]) -> list[Candidate]:
    """Return the best few balls of which none has its middle in the rows of a better one."""
    kept: list[Candidate] = []
    for ball in balls:
        if len(kept) < CLIMBED and not any(ball.inside[0] in other.inside for other in kept):
            kept.append(ball)
    return kept


def _nearest(d2: np.ndarray, offset: float = 0.0) -> Around:
    """Return the nearest rows of `Around.at`: all rows up to a distance that holds enough."""
    enough = int(SORTED * len(d2))
    if enough + 1 >= len(d2):
        return Around.at(d2, offset)
    near = np.flatnonzero(d2 <= np.partition(d2, enough)[enough]).astype(np.int32)
    around = Around.at(d2[near], offset)
    # Where the list ends, the next row may be as far.
    return Around(near[around.order], np.append(around.ties, len(near) - 1))


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
