"""Maps that consist of other maps: how their parts are written to a file, and read back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from laconic.files.layout import Array, check_arrays
from laconic.model.feature_maps import FeatureMap, Labels, Names, feature_map, feature_name
from laconic.model.lowering import LoweredMap, Primitive
from laconic.model.primitives import Gather

# Maps may contain maps, but not nested deeper than this.
DEEPEST = 8

_PART = re.compile(r"part(\d{1,9})_(.*)", re.DOTALL)


class AllColumns(LoweredMap):
    """All input columns, unchanged. This map of a dense linear model needs no list of columns."""

    kind = "all"
    layout: ClassVar[dict[str, Array]] = {"n_features": Array("i", (), "features", "features")}
    remarks = ("n_features",)

    def __init__(self, n_features: Any) -> None:
        self.n_features = int(n_features)
        self._gather = Gather(range(self.n_features))

    def lower(self) -> list[Primitive]:
        """Return the columns as one `Gather`."""
        return [self._gather]

    def names(self, feature_names: Names = None, categories: Labels = None) -> list[str]:
        """Return the names of the features."""
        return [feature_name(f, feature_names) for f in range(self.n_features)]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the flat arrays of the map."""
        return {"n_features": np.array(self.n_features)}


def nested_depth(parts: Sequence[FeatureMap], what: str) -> int:
    """Return how deep a map of these parts is nested. Refuse one that is too deep."""
    depth = 1 + max((getattr(part, "_depth", 0) for part in parts), default=0)
    check_depth(depth - 1, what)
    return depth


def check_depth(outer: int, what: str) -> None:
    """Refuse a map inside too many others. ``what`` names the map, as in "regions"."""
    if outer >= DEEPEST:
        raise ValueError(f"{what} within {what} are more than {DEEPEST} deep")


def part_arrays(parts: Sequence[FeatureMap]) -> dict[str, np.ndarray]:
    """Return the kinds of the parts, and their arrays under names of their own."""
    out = {"kinds": np.array([part.kind for part in parts], dtype=np.str_)}
    for number, part in enumerate(parts):
        out |= {f"part{number}_{name}": array for name, array in part.arrays().items()}
    return out


def own_and_parts(
    arrays: dict[str, np.ndarray], layout: dict[str, Array], n_features: int, depth: int, what: str
) -> tuple[dict[str, np.ndarray], list[FeatureMap]]:
    """Return the checked arrays of a map without its parts, and its parts, rebuilt.

    The arrays may come from a stranger. ``depth`` is the number of maps that contain the map.
    """
    check_depth(depth, what)
    own: dict[str, np.ndarray] = {}
    of_part: dict[int, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        if found := _PART.fullmatch(name):
            of_part.setdefault(int(found[1]), {})[found[2]] = array
        else:
            own[name] = array
    own = check_arrays(own, layout, {"features": n_features})
    kinds = own.pop("kinds").tolist()
    if not set(of_part) <= set(range(len(kinds))):
        raise ValueError(f"it has arrays of {what} that it does not list")
    parts: list[FeatureMap] = []
    for number, kind in enumerate(kinds):
        part = of_part.get(number, {})
        if kind == AllColumns.kind:
            known = {"features": n_features}
            parts.append(AllColumns(**check_arrays(part, AllColumns.layout, known)))
        else:
            parts.append(feature_map(kind, part, n_features, depth + 1))
    return own, parts
