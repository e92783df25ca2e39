"""What TotalQBoost has of the loop: costs, terms always or never in, held-out rows and folds."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from laconic import ShareBoostClassifier, TotalQBoostClassifier
from laconic.estimators.sizes import one_standard_error
from laconic.model.atoms import Column
from problems import saving_always

COSTS = [1.0, 5.0, 1.0, 2.0, 1.0]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 5))
    y = X[:, 0] + X[:, 1] - X[:, 3] + 0.7 * rng.normal(size=150) > 0
    return X, y.astype(int)


def columns(*args, **settings):
    given = {"pool": "columns", "loss": "logistic", "l1": 1e-3, "tol": 1e-9, "scale": None}
    return TotalQBoostClassifier(*args, **{**given, **settings})


def least(X, y, support, l1=1e-3):
    """Mean logistic loss + l1 term of some columns, an intercept beside them, by SciPy."""
    Z, signs = X[:, list(support)], 2.0 * y - 1.0
    n = len(support)

    def value(w):  # weights as differences of numbers at least 0, so that the l1 term is smooth
        margins = signs * (Z @ (w[:n] - w[n : 2 * n]) + w[-1])
        slope = -signs / (1.0 + np.exp(margins)) / len(y)
        down = Z.T @ slope
        return (
            np.logaddexp(0.0, -margins).mean() + l1 * w[:-1].sum(),
            np.concatenate([down + l1, -down + l1, [slope.sum()]]),
        )

    bounds = [(0, None)] * (2 * n) + [(None, None)]
    found = minimize(value, np.zeros(2 * n + 1), jac=True, bounds=bounds, method="L-BFGS-B",
                     options={"ftol": 1e-14, "gtol": 1e-10, "maxiter": 5000})  # fmt: skip
    return found.fun


def every_support(d=5):
    return [s for size in range(d + 1) for s in combinations(range(d), size)]


def read(model):
    return {atom.feature for atom in model.atoms_}


# -- costs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("price", [0.003, 0.01, 0.03])
def test_the_price_of_an_atom_is_the_price_times_its_cost(data, price):
    X, y = data
    model = columns(price=price, costs=COSTS).fit(X, y)
    paid = price * sum(COSTS[f] for f in read(model))
    assert model.objective_ == pytest.approx(model.path_[model.n_atoms_].objective + paid)
    values = [least(X, y, s) + price * sum(COSTS[f] for f in s) for s in every_support()]
    assert model.objective_ == pytest.approx(min(values), rel=1e-6)
    assert model.bound_ <= min(values) + 1e-9


@pytest.mark.parametrize("max_cost", [1.0, 3.0, 6.5, 8.0])
def test_a_cap_on_the_cost_is_kept_and_used(data, max_cost):
    X, y = data
    model = columns(price=0.0, costs=COSTS, max_cost=max_cost).fit(X, y)
    cost = [sum(COSTS[f] for f in s) for s in every_support()]
    allowed = [least(X, y, s) for s, c in zip(every_support(), cost, strict=True) if c <= max_cost]
    assert sum(COSTS[f] for f in read(model)) <= max_cost
    assert all(entry.cost <= max_cost for entry in model.path_)
    assert model.objective_ == pytest.approx(min(allowed), rel=1e-2)


def test_a_cap_without_costs_counts_atoms(data):
    X, y = data
    assert columns(price=0.0, max_cost=2).fit(X, y).n_atoms_ == 2
    assert columns(price=0.0, max_cost=2, search=None).fit(X, y).n_atoms_ == 2


# -- terms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "log"])
def test_included_atoms_stay_for_no_price_and_excluded_ones_never_come(data, loss):
    X, y = data
    given = {"loss": loss, "price": 0.02, "include": [2], "exclude": [0]}
    model = columns(**given).fit(X, y)
    assert all(Column(2) in entry.atoms for entry in model.path_)
    assert not any(Column(0) in entry.atoms for entry in model.path_)
    others = model.n_atoms_ - 1
    entry = model.path_[model.n_atoms_]
    assert model.objective_ == pytest.approx(entry.objective + 0.02 * others)
    if loss == "logistic":
        free = [s for s in every_support() if 2 in s and 0 not in s]
        best = min(least(X, y, s) + 0.02 * (len(s) - 1) for s in free)
        assert model.objective_ == pytest.approx(best, rel=1e-6)
    assert model.feature_importances_[2] > 0
    with pytest.raises(ValueError, match="include and exclude both name"):
        columns(include=[1], exclude=[1]).fit(X, y)


def test_included_stumps_stay(data):
    X, y = data
    plain = TotalQBoostClassifier(10, price=0.02).fit(X, y)
    kept = plain.atoms_[-1]
    model = TotalQBoostClassifier(10, price=0.2, include=[kept], hot_start=4).fit(X, y)
    assert kept in model.atoms_
    with pytest.raises(ValueError, match='search="local"'):
        TotalQBoostClassifier(10, search="exact", include=[kept]).fit(X, y)


def test_groups_are_in_or_out_together(data):
    X, y = data
    model = columns(price=0.01, groups=["a", "a", "b", "b", "c"]).fit(X, y)
    assert {atom.features for atom in model.atoms_} <= {(0, 1), (2, 3), (4,)}
    assert model.n_atoms_ >= 2


@pytest.mark.parametrize("name", ["include", "exclude", "costs", "max_cost"])
def test_a_classifier_as_pool_has_no_atoms_to_name(data, name):
    given = {name: 3.0 if name == "max_cost" else [0]}
    with pytest.raises(ValueError, match=f"{name} needs atoms with numbers"):
        TotalQBoostClassifier(pool=DecisionTreeClassifier(max_depth=1), **given).fit(*data)


def test_a_classifier_as_pool_is_fitted_once_a_round(data):
    class Counted(DecisionTreeClassifier):
        fits = 0

        def fit(self, X, y, sample_weight=None):
            Counted.fits += 1
            return super().fit(X, y, sample_weight)

    model = TotalQBoostClassifier(6, price=0.0, pool=Counted(max_depth=1)).fit(*data)
    assert Counted.fits == len(model.generated_) == 6


# -- held-out rows and folds -----------------------------------------------------------------------


def test_early_stopping_uses_the_lowest_held_out_loss(data):
    X, y = data
    model = TotalQBoostClassifier(
        60, price=0.0, early_stopping=True, n_iter_no_change=3, random_state=0
    ).fit(X, y)
    assert len(model.rounds_) < 61
    assert model.status_ == "held-out loss no longer falls"
    assert len(model.validation_losses_) == len(model.path_)
    assert model.n_atoms_ == model.path_.sizes[int(np.argmin(model.validation_losses_))]


@pytest.mark.parametrize("hot_start", [0, 5])
@pytest.mark.parametrize("rounds", [3, 8])
def test_a_resumed_fit_stops_where_the_whole_one_does(data, tmp_path, hot_start, rounds):
    X, y = data
    settings = {"hot_start": hot_start, "price": 1e-3, "early_stopping": True, "random_state": 0}
    settings |= {"n_iter_no_change": 3}
    whole = TotalQBoostClassifier(40, **settings).fit(X, y)
    stop = [lambda state: len(state.own.generated) >= rounds]
    path = tmp_path / "state"
    TotalQBoostClassifier(40, checkpoint=path, callbacks=stop, **settings).fit(X, y)
    resumed = TotalQBoostClassifier(40, checkpoint=path, **settings).fit(X, y)
    assert resumed.atoms_ == whole.atoms_
    np.testing.assert_array_equal(resumed.atom_coef_, whole.atom_coef_)
    np.testing.assert_array_equal(resumed.validation_losses_, whole.validation_losses_)
    # A fit that asks for less patience takes up the same file, and ends sooner.
    settings["n_iter_no_change"] = 1
    short = TotalQBoostClassifier(40, checkpoint=path, **settings).fit(X, y)
    alone = TotalQBoostClassifier(40, **settings).fit(X, y)
    assert short.generated_ == alone.generated_
    np.testing.assert_array_equal(short.atom_coef_, alone.atom_coef_)


def test_folds_choose_the_price(data):
    X, y = data
    prices = [0.3, 0.003, 0.03]
    cv = StratifiedKFold(3)
    model = TotalQBoostClassifier(15, price=prices, cv=cv).fit(X, y)
    scores = np.empty((3, 3))
    for row, (fit, test) in zip(scores, cv.split(X, y), strict=True):
        for at, price in enumerate(sorted(prices, reverse=True)):
            fold = TotalQBoostClassifier(15, price=price).fit(X[fit], y[fit])
            row[at] = fold.score(X[test], y[test])
    np.testing.assert_allclose(model.cv_scores_, scores)
    assert model.price_ == sorted(prices, reverse=True)[one_standard_error(scores)]
    alone = TotalQBoostClassifier(15, price=model.price_).fit(X, y)
    np.testing.assert_array_equal(model.atom_coef_, alone.atom_coef_)
    assert model.objective_ == alone.objective_
    assert model.price == prices  # settings stay as they were given
    assert TotalQBoostClassifier(15, price=0.003).fit(X, y).price_ == 0.003


def test_folds_choose_the_size_at_one_price(data):
    X, y = data
    model = TotalQBoostClassifier(15, price=1e-3, cv=3, scoring="roc_auc").fit(X, y)
    assert model.cv_scores_.shape[0] == 3
    most = model.path_.sizes[0] + one_standard_error(model.cv_scores_)
    assert model.n_atoms_ == max(size for size in model.path_.sizes if size <= most)


def test_folds_keep_groups_of_rows_together(data):
    X, y = data
    groups = np.arange(150) // 10
    model = TotalQBoostClassifier(8, price=[0.1, 0.01], cv=GroupKFold(3)).fit(X, y, groups=groups)
    assert model.cv_scores_.shape == (3, 2)
    with pytest.raises(ValueError, match="groups is for cross-validation"):
        TotalQBoostClassifier(8).fit(X, y, groups=groups)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"price": [0.1, 0.2]}, "only cross-validation chooses from several prices"),
        ({"price": [], "cv": 3}, "price is an empty list"),
        ({"cv": 3, "early_stopping": True}, "both choose the size"),
        ({"scoring": "roc_auc"}, "scoring is for cross-validation"),
        ({"search": "exact", "costs": COSTS}, "does not support costs"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(data, settings, message):
    with pytest.raises(ValueError, match=message):
        TotalQBoostClassifier(5, **settings).fit(*data)


def test_both_boosters_take_the_same_settings_of_the_loop():
    share, total = ShareBoostClassifier().get_params(), TotalQBoostClassifier().get_params()
    loop = {"costs", "max_cost", "include", "exclude", "groups", "early_stopping", "cv", "scoring"}
    loop |= {"validation_fraction", "n_iter_no_change", "random_state", "callbacks", "checkpoint"}
    assert loop <= share.keys()
    assert all(total[name] == share[name] for name in loop)


@pytest.mark.parametrize("hot_start", [0, 4, 40])
def test_every_round_has_its_steepest_gradient(data, hot_start):
    """What is proven of the whole pool goes by all rounds, the last one of a hot start included."""
    model = TotalQBoostClassifier(12, price=1e-3, hot_start=hot_start).fit(*data)
    assert all(np.isfinite(entry.steepest) for entry in model.rounds_)


# -- paths of prices -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"early_stopping": True, "random_state": 0, "n_iter_no_change": 3},
        {"early_stopping": True, "random_state": 0, "n_iter_no_change": 3, "hot_start": 6},
        {"pool": "columns", "loss": "logistic", "costs": COSTS, "max_cost": 4.0, "hot_start": 4},
    ],
    ids=["early", "early hot", "capped"],
)
def test_models_of_a_path_are_those_fitted_alone(data, settings):
    X, y = data
    prices = [0.02, 0.005, 0.001]
    path = TotalQBoostClassifier(12, **settings).fit_path(X, y, price=prices)
    for model, price in zip(path, prices, strict=True):
        alone = TotalQBoostClassifier(12, price=price, **settings).fit(X, y)
        assert model.generated_ == alone.generated_
        np.testing.assert_array_equal(model.atom_coef_, alone.atom_coef_)


def test_a_path_of_prices_is_not_for_folds(data):
    with pytest.raises(ValueError, match="call fit with price="):
        TotalQBoostClassifier(5, cv=3).fit_path(*data, price=[0.1, 0.01])


def test_included_atoms_may_cost_all_there_is(data):
    """Costs that add up to the cap but for rounding; nothing else is taken for nothing."""
    X, y = data
    costs = [0.1, 0.2, 0.1, 0.1, 1.0]
    model = columns(costs=costs, max_cost=0.3, include=[0, 1], price=0.0).fit(X, y)
    assert read(model) == {0, 1}
    assert model.generated_ == []


def test_the_bound_knows_what_atoms_share(data):
    from sklearn.datasets import load_digits

    from laconic.pools import Patches

    X, y = load_digits(return_X_y=True)
    X, y = X[:200], y[:200] % 2
    pool = Patches((8, 8), 4, 5, 2, 1.5)
    first = TotalQBoostClassifier(1, pool=pool, loss="logistic", price=0.0).fit(X, y).atoms_
    settings = {"pool": pool, "loss": "logistic", "costs": "operations", "include": first}
    dear, cheap = (
        TotalQBoostClassifier(8, price=price, **settings).fit(X, y) for price in (1.5e-3, 1e-6)
    )
    least = min(
        entry.objective + 1.5e-3 * (entry.cost - cheap.rounds_[0].cost) for entry in cheap.path_
    )
    assert dear.bound_ <= least


@pytest.mark.parametrize("price", [0.01, [0.1, 0.01]])
def test_folds_of_a_classifier_as_pool(data, price):
    tree = DecisionTreeClassifier(max_depth=1, random_state=0)
    model = TotalQBoostClassifier(6, pool=tree, price=price, cv=3).fit(*data)
    assert model.score(*data) > 0.7


def test_a_cap_that_nothing_fits_into_is_told(data):
    with pytest.warns(UserWarning, match="Raise max_cost"):
        columns(max_cost=0.5).fit(*data)


# -- resumed fits ----------------------------------------------------------------------------------


def resumed(X, y, path, rounds, **settings):
    """A fit that is stopped after some rounds, and resumed; and the same without a stop."""
    stop = [lambda state: len(state.own.generated) >= rounds]
    first = TotalQBoostClassifier(6, checkpoint=path, callbacks=stop, **settings)
    saving_always(first).fit(X, y)
    again = TotalQBoostClassifier(6, checkpoint=path, **settings).fit(X, y)
    return again, TotalQBoostClassifier(6, **settings).fit(X, y)


@pytest.mark.parametrize(
    "settings",
    [
        {"price": 0.003},
        {"price": 0.003, "hot_start": 3},
        {"price": 0.0, "tol": 0.0, "pool": "columns", "include": [0, 1]},
        {"price": 0.0, "tol": 0.0, "pool": "columns", "include": [0, 1], "search": None},
        {"price": 1e-3, "pool": "columns", "costs": COSTS, "max_cost": 6.0, "hot_start": 2},
        {"price": [0.05, 1e-3], "cv": 3},
    ],
    ids=["plain", "hot", "include", "include all", "costs", "folds"],
)
@pytest.mark.parametrize("rounds", [1, 3, 5])
def test_a_resumed_fit_is_the_whole_one_to_the_bit(data, tmp_path, settings, rounds):
    again, whole = resumed(*data, tmp_path / "state", rounds, **settings)
    assert again.generated_ == whole.generated_
    assert again.atoms_ == whole.atoms_
    np.testing.assert_array_equal(again.atom_coef_, whole.atom_coef_)
    np.testing.assert_array_equal(again.intercept_, whole.intercept_)
    assert [entry.size for entry in again.rounds_] == [entry.size for entry in whole.rounds_]
    assert again.dual_value_ == whole.dual_value_


def few(model, X, y):
    return -model.n_atoms_


def many(model, X, y):
    return model.n_atoms_


def test_rounds_at_another_price_are_not_taken_up(data, tmp_path):
    settings = {"price": [0.3, 1e-3], "cv": 3, "checkpoint": tmp_path / "state"}
    assert TotalQBoostClassifier(6, scoring=many, **settings).fit(*data).price_ == 1e-3
    with pytest.raises(ValueError, match="other data or settings"):
        TotalQBoostClassifier(6, scoring=few, **settings).fit(*data)


def test_a_search_after_a_hot_start_knows_costs():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 4))
    y = (X.sum(axis=1) + rng.standard_normal(60) > 0).astype(int)
    settings = {"costs": [1.0, 2.0, 3.0, 4.0], "max_cost": 6.0, "price": 0.0, "l1": 0.01}
    hot, cold = (columns(4, hot_start=n, **settings).fit(X, y) for n in (4, 0))
    assert hot.objective_ == pytest.approx(cold.objective_, rel=1e-6)


def test_included_atoms_do_not_count_among_the_rounds(data):
    X, y = data
    model = columns(3, include=[0, 1], price=0.0).fit(X, y)
    assert model.n_atoms_ == 5
    capped = columns(4, include=[0, 1], price=0.0, max_atoms=3, search=None).fit(X, y)
    assert max(entry.size for entry in capped.rounds_) == 3
    assert columns(0, include=[0]).fit(X, y).atoms_ == [Column(0)]


@pytest.mark.parametrize("price", ["dear", [[0.1], [0.2]], [None], -1.0, [0.1, -1.0], np.nan, None])
def test_prices_are_numbers(data, price):
    with pytest.raises(ValueError, match="price must be a finite number of at least 0"):
        TotalQBoostClassifier(3, price=price, cv=3).fit(*data)


def test_prices_may_come_as_any_list(data):
    import pandas as pd

    given = [[0.1, 0.01], (0.1, 0.01), np.array([0.1, 0.01]), pd.Series([0.1, 0.01])]
    found = {TotalQBoostClassifier(4, price=p, cv=3).fit(*data).price_ for p in given}
    assert len(found) == 1
    assert TotalQBoostClassifier(4, price=np.array(0.01)).fit(*data).price_ == 0.01
