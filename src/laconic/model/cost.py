"""The cost of a predictor, in the same terms from selection to export."""

from __future__ import annotations

from typing import NamedTuple


class Cost(NamedTuple):
    """Cost of predicting one row, and the size of the model."""

    atoms: int
    """Number of atoms in the model. The intercept does not count."""
    features: int
    """Number of distinct input features that are read."""
    operations: int
    """Multiply-accumulates and comparisons."""
    bytes: int
    """Bytes of the arrays that prediction reads: weights, intercept, feature numbers, thresholds,
    centres, templates. Each number counts with the size of its stored type: 8 bytes for a float64
    and 4 for a float32. Labels, names, and arrays that only describe the model are not counted."""
