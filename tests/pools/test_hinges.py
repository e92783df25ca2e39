"""Hinges of directions that classes suggest."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from laconic import Predictor, ShareBoostClassifier, TotalQBoostClassifier
from laconic.model.hinges import HingeAtom
from laconic.numeric.threads import Threads
from laconic.pools import Bumps, Hinges, Mixed, Place, Stumps, bind_parts
from pools.test_pieces import rings

SCALES = ["max", "std", None]


def bound(X, y=None, weight=None, n_jobs=1, **settings):
    settings = {"n_directions": 6, "n_knots": 5, **settings}
    weight = np.ones(len(X)) if weight is None else weight
    place = Place(0, len(X), labels=y)
    return Hinges(**settings).bind(X, weight / weight.sum(), Threads(n_jobs), None, place)


def explicit(pool, X):
    """The column of every hinge from its record, in the units of the input, (n_rows, n_atoms)."""
    out = []
    for number in range(pool.n_atoms):
        atom = pool.atom(number)
        along = sum(v * X[:, f] for f, v in zip(atom.features, atom.values, strict=True))
        out.append(np.maximum(0.0, along - atom.knot))
    return np.column_stack(out)


# -- sums over rows --------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("n_inputs", [None, 1, 2])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_sums_and_squares_of_every_hinge_are_those_of_its_column(scale, n_inputs, n_jobs):
    X, y = rings()
    rng = np.random.default_rng(1)
    weight, residual = rng.random(len(X)), rng.standard_normal((len(X), 3))
    pool = bound(X, y, weight, n_jobs, scale=scale, n_inputs=n_inputs)
    columns = explicit(pool, X) * pool.scales(range(pool.n_atoms))
    found = np.vstack([sums for _, sums in pool.gradients(residual)])
    np.testing.assert_allclose(found, columns.T @ residual, atol=1e-10)
    norms = np.concatenate([own for _, own in pool.norms(residual)])
    np.testing.assert_allclose(norms, np.abs(columns.T @ residual).sum(axis=1), atol=1e-10)
    np.testing.assert_allclose(pool.squares(weight), weight @ columns**2, atol=1e-10)
    np.testing.assert_allclose(pool.columns([4, 0, 26]), columns[:, [4, 0, 26]], atol=1e-12)


def test_sums_by_code_are_those_of_loops():
    from laconic.pools.hinge_sums import STRETCH, sum_by_code

    rng = np.random.default_rng(0)
    n = STRETCH + 5  # rows of two stretches
    codes = rng.integers(0, 4, (3, n)).astype(np.uint8)
    heights = rng.integers(-9, 9, (3, n)).astype(np.float64)
    residual = rng.integers(-9, 9, (n, 2)).astype(np.float64)
    sums, naive = np.ones((3, 5, 4)), np.ones((3, 5, 4))
    sum_by_code(codes, heights, residual, sums)
    for j in range(3):
        for i in range(n):
            for c in range(2):
                naive[j, codes[j, i], c] += residual[i, c]
                naive[j, codes[j, i], 2 + c] += residual[i, c] * heights[j, i]
    np.testing.assert_array_equal(sums, naive)  # sums of small whole numbers are exact


def test_threads_never_change_a_bit():
    X, y = rings(m=5000)
    residual = np.random.default_rng(1).standard_normal((len(X), 3))
    one, two = (bound(X, y, n_jobs=n, n_directions=40) for n in (1, 2))
    for a, b in zip(one.gradients(residual), two.gradients(residual), strict=True):
        assert a[0] == b[0]
        np.testing.assert_array_equal(a[1], b[1])
    np.testing.assert_array_equal(one.columns([0, 9]), two.columns([0, 9]))


@pytest.mark.parametrize("scale", SCALES)
def test_float32_rows_have_float32_columns(scale):
    X, y = rings(dtype=np.float32)
    residual = np.random.default_rng(1).standard_normal((len(X), 3)).astype(np.float32)
    pool = bound(X, y, scale=scale)
    atoms = range(pool.n_atoms)
    columns = explicit(pool, X.astype(np.float64)) * pool.scales(atoms)
    assert pool.columns(atoms).dtype == pool.dtype == np.float32
    np.testing.assert_allclose(pool.columns(atoms), columns, atol=1e-5)
    sums = np.vstack([own for _, own in pool.gradients(residual)])
    np.testing.assert_allclose(sums, columns.T @ residual, atol=1e-3)


def test_float32_chooses_as_float64():
    X, y = rings(m=400, dtype=np.float32)
    single, double = (
        ShareBoostClassifier(5, pool=Hinges(20, 5), alpha=1e-3).fit(rows, y)
        for rows in (X, X.astype(np.float64))
    )
    assert [a.features for a in single.atoms_] == [a.features for a in double.atoms_]
    np.testing.assert_allclose(single.path_.losses, double.path_.losses, rtol=1e-4)


def test_scales_are_what_they_say():
    X, y = rings()
    largest = bound(X, y, scale="max").columns(range(60)).max(axis=0)
    np.testing.assert_allclose(largest, 1.0)
    np.testing.assert_allclose(bound(X, y, scale="std").columns(range(60)).std(axis=0), 1.0)
    wider = bound(X * [2.0, 3.0, 4.0], y).columns(range(60))  # standardised units have no unit
    np.testing.assert_allclose(wider, bound(X, y).columns(range(60)), atol=1e-12)


# -- directions and knots --------------------------------------------------------------------------


def test_directions_have_few_inputs_and_are_distinct():
    X, y = rings()
    for n_inputs in (1, 2, None):
        pool = bound(X, y, n_inputs=n_inputs)
        atoms = [pool.atom(number) for number in range(pool.n_atoms)]
        assert max(len(atom.features) for atom in atoms) == (n_inputs or X.shape[1])
        assert len(set(atoms)) == pool.n_atoms
        assert all(max(np.abs(atom.values)) >= 1.0 for atom in atoms)
    few = bound(X, y, n_inputs=1)
    assert few.n_atoms == 3 * (5 + 4)  # three features, five knots, one of which has one side
    with_gaps = explicit(few, X)
    assert (with_gaps.max(axis=0) > 0).all()


def test_knots_are_quantiles_of_the_rows():
    X = np.arange(101.0)[:, None]
    pool = bound(X, n_knots=4)
    knots = [(atom.values[0], atom.knot) for atom in map(pool.atom, range(pool.n_atoms))]
    above = [(1.0, b) for b in (0.0, 25.0, 50.0, 75.0)]
    assert knots == [*above, *((-1.0, -b) for b in (25.0, 50.0, 75.0))]


def test_wide_rows_give_the_features_whose_class_means_differ_most():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 30)), np.arange(200) % 2
    X[:, 11] += 3 * y
    X[:, 5] -= 2 * y
    pool = bound(X, y, n_directions=2)
    single = {a.features for a in map(pool.atom, range(pool.n_atoms)) if len(a.features) == 1}
    assert single == {(5,), (11,)}


def test_very_wide_rows_have_no_principal_directions(monkeypatch):
    X, y = rings()
    there = bound(X, y)
    monkeypatch.setattr("laconic.pools.directions.MOST_FEATURES", 2)
    without = bound(X, y)
    gone = there.n_atoms - without.n_atoms
    assert gone == 3 * (5 + 4)
    kept = {without.atom(number) for number in range(without.n_atoms)}
    assert kept < {there.atom(number) for number in range(there.n_atoms)}


def test_constant_features_and_repeated_values_have_no_empty_hinges():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.full(60, 3.0), rng.integers(0, 2, 60), rng.standard_normal(60)])
    pool = bound(X, rng.integers(0, 2, 60))
    columns = pool.columns(range(pool.n_atoms))
    assert (columns.max(axis=0) > 0).all()
    assert not len(pool.matching(0))
    binary = [a for a in map(pool.atom, range(pool.n_atoms)) if a.features == (1,)]
    assert len(binary) == 1  # a straight line
    for scale in SCALES:
        flat = bound(np.ones((5, 2)), scale=scale)
        assert flat.n_atoms == 0
        assert flat.squares(np.full(5, 0.2)).shape == (0,)


def test_without_labels_directions_are_differences_of_any_rows():
    X, y = rings()
    same = bound(X, np.zeros(len(X), dtype=int))
    np.testing.assert_array_equal(explicit(bound(X), X), explicit(same, X))
    assert not np.array_equal(explicit(bound(X, y), X), explicit(same, X))


# -- atoms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
def test_new_rows_get_the_columns_of_training_rows(scale):
    X, y = rings()
    pool, atoms = bound(X, y, scale=scale), [7, 3, 8, 44]
    found = pool.extract(atoms).columns(X) * pool.scales(atoms)
    np.testing.assert_allclose(found, pool.columns(atoms), atol=1e-12)
    other = pool.extract(atoms).columns(sparse.csr_matrix(X))
    np.testing.assert_array_equal(other, pool.extract(atoms).columns(X))


def test_atoms_have_records_numbers_and_one_column():
    X, y = rings()
    pool = bound(X, y, n_inputs=2)
    for number in (0, 13, 44):
        atom = pool.atom(number)
        assert isinstance(atom, HingeAtom)
        assert atom.width == pool.width(number) == 1
        assert 1 <= len(atom.reads) <= 2
        assert pool.index(atom) == number
        assert pool.matching(atom).tolist() == [number]
    for feature in range(3):
        reads = [feature in pool.atom(number).reads for number in range(pool.n_atoms)]
        assert pool.matching(feature).tolist() == np.flatnonzero(reads).tolist()
    for wrong in (HingeAtom((0,), (1.0,), 99.0), HingeAtom((9,), (1.0,), 0.0), "x"):
        with pytest.raises(ValueError, match="not an atom of this pool"):
            pool.index(wrong)


def test_costs_are_those_of_the_map():
    X, y = rings()
    pool, prices, chosen = bound(X, y, n_inputs=2), np.array([1.0, 10.0, 100.0]), [0, 40]
    costs, added, kinds = pool.costs(prices), pool.operations(chosen, 3), pool.alike(chosen)
    before = pool.extract(chosen)
    seen = {}
    for number in range(pool.n_atoms):
        more = pool.extract([*chosen, number])
        assert costs[number] == prices[pool.extract([number]).features()].sum()
        assert added[number] == more.operations() - before.operations() + 3
        new = len(more.features()) - len(before.features()), added[number]
        assert seen.setdefault(kinds[number], new) == new


def test_names_are_readable():
    pool = bound(np.arange(101.0)[:, None], n_knots=4)
    names = pool.extract([1, 6]).names(["age"])
    assert names == ["max(0, age − 25)", "max(0, 75 − age)"]
    X, y = rings()
    many = bound(X, y)
    assert len(set(many.extract(range(many.n_atoms)).names())) == many.n_atoms


# -- the same fit in other words -------------------------------------------------------------------


def test_other_units_and_places_have_the_same_hinges():
    X, y = rings()
    move, factor = np.array([3.0, -1.0, 0.5]), np.array([2.0, 10.0, 0.1])
    pool = Hinges(20, 5)
    here, there = (
        ShareBoostClassifier(6, pool=pool, alpha=1e-3).fit(rows, y)
        for rows in (X, X * factor + move)
    )
    np.testing.assert_allclose(
        here.decision_function(X), there.decision_function(X * factor + move), atol=1e-6
    )


def test_permuted_columns_have_the_same_hinges():
    X, y = rings()
    order = [2, 0, 1]
    pool = Hinges(20, 5)
    here = ShareBoostClassifier(6, pool=pool, alpha=1e-3).fit(X, y)
    there = ShareBoostClassifier(6, pool=pool, alpha=1e-3).fit(X[:, order], y)
    np.testing.assert_allclose(
        here.decision_function(X), there.decision_function(X[:, order]), atol=1e-6
    )


@pytest.mark.parametrize("scale", SCALES)
def test_a_row_of_weight_two_is_the_row_twice(scale):
    X, y = rings(m=90)
    weight = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    again = np.repeat(np.arange(len(y)), weight.astype(int))
    settings = {"pool": Hinges(20, 5, scale=scale), "alpha": 1e-3}
    heavy = ShareBoostClassifier(5, **settings).fit(X, y, sample_weight=weight)
    twice = ShareBoostClassifier(5, **settings).fit(X[again], y[again])
    np.testing.assert_allclose(heavy.decision_function(X), twice.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("pool", [Hinges(6, 4), Mixed([Stumps(3), Hinges(6, 4, scale="std")])])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
def test_other_shards_have_the_same_hinges(pool, storage):
    X, y = rings(m=120)
    rows, weight = storage(X), np.full(120, 1 / 120)
    pools = []
    for cuts in ([0, 120], [0, 1, 50, 120], [0, 71, 120]):
        parts = [(rows[a:b], y[a:b], weight[a:b]) for a, b in pairwise(cuts)]
        pools.append(bind_parts(pool, parts, Threads(1)))
    one = pools[0][0]
    atoms = [one.atom(number) for number in range(one.n_atoms)]
    for shards in pools[1:]:
        for shard in shards:
            assert [shard.atom(number) for number in range(shard.n_atoms)] == atoms
        columns = np.vstack([shard.columns(range(one.n_atoms)) for shard in shards])
        np.testing.assert_allclose(columns, one.columns(range(one.n_atoms)), atol=1e-12)


def test_a_large_sample_is_the_same_for_all_shards(monkeypatch):
    monkeypatch.setattr("laconic.pools.hinges.SAMPLED", 50)
    X, y = rings(m=120)
    weight = np.full(120, 1 / 120)
    [one] = bind_parts(Hinges(6, 4), [(X, y, weight)], Threads(1))
    parts = [(X[s], y[s], weight[s]) for s in (slice(0, 7), slice(7, 120))]
    for shard in bind_parts(Hinges(6, 4), parts, Threads(1)):
        assert [shard.atom(n) for n in range(9)] == [one.atom(n) for n in range(9)]
    every = range(one.n_atoms)  # rows outside the sample may be beyond all knots
    np.testing.assert_allclose(one.columns(every), explicit(one, X) * one.scales(every), atol=1e-12)


# -- models ----------------------------------------------------------------------------------------


def test_two_hinges_are_the_absolute_value():
    X = np.linspace(-1, 1, 201)[:, None]
    y = (np.abs(X[:, 0]) > 0.5).astype(int)
    model = ShareBoostClassifier(2, pool=Hinges(5, 20), alpha=1e-6).fit(X, y)
    assert model.score(X, y) > 0.99
    assert {atom.features for atom in model.atoms_} == {(0,)}
    one = ShareBoostClassifier(1, pool=Hinges(5, 20), alpha=1e-6).fit(X, y)
    assert one.score(X, y) < 0.8


def test_two_hinges_solve_xor():
    """The label is the sign of x0 · x1. It depends on |x0 − x1| − |x0 + x1|."""
    corners = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]], dtype=float)
    X = np.repeat(corners, 20, axis=0) + 0.1 * np.random.default_rng(0).standard_normal((80, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = ShareBoostClassifier(2, pool=Hinges(50, 9), rule="refit", alpha=1e-6).fit(X, y)
    assert model.score(X, y) == 1.0
    assert LogisticRegression().fit(X, y).score(X, y) < 0.8


@pytest.mark.parametrize("booster", [ShareBoostClassifier, TotalQBoostClassifier])
def test_hinges_tell_rings_apart_in_both_boosters(booster):
    X, y = rings(m=400)
    settings = {"price": 0.0} if booster is TotalQBoostClassifier else {"alpha": 1e-4}
    model = booster(30, pool="hinges", **settings).fit(X, y)
    linear = LogisticRegression().fit(X, y)
    assert model.score(X, y) > 0.85 > 0.5 > linear.score(X, y)
    assert model.predictor_.names()[0].startswith("max(0, ")


def test_a_saved_model_of_hinges_answers_alike(tmp_path):
    X, y = rings()
    model = ShareBoostClassifier(6, pool=["columns", Hinges(20, 4)]).fit(X, y)
    model.predictor_.save(tmp_path / "m.laconic")
    loaded = Predictor.load(tmp_path / "m.laconic")
    np.testing.assert_array_equal(loaded.scores(X), model.predictor_.scores(X))


def test_budgets_keep_hinges_short():
    X, y = rings()
    pool = ["columns", Hinges(20, 4), Hinges(20, 4, n_inputs=1)]
    model = ShareBoostClassifier(8, pool=pool, max_operations=40).fit(X, y)
    assert 20 < model.predictor_.cost().operations <= 40
    model = ShareBoostClassifier(8, pool=Hinges(20, 4, n_inputs=1), max_features=2).fit(X, y)
    assert model.predictor_.cost().features == 2


def test_missing_values_are_refused():
    X, y = rings()
    model = ShareBoostClassifier(2, pool=Hinges(5, 4)).fit(X, y)
    X[3, 1] = np.nan
    for ask in (lambda: ShareBoostClassifier(2, pool=Hinges()).fit(X, y), lambda: model.predict(X)):
        with pytest.raises(ValueError, match=r"NaN|missing"):
            ask()


def test_hinges_are_a_step_of_a_pipeline():
    X, y = rings()
    model = make_pipeline(Hinges(30, 4), LogisticRegression(C=100.0, max_iter=2000)).fit(X, y)
    assert model.score(X, y) > 0.85
    assert len(model[0].get_feature_names_out()) == model[0].transform(X).shape[1]


def test_hinges_need_labels_for_differences_of_classes():
    X, y = rings()
    labelled, plain = Hinges(5, 4).fit(X, y), Hinges(5, 4).fit(X)
    assert labelled.map_.atoms() != plain.map_.atoms()
    named = Hinges(5, 4).fit(X, np.array(["a", "b", "c"])[y])
    assert labelled.map_.atoms() == named.map_.atoms()
    for wrong in (y[1:], np.append(y, 0)):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            Hinges(5, 4).fit(X, wrong)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_directions": 0}, "n_directions must be a whole number"),
        ({"n_knots": 255}, "n_knots must be a whole number, from 1 to 254"),
        ({"n_inputs": 0}, "n_inputs must be a whole number, at least 1, or None"),
        ({"n_inputs": 1.5}, "n_inputs must be a whole number"),
        ({"scale": "mean"}, "scale must be 'max', 'std' or None"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    X, y = rings()
    with pytest.raises(ValueError, match=message):
        ShareBoostClassifier(2, pool=Hinges(**settings)).fit(X, y)


def test_pools_of_labels_and_others_share_a_list():
    X, y = rings()
    model = ShareBoostClassifier(8, pool=[Bumps(9, 4), Hinges(9, 4)]).fit(X, y)
    assert {type(atom).__name__ for atom in model.atoms_} == {"Bump", "HingeAtom"}
    pool = bound(X, y, n_directions=9, n_knots=4)
    alone = {pool.atom(number) for number in range(pool.n_atoms)}
    assert {atom for atom in model.atoms_ if isinstance(atom, HingeAtom)} <= alone
