"""Evaluations and Hessian products of a softmax loss on a block of rows, in one or two long calls.

Each call takes and gives back the interpreter's lock once. So many threads hardly wait for it. The
kernels call other kernels: if one of those is changed, the cache on disk must be deleted. This
module imports Numba, so it is imported at first use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.losses import softmax_kernels as loss
from laconic.numeric import bits
from laconic.numeric.compiled import compiled
from laconic.numeric.rooms import kept
from laconic.rows import tall_products as tall


def evaluate_numbers(
    lines: np.ndarray, W: np.ndarray, margin: float, target: Any, weight: Any, state: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the loss at weights W (k, n), and the sums of columns times the residual, (k, n).

    ``lines`` has the columns, (columns, rows). The state is left for the residual and the curve.
    """
    true, room, values, value = _made(state)
    _shift_numbers(lines, W, state.dtype.type(margin), target, state, true, room)
    np.exp(state, out=state)
    total = np.zeros(W.shape)
    _settle_numbers(lines, target, weight, state, true, room, values, value, total)
    return float(value[0]), total


def curve_numbers(
    lines: np.ndarray, V: np.ndarray, weight: np.ndarray, state: np.ndarray
) -> np.ndarray:
    """Return the sums of columns times the Hessian in the scores times V (k, n)."""
    _, room, values, _ = _made(state)
    total = np.zeros(V.shape)
    _curve_numbers(lines, V, weight, state, room, values, total)
    return total


def evaluate_bits(
    codes: np.ndarray,
    factors: bits.Factors,
    margin: float,
    target: Any,
    weight: Any,
    state: np.ndarray,
) -> tuple[float, np.ndarray]:
    """Return the loss, and the sums of columns times the residual; see `bits.add_up_into`."""
    true, room, values, value = _made(state)
    _shift_bits(codes, *factors, state.dtype.type(margin), target, state, true, room)
    np.exp(state, out=state)
    places = factors.places
    totals, found = bits.room_for_sums(len(state), places)
    _settle_bits(codes, places, target, weight, state, true, room, values, value, totals, found)
    return float(value[0]), found


def curve_bits(
    codes: np.ndarray, factors: bits.Factors, weight: np.ndarray, state: np.ndarray
) -> np.ndarray:
    """Return the sums of columns times the Hessian product; see `bits.add_up_into`."""
    _, room, values, _ = _made(state)
    totals, found = bits.room_for_sums(len(state), factors.places)
    _curve_bits(codes, *factors, weight, state, room, values, totals, found)
    return found


def _made(state: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return room for the scores of the true classes, for a kernel, for values, and for a sum."""
    true = kept("true", state.shape[1:], state.dtype)
    values = kept("values", state.shape, state.dtype)
    return true, np.empty(loss.ROWS, state.dtype), values, np.zeros(1)


@compiled
def _shift_numbers(
    lines: Any, W: Any, margin: Any, target: Any, state: Any, true: Any, room: Any
) -> None:
    tall.multiply_into(lines, W, state)
    loss.shift_into(margin, state, target, state, true, room)


@compiled
def _settle_numbers(
    lines: Any,
    target: Any,
    weight: Any,
    state: Any,
    true: Any,
    room: Any,
    values: Any,
    value: Any,
    total: Any,
) -> None:
    loss.normalise_into(state, true, weight, room, value)
    loss.residual_into(target, weight, state, values)
    tall.add_up_into(lines, values, total)


@compiled
def _curve_numbers(
    lines: Any, V: Any, weight: Any, state: Any, room: Any, values: Any, total: Any
) -> None:
    tall.multiply_into(lines, V, values)
    loss.curve_into(weight, state, values, room, values)
    tall.add_up_into(lines, values, total)


@compiled
def _shift_bits(
    codes: Any,
    places: Any,
    weights: Any,
    shift: Any,
    tables: Any,
    margin: Any,
    target: Any,
    state: Any,
    true: Any,
    room: Any,
) -> None:
    bits.multiply_into(codes, places, weights, shift, tables, state)
    loss.shift_into(margin, state, target, state, true, room)


@compiled
def _settle_bits(
    codes: Any,
    places: Any,
    target: Any,
    weight: Any,
    state: Any,
    true: Any,
    room: Any,
    values: Any,
    value: Any,
    totals: Any,
    found: Any,
) -> None:
    loss.normalise_into(state, true, weight, room, value)
    loss.residual_into(target, weight, state, values)
    bits.add_up_into(codes, places, values, totals, found)


@compiled
def _curve_bits(
    codes: Any,
    places: Any,
    weights: Any,
    shift: Any,
    tables: Any,
    weight: Any,
    state: Any,
    room: Any,
    values: Any,
    totals: Any,
    found: Any,
) -> None:
    bits.multiply_into(codes, places, weights, shift, tables, values)
    loss.curve_into(weight, state, values, room, values)
    bits.add_up_into(codes, places, values, totals, found)
