"""The built-in pools and kinds of atoms: the one place where they get their names.

This module holds only names. The code behind a name is imported at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple


class BuiltIn(NamedTuple):
    """A pool that has a name."""

    pool: str
    """Module and name of its class."""
    takes: tuple[str, ...] = ()
    """Settings of an estimator that are passed to the class, in order, such as ``"scale"``."""
    allows_missing: bool = False
    """Whether values may be missing and text columns of a data frame are taken as categories."""


POOLS = {
    "columns": BuiltIn("laconic.pools.columns:Columns", ("scale", "groups")),
    "stumps": BuiltIn("laconic.pools.stumps:Stumps", allows_missing=True),
    "rules": BuiltIn("laconic.pools.rules:Rules", allows_missing=True),
    "products": BuiltIn("laconic.pools.products:Products", ("scale",)),
    "pieces": BuiltIn("laconic.pools.pieces:Pieces"),
    "bumps": BuiltIn("laconic.pools.bumps:Bumps"),
    "hinges": BuiltIn("laconic.pools.hinges:Hinges"),
}
"""Pools that an estimator accepts by name."""

MAPS = {
    "bumps": "laconic.model.bumps:BumpsMap",
    "columns": "laconic.model.atoms:ColumnsMap",
    "products": "laconic.model.atoms:ProductsMap",
    "stumps": "laconic.model.atoms:StumpsMap",
    "filled": "laconic.model.atoms:FilledMap",
    "mixed": "laconic.model.mixed:MixedMap",
    "patches": "laconic.model.patches:PatchesMap",
    "hinges": "laconic.model.hinges:HingesMap",
    "pieces": "laconic.model.pieces:PiecesMap",
    "rules": "laconic.model.rules:RulesMap",
    "regions": "laconic.model.regions:RegionsMap",
}
"""Feature maps in model files, by kind."""

QUANTISE = "laconic.model.integer_predictor:quantise"
INTEGER_FILE = "laconic.model.integer_file:BOTH_WAYS"
TABLE_BYTES = "laconic.export.table_bytes:table_bytes"
TO_C = "laconic.export.header:to_c"
TO_ONNX = "laconic.export.onnx_model:to_onnx"
"""What a predictor can be turned into. Nothing of it is imported before it is asked for."""

TENSOR_ANSWER = "laconic.device.answers:answer"
TENSOR_SCORES = "laconic.device.reading:scores"
TENSOR_COLUMNS = "laconic.device.reading:columns"
TENSOR_LABELS = "laconic.device.reading:labels"
"""How a model reads tensors. They are imported when there are tensors, as they import torch."""


def allows_missing(pool: Any) -> bool:
    """Return whether a pool takes missing values and text. A list of pools does if all do."""
    if type(pool) in (list, tuple):
        return bool(pool) and all(allows_missing(item) for item in pool)
    if isinstance(pool, str):
        return pool in POOLS and POOLS[pool].allows_missing
    return bool(getattr(pool, "allows_missing", False))


def find(where: str) -> Any:
    """Import and return the object of a text ``module:name``."""
    module, name = where.split(":")
    return getattr(import_module(module), name)
