"""Column sums XᵀR of a big dense matrix and a skinny one, at the speed of memory.

X is cut into cells (a run of rows by a run of columns) by its shape alone. Each cell is summed by
one thread, in stretches of rows in the data's dtype and in float64 across them; cells are added in
a fixed order. So the answer does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from laconic.numeric.threads import Threads, row_blocks

# Smallest X worth compiling for: at this size a pass of BLAS takes some 5 ms longer, so that a fit
# of a hundred passes gains what loading Numba and a compiled kernel costs, half a second.
COMPILED_BYTES = 1 << 26
# Widest cell, in bytes of a row: one panel of rows and its float64 sums stay in level-2 cache.
CELL_WIDTH = 4096
# Bytes and least rows of a cell: about a millisecond of work, against some ten microseconds to
# hand it out, and so many rows (whole panels) that its float64 sums are hundreds of times fewer
# than its numbers, and adding them up costs nothing beside reading it.
CELL = 1 << 24, 4096
# The same for BLAS, which gets the small matrices: enough cells to keep a few threads busy.
BLAS_CELL = 1 << 21, 1024
# Bytes per call of BLAS, which level-2 cache holds, and the least and most rows that makes: calls
# cost some microseconds, and sums in float32 must not grow long.
BLAS_CALL = 1 << 20, 256, 2048
# Registers that hold what is being multiplied while the others hold sums.
SPARE_REGISTERS = 4
# Most columns in a tile of contiguous columns: each is a stream of its own to the prefetchers.
TILE_COLUMNS = 8


def transpose_product(
    X: np.ndarray, R: np.ndarray, threads: Threads, *, compiled: bool | None = None
) -> np.ndarray:
    """Column sums XᵀR in float64.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Best float32 or float64 with rows or columns contiguous in memory, or uint8 or float16 with
        contiguous rows; memory maps included. Anything else is handed to BLAS a few rows at a
        time. Never copied whole.
    R : ndarray of shape (m, k)
        Few columns, of the dtype of X; float32 where X is uint8 or float16.
    threads : Threads
        Who computes. Their number does not change a bit of the answer.
    compiled : bool, optional
        Whether to use the compiled kernels, where they apply; by default if X is large.

    Returns
    -------
    sums : ndarray of shape (d, k)
        In float64. Sums of at most 2048 rows are formed in the dtype of R, and added in float64.
    """
    X, R = np.asarray(X), np.asarray(R)
    (m, d), k = X.shape, R.shape[1]
    sums = np.zeros((d, k))
    if X.size == 0 or k == 0:
        return sums
    compiled = X.nbytes >= COMPILED_BYTES if compiled is None else compiled
    tiles = _tiles(X, R) if compiled else None
    whole = m if tiles is None else m - m % tiles.rows
    itemsize = np.result_type(X, R).itemsize  # what BLAS makes of integers, a call at a time
    runs = _cells(whole, d, itemsize, *(BLAS_CELL if tiles is None else CELL))

    def cell(item: tuple[slice, slice]) -> np.ndarray:
        rows, columns = item
        if tiles is None:
            return _blas(X[rows, columns], R[rows])
        return tiles.sum(X[rows, columns], np.ascontiguousarray(R[rows]))

    parts = threads.map(cell, [(r, c) for c, rows in runs for r in rows])
    for columns, rows in runs:
        total = next(parts)
        for _ in rows[1:]:
            total += next(parts)
        sums[columns] = total if tiles is None else tiles.gather(total, sums[columns].shape)
    if whole < m:
        sums += X[whole:].T @ R[whole:]
    return sums


def _cells(
    m: int, d: int, itemsize: int, n_bytes: int, least_rows: int
) -> list[tuple[slice, list[slice]]]:
    """Runs of columns, each with the runs of rows that cut it into cells."""
    n = -(-d * itemsize // CELL_WIDTH)
    edges = [d * i // n for i in range(n + 1)]
    rows = n_bytes // (-(-d // n) * itemsize) // least_rows * least_rows
    cut = row_blocks(m, max(rows, least_rows))
    return [(slice(a, b), cut) for a, b in pairwise(edges)]


def _blas(X: np.ndarray, R: np.ndarray) -> np.ndarray:
    total = np.zeros((X.shape[1], R.shape[1]))
    n_bytes, least, most = BLAS_CALL
    rows = min(max(n_bytes // (X.shape[1] * np.result_type(X, R).itemsize), least), most)
    for s in row_blocks(len(X), rows):
        total += X[s].T @ R[s]
    return total


class _SkinnyTiles(NamedTuple):
    """A kernel, and the tiles it cuts X and R into (see `skinny_kernels.Kernel`)."""

    kernel: Callable[[np.ndarray, np.ndarray, np.ndarray], None]
    columns: int
    """Columns of a tile."""
    classes: int
    """Classes (columns of R) of a pass."""
    length: int
    """Sums of a tile and pass, some of which may be padding."""
    rows: int
    """The number of rows must be a multiple of this."""

    def sum(self, X: np.ndarray, R: np.ndarray) -> np.ndarray:
        """Sums of one cell, tile by tile."""
        n_tiles, passes = -(-X.shape[1] // self.columns), -(-R.shape[1] // self.classes)
        sums = np.zeros((n_tiles, passes, self.length))
        self.kernel(X.view(np.uint16) if X.dtype == np.float16 else X, R, sums)
        return sums

    def gather(self, sums: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
        """From sums tile by tile to sums of shape (columns, classes)."""
        out = np.empty(shape)
        n_tiles, passes, _ = sums.shape
        column = np.minimum(np.arange(n_tiles) * self.columns, shape[0] - self.columns)
        column = column[:, None] + np.arange(self.columns)
        label = np.minimum(np.arange(passes) * self.classes, shape[1] - self.classes)
        label = label[:, None] + np.arange(self.classes)
        used = sums[:, :, : self.classes * self.columns]
        used = used.reshape(n_tiles, passes, self.classes, self.columns)
        out[column[:, None, None, :], label[None, :, :, None]] = used
        return out


def _tiles(X: np.ndarray, R: np.ndarray) -> _SkinnyTiles | None:
    """Tiles for the dtype and layout of X, or None where only BLAS will do."""
    compact = X.dtype in (np.uint8, np.float16)
    wide = np.dtype(np.float32) if compact else X.dtype
    if wide not in (np.float32, np.float64) or R.dtype != wide or not X.flags.aligned:
        return None
    (m, d), k, dtype = X.shape, R.shape[1], wide.name
    contiguous = [stride == X.itemsize for stride in X.strides]
    if not any(contiguous):
        return None
    from laconic.numeric import skinny_kernels as kernels  # here, because it imports Numba

    width, number = kernels.registers()
    lanes = width // wide.itemsize
    if contiguous[1] and d >= lanes:
        classes = -(-k // -(-k // (number - SPARE_REGISTERS)))
        stored = "uint16" if X.dtype == np.float16 else X.dtype.name
        kernel = kernels.row_kernel(stored, dtype, classes)
        return _SkinnyTiles(kernel, lanes, classes, classes * lanes, 1)
    if contiguous[0] and m >= lanes and not compact:
        # Each step loads a register per column and per class, so tiles near square load least;
        # of these, the number of classes that leaves the fewest idle in the last pass.
        classes = min((6, 5, 4), key=lambda c: -(-k // c) * c) if k > 3 else k
        columns = min((number - 1) // (classes + 1), TILE_COLUMNS)
        if d < columns:
            return None
        length = -(-columns * classes // lanes) * lanes
        kernel = kernels.column_kernel(dtype, columns, classes)
        return _SkinnyTiles(kernel, columns, classes, length, lanes)
    return None
