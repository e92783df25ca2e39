"""What a predictor costs: one vocabulary from selection to export."""

from __future__ import annotations

from typing import NamedTuple


class Cost(NamedTuple):
    """Cost of predicting one row, and the size of the model."""

    atoms: int
    """Atoms in the model, the intercept not counted."""
    features: int
    """Distinct input features read."""
    operations: int
    """Multiply-accumulates and comparisons."""
    bytes: int
    """Bytes of the arrays that prediction reads: weights, intercept, feature numbers, thresholds,
    centres, templates. Each number counts in the type that it is kept in, 8 bytes for a float64 and
    4 for a float32. Labels, names, and arrays that only describe the model are not counted."""
