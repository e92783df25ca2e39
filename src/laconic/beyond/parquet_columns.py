"""Columns of Parquet files. Nothing is imported for this."""

from __future__ import annotations

from typing import Any


def stored_columns(schema: Any) -> list[str]:
    """Return the names of the columns of an Arrow schema, without an index that pandas wrote.

    Such an index would tell a model the order of the rows.
    """
    told = (schema.pandas_metadata or {}).get("index_columns", [])
    index = [name for name in told if isinstance(name, str)]
    return [name for name in schema.names if name not in index]
