"""Several pools in one path: the atoms and weights of all columns side by side."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from laconic import ShareBoostClassifier, TotalQBoostClassifier
from laconic.model.atoms import Column, ColumnGroup, ColumnsMap, Product, ProductsMap, Stump
from laconic.model.mixed import MixedMap
from laconic.numeric.threads import Threads
from laconic.pools import Columns, Mixed, Patches, Pieces, Products, Stumps, bind_parts
from laconic.pools.signs import as_signs
from problems import of_every_kind

BOOSTERS = [ShareBoostClassifier, TotalQBoostClassifier]


X, y = of_every_kind()
WEIGHT = np.full(len(y), 1 / len(y))
PIECES = Pieces(4, 2, slope=0.2)
PATCHES = Patches((2, 2), 3, 2, 1, 1.0, storage="float32")
MIXES = {
    "columns, products": [Columns(), Products()],
    "three": [Columns("std"), Products(None), Stumps(4)],
    "pieces": [Columns(), PIECES, Stumps(3)],
    "two of pieces": [PIECES, Pieces(3, 2, soft=True, slope=0.2), Columns()],
    "groups": [Stumps(3), Columns(groups=[[0, 2], [1, 3]])],
    "stumps": [Stumps(3), Stumps(6)],
    "patches": [Columns(), PATCHES],
}


def side_by_side(pools, X, signs=False):
    """All columns of all pools, and the columns of every atom."""
    columns, groups = [], []
    for pool in pools:
        bound = pool.bind(X, WEIGHT, Threads(1))
        bound = as_signs(bound) if signs else bound
        for atom in range(bound.n_atoms):
            own = bound.columns([atom])
            first = len(columns)
            columns += list(own.T.astype(np.float64))
            groups.append(list(range(first, len(columns))))
    return np.array(columns).T, groups


@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize("name", MIXES)
def test_the_path_is_that_of_all_columns_side_by_side(name, booster):
    signs = booster is TotalQBoostClassifier
    wide, groups = side_by_side(MIXES[name], X, signs)
    settings = {"price": 1e-3, "loss": "log"} if signs else {"tol": 1e-12, "alpha": 1e-3}
    mixed = booster(5, pool=MIXES[name], n_jobs=1, **settings).fit(X, y)
    naive = booster(5, pool=Columns(None, groups=groups), n_jobs=1, **settings).fit(wide, y)
    tight = 1e-3 if name == "patches" else 1e-5  # patches are computed in single precision
    assert len(mixed.path_) == len(naive.path_) > 3
    for one, other in zip(mixed.path_, naive.path_, strict=True):
        assert one.numbers == other.numbers
        size = max(np.abs(other.weights).max(initial=0.0), 1.0)
        np.testing.assert_allclose(one.weights, other.weights, rtol=0, atol=tight * size)
    np.testing.assert_allclose(mixed.predict_proba(X), naive.predict_proba(wide), atol=10 * tight)


@pytest.mark.parametrize("rule", ["projection", "step", "column", "refit"])
def test_every_rule_chooses_among_all_pools(rule):
    pools = [Columns(), Stumps(3), PIECES]
    wide, groups = side_by_side(pools, X)
    settings = {"rule": rule, "tol": 1e-9, "alpha": 1e-3, "n_jobs": 1}
    mixed = ShareBoostClassifier(3, pool=pools, **settings).fit(X, y)
    naive = ShareBoostClassifier(3, pool=Columns(None, groups=groups), **settings).fit(wide, y)
    assert mixed.path_[3].numbers == naive.path_[3].numbers


def test_atoms_of_all_pools_are_chosen():
    """The projection rule does not depend on the scale, and finds what each pool is good for."""
    X, y = of_every_kind(400)
    model = ShareBoostClassifier(8, pool=["columns", "products", "stumps"], rule="projection")
    assert {type(atom) for atom in model.fit(X, y).atoms_} == {Column, Product, Stump}


POOLS = [Columns(), Columns("std", [[0, 1], [2], [3]]), Products(), Stumps(5), PIECES, PATCHES]


@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize("pool", POOLS)
def test_a_mix_of_one_pool_is_that_pool(pool, booster, assert_identical):
    alone = booster(4, pool=pool).fit(X, y)
    for same in ([pool], (pool,), Mixed([pool])):
        assert_identical(alone, booster(4, pool=same).fit(X, y))


@pytest.mark.parametrize("booster", BOOSTERS)
def test_the_order_of_the_pools_does_not_matter(booster):
    pools = [Columns(), Products(), Stumps(4), PIECES]
    fits = [booster(5, pool=p).fit(X, y) for p in (pools, pools[::-1], pools[2:] + pools[:2])]
    for other in fits[1:]:
        assert other.atoms_ == fits[0].atoms_
        np.testing.assert_allclose(other.path_.losses, fits[0].path_.losses, atol=1e-6)


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize("booster", BOOSTERS)
def test_sparse_rows(booster, form):
    Z = np.where(np.abs(X) < 0.3, 0.0, X)
    model = booster(4, pool=["columns", "products", Stumps(4)])
    dense, thin = clone(model).fit(Z, y), model.fit(form(Z), y)
    assert thin.atoms_ == dense.atoms_
    np.testing.assert_allclose(thin.predict_proba(form(Z)), dense.predict_proba(Z), atol=1e-6)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_a_row_of_weight_two_counts_twice(booster):
    pool, twice = [Columns("std"), Products(), Stumps(4), PIECES], np.arange(len(y)) % 3 == 0
    model = booster(4, pool=pool)
    heavy = clone(model).fit(X, y, sample_weight=1.0 + twice)
    longer = model.fit(np.vstack([X, X[twice]]), np.append(y, y[twice]))
    assert heavy.atoms_ == longer.atoms_
    np.testing.assert_allclose(heavy.path_.losses, longer.path_.losses, atol=1e-6)


def test_single_precision_stays_and_patches_join_double():
    narrow = bind_parts(Mixed([Columns(), Stumps(3)]), [(X.astype("f4"), WEIGHT)], Threads(1))
    assert narrow[0].dtype == np.float32
    wide = Mixed([Columns(), PATCHES]).bind(X, WEIGHT, Threads(1))
    assert wide.dtype == np.float64
    assert wide.columns([0, 5, 1]).dtype == np.float64


@pytest.mark.parametrize("booster", BOOSTERS)
def test_local_atoms_in_single_precision_beside_signs_in_double(booster):
    narrow = X.astype("f4")
    own = {"price": 1e-4, "loss": "log"} if booster is TotalQBoostClassifier else {"loss": "log"}
    model = booster(6, pool=[PIECES, Stumps(2)], n_jobs=1, **own)
    double, single = clone(model).fit(narrow.astype(float), y), model.fit(narrow, y)
    assert any(atom.width > 1 for atom in single.atoms_)
    np.testing.assert_allclose(single.path_.losses, double.path_.losses, atol=1e-5)
    mix = as_signs(bind_parts(Mixed([PIECES, Stumps(3)]), [(narrow, WEIGHT)], Threads(1))[0])
    assert mix.dtype == np.float64
    assert mix.local(0).table.dtype == np.float64
    assert mix.local(0).table is mix.local(1).table


# -- bound pools -----------------------------------------------------------------------------------


def bound(pools, X=X):
    return Mixed(pools).bind(X, WEIGHT, Threads(1))


def test_atoms_are_numbered_one_pool_after_the_other():
    mix = bound([Columns(), Products(), Stumps(3)])
    for number in range(mix.n_atoms):
        assert mix.index(mix.atom(number)) == number
        assert mix.matching(mix.atom(number)).tolist() == [number]
        assert mix.width(number) == 1
    kinds = [type(mix.atom(number)) for number in range(mix.n_atoms)]
    assert kinds == [Column] * 4 + [Product] * 6 + [Stump] * 8
    assert mix.matching((2, 1)).tolist() == [mix.index(Product(1, 2))]
    reads = [1 in mix.atom(number).reads for number in range(mix.n_atoms)]
    assert mix.matching(1).tolist() == np.flatnonzero(reads).tolist()
    for wrong in (Column(9), ColumnGroup((0, 1)), Stump(0, 7.5), "x", 1.5, (1, 2, 3)):
        with pytest.raises(ValueError, match="no pool of the list has the atom"):
            mix.matching(wrong)
    with pytest.raises(ValueError, match="feature 4 does not exist; X has 4"):
        mix.matching(4)
    with pytest.raises(ValueError, match="the pool has no atom 18; it has 0 to 17"):
        mix.atom(18)


def test_columns_scales_and_maps_keep_the_order_of_the_atoms():
    mix = bound([Columns(), PIECES, Stumps(3), Products()])
    atoms = [3, mix.n_atoms - 1, 5, 0, 13, 4, 14]
    columns = mix.columns(atoms)
    np.testing.assert_array_equal(columns, np.hstack([mix.columns([a]) for a in atoms]))
    map = mix.extract(atoms)
    assert isinstance(map, MixedMap)
    np.testing.assert_allclose(map.columns(X) * mix.scales(atoms), columns, atol=1e-12)
    weights = np.random.default_rng(0).standard_normal((columns.shape[1], 2))
    np.testing.assert_allclose(map.scores(X, weights), map.columns(X) @ weights, atol=1e-9)
    names = map.names(list("abcd"))
    assert names[:2] == ["d", "c * d"]
    assert names[2] == "ball 1 · a"
    assert len(names) == len(set(names)) == columns.shape[1]
    assert map.features().tolist() == [0, 1, 2, 3]
    signed = as_signs(mix)
    np.testing.assert_allclose(
        signed.columns([12, 0]), signed.scales([12, 0]) * mix.extract([12, 0]).columns(X)
        - signed.shifts([12, 0]), atol=1e-12,
    )  # fmt: skip


def test_atoms_of_one_pool_have_the_map_of_that_pool():
    mix = bound([Columns(), Products()])
    assert type(mix.extract([2, 1])) is ColumnsMap
    assert type(mix.extract([5])) is ProductsMap
    assert type(mix.extract([])) is ColumnsMap


def test_a_pool_without_atoms_changes_nothing():
    flat = np.ones_like(X)
    flat[:, 2:] = X[:, 2:]
    for pools in (
        [Stumps(3, categorical=[0]), Columns(groups=[[0, 1], [2, 3]])],
        [Stumps(3), Columns()],
    ):
        mix = bound(pools, flat)
        assert mix.best(np.eye(len(y))[:, :2] - 0.5).index >= 0
    empty = bound([Stumps(3), Columns(groups=[[0, 1], [2, 3]])], np.ones_like(X))
    assert empty.best(np.ones((len(y), 2))).index == 0


def test_records_that_two_pools_share_are_excluded_in_both():
    pools = [Columns(), Columns("std")]
    model = ShareBoostClassifier(4, pool=pools, exclude=[Column(0)]).fit(X, y)
    assert sorted(atom.feature for atom in model.atoms_) == [1, 2, 3]
    with pytest.raises(ValueError, match="stands for 2 atoms"):
        ShareBoostClassifier(4, pool=pools, include=[Column(0)]).fit(X, y)
