"""The float32 form of a program, and its scores in a stated order.

C code of a float model computes the same operations in the same order, each rounded to float32.
So both give the same bits. The order is: the bias of the leaf, then segment by segment, atom by
atom, pixel by pixel and feature by feature. Squared distances and responses start from 0. Atoms of
windows have the order of their templates, so that a chip computes each response once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from laconic.model.conditions import EQUAL, passes
from laconic.model.program import Program
from laconic.model.segments import SIDES, Segment, by_template, ends_of

F32 = np.float32
# Rows that are computed together.
TOGETHER = 4096


def rounded_down(values: np.ndarray) -> np.ndarray:
    """Return the largest float32 numbers that are at most ``values``.

    A float32 number is at most v if and only if it is at most v rounded down.
    """
    with np.errstate(over="ignore"):
        nearest = values.astype(F32)
    down = np.nextafter(nearest, F32(-np.inf))
    return np.where(nearest > values, down, nearest).astype(F32)


def single(program: Program) -> Program:
    """Return a program whose numbers are all float32. Numbers beyond its range become its ends."""

    def table(segment: Segment, name: str, values: np.ndarray) -> np.ndarray:
        if segment.kind == "at_most" and name == "value":
            return _limited(rounded_down(values))
        if segment.kind == "rules" and name.endswith("_value"):
            equal = segment.tables[name.replace("value", "test")] == EQUAL
            return np.where(equal, _rounded(values), _limited(rounded_down(values)))
        return _rounded(values) if values.dtype.kind == "f" else values

    segments = [
        segment._replace(
            tables={name: table(segment, name, t) for name, t in segment.tables.items()},
            weights=_rounded(segment.weights),
        )
        for segment in program.segments
    ]
    segments = [by_template(own) if own.kind == "windows" else own for own in segments]
    routing = program.routing
    if routing is not None:
        # A hole of all rows holds those whose squared distance is finite in float32.
        limit = _limited(rounded_down(routing.limit))
        routing = routing._replace(centre=_rounded(routing.centre), limit=limit)
    return program._replace(bias=_rounded(program.bias), segments=segments, routing=routing)


def _rounded(values: np.ndarray) -> np.ndarray:
    """Return the nearest finite float32 numbers."""
    with np.errstate(over="ignore"):
        return _limited(values.astype(F32))


def _limited(values: np.ndarray) -> np.ndarray:
    """Return float32 numbers in which infinity is the largest finite number."""
    largest = np.finfo(F32).max
    return np.clip(values, -largest, largest)


def single_scores(program: Program, X: np.ndarray) -> np.ndarray:
    """Return the scores of rows in float32, (n_rows, n_outputs), in the order of this module."""
    X = np.asarray(X, dtype=F32)
    out = np.empty((len(X), program.n_outputs), dtype=F32)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for start in range(0, len(X), TOGETHER):
            rows = X[start : start + TOGETHER]
            leaf = leaves_of(program, lambda centre, rows=rows: _squares(rows, centre), len(rows))
            for number in np.unique(leaf):
                held = np.flatnonzero(leaf == number)
                out[start + held] = _leaf_scores(program, int(number), rows[held])
    return out


def leaves_of(program: Program, squares: Any, n_rows: int) -> np.ndarray:
    """Return the leaf of every row. ``squares(centre)`` returns ‖x − centre‖² of all rows."""
    routing = program.routing
    if routing is None:
        return np.zeros(n_rows, dtype=np.int64)
    place = np.zeros(n_rows, dtype=np.int64)
    for node in range(len(routing.outside)):  # a node lies before the nodes inside it
        here = place == node
        target = np.full(n_rows, routing.outside[node])
        for hole in range(routing.first[node], routing.first[node + 1]):
            target[squares(routing.centre[hole]) <= routing.limit[hole]] = routing.inside[hole]
        place[here] = target[here]
    return -1 - place


def _leaf_scores(program: Program, leaf: int, X: np.ndarray) -> np.ndarray:
    scores = np.repeat(program.bias[leaf : leaf + 1], len(X), axis=0)
    for segment in program.segments:
        for j in range(segment.starts[leaf], segment.starts[leaf + 1]):
            _ADD[segment.kind](segment, j, X, scores)
    return scores


def _squares(X: np.ndarray, centre: np.ndarray) -> np.ndarray:
    total = np.zeros(len(X), dtype=F32)
    for f in range(X.shape[1]):
        gap = X[:, f] - centre[f]
        total = total + gap * gap
    return total


def _add_value(segment: Segment, j: int, value: np.ndarray, scores: np.ndarray) -> None:
    for c, weight in enumerate(segment.weights[j]):
        scores[:, c] = scores[:, c] + weight * value


def _gather(segment: Segment, j: int, X: np.ndarray, scores: np.ndarray) -> None:
    _add_value(segment, j, X[:, segment.tables["feature"][j]], scores)


def _filled(segment: Segment, j: int, X: np.ndarray, scores: np.ndarray) -> None:
    x = X[:, segment.tables["feature"][j]]
    _add_value(segment, j, np.where(np.isnan(x), F32(segment.tables["value"][j]), x), scores)


def _multiply(segment: Segment, j: int, X: np.ndarray, scores: np.ndarray) -> None:
    first, second = segment.tables["first"][j], segment.tables["second"][j]
    _add_value(segment, j, X[:, first] * X[:, second], scores)


def _compare(segment: Segment, j: int, X: np.ndarray, scores: np.ndarray) -> None:
    x = X[:, segment.tables["feature"][j]]
    if segment.kind == "missing":
        yes = np.isnan(x)
    elif segment.kind == "equals":
        yes = x == segment.tables["value"][j]
    else:
        yes = x <= segment.tables["value"][j]
    scores[yes] = scores[yes] + segment.weights[j]


def _rules(segment: Segment, j: int, X: np.ndarray, scores: np.ndarray) -> None:
    yes = np.ones(len(X), dtype=bool)
    for side in SIDES:
        feature, value, test = (segment.tables[f"{side}{part}"] for part in ("", "_value", "_test"))
        yes &= passes(X[:, feature[j : j + 1]], value[j : j + 1], test[j : j + 1])[:, 0]
    scores[yes] = scores[yes] + segment.weights[j]


def _hinge(segment: Segment, j: int, X: np.ndarray, scores: np.ndarray) -> None:
    tables, ends = segment.tables, ends_of(segment.tables["length"])
    value = np.zeros(len(X), dtype=F32)
    for t in range(ends[j], ends[j + 1]):
        value = value + F32(tables["value"][t]) * X[:, tables["feature"][t]]
    value = value - F32(tables["knot"][j])
    _add_value(segment, j, np.where(value > 0, value, F32(0)), scores)


def _look_up(segment: Segment, j: int, X: np.ndarray, scores: np.ndarray) -> None:
    tables = segment.tables
    x, length = X[:, tables["feature"][j]], int(tables["length"][j])
    first = int(tables["length"][:j].sum())
    known = (x >= 0) & (x < length)
    code = np.where(known, x, 0).astype(np.int64)
    known &= code == x
    _add_value(segment, j, np.where(known, tables["value"][first + code], F32(0)), scores)


def _balls(segment: Segment, j: int, X: np.ndarray, scores: np.ndarray) -> None:
    squares, limit = _squares(X, segment.tables["centre"][j]), segment.tables["limit"][j]
    held = np.flatnonzero(squares < limit)
    rows, weights = X[held], segment.weights[j]
    for c in range(scores.shape[1]):
        value = np.full(len(held), weights[-1, c], dtype=F32)
        for f in range(X.shape[1]):
            value = value + weights[f, c] * rows[:, f]
        if segment.kind == "soft_balls":
            value = value * (F32(1) - squares[held] / limit)
        scores[held, c] = scores[held, c] + value


def _bumps(segment: Segment, j: int, X: np.ndarray, scores: np.ndarray) -> None:
    squares, limit = _squares(X, segment.tables["centre"][j]), segment.tables["limit"][j]
    held = np.flatnonzero(squares < limit)
    own = scores[held]
    _add_value(segment, j, F32(1) - squares[held] / limit, own)
    scores[held] = own


def _windows(segment: Segment, j: int, X: np.ndarray, scores: np.ndarray) -> None:
    images = X.reshape(-1, *segment.tables["shape"])
    best = np.zeros(len(X), dtype=F32)
    for weight, window, template in windows_of(segment, j):
        total = np.zeros(len(X), dtype=F32)
        for pixel, (y, x) in zip(template, window, strict=True):
            total = total + pixel * images[:, y, x]
        value = weight * total
        best = np.where(value > best, value, best)
    _add_value(segment, j, best, scores)


def windows_of(segment: Segment, j: int) -> Iterator[tuple[Any, list[tuple[int, int]], np.ndarray]]:
    """Yield the mask's weight, the places of the pixels and the template, for each position."""
    tables = segment.tables
    t, m = int(tables["template"][j]), int(tables["mask"][j])
    size, first = int(tables["size"][t]), int(np.square(tables["size"][:t]).sum())
    template = tables["pixel"][first : first + size * size]
    rows, columns = int(tables["rows"][m]), int(tables["columns"][m])
    first = int((tables["rows"][:m] * tables["columns"][:m]).sum())
    top, left = int(tables["top"][j]), int(tables["left"][j])
    for p in range(rows * columns):
        weight = tables["weight"][first + p]
        if weight > 0:
            y, x = top + p // columns, left + p % columns
            yield weight, [(y + i // size, x + i % size) for i in range(size * size)], template


_ADD = {
    "gather": _gather,
    "filled": _filled,
    "multiply": _multiply,
    "at_most": _compare,
    "equals": _compare,
    "missing": _compare,
    "rules": _rules,
    "hinge": _hinge,
    "look_up": _look_up,
    "balls": _balls,
    "soft_balls": _balls,
    "bumps": _bumps,
    "windows": _windows,
}
