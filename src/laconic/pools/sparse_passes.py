"""Passes over the columns of a sparse matrix on several threads.

Stored entries are cut into tasks that depend only on the matrix. With many entries, rows are read
by compiled kernels, which need no copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.scaling import COMPILED

# Least number of stored entries in a task.
TASK = 1 << 16
# Number of tasks, unless they would be very small.
TASKS = 16
# Sums of all tasks from which threads share adding them up, and sums in a task of that.
ADDED = 1 << 20, 1 << 13


class SparsePasses(NamedTuple):
    """A CSR or CSC matrix whose columns are summed and copied."""

    X: Any
    threads: Threads
    task: int = TASK

    def sums(self, residual: np.ndarray) -> np.ndarray:
        """Return the column sums Xᵀ residual in float64. All terms are added in float64."""
        X, task = self.X, self._task()
        compiled = X.format == "csr" and X.nnz >= COMPILED
        if not compiled:  # SciPy sums all rows in the dtype it is given
            residual = residual.astype(np.float64, copy=False)
        if X.format == "csc":
            views = [_columns(X, a, b) for a, b in _cuts(X.indptr, task)]
            parts = list(self.threads.map(lambda view: np.asarray(view.T @ residual), views))
            return np.vstack(parts).astype(np.float64, copy=False)
        total = np.zeros((X.shape[1], residual.shape[1]))
        one = _compiled_sums if compiled else _sums_of_rows
        # A task has more entries than sums. So adding sums up takes less time than finding them.
        cuts = _cuts(X.indptr, max(task, total.size))
        parts = list(self.threads.map(lambda cut: one(X, *cut, residual), cuts))

        def add_up(columns: slice) -> None:
            for part in parts:
                total[columns] += part[columns]

        shared = total.size * len(parts) >= ADDED[0]
        length = max(ADDED[1] // residual.shape[1], 1) if shared else len(total)
        list(self.threads.map(add_up, row_blocks(len(total), length)))
        return total

    def columns(self, features: np.ndarray, factors: np.ndarray, dtype: Any) -> np.ndarray:
        """Return some columns times factors, in Fortran order."""
        X = self.X
        if X.format == "csc":
            return np.asfortranarray(X[:, features].toarray() * factors, dtype=dtype)
        out = np.empty((X.shape[0], len(features)), dtype=dtype, order="F")
        compiled = X.nnz >= COMPILED and X.has_canonical_format

        def write(cut: tuple[int, int]) -> None:
            target = out[slice(*cut)]
            if compiled:
                _write_columns(X, *cut, features, factors, target)
            else:
                target[:] = _rows(X, *cut)[:, features].toarray() * factors

        list(self.threads.map(write, _cuts(X.indptr, self._task())))
        return out

    def _task(self) -> int:
        """Return the number of stored entries of a task."""
        return max(self.X.nnz // TASKS, self.task)


def _cuts(indptr: np.ndarray, task: int) -> Iterator[tuple[int, int]]:
    """Cut the major axis of a sparse matrix into runs of about ``task`` stored entries."""
    marks = np.arange(task, int(indptr[-1]) + task, task)
    edges = np.unique(np.r_[0, np.searchsorted(indptr, marks), len(indptr) - 1])
    edges = edges[edges < len(indptr)]
    yield from zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)


def _view(X: Any, a: int, b: int, make: Any, shape: tuple[int, int]) -> Any:
    """Return lines a to b of the major axis. The result shares the stored entries of X."""
    low, high = X.indptr[a], X.indptr[b]
    out = make(shape, dtype=X.dtype)
    out.data, out.indices = X.data[low:high], X.indices[low:high]
    out.indptr = X.indptr[a : b + 1] - low
    return out


def _columns(X: Any, first: int, last: int) -> Any:
    return _view(X, first, last, sparse.csc_matrix, (X.shape[0], last - first))


def _rows(X: Any, first: int, last: int) -> Any:
    return _view(X, first, last, sparse.csr_matrix, (last - first, X.shape[1]))


def _sums_of_rows(X: Any, first: int, last: int, residual: np.ndarray) -> np.ndarray:
    return np.asarray(_rows(X, first, last).T @ residual[first:last])


def _compiled_sums(X: Any, first: int, last: int, residual: np.ndarray) -> np.ndarray:
    """Return the same sums, without a copy of the entries."""
    from laconic.pools.sparse_kernels import add_rows_into  # here, because it imports Numba

    sums = np.zeros((X.shape[1], residual.shape[1]))
    rows = np.ascontiguousarray(residual[first:last])
    add_rows_into(X.indptr[first : last + 1], X.indices, X.data, rows, sums)
    return sums


def _write_columns(
    X: Any, first: int, last: int, features: np.ndarray, factors: np.ndarray, out: np.ndarray
) -> None:
    """Write some columns of some rows, by a search in every row."""
    from laconic.pools.sparse_kernels import column_into

    indptr = X.indptr[first : last + 1]
    for feature, factor, line in zip(features.tolist(), factors.tolist(), out.T, strict=True):
        column_into(indptr, X.indices, X.data, feature, factor, line)
