"""Sparse rows: when to keep them sparse, and distances computed from differences."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

# Below this share of non-zeros, a product of sparse matrices is faster than one of dense matrices.
# Two rows with a share p have p² of the columns in common, and BLAS does a hundred multiplications
# in the time of one sparse one.
THIN = 0.1


def is_thin(X: Any) -> bool:
    """Return whether rows are sparse, with so few values that sparse products are faster."""
    return bool(sparse.issparse(X) and X.nnz < THIN * X.shape[0] * X.shape[1])


def canonical(X: Any) -> Any:
    """Return the matrix, with every value of a CSR or CSC matrix stored once and in order.

    A matrix in another form is copied first. SciPy and scikit-learn would change its form in place,
    and so write into the user's matrix, or into only some of the arrays that two matrices share.
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
    """Return the matrix; give a CSR matrix indices of 32 bits if they are large enough for it.

    Some metrics of scikit-learn accept no other indices.
    """
    most = np.iinfo(np.int32).max
    short = sparse.issparse(X) and max(X.nnz, *X.shape) <= most
    if not short or X.indices.dtype == X.indptr.dtype == np.int32:
        return X
    parts = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return type(X)(parts, shape=X.shape)


def most_values(X: Any) -> int:
    """Return the largest number of values in a row, at least 1.

    In a CSR matrix only stored values count.
    """
    if not sparse.issparse(X):
        return max(int(X.shape[1]), 1)
    return int(np.diff(X.indptr).max(initial=1))


def squared_gaps(one: Any, other: Any) -> np.ndarray:
    """Return ‖a − b‖² for each pair of rows a and b at the same place in two CSR matrices.

    Differences are computed in float64.
    """
    gaps = sparse.csr_matrix(one, dtype=np.float64) - sparse.csr_matrix(other, dtype=np.float64)
    gaps.data **= 2
    return np.asarray(gaps.sum(axis=1)).reshape(-1)
