"""The plan of a search: few rows for many settings, then more rows for the best of them.

This is successive halving. Every *rung* has more rows and fewer settings than the one before. On a
rung, each setting is one *trial*: a path for every fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

# A rung has this many times the rows of the rung before.
FACTOR = 4
# No rung but the last has fewer rows than this.
FEWEST_ROWS = 1000
# Part of the settings that go on to the next rung.
KEPT = 3
# Settings that are best at these parts of the budget go on, too.
PARTS = (1 / 2, 1 / 4, 1 / 8)
# Sizes that are tried grow by this factor.
GROWTH = 1.25


def rung_sizes(n_rows: int) -> list[int]:
    """Return the number of rows of every rung. The last has all of them.

    Examples
    --------
    >>> rung_sizes(60_000), rung_sizes(500)
    ([3750, 15000, 60000], [500])
    """
    sizes = [n_rows]
    while sizes[0] // FACTOR >= FEWEST_ROWS:
        sizes.insert(0, sizes[0] // FACTOR)
    return sizes


def tried_sizes(max_atoms: int) -> list[int]:
    """Return the numbers of atoms that are tried, up to ``max_atoms``.

    Examples
    --------
    >>> tried_sizes(12)
    [0, 1, 2, 3, 4, 5, 6, 8, 10, 12]
    """
    sizes, size = [0], 1
    while size < max_atoms:
        sizes.append(size)
        size = max(size + 1, round(size * GROWTH))
    return [*sizes, max_atoms] if max_atoms > 0 else sizes


def rows_of_rungs(codes: np.ndarray, cv: Any, rng: np.random.RandomState) -> list[np.ndarray]:
    """Return the rows of every rung, in ascending order. A rung contains the one before.

    Classes keep their shares as far as possible: rows are shuffled within their class, and spread
    evenly. If ``cv`` names rows by their numbers, there is one rung of all rows.
    """
    if not isinstance(cv, (int, np.integer)) and not hasattr(cv, "split"):
        return [np.arange(len(codes))]
    order = rng.permutation(len(codes))
    place = np.empty(len(codes))
    for code in np.unique(codes):
        own = order[codes[order] == code]
        place[own] = (np.arange(len(own)) + 0.5) / len(own)
    spread = order[np.argsort(place[order], kind="stable")]
    return [np.sort(spread[:size]) for size in rung_sizes(len(codes))]


def make_splitter(cv: Any, y: np.ndarray, random: np.random.RandomState) -> Any:
    """Return shuffled stratified folds for a number of folds. Other splitters are kept.

    There are no more folds than rows of the most common class.
    """
    if not isinstance(cv, (int, np.integer)):
        return cv
    most = int(np.unique(y, return_counts=True)[1].max())
    return StratifiedKFold(max(2, min(int(cv), most)), shuffle=True, random_state=random)


def survivors(best: np.ndarray, at_parts: Sequence[np.ndarray]) -> list[int]:
    """Return the settings that go on to the next rung, best first.

    ``best`` has the best score of every setting within the budget, and ``at_parts`` those within
    parts of it. The best third goes on, but at least two. So does the best setting of every part.

    Examples
    --------
    >>> survivors(np.array([0.5, 0.9, 0.8, 0.7]), [np.array([0.6, 0.4, 0.3, 0.2])])
    [1, 2, 0]
    """
    order = np.argsort(-best, kind="stable")
    kept = set(order[: max(2, -(-len(best) // KEPT))].tolist())
    kept |= {int(np.argmax(scores)) for scores in at_parts if np.isfinite(scores).any()}
    return [int(number) for number in order if int(number) in kept]
