"""Softmax losses on a block of rows, in a few long calls without the interpreter's lock.

NumPy takes and gives back the lock in every operation. With many threads they then wait for the
lock more than they compute. This module imports Numba, so it is imported at first use.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from laconic.numeric.compiled import compiled

# Rows that a kernel takes at a time. Their numbers stay in the first-level cache.
ROWS = 256


def evaluate(
    margin: float, scores: np.ndarray, target: np.ndarray, weight: np.ndarray, state: np.ndarray
) -> float:
    """Return the weighted sum of the losses, and store ρ in ``state``."""
    true = np.empty(len(target), dtype=state.dtype)
    room = np.empty(ROWS, dtype=state.dtype)
    _shift(scores.dtype.type(margin), scores, target, state, true, room)
    np.exp(state, out=state)
    value = np.zeros(1)
    _normalise(state, true, weight, room, value)
    return float(value[0])


def residual(target: np.ndarray, weight: np.ndarray, state: np.ndarray) -> np.ndarray:
    """Return the weight times (e_y − ρ)."""
    out = np.empty_like(state)
    _residual(target, weight, state, out)
    return out


def curve(weight: np.ndarray, state: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Return the weight times (ρ ∘ z − ρ ⟨ρ, z⟩)."""
    out, room = np.empty_like(state), np.empty(ROWS, dtype=state.dtype)
    _curve(weight, state, direction, room, out)
    return out


@compiled
def _shift(margin: Any, scores: Any, target: Any, state: Any, true: Any, room: Any) -> None:
    """Add the margin to all scores but those of the true classes. Then subtract the largest."""
    k, m = scores.shape
    for low in range(0, m, ROWS):
        n = min(ROWS, m - low)
        for c in range(k):
            for i in range(n):
                state[c, low + i] = scores[c, low + i] + margin
        for i in range(n):
            state[target[low + i], low + i] = scores[target[low + i], low + i]
            room[i] = state[0, low + i]
        for c in range(1, k):
            for i in range(n):
                value = state[c, low + i]
                room[i] = value if value > room[i] else room[i]
        for c in range(k):
            for i in range(n):
                state[c, low + i] -= room[i]
        for i in range(n):
            true[low + i] = state[target[low + i], low + i]


@compiled
def _normalise(state: Any, true: Any, weight: Any, room: Any, value: Any) -> None:
    """Divide exponentials by their sums over the classes, and add up the losses.

    What rounding takes from a sum is added to the next term (Kahan).
    """
    k, m = state.shape
    whole, missing = 0.0, 0.0
    for low in range(0, m, ROWS):
        n = min(ROWS, m - low)
        for i in range(n):
            room[i] = 0
        for c in range(k):
            for i in range(n):
                room[i] += state[c, low + i]
        for i in range(n):
            lost = log(np.float64(room[i])) - np.float64(true[low + i])
            term = lost * np.float64(weight[low + i]) + missing
            whole, before = whole + term, whole
            missing = term - (whole - before)
        for c in range(k):
            for i in range(n):
                state[c, low + i] /= room[i]
    value[0] = whole


@compiled
def _residual(target: Any, weight: Any, state: Any, out: Any) -> None:
    k, m = state.shape
    for c in range(k):
        for i in range(m):
            out[c, i] = -weight[i] * state[c, i]
    for i in range(m):
        out[target[i], i] += weight[i]


@compiled
def _curve(weight: Any, state: Any, direction: Any, room: Any, out: Any) -> None:
    k, m = state.shape
    for low in range(0, m, ROWS):
        n = min(ROWS, m - low)
        for i in range(n):
            room[i] = 0
        for c in range(k):
            for i in range(n):
                room[i] += state[c, low + i] * direction[c, low + i]
        for c in range(k):
            for i in range(n):
                bent = state[c, low + i] * (direction[c, low + i] - room[i])
                out[c, low + i] = bent * weight[low + i]
