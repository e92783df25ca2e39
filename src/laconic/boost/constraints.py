"""The dual constraints (4) of TotalQBoost, its stopping rule (8) and its dual value (7).

An atom has one weight for each of its columns and each score, and l1 ‖W‖₁ counts all of them. So
the dual has one constraint for each weight, |g_jc| ≤ l1. Here g = Σ_i u_i y_i h_i for the scores of
two classes, and g = −∇L in general. An atom violates its constraints if any of its entries does.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from laconic.boost.costs import Costs
from laconic.boost.path import PathEntry
from laconic.pools.base import Choice, best_scored
from laconic.rows.rows import Rows


def most_violated(
    rows: Rows, forbidden: np.ndarray, limit: float, costs: np.ndarray | None = None
) -> Choice:
    """Return the atom that violates its constraints |g_jc| ≤ limit most (line 3 of algorithm 1).

    Its score is Σ_jc (|g_jc| − limit)₊. This is how fast loss + limit ‖W‖₁ falls if the atom's
    weights leave zero at the same speed, each in its better direction. The score is above 0 if a
    constraint is violated, and -inf if no atom is left. With ``costs``, atoms are ranked by the
    square of half the score, divided by their cost, as in `BoundPool.best`. ``steepest`` is
    max_jc |g_jc| over all columns of the pool.
    """
    pool = rows.pool
    if rows.n_outputs == 1 and pool.n_atoms == pool.n_columns and costs is None:
        # Each atom has one entry, so atoms are ranked by |g_j|. Every pool does that quickly.
        choice = rows.best(forbidden, None, None)
        return choice._replace(score=choice.score - limit)

    def scored() -> Iterator[tuple[int, np.ndarray, float]]:
        for first, sums in rows.gradients():
            entries = np.abs(sums)
            over = np.maximum(entries - limit, 0.0).sum(axis=1)
            yield first, over, float(entries.max(initial=0.0))

    return best_scored(pool, scored(), forbidden, costs)


def dual_value(entries: list[PathEntry], l1: float) -> float:
    """Return the largest value of the dual (7) that the entries prove for *all* atoms of the pool.

    Take the dual weights u of an entry times s = min(1, l1 / max_jc |g_jc|). They satisfy (4) for
    every atom. The dual is concave, and u = 0 has the value 0, the smallest possible loss. So the
    value of s u is at least s (L − ⟨∇L, W⟩). No weights over the whole pool have a loss plus l1
    term below this value. With an intercept this holds up to rounding, because the intercept's own
    constraint does. At the optimum of loss plus l1 term over the pool, s is 1 and the value is
    that optimum.

    If the pool is a classifier, its steepest atom is not known, and the proven value is 0.
    """
    found = 0.0
    for entry in entries:
        if np.isfinite(entry.steepest):
            shrink = 1.0 if entry.steepest <= l1 else l1 / entry.steepest
            found = max(found, shrink * (entry.loss - entry.inner))
    return found


def objective_bound(first: PathEntry, dual: float, price: float, costs: Costs) -> float:
    """Return a lower bound on the objective (2) of all weights over the pool.

    A model with only the atoms that are always in is no better than the ``first`` entry. Any other
    model pays for at least the cheapest other atom, and its loss plus l1 term is at least the
    ``dual`` value.
    """
    return min(first.objective, dual + price * costs.least(first.numbers))
