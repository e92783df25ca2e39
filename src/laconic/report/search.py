"""The two searches of a report: for surprising regions, and for hard ones."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from laconic.numeric.threads import Threads
from laconic.report.balls import BallSearch
from laconic.report.expected import NEAREST, Recalibration, recalibrate
from laconic.report.features import NamedTable, focus
from laconic.report.regions import RegionSearch, find_regions
from laconic.report.rules import RuleSearch
from laconic.report.scan import Candidate

SURPRISING, HARD, PLAIN = "surprising", "hard", "plain"
BALLS, RULES = "balls", "rules"
# The variance of an error of rate 1/2 in units of the variance of a rank in [0, 1].
RANKS = 3.0


class RowOutcome(NamedTuple):
    """How the predictions of the rows turned out."""

    wrong: np.ndarray
    """Whether each row is wrong; for losses, whether its loss is high."""
    own: np.ndarray | None = None
    """The model's own expected error of each row: 1 minus the probability of its label."""
    losses: np.ndarray | None = None


class Kept(NamedTuple):
    """A region that the search found, and of which kind it is."""

    kind: str
    region: Candidate


def search(
    table: NamedTable,
    outcome: RowOutcome,
    rows: np.ndarray,
    beside: np.ndarray,
    most: int,
    least: int,
    rng: np.random.Generator,
    shapes: Collection[str] = (BALLS, RULES),
) -> tuple[list[Kept], Recalibration | None]:
    """Find regions among some rows, and return them with the curve of the recalibration.

    With probabilities, the first regions have more errors than expected (*surprising*). Then others
    have more errors than elsewhere (*hard*); these are searched without the rows of surprising
    regions that are nearly certain. Without probabilities, all regions are *plain*.

    Parameters
    ----------
    table : NamedTable
    outcome : RowOutcome
        Of all rows.
    rows : ndarray of int
        Rows to search, in an order that does not depend on that of the table.
    beside : ndarray of int
        Other rows, in such an order. The search knows where they are, but not which are errors.
    most, least : int
        Largest number of regions, and smallest number of rows in each.
    rng : Generator
        Draws the centres of balls.
    shapes : collection of str
        ``"balls"``, ``"rules"`` or both. Pictures have no rules.
    """
    if outcome.losses is not None:
        error = rankdata(outcome.losses[rows]) / (len(rows) + 1.0)
    else:
        error = outcome.wrong[rows].astype(np.float64)
    if not 0 < error.sum() < len(error) or np.ptp(error) == 0:
        return [], None
    with Threads() as threads:
        rules: list[RegionSearch] = []
        if RULES in shapes and table.image_shape is None:
            rules.append(RuleSearch(table.columns, rows, least, threads))

        def searches(expected: np.ndarray) -> list[RegionSearch]:
            if BALLS not in shapes:
                return rules
            metrics = [np.ones(table.Z.shape[1]), focus(table, error, expected, rows)]
            metrics = metrics[:1] if np.ptp(metrics[1]) == 0 else metrics
            return [
                *(BallSearch(table.Z, rows, beside, weights, error, expected, least, rng, threads)
                  for weights in metrics),
                *rules,
            ]  # fmt: skip

        def even(alive: np.ndarray) -> np.ndarray:
            share = np.clip(error[alive].mean(), NEAREST, 1.0 - NEAREST)
            return np.full(len(error), share)

        every = np.ones(len(rows), dtype=bool)
        if outcome.own is None:
            unit = 1.0 if outcome.losses is None else RANKS
            found = find_regions(searches(even(every)), error, even, most, unit=unit)
            return [Kept(PLAIN, region) for region in found], None
        own = outcome.own[rows]

        def expect(alive: np.ndarray) -> np.ndarray:
            return recalibrate(own[alive], error[alive]).expected(own)

        curve = recalibrate(own, error)
        odd = find_regions(searches(curve.expected(own)), error, expect, most)
        for region in odd:
            if region.worth > region.price:
                every[region.inside] = False
        hard = []
        if 0 < error[every].sum() < every.sum():
            hard = find_regions(searches(even(every)), error, even, most, every)
        return [*(Kept(SURPRISING, r) for r in odd), *(Kept(HARD, r) for r in hard)], curve
