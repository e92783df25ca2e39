"""From what a device hands over to codes, in ONNX operators. See `laconic.model.input_codes`."""

from __future__ import annotations

import numpy as np

from laconic.export.onnx_graph import Graph
from laconic.model.input_codes import LARGEST_FIXED, Inputs

# Smaller float32 numbers are subnormal, and count as 0.
SMALLEST_NORMAL = float(np.finfo(np.float32).tiny)
# Infinity counts as this number, and NaN as a larger one.
INFINITE, NOT_A_NUMBER = 2.0**128, 1.5 * 2.0**128


def codes(graph: Graph, given: str, inputs: Inputs, n_features: int) -> str:
    """Return the codes of the features that are read, (n_rows, n_read), as whole float64 numbers.

    Every step is exact. A float32 number times a power of two is a float64 number of 24 digits, and
    half a unit can be added to it without rounding, unless it is below 2^-30. Then the sum is below
    1, and rounded down to 0.
    """
    x = given
    if not np.array_equal(inputs.features, np.arange(n_features)):
        x = graph("Gather", x, inputs.features, axis=1)
    x = graph.cast(x, np.float64)
    lost = None
    if inputs.given == "float":
        nan = graph("IsNaN", x)
        lost = nan if inputs.missing is not None else None
        x = _fixed(graph, x, nan, inputs)
    elif inputs.missing is not None:
        lost = graph("Equal", x, float(inputs.missing))
    moved = (inputs.low - inputs.base).astype(np.float64)
    if moved.any():
        x = graph("Add", x, moved)
    x = graph("Max", x, inputs.low.astype(np.float64))
    x = graph("Min", x, inputs.high.astype(np.float64))
    return x if lost is None else graph("Where", lost, float(inputs.missing or 0), x)


def _fixed(graph: Graph, x: str, nan: str, inputs: Inputs) -> str:
    """Return x · 2^shift, rounded half away from zero. It saturates at 2^30."""
    size = graph("Min", graph("Abs", x), INFINITE)
    size = graph("Where", graph("Less", size, SMALLEST_NORMAL), 0.0, size)
    size = graph("Where", nan, NOT_A_NUMBER, size)
    size = graph("Mul", size, inputs.scale)
    size = graph("Floor", graph("Add", size, 0.5))
    size = graph("Min", size, float(LARGEST_FIXED))
    negative = graph("Less", x, 0.0)
    return graph("Where", negative, graph("Neg", size), size)
