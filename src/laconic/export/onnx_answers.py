"""Labels and probabilities in ONNX operators, from the scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.export.onnx_graph import Graph
from laconic.export.probabilities import check_probabilities

E_LESS_1 = np.e - 1.0


def class_numbers(graph: Graph, scores: str, n_outputs: int) -> str:
    """Return the class number of every row. Of equal scores the first class wins."""
    if n_outputs == 1:
        return graph.cast(graph("Squeeze", graph("Greater", scores, 0.0), [1]), np.int64)
    return graph("ArgMax", scores, axis=1, keepdims=0, select_last_index=0)


def label_table(classes: np.ndarray) -> tuple[str, np.ndarray]:
    """Return the type of labels in ONNX, and the label of every class.

    Whole numbers and text stand for themselves. Other labels are counted from 0.
    """
    classes = np.asarray(classes)
    if classes.dtype.kind == "i" or (classes.dtype.kind == "u" and classes.max() < 2**63):
        return "int64", classes.astype(np.int64)
    if all(isinstance(label, str) for label in classes.tolist()):
        return "string", classes.astype(object)
    return "int64", np.arange(len(classes))


def labels(graph: Graph, numbers: str, table: np.ndarray) -> str:
    """Return the label of every row."""
    if table.dtype != object and np.array_equal(table, np.arange(len(table))):
        return numbers
    return graph("Gather", table, numbers, axis=0)


def probabilities(graph: Graph, predictor: Any, scores: str, n_outputs: int, unit: float) -> str:
    """Return the probabilities of the classes, by the link of the loss."""
    loss = check_probabilities(predictor, "ONNX")
    f = scores if unit == 1.0 else graph("Mul", scores, unit)
    if n_outputs < len(predictor.intercept):  # the difference of two scores
        f = graph("Concat", graph("Mul", f, 0.0), f, axis=1)
        n_outputs = 2
    if n_outputs == 1:
        p = _ONE_SCORE[loss](graph, f)
        return graph("Concat", graph("Sub", 1.0, p), p, axis=1)
    if loss == "one_vs_rest":
        p = _half(graph, f)
        nowhere = graph("Equal", graph("ReduceSum", p, [1], keepdims=1), 0.0)
        return _normed(graph, graph("Where", nowhere, 1.0, p))
    s = graph("Softmax", f, axis=1)
    if loss == "log":
        return s
    # The margin makes the softmax over-confident; see `laconic.losses.MarginLoss`.
    return _normed(graph, graph("Mul", s, graph("Sub", np.e, graph("Mul", s, E_LESS_1))))


def _half(graph: Graph, f: str) -> str:
    clipped = graph("Min", graph("Max", f, -1.0), 1.0)
    return graph("Mul", graph("Add", clipped, 1.0), 0.5)


def _normed(graph: Graph, p: str) -> str:
    return graph("Div", p, graph("ReduceSum", p, [1], keepdims=1))


_ONE_SCORE = {
    "exponential": lambda graph, f: graph("Sigmoid", graph("Mul", f, 2.0)),
    "logistic": lambda graph, f: graph("Sigmoid", f),
    "squared_hinge": _half,
}
"""p of the second class from one score, by loss."""
