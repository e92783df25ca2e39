"""Far shards answer as near ones do, and a shard that is lost is made again with the same bits."""

import numpy as np
import pytest
from sklearn.base import clone

from laconic import ShareBoostClassifier, TotalQBoostClassifier
from laconic.losses import BINARY_LOSSES, LOSSES
from laconic.penalties import PENALTIES
from laconic.rows.limits import Limits
from laconic.rows.tree import FAN, groups, tree_sum
from problems import random_problem
from rows.test_shards import CUTS, POOLS, RULES, assert_same_paths, table


def fit_near(model, X, y, cuts=CUTS[3]):
    model = clone(model)
    model._limits = Limits(cuts=cuts)
    return model.fit(X, y)


def assert_same_bits(one, other):
    assert one.path_.sizes.tolist() == other.path_.sizes.tolist()
    for a, b in zip(one.path_, other.path_, strict=True):
        assert a.atoms == b.atoms
        assert np.array_equal(a.weights, b.weights)
        assert np.array_equal(a.intercept, b.intercept)


@pytest.mark.parametrize("name", POOLS)
def test_every_pool_gives_the_path_of_near_shards_and_survives_losses(name, fit_far):
    pool, (X, y) = POOLS[name]
    loss = [*LOSSES][len(name) % len(LOSSES)]
    model = ShareBoostClassifier(3, pool=pool, loss=loss, n_jobs=1)
    far, carrier = fit_far(model, X, y)
    assert_same_paths([fit_near(model, X, y), far])
    lossy, losses = fit_far(model, X, y, share=0.3)
    assert_same_bits(far, lossy)
    assert losses.lost > carrier.lost == 0
    assert losses.asked == carrier.asked


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("loss", [*LOSSES, *BINARY_LOSSES])
def test_every_rule_and_loss(rule, loss, fit_far):
    X, y = table()
    y = y if loss in LOSSES else y > 0
    model = ShareBoostClassifier(3, rule=rule, loss=loss, n_jobs=1)
    far, _ = fit_far(model, X, y)
    assert_same_paths([fit_near(model, X, y), far])
    assert_same_bits(far, fit_far(model, X, y, share=0.2)[0])


@pytest.mark.parametrize(
    "settings", [{"refine": True}, {"alpha": 0.0}, {"groups": [0, 0, 1, 1, 2, 2]}]
)
def test_settings_that_ask_other_questions(settings, fit_far):
    X, y = table()
    model = ShareBoostClassifier(3, n_jobs=1, **settings)
    far, _ = fit_far(model, X, y)
    assert_same_paths([fit_near(model, X, y), far])
    assert_same_bits(far, fit_far(model, X, y, share=0.2)[0])


@pytest.mark.parametrize("pool", ["columns", "stumps", "rules"])
def test_a_shard_that_lost_columns_has_the_bits_of_one_made_again(pool, fit_far):
    X, y = table()
    model = ShareBoostClassifier(3, pool=pool, refine=True, n_jobs=1)
    far, _ = fit_far(model, X, y)
    assert_same_bits(far, fit_far(model, X, y, share=0.5)[0])


@pytest.mark.parametrize("gathered", [0, 1000])
@pytest.mark.parametrize("loss", [*BINARY_LOSSES, "log"])
def test_searches_for_subsets(loss, gathered, fit_far):
    X, y = table()
    y = y if loss in LOSSES else y > 0
    model = TotalQBoostClassifier(max_rounds=6, price=0.003, loss=loss, n_jobs=1)
    far, carrier = fit_far(model, X, y, gathered=gathered)
    near = fit_near(model, X, y)
    assert [str(atom) for atom in far.atoms_] == [str(atom) for atom in near.atoms_]
    np.testing.assert_allclose(far.atom_coef_, near.atom_coef_, rtol=1e-3, atol=1e-5)
    asks_for_rows = any("columns_of_all_rows" in methods for methods in carrier.asked)
    assert asks_for_rows == (gathered > 0 and loss != "log")
    assert_same_bits(far, fit_far(model, X, y, share=0.2, gathered=gathered)[0])


@pytest.mark.parametrize("penalty", ["l1", "linf_l1"])
@pytest.mark.parametrize("settings", [{}, {"loss": "log"}, {"rule": "refit"}])
def test_penalties_that_are_not_quadratic(penalty, settings, fit_far):
    X, y = table()
    settings = {"penalty": penalty, "alpha": 1e-3, "tol": 1e-10, **settings}
    model = ShareBoostClassifier(4, n_jobs=1, **settings)
    far, carrier = fit_far(model, X, y)
    assert_same_paths([fit_near(model, X, y), far])
    assert not any("curve" in methods for methods in carrier.asked)
    assert_same_bits(far, fit_far(model, X, y, share=0.2)[0])


@pytest.mark.parametrize("penalty", ["l1", "linf_l1"])
def test_refined_paths_have_the_same_atoms_in_some_order(penalty, fit_far):
    X, y = table()
    settings = {"penalty": penalty, "alpha": 1e-3, "tol": 1e-8, "refine": True, "n_jobs": 1}
    near = fit_near(ShareBoostClassifier(4, **settings), X, y)
    far, _ = fit_far(ShareBoostClassifier(4, **settings), X, y)
    for a, b in zip(near.path_, far.path_, strict=True):
        assert set(a.atoms) == set(b.atoms)
        assert a.loss == pytest.approx(b.loss, rel=1e-7)


def test_large_problems_ask_for_products_and_not_for_hessians(fit_far):
    X, y = table()
    model = ShareBoostClassifier(4, n_jobs=1)
    far, carrier = fit_far(model, X, y, travelling=8)
    assert_same_paths([fit_near(model, X, y), far])
    assert ["curve"] in carrier.asked
    assert_same_bits(far, fit_far(model, X, y, share=0.2, travelling=8)[0])


def test_other_searches_need_rows_that_can_be_gathered(fit_far):
    X, y = table()
    model = TotalQBoostClassifier(max_rounds=3, price=0.01, search="exact", n_jobs=1)
    with pytest.raises(ValueError, match="search='exact' needs all rows in one memory"):
        fit_far(model, X, y > 0, gathered=0)


@pytest.mark.parametrize("penalty", sorted(PENALTIES))
@pytest.mark.parametrize("alpha", [1e-5, 1e-3])
def test_a_round_takes_at_most_six_exchanges_in_the_mean(penalty, alpha, fit_far):
    X, y = random_problem(m=2000, d=100, k=5)
    model = ShareBoostClassifier(20, penalty=penalty, alpha=alpha, n_jobs=1)
    model, carrier = fit_far(model, X, y, cuts=(500, 1000, 1500))
    assert model.exchanges_ is carrier.exchanges
    assert model.exchanges_.count == len(carrier.asked) <= 6 * 20
    assert model.exchanges_.sent > 0
    assert model.exchanges_.received > 0


def test_near_rows_make_no_exchanges(fit_far):
    X, y = table()
    model, _ = fit_far(ShareBoostClassifier(2, n_jobs=1), X, y)
    assert model.exchanges_.count > 0
    assert not hasattr(model.fit(X, y), "exchanges_")


@pytest.mark.parametrize("n", [1, 2, FAN, FAN + 1, FAN * FAN + 3])
def test_a_tree_sum_has_the_bits_of_its_groups_in_order(n):
    parts = list(np.random.default_rng(n).standard_normal((n, 5)) * 10.0 ** np.arange(5))
    level = parts
    while len(level) > 1:
        level = [sum(group[1:], group[0]) for group in groups(level)]
    assert np.array_equal(tree_sum(parts), level[0])
    np.testing.assert_allclose(tree_sum(parts), np.sum(parts, axis=0))


def test_a_tree_sum_adds_what_shards_answer():
    one = (1.5, np.ones(2, dtype=np.float32), [np.zeros(1)], None, 3)
    value, array, [inner], nothing, count = tree_sum([one, one, one])
    assert (value, count, nothing) == (4.5, 9, None)
    assert array.dtype == np.float64
    assert array.tolist() == [3.0, 3.0]
    assert inner.tolist() == [0.0]
