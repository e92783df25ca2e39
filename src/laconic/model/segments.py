"""The tables of a program: atoms of one kind form a segment.

This is the one place that says which tables each primitive becomes. The float32 and the integer
form of a model, its C code and its ONNX graph all read these tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from laconic.model.balls import Balls, Heights
from laconic.model.conditions import ABOVE, AT_MOST, EQUAL, MISSING
from laconic.model.hinges import Hinge
from laconic.model.masks import mask_weights
from laconic.model.primitives import Compare, Filled, Gather, LookUp, Multiply
from laconic.model.rules import Both
from laconic.model.windows import WindowMaximum

KINDS = (
    "gather", "filled", "multiply", "at_most", "equals", "missing", "rules", "hinge", "look_up",
    "balls", "soft_balls", "bumps", "windows",
)  # fmt: skip
"""Kinds of segments, in the order in which their atoms are added up."""

Tables = dict[str, np.ndarray]


class Segment(NamedTuple):
    """All atoms of one kind. Leaf l adds up the atoms ``starts[l]`` to ``starts[l + 1] - 1``."""

    kind: str
    tables: Tables
    """What the atoms compute; see `_TABLES` for the names."""
    weights: np.ndarray
    """(n_atoms, n_outputs), or for balls (n_atoms, n_features + 1, n_outputs)."""
    starts: np.ndarray

    @property
    def n_atoms(self) -> int:
        """Number of atoms in all leaves."""
        return int(self.starts[-1])


class WeightedPrimitive(NamedTuple):
    """A primitive and the weights of its columns."""

    primitive: Any
    weights: np.ndarray


SIDES = ("first", "second")
"""The two conditions of a rule. Their tables are ``first``, ``first_value`` and ``first_test``."""

PLACED = ("template", "mask", "top", "left")
"""What an atom of windows is: a template and a mask, at a place."""

_TESTS = {"at_most": AT_MOST, "equals": EQUAL, "missing": MISSING}


class Questions(NamedTuple):
    """Questions about features: the kind of stump with the same test, features and values."""

    kind: str
    feature: np.ndarray
    value: np.ndarray


def conditions(segment: Segment) -> list[Questions]:
    """Return the conditions of stumps and rules. Other segments have none.

    The questions v ≤ θ and v > θ are alike. Values of questions about missing values mean nothing.
    """
    tables, kind = segment.tables, segment.kind
    if kind in _TESTS:
        return [Questions(kind, tables["feature"], tables.get("value", np.zeros(segment.n_atoms)))]
    found = []
    for side in SIDES if kind == "rules" else ():
        test = np.where(tables[f"{side}_test"] == ABOVE, AT_MOST, tables[f"{side}_test"])
        for alike, number in _TESTS.items():
            of = test == number
            found.append(Questions(alike, tables[side][of], tables[f"{side}_value"][of]))
    return found


def squared(radius: Any) -> np.ndarray:
    """Return squared radii. A ball whose square overflows holds all rows."""
    with np.errstate(over="ignore", under="ignore"):
        squares: np.ndarray = np.square(np.asarray(radius, dtype=np.float64))
    return squares


def make_segments(leaves: list[list[WeightedPrimitive]], n_outputs: int) -> Iterator[Segment]:
    """Yield the segments of all leaves, one for each kind (and image shape)."""
    found: dict[tuple[Any, ...], list[list[tuple[Tables, np.ndarray]]]] = {}
    for number, pieces in enumerate(leaves):
        for primitive, weights in pieces:
            for key, tables, own in _parts(primitive, weights):
                of_leaf = found.setdefault(key, [[] for _ in leaves])
                of_leaf[number].append((tables, own))
    for key in sorted(found, key=lambda key: (KINDS.index(key[0]), key[1:])):
        of_leaf = found[key]
        counts = [sum(len(own) for _, own in parts) for parts in of_leaf]
        if sum(counts):
            parts = [part for leaf in of_leaf for part in leaf]
            tables = _joined(key[0], [tables for tables, _ in parts])
            weights = np.concatenate([own for _, own in parts])
            yield Segment(key[0], tables, weights, np.cumsum([0, *counts]))


def _parts(
    primitive: Any, weights: np.ndarray
) -> Iterator[tuple[tuple[Any, ...], Tables, np.ndarray]]:
    """Yield the key, tables and weights of the segments to which a primitive adds atoms."""
    kind = type(primitive)
    if kind not in _TABLES:
        known = ", ".join(own.__name__ for own in _TABLES)
        raise TypeError(
            f"{kind.__module__}.{kind.__name__} is not a primitive that can be exported; known: "
            f"{known}"
        )
    yield from _TABLES[kind](primitive, weights)


def _gather(p: Any, weights: np.ndarray) -> Iterator[Any]:
    yield ("gather",), {"feature": np.asarray(p.feature)}, weights


def _filled(p: Any, weights: np.ndarray) -> Iterator[Any]:
    yield ("filled",), {"feature": np.asarray(p.feature), "value": np.asarray(p.value)}, weights


def _multiply(p: Any, weights: np.ndarray) -> Iterator[Any]:
    yield ("multiply",), {"first": np.asarray(p.first), "second": np.asarray(p.second)}, weights


def _compare(p: Any, weights: np.ndarray) -> Iterator[Any]:
    feature, value, test = np.asarray(p.feature), np.asarray(p.value), np.asarray(p.test)
    for kind, number in _TESTS.items():
        of = test == number
        tables = {"feature": feature[of]}
        if number != MISSING:
            tables["value"] = value[of]
        yield (kind,), tables, weights[of]


def _rules(p: Any, weights: np.ndarray) -> Iterator[Any]:
    yield ("rules",), p.arrays(), weights


def _hinge(p: Any, weights: np.ndarray) -> Iterator[Any]:
    yield ("hinge",), p.arrays(), weights


def ends_of(length: np.ndarray) -> np.ndarray:
    """Return where the entries of each atom begin in a table, and where the last ones end."""
    ends: np.ndarray = np.cumsum([0, *length.tolist()])
    return ends


def _look_up(p: Any, weights: np.ndarray) -> Iterator[Any]:
    table = np.asarray(p.table, dtype=np.float64)
    length = np.full(len(table), table.shape[1])
    tables = {"feature": np.asarray(p.feature), "length": length, "value": table.ravel()}
    yield ("look_up",), tables, weights


def _balls(p: Any, weights: np.ndarray) -> Iterator[Any]:
    centre = np.asarray(p.centre, dtype=np.float64)
    n, d = centre.shape
    weights = weights.reshape(n, d + 1, weights.shape[1]).copy()
    # w·(x − o) + b = w·x + (b − w·o)
    weights[:, -1] -= np.einsum("bf,bfc->bc", np.broadcast_to(p.origin, (n, d)), weights[:, :-1])
    tables = {"centre": centre, "limit": squared(p.radius)}
    yield ("soft_balls" if p.soft else "balls",), tables, weights


def _bumps(p: Any, weights: np.ndarray) -> Iterator[Any]:
    tables = {"centre": np.asarray(p.centre, dtype=np.float64), "limit": squared(p.radius)}
    yield ("bumps",), tables, weights


def _windows(p: Any, weights: np.ndarray) -> Iterator[Any]:
    height, width = (int(n) for n in p.shape)
    sizes, centres = np.asarray(p.size), np.asarray(p.centre, dtype=np.float64)
    tables: dict[str, list[Any]] = {name: [] for name in ("top", "left", "mask")}
    masks: dict[tuple[Any, ...], int] = {}
    shapes, values, middles, sigmas = [], [], [], []
    for t, (row, column), sigma in zip(p.template, centres, p.sigma, strict=True):
        whole = mask_weights((height, width), int(sizes[t]), row, column, float(sigma))
        y, x = np.flatnonzero(whole.any(axis=1)), np.flatnonzero(whole.any(axis=0))
        cut = np.ascontiguousarray(whole[y[0] : y[-1] + 1, x[0] : x[-1] + 1])
        key = (cut.shape, cut.tobytes())
        if key not in masks:
            masks[key] = len(masks)
            shapes.append(cut.shape)
            values.append(cut.ravel())
            half = (int(sizes[t]) - 1) / 2
            middles.append((row - half - y[0], column - half - x[0]))
            sigmas.append(float(sigma))
        tables["mask"].append(masks[key])
        tables["top"].append(y[0])
        tables["left"].append(x[0])
    out: Tables = {name: np.array(numbers, dtype=np.int64) for name, numbers in tables.items()}
    out |= {
        "template": np.asarray(p.template),
        "size": sizes,
        "pixel": np.asarray(p.values, dtype=np.float64),
        "rows": np.array([shape[0] for shape in shapes], dtype=np.int64),
        "columns": np.array([shape[1] for shape in shapes], dtype=np.int64),
        "weight": np.concatenate([np.empty(0, np.float32), *values]).astype(np.float64),
        "middle": np.array(middles, dtype=np.float64).reshape(-1, 2),
        "sigma": np.array(sigmas, dtype=np.float64),
    }
    yield ("windows", height, width), out | {"shape": np.array([height, width])}, weights


def by_template(segment: Segment) -> Segment:
    """Return a segment of windows in which the atoms of each leaf have the order of templates."""
    tables, n = dict(segment.tables), segment.n_atoms
    leaf = np.repeat(np.arange(len(segment.starts) - 1), np.diff(segment.starts))
    order = np.lexsort((np.arange(n), tables["template"], leaf))
    for name in PLACED:
        tables[name] = tables[name][order]
    if "shift" in tables:
        tables["shift"] = tables["shift"][order]
    return segment._replace(tables=tables, weights=segment.weights[order])


_TABLES = {
    Gather: _gather,
    Filled: _filled,
    Multiply: _multiply,
    Compare: _compare,
    Both: _rules,
    Hinge: _hinge,
    LookUp: _look_up,
    Balls: _balls,
    Heights: _bumps,
    WindowMaximum: _windows,
}
"""How each primitive becomes tables of segments."""


def _joined(kind: str, parts: list[Tables]) -> Tables:
    """Return the tables of several parts as one. Numbers of templates and masks are moved on."""
    if kind == "windows":
        templates = np.cumsum([0, *(len(part["size"]) for part in parts)])
        masks = np.cumsum([0, *(len(part["rows"]) for part in parts)])
        parts = [
            part | {"template": part["template"] + t, "mask": part["mask"] + m}
            for part, t, m in zip(parts, templates, masks, strict=False)
        ]
    out = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return out | ({"shape": parts[0]["shape"]} if kind == "windows" else {})
