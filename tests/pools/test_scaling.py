import numpy as np
import pytest
from scipy import sparse

from laconic.pools.scaling import column_scales, merge_columns, survey_columns

N, D = 57, 9


def scales_of(X, scale, weight, *cut):
    return column_scales(survey_columns(X, scale, weight, *cut), scale)


def memmapped(X, folder):
    stored = np.memmap(folder / "X.bin", dtype=X.dtype, mode="w+", shape=X.shape)
    stored[:] = X
    stored.flush()
    return np.memmap(folder / "X.bin", dtype=X.dtype, mode="r", shape=X.shape)


STORAGES = {
    "C": lambda X, _: np.ascontiguousarray(X),
    "F": lambda X, _: np.asfortranarray(X),
    "memmap": memmapped,
    "strided": lambda X, _: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda X, _: X[::-1].copy()[::-1],
    "csr": lambda X, _: sparse.csr_matrix(X),
    "csc": lambda X, _: sparse.csc_matrix(X),
    "csr_array": lambda X, _: sparse.csr_array(X),
    "csc_array": lambda X, _: sparse.csc_array(X),
}


@pytest.fixture
def weight():
    weight = np.random.default_rng(1).uniform(0.5, 2.0, N)
    return weight / weight.sum()


@pytest.fixture
def X():
    """Half zeros; then a zero, a constant, a negative and a far-off-centre column."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.5)
    X[:, 3] = 0.0
    X[:, 4] = 0.1
    X[:, 5] = -np.abs(X[:, 5])
    X[:, 6] = 1000.0 + rng.standard_normal(N)
    return X


def naive_scales(X, scale, weight):
    X = X.astype(np.float64)
    if scale == "max":
        size = np.abs(X).max(axis=0)
    else:
        size = np.sqrt(weight @ (X - weight @ X) ** 2)
        size[np.ptp(X, axis=0) == 0] = 0.0
    return np.where(size > 0, 1 / np.where(size > 0, size, 1.0), 1.0)


@pytest.mark.parametrize("entries", [1, 40, 1 << 20])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("scale", ["max", "std"])
def test_equals_naive(X, weight, scale, storage, dtype, entries, tmp_path):
    X = X.astype(dtype)
    found = scales_of(STORAGES[storage](X, tmp_path), scale, weight, entries)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, naive_scales(X, scale, weight), rtol=1e-11)


@pytest.mark.parametrize("storage", STORAGES)
def test_no_scale_is_one(X, weight, storage, tmp_path):
    assert np.array_equal(scales_of(STORAGES[storage](X, tmp_path), None, weight), np.ones(D))


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(("scale", "kept"), [("max", [3]), ("std", [3, 4])])
def test_a_column_with_nothing_to_divide_by_stays(X, weight, scale, kept, storage, tmp_path):
    found = scales_of(STORAGES[storage](X, tmp_path), scale, weight)
    assert np.flatnonzero(found == 1.0).tolist() == kept


@pytest.mark.parametrize("storage", ["C", "F", "csr", "csc"])
def test_weight_two_is_a_row_twice(X, storage, tmp_path):
    times = np.random.default_rng(2).integers(1, 4, N)
    repeated = np.repeat(X, times, axis=0)
    each = np.full(len(repeated), 1 / len(repeated))
    np.testing.assert_allclose(
        scales_of(STORAGES[storage](X, tmp_path), "std", times / times.sum()),
        scales_of(STORAGES[storage](repeated, tmp_path), "std", each),
        rtol=1e-12,
    )


@pytest.mark.parametrize("storage", ["C", "F", "csr", "csc"])
def test_deviation_survives_a_large_mean(storage, tmp_path):
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((1000, 2))
    weight = np.full(1000, 1e-3)
    shifted = noise + 1e8
    exact = 1 / (shifted - 1e8).std(axis=0)
    found = scales_of(STORAGES[storage](shifted, tmp_path), "std", weight)
    np.testing.assert_allclose(found, exact, rtol=1e-7)


@pytest.mark.parametrize("size", [1e-200, 1e200])
@pytest.mark.parametrize("storage", ["C", "csr"])
def test_extreme_units_are_scaled_away(X, weight, size, storage, tmp_path):
    moving = [0, 1, 2, 5, 7, 8]
    for scale in ("max", "std"):
        plain = scales_of(STORAGES[storage](X[:, moving], tmp_path), scale, weight)
        found = scales_of(STORAGES[storage](X[:, moving] * size, tmp_path), scale, weight)
        np.testing.assert_allclose(found * size, plain, rtol=1e-12)


@pytest.mark.parametrize("scale", ["max", "std"])
def test_a_column_too_small_for_weights_is_refused(scale):
    X = np.array([[1.0, 5e-324], [0.0, 0.0]])
    with pytest.raises(ValueError, match=r"column 1 of X .*weights would overflow.*power of ten"):
        scales_of(X, scale, np.full(2, 0.5))
    assert scales_of(X, None, np.full(2, 0.5)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("scale", ["max", "std"])
def test_explicit_zeros_count_like_left_out_ones(X, weight, scale, form):
    stored = sparse.coo_matrix(
        (X.ravel(), (np.repeat(np.arange(N), D), np.tile(np.arange(D), N))), shape=X.shape
    ).asformat(form)
    assert stored.nnz == X.size
    np.testing.assert_allclose(
        scales_of(stored, scale, weight), naive_scales(X, scale, weight), rtol=1e-11
    )


@pytest.mark.parametrize("scale", ["max", "std"])
@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_matrix])
def test_entries_stored_twice_are_summed_and_left_alone(scale, container):
    # CSR: [[3 - 2, 0], [0, 4]]; the same three arrays mean the same matrix in CSC.
    X = container((np.array([3.0, -2.0, 4.0]), np.array([0, 0, 1]), np.array([0, 2, 3])))
    weight = np.full(2, 0.5)
    expected = naive_scales(X.toarray(), scale, weight)
    np.testing.assert_allclose(scales_of(X, scale, weight), expected)
    assert X.data.tolist() == [3.0, -2.0, 4.0]


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("scale", ["max", "std"])
def test_a_sparse_matrix_may_store_nothing(form, scale):
    empty = sparse.coo_matrix((4, 3)).asformat(form)
    assert np.array_equal(scales_of(empty, scale, np.full(4, 0.25)), np.ones(3))


@pytest.mark.parametrize("scale", ["range", "", 1, True, ["max"]])
def test_unknown_scale(X, weight, scale):
    with pytest.raises(ValueError, match=r"scale must be 'max', 'std' or None, not"):
        scales_of(X, scale, weight)


def test_other_sparse_formats(X, weight):
    with pytest.raises(TypeError, match="CSR or CSC matrix, not COO"):
        scales_of(sparse.coo_matrix(X), "max", weight)


@pytest.mark.parametrize("scale", ["max", "std", None])
@pytest.mark.parametrize("storage", ["C", "F", "csr", "csc"])
def test_parts_have_the_scales_of_the_whole(scale, storage, tmp_path):
    """Of unequal parts: one row, a column that is constant or zero in one of them, or in all."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((N, 6)) * 10.0 ** rng.integers(-120, 120, 6)
    X[:20, 1] = 3.0
    X[:, 2], X[:20, 3], X[:, 4] = 0.1, 0.0, 0.0
    weight = rng.random(N)
    weight /= weight.sum()
    whole = scales_of(STORAGES[storage](X, tmp_path), scale, weight) if scale else np.ones(6)
    X = X if scale else np.clip(X, -1e10, 1e10)
    parts = []
    for rows in (slice(0, 20), slice(20, 21), slice(21, None)):
        parts.append(survey_columns(STORAGES[storage](X[rows], tmp_path), scale, weight[rows]))
    found = column_scales(merge_columns(parts), scale)
    np.testing.assert_allclose(found, whole, rtol=1e-12)
    assert found[2] == whole[2]  # a constant column stays as it is
