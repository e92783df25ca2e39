"""Frontiers of error against cardinality, and what the paper reads off them (section 5.1).

A point is (atoms, error). Results are those of `totalq_runs.run`; their points hold the setting,
atoms, risk, and rows wrong of the training rows and of both halves of the new ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

Point = tuple[float, float]
CONVEX, PRICED = "AB", "CDE"
# What two solves of the same problem to the same tolerance may differ by.
SAME = 1e-7


def frontier(points: Iterable[Point]) -> list[Point]:
    """Points that no other one is at least as small and as good as, smallest first.

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
    """Sparsity and generalisation gains of the points of the priced frontier, as in table 1.

    *Sparsity gain*: fewer atoms, in per cent, than the sparsest convex point that errs no more.
    *Generalisation gain*, where no convex point errs as little: less error, in per cent, than the
    best of them. Points with neither are left out, and so are those of less than one atom.

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
    """Points with their error on all new rows, of some experiments on one split."""
    new = sum(result["rows"][1:])
    return [(p[1], (p[4] + p[5]) / new) for letter in letters for p in result["points"][letter]]


def averaged(results: list[dict[str, Any]], letter: str) -> list[dict[str, float]]:
    """For every setting of an experiment, atoms and error over the splits: mean, standard error.

    B's settings are its rounds; a split on which it ended before one keeps its last model.
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
    """Standard error of a mean; 0 for a single value."""
    listed = np.array(list(values))
    return float(listed.std(ddof=1) / np.sqrt(len(listed))) if len(listed) > 1 else 0.0


def chosen(result: dict[str, Any], letters: str) -> tuple[int, float]:
    """Atoms, and error on the second half, of the point that errs least on the first half.

    Ties go to fewer atoms.
    """
    every = [p for letter in letters for p in result["points"][letter]]
    best = min(every, key=lambda p: (p[4], p[1]))
    return best[1], best[5] / result["rows"][2]


def worse(result: dict[str, Any], one: str, other: str) -> dict[str, list[Any]]:
    """Where ``one`` has as many atoms as ``other``: how often, and where it is worse.

    In risk (by more than rounding) and in rows wrong of the training rows. Every point of ``one``
    is held against the best of ``other`` of that size.
    """
    rivals: dict[int, list[list[Any]]] = {}
    for point in result["points"][other]:
        rivals.setdefault(point[1], []).append(point)
    met = [(p, rivals[p[1]]) for p in result["points"][one] if p[1] in rivals and p[1] > 0]
    risk = [p for p, of in met if p[2] > min(q[2] for q in of) * (1.0 + SAME) + SAME * 1e-2]
    wrong = [p for p, of in met if p[3] > min(q[3] for q in of)]
    return {"met": [p[:3] for p, _ in met], "risk": [p[:3] for p in risk],
            "wrong": [p[:3] for p in wrong]}  # fmt: skip
