import dataclasses
import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

from laconic.model.atoms import Column, Product, ProductsMap, Stump
from laconic.numeric.threads import Threads
from laconic.pools.products import Products, Tiles, _pieces
from laconic.pools.scaling import column_scales, survey_columns

N, D, K = 83, 11, 3


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
    "csr": lambda X, _: sparse.csr_matrix(X),
    "csc": lambda X, _: sparse.csc_matrix(X),
    "csr_array": lambda X, _: sparse.csr_array(X),
}


def data(n=N, d=D, k=K, dtype=np.float64):
    rng = np.random.default_rng(0)
    X = (5 * rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)).astype(dtype)
    weight = rng.uniform(0.5, 2.0, n)
    return X, weight / weight.sum(), rng.standard_normal((n, k)) / n


def explicit(X, scale, weight):
    """The matrix of all scaled products that the pool never writes down, in float64."""
    scaled = X * column_scales(survey_columns(X, scale, weight), scale)
    return np.stack([scaled[:, i] * scaled[:, j] for i, j in combinations(range(X.shape[1]), 2)], 1)


def all_sums(bound, residual):
    """The blocks put together, having checked that they follow each other."""
    parts, reached = [], 0
    for first, sums in bound.gradients(residual):
        assert first == reached
        assert sums.dtype == np.float64
        reached += len(sums)
        parts.append(sums)
    assert reached == bound.n_columns
    return np.concatenate(parts)


class SmallTiles(Products):
    """Row blocks, pieces and copied tiles of a few entries each, so that every edge is met."""

    _tiles = Tiles(rows=32, left=9, tall=4, sums=64, copied=4, together=2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("scale", ["max", "std", None])
def test_sums_are_those_of_the_explicit_matrix(scale, storage, dtype, tmp_path):
    X, weight, residual = data(dtype=dtype)
    P = explicit(X, scale, weight)
    tolerance = 1e-12 if dtype is np.float64 else 1e-5
    with Threads(2) as threads:
        bound = SmallTiles(scale).bind(STORAGES[storage](X, tmp_path), weight, threads)
        assert bound.n_atoms == bound.n_columns == D * (D - 1) // 2
        assert bound.dtype == dtype
        near = {"rtol": tolerance, "atol": tolerance * np.abs(P).max()}
        np.testing.assert_allclose(all_sums(bound, residual), P.T @ residual, **near)
        np.testing.assert_allclose(bound.squares(weight), weight @ P**2, rtol=100 * tolerance)
        columns = bound.columns(range(bound.n_atoms))
    assert columns.dtype == dtype
    assert columns.flags.f_contiguous
    np.testing.assert_allclose(columns, P, rtol=tolerance)


@pytest.mark.parametrize("k", [1, 26, 600])
@pytest.mark.parametrize("d", [2, 3, 63, 64, 65, 66, 130])
def test_sums_at_the_edges_of_pieces(d, k):
    X, weight, residual = data(n=5, d=d, k=k)
    P = explicit(X, "max", weight)
    with Threads(1) as threads:
        bound = Products().bind(X, weight, threads)
        np.testing.assert_allclose(all_sums(bound, residual), P.T @ residual, atol=1e-13)
        np.testing.assert_allclose(bound.squares(weight), weight @ P**2, atol=1e-13)


@pytest.mark.parametrize("n", [1, 1023, 1024, 1025, 2100])
def test_sums_at_the_edges_of_row_blocks(n):
    X, weight, residual = data(n=n, d=4)
    P = explicit(X, "max", weight)
    with Threads(1) as threads:
        sums = all_sums(Products().bind(X, weight, threads), residual)
    np.testing.assert_allclose(sums, P.T @ residual, atol=1e-13)


@pytest.mark.parametrize(("d", "k"), [(2, 1), (617, 26), (5000, 1), (3000, 2000)])
def test_pieces_cover_every_pair_once_in_order(d, k):
    expected = (0, 1)
    for start, stop, left, right in _pieces(d, k, Tiles()):
        assert (start, left) == expected
        assert stop - start == 1 or (left, right) == (start + 1, d)
        assert (stop - start) * (right - left) * k <= max(Tiles().sums, k)
        expected = (stop, stop + 1) if right == d else (start, right)
    assert expected == (d - 1, d)


@pytest.mark.parametrize("storage", ["C", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_never_change_a_bit(storage, dtype, tmp_path):
    X, weight, residual = data(n=300, d=40, k=5, dtype=dtype)
    X = STORAGES[storage](X, tmp_path)
    answers = []
    for n_jobs in (1, 2, 3):
        with Threads(n_jobs) as threads:
            bound = SmallTiles().bind(X, weight, threads)
            answers.append((all_sums(bound, residual), bound.squares(weight)))
    for sums, squares in answers[1:]:
        assert np.array_equal(sums, answers[0][0])
        assert np.array_equal(squares, answers[0][1])


def test_two_sweeps_may_interleave():
    X, weight, residual = data(n=50, d=150)
    with Threads(2) as threads:
        bound = Products().bind(X, weight, threads)
        sweeps = zip(bound.gradients(residual), bound.gradients(-residual), strict=True)
        assert all(np.array_equal(a, -b) for (_, a), (_, b) in sweeps)
        # A sweep that nobody finishes leaves nothing behind that the next would trip over.
        next(bound.gradients(residual))
        all_sums(bound, residual)


@pytest.mark.parametrize("storage", ["C", "F", "csr", "csc"])
def test_the_pool_is_never_written_down(storage, tmp_path):
    # The products alone would take 1.3 GB; X takes 6 MB.
    X, weight, residual = data(n=2000, d=200, k=2)
    X = STORAGES[storage](np.tile(X, 2), tmp_path)
    with Threads(1) as threads:
        tracemalloc.start()
        bound = Products().bind(X, weight, threads)
        bound.best(residual)
        bound.squares(weight)
        bound.columns(range(10))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 40e6


def test_max_scaled_products_lie_in_the_unit_interval():
    X, weight, _ = data(dtype=np.float32)
    with Threads(1) as threads:
        columns = Products().bind(1e30 * X, weight, threads).columns(range(D * (D - 1) // 2))
    assert np.abs(columns).max() <= 1.0


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_units_do_not_matter_in_float32(size):
    X, weight, residual = data(dtype=np.float32)
    with Threads(1) as threads:
        plain = Products().bind(X, weight, threads)
        other = Products().bind(X * np.float32(size), weight, threads)
        near = {"rtol": 1e-4, "atol": 1e-6}
        np.testing.assert_allclose(all_sums(other, residual), all_sums(plain, residual), **near)
        np.testing.assert_allclose(other.squares(weight), plain.squares(weight), **near)


class TestBest:
    """`best` ranks the explicit columns, whatever is forbidden, dear or normalised."""

    @pytest.fixture
    def bound(self):
        X, weight, _ = data()
        with Threads(2) as threads:
            yield Products().bind(X, weight, threads)

    @pytest.fixture
    def norms(self):
        X, weight, residual = data()
        return np.abs(explicit(X, "max", weight).T @ residual).sum(axis=1)

    residual = data()[2]

    def test_plain(self, bound, norms):
        choice = bound.best(self.residual)
        assert choice.index == np.argmax(norms)
        assert choice.score == pytest.approx(norms.max())
        assert choice.steepest == pytest.approx(norms.max())

    def test_forbidden(self, bound, norms):
        order = np.argsort(-norms)
        choice = bound.best(self.residual, forbidden=order[:3])
        assert choice.index == order[3]
        assert choice.steepest == pytest.approx(norms.max())
        assert bound.best(self.residual, forbidden=order).index == -1

    def test_normaliser(self, bound, norms):
        _, weight, _ = data()
        deviation = np.sqrt(bound.squares(weight))
        choice = bound.best(self.residual, normaliser=deviation)
        assert choice.index == np.argmax(norms / deviation)
        assert choice.score == pytest.approx((norms / deviation).max())

    def test_costs(self, bound, norms):
        costs = bound.costs(np.arange(1.0, D + 1.0) ** 2)
        value = (norms / 2) ** 2 / costs
        choice = bound.best(self.residual, costs=costs)
        assert choice.index == np.argmax(value) != np.argmax(norms)
        assert choice.score == pytest.approx(norms[choice.index])

    def test_ties_go_to_the_lowest_number(self):
        # Small integers sum exactly, so columns 1, 2 and 4, equal, tie to the last bit.
        X = np.random.default_rng(5).integers(-3, 4, (64, 6)).astype(np.float64)
        X[:, 4] = X[:, 2] = X[:, 1]
        residual = np.prod(X[:, 1:3], axis=1, keepdims=True)
        with Threads(2) as threads:
            tied = Products(None).bind(X, np.full(64, 1 / 64), threads)
            assert tied.atom(tied.best(residual).index) == Product(1, 2)
            first = np.array([tied.index(Product(1, 2))])
            assert tied.atom(tied.best(residual, forbidden=first).index) == Product(1, 4)


class TestNumbering:
    """Atoms are numbered (0, 1), (0, 2), ..., (0, d-1), (1, 2), ..."""

    @pytest.fixture
    def bound(self):
        X, weight, _ = data()
        return Products().bind(X, weight, Threads(1))

    @pytest.mark.parametrize(("d", "n_atoms"), [(2, 1), (16, 120), (36, 630), (617, 190_036)])
    def test_number_of_atoms(self, d, n_atoms):
        bound = Products().bind(np.ones((1, d)), np.ones(1), Threads(1))
        assert bound.n_atoms == bound.n_columns == n_atoms
        assert bound.atom(n_atoms - 1) == (d - 2, d - 1)

    def test_lexicographic(self, bound):
        pairs = [bound.atom(r) for r in range(bound.n_atoms)]
        assert pairs == list(combinations(range(D), 2))
        assert all(isinstance(pair, Product) for pair in pairs)
        assert [bound.index(pair) for pair in pairs] == list(range(bound.n_atoms))
        assert all(bound.width(r) == 1 for r in range(bound.n_atoms))

    def test_exact_for_very_many_features(self):
        d = 100_000
        # Nothing is stored for these columns.
        bound = Products().bind(sparse.csc_matrix((1, d)), np.ones(1), Threads(1))
        assert bound.n_atoms == 4_999_950_000
        for i in (0, 1, 46_339, 46_340, 50_000, 65_535, 65_536, d - 3, d - 2):
            for j in {i + 1, min(i + 2, d - 1), d - 1}:
                number = i * d - i * (i + 1) // 2 + j - i - 1
                assert bound.index((i, j)) == number
                assert bound.atom(number) == (i, j)

    def test_matching(self, bound):
        assert bound.matching(Product(2, 5)).tolist() == [bound.index((2, 5))]
        assert bound.matching((5, 2)).tolist() == [bound.index((2, 5))]
        for feature in range(D):
            reads = [r for r in range(bound.n_atoms) if feature in bound.atom(r)]
            assert bound.matching(feature).tolist() == reads
            assert bound.matching(np.int32(feature)).tolist() == reads

    @pytest.mark.parametrize("pair", [(3, 3), (5, 2), (-1, 2), (0, D), Product(D, D + 1)])
    def test_no_such_product(self, bound, pair):
        with pytest.raises(ValueError, match=r"has \(i, j\) for 0 <= i < j < 11"):
            bound.index(pair)

    @pytest.mark.parametrize("pair", [(3, 3), (-1, 2), (D, 0)])
    def test_no_match(self, bound, pair):
        with pytest.raises(ValueError, match=r"has \(i, j\) for 0 <= i < j < 11"):
            bound.matching(pair)

    @pytest.mark.parametrize("feature", [-1, D])
    def test_no_such_feature(self, bound, feature):
        with pytest.raises(ValueError, match="does not exist; X has 11 features"):
            bound.matching(feature)

    @pytest.mark.parametrize(
        "item", ["x0", None, True, 1.0, (1,), (1, 2, 3), (0.0, 1.0), Column(1), Stump(0, 1.0)]
    )
    def test_not_a_product(self, bound, item):
        with pytest.raises((TypeError, ValueError), match=r"is not a product|number of a feature"):
            bound.matching(item)
        with pytest.raises(ValueError, match=r"is not a product; give Product\(i, j\)"):
            bound.index(item)

    @pytest.mark.parametrize("number", [-1, D * (D - 1) // 2])
    def test_no_such_atom(self, bound, number):
        for ask in (bound.columns, bound.scales, bound.extract):
            with pytest.raises(ValueError, match=f"has no atom {number}; it has 0 to 54"):
                ask([0, number])
        with pytest.raises(ValueError, match=f"has no atom {number}; it has 0 to 54"):
            bound.atom(number)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("scale", ["max", "std", None])
def test_columns_are_scales_times_the_extracted_map(scale, storage, tmp_path):
    X, weight, _ = data()
    X = STORAGES[storage](X, tmp_path)
    bound = SmallTiles(scale).bind(X, weight, Threads(1))
    atoms = [17, 3, 54, 3, 0]
    found = bound.extract(atoms)
    assert isinstance(found, ProductsMap)
    assert list(zip(found.first, found.second, strict=True)) == [bound.atom(a) for a in atoms]
    np.testing.assert_allclose(
        bound.columns(atoms), bound.scales(atoms) * found.columns(X), rtol=1e-12
    )


def test_no_atoms_no_columns():
    X, weight, _ = data()
    bound = Products().bind(X, weight, Threads(1))
    assert bound.columns([]).shape == (N, 0)
    assert bound.scales([]).shape == (0,)
    assert bound.extract([]).columns(X).shape == (N, 0)


def test_costs_add_up_over_the_two_features():
    X, weight, _ = data()
    bound = Products().bind(X, weight, Threads(1))
    price = np.random.default_rng(6).uniform(1, 2, D)
    expected = [price[i] + price[j] for i, j in combinations(range(D), 2)]
    np.testing.assert_allclose(bound.costs(price), expected)
    assert bound.costs(np.ones(D, dtype=np.int64)).tolist() == [2.0] * bound.n_atoms


def test_x_is_not_touched():
    X, weight, residual = data()
    stored = sparse.csr_matrix(X)
    before, X_before = stored.copy(), X.copy()
    for matrix in (X, stored):
        bound = Products("std").bind(matrix, weight, Threads(1))
        all_sums(bound, residual)
        bound.squares(weight)
        bound.columns([0, 1])
    assert np.array_equal(X, X_before)
    assert (stored != before).nnz == 0


def test_settings_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Products().scale = None
    assert Products() == Products("max")


def test_one_column_is_too_few():
    with pytest.raises(ValueError, match=r"X must have at least two columns .* not 1"):
        Products().bind(np.ones((4, 1)), np.full(4, 0.25), Threads(1))


def test_unknown_scale():
    with pytest.raises(ValueError, match="scale must be 'max', 'std' or None, not 'range'"):
        Products("range").bind(np.ones((4, 2)), np.full(4, 0.25), Threads(1))


@pytest.mark.parametrize("dtype", [np.int64, np.float16, ">f8"])
def test_other_dtypes(dtype):
    with pytest.raises(TypeError, match="X must be float32 or float64"):
        Products().bind(np.ones((4, 2), dtype=dtype), np.full(4, 0.25), Threads(1))
