"""Memory maps whose files are watched, because a fit reads them again and again.

A map shows what is in its file now. The file may be replaced by another one of the same name, or be
deleted: a map then keeps its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from laconic.beyond.files import KnownFile

Reader = Callable[[slice], Any]
"""Returns some rows."""


def reader_of(array: np.ndarray) -> tuple[Reader, list[KnownFile]]:
    """Return what reads rows of an array, and the file to watch if it is a memory map."""
    whole, path = _map_of(array), file_of_map(array)
    if whole is None or path is None or not path.exists():
        return array.__getitem__, []
    whole.flush()  # otherwise the system may write later what the user wrote before
    file = KnownFile.of(path)
    return partial(_read, array, file), [file]


def _read(array: np.ndarray, file: KnownFile, rows: slice) -> Any:
    file.check_in_place()
    return array[rows]


def file_of_map(X: Any) -> Path | None:
    """Return the file of a memory map or of a view of one. Return None for a file without name."""
    found = _map_of(X)
    return None if found is None or found.filename is None else Path(found.filename).resolve()


def _map_of(X: Any) -> np.memmap | None:
    while isinstance(X, np.ndarray) and not isinstance(X, np.memmap):
        X = X.base
    return X if isinstance(X, np.memmap) else None
