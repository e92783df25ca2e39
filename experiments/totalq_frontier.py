"""Frontiers of error against cardinality, and the gains that the paper reads off them (5.1).

A point is (atoms, error). Results are those of `totalq_runs.run`. Their points hold the setting,
the atoms, the risk, and the numbers of errors on the training rows and on both halves of the new
rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

Point = tuple[float, float]
CONVEX, PRICED = "AB", "CDE"
# Two solves of the same problem to the same tolerance may differ by this.
SAME = 1e-7


def frontier(points: Iterable[Point]) -> list[Point]:
    """Return the points that no other point matches in both size and error, smallest first.

    Examples
    --------
    >>> frontier([(3, 0.2), (1, 0.5), (2, 0.5), (4, 0.3), (3, 0.1)])
    [(1, 0.5), (3, 0.1)]
    """
    out: list[Point] = []
    for size, error in sorted(points):
        if not out or error < out[-1][1]:
            out.append((size, error))
    return out


def gains(priced: Iterable[Point], convex: Iterable[Point]) -> list[dict[str, Any]]:
    """Return the gains of the points of the priced frontier, as in table 1.

    *Sparsity gain*: the reduction in atoms, in per cent, from the sparsest convex point with no
    more error. *Generalisation gain*, if no convex point has so little error: the reduction in
    error, in per cent, from the best convex point. Points with neither gain, and points with less
    than one atom, are left out.

    Examples
    --------
    >>> gains([(5, 0.2), (8, 0.09)], [(10, 0.2), (20, 0.1)])[0]
    {'atoms': 5, 'error': 0.2, 'sparsity': 50.0}
    """
    convex = frontier(convex)
    best = min(error for _, error in convex)
    out: list[dict[str, Any]] = []
    for size, error in frontier(point for point in priced if point[0] >= 1):
        rivals = [n for n, e in convex if e <= error + 1e-12]
        if not rivals:
            gain = {"generalisation": 100.0 * (1.0 - error / best)}
        elif size < min(rivals):
            gain = {"sparsity": 100.0 * (1.0 - size / min(rivals))}
        else:
            continue
        out.append({"atoms": size, "error": error, **gain})
    return out


def points(result: dict[str, Any], letters: str) -> list[Point]:
    """Return the points of some experiments on one split, with their error on all new rows."""
    new = sum(result["rows"][1:])
    return [(p[1], (p[4] + p[5]) / new) for letter in letters for p in result["points"][letter]]


def averaged(results: list[dict[str, Any]], letter: str) -> list[dict[str, float]]:
    """Return mean and standard error of atoms and error over the splits, for every setting.

    The settings of B are its rounds. On a split where B ended earlier, its last model counts.
    """
    longest = max(len(r["points"][letter]) for r in results)
    out = []
    for at in range(longest):
        rows = [r["points"][letter][min(at, len(r["points"][letter]) - 1)] for r in results]
        error = [(p[4] + p[5]) / sum(r["rows"][1:]) for p, r in zip(rows, results, strict=True)]
        out.append(
            {
                "setting": rows[0][0],
                "atoms": float(np.mean([p[1] for p in rows])),
                "error": float(np.mean(error)),
                "deviation": standard_error(error),
            }
        )
    return out


def standard_error(values: Iterable[float]) -> float:
    """Return the standard error of a mean; 0 for a single value."""
    listed = np.array(list(values))
    return float(listed.std(ddof=1) / np.sqrt(len(listed))) if len(listed) > 1 else 0.0


def chosen(result: dict[str, Any], letters: str) -> tuple[int, float]:
    """Choose the point with the least error on the first half of the new rows.

    Return its atoms and its error on the second half. Of equal points, the one with fewer atoms is
    chosen.
    """
    every = [p for letter in letters for p in result["points"][letter]]
    best = min(every, key=lambda p: (p[4], p[1]))
    return best[1], best[5] / result["rows"][2]


def worse(result: dict[str, Any], one: str, other: str) -> dict[str, list[Any]]:
    """Return how often ``one`` has a size that ``other`` has too, and where it is worse.

    Compared are the risk (worse by more than rounding) and the number of errors on the training
    rows. Every point of ``one`` is compared with the best point of ``other`` of the same size.
    """
    rivals: dict[int, list[list[Any]]] = {}
    for point in result["points"][other]:
        rivals.setdefault(point[1], []).append(point)
    met = [(p, rivals[p[1]]) for p in result["points"][one] if p[1] in rivals and p[1] > 0]
    risk = [p for p, of in met if p[2] > min(q[2] for q in of) * (1.0 + SAME) + SAME * 1e-2]
    wrong = [p for p, of in met if p[3] > min(q[3] for q in of)]
    return {"met": [p[:3] for p, _ in met], "risk": [p[:3] for p in risk],
            "wrong": [p[:3] for p in wrong]}  # fmt: skip
