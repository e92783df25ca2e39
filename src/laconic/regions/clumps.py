"""Clumps: balls in which the errors of any classifier are unusually many."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from laconic.model.regions import ball_distances
from laconic.regions.errors import TIE, offsets

# Errors that are tried as centres, drawn at random where there are more; fewer of many rows.
CENTRES, DISTANCES = 400, 20_000_000
# A clump that holds more than this share of the rows is no clump.
LARGEST = 0.2
# Evidence (log-likelihood ratio) below which errors look scattered.
EVIDENCE = 5.0


class Clump(NamedTuple):
    """A ball of errors."""

    row: int
    """Number of the row at the centre, which an earlier clump may hold."""
    centre: np.ndarray
    radius: float
    rows: np.ndarray
    """Numbers of the rows inside that no earlier clump holds, nearest first."""
    evidence: float
    """Log-likelihood ratio of one error rate inside and another outside against one for all."""


def find_clumps(
    Z: np.ndarray,
    wrong: np.ndarray,
    n_clumps: int,
    least: int,
    rng: np.random.Generator,
) -> list[Clump]:
    """Balls around errors with the most evidence of more errors inside than outside.

    One after the other: the ball with the largest log-likelihood ratio (Kulldorff's scan
    statistic), whose rows are then set aside. Half as a share of errors, as in hole punching, is
    not asked for: three errors in ten are much where the model is otherwise nearly always right.
    Choosing the best of many balls flatters it, so measure what is found on other rows.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, n_columns)
        Rows in the units in which distances mean something.
    wrong : ndarray of bool of shape (n_rows,)
    n_clumps : int
        Most clumps to find.
    least : int
        Least rows in a clump.
    rng : Generator
        Draws the centres where there are many errors.

    Returns
    -------
    list of Clump
        In the order found; with few errors, or errors scattered evenly, there may be none.
    """
    errors = np.flatnonzero(wrong)
    if len(errors) == 0 or len(errors) == len(wrong):
        return []
    most = min(len(errors), CENTRES, max(DISTANCES // len(wrong), 20))
    centres = np.sort(rng.choice(errors, most, replace=False))
    distances = np.ascontiguousarray(ball_distances(Z, Z[centres]).T)
    offset = offsets(Z, Z[centres])
    order = np.argsort(distances, axis=1, kind="stable")
    alive = np.ones(len(wrong), dtype=bool)
    found: list[Clump] = []
    while len(found) < n_clumps:
        best = _best_ball(order, alive, wrong, least)
        if best is None or best[2] < EVIDENCE:
            break
        which, last, evidence = best
        radius = _edge(distances[which][order[which]], last, offset[which])
        inside = order[which][distances[which][order[which]] <= radius**2]
        inside = inside[alive[inside]]
        row = int(centres[which])
        found.append(Clump(row, Z[row].astype(np.float64), radius, inside, evidence))
        alive[inside] = False
    return found


def _best_ball(
    order: np.ndarray, alive: np.ndarray, wrong: np.ndarray, least: int
) -> tuple[int, int, float] | None:
    """Centre, position of the last row inside and evidence of the best ball of rows left."""
    total, missed = int(alive.sum()), int((alive & wrong).sum())
    best = None
    for which, row in enumerate(order):
        here = alive[row]
        ends = np.flatnonzero(here & wrong[row])  # a best ball ends with an error
        held = np.cumsum(here)[ends]
        caught = np.arange(1, len(ends) + 1)
        fits = (held >= least) & (held <= LARGEST * total)
        if not fits.any():
            continue
        ratio = evidence(caught[fits], held[fits], missed, total)
        top = int(np.argmax(ratio))
        if best is None or ratio[top] > best[2]:
            best = (which, int(ends[fits][top]), float(ratio[top]))
    return best


def evidence(caught: np.ndarray, held: np.ndarray, missed: int, total: int) -> np.ndarray:
    """Log-likelihood ratio of ``caught`` errors in ``held`` rows, of ``missed`` in ``total``.

    0 where the rate inside is no higher than outside.

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


def _edge(ordered: np.ndarray, last: int, offset: float) -> float:
    """A radius half way to the next row that is farther than the last one inside."""
    beyond = np.flatnonzero(ordered[last:] > ordered[last] + TIE * (ordered[last] + offset))
    if len(beyond) == 0:
        return np.inf
    return float(0.5 * (np.sqrt(ordered[last]) + np.sqrt(ordered[last + beyond[0]])))
