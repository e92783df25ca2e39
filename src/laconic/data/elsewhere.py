"""Recognise rows that are not in the memory of this process. Nothing is imported for this."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

# A memory map of more rows than this is read in parts of so many rows. Small row groups of Parquet
# files are read together up to this number.
CHUNK = 1 << 20
# Endings of files with rows.
ENDINGS = (".npy", ".parquet", ".pq")
# Where DLPack says that an array is, if a processor can read it: its memory, pinned or not.
PROCESSOR = (1, 3)


def is_dask(X: Any) -> bool:
    """Return whether an object is a Dask collection that can be cut into its partitions.

    Objects of other libraries may hold such collections, or only NumPy's arrays.
    """
    asked = (getattr(X, name, None) for name in ("__dask_graph__", "to_delayed"))
    return all(map(callable, asked)) and not isinstance(X, type)


def is_on_device(X: Any) -> bool:
    """Return whether an object is an array in the memory of a GPU, of torch or any other library.

    All libraries of such arrays speak DLPack.
    """
    asked = getattr(X, "__dlpack_device__", None)
    if asked is None or isinstance(X, np.ndarray | type):
        return False
    return int(asked()[0]) not in PROCESSOR


def is_path(X: Any) -> bool:
    """Return whether rows are the path of files, of a folder or a pattern, or a list of paths.

    A list of labels may also be a list of texts; see `are_files`.
    """
    if isinstance(X, list | tuple):
        return len(X) > 0 and all(isinstance(item, str | PathLike) for item in X)
    return isinstance(X, str | PathLike)


def are_files(values: Any) -> bool:
    """Return whether labels or weights are the path of files. In a list, each has its ending."""
    listed = values if isinstance(values, list | tuple) else ()
    named = (isinstance(item, PathLike) or item.endswith(ENDINGS) for item in listed)
    return is_path(values) and all(named)


def has_parts(X: Any) -> bool:
    """Return whether an object knows how to make parts of its rows and of their labels."""
    return callable(getattr(type(X), "parts", None))


def is_large_map(X: Any) -> bool:
    """Return whether an object is a memory map of many rows."""
    mapped = isinstance(X, np.memmap) or isinstance(getattr(X, "base", None), np.memmap)
    return mapped and X.ndim == 2 and len(X) > CHUNK


def is_elsewhere(X: Any) -> bool:
    """Return whether rows are on a cluster or in files, and not in this process."""
    return is_dask(X) or is_path(X) or has_parts(X)


def in_words(X: Any) -> str:
    """Return what rows that are elsewhere are, for messages."""
    return "a Dask collection" if is_dask(X) else "the path of a file"
