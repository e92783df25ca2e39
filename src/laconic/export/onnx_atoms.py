"""The atoms of a program in ONNX operators: what a segment adds to the scores.

Everything is computed in float64. Numbers of an integer program are whole and at most 2^53 (see
`laconic.model.proof`), so they are exact in any order. Shifts to the right are products with powers
of two, rounded down.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from laconic.export.onnx_graph import Graph
from laconic.export.onnx_windows import windows
from laconic.model.conditions import AT_MOST, EQUAL, MISSING
from laconic.model.input_codes import Inputs
from laconic.model.integers import FALL_BITS, HEIGHT_BITS
from laconic.model.program import Program
from laconic.model.segments import SIDES, Segment, ends_of


class GraphRows(NamedTuple):
    """Rows in a graph: inputs of a float program, or codes of an integer program.

    ``x`` is (n_rows, n_features) in float64. ``leaf`` holds the leaf of every row, (n_rows, 1), or
    is None if there is only one. ``bits`` are those of an integer weight.
    """

    graph: Graph
    x: str
    program: Program
    leaf: str | None
    inputs: Inputs | None
    bits: int


def segment_scores(rows: GraphRows, segment: Segment) -> str:
    """Return what the atoms of a segment add to the scores, (n_rows, n_outputs)."""
    rows.graph.wide(segment.weights.size // rows.program.n_outputs)
    if segment.kind in ("balls", "soft_balls"):
        return _ball_scores(rows, segment)
    values = _own(rows, segment, _VALUES[segment.kind](rows, segment.tables))
    weights = segment.weights * _factors(segment)[:, None]
    return rows.graph("MatMul", values, weights.astype(np.float64))


def squares(graph: Graph, x: str, centres: np.ndarray) -> str:
    """Return Σ_f (x_f − c_f)², (n_rows, n_centres)."""

    def body(inner: Graph, centre: str) -> str:
        gap = inner("Sub", x, centre)
        return inner("ReduceSumSquare", gap, [1], keepdims=0)

    return graph("Transpose", graph.scan(body, centres.astype(np.float64)), perm=[1, 0])


def _factors(segment: Segment) -> np.ndarray:
    """Return the powers of two of the atoms of an integer program, or ones."""
    shift = segment.tables.get("shift", np.zeros(segment.n_atoms, dtype=np.int64))
    return np.ldexp(1.0, shift)


def _own(rows: GraphRows, segment: Segment, values: str) -> str:
    """Return values of atoms, (n_rows, n_atoms), that are 0 outside the leaf of a row."""
    if rows.leaf is None:
        return values
    leaf = np.repeat(np.arange(rows.program.n_leaves), np.diff(segment.starts))
    return rows.graph("Where", rows.graph("Equal", rows.leaf, leaf[None]), values, 0.0)


def _taken(rows: GraphRows, features: np.ndarray) -> str:
    return rows.graph("Gather", rows.x, features, axis=1)


def _rescaled(graph: Graph, values: str, bits: Any) -> str:
    """Return values divided by 2^bits, rounded half away from zero."""
    half = (np.int64(1) << np.asarray(bits, dtype=np.int64)) >> 1
    size = graph("Add", graph("Abs", values), half.astype(np.float64))
    size = graph.down(size, bits)
    return graph("Mul", graph("Sign", values), size)


# -- values ----------------------------------------------------------------------------------------


def _gather(rows: GraphRows, tables: Any) -> str:
    return _taken(rows, tables["feature"])


def _filled(rows: GraphRows, tables: Any) -> str:
    x = _taken(rows, tables["feature"])
    lost = rows.graph("IsNaN", x)
    if rows.inputs is not None:
        lost = rows.graph("Equal", x, float(rows.inputs.missing or 0))
    return rows.graph("Where", lost, tables["value"].astype(np.float64), x)


def _multiply(rows: GraphRows, tables: Any) -> str:
    factors = []
    for name in ("first", "second"):
        factor = _taken(rows, tables[name])
        zero = None if rows.inputs is None else rows.inputs.zero[tables[name]]
        if zero is not None and zero.any():
            factor = rows.graph("Sub", factor, zero.astype(np.float64))
        factors.append(factor)
    product = rows.graph("Mul", *factors)
    if rows.inputs is None or not tables["rescale"].any():
        return product
    return _rescaled(rows.graph, product, tables["rescale"])


def _compare(operator: str) -> Callable[[GraphRows, Any], str]:
    def values(rows: GraphRows, tables: Any) -> str:
        asked = tables["value"].astype(np.float64)
        answer = rows.graph(operator, _taken(rows, tables["feature"]), asked)
        return rows.graph.cast(answer, np.float64)

    return values


def _missing(rows: GraphRows, tables: Any) -> str:
    return rows.graph.cast(rows.graph("IsNaN", _taken(rows, tables["feature"])), np.float64)


def _rules(rows: GraphRows, tables: Any) -> str:
    """Return whether both conditions hold.

    Compute every test for all rules, then keep the one that each rule uses.
    """
    graph, sides = rows.graph, []
    for side in SIDES:
        x, value = _taken(rows, tables[side]), tables[f"{side}_value"].astype(np.float64)
        test, held = tables[f"{side}_test"], []
        for number in np.unique(test).tolist():
            answer = graph.cast(_answer(rows, number, x, value), np.float64)
            held.append(graph("Mul", answer, (test == number).astype(np.float64)))
        sides.append(graph("Sum", *held))
    return graph("Mul", *sides)


def _answer(rows: GraphRows, test: int, x: str, value: np.ndarray) -> str:
    """Return which numbers pass a test. In codes, above θ is from the first such code on."""
    graph = rows.graph
    if test == AT_MOST:
        return graph("LessOrEqual", x, value)
    if test == EQUAL:
        return graph("Equal", x, value)
    if test == MISSING:
        return graph("IsNaN", x)
    if rows.inputs is None:
        return graph("Greater", x, value)
    above = graph("GreaterOrEqual", x, value)
    if rows.inputs.missing is None:
        return above
    return graph("And", above, graph("Less", x, float(rows.inputs.missing)))


def _hinge(rows: GraphRows, tables: Any) -> str:
    graph, n = rows.graph, len(tables["knot"])
    features, place = np.unique(tables["feature"], return_inverse=True)
    directions = np.zeros((len(features), n))
    np.add.at(directions, (place, np.repeat(np.arange(n), tables["length"])), tables["value"])
    value = graph("MatMul", _taken(rows, features), directions)
    value = graph("Sub", value, tables["knot"].astype(np.float64))
    value = graph("Where", graph("Less", value, 0.0), 0.0, value)  # a missing value stays missing
    return value if rows.inputs is None else graph.down(value, tables["rescale"])


def _look_up(rows: GraphRows, tables: Any) -> str:
    graph, x, length = rows.graph, _taken(rows, tables["feature"]), tables["length"]
    if not len(tables["value"]):
        return graph("Mul", graph.cast(graph("IsNaN", x), np.float64), 0.0)
    if rows.inputs is not None:
        x = graph("Sub", x, rows.inputs.zero[tables["feature"]].astype(np.float64))
    known = graph("And", graph("GreaterOrEqual", x, 0.0), graph("Less", x, length.astype(float)))
    known = graph("And", known, graph("Equal", x, graph("Floor", x)))
    place = graph.cast(graph("Where", known, x, 0.0), np.int64)
    first = ends_of(length)[:-1]
    place = graph("Where", known, graph("Add", place, first), 0)
    value = graph("Gather", tables["value"].astype(np.float64), place, axis=0)
    return graph("Where", known, value, 0.0)


def _windows(rows: GraphRows, tables: Any) -> str:
    x = rows.x
    if rows.inputs is not None and rows.inputs.zero.any():
        x = rows.graph("Sub", x, rows.inputs.zero.astype(np.float64))
    return windows(rows.graph, x, tables)


def _heights(rows: GraphRows, tables: Any, soft: bool = True) -> str:
    """Return the heights of balls at rows, (n_rows, n_balls): 0 outside, and 1 inside if hard."""
    graph = rows.graph
    distance = squares(graph, rows.x, tables["centre"])
    limit = tables["limit"].astype(np.float64)
    if rows.inputs is None:
        inside = graph("Less", distance, limit)
        if not soft:
            return graph.cast(inside, np.float64)
        safe = np.where(limit > 0, limit, 1.0)
        return graph("Where", inside, graph("Sub", 1.0, graph("Div", distance, safe)), 0.0)
    if not soft:
        return graph.cast(graph("LessOrEqual", distance, limit), np.float64)
    left = graph("Max", graph("Sub", limit, distance), 0.0)
    steps = graph("Mul", graph.down(left, tables["drop"]), tables["fall"].astype(np.float64))
    return graph.down(steps, FALL_BITS)


_VALUES: dict[str, Callable[[GraphRows, Any], str]] = {
    "gather": _gather,
    "filled": _filled,
    "multiply": _multiply,
    "at_most": _compare("LessOrEqual"),
    "equals": _compare("Equal"),
    "missing": _missing,
    "rules": _rules,
    "hinge": _hinge,
    "look_up": _look_up,
    "bumps": _heights,
    "windows": _windows,
}
"""How the values of each kind of segment are computed, (n_rows, n_atoms)."""


# -- balls -----------------------------------------------------------------------------------------


def _ball_scores(rows: GraphRows, segment: Segment) -> str:
    """Return the sum over balls of height times linear function."""
    graph, weights = rows.graph, segment.weights.astype(np.float64)
    n, _, n_outputs = weights.shape
    graph.wide(n * n_outputs)
    slopes = np.moveaxis(weights[:, :-1], 0, 1).reshape(-1, n * n_outputs)
    linear = graph("Add", graph("MatMul", rows.x, slopes), weights[:, -1].ravel())
    linear = graph("Reshape", linear, [0, n, n_outputs])
    if segment.kind == "soft_balls" and rows.inputs is not None:
        linear = _rescaled(graph, linear, HEIGHT_BITS[rows.bits])
    height = _heights(rows, segment.tables, segment.kind == "soft_balls")
    height = _own(rows, segment, height)
    height = graph("Unsqueeze", height, [2])
    inside = graph("Greater", height, 0.0)
    factor = _factors(segment)[:, None]
    value = graph("Mul", linear, height if (factor == 1).all() else graph("Mul", height, factor))
    return graph("ReduceSum", graph("Where", inside, value, 0.0), [1], keepdims=0)
