"""Several pools in one path: the atoms and weights of all columns side by side."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from laconic import Predictor, ShareBoostClassifier, TotalQBoostClassifier
from laconic.boost.measures import Operations, SensorPrices, TargetBytes
from laconic.export.footprint import Target
from laconic.model.atoms import Column, ColumnGroup, ColumnsMap, Product, ProductsMap, Stump
from laconic.model.card import card
from laconic.model.feature_maps import feature_name
from laconic.model.lowering import LoweredMap
from laconic.model.mixed import MixedMap
from laconic.model.primitives import Gather
from laconic.model.program import program_of
from laconic.model.single import single, single_scores
from laconic.numeric.threads import Threads
from laconic.pools import Columns, Mixed, Patches, Pieces, Products, Stumps, bind_parts
from laconic.pools.signs import as_signs
from laconic.pools.weak_learners import Oracle
from problems import saving_always

BOOSTERS = [ShareBoostClassifier, TotalQBoostClassifier]


def problem(m=150, d=4, seed=0):
    """Classes of a column, a product, a step and a ball, so that no pool is enough."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, d))
    scores = np.stack([2 * X[:, 0], 5 * X[:, 1] * X[:, 2], 2 * (X[:, 3] > 0.3)], axis=1)
    scores[:, 2] += 2 * (np.hypot(X[:, 0], X[:, 1]) < 0.5)
    return X, np.argmax(scores + 0.3 * rng.gumbel(size=scores.shape), axis=1)


X, y = problem()
WEIGHT = np.full(len(y), 1 / len(y))
PIECES = Pieces(4, 2, slope=0.2)
PATCHES = Patches((2, 2), 2, 1, 2, 1.0)
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
    scores = mixed.decision_function(X) if hasattr(mixed, "decision_function") else None
    if scores is not None:
        np.testing.assert_allclose(
            scores, naive.decision_function(wide), rtol=0, atol=10 * tight * size
        )


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
    X, y = problem(400)
    model = ShareBoostClassifier(4, pool=["columns", "products", "stumps"], rule="projection")
    assert {type(atom) for atom in model.fit(X, y).atoms_} == {Column, Product, Stump}


POOLS = [Columns(), Columns("std", [[0, 1], [2], [3]]), Products(), Stumps(5), PIECES, PATCHES]


@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize("pool", POOLS)
def test_a_mix_of_one_pool_is_that_pool(pool, booster, assert_identical):
    alone = booster(4, pool=pool).fit(X, y)
    for same in ([pool], (pool,), Mixed([pool])):
        assert_identical(alone, booster(4, pool=same).fit(X, y))
    assert_identical(alone, alone)


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
    for pools in ([Stumps(3, categorical=[0]), Columns(groups=[[0, 1], [2, 3]])], [Stumps(3), Columns()]):
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


# -- budgets ---------------------------------------------------------------------------------------

BUDGET_MIXES = {
    "narrow": [Columns(), Products(), Stumps(2)],
    "wide": [Columns(), PIECES, Stumps(2)],
    "patches": [PATCHES, Products(), Columns(groups=[[0, 1], [2, 3]])],
}


@pytest.mark.parametrize("name", BUDGET_MIXES)
def test_what_an_atom_adds_is_what_the_model_has_more(name):
    mix = bound(BUDGET_MIXES[name])
    prices = np.array([1.0, 2.0, 5.0])
    targets = [Target("c99", bits, given) for bits in (8, 16, None) for given in ("float", "int16")]
    measures = [
        SensorPrices(mix, prices, np.array([0, 0, 1, 2])), Operations(mix), Operations(mix, 3),
        *(TargetBytes(mix, 3, target, 4, 3) for target in targets),
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    for size in (0, 1, 2, 4):
        chosen = rng.choice(mix.n_atoms, size, replace=False).tolist()
        for measure in measures:
            added, before = measure.added(chosen), measure.of(chosen)
            for atom in set(range(mix.n_atoms)).difference(chosen):
                more = measure.of([*chosen, atom]) - before
                assert more >= 0
                assert added[atom] == pytest.approx(more)


@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize(
    "caps", [{"max_features": 2}, {"max_operations": 14}, {"max_bytes": 900},
             {"costs": [1, 2, 3, 4], "max_cost": 5}],
)  # fmt: skip
def test_caps_hold_at_every_size(booster, caps):
    model = booster(8, pool=["columns", "products", Stumps(4)], **caps).fit(X, y)
    has = {"max_features": model.path_.features, "max_operations": model.path_.operations,
           "max_cost": model.path_.costs}  # fmt: skip
    if "max_bytes" in caps:
        has["max_bytes"] = model.path_.footprints
    for name, most in caps.items():
        if name != "costs":
            assert has[name].max() <= most
    assert model.n_atoms_ > 0


def test_a_pool_that_knows_no_kinds_of_atoms_keeps_caps():
    model = ShareBoostClassifier(5, pool=[Own(), Stumps(3)], max_features=2, max_operations=12)
    model.fit(X, y)
    assert model.path_.features.max() == 2
    assert model.path_.operations.max() <= 12


# -- settings --------------------------------------------------------------------------------------


def test_include_and_exclude():
    frame = pd.DataFrame(X, columns=list("abcd"))
    pool = ["columns", "products", "stumps"]
    model = ShareBoostClassifier(4, pool=pool, include=[Product(1, 2)], exclude=["a", Column(3)])
    model.fit(frame, y)
    assert model.atoms_[0] == Product(1, 2)
    assert not any(0 in atom.reads or atom == Column(3) for atom in model.atoms_)
    with pytest.raises(ValueError, match="include: 'b' stands for .* give the record of one atom"):
        ShareBoostClassifier(4, pool=pool, include=["b"]).fit(frame, y)


def test_groups_are_for_columns():
    model = ShareBoostClassifier(2, pool=["columns", "stumps"], groups=[0, 0, 1, 1]).fit(X, y)
    assert ColumnGroup((0, 1)) in model.atoms_ or ColumnGroup((2, 3)) in model.atoms_
    with pytest.raises(ValueError, match='groups need pool="columns"'):
        ShareBoostClassifier(2, pool=["products", "stumps"], groups=[0, 0, 1, 1]).fit(X, y)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_a_checkpoint_resumes_to_the_same_model(booster, tmp_path, assert_identical):
    pool = [Columns(), Products(), PIECES]
    whole = booster(5, pool=pool).fit(X, y)
    short = saving_always(booster(3, pool=pool, checkpoint=tmp_path / "c")).fit(X, y)
    assert len(short.path_) < len(whole.path_)
    resumed = booster(5, pool=pool, checkpoint=tmp_path / "c").fit(X, y)
    assert_identical(whole, resumed)
    with pytest.raises(ValueError, match="other data or settings"):
        booster(5, pool=pool[::-1], checkpoint=tmp_path / "c").fit(X, y)
    with pytest.raises(ValueError, match="give Pieces an integer random_state"):
        other = ["columns", Pieces(random_state=None)]
        booster(5, pool=other, checkpoint=tmp_path / "c").fit(X, y)


def test_refining_folds_and_held_out_rows():
    pool = ["columns", "products", Stumps(4)]
    plain = ShareBoostClassifier(4, pool=pool).fit(X, y)
    refined = ShareBoostClassifier(4, pool=pool, refine=True).fit(X, y)
    assert np.all(refined.path_.losses <= plain.path_.losses + 1e-9)
    folds = ShareBoostClassifier(4, pool=pool, cv=3).fit(X, y)
    assert folds.cv_scores_.shape == (3, 5)
    ShareBoostClassifier(6, pool=pool, early_stopping=True, random_state=0).fit(X, y)
    prices = TotalQBoostClassifier(4, pool=pool, price=[0.1, 0.01], cv=3).fit(X, y)
    assert prices.price_ in (0.1, 0.01)


def test_threads_change_no_bit(assert_identical):
    model = ShareBoostClassifier(5, pool=[Columns(), Products(), Stumps(4), PIECES])
    assert_identical(clone(model).set_params(n_jobs=1).fit(X, y), model.set_params(n_jobs=3).fit(X, y))


# -- models ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models():
    rule = {"rule": "projection"}
    two = (y > 0).astype(int)
    return {
        "narrow": ShareBoostClassifier(7, pool=["columns", "products", "stumps"], **rule).fit(X, y),
        "wide": ShareBoostClassifier(5, pool=["columns", PIECES, "stumps"], rule="refit").fit(X, y),
        "patches": ShareBoostClassifier(5, pool=["columns", PATCHES], **rule).fit(X, y),
        "two": TotalQBoostClassifier(6, pool=["columns", "products", "stumps"]).fit(X, two),
    }


@pytest.mark.parametrize("name", ["narrow", "wide", "patches", "two"])
def test_saved_models_answer_alike(models, name, tmp_path):
    predictor = models[name].predictor_
    assert isinstance(predictor.map, MixedMap)
    predictor.save(tmp_path / "m")
    loaded = Predictor.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.scores(X), predictor.scores(X))
    assert loaded.names() == predictor.names()
    assert loaded.cost() == predictor.cost()
    predictor.quantise(X).save(tmp_path / "q")
    np.testing.assert_array_equal(
        Predictor.load(tmp_path / "q").scores(X), predictor.quantise(X).scores(X)
    )


@pytest.mark.parametrize("name", ["narrow", "wide", "patches", "two"])
def test_c_code_gives_the_same_bits(models, name):
    predictor = models[name].predictor_
    reference = single_scores(single(program_of(predictor)), predictor.device_rows(X))
    np.testing.assert_array_equal(predictor.to_c().compile().scores(X), reference)
    for bits in (8, 16):
        integer = predictor.quantise(X, bits)
        compiled, own = integer.to_c().compile(), integer.integers
        np.testing.assert_array_equal(compiled.scores(X), own.scores(own.inputs.codes(X)))
        np.testing.assert_array_equal(compiled.predict(X), integer.predict(X))


def test_the_cost_is_the_sum_over_the_kinds(models):
    predictor = models["narrow"].predictor_
    parts = predictor.map.parts
    cost = predictor.cost()
    assert cost.operations == sum(p.operations() for p in parts) + predictor.weights.size
    own = sum(a.nbytes for p in parts for a in p.arrays().values())
    assert cost.bytes == predictor.weights.nbytes + predictor.intercept.nbytes + own


def test_cards_tell_what_each_kind_is(models):
    narrow, wide, two = (card(models[name], width=300) for name in ("narrow", "wide", "two"))
    assert " + " in narrow.splitlines()[0]
    assert "A stump is 1 if its condition holds" in narrow
    assert "Weights of columns and products are per unit" in narrow
    assert "radius" in wide
    assert "plot_balls" in wide
    assert len([line for line in wide.splitlines() if " % " in line]) >= 5
    assert "An atom gives its points times its value. A stump gives its points if" in two
    saved = card(models["wide"].predictor_, width=300)
    assert "does not hold its atoms' shares" in saved


def test_dates_have_units_in_columns_and_words_in_stumps():
    days = pd.date_range("2024-01-01", periods=len(y), freq="D")
    frame = pd.DataFrame({"day": days, "a": X[:, 0], "b": X[:, 1]})
    pool = ["columns", "stumps"]
    shape = {"include": [Column(0), Stump(0, 74.5)], "pool": [Columns(), Stumps(2)]}
    late = np.arange(len(y)) > 80
    model = ShareBoostClassifier(3, **shape).fit(frame, late)
    text = card(model, width=300)
    assert "day (days since 2024-01-01)" in text
    assert "day <= 2024-03-15" in text
    assert pool == ["columns", "stumps"]


def test_names_that_two_kinds_share_are_told_apart():
    map = MixedMap([ColumnsMap([2]), ProductsMap([0], [1])])
    assert map.names(["a", "b", "a * b"]) == ["a * b (columns)", "a * b (products)"]
    assert map.names(["a", "b", "c"]) == ["c", "a * b"]


def test_pictures_show_the_atoms_that_can_be_drawn(models):
    pytest.importorskip("matplotlib")
    from laconic.look.balls import ball_facts
    from laconic.look.mosaic import plot_patches

    model = models["patches"]
    n_patches = sum(type(atom).__name__ == "Patch" for atom in model.atoms_)
    drawn = [text.get_text() for text in plot_patches(model).texts]
    places = [int(text.split(" ")[0]) - 1 for text in drawn]
    assert len(places) == n_patches > 0
    assert all(type(model.atoms_[place]).__name__ == "Patch" for place in places)
    balls = [atom for atom in models["wide"].atoms_ if type(atom).__name__ == "Piece"]
    assert [ball.radius for ball in ball_facts(models["wide"], X, y)] == [b.radius for b in balls]
    with pytest.raises(ValueError, match="only patches can be drawn so, but the model has mixed"):
        plot_patches(models["narrow"])
    with pytest.raises(ValueError, match="only models of pieces have balls. This one has mixed"):
        ball_facts(models["narrow"], X)


def test_maps_are_checked():
    parts = [ColumnsMap([0, 1]), ProductsMap([0], [1])]
    np.testing.assert_array_equal(
        MixedMap(parts, [0, 1, 0]).columns(X), np.stack([X[:, 0], X[:, 0] * X[:, 1], X[:, 1]], 1)
    )
    assert MixedMap(parts).part.tolist() == [0, 0, 1]
    for wrong in ([0, 0], [0, 0, 0], [0, 1, 2], [[0, 0, 1]]):
        with pytest.raises(ValueError, match="do not fit their maps"):
            MixedMap(parts, wrong)


# -- what is refused -------------------------------------------------------------------------------


class OwnMap(LoweredMap):
    """Columns of an own pool."""

    kind = "own"

    def __init__(self, feature):
        self.feature = feature

    def lower(self):
        return [Gather(self.feature)]

    def names(self, feature_names=None, categories=None):
        return [f"own {feature_name(f, feature_names)}" for f in self.feature]


class Own:
    """Columns without surveys, whose bound pool knows no kinds of atoms."""

    def bind(self, X, weight, threads):
        bound = Columns().bind(X, weight, threads)
        bound.alike = lambda chosen=(): None
        bound.extract = OwnMap
        return bound


def test_own_pools_are_mixed_but_not_saved(tmp_path):
    model = ShareBoostClassifier(5, pool=[Own(), "products"]).fit(X, y)
    assert {type(atom) for atom in model.atoms_} == {Column, Product}
    assert model.predictor_.to_c() is not None
    with pytest.raises(TypeError, match=r"feature map of your own \(OwnMap\) cannot be saved"):
        model.predictor_.save(tmp_path / "m")
    parts = [(X[:50], WEIGHT[:50]), (X[50:], WEIGHT[50:])]
    with pytest.raises(TypeError, match="Own cannot be bound to rows in parts: it has no 'survey'"):
        bind_parts(Mixed([Columns(), Own()]), parts, Threads(1))


@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize(
    ("pool", "error", "words"),
    [
        ([], ValueError, "pool is an empty list"),
        (["columns", "trees"], ValueError, "pool must be one of 'columns', .* not 'trees'"),
        (["columns", "patches"], ValueError, r"pool=laconic.pools.Patches\(...\)"),
        (["columns", "columns"], ValueError, "lists Columns.* twice; list each pool once"),
        (["columns", Columns()], ValueError, "lists Columns.* twice"),
        ([Pieces(3), "stumps", Pieces(3)], ValueError, r"lists Pieces\(.*\) twice"),
        (["columns", ["products"]], TypeError, "put the pools of an inner list into it"),
        ([["columns", "products"]], TypeError, "put the pools of an inner list into it"),
        (["stumps", Mixed([Columns(), Products()])], TypeError, "pools of an inner list"),
        (["columns", Stumps], TypeError, r"pass Stumps\(\)"),
        (["columns", 3], TypeError, "an object with a bind method, not 3"),
        (["columns", DecisionTreeClassifier()], TypeError, "DecisionTreeClassifier cannot be mixed"),
        (["columns", Oracle(DecisionTreeClassifier())], TypeError, "Oracle cannot be mixed"),
    ],
)  # fmt: skip
def test_wrong_lists_are_refused(booster, pool, error, words):
    with pytest.raises(error, match=words):
        booster(3, pool=pool).fit(X, y)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_missing_values_and_text_need_pools_that_all_take_them(booster):
    holes = X.copy()
    holes[::7, 1] = np.nan
    with pytest.raises(ValueError, match='Only pool="stumps" alone takes missing values'):
        booster(3, pool=["stumps", "columns"]).fit(holes, y)
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "yes", "no")})
    with pytest.raises(ValueError, match='or use pool="stumps" alone'):
        booster(3, pool=["columns", "stumps"]).fit(frame, y)
    model = booster(3, pool=[Stumps(3), Stumps(8)], cv=3).fit(frame.assign(a=holes[:, 1]), y > 0)
    assert model.predict(frame).shape == y.shape
    words = json.dumps(model.predictor_.names())
    assert "b =" in words or model.n_atoms_ == 0 or "a" in words
