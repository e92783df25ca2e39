"""The cost of a model, in the same terms from selection to export."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from laconic.model.feature_maps import FeatureMap, map_bytes


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


def model_cost(map: FeatureMap, n_atoms: int, weights: np.ndarray, intercept: np.ndarray) -> Cost:
    """Return the cost of a model: the columns of ``map`` times weights, plus the intercept."""
    return Cost(
        atoms=n_atoms,
        features=len(map.features()),
        operations=model_operations(map, *weights.shape),
        bytes=weights.nbytes + intercept.nbytes + map_bytes(map),
    )


def model_operations(map: FeatureMap, n_columns: int, n_outputs: int) -> int:
    """Return the operations of one row: those of its columns, and those of their weights.

    A map whose rows do not need every column has its own ``score_operations(n_outputs)``.
    """
    if hasattr(map, "score_operations"):
        return int(map.score_operations(n_outputs))
    return n_columns * n_outputs + map.operations()
