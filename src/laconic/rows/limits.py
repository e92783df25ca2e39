"""Limits that say how the work over rows is cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from laconic.numeric.sparse_rows import rows_between

# With so many rows, every thread gets several blocks, so that none waits for the last one.
MANY_ROWS = 1 << 19
# Least number of scores of a compiled block.
LEAST_SCORES = 1 << 14


class Limits(NamedTuple):
    """How the work is cut, and how many rows an estimate takes.

    The first two fields and ``cuts`` change no answer by more than rounding. Estimates serve as
    preconditioners, as Hessians for steps, and to rank atoms that may be dropped. With more rows,
    the ranking may differ, and steps may end elsewhere within the tolerance of the corrector.
    """

    block_rows: int | None = None
    """Rows in a block. None means a number that depends on all rows; see `rows_of_block`."""
    serial: int = 1 << 18
    """Multiplications in the time that waking a thread takes. The number of threads is the square
    root of the work in this unit."""
    waiting: int = 64
    """So many times more multiplications are needed if blocks are not compiled. Threads then wait
    for each other, because each of many small calls needs the interpreter's lock."""
    compiled: int = 1 << 18
    """Rows times outputs from which the work on blocks is compiled. With fewer, loading Numba may
    take longer than a fit."""
    loaded: int = 1 << 15
    """The same for pools that load Numba anyway. The first such fit on a machine compiles more
    kernels, for about two seconds. With fewer numbers, that would hardly ever pay."""
    multiplied: int = 1_000_000
    """Most multiplications in one call of BLAS in single precision. Up to this number OpenBLAS
    multiplies in place. Above it, OpenBLAS first packs the factors, which takes half the time of
    such skinny products."""
    preconditioner_rows: int = 12
    """Rows per column from which the preconditioner of a class is estimated."""
    local_rows: int = 16
    """The same for local atoms. Their rows serve all classes."""
    face: int = 1000
    """Most weights whose Hessian is written down. With more, conjugate gradients are faster."""
    travelling: int = 600
    """Most weights whose whole Hessian travels from shards that are far away (`laconic.rows.far`).
    With more, each product with it is an exchange. It is also the most weights whose whole Hessian
    is estimated in memory (`laconic.rows.sampled_hessian`)."""
    travelling_rows: int = 256
    """Rows per weight from which a whole Hessian is estimated."""
    least_rows: int = 16384
    """Least number of rows that such an estimate takes."""
    sampled: int = 8
    """In memory, such an estimate is made if it takes at most one row in so many. Otherwise,
    products with the Hessian are cheaper."""
    gathered: int = 1 << 20
    """Most rows on a cluster or in files whose columns of signs are gathered where the loop runs.
    With more, the subset search asks for sums."""
    cuts: tuple[int, ...] = ()
    """Row numbers at which rows in memory are cut into shards."""
    rows: int | None = None
    """Number of rows that the cuts are for. Other numbers of rows, as those of a fold, are cut in
    proportion. None means that the cuts are for any number of rows."""

    def rows_for_hessian(self, n_weights: int) -> int:
        """Return how many rows an estimate of the Hessian in so many weights takes."""
        return max(self.travelling_rows * n_weights, self.least_rows)

    def rows_of_block(self, n_rows: int, n_outputs: int, compiled: bool) -> int:
        """Return the number of rows of a block.

        Compiled blocks are few and long, so that threads seldom need the interpreter's lock: 16
        blocks, or 32 if there are very many rows. Other blocks are long enough to hide Python's
        overhead, and short enough for a core's cache.
        """
        if self.block_rows is not None:
            return self.block_rows
        if not compiled:
            return 4096
        rows = n_rows // (16 if n_rows < MANY_ROWS else 32) + 1
        return min(max(-(-rows // 64) * 64, LEAST_SCORES // n_outputs, 1024), 1 << 16)

    def parts(self, *arrays: Any) -> list[tuple[Any, ...]]:
        """Cut arrays of all rows into the arrays of every shard.

        They are views, except for sparse matrices in CSC format.
        """
        n_rows, cuts = arrays[0].shape[0], self.cuts
        if self.rows not in (None, n_rows):
            cuts = tuple(sorted({cut * n_rows // self.rows for cut in cuts} - {0, n_rows}))
        if not cuts:
            return [arrays]
        ends = pairwise([0, *cuts, n_rows])
        return [tuple(rows_between(array, first, last) for array in arrays) for first, last in ends]
