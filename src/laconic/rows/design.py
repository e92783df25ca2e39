"""Products with weights and sums over rows of the columns that are in, for blocks of a shard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from laconic.pools.local_columns import LocalColumns
from laconic.rows.blocks import Block
from laconic.rows.sums import total


class Design:
    """The columns that are written down, followed by the columns of local atoms.

    The columns of local atoms are formed from one table that all atoms share. Before a product, the
    weights of an atom are turned into weights of the table. Sums over the table are turned into
    sums of the atom's columns afterwards.

    Parameters
    ----------
    dtype : dtype
        Type of the columns.
    n_written : int
        Number of columns that are written down in every block.
    locals : sequence of LocalColumns
        Local atoms. Every block also holds its part of them.
    """

    def __init__(
        self, dtype: np.dtype[Any], n_written: int = 0, locals: Sequence[LocalColumns] = ()
    ) -> None:
        self.dtype = dtype
        self.n_written = n_written
        self.locals = list(locals)

    @property
    def n_columns(self) -> int:
        """Number of columns that are in. All local atoms have the same number."""
        return self.n_written + (len(self.locals) * self.locals[0].width if self.locals else 0)

    def inner(self, W: np.ndarray) -> np.ndarray | None:
        """Return the weights of the local atoms as weights of their table, or None without any."""
        if not self.locals:
            return None
        parts = W[self.n_written :].reshape(len(self.locals), -1, W.shape[1])
        out = np.empty((len(parts), len(self.locals[0].change), W.shape[1]), dtype=self.dtype)
        for local, part, own in zip(self.locals, parts, out, strict=True):
            own[:] = local.change @ part
        return out

    def product(self, block: Block, weights: np.ndarray, inner: np.ndarray | None) -> np.ndarray:
        """Return weights (n_outputs, n_columns) times the columns that are in, class-major.

        ``inner`` has the weights of the local atoms as weights of the table.
        """
        out = block.columns.product(weights[:, : self.n_written])
        if inner is not None:
            out += block.local.product(inner)
        return out

    def sums(self, block: Block, values: np.ndarray) -> np.ndarray:
        """Return sums over the block's rows of columns (or tables) times class-major values."""
        out = block.columns.sums(values, self.n_written)
        if not self.locals:
            return out
        return np.vstack([out, block.local.sums(values).reshape(-1, len(values))])

    def column_sums(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """Add the sums of the blocks, and turn sums over tables into sums of columns."""
        sums, n = total(parts), self.n_written
        if not self.locals:
            return sums
        tables = sums[n:].reshape(len(self.locals), -1, sums.shape[1])
        out = np.empty((self.n_columns, sums.shape[1]))
        out[:n] = sums[:n]
        columns = out[n:].reshape(len(tables), -1, sums.shape[1])
        for local, table, own in zip(self.locals, tables, columns, strict=True):
            own[:] = local.change.T @ table
        return out

    # -- in double precision -------------------------------------------------------------------

    def along(self, block: Block, t: np.ndarray) -> np.ndarray:
        """Return ⟨x_i, t⟩ for the rows of a block."""
        out: np.ndarray = self._written(block) @ t[: self.n_written]
        if not self.locals:
            return out
        parts = t[self.n_written :].reshape(len(self.locals), -1)
        tables = [local.change @ own for local, own in zip(self.locals, parts, strict=True)]
        return out + block.local.exact_product(np.array(tables))

    def gram_sums(self, block: Block, t: np.ndarray) -> np.ndarray:
        """Return Σ_i weight_i x_i ⟨x_i, t⟩ over a block's rows for columns (or tables), (n, 1)."""
        along = self.along(block, t) * block.weight.astype(np.float64)
        sums = self._written(block).T @ along
        if not self.locals:
            return sums[:, None]
        return np.concatenate([sums, block.local.exact_sums(along).ravel()])[:, None]

    def _written(self, block: Block) -> np.ndarray:
        return block.columns.take(slice(None), slice(0, self.n_written)).astype(np.float64)
