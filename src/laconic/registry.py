"""The built-in pools and kinds of atoms: the one place where a new one is entered.

Only names are kept here. What they stand for is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple


class BuiltIn(NamedTuple):
    """A pool that has a name."""

    pool: str
    """Its class."""
    takes: tuple[str, ...] = ()
    """Settings of an estimator that it takes, in order: its scale and its groups of features."""
    allows_missing: bool = False
    """Whether values may be missing, and text columns of a data frame are categories."""


POOLS = {
    "columns": BuiltIn("laconic.pools.columns:Columns", ("scale", "groups")),
    "stumps": BuiltIn("laconic.pools.stumps:Stumps", allows_missing=True),
    "products": BuiltIn("laconic.pools.products:Products", ("scale",)),
    "pieces": BuiltIn("laconic.pools.pieces:Pieces"),
}
"""Pools that an estimator knows by name."""

MAPS = {
    "columns": "laconic.model.atoms:ColumnsMap",
    "products": "laconic.model.atoms:ProductsMap",
    "stumps": "laconic.model.atoms:StumpsMap",
    "patches": "laconic.model.patches:PatchesMap",
    "pieces": "laconic.model.pieces:PiecesMap",
    "regions": "laconic.model.regions:RegionsMap",
}
"""Feature maps that files of models hold, by their kinds."""


def find(where: str) -> Any:
    """What a ``module:name`` stands for."""
    module, name = where.split(":")
    return getattr(import_module(module), name)
