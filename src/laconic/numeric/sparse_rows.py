"""Sparse rows: which are worth keeping sparse, and their distances from differences."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

# Share of non-zeros below which a product of sparse matrices is quicker than one of dense ones.
# Of rows with a share p, two have p² of their columns in common, and BLAS does a hundred
# multiplications in the time of one.
THIN = 0.1


def is_thin(X: Any) -> bool:
    """Whether rows are sparse and have so few values that products of sparse matrices are quick."""
    return bool(sparse.issparse(X) and X.nnz < THIN * X.shape[0] * X.shape[1])


def canonical(X: Any) -> Any:
    """A matrix as it is, but a CSR or CSC one with every value stored once and in order.

    Others are copied: SciPy and scikit-learn bring them into this form in place, and would write
    into what the user gave, or into half of what two matrices share.
    """
    if not sparse.issparse(X) or X.format not in ("csr", "csc") or X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def rows_between(X: Any, first: int, last: int) -> Any:
    """Rows ``first`` to ``last`` of an array or a sparse matrix; of a CSR matrix, a view.

    SciPy would copy them. A CSR matrix that is not `canonical` is copied here too: SciPy may sort
    its values in place, and those of all parts are the same memory.
    """
    if not sparse.issparse(X) or X.format != "csr" or not X.has_canonical_format:
        return X[first:last]
    begin, end = X.indptr[[first, last]]
    out = type(X)((last - first, X.shape[1]), dtype=X.dtype)
    # Set one by one: the constructor copies a small part of a large array, and indices to give
    # them another type.
    out.data, out.indices = X.data[begin:end], X.indices[begin:end]
    out.indptr = X.indptr[first : last + 1] - begin
    out.has_canonical_format = True
    return out


def with_short_indices(X: Any) -> Any:
    """A matrix as it is, but a CSR one with indices of 32 bits, where those can count its values.

    Some metrics of scikit-learn take no others.
    """
    most = np.iinfo(np.int32).max
    short = sparse.issparse(X) and max(X.nnz, *X.shape) <= most
    if not short or X.indices.dtype == X.indptr.dtype == np.int32:
        return X
    parts = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return type(X)(parts, shape=X.shape)


def most_values(X: Any) -> int:
    """The most values that a row has: all, or the stored ones of a CSR matrix; at least 1."""
    if not sparse.issparse(X):
        return max(int(X.shape[1]), 1)
    return int(np.diff(X.indptr).max(initial=1))


def squared_gaps(one: Any, other: Any) -> np.ndarray:
    """‖a − b‖² of every row a of one CSR matrix and b of another, from differences in float64."""
    gaps = sparse.csr_matrix(one, dtype=np.float64) - sparse.csr_matrix(other, dtype=np.float64)
    gaps.data **= 2
    return np.asarray(gaps.sum(axis=1)).reshape(-1)
