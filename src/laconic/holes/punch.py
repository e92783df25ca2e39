"""The hole-punching loop of Dekel and Shamir, section 5.2."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import numpy as np
from scipy import sparse

from laconic.clumping.ties import WEIGHT_TIE, Digests, first_lowest, ranks
from laconic.holes.bad_balls import TOGETHER, BadBall, ErrorCounts, Surroundings, largest_ball
from laconic.holes.local_models import constant, fit_local, predicted_labels
from laconic.holes.state import Hole, Part, PunchState
from laconic.model.distances import inside_ball
from laconic.numeric.threads import Threads

# Largest number of centres that a round looks at beyond its candidates.
LOOKED_AT = 1024
# A round gives up after TRIED balls in which no model helped. It does not try a ball that is much
# like one of them: the weight of the rows in both balls, divided by the weight of the rows in
# either, is above ALIKE.
TRIED = 100
ALIKE = 0.8
NONE_FOUND = "no hole was found that lowers the error"
NO_OTHER = "no other hole was found that lowers the error"


Hook = Callable[[PunchState], Any]


@dataclass
class Puncher:
    """Finds holes and fills them.

    Each round takes the centre whose neighbourhood holds the most errors. (Ties are broken by the
    values of the rows, and equal rows are one centre.) It takes the largest ball around the centre
    that is more than half misclassified. Inside the ball it keeps whichever of three makes the
    fewest training errors: a fitted model, a constant, or the current predictor. If the current
    predictor is best, which is only possible with more than two classes, the ball would change
    nothing. The round then tries the largest ball around the same centre in which a constant is
    better, and then the next centre. So every hole lowers the training error.

    A round costs one pass over the rows for every centre that it looks at, one for every row that
    becomes right or wrong, and the fit inside. In the worst case the holes are tiny, and there are
    as many as errors (the paper's own warning). ``least`` and held-out rows guard against this.

    Attributes
    ----------
    train : Part
    held : Part or None
        Rows on which every round is measured.
    local : estimator
        Estimator to fit inside holes.
    weighted : bool
        Whether rows have different weights, which estimators must then get.
    least : float
        Least weight of the training rows in a hole.
    draws : Digests
        Puts rows in an order drawn at random. The first misclassified rows in this order are
        compared, as centres, with the row that has the most errors around it. The centre whose ball
        holds the most errors wins. The order is the same in every round, so that the rows around a
        centre are found once.
    candidates : int
        Number of centres to compare in a round.
    guarded : bool
        Whether a model must also make fewer errors than the current predictor on the held-out rows
        in the hole.
    seeds : list of int or None
        Seeds for the random state of the fit in each hole.
    counts : ErrorCounts
    """

    train: Part
    held: Part | None
    local: Any
    weighted: bool
    least: float
    draws: Digests
    candidates: int
    guarded: bool
    seeds: list[int | None]
    counts: ErrorCounts
    threads: Threads
    codes: np.ndarray | None = None
    """Class codes of the training rows, if there are more than two classes."""
    _in_vain: list[np.ndarray] = field(default_factory=list)
    """Rows of the balls of this round in which no model helped."""

    def __post_init__(self) -> None:
        self.surroundings = Surroundings(self.train.X, self.threads)
        self.digests = Digests(self.train.X)

    def start(self, state: PunchState) -> None:
        """Predict with the classifier outside, and count its errors."""
        for part in (self.train, self.held):
            if part is not None:
                part.predicted = predicted_labels(state.base, part.X, part.y.dtype)
        wrong = np.flatnonzero(self.train.wrong)
        self.counts.change(wrong, self.train.weight[wrong])
        self.note(state)

    def note(self, state: PunchState) -> None:
        """Record the errors of the current predictor."""
        state.errors.append(self.train.error())
        if self.held is not None:
            state.held_errors.append(self.held.error())

    def run(
        self, state: PunchState, max_holes: int, tol: float, patience: int | None, hooks: list[Hook]
    ) -> None:
        """Punch holes until the loop ends.

        It ends if the error is small enough, if there are enough holes, if the held-out error no
        longer falls, if no hole helps, or if a hook returns something true.
        """
        go_on = not any([hook(state) for hook in hooks]) if not state.holes else True
        seen = 0
        while go_on:
            # Check a resumed state from its start: it may hold more holes than this fit wants.
            for n_holes in range(seen, len(state.errors)):
                if (status := _end(state, n_holes, max_holes, tol, patience)) is not None:
                    state.cut(n_holes)
                    state.status = status
                    return
            seen = len(state.errors)
            hole = self.punch(self.seeds[len(state.holes)])
            if hole is None:
                state.status = NO_OTHER if state.holes else NONE_FOUND
                return
            state.holes.append(hole)
            self.note(state)
            go_on = not any([hook(state) for hook in hooks])
        state.status = "a callback stopped it"

    def punch(self, seed: int | None) -> Hole | None:
        """Punch the next hole and return it, or return None if no hole helps."""
        self._in_vain = []  # a resumed fit does not know earlier rounds either
        for centre, ball in self._balls():
            spent = len(self._in_vain) >= TRIED
            if spent and (self.codes is None or self.guarded):
                break
            hole = None if spent else self._fill(centre, ball, seed)
            if hole is None and self.codes is not None:
                smaller = self._where_a_constant_helps(centre)
                hole = None if smaller is None else self._fill(centre, smaller, seed)
            if hole is not None:
                return hole
        return None

    def has_smaller_balls(self, least: float) -> bool:
        """Return whether a mostly wrong ball exists that holds at least ``least`` weight."""
        asked, self.least = self.least, least
        try:
            return next(self._balls(), None) is not None
        finally:
            self.least = asked

    def _where_a_constant_helps(self, centre: int) -> BadBall | None:
        """Return the largest ball around a centre in which a constant is better.

        With more than two classes, a constant need not be better in a ball that is half wrong.
        """
        (around,) = self.surroundings.around([centre])
        weight = self.train.weight if self.weighted else None
        return largest_ball(around, self.train.wrong, weight, self.least, self.codes)

    def _balls(self) -> Iterator[tuple[int, BadBall]]:
        """Yield the balls to try.

        The balls around the candidates come first, then those around a few more centres at a time.
        Each time, the ball with the most errors comes first.
        """
        centres = self._centres()
        ahead = self.candidates  # these are usually enough
        while few := list(islice(centres, ahead)):
            found = self._balls_around(few)
            errors = np.array([self._errors_in(ball) for _, ball in found])
            yield from (found[at] for at in np.argsort(ranks(errors), kind="stable"))
            ahead = min(4 * ahead, TOGETHER) if self.candidates == 1 else self.candidates

    def _errors_in(self, ball: BadBall) -> float:
        return self.train.errors(ball.inside, self.train.predicted[ball.inside])

    def _centres(self) -> Iterator[int]:
        """Yield the centres to look at, candidates first. Equal rows are one centre."""
        missed, ranked = np.flatnonzero(self.train.wrong), self._ranked()
        seen: set[int] = set()
        for row in chain(
            islice(ranked, 1),
            self._drawn(missed),
            islice(ranked, LOOKED_AT - 1),
            islice(self._failing(ranked, missed), LOOKED_AT),
        ):
            digest = self.digests[row]
            if digest not in seen:
                seen.add(digest)
                yield row

    def _ranked(self) -> Iterator[int]:
        """Yield rows, those with the most errors around them first. Equal rows come once."""
        rank = ranks(self.counts.counts)
        order = np.argsort(rank, kind="stable")
        start = 0
        for end in [*(np.flatnonzero(np.diff(rank[order])) + 1).tolist(), len(order)]:
            yield from self.digests.different(order[start:end])
            start = end

    def _drawn(self, missed: np.ndarray) -> Iterator[int]:
        """Yield misclassified rows drawn at random, one fewer than there are candidates."""
        if self.candidates > 1:
            yield from self.draws.different(missed)[: self.candidates - 1]

    def _failing(self, rows: Iterable[int], missed: np.ndarray) -> Iterator[int]:
        """Yield the rows that are misclassified, or equal to a misclassified row.

        Around an error there is always a ball: at least the error itself.
        """
        wrong = {self.digests[row] for row in missed.tolist()}
        yield from (row for row in rows if self.digests[row] in wrong)

    def _balls_around(self, centres: list[int]) -> list[tuple[int, BadBall]]:
        """Return the centres that have a bad ball, each with its largest one."""
        wrong, weight = self.train.wrong, self.train.weight if self.weighted else None
        found = []
        for at in range(0, len(centres), TOGETHER):
            few = centres[at : at + TOGETHER]
            balls = self.threads.map(
                lambda around: largest_ball(around, wrong, weight, self.least),
                self.surroundings.around(few),
            )
            found += [(c, b) for c, b in zip(few, balls, strict=True) if b is not None]
        return found

    def _fill(self, centre: int, ball: BadBall, seed: int | None) -> Hole | None:
        """Return the hole with its best model, and update the predictor. None if no model helps."""
        train, held = self.train, self.held
        rows = np.sort(ball.inside)
        if any(self._likeness(rows, other) > ALIKE for other in self._in_vain):
            return None
        middle = self._row(centre)
        radius = self._radius(middle, ball)
        kept = np.empty(0, dtype=np.int64)
        if held is not None:
            kept = inside_ball(held.X, middle, radius)
        choice = self._best_model(rows, kept, seed)
        if choice is None:
            self._in_vain.append(rows)
            return None
        kind, model, predicted, on_held = choice
        total = float(train.weight[rows].sum())
        before = train.errors(rows, train.predicted[rows]) / total
        after = train.errors(rows, predicted) / total
        self._take(rows, predicted)
        seen = None
        if held is not None:
            total = float(held.weight[kept].sum()) or np.nan
            errors = [held.errors(kept, p) / total for p in (held.predicted[kept], on_held)]
            seen = (len(kept), errors[0], errors[1])
            held.predicted[kept] = on_held
        number = int(train.number[centre])
        return Hole(middle, radius, number, model, kind, len(rows), before, after, seen)

    def _likeness(self, one: np.ndarray, other: np.ndarray) -> float:
        """Return the weight of the rows in both, divided by the weight of the rows in either."""
        both = np.intersect1d(one, other, assume_unique=True)
        shared, *whole = (float(self.train.weight[rows].sum()) for rows in (both, one, other))
        return shared / (sum(whole) - shared)

    def _row(self, number: int) -> np.ndarray:
        row = self.train.X[[number]]
        return np.asarray(row.toarray() if sparse.issparse(row) else row, dtype=np.float64)[0]

    def _radius(self, middle: np.ndarray, ball: BadBall) -> float:
        """Return the ball's radius, computed from differences of rows.

        So no digit depends on how BLAS computed other distances.
        """
        if ball.beyond is None:
            return np.inf
        edges = (self._row(int(row)) - middle for row in (ball.inside[-1], ball.beyond))
        return 0.5 * sum(float(np.linalg.norm(edge)) for edge in edges)

    def _best_model(
        self, rows: np.ndarray, kept: np.ndarray, seed: int | None
    ) -> tuple[str, Any, np.ndarray, np.ndarray] | None:
        """Return the kind, the model, and its predictions of training and held-out rows.

        It is None if the current predictor is best. Ties go to the simplest: to the current
        predictor, then to the constant.
        """
        train, held = self.train, self.held
        X, y = train.X[rows], train.y[rows]
        weights = train.weights[rows] if self.weighted else None
        fewest = train.errors(rows, train.predicted[rows])
        rounding = WEIGHT_TIE * float(train.weight[rows].sum())
        best = None
        for kind in ("constant", "fitted"):
            if kind == "constant":
                model = constant(X, y, None if weights is None else weights.product)
            else:
                model = fit_local(self.local, X, y, weights, seed)
            if model is None:
                continue
            predicted = predicted_labels(model, X, y.dtype)
            errors = train.errors(rows, predicted)
            if not errors < fewest - rounding:
                continue
            on_held = np.empty(0, dtype=y.dtype)
            if held is not None and len(kept):
                on_held = predicted_labels(model, held.X[kept], y.dtype)
            if held is not None and self.guarded:
                so_far = held.errors(kept, held.predicted[kept])
                if not held.errors(kept, on_held) < so_far - WEIGHT_TIE * held.weight[kept].sum():
                    continue
            fewest, best = errors, (kind, model, predicted, on_held)
        return best

    def _take(self, rows: np.ndarray, predicted: np.ndarray) -> None:
        """Let a hole decide its rows, and update the counts of errors."""
        was = self.train.wrong[rows]
        self.train.predicted[rows] = predicted
        now = self.train.wrong[rows]
        changed = rows[was != now]
        sign = np.where(now[was != now], 1.0, -1.0)
        self.counts.change(changed, sign * self.train.weight[changed])


def _end(
    state: PunchState, n_holes: int, max_holes: int, tol: float, patience: int | None
) -> str | None:
    """Return why the loop ends with ``n_holes`` holes, or None if it goes on."""
    if state.errors[n_holes] <= tol + WEIGHT_TIE:
        return f"the training error is at most {tol:g}"
    if n_holes >= max_holes:
        return "max_holes was reached"
    held = state.held_errors[: n_holes + 1]
    if patience is not None and n_holes - first_lowest(held) >= patience:
        holes = "hole" if patience == 1 else "holes"
        return f"the held-out error has not fallen for {patience} {holes}"
    return None
