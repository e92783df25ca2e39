"""Where the work over rows is cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from laconic.numeric.sparse_rows import rows_between


class Limits(NamedTuple):
    """Where the work is cut, and how many rows an estimate takes.

    The first two change no answer by more than rounding, nor do cuts. Estimates serve as
    preconditioners and to rank atoms that may be dropped: more rows may rank them otherwise.
    """

    block_rows: int = 4096
    """Rows in a block: large enough to hide Python's overhead, small enough for a core's cache."""
    serial: int = 1 << 22
    """Multiplications below which handing blocks to threads costs more than it saves."""
    multiplied: int = 1_000_000
    """Multiplications in one call of BLAS in single precision: up to here OpenBLAS multiplies in
    place, above it first packs the factors, which costs such skinny products half their time."""
    preconditioner_rows: int = 12
    """Rows per column that the preconditioner of a class is estimated from."""
    local_rows: int = 16
    """The same for local atoms, whose rows serve all classes."""
    face: int = 1000
    """Most weights whose Hessian is written down: with more, conjugate gradients are quicker."""
    cuts: tuple[int, ...] = ()
    """Numbers of rows at which rows in memory are cut into shards."""

    def parts(self, *arrays: Any) -> list[tuple[Any, ...]]:
        """Arrays of all rows, cut into those of every shard.

        They are views, except of sparse matrices by columns.
        """
        if not self.cuts:
            return [arrays]
        ends = pairwise([0, *self.cuts, arrays[0].shape[0]])
        return [tuple(rows_between(array, first, last) for array in arrays) for first, last in ends]
