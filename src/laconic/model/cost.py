"""What a predictor costs: one vocabulary from selection to export."""

from __future__ import annotations

from typing import NamedTuple


class Cost(NamedTuple):
    """Cost of predicting one row."""

    atoms: int
    """Atoms in the model, the intercept not counted."""
    features: int
    """Distinct input features read."""
    operations: int
    """Multiply-accumulates and comparisons."""
    bytes: int
    """Numbers the model holds, in bytes, with its weights in single precision."""
