"""Patches in ONNX operators: the largest masked response of a template."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.export.onnx_graph import Graph
from laconic.model.integers import MASK_BITS


def windows(graph: Graph, x: str, tables: Any) -> str:
    """Return the values of all atoms, (n_rows, n_atoms).

    Rows of pixels are turned, so that the rows of a batch lie side by side. For each size of
    templates, one product gives the responses of all templates at all positions. Each atom then
    takes its own positions. (onnxruntime has no convolution in float64.)
    """
    turned = graph("Transpose", x, perm=[1, 0])
    sizes = tables["size"][tables["template"]]
    parts, order = [], []
    for size in np.unique(sizes).tolist():
        atoms = np.flatnonzero(sizes == size)
        parts.append(_of_size(graph, turned, tables, int(size), atoms))
        order.append(atoms)
    stacked = parts[0] if len(parts) == 1 else graph("Concat", *parts, axis=0)
    places = np.concatenate(order)
    if not np.array_equal(places, np.arange(len(places))):
        stacked = graph("Gather", stacked, np.argsort(places), axis=0)
    # onnxruntime 1.17 cannot multiply matrices in float64 right after a transposition.
    best = graph("Max", graph("Transpose", stacked, perm=[1, 0]), 0.0)
    return graph.down(best, MASK_BITS) if "down" in tables else best


def _of_size(graph: Graph, turned: str, tables: Any, size: int, atoms: np.ndarray) -> str:
    """Return the largest responses of templates of one size, (n_atoms, n_rows)."""
    under = [_under_mask(tables, int(j)) for j in atoms]
    positions = np.unique(np.concatenate([places for places, _ in under]))
    used, template = np.unique(tables["template"][atoms], return_inverse=True)
    responses = _responses(graph, turned, tables, size, positions, used)
    # Atoms take the same number of positions. Those beyond the mask have the weight 0.
    most = max(len(places) for places, _ in under)
    place = np.zeros((len(atoms), most), dtype=np.int64)
    mask = np.zeros((len(atoms), most, 1))
    for row, (places, weights) in enumerate(under):
        n = len(places)
        place[row, :n] = np.searchsorted(positions, places) + template[row] * len(positions)
        mask[row, :n, 0] = weights
    graph.wide(size * size * len(positions))
    graph.wide(len(used) * len(positions))

    def body(inner: Graph, places: str, weights: str) -> str:
        masked = inner("Mul", inner("Gather", responses, places, axis=0), weights)
        return inner("ReduceMax", masked, [0], keepdims=0)

    return graph.scan(body, place, mask)


def _responses(
    graph: Graph, turned: str, tables: Any, size: int, positions: np.ndarray, used: np.ndarray
) -> str:
    """Return the responses of some templates at some positions, (templates · positions, n_rows)."""
    width = int(tables["shape"][1])
    first = np.cumsum([0, *np.square(tables["size"])])
    pixels = np.array([tables["pixel"][first[t] : first[t] + size * size] for t in used])
    offset = (np.arange(size)[:, None] * width + np.arange(size)).ravel()
    views = graph("Gather", turned, offset[:, None] + positions, axis=0)
    responses = graph("MatMul", pixels.astype(np.float64), graph("Flatten", views, axis=1))
    n_rows = graph("Shape", turned, start=1, end=2)
    shape = graph("Concat", [len(used) * len(positions)], n_rows, axis=0)
    responses = graph("Reshape", responses, shape, allowzero=1)
    if "down" not in tables:
        return responses
    return graph.down(graph("Max", responses, 0.0), int(tables["down"][0]))


def _under_mask(tables: Any, j: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions under the mask of an atom, as pixels of the image, and their weights."""
    m, width = int(tables["mask"][j]), int(tables["shape"][1])
    rows, columns = int(tables["rows"][m]), int(tables["columns"][m])
    first = int((tables["rows"][:m] * tables["columns"][:m]).sum())
    weights = tables["weight"][first : first + rows * columns]
    y, x = np.divmod(np.arange(rows * columns), columns)
    pixel = (int(tables["top"][j]) + y) * width + int(tables["left"][j]) + x
    # A mask of integers may be 0 everywhere.
    kept = weights > 0 if (weights > 0).any() else np.arange(len(weights)) == 0
    return pixel[kept], weights[kept]
