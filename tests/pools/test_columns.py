"""Columns: every storage answers like the matrix written down, and groups add up."""

import numpy as np
import pytest
from scipy import sparse

from laconic.model.atoms import Column, ColumnGroup
from laconic.numeric.threads import Threads
from laconic.pools.columns import BoundColumns, Columns

N, D, K = 203, 7, 3


def memmapped(X, folder):
    stored = np.memmap(folder / "X.bin", dtype=X.dtype, mode="w+", shape=X.shape)
    stored[:] = X
    stored.flush()
    return np.memmap(folder / "X.bin", dtype=X.dtype, mode="r", shape=X.shape)


def twice_stored(X, _):
    """CSR in which every entry is stored as two halves: the matrix is their sum."""
    half = sparse.csr_matrix(X / 2)
    return sparse.csr_matrix(
        (half.data.repeat(2), half.indices.repeat(2), half.indptr * 2), shape=X.shape
    )


STORAGES = {
    "C": lambda X, _: np.ascontiguousarray(X),
    "F": lambda X, _: np.asfortranarray(X),
    "memmap": memmapped,
    "strided": lambda X, _: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "csr": lambda X, _: sparse.csr_matrix(X),
    "csc": lambda X, _: sparse.csc_matrix(X),
    "csr_array": lambda X, _: sparse.csr_array(X),
    "csc_array": lambda X, _: sparse.csc_array(X),
    "stored twice": twice_stored,
}


@pytest.fixture(params=STORAGES)
def stored(request, tmp_path):
    return lambda X: STORAGES[request.param](X, tmp_path)


@pytest.fixture(params=[np.float32, np.float64])
def X(request):
    """Half zeros and one column of nothing else; every entry exact in float32."""
    rng = np.random.default_rng(0)
    X = rng.integers(-64, 65, (N, D)) / 16.0 * (rng.random((N, D)) < 0.5)
    X[:, 4] = 0.0
    return X.astype(request.param)


def weights(n=N):
    weight = np.random.default_rng(1).uniform(0.5, 2.0, n)
    return weight / weight.sum()


def residuals(dtype, k=K, n=N):
    return np.random.default_rng(2).standard_normal((n, k)).astype(dtype)


def bound(X, n_jobs=1, **settings):
    return Columns(**settings).bind(X, weights(X.shape[0]), Threads(n_jobs))


def scaled(X, scale):
    X = X.astype(np.float64)
    if scale == "max":
        peak = np.abs(X).max(axis=0)
        return X / np.where(peak > 0, peak, 1.0)
    return X


def sums(pool, residual):
    blocks = list(pool.gradients(residual))
    assert [first for first, _ in blocks] == np.cumsum(
        [0, *(len(s) for _, s in blocks[:-1])]
    ).tolist()
    return np.vstack([s for _, s in blocks])


def rounding(X, residual):
    """A bound on the error of a sum of products of either dtype: n eps Σ|x||r|."""
    eps = np.finfo(residual.dtype).eps
    return len(residual) * eps * (np.abs(X).T @ np.abs(residual).astype(np.float64))


@pytest.mark.parametrize("scale", ["max", None])
def test_gradients_are_the_column_sums(X, stored, scale):
    residual = residuals(X.dtype)
    expected = scaled(X, scale)
    found = sums(bound(stored(X), scale=scale), residual)
    assert found.dtype == np.float64
    assert found.shape == (D, K)
    error = np.abs(found - expected.T @ residual.astype(np.float64))
    assert np.all(error <= rounding(expected, residual))


def test_gradients_of_one_output_and_of_many(X, stored):
    for k in (1, 40):
        residual = residuals(X.dtype, k)
        error = np.abs(sums(bound(stored(X)), residual) - scaled(X, "max").T @ residual)
        assert np.all(error <= rounding(scaled(X, "max"), residual))


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize("task", [1, 50, 10**6])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_sparse_sums_do_not_depend_on_how_the_work_is_cut(make, task, n_jobs):
    rng = np.random.default_rng(3)
    X = rng.integers(-8, 9, (90, 11)) * (rng.random((90, 11)) < 0.3)
    X[30:50] = 0  # a stretch of empty rows, and an empty column
    X[:, 6] = 0
    residual = rng.integers(-8, 9, (90, K)).astype(np.float64)
    with Threads(n_jobs) as threads:
        pool = BoundColumns(make(X.astype(np.float64)), np.ones(11), None, threads, task)
        assert np.array_equal(sums(pool, residual), X.T @ residual)  # integers: exact


def test_a_matrix_without_entries_has_zero_sums():
    for make in (sparse.csr_matrix, sparse.csc_matrix):
        pool = bound(make((N, D)))
        assert np.array_equal(sums(pool, residuals(np.float64)), np.zeros((D, K)))
        assert np.array_equal(pool.squares(weights()), np.zeros(D))


def test_squares_are_weighted_squared_norms(X, stored):
    expected = weights() @ scaled(X, "max") ** 2
    rtol = N * np.finfo(X.dtype).eps  # all terms are positive
    np.testing.assert_allclose(bound(stored(X)).squares(weights()), expected, rtol=rtol)


def test_columns_are_scaled_and_keep_the_dtype(X, stored):
    pool = bound(stored(X))
    atoms = [5, 0, 4]
    taken = pool.columns(atoms)
    assert taken.dtype == X.dtype
    assert taken.flags.f_contiguous
    eps = np.finfo(X.dtype).eps
    np.testing.assert_allclose(taken, scaled(X, "max")[:, atoms], rtol=eps, atol=0)
    np.testing.assert_allclose(
        X[:, atoms].astype(np.float64) * pool.scales(atoms), taken, rtol=eps, atol=0
    )


def test_the_feature_map_gives_the_input_columns_back(X, stored):
    pool = bound(stored(X))
    assert np.array_equal(pool.extract([5, 0]).columns(stored(X)), X[:, [5, 0]])
    assert pool.extract([]).columns(stored(X)).shape == (N, 0)


def test_best_is_the_largest_l1_gradient(X, stored):
    residual = residuals(X.dtype)
    norms = np.abs(scaled(X, "max").T @ residual.astype(np.float64)).sum(axis=1)
    pool = bound(stored(X))
    slack = rounding(scaled(X, "max"), residual).sum(axis=1).max()
    for barred in ([], [int(norms.argmax())], [0, 1, 2, 3, 5]):
        left = np.setdiff1d(np.arange(D), barred)
        choice = pool.best(residual, np.array(barred, dtype=np.int64))
        assert choice.index == left[norms[left].argmax()]
        assert abs(choice.score - norms[choice.index]) <= slack
        assert abs(choice.steepest - norms.max()) <= slack
    assert pool.best(residual, np.arange(D)).index == -1


def test_best_divides_by_normalisers_and_ranks_by_guaranteed_gain_per_cost():
    rng = np.random.default_rng(5)
    X, residual = rng.standard_normal((N, D)), residuals(np.float64)
    norms = np.abs(X.T @ residual).sum(axis=1)
    length, costs = rng.uniform(0.1, 2, D), rng.uniform(0.1, 2, D)
    pool = bound(X, scale=None)
    by_length = pool.best(residual, None, length)
    assert by_length.index == (norms / length).argmax()
    np.testing.assert_allclose(by_length.score, (norms / length).max(), rtol=1e-12)
    by_cost = pool.best(residual, None, None, costs)
    assert by_cost.index == ((norms / 2) ** 2 / costs).argmax()
    np.testing.assert_allclose(by_cost.score, norms[by_cost.index], rtol=1e-12)
    assert len({norms.argmax(), by_length.index, by_cost.index}) == 3


def test_ties_go_to_the_lowest_number(X, stored):
    copies = np.hstack([X[:, [2]], X, X, X])
    residual = residuals(X.dtype)
    pool = bound(stored(copies))
    first = pool.best(residual).index
    assert first <= D
    assert np.flatnonzero((copies == copies[:, [first]]).all(axis=0))[0] == first


# -- groups ----------------------------------------------------------------------------------------

LABELS = ["b", "a", "b", "c", "a", "b", "c"]
LISTS = [[1, 4], [0, 2, 5], [3, 6]]


@pytest.mark.parametrize("groups", [LABELS, np.array(LABELS), LISTS, [np.array(g) for g in LISTS]])
def test_groups_come_as_labels_or_as_lists(groups):
    pool = bound(np.ones((N, D)), groups=groups)
    assert pool.n_atoms == 3
    assert [pool.atom(g) for g in range(3)] == [ColumnGroup(tuple(g)) for g in LISTS]
    assert [pool.width(g) for g in range(3)] == [2, 3, 2]


def test_the_score_of_a_group_is_the_sum_of_its_columns_scores(X, stored):
    residual = residuals(X.dtype)
    norms = np.abs(scaled(X, "max").T @ residual.astype(np.float64)).sum(axis=1)
    totals = np.array([norms[g].sum() for g in LISTS])
    slack = rounding(scaled(X, "max"), residual).sum()
    choice = bound(stored(X), groups=LISTS).best(residual)
    assert choice.index == totals.argmax()
    assert abs(choice.score - totals.max()) <= slack
    assert abs(choice.steepest - norms.max()) <= slack


def test_the_columns_of_a_group_come_together_in_its_own_order(X, stored):
    pool = bound(stored(X), groups=[[4, 1], [5, 0, 2], [3, 6]])
    order = [3, 6, 4, 1]
    eps = np.finfo(X.dtype).eps
    np.testing.assert_allclose(pool.columns([2, 0]), scaled(X, "max")[:, order], rtol=eps, atol=0)
    assert np.array_equal(pool.extract([2, 0]).columns(stored(X)), X[:, order])
    assert np.array_equal(pool.scales([2, 0]), bound(stored(X)).scales(order))


def test_a_group_costs_what_its_features_cost():
    costs = np.arange(1.0, D + 1)
    assert bound(np.ones((N, D))).costs(costs).tolist() == costs.tolist()
    grouped = bound(np.ones((N, D)), groups=LISTS)
    assert grouped.costs(costs).tolist() == [costs[g].sum() for g in LISTS]


# -- names of atoms --------------------------------------------------------------------------------


def test_numbers_and_records_of_atoms_lead_to_each_other():
    plain = bound(np.ones((N, D)))
    grouped = bound(np.ones((N, D)), groups=LISTS)
    for pool in (plain, grouped):
        for number in range(pool.n_atoms):
            assert pool.index(pool.atom(number)) == number
            assert pool.matching(pool.atom(number)).tolist() == [number]
    assert plain.matching(5).tolist() == [5]
    assert grouped.matching(5).tolist() == [1]


@pytest.mark.parametrize("record", [Column(D), Column(-1), ColumnGroup((0, 1)), "x0", None, 0])
def test_a_record_of_another_pool_is_refused(record):
    with pytest.raises(ValueError, match="not an atom of this pool"):
        bound(np.ones((N, D))).index(record)


@pytest.mark.parametrize("record", [Column(0), ColumnGroup((0, 2)), ColumnGroup(()), 0])
def test_a_record_of_another_grouping_is_refused(record):
    with pytest.raises(ValueError, match="not an atom of this pool"):
        bound(np.ones((N, D)), groups=LISTS).index(record)


@pytest.mark.parametrize("item", [1.7, True, "3", None, (0, 1)])
def test_only_a_record_or_a_whole_number_names_an_atom(item):
    with pytest.raises((TypeError, ValueError), match="feature"):
        bound(np.ones((N, D))).matching(item)


@pytest.mark.parametrize("feature", [-1, D])
def test_a_feature_that_does_not_exist_is_refused(feature):
    with pytest.raises(ValueError, match=f"feature {feature} does not exist.*{D} features"):
        bound(np.ones((N, D))).matching(feature)
