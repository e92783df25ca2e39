"""Turn what users hand in for rows that are elsewhere into parts (X, y, weight)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from laconic.beyond.in_parts import Join, joined_here
from laconic.beyond.read_again import ReadAgain
from laconic.data.elsewhere import has_parts, is_dask, is_path
from laconic.numeric.parts import Parts


class GivenParts(NamedTuple):
    """Rows in parts as they were given, and how their shards become one."""

    parts: Parts
    names: Sequence[str]
    """What messages call the parts: a file, some rows of it, or a number."""
    join: Join
    glances: Parts | None = None
    """The same parts for a first look, if that needs to read less of them."""

    @classmethod
    def of_files(cls, parts: ReadAgain, glances: Parts | None = None) -> GivenParts:
        """Return parts that are read from files."""
        return cls(parts, parts.names, joined_here, glances)


def given_parts(X: Any, y: Any, sample_weight: Any) -> GivenParts:
    """Return the parts of a Dask collection, of files, or of a memory map."""
    if is_dask(X):
        from laconic.beyond.collections import dask_parts

        return dask_parts(X, y, sample_weight)
    if has_parts(X):
        return GivenParts.of_files(X.parts(y, sample_weight), X.glances(y, sample_weight))
    if is_path(X):
        return _of_files(X, y, sample_weight)
    from laconic.beyond.npy import map_parts

    return GivenParts.of_files(map_parts(X, y, sample_weight))


def _of_files(X: Any, y: Any, sample_weight: Any) -> GivenParts:
    from laconic.beyond.files import files_of

    paths = files_of(X)
    if paths[0].suffix.lower() == ".npy":
        from laconic.beyond.npy import npy_parts

        return GivenParts.of_files(npy_parts(paths, y, sample_weight))
    from laconic.beyond.parquet import ParquetRows

    rows = ParquetRows(paths)
    return GivenParts.of_files(rows.parts(y, sample_weight), rows.glances(y, sample_weight))
