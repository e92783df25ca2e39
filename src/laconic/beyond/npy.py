"""Parts of memory-mapped arrays: of one large map, or of a list of .npy files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from laconic.beyond.files import files_of
from laconic.beyond.read_again import ReadAgain
from laconic.data.elsewhere import CHUNK, is_path
from laconic.numeric.threads import row_blocks


def npy_parts(paths: Sequence[Path], y: Any, sample_weight: Any) -> ReadAgain:
    """Return the parts of a list of .npy files.

    Labels and weights are arrays for all rows, or files for the same rows.
    """
    maps = [_opened(path) for path in paths]
    for path, own in zip(paths, maps, strict=True):
        if own.ndim != 2:
            raise ValueError(f"{path} must hold rows and features, not {own.ndim} dimensions")
    sizes = [len(own) for own in maps]
    labels, weights = (
        [None] * len(maps) if values is None else _columns(values, sizes, paths, name)
        for values, name in ((y, "y"), (sample_weight, "sample_weight"))
    )
    return chunks(maps, labels, weights, CHUNK)


def _opened(path: Path) -> np.ndarray:
    try:
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} cannot be read as a .npy file of numbers: {error}") from error
    return array


def _columns(values: Any, sizes: list[int], paths: Sequence[Path], name: str) -> list[np.ndarray]:
    """Return the labels or weights of every file."""
    if is_path(values):
        columns = [_opened(path) for path in files_of(values)]
        if len(columns) != len(sizes):
            raise ValueError(
                f"{name} has {len(columns)} files, but X has {len(sizes)}; give one for each"
            )
        for path, column, size in zip(paths, columns, sizes, strict=True):
            if len(column) != size:
                raise ValueError(f"{path} has {size} rows, but {name} has {len(column)} for it")
        return columns
    whole = np.asarray(values)
    if len(whole) != sum(sizes):
        raise ValueError(f"X has {sum(sizes)} rows in its files, but {name} has {len(whole)}")
    return np.split(whole, np.cumsum(sizes)[:-1])


def chunks(
    maps: Sequence[np.ndarray], labels: Sequence[Any], weights: Sequence[Any], size: int
) -> ReadAgain:
    """Return parts of at most ``size`` rows of each array."""
    sources = [
        partial(_cut, X, y, weight, rows)
        for X, y, weight in zip(maps, labels, weights, strict=True)
        for rows in row_blocks(len(X), size)
    ]
    return ReadAgain(sources)


def _cut(X: np.ndarray, y: Any, weight: Any, rows: slice) -> tuple[Any, Any, Any]:
    return X[rows], y[rows], None if weight is None else weight[rows]
