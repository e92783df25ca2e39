"""Atoms that read one feature or two, and the feature maps that compute their values on new rows.

An atom is a small immutable record. See `laconic.model.feature_maps` for what a map is.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from laconic.files.layout import Array
from laconic.model.conditions import CONDITION_KINDS, categories_asked, condition_writer
from laconic.model.distinct_names import quoted_if_alike
from laconic.model.feature_maps import SUM, Labels, Names, feature_name
from laconic.model.lowering import LoweredMap, Primitive
from laconic.model.primitives import Compare, Filled, Gather, Multiply


class Column(NamedTuple):
    """One input column, x ↦ x_r."""

    feature: int

    @property
    def reads(self) -> tuple[int, ...]:
        """Input features the atom reads."""
        return (self.feature,)

    @property
    def width(self) -> int:
        """Number of columns the atom adds to the model."""
        return 1


class ColumnGroup(NamedTuple):
    """A group of input columns chosen together (ShareBoost section 2.1)."""

    features: tuple[int, ...]

    @property
    def reads(self) -> tuple[int, ...]:
        """Input features the atom reads."""
        return self.features

    @property
    def width(self) -> int:
        """Number of columns the atom adds to the model."""
        return len(self.features)


class Product(NamedTuple):
    """The product of two input columns, x ↦ x_i x_j with i < j."""

    first: int
    second: int

    @property
    def reads(self) -> tuple[int, ...]:
        """Input features the atom reads."""
        return (self.first, self.second)

    @property
    def width(self) -> int:
        """Number of columns the atom adds to the model."""
        return 1


class Stump(NamedTuple):
    """A decision stump (ShareBoost section 3.1): one yes/no question about one feature.

    ``kind`` is ``"le"`` for 1[v ≤ value], ``"eq"`` for 1[v = value] (a category) and ``"missing"``
    for 1[v is missing]. A missing v answers no to ``"le"`` and ``"eq"``.
    """

    feature: int
    value: float
    kind: str = "le"

    @property
    def reads(self) -> tuple[int, ...]:
        """Input features the atom reads."""
        return (self.feature,)

    @property
    def width(self) -> int:
        """Number of columns the atom adds to the model."""
        return 1


# Cards explain weights with this sentence.
PER_UNIT = "Weights are per unit of the input."
PER_UNIT_OF_SOME = "Weights of columns and products are per unit of the input."


class ColumnsMap(LoweredMap):
    """Input columns, unchanged."""

    kind = "columns"
    reading = f"A class adds up weight × value for every atom and {SUM} {PER_UNIT}"
    points = "An atom gives its points times its value. "
    worth = PER_UNIT_OF_SOME
    layout: ClassVar[dict[str, Array]] = {"feature": Array("i", ("columns",), 0, below="features")}

    def __init__(self, feature: np.ndarray) -> None:
        self.feature = np.asarray(feature, dtype=np.int64)
        self._gather = Gather(self.feature)

    def lower(self) -> list[Primitive]:
        """Return the columns as one `Gather`."""
        return [self._gather]

    def names(self, feature_names: Names = None, categories: Labels = None) -> list[str]:
        """Return one readable name per column."""
        return [feature_name(f, feature_names) for f in self.feature]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the flat arrays of the map."""
        return {"feature": self.feature}


class FilledMap(LoweredMap):
    """Input columns, with a value in place of missing ones."""

    kind = "filled"
    allows_missing = True
    reading = ColumnsMap.reading
    points = ColumnsMap.points
    layout: ClassVar[dict[str, Array]] = {
        "feature": Array("i", ("columns",), 0, below="features"),
        "value": Array("f", ("columns",)),
    }

    def __init__(self, feature: np.ndarray, value: np.ndarray) -> None:
        self.feature = np.asarray(feature, dtype=np.int64)
        self.value = np.asarray(value, dtype=np.float64)
        self._filled = Filled(self.feature, self.value)

    def lower(self) -> list[Primitive]:
        """Return the columns as one `Filled`."""
        return [self._filled]

    def names(self, feature_names: Names = None, categories: Labels = None) -> list[str]:
        """Return one readable name per column."""
        pairs = zip(self.feature.tolist(), self.value.tolist(), strict=True)
        return [f"{feature_name(f, feature_names)} (missing: {v:.6g})" for f, v in pairs]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the flat arrays of the map."""
        return {"feature": self.feature, "value": self.value}


class ProductsMap(LoweredMap):
    """Products of two input columns."""

    kind = "products"
    reading = f"A class adds up weight × product for every atom and {SUM} {PER_UNIT}"
    worth = PER_UNIT_OF_SOME
    layout: ClassVar[dict[str, Array]] = {
        "first": Array("i", ("columns",), 0, below="features"),
        "second": Array("i", ("columns",), 0, below="features"),
    }

    def __init__(self, first: np.ndarray, second: np.ndarray) -> None:
        self.first = np.asarray(first, dtype=np.int64)
        self.second = np.asarray(second, dtype=np.int64)
        self._multiply = Multiply(self.first, self.second)

    def lower(self) -> list[Primitive]:
        """Return the products as one `Multiply`."""
        return [self._multiply]

    def names(self, feature_names: Names = None, categories: Labels = None) -> list[str]:
        """Return one readable name per column."""
        pairs = [
            (feature_name(i, feature_names), feature_name(j, feature_names))
            for i, j in zip(self.first, self.second, strict=True)
        ]
        different = len(set(zip(self.first.tolist(), self.second.tolist(), strict=True)))
        return quoted_if_alike(lambda name: [f"{name(i)} * {name(j)}" for i, j in pairs], different)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the flat arrays of the map."""
        return {"first": self.first, "second": self.second}


STUMP_KINDS = CONDITION_KINDS[:3]


class StumpsMap(LoweredMap):
    """Decision stumps: 1[v ≤ value], 1[v = value] or 1[v is missing]."""

    kind = "stumps"
    allows_missing = True
    worth = "A stump is 1 if its condition holds and 0 otherwise."
    reading = f"{worth} A class adds up the weights of the stumps that are 1 and {SUM}"
    points = "A stump gives its points if its condition holds. "
    layout: ClassVar[dict[str, Array]] = {
        "feature": Array("i", ("columns",), 0, below="features"),
        "value": Array("f", ("columns",)),
        "test": Array("i", ("columns",), 0, len(STUMP_KINDS) - 1),
    }

    def __init__(self, feature: np.ndarray, value: np.ndarray, test: np.ndarray) -> None:
        self.feature = np.asarray(feature, dtype=np.int64)
        self.value = np.asarray(value, dtype=np.float64)
        self.test = np.asarray(test, dtype=np.uint8)
        self._compare = Compare(self.feature, self.value, self.test)

    def lower(self) -> list[Primitive]:
        """Return the stumps as one `Compare`."""
        return [self._compare]

    def names(self, feature_names: Names = None, categories: Labels = None) -> list[str]:
        """Return one readable condition per stump. ``categories`` spells out the codes."""
        conditions = self.feature, self.value, self.test
        different = len(set(zip(*(part.tolist() for part in conditions), strict=True)))
        return quoted_if_alike(condition_writer(*conditions, feature_names, categories), different)

    def asked(self) -> dict[int, set[int]]:
        """Return the category codes that the stumps ask about, for each feature."""
        return categories_asked(self.feature, self.value, self.test)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the flat arrays of the map."""
        return {"feature": self.feature, "value": self.value, "test": self.test}
