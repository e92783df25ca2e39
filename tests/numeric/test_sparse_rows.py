"""Sparse rows: parts of them are views."""

import numpy as np
import pytest
from scipy import sparse

from laconic.numeric.sparse_rows import rows_between
from laconic.numeric.threads import Threads
from laconic.pools import Columns, bind_parts
from laconic.rows.limits import Limits


def some_rows(make=sparse.csr_matrix):
    X = np.random.default_rng(0).standard_normal((30, 5))
    X[np.abs(X) < 0.8] = 0.0
    X[7:9] = 0.0
    return make(X)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array])
def test_parts_share_the_memory_of_the_whole(make, index):
    X = some_rows(make)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    parts = [part for (part,) in Limits(cuts=(1, 7, 9)).parts(X)]
    for part, (first, last) in zip(parts, ((0, 1), (1, 7), (7, 9), (9, 30)), strict=True):
        np.testing.assert_array_equal(part.toarray(), X.toarray()[first:last])
        assert type(part) is type(X)
        assert part.indices.dtype == part.indptr.dtype == index
        assert part.has_sorted_indices
        assert part.has_canonical_format
        assert part.nnz == 0 or np.shares_memory(part.data, X.data)
        assert part.nnz == 0 or np.shares_memory(part.indices, X.indices)
        part.check_format(full_check=True)  # last, because it copies small parts of large arrays


def test_rows_in_no_order_are_copied():
    """SciPy sorts them in place, and would change the whole."""
    data, indices, indptr = [1.0, 2.0, 3.0, 4.0], [3, 1, 2, 2], [0, 2, 4]
    X = sparse.csr_matrix((data, indices, indptr), shape=(2, 5))
    part = rows_between(X, 0, 1)
    assert not part.has_sorted_indices
    part.sort_indices()
    assert X.indices.tolist() == [3, 1, 2, 2]
    assert rows_between(X, 1, 2).toarray().tolist() == [[0.0, 0.0, 7.0, 0.0, 0.0]]


def test_arrays_and_matrices_by_columns_are_cut_as_they_can_be():
    X = some_rows(np.asarray)
    assert np.shares_memory(rows_between(X, 3, 20), X)
    np.testing.assert_array_equal(rows_between(some_rows(sparse.csc_matrix), 3, 20).toarray(),
                                  X[3:20])  # fmt: skip


def test_pools_of_parts_leave_the_whole_as_it_is():
    X = some_rows()
    before = X.copy()
    weight = np.full(30, 1 / 30)
    bounds = bind_parts(Columns(), Limits(cuts=(4, 11)).parts(X, weight), Threads(1))
    sums = sum(next(iter(b.gradients(np.ones((b.columns([0]).shape[0], 1)))))[1] for b in bounds)
    np.testing.assert_allclose(sums[:, 0], (X.toarray() * bounds[0].scales(range(5))).sum(axis=0))
    assert (before != X).nnz == 0
