"""Column sums XᵀR of a big dense matrix and a skinny one, at the speed of memory.

X is cut into cells (a run of rows by a run of columns) that depend only on its shape. Each cell is
summed by one thread. Sums over a few rows are in the data's dtype, and are added in float64. Cells
are added in a fixed order. So the result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from laconic.numeric.threads import Threads, row_blocks

# Smallest X that is worth a compiled kernel. At this size a pass of BLAS takes about 5 ms more, so
# a fit of 100 passes gains half a second. Loading Numba and a compiled kernel costs as much.
COMPILED_BYTES = 1 << 26
# Widest cell, in bytes of a row. One panel of rows and its float64 sums stay in level-2 cache.
CELL_WIDTH = 4096
# Bytes and smallest number of rows of a cell. This is about a millisecond of work; handing it to a
# thread costs about ten microseconds. The rows (whole panels) are so many that a cell has hundreds
# of times more numbers than float64 sums. Compared with reading a cell, adding them costs nothing.
CELL = 1 << 24, 4096
# The same for BLAS, which gets the small matrices. There are enough cells for a few threads.
BLAS_CELL = 1 << 21, 1024
# Number of cells that a matrix has at least, unless they would have fewer bytes than those of BLAS.
CELLS = 32
# Bytes per call of BLAS, which fit in level-2 cache, and the smallest and largest number of rows. A
# call costs some microseconds, and sums in float32 must not be long.
BLAS_CALL = 1 << 20, 256, 2048
# Registers that hold the factors while the others hold sums.
SPARE_REGISTERS = 4
# Most columns in a tile of contiguous columns. Each is a separate stream for the prefetchers.
TILE_COLUMNS = 8


def transpose_product(
    X: np.ndarray, R: np.ndarray, threads: Threads, *, compiled: bool | None = None
) -> np.ndarray:
    """Return the column sums XᵀR in float64.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Fastest if float32 or float64 with contiguous rows or columns, or uint8 or float16 with
        contiguous rows. Memory maps work too. Anything else is passed to BLAS a few rows at a time.
        X is never copied as a whole.
    R : ndarray of shape (m, k)
        Few columns, of the dtype of X, or float32 if X is uint8 or float16.
    threads : Threads
        The worker threads. Their number does not change a bit of the result.
    compiled : bool, optional
        Whether to use the compiled kernels where they apply. By default, only if X is large.

    Returns
    -------
    sums : ndarray of shape (d, k)
        In float64. Sums over at most 2048 rows are formed in the dtype of R, and added in float64.
    """
    X, R = np.asarray(X), np.asarray(R)
    (m, d), k = X.shape, R.shape[1]
    sums = np.zeros((d, k))
    if X.size == 0 or k == 0:
        return sums
    compiled = X.nbytes >= COMPILED_BYTES if compiled is None else compiled
    tiles = _tiles(X, R) if compiled else None
    whole = m if tiles is None else m - m % tiles.rows
    itemsize = np.result_type(X, R).itemsize  # BLAS gets integers converted, a call at a time
    largest, least_rows = BLAS_CELL if tiles is None else CELL
    n_bytes = min(max(X.nbytes // CELLS, BLAS_CELL[0]), largest)
    runs = _cells(whole, d, itemsize, n_bytes, least_rows)

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
    """Return runs of columns, each with the runs of rows that cut it into cells."""
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
        """Return the sums of one cell, tile by tile."""
        n_tiles, passes = -(-X.shape[1] // self.columns), -(-R.shape[1] // self.classes)
        sums = np.zeros((n_tiles, passes, self.length))
        self.kernel(X.view(np.uint16) if X.dtype == np.float16 else X, R, sums)
        return sums

    def gather(self, sums: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
        """Rearrange sums tile by tile to the shape (columns, classes)."""
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
    """Return the tiles for the dtype and layout of X, or None if only BLAS can be used."""
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
        # Each step loads a register per column and per class, so tiles that are nearly square load
        # least. Of these, take the number of classes with the fewest idle ones in the last pass.
        classes = min((6, 5, 4), key=lambda c: -(-k // c) * c) if k > 3 else k
        columns = min((number - 1) // (classes + 1), TILE_COLUMNS)
        if d < columns:
            return None
        length = -(-columns * classes // lanes) * lanes
        kernel = kernels.column_kernel(dtype, columns, classes)
        return _SkinnyTiles(kernel, columns, classes, length, lanes)
    return None
