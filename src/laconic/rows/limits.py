"""Limits that say how the work over rows is cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from laconic.numeric.sparse_rows import rows_between


class Limits(NamedTuple):
    """How the work is cut, and how many rows an estimate takes.

    The first two fields and ``cuts`` change no answer by more than rounding. Estimates serve as
    preconditioners, as Hessians for steps, and to rank atoms that may be dropped. With more rows,
    the ranking may differ, and steps may end elsewhere within the tolerance of the corrector.
    """

    block_rows: int = 4096
    """Rows in a block: enough to hide Python's overhead, few enough for a core's cache."""
    serial: int = 1 << 22
    """With fewer multiplications, handing blocks to threads costs more than it saves."""
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
    With more, each product with it is an exchange."""
    travelling_rows: int = 256
    """Rows per weight from which a Hessian that travels is estimated."""
    least_rows: int = 16384
    """Least number of rows that such an estimate takes."""
    gathered: int = 1 << 20
    """Most rows on a cluster or in files whose columns of signs are gathered where the loop runs.
    With more, the subset search asks for sums."""
    cuts: tuple[int, ...] = ()
    """Row numbers at which rows in memory are cut into shards."""
    rows: int | None = None
    """Number of rows that the cuts are for. Other numbers of rows, as those of a fold, are cut in
    proportion. None means that the cuts are for any number of rows."""

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
