"""Weighted quantiles: cuts of a list of values, and summaries of lists that are too long.

A *weighted list* is ascending distinct values with the mass of each. The rank of v is the mass of
the values up to v, as a part of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

LISTED = 65_536  # values of a feature that a part lists; of more it gives a summary
POINTS = 4_096  # what a summary cuts the mass into


class Weighted(NamedTuple):
    """Ascending distinct values, and the mass of each."""

    values: np.ndarray
    mass: np.ndarray


def weighted(values: np.ndarray, mass: np.ndarray) -> Weighted:
    """The weighted list of values in any order, each with a mass."""
    order = np.argsort(values)
    values = values[order]
    starts = run_starts(values)
    return Weighted(values[starts], np.add.reduceat(mass[order], starts))


def run_starts(column: np.ndarray) -> np.ndarray:
    """Where each distinct value of a sorted column starts."""
    return np.flatnonzero(np.r_[len(column) > 0, column[1:] > column[:-1]])


def united(parts: Sequence[Weighted]) -> Weighted:
    """The weighted list of all values of some lists or summaries."""
    values = np.concatenate([part.values for part in parts])
    return weighted(values, np.concatenate([part.mass for part in parts]))


def summary(whole: Weighted, listed: int = LISTED, points: int = POINTS) -> Weighted:
    """A list of at most ``listed`` values as it is, a longer one in some ``points``.

    There are at most 2 · ``points`` + 1 of them.

    Neighbouring values are put together at the largest of them, where the mass up to them lies
    between the same two multiples of 1/``points`` of the whole. A value that is heavier than that
    stays alone. So ranks are too low by less than 2/``points`` of the whole, and never too high.
    This holds for the union of summaries too. A summary of a union of summaries adds its own error:
    with 4,096 points, 0.1 % covers both.
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
    """Thresholds θ with low ≤ θ < high, halfway where floats allow."""
    with np.errstate(invalid="ignore"):
        middle = low / 2 + high / 2  # low + high could overflow
    return np.where((low <= middle) & (middle < high), middle, low)


def quantile_cuts(values: np.ndarray, mass: np.ndarray, bins: int) -> np.ndarray:
    """Thresholds that cut sorted distinct ``values`` into ``bins`` of about equal mass.

    A value heavier than a bin counts as one bin, so that the others still share the rest.
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
    # The tolerance makes a sum that should equal a quantile reach it whatever its rounding: the
    # rounding of a row of weight 2 differs from that of the same row twice.
    last = np.searchsorted(below, share * (np.arange(1, bins) - 1e-6))
    last = np.unique(last[last < len(values) - 1])
    return midpoints(values[last], values[last + 1])
