"""Averaged paths: every model is the mean of models on rows of random weights."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from laconic import CompactClassifier, ShareBoostClassifier
from laconic.compact.averages import AveragedPath, can_be_averaged, cost_of
from laconic.compact.frontier import tried_models
from laconic.compact.settings import check_averages, find_settings
from laconic.compact.trials import FLOAT, Fold, Form, fold_table
from laconic.pools import Columns, Mixed, Products, Stumps


def digits(n=400):
    X, y = load_digits(return_X_y=True)
    return X[:n].astype(np.uint8), y[:n]


def test_models_are_means_of_paths_that_are_fitted_alone():
    X, y = digits()
    weight = np.ones(len(y))
    averaged = AveragedPath(ShareBoostClassifier(5, pool="stumps"), 3).fit(X, y, weight)
    scores = []
    for number in range(3):
        drawn = np.random.default_rng(number).exponential(size=len(y))
        alone = ShareBoostClassifier(5, pool="stumps").fit(X, y, sample_weight=drawn)
        scores.append(alone.at(4).decision_function(X))
    model = averaged.at(4)
    np.testing.assert_allclose(model.decision_function(X), np.mean(scores, axis=0), atol=1e-12)
    cost, price = cost_of(model)
    assert cost.atoms == model.n_atoms_ == price <= 12


def test_every_size_has_the_score_of_its_own_mean():
    """Means of two sizes may have the same atoms with other weights."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(240, 8))
    y = (X @ rng.normal(size=8) + rng.normal(size=240) > 0).astype(int)
    weight = np.ones(240)
    fold = Fold(0, np.arange(160), np.arange(160, 240))
    sizes = list(range(1, 9))
    path = AveragedPath(ShareBoostClassifier(8, pool="columns", alpha=1e-3), 6)
    form = Form("c99", "float", (FLOAT,))
    (table,) = fold_table(path, (X, y, weight), fold, sizes, form, None)
    fitted = path.fit(X[:160], y[:160], weight[:160])
    for size, line in zip(sizes, table, strict=True):
        model = fitted.at(size)
        right = np.mean(model.predict(X[160:]) == y[160:])
        assert line[:3].tolist() == [size, model.n_atoms_, pytest.approx(right)]
    tried = tried_models(0, 160, 0, [FLOAT], sizes, [table[None]])
    assert [model.size for model in tried] == sizes
    assert len({model.atoms for model in tried}) < len(sizes)  # as the comment says


def test_caps_hold_for_the_mean():
    X, y = digits()
    search = CompactClassifier(
        4000, pools=["stumps"], averages=4, max_atoms=10, max_features=9, max_operations=300,
        cv=2, random_state=0,
    ).fit(X, y)  # fmt: skip
    for model in search.frontier():
        cost = model.predictor_.cost()
        assert model.bytes_ <= 4000
        assert cost.features <= 9
        assert cost.operations <= 300


@pytest.mark.long
def test_a_search_tries_single_paths_and_means():
    X, y = digits()
    given = {"pools": ["stumps", "bumps"], "max_atoms": 8, "cv": 2, "random_state": 0}
    given["tune"] = False
    search = CompactClassifier(4000, averages=(1, 3), **given).fit(X, y)
    assert {*search.trials_["pool"]} == {"stumps", "stumps, mean of 3", "bumps"}
    again = CompactClassifier(4000, averages=(3, 1), n_jobs=2, **given).fit(X, y)
    np.testing.assert_array_equal(search.predict(X), again.predict(X))
    assert search.pareto_.equals(again.pareto_)


def test_a_search_of_means_resumes_from_its_checkpoint(tmp_path):
    X, y = digits()
    file = tmp_path / "search.state"
    given = {"pools": ["stumps"], "max_atoms": 6, "cv": 2, "random_state": 0, "averages": 2}
    search = CompactClassifier(4000, checkpoint=file, **given).fit(X, y)
    again = CompactClassifier(4000, checkpoint=file, **given).fit(X, y)
    assert search.pareto_.equals(again.pareto_)
    assert search.why_ == again.why_


@pytest.mark.parametrize("wrong", [0, 101, (), "8", (1, 2.5), None, True, (1, False)])
def test_wrong_averages(wrong):
    with pytest.raises(ValueError, match="averages must be whole numbers"):
        check_averages(wrong, None)


def test_means_have_no_costs():
    with pytest.raises(ValueError, match="cannot have costs"):
        check_averages((1, 4), [1.0, 2.0])
    assert check_averages((4, 1), None) == [1, 4]
    assert check_averages(np.int64(8), None) == [8]
    assert check_averages(np.array([8, 1]), None) == [1, 8]


def test_pools_that_cannot_be_averaged():
    X = np.random.default_rng(0).normal(size=(50, 3))
    with pytest.raises(ValueError, match="needs a pool of columns"):
        find_settings(["bumps"], [1e-3], X, [], None, [2])
    assert can_be_averaged(Mixed((Stumps(), Products())))
    assert not can_be_averaged(Columns(groups=[0, 0, 1]))
    titles = [s.title for s in find_settings(["bumps", "stumps"], [1e-3], X, [], None, [1, 2])]
    assert titles == ["bumps", "stumps", "stumps, mean of 2"]
