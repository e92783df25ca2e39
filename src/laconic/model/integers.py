"""Integer programs on codes of rows, exactly as the C code computes them.

Every number here is a whole number up to 2^53, so products and sums in float64 are exact. That lets
BLAS add them up in any order.

Only numbers that are not negative are shifted to the right. Products of inputs and linear functions
in soft balls may be negative. `rescale` rounds them half away from zero. Responses of templates and
heights of balls are never negative, and are rounded down. Ties between classes go to the lowest
class.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from laconic.model.conditions import ABOVE, EQUAL
from laconic.model.input_codes import Inputs
from laconic.model.program import Program
from laconic.model.segments import PLACED, SIDES, Segment, ends_of
from laconic.model.single import leaves_of

# Whole numbers up to this are exact in float64.
EXACT = 2**53
# Products and masked responses are rescaled to at most this value before they are weighted.
LARGEST_VALUE = 2**15 - 1
# Products of two bytes are never negative, so they have one bit more. They are not rescaled.
LARGEST_OF_BYTES = 2**16 - 1
# Bound on the size of the projection of codes on the direction of a hinge.
DIRECTION = 2**30 - 2**17
# A mask has weights from 0 to MASK. The masked response is divided by 2^MASK_BITS.
MASK, MASK_BITS = 255, 8
# Bits of the height of a soft ball or a bump, by the bits of a weight.
HEIGHT_BITS = {8: 8, 16: 12}
# A squared distance is shifted to at most this many bits before its height is computed.
FALL_BITS = 15
# Rows that are computed together.
TOGETHER = 2048


class IntegerProgram(NamedTuple):
    """A program of whole numbers.

    ``bits`` are those of a weight. ``unit`` is the value of one unit of the scores.
    ``accumulator`` has the bits of a score, and ``distance`` those of a squared distance.
    """

    program: Program
    inputs: Inputs
    bits: int
    unit: float
    accumulator: int
    distance: int

    def scores(self, X: Any) -> np.ndarray:
        """Return the scores of rows, (n_rows, n_outputs), in int64."""
        out = np.empty((X.shape[0], self.program.n_outputs), dtype=np.int64)
        for start in range(0, X.shape[0], TOGETHER):
            codes = self.inputs.codes(X[start : start + TOGETHER])
            out[start : start + TOGETHER] = self.code_scores(codes)
        return out

    def code_scores(self, codes: np.ndarray) -> np.ndarray:
        """Return the scores of codes (n_rows, n_read)."""
        program = self.program
        out = np.empty((len(codes), program.n_outputs), dtype=np.int64)
        leaf = leaves_of(program, lambda centre: squares(codes, centre[None])[:, 0], len(codes))
        for number in np.unique(leaf):
            held = np.flatnonzero(leaf == number)
            total = np.repeat(program.bias[number : number + 1].astype(np.float64), len(held), 0)
            for segment in program.segments:
                own = part_of(segment, int(number))
                if own.n_atoms:
                    total += segment_scores(own, codes[held], self.inputs, self.bits)
            out[held] = total.astype(np.int64)
        return out


def part_of(segment: Segment, leaf: int) -> Segment:
    """Return the atoms of one leaf. Templates and masks stay as they are."""
    first, last = int(segment.starts[leaf]), int(segment.starts[leaf + 1])
    if first == 0 and last == segment.n_atoms:
        return segment
    tables = dict(segment.tables)
    for name in PER_ENTRY.get(segment.kind, ()):
        ends = ends_of(tables["length"])
        tables[name] = tables[name][ends[first] : ends[last]]
    for name in PER_ATOM[segment.kind]:
        tables[name] = tables[name][first:last]
    starts = np.array([0, last - first])
    return Segment(segment.kind, tables, segment.weights[first:last], starts)


PER_ATOM: dict[str, tuple[str, ...]] = {
    "gather": ("feature", "shift"),
    "filled": ("feature", "value", "shift"),
    "multiply": ("first", "second", "rescale", "shift"),
    "at_most": ("feature", "value", "shift"),
    "equals": ("feature", "value", "shift"),
    "rules": (
        "first",
        "first_value",
        "first_test",
        "second",
        "second_value",
        "second_test",
        "shift",
    ),
    "hinge": ("length", "knot", "rescale", "shift"),
    "look_up": ("feature", "length", "shift"),
    "balls": ("centre", "limit", "shift"),
    "soft_balls": ("centre", "limit", "fall", "drop", "shift"),
    "bumps": ("centre", "limit", "fall", "drop", "shift"),
    "windows": (*PLACED, "shift"),
}
"""Tables that have one entry for each atom, by kind of segment."""

PER_ENTRY = {"look_up": ("value",), "hinge": ("feature", "value")}
"""Tables that have as many entries for each atom as its ``length`` says, by kind of segment."""


def rescale(values: np.ndarray, bits: np.ndarray | int) -> np.ndarray:
    """Return values divided by 2^bits, rounded half away from zero."""
    half = (np.int64(1) << np.asarray(bits, dtype=np.int64)) >> 1
    size = (np.abs(values) + half) >> bits
    return np.where(values < 0, -size, size)


def squares(codes: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return Σ_f (code_f − centre_f)², (n_rows, n_centres)."""
    top = max(np.abs(codes).max(initial=0), np.abs(centres).max(initial=0))
    exact = np.float64 if 4 * codes.shape[1] * int(top) ** 2 <= EXACT else np.int64
    X, C = codes.astype(exact), centres.astype(exact)
    out = np.square(X).sum(axis=1)[:, None] - 2 * (X @ C.T) + np.square(C).sum(axis=1)
    return out.astype(np.int64)


def segment_scores(segment: Segment, codes: np.ndarray, inputs: Inputs, bits: int) -> np.ndarray:
    """Return what the atoms of a segment add to the scores, in float64 (exact)."""
    factor = np.ldexp(1.0, segment.tables["shift"])
    if segment.kind in ("balls", "soft_balls"):
        return _ball_scores(segment, codes, bits, factor)
    values = atom_values(segment, codes, inputs)
    weighted: np.ndarray = values @ (segment.weights * factor[:, None])
    return weighted


def atom_values(segment: Segment, codes: np.ndarray, inputs: Inputs) -> np.ndarray:
    """Return the values of the atoms before they are weighted, (n_rows, n_atoms), in float64."""
    values: np.ndarray = _VALUES[segment.kind](segment.tables, codes, inputs)
    return values.astype(np.float64)


def _gather(tables: Any, codes: np.ndarray, inputs: Inputs) -> np.ndarray:
    return codes[:, tables["feature"]]


def _filled(tables: Any, codes: np.ndarray, inputs: Inputs) -> np.ndarray:
    own = codes[:, tables["feature"]]
    return np.where(own == inputs.missing, tables["value"], own)


def _multiply(tables: Any, codes: np.ndarray, inputs: Inputs) -> np.ndarray:
    moved = codes - inputs.zero
    product = moved[:, tables["first"]] * moved[:, tables["second"]]
    return rescale(product, tables["rescale"])


def _at_most(tables: Any, codes: np.ndarray, inputs: Inputs) -> np.ndarray:
    return codes[:, tables["feature"]] <= tables["value"]


def _equals(tables: Any, codes: np.ndarray, inputs: Inputs) -> np.ndarray:
    return codes[:, tables["feature"]] == tables["value"]


def _rules(tables: Any, codes: np.ndarray, inputs: Inputs) -> np.ndarray:
    both = np.ones((len(codes), len(tables["first"])), dtype=bool)
    for side in SIDES:
        own, value, test = codes[:, tables[side]], tables[f"{side}_value"], tables[f"{side}_test"]
        above = (own >= value) & (own != inputs.missing)
        both &= np.where(test == ABOVE, above, np.where(test == EQUAL, own == value, own <= value))
    return both


def _hinge(tables: Any, codes: np.ndarray, inputs: Inputs) -> np.ndarray:
    start = np.repeat(np.arange(len(tables["length"])), tables["length"])
    directions = np.zeros((codes.shape[1], len(tables["length"])))
    np.add.at(directions, (tables["feature"], start), tables["value"])
    above = (codes.astype(np.float64) @ directions).astype(np.int64) - tables["knot"]
    return np.maximum(above, 0) >> tables["rescale"]


def _look_up(tables: Any, codes: np.ndarray, inputs: Inputs) -> np.ndarray:
    index = codes[:, tables["feature"]] - inputs.zero[tables["feature"]]
    known = (index >= 0) & (index < tables["length"])
    first = ends_of(tables["length"])[:-1]
    return np.where(known, tables["value"][np.where(known, index, 0) + first], 0)


def _windows(tables: Any, codes: np.ndarray, inputs: Inputs) -> np.ndarray:
    from laconic.model.patch_kernels import LANES, lane_integers  # it imports Numba

    height, width = tables["shape"].tolist()
    images = (codes - inputs.zero).reshape(-1, height, width)
    sizes, down = tables["size"], int(tables["down"][0])
    templates = np.split(tables["pixel"].astype(np.float64), np.cumsum(np.square(sizes))[:-1])
    shapes = np.column_stack([tables["rows"], tables["columns"]])
    weights = np.split(tables["weight"], np.cumsum(shapes.prod(axis=1))[:-1])
    masks = [own.reshape(shape) for own, shape in zip(weights, shapes, strict=True)]
    atoms = [
        (templates[t], masks[m], down, int(top), int(left), int(sizes[t]))
        for t, m, top, left in zip(*(tables[name] for name in PLACED), strict=True)
    ]
    out = np.zeros((len(codes), len(atoms)), dtype=np.int64)
    pixels, sums = np.zeros((height, width, LANES)), np.empty(LANES)
    values = np.empty(LANES, dtype=np.int64)
    for start in range(0, len(images), LANES):
        some = images[start : start + LANES]
        pixels[:, :, : len(some)] = some.transpose(1, 2, 0)
        for j, atom in enumerate(atoms):
            lane_integers(pixels, *atom, sums, values)
            out[start : start + LANES, j] = values[: len(some)] >> MASK_BITS
    return out


def heights(tables: Any, codes: np.ndarray) -> np.ndarray:
    """Return the heights of balls at rows, (n_rows, n_balls): 0 outside, and 1 inside if hard."""
    left = tables["limit"] - squares(codes, tables["centre"])
    if "fall" not in tables:
        return (left >= 0).astype(np.int64)
    return ((np.maximum(left, 0) >> tables["drop"]) * tables["fall"]) >> FALL_BITS


def _bumps(tables: Any, codes: np.ndarray, inputs: Inputs) -> np.ndarray:
    return heights(tables, codes)


_VALUES = {
    "gather": _gather,
    "filled": _filled,
    "multiply": _multiply,
    "at_most": _at_most,
    "equals": _equals,
    "rules": _rules,
    "hinge": _hinge,
    "look_up": _look_up,
    "bumps": _bumps,
    "windows": _windows,
}


def _ball_scores(segment: Segment, codes: np.ndarray, bits: int, factor: np.ndarray) -> np.ndarray:
    """Return the sum over balls of height times linear function."""
    out = np.zeros((len(codes), segment.weights.shape[2]))
    high = heights(segment.tables, codes)
    X = np.column_stack([codes, np.ones(len(codes), dtype=np.int64)]).astype(np.float64)
    for b in range(segment.n_atoms):
        held = np.flatnonzero(high[:, b])
        linear = X[held] @ segment.weights[b].astype(np.float64)
        if segment.kind == "soft_balls":
            linear = rescale(linear.astype(np.int64), HEIGHT_BITS[bits]).astype(np.float64)
        out[held] += linear * high[held, b, None] * factor[b]
    return out
