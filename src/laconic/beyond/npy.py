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
    shapes = [_opened(path).shape for path in paths]
    for path, shape in zip(paths, shapes, strict=True):
        if len(shape) != 2:
            raise ValueError(
                f"{path} must hold rows and features, two dimensions, not {len(shape)}"
            )
    sizes = [shape[0] for shape in shapes]
    labels, weights = (
        [None] * len(paths) if values is None else _columns(values, sizes, paths, name)
        for values, name in ((y, "y"), (sample_weight, "sample_weight"))
    )
    return chunks(paths, sizes, labels, weights, list(map(str, paths)))


def _opened(path: Path) -> np.ndarray:
    try:
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} cannot be read as a .npy file of numbers: {error}") from error
    return array


def _columns(values: Any, sizes: list[int], paths: Sequence[Path], name: str) -> list[Any]:
    """Return the labels or weights of every file, as an array or as a file."""
    if is_path(values):
        columns = files_of(values)
        if len(columns) != len(sizes):
            raise ValueError(
                f"{name} has {len(columns)} files, but X has {len(sizes)}; give one for each"
            )
        for path, column, size in zip(paths, columns, sizes, strict=True):
            if (length := len(_opened(column))) != size:
                raise ValueError(f"{path} has {size} rows, but {column} has {length}")
        return list(columns)
    whole = np.asarray(values)
    if len(whole) != sum(sizes):
        raise ValueError(f"X has {sum(sizes)} rows in its files, but {name} has {len(whole)}")
    return np.split(whole, np.cumsum(sizes)[:-1])


def chunks(
    arrays: Sequence[np.ndarray | Path],
    sizes: Sequence[int],
    labels: Sequence[Any],
    weights: Sequence[Any],
    names: Sequence[str],
) -> ReadAgain:
    """Return parts of at most `CHUNK` rows of each array. Files are opened when they are read."""
    sources, called = [], []
    for X, size, y, weight, name in zip(arrays, sizes, labels, weights, names, strict=True):
        blocks = row_blocks(size, CHUNK)
        for rows in blocks:
            sources.append(partial(_cut, X, y, weight, rows))
            called.append(name if len(blocks) == 1 else f"rows {rows.start} on of {name}")
    return ReadAgain(sources, names=called)


def _cut(X: Any, y: Any, weight: Any, rows: slice) -> tuple[Any, Any, Any]:
    return _rows(X, rows), _rows(y, rows), None if weight is None else _rows(weight, rows)


def _rows(values: Any, rows: slice) -> Any:
    return (_opened(values) if isinstance(values, Path) else values)[rows]
