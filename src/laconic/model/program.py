"""A predictor as one short program: find the leaf of a row, then add up the atoms of that leaf.

This is the normal form of a lowered predictor (`laconic.model.lowering`). The float32 and the
integer form of a model, its C code and its size in bytes all start from here. Atoms of one kind
form a *segment*, a few flat tables. So code that walks over a program does not grow with the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from laconic.model.arrange import Arrange
from laconic.model.lowering import lowered
from laconic.model.regions import UNSEEN
from laconic.model.route import Route
from laconic.model.segments import Segment, WeightedPrimitive, make_segments, squared


class Routing(NamedTuple):
    """The way of a row through nested holes to its leaf.

    Node k has the holes ``first[k]`` to ``first[k + 1] - 1``. The last of them that contains the
    row leads to ``inside``, and without one the row goes to ``outside[k]``. A number below zero is
    the leaf ``-1 - number``, any other is a node. The first node is 0.
    """

    first: np.ndarray
    outside: np.ndarray
    inside: np.ndarray
    centre: np.ndarray
    limit: np.ndarray
    """A hole contains the rows with ‖x − centre‖² ≤ limit."""

    @property
    def nested(self) -> bool:
        """Whether there are holes within holes."""
        return len(self.outside) > 1


class Program(NamedTuple):
    """Scores of a row: ``bias`` of its leaf plus the weighted atoms of its leaf."""

    n_features: int
    bias: np.ndarray
    """(n_leaves, n_outputs)."""
    segments: list[Segment]
    routing: Routing | None

    @property
    def n_outputs(self) -> int:
        """Number of scores of a row."""
        return int(self.bias.shape[1])

    @property
    def n_leaves(self) -> int:
        """Number of leaves. It is 1 without holes."""
        return len(self.bias)

    @property
    def never(self) -> np.ndarray:
        """Which classes a leaf never answers, (n_leaves, n_outputs)."""
        never: np.ndarray = np.abs(self.bias) > -UNSEEN / 2
        return never


def program_of(predictor: Any, every_score: bool = False) -> Program:
    """Return the program of a predictor.

    If only the difference of two scores counts, the program has one score: the second minus the
    first. It is above zero for the second class. With ``every_score``, it has both.
    """
    weights, intercept = predictor.weights, predictor.intercept
    difference = len(intercept) == 2 and getattr(predictor.link, "shift_invariant", False)
    if difference and not every_score:
        weights, intercept = np.diff(weights, axis=1), np.diff(intercept)
    return make_program(lowered(predictor.map), weights, intercept, predictor.n_features)


def make_program(
    primitives: Sequence[Any], weights: np.ndarray, intercept: np.ndarray, n_features: int
) -> Program:
    """Return the program of a list of primitives with weights (n_columns, n_outputs)."""
    tree = _Tree()
    tree.place(primitives, np.asarray(weights, np.float64), np.asarray(intercept, np.float64), [])
    bias = np.array([leaf.bias for leaf in tree.leaves])
    segments = list(make_segments([leaf.pieces for leaf in tree.leaves], len(intercept)))
    return Program(int(n_features), bias, segments, tree.routing())


# -- holes -----------------------------------------------------------------------------------------


def _weighted(primitives: Sequence[Any], W: np.ndarray) -> Iterator[WeightedPrimitive]:
    """Yield every primitive with its weights. Primitives that are arranged come one by one."""
    at = 0
    for primitive in primitives:
        own = W[at : at + primitive.n_columns]
        at += primitive.n_columns
        if isinstance(primitive, Arrange):
            yield from _weighted(primitive.primitives, primitive.moved(own))
        else:
            yield WeightedPrimitive(primitive, own)


class _Leaf(NamedTuple):
    pieces: list[WeightedPrimitive]
    bias: np.ndarray


@dataclass
class _Tree:
    """Nodes and leaves in the order in which they are met."""

    leaves: list[_Leaf] = field(default_factory=list)
    nodes: list[tuple[Any, list[int]]] = field(default_factory=list)

    def place(
        self,
        primitives: Sequence[Any],
        W: np.ndarray,
        bias: np.ndarray,
        outer: list[WeightedPrimitive],
    ) -> int:
        """Add the node or leaf of some primitives, and return its number; see `Routing`."""
        pieces, route = list(outer), None
        for piece in _weighted(primitives, W):
            if not isinstance(piece.primitive, Route):
                pieces.append(piece)
            elif route is None:
                route = piece
            else:
                raise TypeError("a list of primitives may have only one Route")
        if route is None:
            self.leaves.append(_Leaf(pieces, bias))
            return -len(self.leaves)
        if len(route.primitive.parts) == 1:  # without holes, all rows are in the only part
            own = route.weights
            return self.place(route.primitive.parts[0], own[:-1], bias + own[-1], pieces)
        targets: list[int] = []
        node, at = len(self.nodes), 0
        self.nodes.append((route.primitive, targets))
        for part in route.primitive.parts:
            width = sum(primitive.n_columns for primitive in part) + 1
            own = route.weights[at : at + width]
            targets.append(self.place(part, own[:-1], bias + own[-1], pieces))
            at += width
        return node

    def routing(self) -> Routing | None:
        """Return the tables of all nodes, or None if there are no holes."""
        if not self.nodes:
            return None
        targets = [target for _, target in self.nodes]
        routes = [route for route, _ in self.nodes]
        return Routing(
            first=np.cumsum([0, *(len(target) - 1 for target in targets)]),
            outside=np.array([target[0] for target in targets]),
            inside=np.array([number for target in targets for number in target[1:]], dtype=int),
            centre=np.concatenate([np.asarray(route.centre, np.float64) for route in routes]),
            limit=np.concatenate([squared(route.radius) for route in routes]),
        )
