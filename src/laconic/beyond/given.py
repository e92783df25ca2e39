"""Turn what users hand in for rows that are elsewhere into parts (X, y, weight)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from laconic.beyond.read_again import ReadAgain
from laconic.beyond.training import Join, joined_here
from laconic.data.elsewhere import CHUNK, has_parts, is_dask, is_path
from laconic.numeric.parts import Parts


class GivenParts(NamedTuple):
    """Rows in parts as they were given, and how their shards become one."""

    parts: Parts
    join: Join


def given_parts(X: Any, y: Any, sample_weight: Any) -> GivenParts:
    """Return the parts of a Dask collection, of files, or of a memory map."""
    if is_dask(X):
        from laconic.beyond.collections import dask_parts

        return dask_parts(X, y, sample_weight)
    if has_parts(X):
        return GivenParts(X.parts(y, sample_weight), joined_here)
    if is_path(X):
        return GivenParts(_of_files(X, y, sample_weight), joined_here)
    return GivenParts(_of_map(X, y, sample_weight), joined_here)


def _of_files(X: Any, y: Any, sample_weight: Any) -> ReadAgain:
    from laconic.beyond.files import files_of

    paths = files_of(X)
    if paths[0].suffix == ".npy":
        from laconic.beyond.npy import npy_parts

        return npy_parts(paths, y, sample_weight)
    from laconic.beyond.parquet import ParquetRows

    return ParquetRows(paths).parts(y, sample_weight)


def _of_map(X: Any, y: Any, sample_weight: Any) -> ReadAgain:
    """Return the parts of a memory map. Only labels and weights are read now."""
    from laconic.beyond.npy import chunks

    columns = [np.asarray(column) for column in (y, sample_weight) if column is not None]
    for column, name in zip(columns, ("y", "sample_weight"), strict=False):
        if len(column) != len(X):
            raise ValueError(f"X has {len(X)} rows, but {name} has {len(column)}")
    return chunks([X], [y], [sample_weight], CHUNK)
