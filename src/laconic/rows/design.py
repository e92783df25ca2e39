"""The columns that are in, over the blocks of a shard: products with weights, sums over rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from laconic.pools.local_columns import LocalColumns
from laconic.rows.blocks import Block
from laconic.rows.sums import total


class Design:
    """Columns that are written down, and after them those of local atoms.

    A local atom's columns are made of a table that all atoms share. So its weights become weights
    of the table before a product, and sums over the table become sums of its columns after one.

    Parameters
    ----------
    dtype : dtype
        Of the columns.
    n_written : int
        Columns that are written down in every block.
    locals : sequence of LocalColumns
        Local atoms, which every block holds, too.
    """

    def __init__(
        self, dtype: np.dtype[Any], n_written: int = 0, locals: Sequence[LocalColumns] = ()
    ) -> None:
        self.dtype = dtype
        self.n_written = n_written
        self.locals = list(locals)

    @property
    def n_columns(self) -> int:
        """Columns in."""
        return self.n_written + sum(local.width for local in self.locals)

    def inner(self, W: np.ndarray) -> np.ndarray | None:
        """Weights of the local atoms as weights of what their columns are made of."""
        if not self.locals:
            return None
        parts = W[self.n_written :].reshape(len(self.locals), -1, W.shape[1])
        out = np.empty((len(parts), len(self.locals[0].change), W.shape[1]), dtype=self.dtype)
        for local, part, own in zip(self.locals, parts, out, strict=True):
            own[:] = local.change @ part
        return out

    def product(self, block: Block, weights: np.ndarray, inner: np.ndarray | None) -> np.ndarray:
        """Weights (n_outputs, n_columns) times the columns in, class-major.

        ``inner`` are the weights of the local atoms, for the table.
        """
        out = block.columns.product(weights[:, : self.n_written])
        if inner is not None:
            out += block.local.product(inner)
        return out

    def sums(self, block: Block, values: np.ndarray) -> np.ndarray:
        """Sums over the block's rows of columns (or tables) times class-major values."""
        out = block.columns.sums(values, self.n_written)
        if not self.locals:
            return out
        return np.vstack([out, block.local.sums(values).reshape(-1, len(values))])

    def column_sums(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """Add the sums of the blocks, and make those of columns of those of tables."""
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
        """⟨x_i, t⟩ for the rows of a block."""
        out: np.ndarray = self._written(block) @ t[: self.n_written]
        if not self.locals:
            return out
        parts = t[self.n_written :].reshape(len(self.locals), -1)
        tables = [local.change @ own for local, own in zip(self.locals, parts, strict=True)]
        return out + block.local.exact_product(np.array(tables))

    def gram_sums(self, block: Block, t: np.ndarray) -> np.ndarray:
        """Σ_i weight_i x_i ⟨x_i, t⟩ of columns (or tables) over the rows of a block, one column."""
        along = self.along(block, t) * block.weight.astype(np.float64)
        sums = self._written(block).T @ along
        if not self.locals:
            return sums[:, None]
        return np.concatenate([sums, block.local.exact_sums(along).ravel()])[:, None]

    def _written(self, block: Block) -> np.ndarray:
        return block.columns.take(slice(None), slice(0, self.n_written)).astype(np.float64)
