"""Find regions one after the other: in each round, the ball or rule that is worth most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from laconic.report.conditions import ErrorRule
from laconic.report.scan import Candidate, gains

# How much more a ball must be worth than a rule. A sentence tells what a rule is.
TOLD = 1.25


class RegionSearch(Protocol):
    """Finds the best region of one shape."""

    def best(self, alive: np.ndarray, gain: np.ndarray) -> Candidate | None:
        """Return the best region among the rows that are left, by the gains of the rows."""


def _preference(candidate: Candidate) -> float:
    return candidate.worth * (TOLD if isinstance(candidate.shape, ErrorRule) else 1.0)


def find_regions(
    searches: Sequence[RegionSearch],
    error: np.ndarray,
    expect: Callable[[np.ndarray], np.ndarray],
    most: int,
    alive: np.ndarray | None = None,
    unit: float = 1.0,
) -> list[Candidate]:
    """Return up to ``most`` regions that share no row, best first.

    Each round takes the region with the most evidence beyond its price. Its rows are then set
    aside, and the errors to expect in the other rows are estimated again. The search ends if no
    region has evidence beyond its price. Choosing the best of many regions flatters it, so measure
    what is found on other rows.

    Parameters
    ----------
    searches : list of RegionSearch
        One for each shape.
    error : ndarray of shape (n_rows,)
        Errors in [0, 1].
    expect : function
        Gives the expected errors of all rows, estimated from the rows of a mask.
    most : int
        Largest number of regions.
    alive : ndarray of bool of shape (n_rows,), optional
        Rows to search. The default is all.
    unit : float
        Factor of the gains: 1 for errors that are 0 or 1, more if they vary less.
    """
    alive = np.ones(len(error), dtype=bool) if alive is None else alive.copy()
    found: list[Candidate] = []
    while len(found) < most:
        gain = unit * gains(error, expect(alive))
        tried = [search.best(alive, gain) for search in searches]
        best = max((c for c in tried if c is not None), key=_preference, default=None)
        if best is None or best.worth <= 0:
            break
        found.append(best)
        alive[best.inside] = False
    return found
