"""The interface of feature maps, and functions that work with every map.

A *feature map* is the deployable form of several atoms of one kind. It consists of flat arrays and
contains no trainer. It turns rows into columns (one per atom, or several for a group). It also
knows the names and the cost of its columns. A map is best written as a subclass of
`laconic.model.lowering.LoweredMap`, which derives most of this from a list of primitives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from laconic.files.layout import check_arrays
from laconic.numeric.magnitudes import checked_scores
from laconic.numeric.namespaces import is_tensor
from laconic.registry import MAPS, TENSOR_SCORES, find

Names = Sequence[str] | None

# Cards explain with these words what a class does with its atoms.
SUM = 'its "always in" number; the class with the largest sum wins.'


class Words(Protocol):
    """Words for the numbers of a feature, for example its categories for their codes.

    A class whose words are rounded may also have ``finer(digits)``. It returns the same words with
    more than six digits.
    """

    def get(self, value: Any, plain: str, /) -> str:
        """Return a number in words, or ``plain`` if there are no words for it."""


Labels = Mapping[int, Words] | None
"""The words for the numbers of every feature that holds categories, dates or durations."""


class FeatureMap(Protocol):
    """The methods that a predictor needs from its atoms. See `laconic.model.atoms` for examples.

    Maps that can be saved also have a ``layout``, which says what their arrays must look like in a
    file. Three attributes are optional. ``remarks`` names arrays that describe the map, but that
    prediction does not read. ``n_columns`` is by default the number of names. ``allows_missing``
    says whether rows may have missing values (default: no).

    A map that can be exported has ``lower()``; see `laconic.model.lowering`.

    Four optional texts are for cards. ``reading`` says what a class does with the atoms.
    ``points`` says the same if one score tells two classes apart (None if nothing is added up).
    ``worth`` says what the value of an atom is, for models of several kinds of atoms. ``to_see``
    says how to draw the atoms. Without ``reading`` or ``points``, the card uses the texts of
    columns.
    """

    kind: str

    def columns(self, X: Any) -> np.ndarray:
        """Return the values on new rows, (n_rows, n_columns), in the units of the input."""

    def names(self, feature_names: Names = None, categories: Labels = None) -> list[str]:
        """Return one readable name per column."""

    def features(self) -> np.ndarray:
        """Return the sorted distinct input features that are read."""

    def operations(self) -> int:
        """Count the multiplications and comparisons that compute the columns of one row."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the flat arrays from which `feature_map` rebuilds the map."""


def feature_name(feature: int, feature_names: Names) -> str:
    """Return the name of an input feature."""
    return f"x{feature}" if feature_names is None else str(feature_names[feature])


# Sparse blocks of at most this size (rows x columns) are made dense before they are multiplied.
DENSE = 1 << 20


def column_scores(columns: Any, weights: np.ndarray) -> np.ndarray:
    """Return dense or sparse columns times weights (n_columns, n_outputs).

    The columns must be finite. Scores that overflow are infinite or NaN. Small sparse blocks are
    made dense, so that BLAS gives the same digits as for dense rows. Large ones stay sparse.
    """
    if sparse.issparse(columns) and columns.shape[0] * columns.shape[1] <= DENSE:
        columns = columns.toarray()
    check_finite(columns.data if sparse.issparse(columns) else columns)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(columns @ weights)


# Why rows are refused.
GAPS = "X holds missing or infinite values in features that the model reads"


def check_finite(values: np.ndarray) -> None:
    """Refuse missing and infinite values."""
    if not np.isfinite(values).all():
        raise ValueError(GAPS)


def unknown_map(map: FeatureMap) -> FeatureMap | None:
    """Return the map, or the map inside it, that `feature_map` cannot rebuild, if there is one."""
    if map.kind not in MAPS or find(MAPS[map.kind]) is not type(map):
        return map
    inside = (part for part in getattr(map, "parts", ()) if part.kind != "all")
    found = (unknown_map(part) for part in inside)
    return next((own for own in found if own is not None), None)


def feature_map(
    kind: str, arrays: dict[str, np.ndarray], n_features: int, depth: int = 0
) -> FeatureMap:
    """Rebuild a feature map from its kind and its `FeatureMap.arrays`.

    The arrays may come from a stranger's file, so they are checked first. ``depth`` is the number
    of maps that contain this one.
    """
    if kind not in MAPS:
        raise ValueError(f"unknown kind of atoms {kind!r}; known: {', '.join(sorted(MAPS))}")
    own = find(MAPS[kind])
    if hasattr(own, "from_arrays"):
        made: FeatureMap = own.from_arrays(arrays, n_features, depth)
        return made
    made = own(**check_arrays(arrays, own.layout, {"features": n_features}))
    if getattr(made, "n_features", n_features) != n_features:
        raise ValueError(f"its {kind} do not fit rows of {n_features} features")
    return made


def map_width(map: FeatureMap) -> int:
    """Return the number of columns of a map."""
    width = getattr(map, "n_columns", None)
    return len(map.names()) if width is None else int(width)


def map_bytes(map: FeatureMap) -> int:
    """Return the bytes of the arrays that prediction reads, in their stored types."""
    own = getattr(map, "nbytes", None)
    if own is not None:
        return int(own)
    remarks = getattr(map, "remarks", ())
    return sum(array.nbytes for name, array in map.arrays().items() if name not in remarks)


def map_scores(map: FeatureMap, X: Any, weights: np.ndarray) -> np.ndarray:
    """Return the columns of the map times weights (n_columns, n_outputs).

    Scores that overflow are infinite or NaN. A map with many columns that are mostly zero may have
    its own ``scores(X, weights)``.
    """
    own = getattr(map, "scores", None)
    if own is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            scores: np.ndarray = own(X, weights)
        return scores
    return column_scores(map.columns(X), weights)


def model_scores(map: FeatureMap, X: Any, weights: np.ndarray, intercept: np.ndarray) -> Any:
    """Return the columns of the map times weights, plus the intercept, (n_rows, n_outputs).

    Rows may be a tensor. The scores are then a tensor on the same device. A `ValueError` is raised
    if scores overflow.
    """
    if is_tensor(X):
        return find(TENSOR_SCORES)(map, X, weights, intercept)
    return checked_scores(map_scores(map, X, weights), intercept)
