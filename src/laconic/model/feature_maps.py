"""Feature maps: what a predictor needs of atoms of any kind, and what can be asked of every map.

A *feature map* is the deployable form of several atoms of one kind: flat arrays, no trainer inside.
It turns rows into columns (one per atom, more for a group), and knows its names and its cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from laconic.files.layout import check_arrays
from laconic.registry import MAPS, find

Names = Sequence[str] | None

# How cards explain what classes do with atoms.
SUM = 'its "always in" number; the class with the largest sum wins.'


class Words(Protocol):
    """What the numbers of a feature stand for: its categories by their codes, say.

    One that rounds may also have ``finer(digits)``, the same to more digits than six.
    """

    def get(self, value: Any, plain: str, /) -> str:
        """A number in words, or ``plain`` where there are none."""


Labels = Mapping[int, Words] | None
"""Of every feature that is categories, dates or durations, what its numbers stand for."""


class FeatureMap(Protocol):
    """What a predictor needs of its atoms; see `laconic.model.atoms` for examples.

    Maps that can be saved also have a ``layout``, what their arrays must look like in a file. A map
    may name arrays in ``remarks`` that describe it, but that prediction does not read, and may have
    ``n_columns``, which is otherwise the number of its names. Its words for cards are ``reading``
    (what a class does with the atoms), ``points`` (the same where one score tells two classes
    apart; None where nothing is added up) and ``to_see`` (what draws them); without them those of
    columns serve.
    """

    kind: str

    def columns(self, X: Any) -> np.ndarray:
        """Values on new rows, (n_rows, n_columns), in the units of the input."""

    def names(self, feature_names: Names = None, categories: Labels = None) -> list[str]:
        """One readable name per column."""

    def features(self) -> np.ndarray:
        """Sorted distinct input features that are read."""

    def operations(self) -> int:
        """Multiplications and comparisons needed to compute the columns of one row."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Flat arrays that `feature_map` rebuilds the map from."""


def feature_name(feature: int, feature_names: Names) -> str:
    """Name of an input feature."""
    return f"x{feature}" if feature_names is None else str(feature_names[feature])


# Numbers up to which sparse columns are made dense to be multiplied.
DENSE = 1 << 20


def column_scores(columns: Any, weights: np.ndarray) -> np.ndarray:
    """Dense or sparse columns times weights (n_columns, n_outputs); the columns must be finite.

    Scores are infinite or NaN where they overflow. Few sparse columns are made dense: BLAS then
    gives the digits that it gives for dense rows. Many stay sparse.
    """
    if sparse.issparse(columns) and columns.shape[0] * columns.shape[1] <= DENSE:
        columns = columns.toarray()
    values = columns.data if sparse.issparse(columns) else columns
    if not np.isfinite(values).all():
        raise ValueError("X holds missing or infinite values in features that the model reads")
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(columns @ weights)


def is_known(map: FeatureMap) -> bool:
    """Whether `feature_map` can rebuild the map."""
    return map.kind in MAPS and find(MAPS[map.kind]) is type(map)


def feature_map(
    kind: str, arrays: dict[str, np.ndarray], n_features: int, depth: int = 0
) -> FeatureMap:
    """Rebuild a feature map from its kind and `FeatureMap.arrays`, which need not be sound.

    ``depth`` says how many maps this one is a part of.
    """
    if kind not in MAPS:
        raise ValueError(f"unknown kind of atoms {kind!r}; known: {', '.join(sorted(MAPS))}")
    own = find(MAPS[kind])
    if hasattr(own, "from_arrays"):
        made: FeatureMap = own.from_arrays(arrays, n_features, depth)
        return made
    made = own(**check_arrays(arrays, own.layout, {"features": n_features}))
    if getattr(made, "n_features", n_features) != n_features:
        raise ValueError(f"its {kind} are of rows of another width than {n_features}")
    return made


def map_width(map: FeatureMap) -> int:
    """Number of columns of a map."""
    width = getattr(map, "n_columns", None)
    return len(map.names()) if width is None else int(width)


def map_bytes(map: FeatureMap) -> int:
    """Bytes of the arrays that prediction reads, in the types that they are kept in."""
    own = getattr(map, "nbytes", None)
    if own is not None:
        return int(own)
    remarks = getattr(map, "remarks", ())
    return sum(array.nbytes for name, array in map.arrays().items() if name not in remarks)


def map_scores(map: FeatureMap, X: Any, weights: np.ndarray) -> np.ndarray:
    """Columns of the map times weights (n_columns, n_outputs), infinite or NaN where they overflow.

    A map whose columns are many and mostly zero may have a ``scores(X, weights)`` of its own.
    """
    own = getattr(map, "scores", None)
    if own is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            scores: np.ndarray = own(X, weights)
        return scores
    return column_scores(map.columns(X), weights)
