"""Rules: every pair of conditions on two different features, and nothing else."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from laconic import Predictor, ShareBoostClassifier, TotalQBoostClassifier
from laconic.model.atoms import Stump
from laconic.model.rules import Condition, RuleAtom
from laconic.numeric.threads import Threads
from laconic.pools import Mixed, Rules, Stumps

NAN = np.nan
NAMED = (1, 4)


def table(m=200, seed=0, dtype=np.float64):
    """Numbers, categories (see `NAMED`), missing values, a constant and an empty column."""
    rng = np.random.default_rng(seed)
    X = np.empty((m, 7))
    X[:, 0] = rng.standard_normal(m)
    X[:, 1] = rng.choice([0.0, 2.0, 5.0, 9.0], m, p=[0.4, 0.3, 0.2, 0.1])
    X[:, 2] = np.where(rng.random(m) < 0.3, NAN, rng.integers(-2, 3, m))
    X[:, 3] = 4.0
    X[:, 4] = np.where(rng.random(m) < 0.2, NAN, rng.choice([5.0, 6.0], m))
    X[:, 5] = NAN
    X[:, 6] = rng.integers(0, 2, m)
    return X.astype(dtype)


def bound(X, weight=None, n_jobs=1, **settings):
    settings = {"cuts": 3, "categorical": NAMED, **settings}
    weight = np.ones(X.shape[0]) if weight is None else weight
    return Rules(**settings).bind(X, weight / weight.sum(), Threads(n_jobs))


def meets(v, condition):
    """Which values meet a condition, from the definition."""
    asked = {"le": v <= condition.value, "gt": v > condition.value, "eq": v == condition.value}
    return asked.get(condition.kind, np.isnan(v))


def naive(X, cuts=3, categorical=NAMED):
    """Every pair of conditions, from stumps with as many cuts, and the column of each pair."""
    weight = np.full(len(X), 1 / len(X))
    stumps = Stumps(cuts + 1, categorical).bind(X, weight, Threads(1))
    asked = [stumps.atom(number) for number in range(stumps.n_atoms)]
    conditions = []
    for f in sorted({stump.feature for stump in asked}):
        thresholds = [s.value for s in asked if s.feature == f and s.kind == "le"]
        conditions += [Condition(f, value, kind) for kind in ("le", "gt") for value in thresholds]
        if f in categorical:
            known = np.unique(X[~np.isnan(X[:, f]), f])
            conditions += [Condition(f, float(c), "eq") for c in known]
        conditions += [Condition(f, 0.0, "missing")] * any(
            s.feature == f and s.kind == "missing" for s in asked
        )
    pairs = [RuleAtom(a, b) for a, b in combinations(conditions, 2) if a.feature != b.feature]
    columns = [meets(X[:, a.feature], a) & meets(X[:, b.feature], b) for a, b in pairs]
    return pairs, np.column_stack(columns).astype(float)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pool_is_the_naive_enumeration(dtype):
    X = table(dtype=dtype)
    pool = bound(X)
    pairs, columns = naive(X)
    assert [pool.atom(number) for number in range(pool.n_atoms)] == pairs
    written = pool.columns(range(pool.n_atoms))
    np.testing.assert_array_equal(written, columns)
    assert written.dtype == pool.dtype == dtype
    assert pool.binary
    assert pool.n_columns == pool.n_atoms


@pytest.mark.parametrize("k", [1, 2, 3, 7])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_sums_and_squares_of_every_rule_are_those_of_its_column(n_jobs, k):
    X = table()
    rng = np.random.default_rng(1)
    weight, residual = rng.random(len(X)), rng.standard_normal((len(X), k))
    pool, columns = bound(X, n_jobs=n_jobs), naive(X)[1]
    blocks = list(pool.gradients(residual))
    ends = [first + len(sums) for first, sums in blocks]
    assert [first for first, _ in blocks] == [0, *ends[:-1]]
    found = np.vstack([sums for _, sums in blocks])
    np.testing.assert_allclose(found, columns.T @ residual, atol=1e-12)
    norms = np.concatenate([own for _, own in pool.norms(residual)])
    np.testing.assert_allclose(norms, np.abs(columns.T @ residual).sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(pool.squares(weight), weight @ columns, atol=1e-12)
    assert pool.best(residual).index == np.argmax(np.abs(columns.T @ residual).sum(axis=1) + 1e-13)


def test_threads_and_waves_never_change_a_bit():
    class Small(Rules):
        _limits = Rules._limits._replace(wave=50)

    X = table()
    residual = np.random.default_rng(2).standard_normal((len(X), 3)).astype(np.float32)
    weight, sums = np.full(len(X), 1 / len(X)), []
    for kind, n_jobs in ((Rules, 1), (Rules, 4), (Small, 2)):
        with Threads(n_jobs) as threads:
            pool = kind(5, categorical=NAMED).bind(X, weight, threads)
            sums.append(np.vstack([own for _, own in pool.gradients(residual)]))
    np.testing.assert_array_equal(sums[0], sums[1])
    np.testing.assert_array_equal(sums[0], sums[2])


def test_thresholds_are_those_of_stumps_with_as_many_bins():
    X = np.random.default_rng(0).exponential(size=(500, 2))
    weight = np.random.default_rng(1).uniform(0.5, 2, 500)
    pool = Rules(cuts=6).bind(X, weight, Threads(1))
    stumps = Stumps(bins=7).bind(X, weight, Threads(1))
    asked = {pool.atom(number).first.value for number in range(pool.n_atoms)}
    assert asked == {stumps.atom(number).value for number in stumps.matching(0)}
    assert len(asked) == 6


def test_only_the_most_common_categories_have_conditions():
    rng = np.random.default_rng(0)
    named = rng.permutation(np.repeat([3.0, 1.0, 7.0, 4.0, NAN], [50, 40, 30, 20, 10]))
    X = np.column_stack([named, rng.random(150)])
    pool = bound(X, categorical=[0], max_categories=2, cuts=1)
    firsts = {pool.atom(number).first for number in range(pool.n_atoms)}
    assert firsts == {
        Condition(0, 1.0, "eq"), Condition(0, 3.0, "eq"), Condition(0, 0.0, "missing"),
    }  # fmt: skip
    for number in range(pool.n_atoms):
        a, b = pool.atom(number)
        expected = meets(X[:, 0], a) & meets(X[:, 1], b)
        np.testing.assert_array_equal(pool.columns([number])[:, 0], expected)


def test_rules_at_the_limits_with_missing_values():
    """Two features with 200 cuts, and two with 100 of more categories."""
    rng = np.random.default_rng(0)
    X = np.column_stack([*rng.random((2, 2000)), *rng.integers(0, 130, (2, 2000))])
    X[rng.random(X.shape) < 0.1] = NAN
    residual = rng.standard_normal((len(X), 2))
    pool = bound(X, cuts=200, max_categories=100, categorical=[2, 3])
    assert pool.n_atoms == 401 * 401 + 4 * 401 * 101 + 101 * 101
    edges = np.unique([e for f in range(4) for e in pool.matching(f)[[0, -1]]])
    atoms = np.append(edges, rng.choice(pool.n_atoms, 300, replace=False))
    rules = [pool.atom(number) for number in atoms]
    assert {c.kind for rule in rules for c in rule} == {"le", "gt", "eq", "missing"}
    expected = np.column_stack(
        [meets(X[:, a.feature], a) & meets(X[:, b.feature], b) for a, b in rules]
    )
    np.testing.assert_array_equal(pool.columns(atoms), expected)
    np.testing.assert_array_equal(pool.extract(atoms).columns(X), expected)
    sums = np.vstack([own for _, own in pool.gradients(residual)])
    np.testing.assert_allclose(sums[atoms], expected.T @ residual, atol=1e-10)
    assert [pool.index(rule) for rule in rules] == atoms.tolist()


def test_a_heavy_category_is_common():
    X = np.column_stack([np.arange(9.0) // 3, np.arange(9.0)])
    weight = np.where(X[:, 0] == 2, 2.0, 1.0)
    pool = bound(X, weight, categorical=[0], max_categories=1, cuts=1)
    assert pool.atom(0).first == Condition(0, 2.0, "eq")


def test_neighbouring_floats_are_different_categories():
    low = 1.0
    high = np.nextafter(low, 2)
    X = np.column_stack([np.repeat([low, high, 0.0], [5, 4, 1]), np.arange(10.0)])
    pool = bound(X, categorical=[0], max_categories=2, cuts=1)
    for number in range(pool.n_atoms):
        a, b = pool.atom(number)
        expected = meets(X[:, 0], a) & meets(X[:, 1], b)
        np.testing.assert_array_equal(pool.columns([number])[:, 0], expected)


def test_new_rows_get_the_columns_of_training_rows():
    X = table()
    pool = bound(X)
    atoms = list(range(0, pool.n_atoms, 7))
    np.testing.assert_array_equal(pool.extract(atoms).columns(X), pool.columns(atoms))
    known = np.nan_to_num(X)
    pool = bound(known)
    found = pool.extract(range(pool.n_atoms)).columns(sparse.csr_matrix(known))
    np.testing.assert_array_equal(found, pool.columns(range(pool.n_atoms)))
    csr = bound(sparse.csr_matrix(known))
    np.testing.assert_array_equal(csr.columns(range(csr.n_atoms)), found)


def test_atoms_have_records_and_numbers():
    pool = bound(table())
    for number in range(pool.n_atoms):
        atom = pool.atom(number)
        assert atom.width == pool.width(number) == 1
        assert atom.reads == (atom.first.feature, atom.second.feature)
        assert pool.index(atom) == number
        assert pool.matching(RuleAtom(atom.second, atom.first)).tolist() == [number]
    for feature in range(7):
        found = [n for n in range(pool.n_atoms) if feature in pool.atom(n).reads]
        assert sorted(pool.matching(feature)) == found


@pytest.mark.parametrize(
    ("atom", "message"),
    [
        (Stump(0, 0.5), "expected a RuleAtom"),
        (RuleAtom(Condition(0, 0.123), Condition(6, 0.5)), "no condition"),
        (RuleAtom(Condition(3, 4.0), Condition(6, 0.5)), "no condition"),
        (RuleAtom(Condition(6, 0.5), Condition(6, 0.5, "gt")), "about two features"),
    ],
)
def test_other_records_are_refused(atom, message):
    with pytest.raises(ValueError, match=message):
        bound(table()).index(atom)


def test_costs_are_those_of_both_features():
    pool, costs = bound(table()), 2.0 ** np.arange(7)
    found = [costs[list(pool.atom(number).reads)].sum() for number in range(pool.n_atoms)]
    np.testing.assert_array_equal(pool.costs(costs), found)


# -- models ----------------------------------------------------------------------------------------


def corner(m=400, seed=0):
    """Rows whose class is an interaction: no single condition tells much."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, 4))
    return X, ((X[:, 0] > 0.2) == (X[:, 1] > -0.1)).astype(int)


@pytest.mark.parametrize("booster", [ShareBoostClassifier, TotalQBoostClassifier])
def test_rules_tell_corners_apart_in_both_boosters(booster):
    X, y = corner()
    settings = {"price": 0.0} if booster is TotalQBoostClassifier else {}
    model = booster(12, pool="rules", **settings).fit(X, y)
    stumps = booster(12, pool="stumps", **settings).fit(X, y)
    assert model.score(X, y) > 0.95
    assert stumps.score(X, y) < 0.75
    mixed = booster(12, pool=["stumps", "rules"], **settings).fit(X, y)
    assert mixed.score(X, y) > 0.95


def test_first_rule_is_the_best_of_all_pairs():
    X, y = corner(m=150)
    model = ShareBoostClassifier(1, pool=Rules(cuts=4)).fit(X, y)
    pairs, columns = naive(X, 4, ())
    share = np.eye(2)[y] - np.eye(2)[y].mean(axis=0)
    best = np.abs(columns.T @ share).sum(axis=1)
    assert best[pairs.index(model.path_[1].atoms[0])] == pytest.approx(best.max())


def test_permuted_columns_have_permuted_rules():
    X, y = corner()
    order = np.array([2, 0, 3, 1])
    here = ShareBoostClassifier(5, pool="rules").fit(X, y)
    there = ShareBoostClassifier(5, pool="rules").fit(X[:, order], y)
    np.testing.assert_allclose(
        here.decision_function(X), there.decision_function(X[:, order]), atol=1e-6
    )


def test_a_row_of_weight_two_is_the_row_twice():
    X, y = table(), np.arange(200) % 3
    weight = np.where(np.arange(len(y)) % 4 == 0, 2.0, 1.0)
    again = np.repeat(np.arange(len(y)), weight.astype(int))
    settings = {"pool": Rules(4, categorical=NAMED), "alpha": 1e-3}
    heavy = ShareBoostClassifier(5, **settings).fit(X, y, sample_weight=weight)
    twice = ShareBoostClassifier(5, **settings).fit(X[again], y[again])
    assert heavy.path_[5].atoms == twice.path_[5].atoms
    np.testing.assert_allclose(heavy.decision_function(X), twice.decision_function(X), atol=1e-6)


def people(m=600, seed=0):
    """A frame with text and gaps. Those who answer yes are teachers older than 45."""
    rng = np.random.default_rng(seed)
    job = rng.choice(["teacher", "nurse", "smith", None], m)
    age = np.where(rng.random(m) < 0.1, NAN, rng.integers(18, 80, m))
    hours = rng.integers(10, 60, m)
    y = np.where((job == "teacher") & (age > 45), "yes", "no")
    return pd.DataFrame({"job": job, "age": age, "hours": hours}), y


@pytest.mark.parametrize("booster", [ShareBoostClassifier, TotalQBoostClassifier])
def test_frames_with_text_and_gaps_give_readable_rules(booster, tmp_path, capsys):
    frame, y = people()
    model = booster(1, pool=Rules(cuts=60)).fit(frame, y)
    assert model.predictor_.names()[0].startswith("job = teacher and age > 45")
    model.predictor_.describe()
    assert "both of its conditions hold" in " ".join(capsys.readouterr().out.split())
    assert model.score(frame, y) > 0.98
    model.predictor_.save(tmp_path / "m.laconic")
    loaded = Predictor.load(tmp_path / "m.laconic")
    assert loaded.names() == model.predictor_.names()
    np.testing.assert_array_equal(loaded.scores(frame), model.predictor_.scores(frame))


def test_a_saved_mix_of_stumps_and_rules_answers_alike(tmp_path):
    frame, y = people()
    pool = ["stumps", "rules"]
    model = ShareBoostClassifier(8, pool=pool, rule="projection").fit(frame, y)
    model.predictor_.save(tmp_path / "m.laconic")
    loaded = Predictor.load(tmp_path / "m.laconic")
    np.testing.assert_array_equal(loaded.scores(frame), model.predictor_.scores(frame))


def test_integer_models_of_rules_answer_alike(tmp_path):
    frame, y = people()
    model = ShareBoostClassifier(8, pool="rules").fit(frame, y)
    for inputs in ("float", "int16", "uint8"):
        integers = model.predictor_.quantise(frame, bits=16, inputs=inputs)
        assert np.mean(integers.predict(frame) == model.predict(frame)) > 0.99


def test_include_and_exclude_name_rules_and_features():
    X, y = corner()
    first = ShareBoostClassifier(1, pool="rules").fit(X, y).path_[1].atoms[0]
    other = ShareBoostClassifier(3, pool="rules", exclude=[first, 2]).fit(X, y)
    assert first not in other.path_[3].atoms
    assert all(2 not in atom.reads for atom in other.path_[3].atoms)
    again = ShareBoostClassifier(2, pool=["stumps", "rules"], include=[first]).fit(X, y)
    assert first in again.path_[2].atoms


def test_a_rule_that_never_holds_is_harmless():
    X = np.array([[0, 0], [0, 1], [1, 0]] * 10, dtype=float)
    never = RuleAtom(Condition(0, 0.5, "gt"), Condition(1, 0.5, "gt"))
    model = ShareBoostClassifier(3, pool="rules", include=[never]).fit(X, X[:, 0] > 0.5)
    assert model.score(X, X[:, 0] > 0.5) == 1.0


def test_equal_pools_are_equal():
    assert Rules(categorical=np.array([1, 2])) == Rules(categorical=(1, 2))
    assert Rules(categorical=[1]).with_categories([3]).categorical == (1, 3)
    with pytest.raises(ValueError, match="twice"):
        Mixed([Rules(), Rules()])


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"cuts": 0}, ValueError, "cuts must be from 1 to 200"),
        ({"cuts": 2.5}, TypeError, "cuts must be an integer"),
        ({"cuts": True}, TypeError, "cuts must be an integer"),
        ({"max_categories": 101}, ValueError, "max_categories must be from 1 to 100"),
        ({"categorical": [9]}, ValueError, "categorical names feature 9"),
    ],
)
def test_wrong_settings_are_refused(settings, error, message):
    X, y = corner()
    with pytest.raises(error, match=message):
        ShareBoostClassifier(2, pool=Rules(**settings)).fit(X, y)


def test_one_varying_feature_has_no_rules():
    X, _ = corner()
    X[:, 1:] = 3.0
    pool = Rules().bind(X, np.full(len(X), 1 / len(X)), Threads(1))
    assert pool.n_atoms == 0
    assert pool.best(np.ones((len(X), 2))).index == -1
    assert pool.extract([]).names() == []


def test_a_single_feature_has_no_rules():
    X, y = corner()
    with pytest.raises(ValueError, match="at least two columns"):
        ShareBoostClassifier(2, pool="rules").fit(X[:, :1], y)


def test_sums_over_conditions_are_those_over_the_codes_that_meet_them():
    pool, rng = bound(table()), np.random.default_rng(0)
    for own in pool._slots:
        sums = rng.standard_normal((own.holds.shape[1], 3, 2))
        np.testing.assert_allclose(own.met(sums), np.tensordot(own.holds, sums, axes=1), atol=1e-12)
