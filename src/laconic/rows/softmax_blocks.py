"""Evaluations and Hessian products of a softmax loss on a block of rows, in one long call.

A call takes and gives back the interpreter's lock once. So many threads hardly wait for it. The
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
    margin, value = state.dtype.type(margin), np.zeros(1)
    total = np.zeros((_summed(state), W.shape[1]))
    rooms = (*loss.rooms(state), kept("values", state.shape, state.dtype))
    _evaluate_numbers(lines, W, margin, target, weight, state, *rooms, value, total)
    return float(value[0]), _of_all(total, state)


def curve_numbers(
    lines: np.ndarray, V: np.ndarray, weight: np.ndarray, state: np.ndarray
) -> np.ndarray:
    """Return the sums of columns times the Hessian in the scores times V (k, n)."""
    total = np.zeros((_summed(state), V.shape[1]))
    values = kept("values", state.shape, state.dtype)
    _curve_numbers(lines, V, weight, state, loss.rooms(state)[0], values, total)
    return _of_all(total, state)


def evaluate_bits(
    codes: np.ndarray,
    factors: bits.Factors,
    margin: float,
    target: Any,
    weight: Any,
    state: np.ndarray,
) -> tuple[float, np.ndarray]:
    """Return the loss, and the sums of columns times the residual; see `bits.add_up_into`."""
    margin, value = state.dtype.type(margin), np.zeros(1)
    rooms = (*loss.rooms(state), kept("values", state.shape, state.dtype))
    totals, found = bits.room_for_sums(_summed(state), factors.places)
    _evaluate_bits(codes, *factors, margin, target, weight, state, *rooms, value, totals, found)
    return float(value[0]), _of_all(found, state)


def curve_bits(
    codes: np.ndarray, factors: bits.Factors, weight: np.ndarray, state: np.ndarray
) -> np.ndarray:
    """Return the sums of columns times the Hessian product; see `bits.add_up_into`."""
    totals, found = bits.room_for_sums(_summed(state), factors.places)
    room, values = loss.rooms(state)[0], kept("values", state.shape, state.dtype)
    _curve_bits(codes, *factors, weight, state, room, values, totals, found)
    return _of_all(found, state)


def _summed(state: np.ndarray) -> int:
    """Return for how many outputs sums over rows are computed.

    What is summed adds up to zero over the outputs of a row. So with two outputs, one is enough.
    """
    return 1 if len(state) == 2 else len(state)


def _of_all(sums: np.ndarray, state: np.ndarray) -> np.ndarray:
    """Return the sums of all outputs."""
    return np.concatenate([sums, -sums]) if len(state) == 2 else sums


@compiled
def _evaluate_numbers(
    lines: Any,
    W: Any,
    margin: Any,
    target: Any,
    weight: Any,
    state: Any,
    room: Any,
    terms: Any,
    values: Any,
    value: Any,
    total: Any,
) -> None:
    tall.multiply_into(lines, W, state)
    loss.settle_into(margin, target, weight, state, room, terms, value)
    loss.residual_into(target, weight, state, values)
    tall.add_up_into(lines, values, total)


@compiled
def _curve_numbers(
    lines: Any, V: Any, weight: Any, state: Any, room: Any, values: Any, total: Any
) -> None:
    tall.multiply_into(lines, V, values)
    loss.curve_into(weight, state, room, values)
    tall.add_up_into(lines, values, total)


@compiled
def _evaluate_bits(
    codes: Any,
    places: Any,
    weights: Any,
    shift: Any,
    tables: Any,
    margin: Any,
    target: Any,
    weight: Any,
    state: Any,
    room: Any,
    terms: Any,
    values: Any,
    value: Any,
    totals: Any,
    found: Any,
) -> None:
    bits.multiply_into(codes, places, weights, shift, tables, state)
    loss.settle_into(margin, target, weight, state, room, terms, value)
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
    loss.curve_into(weight, state, room, values)
    bits.add_up_into(codes, places, values, totals, found)
