"""The dual constraints of TotalQBoost, (4), and what they prove: the stop (8), the dual value (7).

An atom has a weight for each of its columns and each score, and l1 ‖W‖₁ counts every one of them.
So the dual constrains every one, |g_jc| ≤ l1 with g = Σ_i u_i y_i h_i for the scores of two classes
and −∇L in general; an atom is violated if any of its entries is.
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
    """The atom that violates its constraints |g_jc| ≤ limit most: line 3 of algorithm 1.

    Its score Σ_jc (|g_jc| − limit)₊ is how fast loss + limit ‖W‖₁ falls when the atom's weights
    leave zero at one speed, each to its better side; above 0 where a constraint is violated, and
    -inf where no atom is left. With ``costs`` atoms are ranked by the square of half that over
    their cost, as `BoundPool.best` does. ``steepest`` is max_jc |g_jc| over all columns of the
    pool.
    """
    pool = rows.pool
    if rows.n_outputs == 1 and pool.n_atoms == pool.n_columns and costs is None:
        # One entry each: the ranking is that of |g_j|, which every pool knows how to do quickly.
        choice = rows.best(forbidden, None, None)
        return choice._replace(score=choice.score - limit)

    def scored() -> Iterator[tuple[int, np.ndarray, float]]:
        for first, sums in rows.gradients():
            entries = np.abs(sums)
            over = np.maximum(entries - limit, 0.0).sum(axis=1)
            yield first, over, float(entries.max(initial=0.0))

    return best_scored(pool, scored(), forbidden, costs)


def dual_value(entries: list[PathEntry], l1: float) -> float:
    """Largest value of the dual (7) that the entries prove: for *all* atoms of the pool.

    The dual weights u of an entry, times s = min(1, l1 / max_jc |g_jc|), satisfy (4) for every
    atom; by concavity of the dual their value is at least s (L − ⟨∇L, W⟩), because u = 0 has the
    value of the least loss there is, 0. No weights over the whole pool have a loss plus l1 term
    below this; beside an intercept, whose own constraint holds to rounding, to rounding. At the
    optimum of loss plus l1 term over the pool s is 1 and the value is that optimum.

    A classifier as pool does not know its steepest atom, and proves nothing but 0.
    """
    found = 0.0
    for entry in entries:
        if np.isfinite(entry.steepest):
            shrink = 1.0 if entry.steepest <= l1 else l1 / entry.steepest
            found = max(found, shrink * (entry.loss - entry.inner))
    return found


def objective_bound(first: PathEntry, dual: float, price: float, costs: Costs | None) -> float:
    """No weights over the pool have an objective (2) below this.

    Either no atom is in beside those always in, as in the ``first`` entry, or one is paid for, the
    cheapest at least, and the loss and l1 term are no lower than the ``dual`` value.
    """
    if costs is not None:
        own = list(first.numbers)
        price *= float(np.delete(costs.given(first.numbers), own).min(initial=np.inf))
    return min(first.objective, dual + price)
