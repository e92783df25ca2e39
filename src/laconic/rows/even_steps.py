"""Places at even steps of accumulated curvature, in one call without the interpreter's lock.

This module imports Numba, so it is imported at first use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.numeric.compiled import compiled

# Rows that are added up together. One by one, only rows next to a step are added.
ROWS = 128


@compiled(fastmath={"contract", "reassoc"})
def even_steps_into(
    mass: Any, outputs: Any, before: Any, steps: Any, first: Any, ends: Any, places: Any
) -> None:
    """Write the rows where the accumulated mass of some outputs passes even steps to ``places``.

    Output number j is line ``outputs[j]`` of ``mass``. Its places go to ``ends[j - 1]:ends[j]``.
    They are those of the steps from number ``first[j]`` on.
    """
    m = mass.shape[1]
    at = 0
    for j in range(len(outputs)):
        c, upto, number = outputs[j], before[j], first[j]
        for low in range(0, m, ROWS):
            if at == ends[j]:
                break
            high, chunk = min(low + ROWS, m), 0.0
            for i in range(low, high):
                chunk += mass[c, np.uintp(i)]
            if upto + chunk >= (number + 0.5) * steps[j]:
                running = upto
                for i in range(low, high):
                    running += mass[c, i]
                    while at < ends[j] and running >= (number + 0.5) * steps[j]:
                        places[at] = i
                        at += 1
                        number += 1
            upto += chunk
        while at < ends[j]:  # rounding keeps the last step from being passed
            places[at] = m - 1
            at += 1
