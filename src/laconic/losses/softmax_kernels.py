"""Softmax losses on a block of rows, in a few long calls without the interpreter's lock.

NumPy takes and gives back the lock in every operation. With many threads they then wait for the
lock more than they compute. This module imports Numba, so it is imported at first use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.numeric.compiled import compiled
from laconic.numeric.exponentials import exponential, logarithm

# Rows that a kernel takes at a time, a power of two. Their numbers stay in the first-level cache.
ROWS = 256


def evaluate(
    margin: float, scores: np.ndarray, target: np.ndarray, weight: np.ndarray, state: np.ndarray
) -> float:
    """Return the weighted sum of the losses, and store ρ in ``state``."""
    value = np.zeros(1)
    state[:] = scores
    settle_into(scores.dtype.type(margin), target, weight, state, *rooms(state), value)
    return float(value[0])


def rooms(state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return room for numbers of some rows, and for their losses."""
    return np.empty(ROWS, dtype=state.dtype), np.empty(ROWS)


def residual(target: np.ndarray, weight: np.ndarray, state: np.ndarray) -> np.ndarray:
    """Return the weight times (e_y − ρ)."""
    out = np.empty_like(state)
    residual_into(target, weight, state, out)
    return out


def curve(weight: np.ndarray, state: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Return the weight times (ρ ∘ z − ρ ⟨ρ, z⟩)."""
    out = np.array(direction, dtype=state.dtype)
    curve_into(weight, state, rooms(state)[0], out)
    return out


def curvature(weight: np.ndarray, state: np.ndarray) -> np.ndarray:
    """Return the weight times ρ (1 − ρ)."""
    out = np.empty_like(state)
    curvature_into(weight, state, out)
    return out


# Places are unsigned, because a negative index counts from the end, and the check for it keeps the
# compiler from using vectors.


@compiled
def settle_into(
    margin: Any, target: Any, weight: Any, state: Any, room: Any, terms: Any, value: Any
) -> None:
    """Turn the scores in ``state`` into ρ, and write the weighted sum of the losses to ``value``.

    The largest score of a row is subtracted before its exponentials. Losses of some rows are added
    in pairs. What rounding takes from the sum of the pairs is added to the next one (Kahan).
    """
    k, m = state.shape
    nothing = margin * 0
    whole, missing = 0.0, 0.0
    for low in range(0, m, ROWS):
        n = min(ROWS, m - low)
        for c in range(k):
            for i in range(n):
                at = np.uintp(low + i)
                state[c, at] += margin if target[at] != c else nothing
        for i in range(n):
            room[np.uintp(i)] = state[0, np.uintp(low + i)]
        for c in range(1, k):
            for i in range(n):
                at, p = np.uintp(low + i), np.uintp(i)
                room[p] = state[c, at] if state[c, at] > room[p] else room[p]
        for i in range(n):
            at, p = np.uintp(low + i), np.uintp(i)
            terms[p] = state[np.uintp(target[at]), at] - room[p]
        for c in range(k):
            for i in range(n):
                at = np.uintp(low + i)
                state[c, at] = exponential(state[c, at] - room[np.uintp(i)])
        for i in range(n):
            room[np.uintp(i)] = state[0, np.uintp(low + i)]
        for c in range(1, k):
            for i in range(n):
                room[np.uintp(i)] += state[c, np.uintp(low + i)]
        for i in range(n):
            p = np.uintp(i)
            lost = logarithm(np.float64(room[p])) - terms[p]
            terms[p] = lost * np.float64(weight[np.uintp(low + i)])
        for c in range(k):
            for i in range(n):
                state[c, np.uintp(low + i)] /= room[np.uintp(i)]
        for i in range(n, ROWS):
            terms[i] = 0.0
        half = ROWS // 2
        while half > 0:
            for i in range(half):
                terms[np.uintp(i)] += terms[np.uintp(half + i)]
            half //= 2
        term = terms[0] + missing
        whole, before = whole + term, whole
        missing = term - (whole - before)
    value[0] = whole


@compiled
def residual_into(target: Any, weight: Any, state: Any, out: Any) -> None:
    """Write the weight times (e_y − ρ) to ``out``."""
    k, m = state.shape
    for c in range(k):
        for i in range(m):
            out[c, i] = -weight[i] * state[c, i]
    for i in range(m):
        out[np.uintp(target[i]), i] += weight[i]


@compiled
def residual_to_rows(target: Any, weight: Any, state: Any, out: Any) -> None:
    """Write the weight times (e_y − ρ) to ``out``, (rows, k)."""
    k, m = state.shape
    for i in range(m):
        at = np.uintp(i)
        for c in range(k):
            out[at, np.uintp(c)] = -weight[at] * state[np.uintp(c), at]
        out[at, np.uintp(target[at])] += weight[at]


@compiled
def curvature_into(weight: Any, state: Any, out: Any) -> None:
    """Write the weight times ρ (1 − ρ) to ``out``."""
    k, m = state.shape
    for c in range(k):
        for i in range(m):
            at = np.uintp(i)
            out[c, at] = (state[c, at] - state[c, at] * state[c, at]) * weight[at]


@compiled
def curve_into(weight: Any, state: Any, room: Any, out: Any) -> None:
    """Turn the direction z in ``out`` into the weight times (ρ ∘ z − ρ ⟨ρ, z⟩).

    If the direction were another argument that may be the same array, nothing would be vectorised.
    """
    k, m = state.shape
    for low in range(0, m, ROWS):
        n = min(ROWS, m - low)
        for i in range(n):
            room[i] = 0
        for c in range(k):
            for i in range(n):
                at = np.uintp(low + i)
                room[np.uintp(i)] += state[c, at] * out[c, at]
        for c in range(k):
            for i in range(n):
                at = np.uintp(low + i)
                out[c, at] = state[c, at] * (out[c, at] - room[np.uintp(i)]) * weight[at]
