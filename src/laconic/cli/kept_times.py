"""Times that are kept in text, spelled the same in every chunk of a table.

pandas writes the dates of a column without a time of day if none has one, and seconds with as many
decimals as the finest time of the column needs. So each chunk is spelled beside the finest time of
the whole column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from laconic.cli.parquet_chunks import opened
from laconic.cli.parquet_tables import parquet_errors

# Steps of times, in units of each second, from coarse to fine.
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 86_400


def finest_times(paths: Sequence[Path], names: Iterable[str]) -> dict[str, Any]:
    """Return the finest time of every column of times or durations, as a series of one value."""
    found: dict[str, tuple[int, Any]] = {}
    for path in paths:
        with opened(path) as file, parquet_errors(str(path)):
            timed = [name for name in names if _is_timed(file.schema_arrow.field(name).type)]
            for batch in file.iter_batches(columns=timed) if timed else ():
                for name in timed:
                    own = _finest(batch.column(name))
                    if own is not None and own[0] > found.get(name, (-1, None))[0]:
                        found[name] = own
    return {name: time for name, (_, time) in found.items()}


def _is_timed(kind: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_timestamp(kind) or pyarrow.types.is_duration(kind))


def _finest(column: Any) -> tuple[int, Any] | None:
    """Return how fine the finest time of a column is, and this time."""
    import numpy as np
    import pyarrow

    known = column.drop_null()
    if not len(known):
        return None
    values, second = known.cast(pyarrow.int64()).to_numpy(), _UNITS[column.type.unit]
    steps = [second * _DAY, *(second // unit for unit in _UNITS.values() if unit <= second)]
    fineness = np.sum([values % step != 0 for step in steps], axis=0)
    at = int(fineness.argmax())
    return int(fineness[at]), known[at : at + 1].to_pandas()


def spelled(column: Any, finest: Any) -> Any:
    """Return times as text, spelled as in a column that has the finest time too."""
    import pandas

    if finest is None:
        return column
    both = pandas.concat([column, finest.astype(column.dtype)])
    return both.astype(str).where(both.notna(), None)[:-1]
