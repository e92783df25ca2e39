"""Compiled part of the subset searches: rank the swaps."""

from __future__ import annotations

import numpy as np

from laconic.compiled import compiled


@compiled
def best_swaps(  # type: ignore[no-untyped-def]
    along, slope, bend, barred, weights, spare, l1, positive, into, change
):
    """For every column of a support, the best one to come in its stead by the quadratic model.

    Fills its number and the change of the objective. ``along`` is H_jS H_SS⁻¹, ``slope`` the
    gradient, ``bend`` the curvature that is left of a column beside the support, and ``spare`` the
    diagonal of H_SS⁻¹. See `laconic.subset.moves` for the formula.
    """
    k = len(weights)
    for s in range(k):
        into[s], change[s] = -1, np.inf
    for j in range(len(slope)):
        if barred[j]:
            continue
        for s in range(k):
            shared = along[j, s] / spare[s]
            pull = weights[s] * shared - slope[j]
            if pull < 0 and not positive:
                pull = -pull
            pull = pull - l1 if pull > l1 else 0.0
            kept = bend[j] + along[j, s] * shared
            new = 0.5 * (weights[s] * weights[s] / spare[s] - pull * pull / kept)
            if new < change[s]:
                into[s], change[s] = j, new
