"""Weighted quantiles: cuts of a list of values, and summaries of lists that are too long.

A *weighted list* has distinct values in ascending order, and the mass of each. The rank of v is the
mass of the values up to v, as a fraction of the total mass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

LISTED = 65_536  # most values of a feature that a part lists; for more it gives a summary
POINTS = 4_096  # number of equal masses into which a summary cuts the whole


class Weighted(NamedTuple):
    """Distinct values in ascending order, and the mass of each."""

    values: np.ndarray
    mass: np.ndarray


def weighted(values: np.ndarray, mass: np.ndarray) -> Weighted:
    """Return the weighted list of values that come in any order, each with a mass."""
    if len(mass) and mass.min() == mass.max():  # the order of equal masses does not matter
        values = np.sort(values)
        starts = run_starts(values)
        return Weighted(values[starts], np.add.reduceat(mass, starts))
    order = np.argsort(values)
    values = values[order]
    starts = run_starts(values)
    return Weighted(values[starts], np.add.reduceat(mass[order], starts))


def run_starts(column: np.ndarray) -> np.ndarray:
    """Return where each distinct value of a sorted column starts."""
    return np.flatnonzero(np.r_[len(column) > 0, column[1:] > column[:-1]])


def united(parts: Sequence[Weighted]) -> Weighted:
    """Return the weighted list of all values of some lists or summaries."""
    values = np.concatenate([part.values for part in parts])
    return weighted(values, np.concatenate([part.mass for part in parts]))


def summary(whole: Weighted, listed: int = LISTED, points: int = POINTS) -> Weighted:
    """Return a summary of a long list. A list of at most ``listed`` values is returned as it is.

    The summary has at most 2 · ``points`` + 1 values.

    Each multiple of 1/``points`` of the total mass is a boundary. Neighbouring values are replaced
    by the largest of them if the masses up to them are between the same two boundaries. A value
    that is heavier than 1/``points`` of the total stays alone. So a rank is too low by less than
    2/``points``, and never too high. This also holds for the union of summaries. A summary of a
    union of summaries adds its own error. With 4,096 points, 0.1 % covers both errors.
    """
    values, mass = whole
    if len(values) <= listed:
        return whole
    below = np.cumsum(mass)
    share = below[-1] / points
    step, heavy = np.floor(below / share), mass >= share
    ends = (step[1:] > step[:-1]) | heavy[1:] | heavy[:-1]
    starts = np.flatnonzero(np.r_[True, ends])
    last = np.append(starts[1:], len(values)) - 1
    return Weighted(values[last], np.add.reduceat(mass, starts))


def midpoints(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return thresholds θ with low ≤ θ < high, halfway if a float allows it."""
    with np.errstate(invalid="ignore"):
        middle = low / 2 + high / 2  # low + high could overflow
    return np.where((low <= middle) & (middle < high), middle, low)


def quantile_cuts(values: np.ndarray, mass: np.ndarray, bins: int) -> np.ndarray:
    """Return thresholds that cut sorted distinct ``values`` into ``bins`` of about equal mass.

    A value heavier than a bin counts as one bin, so that the other values share the other bins.
    """
    if len(values) <= bins:
        return midpoints(values[:-1], values[1:])
    heavy, rest = 0, float(mass.sum())
    for top in np.sort(mass)[: -bins - 1 : -1]:
        if top <= rest / (bins - heavy):
            break
        heavy, rest = heavy + 1, rest - top
    share = rest / (bins - heavy)
    below = np.cumsum(np.minimum(mass, share))
    # With the tolerance, a sum that should equal a quantile reaches it despite rounding. A row of
    # weight 2 rounds differently from the same row twice.
    last = np.searchsorted(below, share * (np.arange(1, bins) - 1e-6))
    last = np.unique(last[last < len(values) - 1])
    return midpoints(values[last], values[last + 1])
