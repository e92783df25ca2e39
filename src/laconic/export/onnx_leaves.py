"""The way of a row through nested holes to its leaf, in ONNX operators."""

from __future__ import annotations

import numpy as np

from laconic.export.onnx_atoms import squares
from laconic.export.onnx_graph import Graph
from laconic.model.program import Routing


def leaves(graph: Graph, x: str, routing: Routing) -> str:
    """Return the leaf of every row, (n_rows, 1), in int64."""
    n_nodes, n_holes = len(routing.outside), len(routing.limit)
    graph.wide(n_nodes * n_holes)
    limit = routing.limit.astype(np.float64)
    inside = graph("LessOrEqual", squares(graph, x, routing.centre), limit)
    # The newest hole of each node that contains the row, counted from 1. It is 0 without one.
    node = np.repeat(np.arange(n_nodes), np.diff(routing.first))
    number = np.where(node == np.arange(n_nodes)[:, None], np.arange(n_holes) + 1, 0)
    held = graph("Where", graph("Unsqueeze", inside, [1]), number, 0)
    newest = graph("ReduceMax", held, [2], keepdims=0)
    found = graph("Gather", np.concatenate([[0], routing.inside]), newest, axis=0)
    target = graph("Where", graph("Equal", newest, 0), routing.outside, found)
    place = graph("Gather", target, [0], axis=1)
    for _ in range(_depth(routing) - 1):
        node_of = graph("Max", place, 0)
        deeper = graph("GatherElements", target, node_of, axis=1)
        place = graph("Where", graph("Less", place, 0), place, deeper)
    return graph("Sub", -1, place)


def _depth(routing: Routing) -> int:
    """Return the largest number of nodes on the way of a row."""
    depth = np.ones(len(routing.outside), dtype=np.int64)
    for node in range(len(depth)):  # a node lies before the nodes inside it
        ways = routing.inside[routing.first[node] : routing.first[node + 1]]
        for way in (routing.outside[node], *ways):
            if way >= 0:
                depth[way] = depth[node] + 1
    return int(depth.max())
