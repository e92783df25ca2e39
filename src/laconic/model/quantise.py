"""From a program of real numbers to one of integers.

1. Choose the codes of the inputs (`laconic.model.choose_codes`).
2. Express each atom in codes: a whole-numbered value, and real weights per unit of that value
   (`laconic.model.in_codes`).
3. Choose one unit for all scores, and round the weights to it. An atom may also have a power of
   two of its own, by which its value is multiplied before it is weighted.
4. Change the rounded weights so that the scores are nearest to those of the model
   (`laconic.model.nearest_weights`).
5. Bound every accumulator, for every input (`laconic.model.proof`).
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from laconic.losses import decide
from laconic.model.choose_codes import TooWide, choose_codes
from laconic.model.in_codes import Coded, in_codes
from laconic.model.input_codes import Inputs
from laconic.model.integers import EXACT, IntegerProgram, atom_values
from laconic.model.nearest_weights import nearest_weights
from laconic.model.program import Program, program_of
from laconic.model.proof import bounds, overflow, score_bound, value_sizes
from laconic.model.segments import Segment

# Largest power of two of an atom.
MOST_SHIFT = 15
# Units that are tried between two powers of two.
STEPS = 8
# Rows on which units are compared.
SAMPLE = 2000
# Atoms get powers of two only if that keeps the decisions of more than this part of the rows.
WORTH = 1e-3
# Unit of a model without weights, in parts of its largest constant.
FINE = 2.0**-20
# More than 1 by more than rounding, so that the largest weight is never above its limit.
SLIGHTLY = 1.0 + 2.0**-40
# Smallest unit. Numbers below it are not exact in float64.
SMALLEST = 2.0**-1000
# No score may be so large.
TOO_LARGE = 2.0**62
# A unit may be coarser than the weights need by so many powers of two.
COARSER = 40


def integers_of(
    predictor: Any, X: Any, bits: int, given: str, weight: np.ndarray
) -> IntegerProgram:
    """Return an integer program that is near a predictor on the rows ``X`` of these weights.

    Of a few units, it takes the one with the smallest error of the scores on some of the rows.
    Balls do not count in this comparison. Then weights are changed, if that brings the scores on
    these rows nearer to those of the predictor.
    """
    program = program_of(predictor)
    inputs = choose_codes(program, X, bits, given)
    coded = in_codes(program, inputs, X, bits)
    step = max(1, X.shape[0] // SAMPLE)
    trial = _Trial(coded, inputs, inputs.codes(X[::step]), weight[::step])

    def nearest(shifts: bool) -> _Judged:
        tried = (_rounded(coded, inputs, bits, step / STEPS, shifts) for step in range(STEPS))
        return min(map(trial.judged, tried), key=lambda judged: judged.error)

    best = nearest(False)
    if best.changed > WORTH:  # otherwise powers of two cannot be worth it
        shifted = nearest(True)
        best = shifted if shifted.changed < best.changed - WORTH else best
    rounded = best.rounded
    if len(coded.program.bias) == 1 and not coded.never.any() and trial.values:
        scores = _exact_scores(predictor, program, X[::step])
        rounded = trial.nearer(rounded, scores, inputs, bits)
    proof = bounds(rounded.program, inputs, bits, rounded.accumulator)
    if wide := overflow(proof):
        raise TooWide(f"this model cannot be computed with integers, as one overflows: {wide}")
    distance = max((bound.bits for bound in proof if bound.what == "squared distance"), default=32)
    return IntegerProgram(
        rounded.program, inputs, bits, rounded.unit, rounded.accumulator, distance
    )


def _exact_scores(predictor: Any, program: Program, X: Any) -> np.ndarray:
    """Return the scores of a predictor that the program stands for."""
    scores: np.ndarray = predictor.encoded_scores(X)
    return np.diff(scores, axis=1) if program.n_outputs < scores.shape[1] else scores


class _Rounded(NamedTuple):
    """An integer program at one unit, and the bits of its scores."""

    program: Program
    unit: float
    accumulator: int


def _rounded(coded: Coded, inputs: Inputs, bits: int, step: float, shifts: bool) -> _Rounded:
    """Round the weights at the smallest unit that 32 bits allow, or else 64.

    ``step`` is the place of the unit between two powers of two. Without ``shifts``, the largest
    weight of all atoms sets the unit.
    """
    most = 2 ** (bits - 1) - 1
    tops = np.concatenate([np.zeros(0), *map(_largest_weights, coded.program.segments)])
    tops = tops[tops > 0]
    base = 2.0**step * _smallest_unit(coded.program, coded.never, tops, most)
    low = 0
    if shifts and len(tops):
        low = math.ceil(math.log2(max(tops.min() / (most * base), 2.0**-MOST_SHIFT)))
    for accumulator in (32, 64):
        limit = min(2 ** (accumulator - 1) - 1, EXACT)
        # If only the bias is too large for 32 bits, a coarser unit costs less than 64 bits.
        coarser = COARSER if _has_room(coded, inputs, bits) or accumulator == 64 else 0
        for power in range(low, coarser + 1):
            unit = math.ldexp(base, power)
            program = _at_unit(coded, inputs, bits, unit)
            if score_bound(program, inputs, bits) <= limit:
                return _Rounded(program, unit, accumulator)
    raise TooWide(
        "the scores of this model do not fit 64-bit integers, because its weights and intercepts "
        "differ too much in size"
    )


def _has_room(coded: Coded, inputs: Inputs, bits: int) -> bool:
    """Return whether the largest weights of all atoms fill at most half of 32 bits."""
    most, total = 2.0 ** (bits - 1), np.zeros(coded.program.n_leaves)
    for segment in coded.program.segments:
        sizes = value_sizes(segment, inputs)
        sizes = sizes if sizes.ndim == 1 else sizes.sum(axis=1)
        starts = segment.starts
        total += [sizes[a:b].sum() for a, b in itertools.pairwise(starts)]
    return bool(most * total.max(initial=0.0) <= 2.0**30)


def _largest_weights(segment: Segment) -> np.ndarray:
    """Return the largest weight of every atom. Constants of balls have a type of their own."""
    weights = np.abs(segment.weights if segment.weights.ndim == 2 else segment.weights[:, :-1])
    largest: np.ndarray = weights.reshape(len(weights), -1).max(axis=1, initial=0.0)
    return largest


def _smallest_unit(program: Program, never: np.ndarray, tops: np.ndarray, most: int) -> float:
    """Return the unit in which the largest weight is ``most``, or a fine one without weights.

    If a model is multiplied by a number, its unit is, too.
    """
    if len(tops):
        return max(float(tops.max()) / most * SLIGHTLY, SMALLEST)
    constants = [np.where(never, 0.0, program.bias)]
    constants += [segment.weights for segment in program.segments]
    top = max(float(np.abs(part).max(initial=0.0)) for part in constants)
    return max(top * FINE * SLIGHTLY, SMALLEST) if top > 0 else 1.0


def _at_unit(coded: Coded, inputs: Inputs, bits: int, unit: float) -> Program:
    """Return the program with weights and bias in whole numbers of the unit."""
    most, segments = 2 ** (bits - 1) - 1, []
    for segment in coded.program.segments:
        with np.errstate(divide="ignore", under="ignore"):
            over = np.log2(_largest_weights(segment) / (most * unit))
        shift = np.maximum(np.ceil(over), 0.0).astype(np.int64)
        scale = np.ldexp(unit, shift).reshape(-1, *[1] * (segment.weights.ndim - 1))
        weights = _whole(segment.weights / scale)
        segments.append(segment._replace(tables=segment.tables | {"shift": shift}, weights=weights))
    with np.errstate(over="ignore"):
        bias = _whole(np.where(coded.never, 0.0, coded.program.bias) / unit)
    program = coded.program._replace(segments=segments, bias=bias)
    if coded.never.any():  # below every score that another class can have
        floor = score_bound(program, inputs, bits) + 1
        sign = np.sign(coded.program.bias).astype(np.int64)
        segments = [_silent(segment, coded.never) for segment in segments]
        program = program._replace(
            segments=segments, bias=np.where(coded.never, sign * floor, bias)
        )
    return program


def _whole(values: np.ndarray) -> np.ndarray:
    """Return rounded values. Those that are too large for any score stay too large."""
    return np.clip(np.rint(values), -TOO_LARGE, TOO_LARGE).astype(np.int64)


def _silent(segment: Segment, never: np.ndarray) -> Segment:
    """Return a segment without weights for the classes that a leaf never answers."""
    leaf = np.repeat(np.arange(len(never)), np.diff(segment.starts))
    silent = never[leaf].reshape(len(leaf), *[1] * (segment.weights.ndim - 2), never.shape[1])
    return segment._replace(weights=np.where(silent, 0, segment.weights))


class _Judged(NamedTuple):
    rounded: _Rounded
    changed: float
    """Part of the decisions that change."""
    error: float
    """Mean squared error of the scores, apart from what all scores of a row share."""


class _Trial:
    """Compares rounded programs on codes of rows, without their balls."""

    def __init__(self, coded: Coded, inputs: Inputs, codes: np.ndarray, weight: np.ndarray) -> None:
        self.weight, self.coded = weight, coded.program
        self.values = [
            None if segment.weights.ndim == 3 else atom_values(segment, codes, inputs)
            for segment in coded.program.segments
        ]
        self.n_rows = len(codes)
        self.exact = self._scores(coded.program)

    def _scores(self, program: Program) -> list[np.ndarray]:
        """Return the scores of all rows as if they were in each leaf."""
        out = [np.repeat(own[None].astype(float), self.n_rows, axis=0) for own in program.bias]
        for segment, values in zip(program.segments, self.values, strict=True):
            if values is None:
                continue
            factor = np.ones(segment.n_atoms)
            if "shift" in segment.tables:
                factor = np.ldexp(1.0, segment.tables["shift"])
            for leaf, total in enumerate(out):
                own = slice(*segment.starts[leaf : leaf + 2])
                total += values[:, own] @ (segment.weights[own] * factor[own, None])
        return out

    def judged(self, rounded: _Rounded) -> _Judged:
        """Return how far a rounded program is from the one in codes."""
        return self._gap(rounded, *self.exact)

    def _gap(self, rounded: _Rounded, *wanted: np.ndarray) -> _Judged:
        """Return how far a rounded program is from wanted scores, one matrix for each leaf."""
        changed, error = 0.0, 0.0
        found = self._scores(rounded.program)
        for own, exact in zip(found, wanted, strict=True):
            changed += float(np.average(decide(own) != decide(exact), weights=self.weight))
            gap = np.clip(rounded.unit * own - exact, -1e15, 1e15)
            if gap.shape[1] > 1:
                gap = gap - gap.mean(axis=1, keepdims=True)
            squares = np.square(gap).mean(axis=1)
            error += float(np.average(squares, weights=self.weight))
        return _Judged(rounded, changed / len(found), error)

    def nearer(self, rounded: _Rounded, exact: np.ndarray, inputs: Inputs, bits: int) -> _Rounded:
        """Return a rounded program with the weights whose scores are nearest to the exact ones.

        If rounding changes no decision, it is returned as it is. So are programs with balls.
        """
        values = [own for own in self.values if own is not None]
        if len(values) < len(self.values):
            return rounded
        before = self._gap(rounded, exact)
        if not before.changed:
            return rounded
        segments = rounded.program.segments
        shift = [np.ldexp(1.0, segment.tables["shift"]) for segment in segments]
        columns = np.hstack([own * by for own, by in zip(values, shift, strict=True)])
        real = np.vstack([s.weights for s in self.coded.segments]) / rounded.unit
        real /= np.concatenate(shift)[:, None]
        whole = np.vstack([segment.weights for segment in segments])
        most = 2 ** (bits - 1) - 1
        scores = exact / rounded.unit
        found = nearest_weights(columns, scores, self.weight, real, whole, most)
        ends = np.cumsum([0, *(segment.n_atoms for segment in segments)])
        made = rounded.program._replace(
            bias=_whole(found.bias)[None],
            segments=[
                segment._replace(weights=_whole(found.weights[a:b]))
                for segment, (a, b) in zip(segments, itertools.pairwise(ends), strict=True)
            ],
        )
        after = self._gap(rounded._replace(program=made), exact)
        room = score_bound(made, inputs, bits) <= min(2 ** (rounded.accumulator - 1) - 1, EXACT)
        return after.rounded if room and after.error < before.error else rounded
