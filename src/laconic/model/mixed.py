"""Several feature maps as one: a model whose atoms are of different kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from laconic.files.layout import Array
from laconic.model.arrange import Arrange
from laconic.model.atoms import ColumnsMap
from laconic.model.feature_maps import SUM, FeatureMap, Labels, Names, map_bytes, map_width
from laconic.model.lowering import LoweredMap, Primitive, primitives_of
from laconic.model.nested import nested_depth, own_and_parts, part_arrays
from laconic.registry import MAPS

M = TypeVar("M")


class MixedMap(LoweredMap):
    """The columns of several maps.

    Parameters
    ----------
    parts : sequence of FeatureMap
        The maps. Each holds the atoms of one kind.
    part : array of shape (n_columns,), optional
        The number of every column's map. Columns of one map stay in their order. By default, the
        columns of the maps follow each other.
    """

    kind = "mixed"
    layout: ClassVar[dict[str, Array]] = {
        "kinds": Array("U", ("parts",)),
        "part": Array("i", ("columns",), 0, below="parts"),
    }

    def __init__(self, parts: Sequence[FeatureMap], part: Any = None) -> None:
        self.parts = list(parts)
        self._depth = nested_depth(self.parts, "mixed atoms")
        widths = [map_width(map) for map in self.parts]
        if part is None:
            part = np.repeat(np.arange(len(widths)), widths)
        self.part = np.asarray(part, dtype=np.int64)
        fits = self.part.ndim == 1 and len(self.part) == sum(widths)
        if not fits or np.bincount(self.part, minlength=len(widths)).tolist() != widths:
            raise ValueError("the columns of the mixed atoms do not fit their maps")
        # A map that takes no missing values refuses those in its own features.
        self.allows_missing = any(getattr(map, "allows_missing", False) for map in self.parts)
        self._lowered = [primitive for map in self.parts for primitive in primitives_of(map)]
        by_part = np.argsort(self.part, kind="stable")
        if not np.array_equal(by_part, np.arange(len(by_part))):
            self._lowered = [Arrange(self._lowered, np.argsort(by_part))]

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, np.ndarray], n_features: int, depth: int = 0
    ) -> MixedMap:
        """Rebuild the map from its `arrays`. They may come from a stranger and are checked."""
        own, parts = own_and_parts(arrays, cls.layout, n_features, depth, "mixed atoms")
        return cls(parts, **own)

    def lower(self) -> list[Primitive]:
        """Return the primitives of the parts, with their columns in order."""
        return list(self._lowered)

    def of_part(self, number: int) -> np.ndarray:
        """Return the columns of one of the maps, in order."""
        return np.flatnonzero(self.part == number)

    def in_order(self, lists: Sequence[Sequence[M]]) -> list[M]:
        """Return one item for each column, from the lists of the maps."""
        each = [iter(items) for items in lists]
        return [next(each[number]) for number in self.part.tolist()]

    def names(self, feature_names: Names = None, categories: Labels = None) -> list[str]:
        """Return one readable name per column. Names that two maps share get the map's kind."""
        return self.told_apart([map.names(feature_names, categories) for map in self.parts])

    def told_apart(self, lists: Sequence[Sequence[str]]) -> list[str]:
        """Return the names of all columns, from the names of every map's columns."""
        seen = [set(names) for names in lists]
        alike = {
            name for i, names in enumerate(seen) for other in seen[:i] for name in names & other
        }
        return self.in_order(
            [
                [f"{name} ({map.kind})" if name in alike else name for name in names]
                for map, names in zip(self.parts, lists, strict=True)
            ]
        )

    @property
    def asked(self) -> Callable[[], dict[int, set[int]]]:
        """A method that returns the category codes that the atoms ask about.

        It is missing if a map that is not built in does not know which codes it asks about.
        """
        each = [getattr(map, "asked", dict) if map.kind in MAPS else map.asked  # type: ignore
                for map in self.parts]  # fmt: skip

        def together() -> dict[int, set[int]]:
            out: dict[int, set[int]] = {}
            for asked in each:
                for feature, codes in asked().items():
                    out.setdefault(feature, set()).update(codes)
            return out

        return together

    @property
    def nbytes(self) -> int:
        """Bytes of the maps. The order only says which weight belongs to which column."""
        return sum(map_bytes(map) for map in self.parts)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the flat arrays of the map."""
        return {**part_arrays(self.parts), "part": self.part}

    # -- words for cards -----------------------------------------------------------------------

    @property
    def reading(self) -> str:
        """What a class does with the atoms."""
        told = _distinct(getattr(map, "worth", "") for map in self.parts)
        return " ".join([f"A class adds up weight × value for every atom and {SUM}", *told])

    @property
    def points(self) -> str | None:
        """What an atom gives if one score tells two classes apart."""
        told = [getattr(map, "points", ColumnsMap.points) for map in self.parts]
        return None if None in told else "".join(_distinct(told))

    @property
    def to_see(self) -> str | None:
        """How to draw the atoms that can be drawn."""
        return " ".join(_distinct(getattr(map, "to_see", None) for map in self.parts)) or None


def _distinct(texts: Any) -> list[str]:
    """Return the texts that are not empty, each once."""
    return [text for text in dict.fromkeys(texts) if text]


def maps_of(map: FeatureMap, kind: type[M]) -> Iterator[tuple[M, np.ndarray]]:
    """Yield every map of a class in a model's map, with the numbers of its columns."""
    if isinstance(map, kind):
        yield map, np.arange(map_width(map))
    elif isinstance(map, MixedMap):
        for number, part in enumerate(map.parts):
            for found, columns in maps_of(part, kind):
                yield found, map.of_part(number)[columns]
