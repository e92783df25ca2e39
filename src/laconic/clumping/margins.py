"""Products with the training rows and their constant feature, for one linear classifier."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from laconic.numeric.skinny import transpose_product
from laconic.numeric.sparse_rows import is_thin
from laconic.numeric.threads import Threads, row_blocks

# If the rows hold at most this many numbers, one thread is enough for a pass.
SMALL = 1 << 22


class MarginLimits(NamedTuple):
    """Sizes of the parts in passes over the rows. They change sums by rounding at most."""

    rows: int = 1024
    """Number of rows of one task."""
    widened: int = 1 << 20
    """Bytes of float64 that rows are converted to at a time."""
    gram_rows: int = 1024
    """Number of rows from which one Gram matrix is made."""
    grams_held: int = 8
    """Number of such matrices held at once."""


class Margins:
    """X, dense or CSR, with a last column of ones if there is an intercept. X is never copied.

    Sums run over fixed blocks of rows, in order, so that threads never change them.
    """

    def __init__(
        self, X: Any, intercept: bool, threads: Threads, limits: MarginLimits | None = None
    ) -> None:
        self.X = X
        self._limits = limits or MarginLimits()
        self.intercept = intercept
        self.threads = threads
        # A pass over few rows is done before another thread has started.
        self._passes = threads if X.shape[0] * X.shape[1] > SMALL else Threads(1)
        self.n_rows, self.n_features = X.shape
        self.n_weights = self.n_features + int(intercept)
        self.sparse = sparse.issparse(X)

    def scores(self, w: np.ndarray, exact: bool = False) -> np.ndarray:
        """Return ⟨w, x_i⟩ of every row in float64. ``exact`` also computes it in float64."""
        dtype = np.float64 if exact or self.sparse else self.X.dtype
        part = w[: self.n_features].astype(dtype)
        if self.sparse:
            out = np.asarray(self.X @ part, dtype=np.float64)
        else:
            out = np.empty(self.n_rows)

            def fill(rows: slice) -> None:
                for s in [rows] if dtype == self.X.dtype else self._thin(rows):
                    out[s] = self.X[s].astype(dtype, copy=False) @ part

            list(self._passes.map(fill, row_blocks(self.n_rows, self._limits.rows)))
        if self.intercept:
            out += w[-1]
        return out

    def sums(self, values: np.ndarray, exact: bool = False) -> np.ndarray:
        """Return Σ_i values_i x_i in float64. ``exact`` also computes it in float64."""
        out = np.empty(self.n_weights)
        if self.sparse:
            out[: self.n_features] = self.X.T @ values
        elif exact and self.X.dtype != np.float64:
            parts = self.threads.map(
                lambda rows: sum(
                    self.X[s].astype(np.float64).T @ values[s] for s in self._thin(rows)
                ),
                row_blocks(self.n_rows, self._limits.rows),
            )
            out[: self.n_features] = sum(parts)
        else:
            column = values.astype(self.X.dtype)[:, None]
            out[: self.n_features] = transpose_product(self.X, column, self._passes)[:, 0]
        if self.intercept:
            out[-1] = values.sum()
        return out

    def _thin(self, rows: slice) -> list[slice]:
        """Return slices that are thin enough to stay in cache when they are made float64."""
        step = max(64, self._limits.widened // (8 * max(self.n_features, 1)))
        cut = row_blocks(rows.stop - rows.start, step)
        return [slice(rows.start + s.start, rows.start + s.stop) for s in cut]

    def squares(self, weight: np.ndarray) -> np.ndarray:
        """Return Σ_i weight_i x_i ∘ x_i."""
        out = np.zeros(self.n_weights)
        for rows in row_blocks(self.n_rows, self._limits.gram_rows):
            block = self.X[rows]
            squared = block.multiply(block) if self.sparse else block * block
            out[: self.n_features] += np.asarray(squared.T @ weight[rows]).ravel()
        if self.intercept:
            out[-1] = weight.sum()
        return out

    def gram(self, weight: np.ndarray, columns: np.ndarray, dtype: Any = None) -> np.ndarray:
        """Return Σ_i weight_i x_i x_iᵀ of some columns, multiplied in ``dtype``.

        No weight may be negative.
        """
        dtype = self.X.dtype if dtype is None else dtype
        features = columns[columns < self.n_features]
        if self.sparse and is_thin(taken := self.X[:, features]):
            return self._thin_gram(taken, weight, len(columns))

        def part(rows: slice) -> np.ndarray:
            block = self.X[rows][:, features]
            scaled = np.ones((block.shape[0], len(columns)), dtype=dtype)
            scaled[:, : len(features)] = block.toarray() if self.sparse else block
            scaled *= np.sqrt(weight[rows]).astype(dtype)[:, None]
            return scaled.T @ scaled

        out = np.zeros((len(columns), len(columns)))
        cuts, held = row_blocks(self.n_rows, self._limits.gram_rows), self._limits.grams_held
        for first in range(0, len(cuts), held):
            for block in self.threads.map(part, cuts[first : first + held]):
                out += block
        return out

    def _thin_gram(self, taken: Any, weight: np.ndarray, width: int) -> np.ndarray:
        """Return the Gram matrix of sparse columns, and of the constant feature if asked for."""
        root = np.sqrt(weight)[:, None]
        parts = [taken.multiply(root), root][: 1 + width - taken.shape[1]]
        scaled = sparse.hstack(parts, format="csr")
        return np.asarray((scaled.T @ scaled).toarray())
