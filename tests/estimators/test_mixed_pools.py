"""Settings of estimators whose pool is a list: budgets, terms, checkpoints, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from laconic import ShareBoostClassifier, TotalQBoostClassifier
from laconic.boost.measures import Operations, SensorPrices, TargetBytes
from laconic.export.footprint import Target
from laconic.model.atoms import Column, ColumnGroup, Product
from laconic.model.feature_maps import feature_name
from laconic.model.lowering import LoweredMap
from laconic.model.primitives import Gather
from laconic.numeric.threads import Threads
from laconic.pools import Columns, Mixed, Patches, Pieces, Products, Stumps, bind_parts
from laconic.pools.weak_learners import Oracle
from problems import of_every_kind, saving_always

BOOSTERS = [ShareBoostClassifier, TotalQBoostClassifier]
X, y = of_every_kind()
WEIGHT = np.full(len(y), 1 / len(y))
PIECES = Pieces(4, 2, slope=0.2)
PATCHES = Patches((2, 2), 3, 2, 1, 1.0)


def bound(pools):
    return Mixed(pools).bind(X, WEIGHT, Threads(1))


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
    with pytest.raises(ValueError, match=r"include: 'b' stands for .* give the record of one atom"):
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
    other = booster(5, pool=["columns", Pieces(random_state=None)], checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="give Pieces an integer random_state"):
        other.fit(X, y)


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
    assert_identical(
        clone(model).set_params(n_jobs=1).fit(X, y), model.set_params(n_jobs=3).fit(X, y)
    )


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
        (["columns", DecisionTreeClassifier()], TypeError, "TreeClassifier cannot be mixed"),
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
    with pytest.raises(ValueError, match='"stumps" and "rules" alone take missing values'):
        booster(3, pool=["stumps", "columns"]).fit(holes, y)
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "yes", "no")})
    with pytest.raises(ValueError, match='or use pool="stumps" alone'):
        booster(3, pool=["columns", "stumps"]).fit(frame, y)
    frame["a"] = holes[:, 1]
    model = booster(4, pool=[Stumps(3), Stumps(8)]).fit(frame, X[:, 1] > 0)
    assert model.predictor_.names()[0] in ("b = no", "b = yes")
    folds = clone(model).set_params(cv=3).fit(frame, X[:, 1] > 0)
    assert folds.cv_scores_.max() == 1.0
