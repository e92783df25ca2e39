"""Stores for the columns of a block of rows: as numbers, or as bits, eight columns to a byte.

Every store centres its columns by the means that it is given. A store may hold more columns than
are in, because some may have been removed again. So a method is told how many of the first columns
to use.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from laconic.numeric.threads import row_blocks
from laconic.rows.limits import Limits

Which = np.ndarray | slice
# Rows in double precision that BLAS is given at once. In single precision, blocks of many rows give
# it so many that threads seldom wait for each other, but not so many that sums lose digits.
DOUBLE_ROWS, SINGLE_ROWS = 4096, 2048
# With more outputs, BLAS is faster than a kernel that reads columns once for every four outputs.
FEW_OUTPUTS = 12


class Store(Protocol):
    """Columns of one block of rows."""

    def held(self, columns: np.ndarray) -> np.ndarray:
        """Return offered columns as they wait to be put, in little memory."""

    def written(self, held: np.ndarray) -> np.ndarray:
        """Return columns that wait to be put."""

    def put(self, first: int, columns: np.ndarray, means: np.ndarray) -> None:
        """Write columns from position ``first`` on, minus their means."""

    def cut(self, n: int) -> None:
        """Forget all columns but the first n."""

    def product(self, weights: np.ndarray) -> np.ndarray:
        """Return weights (n_outputs, n) times the first n columns, (n_outputs, n_rows)."""

    def sums(self, values: np.ndarray, n: int) -> np.ndarray:
        """Return sums over rows of the first n columns times values (n_outputs, n_rows).

        They are (n, n_outputs) in float64.
        """

    def in_one_call(self, k: int) -> bool:
        """Return whether `evaluated` and `curved` may be called for k outputs."""

    def evaluated(
        self, W: np.ndarray, margin: float, target: Any, weight: np.ndarray, state: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Return a softmax loss at weights W (n_outputs, n), and the sums of its residual."""

    def curved(self, V: np.ndarray, weight: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Return the sums of the Hessian of a softmax loss, applied to V (n_outputs, n)."""

    def take(self, rows: Which, columns: slice) -> np.ndarray:
        """Return some columns of some rows, as numbers."""

    def copy(self, n: int) -> Store:
        """Return an independent store with the first n columns."""


class Written:
    """Columns as numbers, in Fortran order with room to grow.

    Parameters
    ----------
    n_rows : int
    dtype : dtype
    multiplied : int
        Most multiplications in one call of BLAS; see `laconic.rows.limits.Limits`.
    compiled : bool
        Whether the loop over these calls is compiled.
    """

    def __init__(
        self,
        n_rows: int,
        dtype: np.dtype[Any],
        multiplied: int = Limits().multiplied,
        compiled: bool = False,
    ) -> None:
        self._multiplied, self._compiled = multiplied, compiled
        self.room = np.empty((n_rows, 8), dtype=dtype, order="F")

    def held(self, columns: np.ndarray) -> np.ndarray:
        """Return the columns as they are."""
        return columns

    written = held

    def put(self, first: int, columns: np.ndarray, means: np.ndarray) -> None:
        """Write columns, and make more room if needed."""
        need = first + columns.shape[1]
        if need > self.room.shape[1]:
            grown = np.empty((len(self.room), 2 * need), dtype=self.room.dtype, order="F")
            grown[:, :first] = self.room[:, :first]
            self.room = grown
        self.room[:, first:need] = columns - means.astype(self.room.dtype)

    def cut(self, n: int) -> None:
        """Do nothing, because later columns change nothing."""

    def product(self, weights: np.ndarray) -> np.ndarray:
        """Return weights times the first columns."""
        k, n = weights.shape
        if self._compiled and k <= FEW_OUTPUTS:
            from laconic.rows import tall_products  # here, because it imports Numba

            return tall_products.multiply(self.room.T, weights)
        out = np.empty((k, len(self.room)), dtype=self.room.dtype)
        for s in self._chunks(n * k):
            out[:, s] = weights @ self.room[s, :n].T
        return out

    def sums(self, values: np.ndarray, n: int) -> np.ndarray:
        """Return sums over rows."""
        if self._compiled and len(values) <= FEW_OUTPUTS:
            from laconic.rows import tall_products

            return tall_products.add_up(self.room.T, values, n).T
        out = np.zeros((n, len(values)))
        for s in self._chunks(n * len(values)):
            out += (values[:, s] @ self.room[s, :n]).T
        return out

    def in_one_call(self, k: int) -> bool:
        """Return whether `evaluated` and `curved` may be called for k outputs."""
        return self._compiled and k <= FEW_OUTPUTS

    def evaluated(
        self, W: np.ndarray, margin: float, target: Any, weight: np.ndarray, state: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Return a softmax loss at weights W (n_outputs, n), and the sums of its residual."""
        from laconic.rows import softmax_blocks  # here, because it imports Numba

        lines = self.room.T
        value, sums = softmax_blocks.evaluate_numbers(lines, W, margin, target, weight, state)
        return value, sums.T

    def curved(self, V: np.ndarray, weight: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Return the sums of the Hessian of a softmax loss, applied to V (n_outputs, n)."""
        from laconic.rows import softmax_blocks

        return softmax_blocks.curve_numbers(self.room.T, V, weight, state).T

    def take(self, rows: Which, columns: slice) -> np.ndarray:
        """Return some columns of some rows."""
        return self.room[rows, columns]

    def copy(self, n: int) -> Written:
        """Return an independent store."""
        out = Written(len(self.room), self.room.dtype, self._multiplied, self._compiled)
        out.room = self.room[:, :n].copy(order="F")
        return out

    def _chunks(self, products: int) -> list[slice]:
        """Return slices of the rows that BLAS is given at once."""
        return row_blocks(len(self.room), self._step(products))

    def _step(self, products: int) -> int:
        """Return the number of these rows, for so many multiplications in a row."""
        if self.room.dtype != np.float32:
            return DOUBLE_ROWS
        if self._compiled:
            return SINGLE_ROWS
        rows = self._multiplied // max(products, 1)
        return max(rows // 64 * 64, 256)


class Packed:
    """Columns of two values, eight columns to a byte; see `laconic.numeric.bits`.

    Parameters
    ----------
    n_rows : int
    dtype : dtype
        Type of columns and products as numbers.
    signs : bool
        Whether columns hold -1 and 1 instead of 0 and 1.
    """

    def __init__(self, n_rows: int, dtype: np.dtype[Any], signs: bool = False) -> None:
        from laconic.numeric.bits import Bits

        self._bits = Bits(n_rows)
        self._dtype = dtype
        self._signs = signs
        self._shifts = np.zeros(0)  # a column is unit · bit − shift

    def held(self, columns: np.ndarray) -> np.ndarray:
        """Return the columns as bits, because those of all rows wait at once."""
        return np.packbits(columns.T > 0, axis=1)

    def written(self, held: np.ndarray) -> np.ndarray:
        """Return the columns as numbers."""
        bits = np.unpackbits(held, axis=1, count=self._bits.codes.shape[1])
        columns = bits.T.astype(self._dtype, order="F")
        return 2 * columns - 1 if self._signs else columns

    def put(self, first: int, columns: np.ndarray, means: np.ndarray) -> None:
        """Write columns."""
        for at, column in enumerate(columns.T, start=first):
            self._bits.put(at, column > 0)
        self._shifts = np.append(self._shifts[:first], means + 1.0 if self._signs else means)

    def cut(self, n: int) -> None:
        """Forget all columns but the first n."""
        self._bits.cut(n)

    def product(self, weights: np.ndarray) -> np.ndarray:
        """Return weights times the first columns."""
        return self._bits.product(*self._unshifted(weights))

    def _unshifted(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of the bits, and what is subtracted from their products."""
        shifts = self._shifts[: weights.shape[1]].astype(weights.dtype, copy=False)
        return 2 * weights if self._signs else weights, weights @ shifts

    def sums(self, values: np.ndarray, n: int) -> np.ndarray:
        """Return sums over rows."""
        return self._shifted(*self._bits.sums(values, n))

    def _shifted(self, sums: np.ndarray, whole: np.ndarray) -> np.ndarray:
        """Turn sums of bits into sums of columns."""
        shifts = self._shifts[: len(sums), None]
        return (2.0 if self._signs else 1.0) * sums - shifts * whole

    def in_one_call(self, k: int) -> bool:
        """Return True: `evaluated` and `curved` may be called for any number of outputs."""
        return True

    def evaluated(
        self, W: np.ndarray, margin: float, target: Any, weight: np.ndarray, state: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Return a softmax loss at weights W (n_outputs, n), and the sums of its residual."""
        from laconic.numeric.bits import sums_of
        from laconic.rows import softmax_blocks

        factors, codes = self._bits.factors(*self._unshifted(W)), self._bits.codes
        value, found = softmax_blocks.evaluate_bits(codes, factors, margin, target, weight, state)
        return value, self._shifted(*sums_of(found, W.shape[1]))

    def curved(self, V: np.ndarray, weight: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Return the sums of the Hessian of a softmax loss, applied to V (n_outputs, n)."""
        from laconic.numeric.bits import sums_of
        from laconic.rows import softmax_blocks

        factors = self._bits.factors(*self._unshifted(V))
        found = softmax_blocks.curve_bits(self._bits.codes, factors, weight, state)
        return self._shifted(*sums_of(found, V.shape[1]))

    def take(self, rows: Which, columns: slice) -> np.ndarray:
        """Return some columns of some rows."""
        out = self._bits.take(rows, columns.stop).T[columns].astype(self._dtype)
        if self._signs:
            out += out
        out -= self._shifts[columns, None].astype(self._dtype)
        return out.T

    def copy(self, n: int) -> Packed:
        """Return an independent store."""
        out = Packed(self._bits.codes.shape[1], self._dtype, self._signs)
        out._bits.codes = self._bits.codes.copy()
        out._shifts = self._shifts[:n].copy()
        return out
