"""Atoms of several kinds in one model: a map of several maps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from laconic.files.layout import Array, check_arrays
from laconic.model.feature_maps import SUM, FeatureMap, Labels, Names, feature_map, map_bytes
from laconic.model.lowering import LoweredMap, Primitive, primitives_of

# Maps may contain maps, but not nested deeper than this.
DEEPEST = 8

_PART = re.compile(r"part(\d{1,9})_(.*)", re.DOTALL)


class MixedMap(LoweredMap):
    """The columns of several maps, one after the other.

    Parameters
    ----------
    maps : sequence of FeatureMap
    """

    kind = "mixed"
    reading = (
        "A condition is 1 if it holds and 0 otherwise. A class adds up weight × value for every "
        f"atom and {SUM} Weights of other atoms are per unit of their value."
    )
    points = (
        "An atom gives its points times its value. A condition is 1 if it holds and 0 otherwise. "
    )
    layout: ClassVar[dict[str, Array]] = {"kinds": Array("U", ("maps",))}

    def __init__(self, maps: Sequence[FeatureMap]) -> None:
        self.maps = list(maps)
        # A map that takes no missing values refuses those in its own features.
        self.allows_missing = any(getattr(map, "allows_missing", False) for map in self.maps)
        self._list = [primitive for map in self.maps for primitive in primitives_of(map)]
        self._depth = 1 + max((getattr(map, "_depth", 0) for map in self.maps), default=0)
        if self._depth > DEEPEST:
            raise ValueError(f"maps within maps are more than {DEEPEST} deep")

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, np.ndarray], n_features: int, depth: int = 0
    ) -> MixedMap:
        """Rebuild the map from its `arrays`. They may come from a stranger and are checked."""
        if depth >= DEEPEST:
            raise ValueError(f"maps within maps are more than {DEEPEST} deep")
        own: dict[str, np.ndarray] = {}
        parts: dict[int, dict[str, np.ndarray]] = {}
        for name, array in arrays.items():
            if found := _PART.fullmatch(name):
                parts.setdefault(int(found[1]), {})[found[2]] = array
            else:
                own[name] = array
        kinds = check_arrays(own, cls.layout, {})["kinds"].tolist()
        if not set(parts) <= set(range(len(kinds))):
            raise ValueError("it has arrays of maps that it does not list")
        return cls([
            feature_map(kind, parts.get(number, {}), n_features, depth + 1)
            for number, kind in enumerate(kinds)
        ])  # fmt: skip

    @property
    def nbytes(self) -> int:
        """Bytes of the maps inside."""
        return sum(map(map_bytes, self.maps))

    def lower(self) -> list[Primitive]:
        """Return the primitives of all maps."""
        return list(self._list)

    def names(self, feature_names: Names = None, categories: Labels = None) -> list[str]:
        """Return one readable name per column."""
        return [name for map in self.maps for name in map.names(feature_names, categories)]

    def asked(self) -> dict[int, set[int]]:
        """Return the category codes that the maps ask about, for each feature."""
        out: dict[int, set[int]] = {}
        for map in self.maps:
            for feature, codes in getattr(map, "asked", dict)().items():
                out.setdefault(feature, set()).update(codes)
        return out

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the flat arrays of the map."""
        out = {"kinds": np.array([map.kind for map in self.maps], dtype=np.str_)}
        for number, map in enumerate(self.maps):
            out |= {f"part{number}_{name}": array for name, array in map.arrays().items()}
        return out
