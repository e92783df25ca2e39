"""Lowering: a feature map as a short list of primitives.

A *primitive* is one simple operation on rows. It consists of flat arrays. The columns of a map are
those of its primitives, one after the other. Prediction, cost and export all read this one list, so
they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from laconic.model.feature_maps import (
    FeatureMap,
    Labels,
    Names,
    column_scores,
    map_scores,
    map_width,
)


class Primitive:
    """One operation: rows in, columns out. See `laconic.model.primitives` for examples.

    A primitive does not change after its construction. ``fields`` names its arrays, which
    prediction reads.
    """

    fields: ClassVar[tuple[str, ...]] = ()

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        raise NotImplementedError

    def columns(self, X: Any) -> np.ndarray:
        """Return the columns of dense or sparse rows, (n_rows, n_columns)."""
        raise NotImplementedError

    def reads(self) -> np.ndarray:
        """Return the sorted distinct features that are read."""
        raise NotImplementedError

    def operations(self) -> int:
        """Count the multiplications and comparisons that compute the columns of one row."""
        raise NotImplementedError

    def scores(self, X: Any, weights: np.ndarray) -> np.ndarray:
        """Return columns times weights (n_columns, n_outputs)."""
        return column_scores(self.columns(X), weights)

    def score_operations(self, n_outputs: int) -> int:
        """Count the operations of `scores` for one row."""
        return self.operations() + self.n_columns * n_outputs

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the flat arrays of the primitive."""
        return {name: np.asarray(getattr(self, name)) for name in self.fields}

    def every(self) -> Iterator[Primitive]:
        """Yield the primitive and all primitives inside it."""
        yield self


# -- lists of primitives ---------------------------------------------------------------------------


def width_of(primitives: Sequence[Primitive]) -> int:
    """Return the number of columns of a list of primitives."""
    return sum(primitive.n_columns for primitive in primitives)


def columns_of(primitives: Sequence[Primitive], X: Any) -> np.ndarray:
    """Return the columns of a list of primitives, one after the other."""
    if len(primitives) == 1:
        return primitives[0].columns(X)
    parts = [primitive.columns(X) for primitive in primitives]
    return np.hstack(parts) if parts else np.empty((X.shape[0], 0))


def scores_of(primitives: Sequence[Primitive], X: Any, weights: np.ndarray) -> np.ndarray:
    """Return the columns of a list of primitives times weights (n_columns, n_outputs)."""
    if len(primitives) == 1:
        return primitives[0].scores(X, weights)
    at, out = 0, np.zeros((X.shape[0], weights.shape[1]))
    for primitive in primitives:
        out += primitive.scores(X, weights[at : at + primitive.n_columns])
        at += primitive.n_columns
    return out


def reads_of(primitives: Sequence[Primitive]) -> np.ndarray:
    """Return the sorted distinct features that a list of primitives reads."""
    if len(primitives) == 1:
        return primitives[0].reads()
    read = [primitive.reads() for primitive in primitives]
    return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *read]))


def operations_of(primitives: Sequence[Primitive]) -> int:
    """Return the number of operations of a list of primitives."""
    return sum(primitive.operations() for primitive in primitives)


# -- maps ------------------------------------------------------------------------------------------


class LoweredMap:
    """A feature map that is given by its primitives.

    A map of your own needs `lower` and `names`. It gets everything else from the primitives. It
    must not change after its construction.

    A subclass may compute columns or scores itself. Its primitives then no longer say what it
    computes, so its `lower` raises a `TypeError`.

    Examples
    --------
    >>> from laconic.model.hinges import Hinge
    >>> class Above(LoweredMap):
    ...     def __init__(self, knot):
    ...         self.knot = knot
    ...     def lower(self):
    ...         return [Hinge([1], [0], [1.0], [self.knot])]
    ...     def names(self, feature_names=None, categories=None):
    ...         return [f"excess over {self.knot}"]
    >>> map = Above(2.0)
    >>> map.columns(np.array([[1.0], [5.0]])).tolist(), map.features().tolist(), map.operations()
    ([[0.0], [3.0]], [0], 2)
    """

    kind = "atoms"

    def lower(self) -> list[Primitive]:
        """Return the primitives of the map. Their columns are the columns of the map, in order."""
        raise TypeError(_why_not(self))

    _primitives = lower
    _lowers: ClassVar[bool] = False  # whether the primitives say what the map computes

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        nearest = {name: _definer(cls, name) for name in ("lower", "columns", "scores")}
        lower, computed = nearest["lower"], min(nearest["columns"], nearest["scores"])
        if lower == computed < cls.__mro__.index(LoweredMap):
            raise TypeError(
                f"{cls.__name__} has lower() and also columns() or scores(), which might disagree; "
                "remove the latter, because they follow from lower()"
            )
        cls._lowers = lower < computed
        if cls._lowers:  # columns that a parent computes itself no longer count
            cls._primitives = cls.lower
            cls.columns = LoweredMap.columns  # type: ignore[method-assign]
            cls.scores = LoweredMap.scores  # type: ignore[method-assign]
        else:  # features and operations still come from the primitives of the parent
            cls.lower = LoweredMap.lower  # type: ignore[method-assign]

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return width_of(self._primitives()) if self._lowers else len(self.names())

    def columns(self, X: Any) -> np.ndarray:
        """Return the values on new rows, (n_rows, n_columns), in the units of the input."""
        return columns_of(self._primitives(), X)

    def scores(self, X: Any, weights: np.ndarray) -> np.ndarray:
        """Return columns times weights (n_columns, n_outputs)."""
        if self._lowers:
            return scores_of(self._primitives(), X, weights)
        return column_scores(self.columns(X), weights)

    def names(self, feature_names: Names = None, categories: Labels = None) -> list[str]:
        """Return one readable name per column."""
        raise NotImplementedError(f"{type(self).__name__} needs a method names()")

    def features(self) -> np.ndarray:
        """Return the sorted distinct input features that are read."""
        return reads_of(self._primitives())

    def operations(self) -> int:
        """Count the multiplications and comparisons that compute the columns of one row."""
        return operations_of(self._primitives())

    def score_operations(self, n_outputs: int) -> int:
        """Return the expected operations of `scores` for a row like the training rows."""
        if self._lowers and type(self).operations is LoweredMap.operations:
            return sum(p.score_operations(n_outputs) for p in self._primitives())
        return self.operations() + self.n_columns * n_outputs

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the flat arrays of the primitives."""
        return {
            f"{number}_{name}": array
            for number, primitive in enumerate(self._primitives())
            for name, array in primitive.arrays().items()
        }


def _definer(cls: type, name: str) -> int:
    """Return which class, in the order of inheritance, defines a method of its own."""
    plain = getattr(LoweredMap, name)
    own = (i for i, kind in enumerate(cls.__mro__) if vars(kind).get(name, plain) is not plain)
    return next(own, cls.__mro__.index(LoweredMap))


class Unlowered(Primitive):
    """The columns of a map that has no primitives. They can be computed, but not exported."""

    def __init__(self, map: FeatureMap) -> None:
        self.map = map

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return map_width(self.map)

    def columns(self, X: Any) -> np.ndarray:
        """Return the columns of the map."""
        return self.map.columns(X)

    def scores(self, X: Any, weights: np.ndarray) -> np.ndarray:
        """Return the scores of the map."""
        return map_scores(self.map, X, weights)

    def reads(self) -> np.ndarray:
        """Return the features that the map reads."""
        return self.map.features()

    def operations(self) -> int:
        """Return the operations of the map."""
        return self.map.operations()

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the map."""
        return self.map.arrays()


def primitives_of(map: FeatureMap) -> list[Primitive]:
    """Return the primitives of any map. A map without them becomes one `Unlowered`."""
    lowers = map._lowers if isinstance(map, LoweredMap) else hasattr(map, "lower")
    found: list[Primitive] = map.lower() if lowers else [Unlowered(map)]  # type: ignore[attr-defined]
    return found


def lowered(map: FeatureMap) -> list[Primitive]:
    """Return the primitives of a map. All exports start here.

    A `TypeError` names the map, or the map inside it, that has none.
    """
    found = primitives_of(map)
    for primitive in (inner for outer in found for inner in outer.every()):
        if isinstance(primitive, Unlowered):
            raise TypeError(_why_not(primitive.map))
    return found


def _why_not(map: Any) -> str:
    """Say why a map has no primitives, and what would do."""
    if getattr(map, "kind", "") == "classifiers":
        return (
            "an ensemble of scikit-learn classifiers cannot be exported, because a classifier is "
            "not made of primitives; use a pool of atoms instead, such as pool='stumps'"
        )
    name = type(map).__name__
    return (
        f"{name} has no method lower() that says what its columns are, so it cannot be exported; "
        f"give {name} a lower() that returns its primitives (see laconic.model.primitives), and "
        "remove its columns() and scores()"
    )
