"""Parts of memory-mapped arrays: of one large map, or of a list of .npy files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from laconic.beyond.files import KnownFile, files_of, may_be_files
from laconic.beyond.maps import Reader, reader_of
from laconic.beyond.read_again import ReadAgain
from laconic.data.elsewhere import CHUNK, are_files
from laconic.numeric.threads import row_blocks


def npy_parts(paths: Sequence[Path], y: Any, sample_weight: Any) -> ReadAgain:
    """Return the parts of a list of .npy files.

    Labels and weights are arrays for all rows, or files for the same rows.
    """
    files = [KnownFile.of(path) for path in paths]
    readers: list[Reader] = [partial(_of_file, file) for file in files]
    shapes = [_opened(path).shape for path in paths]
    for path, shape in zip(paths, shapes, strict=True):
        if len(shape) != 2:
            raise ValueError(
                f"{path} must hold rows and features, two dimensions, not {len(shape)}"
            )
    sizes = [shape[0] for shape in shapes]
    return chunks(readers, sizes, y, sample_weight, list(map(str, paths)), files)


def map_parts(X: np.ndarray, y: Any, sample_weight: Any) -> ReadAgain:
    """Return the parts of a memory map. Only labels and weights are read now."""
    reader, files = reader_of(X)
    return chunks([reader], [len(X)], y, sample_weight, ["X"], files)


def _opened(path: Path) -> np.ndarray:
    try:
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} cannot be read as a .npy file of numbers: {error}") from error
    return array


def _columns(values: Any, sizes: Sequence[int], names: Sequence[str], what: str) -> list[Reader]:
    """Return what reads the labels or weights of every array."""
    if values is None:
        raise ValueError(f"{what} is None; give an array for all rows, or .npy files")
    if isinstance(values, str) and not may_be_files(values):
        raise ValueError(
            f"with rows in .npy files, {what} must be an array or files; {values!r} is neither"
        )
    if are_files(values):
        columns = [KnownFile.of(path) for path in files_of(values)]
        if len(columns) != len(sizes):
            raise ValueError(
                f"{what} has {len(columns)} files, but X has {len(sizes)}; give one for each"
            )
        for name, column, size in zip(names, columns, sizes, strict=True):
            if (length := len(_opened(column.path))) != size:
                raise ValueError(f"{name} has {size} rows, but {column.path} has {length}")
        return [partial(_of_file, column) for column in columns]
    whole = np.asarray(values)
    if what == "sample_weight" and whole.ndim == 0:  # one weight for all rows
        whole = np.broadcast_to(whole, sum(sizes))
    if whole.shape[:1] != (sum(sizes),):
        has = len(whole) if whole.ndim else "no rows"
        raise ValueError(f"X has {sum(sizes)} rows, but {what} has {has}")
    read, _ = reader_of(whole)
    return [partial(_from, first, read) for first in np.cumsum([0, *sizes])[:-1].tolist()]


def chunks(
    arrays: Sequence[Reader],
    sizes: Sequence[int],
    y: Any,
    sample_weight: Any,
    names: Sequence[str],
    files: Sequence[KnownFile],
) -> ReadAgain:
    """Return parts of at most `CHUNK` rows of each array, and remember the files of the rows."""
    labels = _columns(y, sizes, names, "y")
    weights: list[Any] = [None] * len(sizes)
    if sample_weight is not None:
        weights = _columns(sample_weight, sizes, names, "sample_weight")
    sources, called = [], []
    for X, size, own, weight, name in zip(arrays, sizes, labels, weights, names, strict=True):
        blocks = row_blocks(size, CHUNK)
        for rows in blocks:
            sources.append(partial(_cut, X, own, weight, rows))
            called.append(name if len(blocks) == 1 else f"{name} from row {rows.start}")
    return ReadAgain(sources, names=called, files=files)


def _cut(X: Reader, y: Reader, weight: Reader | None, rows: slice) -> tuple[Any, Any, Any]:
    return X(rows), y(rows), None if weight is None else weight(rows)


def _from(first: int, read: Reader, rows: slice) -> Any:
    """Return some rows, counted from a first one."""
    return read(slice(first + rows.start, first + rows.stop))


def _of_file(file: KnownFile, rows: slice) -> Any:
    """Return some rows of a file, which is opened now."""
    return _opened(file.unchanged())[rows]
