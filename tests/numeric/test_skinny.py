import subprocess
import sys
from functools import cache

import numpy as np
import pytest

from laconic.numeric import skinny as dense
from laconic.numeric.skinny import transpose_product
from laconic.numeric.threads import Threads

DTYPES = (np.float32, np.float64)
CLASSES = (1, 2, 3, 8, 10, 11, 26, 33)
SHAPES = ((1, 784), (63, 1), (63, 7), (65, 17), (65, 784), (5000, 1), (5000, 7), (5000, 784))


@cache
def numbers(m, d):
    """X and R in float64, exact in float32 too, so that every dtype has the same product."""
    rng = np.random.default_rng([m, d])
    X = rng.standard_normal((m, d), dtype=np.float32).astype(np.float64)
    return X, rng.standard_normal((m, max(CLASSES)), dtype=np.float32).astype(np.float64)


@cache
def plain(m, d):
    """The twin: XᵀR and |X|ᵀ|R| in float64."""
    X, R = numbers(m, d)
    return X.T @ R, np.abs(X).T @ np.abs(R)


def data(m, d, k, dtype, order="C"):
    X, R = numbers(m, d)
    return X.astype(dtype, order=order), R[:, :k].astype(dtype, order="C")


def assert_near(got, sums, sizes, dtype):
    """Equal to within rounding of short sums in ``dtype``, whose terms add up to ``sizes``."""
    assert got.dtype == np.float64
    assert (np.abs(got - sums) / sizes).max() <= 8 * np.finfo(dtype).eps


def assert_product(got, X, R):
    X, R = np.asarray(X, dtype=np.float64), np.asarray(R)
    wide = R.astype(np.float64)
    assert_near(got, X.T @ wide, np.abs(X).T @ np.abs(wide), R.dtype)


@pytest.fixture(scope="module")
def threads():
    with Threads(2) as two:
        yield two


@pytest.mark.parametrize("k", CLASSES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_kernel_is_the_product(dtype, order, k, threads):
    for m, d in SHAPES:
        X, R = data(m, d, k, dtype, order)
        got = transpose_product(X, R, threads, compiled=True)
        sums, sizes = plain(m, d)
        assert_near(got, sums[:, :k], sizes[:, :k], dtype)


@pytest.mark.parametrize("k", CLASSES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("stored", [np.uint8, np.float16])
def test_compact_storage(stored, order, k, threads):
    """Bytes and half floats are multiplied in float32; rows that are not contiguous by BLAS."""
    for m, d in SHAPES:
        X, R = numbers(m, d)
        X = (1 + np.abs(40 * X) if stored == np.uint8 else X).astype(stored, order=order)
        R = R[:, :k].astype(np.float32)
        assert_product(transpose_product(X, R, threads, compiled=True), X, R)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_threads_do_not_change_a_bit(dtype, order, compiled, threads):
    X, R = data(4200, 1100, 3, dtype, order)  # several cells in each direction
    two = transpose_product(X, R, threads, compiled=compiled)
    with Threads(1) as one:
        np.testing.assert_array_equal(transpose_product(X, R, one, compiled=compiled), two)
    assert_product(two, X, R)


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_map(order, threads, tmp_path):
    X, R = data(5000, 784, 3, np.float32, order)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    np.testing.assert_array_equal(
        transpose_product(mapped, R, threads, compiled=True),
        transpose_product(X, R, threads, compiled=True),
    )


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "part", [np.s_[:, 5:100], np.s_[10:500], np.s_[::2], np.s_[::-1], np.s_[:, ::3], np.s_[:0]]
)
def test_slices_of_either_order(part, order, threads):
    whole, R = data(700, 130, 3, np.float32, order)
    X = whole[part]
    R = np.asfortranarray(R[: len(X)])
    got = transpose_product(X, R, threads, compiled=True)
    if len(X):
        assert_product(got, X, R)
    else:
        np.testing.assert_array_equal(got, np.zeros((130, 3)))


def test_other_dtypes_are_promoted(threads):
    X, R = data(2000, 40, 3, np.float64)
    for other in (np.rint(10 * X).astype(np.int32), X > 0, X.astype(np.float32), X.astype(">f8")):
        assert_product(transpose_product(other, R, threads, compiled=True), other, R)


def test_infinite_and_missing_values_stay_in_their_columns(threads):
    for order in "CF":
        X, R = data(300, 37, 3, np.float32, order)
        clean = transpose_product(X, R, threads, compiled=True)
        X[7, 20], X[8, 36] = np.nan, np.inf
        got = transpose_product(X, R, threads, compiled=True)
        assert np.flatnonzero(~np.isfinite(got).all(axis=1)).tolist() == [20, 36]
        keep = np.isfinite(got).all(axis=1)
        np.testing.assert_array_equal(got[keep], clean[keep])


def test_float32_sums_of_many_rows_stay_accurate(threads):
    X = np.full((100_000, 16), 0.1, dtype=np.float32)
    R = np.ones((len(X), 2), dtype=np.float32)
    for compiled in (False, True):
        got = transpose_product(X, R, threads, compiled=compiled)
        np.testing.assert_allclose(got, len(X) * np.float64(np.float32(0.1)), rtol=2e-5)


def test_cells_cover_the_matrix_once():
    for m, d, itemsize in ((1, 1, 4), (5000, 64513, 4), (10**6, 20, 8), (4097, 513, 8)):
        runs = dense._cells(m, d, itemsize, *dense.CELL)
        columns = np.concatenate([np.arange(d)[c] for c, _ in runs])
        np.testing.assert_array_equal(columns, np.arange(d))
        assert runs[0][1][0].start == 0
        assert runs[0][1][-1].stop == m
        assert all(a.stop == b.start for a, b in zip(runs[0][1], runs[0][1][1:], strict=False))


def test_small_data_compiles_nothing():
    code = (
        "import sys, numpy as np\n"
        "from laconic.numeric.skinny import transpose_product\n"
        "from laconic.numeric.threads import Threads\n"
        "with Threads(1) as one:\n"
        "    transpose_product(np.ones((1000, 20)), np.ones((1000, 3)), one)\n"
        "assert 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
