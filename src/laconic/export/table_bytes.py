"""Bytes of the tables of a header, before any weight is known.

The bounds hold for every predictor with the same atoms, if the centres of its balls lie among the
rows given to ``quantise``. Indices, thresholds and weights have the types that the header gives
them. A table whose entries are all equal is not written, which only makes the header smaller.
"""

from __future__ import annotations

import numpy as np

from laconic.export.c_rules import PLACES
from laconic.export.c_text import smallest
from laconic.export.window_tables import whole_masks, window_tables
from laconic.model.choose_codes import ALL_FEATURES, COMPARED, uses
from laconic.model.in_codes import FAR
from laconic.model.integers import HEIGHT_BITS
from laconic.model.program import Program
from laconic.model.segments import Segment

# A score of 32 bits has room for the bias if the atoms add up to at most half of it.
HALF = 2**30


class Layout:
    """The types of a header's numbers: ``bits`` of weights (None: float32) and what is given."""

    def __init__(self, program: Program, bits: int | None, given: str) -> None:
        self.program, self.bits, self.given = program, bits, given
        self.weight = 4 if bits is None else bits // 8
        kinds = {segment.kind for segment in program.segments}
        self.code = 4
        if bits is not None:
            self.code = bits // 8 if given == "float" else np.dtype(given).itemsize
        self.use = uses(program)
        self.reads_all = bool(kinds & set(ALL_FEATURES)) or program.routing is not None
        arithmetic = kinds - {*COMPARED, "look_up"} or program.routing
        self.clamped = given == "int16" and bits is not None and bool(arithmetic)
        self.direct = bits is None or (given != "float" and not self.clamped)
        self.wide = bits is not None and self._largest() > HALF
        self.far = bits is not None and (self.code > 1 or program.n_features * 510**2 >= 2**31)
        self.score = 8 if self.wide else 4
        self.distance = 8 if self.far else 4

    def _largest(self) -> float:
        """Return a bound on what the atoms of a leaf add to a score, whatever their weights."""
        most = 2.0 ** (self.bits or 0) / 2.0
        total = np.zeros(self.program.n_leaves)
        for segment in self.program.segments:
            size = {"gather": 256.0**self.code / 2}
            size |= dict.fromkeys(COMPARED, 1.0)
            each = size.get(segment.kind, 2.0**15)
            if segment.kind == "filled" and self.code > 1:
                each = float(FAR)
            if segment.kind == "gather" and self.given == "uint8":
                each = 256.0
            if segment.kind == "multiply" and self.given == "uint8":
                each = 2.0**16
            if segment.kind == "look_up":
                each = most
            if segment.kind == "bumps" and self.bits is not None:
                each = 2.0 ** (HEIGHT_BITS[self.bits] + 1)
            if segment.kind in ("balls", "soft_balls"):
                each = (self.program.n_features + 1.0) * 256.0**self.code
            total += np.diff(segment.starts) * each
        return float(most * total.max(initial=0.0))

    def index(self, per_input: int = 1) -> int:
        """Return the bytes of the number of an input, or of one of several numbers per input."""
        most = self.program.n_features if self.direct else len(self.use)
        return smallest(np.array([max(per_input * most - 1, 0)])).itemsize


def table_bytes(program: Program, bits: int | None, given: str, n_classes: int) -> int:
    """Return a bound on the bytes of all tables of a header."""
    layout = Layout(program, bits, given)
    k, leaves = program.n_outputs, program.n_leaves
    total = layout.score * leaves * k + 2 * n_classes
    for segment in program.segments:
        total += _segment_bytes(segment, layout)
        if leaves > 1:
            total += smallest(segment.starts).itemsize * len(segment.starts)
    routing = program.routing
    if routing is not None:
        total += layout.code * routing.centre.size + layout.distance * len(routing.limit)
        total += smallest(routing.inside).itemsize * len(routing.inside)
        if routing.nested:
            total += 2 * len(routing.first) + 2 * len(routing.outside)
    return total + _input_bytes(layout)


def _input_bytes(layout: Layout) -> int:
    """Return the bytes of the scales or ranges of the inputs."""
    if layout.direct:
        return 0
    n, all_features = len(layout.use), layout.program.n_features
    # Only models of balls and images are sure to read every feature.
    reads = 0 if layout.reads_all else smallest(np.array([all_features - 1])).itemsize
    if layout.clamped:
        return n * (reads + 4)
    # What counts is whether features differ in this. Kinds differ if features do, and unlike
    # features they never stop to differ when an atom is added.
    multiplied = {kind in ("multiply", "windows") for kind in set().union(*layout.use.values())}
    looked_up = any("look_up" in kinds for kinds in layout.use.values())
    differ = looked_up or (layout.code > 1 and len(multiplied) > 1)
    return n * (reads + 5 + (2 * layout.code if differ else 0))


def _segment_bytes(segment: Segment, layout: Layout) -> int:
    """Return a bound on the bytes of the tables of one segment."""
    n, tables = segment.n_atoms, segment.tables
    weights = layout.weight * n * layout.program.n_outputs
    shift = 0 if layout.bits is None else n
    per_atom = {
        "gather": layout.index(),
        "filled": layout.index() + (2 if layout.bits and layout.code == 1 else 4),
        "multiply": 2 * layout.index(),
        "at_most": layout.index() + layout.code,
        "equals": layout.index() + layout.code,
        "missing": layout.index() + (0 if layout.bits is None else layout.code),
        "rules": 2 * (layout.index(PLACES) + layout.code),
    }
    if segment.kind in per_atom:
        total = per_atom[segment.kind] * n + weights + shift
        if segment.kind == "multiply" and layout.bits is not None:
            total += n if layout.code > 1 else 0
            total += 2 * layout.code * n if layout.given == "float" else 0
        return total
    if segment.kind == "hinge":
        return _hinge_bytes(segment, layout) + weights + shift
    if segment.kind == "look_up":
        size = tables["value"].size
        places = 2 * smallest(np.array([size, int(tables["length"].max(initial=0))])).itemsize
        zero = layout.code if layout.given == "float" else 0
        return (layout.index() + places + zero) * n + layout.weight * size + weights + shift
    if segment.kind == "windows":
        return _window_bytes(segment, layout) + weights + shift
    per_ball = layout.distance + (0 if segment.kind == "balls" else 5)
    spheres = layout.code * tables["centre"].size + per_ball * n + shift
    if segment.kind == "bumps":
        return spheres + weights
    slopes = segment.weights[:, :-1].size
    constants = layout.score * segment.weights[:, -1].size
    return spheres + layout.weight * slopes + constants


def _hinge_bytes(segment: Segment, layout: Layout) -> int:
    """Return a bound on the bytes of directions, knots and shifts."""
    length, feature = segment.tables["length"], segment.tables["feature"]
    n_terms, every = len(feature), np.arange(layout.program.n_features)
    total = (4 if layout.bits is None else 5) * segment.n_atoms + layout.weight * n_terms
    in_order = np.array_equal(feature, np.tile(every, segment.n_atoms))
    if not in_order or (length != len(every)).any():
        total += layout.index() * n_terms
    if (length != length[0]).any():
        total += smallest(np.array([n_terms])).itemsize * (segment.n_atoms + 1)
    return total


def _window_bytes(segment: Segment, layout: Layout) -> int:
    if layout.bits is None:
        return window_tables(segment, 4).bytes(layout.weight)
    return window_tables(whole_masks(segment), 1).bytes(layout.weight)
