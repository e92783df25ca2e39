"""Proofs that no accumulator of an integer program overflows, for every input in its range.

The bounds use only the tables of the program and the ranges of its inputs. A sum is bounded by the
sum of the sizes of its terms, so every partial sum keeps to the bound, in any order.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from laconic.model.input_codes import Inputs
from laconic.model.integers import EXACT, FALL_BITS, HEIGHT_BITS, MASK, MASK_BITS
from laconic.model.program import Program
from laconic.model.segments import Segment, Tables, ends_of


class Bound(NamedTuple):
    """The largest size of a number, for every input, and the bits of the integer that holds it."""

    what: str
    largest: int
    bits: int
    signed: bool = True

    def __str__(self) -> str:
        kind = "" if self.signed else " without a sign"
        return f"{self.what}: at most {self.largest:,}, in {self.bits} bits{kind}"

    @property
    def fits(self) -> bool:
        """Whether an integer of so many bits holds the number."""
        return self.largest < 2 ** (self.bits - self.signed)


def code_sizes(inputs: Inputs) -> np.ndarray:
    """Return the largest size of the code of every feature that is read."""
    sizes: np.ndarray = np.abs(_ends(inputs)).max(axis=0)
    return sizes


def _ends(inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest codes. The code of missing values is among them."""
    high = inputs.high if inputs.missing is None else np.maximum(inputs.high, inputs.missing)
    return inputs.low, high


def value_sizes(segment: Segment, inputs: Inputs) -> np.ndarray:
    """Return the largest sizes of the values that are weighted, in float64.

    The shape is (n_atoms,), or (n_atoms, n_features + 1) for the columns of balls.
    """
    tables, n = segment.tables, segment.n_atoms
    if segment.kind == "gather":
        sizes = code_sizes(inputs)[tables["feature"]]
    elif segment.kind == "filled":
        known = np.abs([inputs.low, inputs.high]).max(axis=0)[tables["feature"]]
        sizes = np.maximum(known, np.abs(tables["value"]))
    elif segment.kind == "multiply":
        half = (np.int64(1) << tables["rescale"]) >> 1
        sizes = product_sizes(tables["first"], tables["second"], inputs) + half
        sizes = sizes >> tables["rescale"]
    elif segment.kind == "hinge":
        above = direction_ends(tables, inputs)[1] - tables["knot"]
        sizes = np.maximum(above, 0) >> tables["rescale"]
    elif segment.kind == "look_up":
        ends = ends_of(tables["length"])
        parts = [tables["value"][a:b] for a, b in itertools.pairwise(ends)]
        sizes = np.array([np.abs(part).max(initial=0) for part in parts], dtype=np.int64)
    elif segment.kind == "windows":
        reach = responses(segment, inputs)[1][tables["template"]]
        sizes = ((reach >> tables["down"][0]) * MASK) >> MASK_BITS
    elif segment.kind == "bumps":
        sizes = height_steps(segment) >> FALL_BITS
    elif segment.kind in ("balls", "soft_balls"):
        sizes = np.broadcast_to(np.append(code_sizes(inputs), 1), segment.weights.shape[:2])
    else:
        sizes = np.ones(n, dtype=np.int64)
    return sizes.astype(np.float64)


def product_sizes(first: np.ndarray, second: np.ndarray, inputs: Inputs) -> np.ndarray:
    """Return the largest sizes of products of two features."""
    ends = [code - inputs.zero for code in _ends(inputs)]
    return np.abs([a[first] * b[second] for a in ends for b in ends]).max(axis=0, initial=0)


def direction_ends(tables: Tables, inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest projections of codes on the direction of every hinge."""
    terms = np.sort([tables["value"] * code[tables["feature"]] for code in _ends(inputs)], axis=0)
    sums = np.concatenate([np.zeros((2, 1), dtype=np.int64), np.cumsum(terms, axis=1)], axis=1)
    low, high = np.diff(sums[:, ends_of(tables["length"])], axis=1)
    return low, high


def direction_sizes(tables: Tables, inputs: Inputs) -> np.ndarray:
    """Return a bound on every partial sum of a hinge: its terms, and then its knot."""
    terms = np.abs(tables["value"]) * code_sizes(inputs)[tables["feature"]]
    sizes: np.ndarray = np.diff(np.cumsum([0, *terms.tolist()])[ends_of(tables["length"])])
    return sizes + np.abs(tables["knot"])


def responses(segment: Segment, inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest size and the largest value of the response of every template."""
    low, high = (int(f) for f in pixel_range(inputs))
    ends = np.cumsum([0, *np.square(segment.tables["size"])])
    sizes, values = [], []
    for a, b in itertools.pairwise(ends):
        own = segment.tables["pixel"][a:b]
        sizes.append(int(np.abs(own).sum()) * max(abs(low), abs(high)))
        values.append(int(np.maximum(own * low, own * high).sum()))
    return np.array(sizes, dtype=np.int64), np.array(values, dtype=np.int64)


def pixel_range(inputs: Inputs) -> tuple[int, int]:
    """Return the smallest and the largest pixel, of which 0 is dark."""
    low, high = (code - inputs.zero for code in _ends(inputs))
    return int(low.min(initial=0)), int(high.max(initial=0))


def largest_distances(centre: np.ndarray, inputs: Inputs) -> np.ndarray:
    """Return the largest squared distance of codes from every centre."""
    low, high = (np.square(code - centre) for code in _ends(inputs))
    far: np.ndarray = np.maximum(low, high).sum(axis=1)
    return far


def height_steps(segment: Segment) -> np.ndarray:
    """Return the largest heights of soft balls or bumps, before the last shift."""
    steps = np.maximum(segment.tables["limit"], 0) >> segment.tables["drop"]
    largest: np.ndarray = steps * segment.tables["fall"]
    return largest


def largest_sums(segment: Segment, inputs: Inputs, bits: int) -> np.ndarray:
    """Return a bound on what a segment of integer weights adds to the scores.

    The shape is (n_leaves, n_outputs). For balls, the linear function itself keeps to it, too.
    """
    sums = np.abs(segment.weights.astype(np.float64)) * value_sizes(segment, inputs)[..., None]
    if sums.ndim == 3:
        sums = sums.sum(axis=1)
    if segment.kind == "soft_balls":
        width = HEIGHT_BITS[bits]
        top = height_steps(segment) >> FALL_BITS
        sums = sums + 2 ** (width - 1)  # before it is rescaled
        sums = np.maximum(np.floor(sums / 2**width) * top[:, None], sums)
    sums = sums * np.ldexp(1.0, segment.tables["shift"])[:, None]
    starts = segment.starts
    return np.array([sums[a:b].sum(axis=0) for a, b in itertools.pairwise(starts)])


def score_bound(program: Program, inputs: Inputs, bits: int) -> int:
    """Return a bound on the size of every partial sum of the scores."""
    sums = np.abs(program.bias.astype(np.float64))
    for segment in program.segments:
        sums += largest_sums(segment, inputs, bits)
    top = float(sums.max(initial=0.0))
    return int(top) if top < 2.0**62 else 2**62


def bounds(program: Program, inputs: Inputs, bits: int, accumulator: int) -> list[Bound]:
    """Return the bounds on everything that is added up or multiplied."""
    out = [Bound("score", score_bound(program, inputs, bits), accumulator)]
    balls = [] if program.routing is None else [(program.routing.centre, program.routing.limit)]
    for segment in program.segments:
        tables = segment.tables
        if segment.kind == "multiply":
            sizes = product_sizes(tables["first"], tables["second"], inputs)
            sizes = sizes + ((np.int64(1) << tables["rescale"]) >> 1)  # before it is rescaled
            out.append(Bound("product of two inputs", int(sizes.max(initial=0)), 32))
            sizes = value_sizes(segment, inputs)
            signed = inputs.given != "uint8"
            out.append(Bound("rescaled product", int(sizes.max(initial=0)), 16, signed))
        elif segment.kind == "hinge":
            sizes = direction_sizes(tables, inputs)
            out.append(Bound("projection on a direction", int(sizes.max(initial=0)), 32))
            sizes = value_sizes(segment, inputs)
            out.append(Bound("rescaled hinge", int(sizes.max(initial=0)), 16))
        elif segment.kind == "windows":
            sizes, values = responses(segment, inputs)
            top = int(values.max(initial=0)) >> int(tables["down"][0])
            out.append(Bound("pixel", max(map(abs, pixel_range(inputs))), 16))
            out.append(Bound("response of a template", int(sizes.max(initial=0)), 32))
            out.append(Bound("shifted response", top, 16))
            out.append(Bound("masked response", top * MASK, 32))
            out.append(Bound("rescaled response", (top * MASK) >> MASK_BITS, 16))
        elif "centre" in tables:
            balls.append((tables["centre"], tables["limit"]))
            if "fall" in tables:
                out.append(Bound("height", int(height_steps(segment).max(initial=0)), 32))
    if balls:
        far = [largest_distances(centre, inputs).max(initial=0) for centre, _ in balls]
        top = int(max(far + [limit.max(initial=0) for _, limit in balls]))
        out.append(Bound("squared distance", top, 32 if top < 2**31 else 64))
    return out


def overflow(proof: list[Bound]) -> Bound | None:
    """Return the first number that does not fit its integer, or is not exact in Python."""
    return next((bound for bound in proof if not bound.fits or bound.largest > EXACT), None)
