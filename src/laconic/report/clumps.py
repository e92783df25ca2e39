"""Clumps: balls in which a classifier makes unusually many errors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from laconic.holes.bad_balls import Around, offsets
from laconic.model.distances import ball_distances

# Most errors to try as centres, drawn at random if there are more, and most distances to compute.
CENTRES, DISTANCES = 400, 20_000_000
# Largest share of the rows that a clump may hold.
LARGEST = 0.2
# Smallest evidence (log-likelihood ratio) of a clump. Below it, errors look scattered.
EVIDENCE = 5.0


class Clump(NamedTuple):
    """A ball of errors."""

    row: int
    """Number of the row at the centre. An earlier clump may hold this row."""
    centre: np.ndarray
    radius: float
    rows: np.ndarray
    """Numbers of the rows inside that no earlier clump holds, nearest first."""
    evidence: float
    """Log-likelihood ratio of two error rates, inside and outside, against one for all rows."""


def find_clumps(
    Z: np.ndarray,
    wrong: np.ndarray,
    n_clumps: int,
    least: int,
    rng: np.random.Generator,
    most_centres: int = CENTRES,
    least_evidence: float = EVIDENCE,
) -> list[Clump]:
    """Find balls around errors with the most evidence of more errors inside than outside.

    Balls are found one after the other. Each is the ball with the largest log-likelihood ratio
    (Kulldorff's scan statistic), and its rows are then set aside. Unlike hole punching, the search
    does not require more than 50 % errors in a ball: three errors in ten are many where the model
    is otherwise nearly always right. A ball holds all rows at the same distance or none, so that
    the order of the rows does not matter. Choosing the best of many balls flatters it, so measure
    what is found on other rows.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, n_columns)
        Rows in units in which distances are meaningful.
    wrong : ndarray of bool of shape (n_rows,)
    n_clumps : int
        Largest number of clumps to find.
    least : int
        Smallest number of rows in a clump.
    rng : Generator
        Draws the centres if there are many errors.
    most_centres : int
        Largest number of errors to try as centres.
    least_evidence : float
        Smallest evidence of a clump.

    Returns
    -------
    list of Clump
        In the order found. It may be empty if errors are few or scattered evenly.
    """
    errors = np.flatnonzero(wrong)
    if len(errors) == 0 or len(errors) == len(wrong):
        return []
    most = min(len(errors), most_centres, max(DISTANCES // len(wrong), 20))
    centres = _places(Z, errors, most, rng)
    distances = np.ascontiguousarray(ball_distances(Z, Z[centres]).T)
    pairs = zip(distances, offsets(Z[centres]), strict=True)
    arounds = [Around.at(d2, offset) for d2, offset in pairs]
    alive = np.ones(len(wrong), dtype=bool)
    found: list[Clump] = []
    while len(found) < n_clumps:
        best = _best_ball(arounds, alive, wrong, least)
        if best is None or best[2] < least_evidence:
            break
        which, last, evidence = best
        order = arounds[which].order
        # There is a next row, as a clump holds a small part of the rows that are left.
        edge = np.sqrt(distances[which][order[last : last + 2]])
        inside = order[: last + 1].astype(np.intp)
        inside = inside[alive[inside]]
        row = int(centres[which])
        found.append(Clump(row, Z[row].astype(np.float64), float(edge.mean()), inside, evidence))
        alive[inside] = False
    return found


def _places(Z: np.ndarray, errors: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Draw ``most`` errors at random, and keep one of those in the same place.

    The places and their order do not depend on the order of the rows.
    """
    spelled = np.ascontiguousarray(Z[errors]).view(np.dtype((np.void, Z.shape[1] * Z.itemsize)))
    ordered = errors[np.argsort(spelled.reshape(-1), kind="stable")]
    drawn = ordered[np.sort(rng.choice(len(errors), most, replace=False))]
    differs = (Z[drawn[1:]] != Z[drawn[:-1]]).any(axis=1)
    return drawn[np.append(True, differs)]


def _best_ball(
    arounds: list[Around], alive: np.ndarray, wrong: np.ndarray, least: int
) -> tuple[int, int, float] | None:
    """Return the best ball of the rows left: its centre, the last row inside, and the evidence."""
    total, missed = int(alive.sum()), int((alive & wrong).sum())
    best = None
    reach = (
        int(LARGEST * total) + len(alive) - total
    )  # rows left that a ball may hold, and all others
    for which, (order, ties) in enumerate(arounds):
        order, ties = order[:reach], ties[: np.searchsorted(ties, reach)]
        here = alive[order]
        held, caught = np.cumsum(here), np.cumsum(here & wrong[order])
        fits = (held >= least) & (held <= LARGEST * total)
        fits[ties] = False  # a ball holds all rows at the same distance or none
        ends = np.flatnonzero(fits)
        ends = ends[
            np.diff(caught[ends], prepend=-1) > 0
        ]  # rows without an error only weaken a ball
        if len(ends) == 0:
            continue
        ratio = evidence(caught[ends], held[ends], missed, total)
        top = int(np.argmax(ratio))
        if best is None or ratio[top] > best[2]:
            best = (which, int(ends[top]), float(ratio[top]))
    return best


def evidence(caught: np.ndarray, held: np.ndarray, missed: int, total: int) -> np.ndarray:
    """Return the log-likelihood ratio of two error rates, inside and outside, against one for all.

    Inside are ``caught`` of the ``missed`` errors, in ``held`` of the ``total`` rows. The ratio is
    0 if the rate inside is no higher than outside.

    Examples
    --------
    >>> evidence(np.array([9, 1]), np.array([10, 10]), 20, 200).round(2)
    array([19.75,  0.  ])
    """
    out_caught, out_held = missed - caught, total - held

    def fit(errors: np.ndarray, rows: np.ndarray) -> np.ndarray:
        right = rows - errors
        with np.errstate(divide="ignore", invalid="ignore"):
            a = np.where(errors > 0, errors * np.log(errors / rows), 0.0)
            b = np.where(right > 0, right * np.log(right / rows), 0.0)
        return a + b

    one = fit(np.array([missed]), np.array([total]))
    ratio = fit(caught, held) + fit(out_caught, out_held) - one
    higher = caught * out_held > out_caught * held
    return np.where(higher, np.maximum(ratio, 0.0), 0.0)
