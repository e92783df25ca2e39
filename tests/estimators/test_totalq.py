"""`TotalQBoostClassifier`: algorithm 1 and its theorems, one statement at a time."""

import io
import re
import warnings
from functools import partial
from itertools import combinations

import cvxpy
import numpy as np
import pytest
import sklearn
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from laconic import Predictor, TotalQBoostClassifier
from laconic.losses import BINARY_LOSSES, ExponentialLoss, LogLoss
from laconic.pools import Columns, Stumps
from problems import random_problem

LOSS = {
    "exponential": lambda g: np.exp(-g),
    "logistic": lambda g: np.logaddexp(0.0, -g),
    "squared_hinge": lambda g: np.maximum(1.0 - g, 0.0) ** 2,
}
CONVEX = {
    "exponential": lambda g: cvxpy.sum(cvxpy.exp(-g)),
    "logistic": lambda g: cvxpy.sum(cvxpy.logistic(-g)),
    "squared_hinge": lambda g: cvxpy.sum(cvxpy.square(cvxpy.pos(1 - g))),
}


def known_faults_of_checks(estimator):
    """scikit-learn 1.6 gave estimators of two classes other labels with weights than with rows."""
    mended = parse_version(sklearn.__version__) >= parse_version("1.7")
    if mended or estimator.loss in ("auto", "log"):
        return {}
    check = "check_sample_weight_equivalence_on_{}_data"
    return {check.format(kind): "labels differ in scikit-learn 1.6" for kind in ("dense", "sparse")}


@parametrize_with_checks(
    [
        TotalQBoostClassifier(10, l1=1e-4),  # many classes too, which a little more l1 settles
        TotalQBoostClassifier(10, loss="exponential"),
        TotalQBoostClassifier(10, loss="logistic", hot_start=4),
        TotalQBoostClassifier(10, price=0.0, search=None, loss="squared_hinge"),
        TotalQBoostClassifier(6, loss="log", pool="columns", max_atoms=3, l1=1e-3),
    ],
    expected_failed_checks=known_faults_of_checks,
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


# -- small problems --------------------------------------------------------------------------------

# The paper's problem has no intercept.
Paper = partial(TotalQBoostClassifier, fit_intercept=False)


def noisy(seed=0, m=90, d=4, levels=None):
    """Two classes that stumps tell apart in part; coarse features have few stumps."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.8 * rng.normal(size=m) > 0
    return (X if levels is None else np.round(X * levels) / levels), y.astype(int)


def signs(X):
    """Every stump as a column of -1 and 1, naively."""
    columns = []
    for feature in X.T:
        values = np.unique(feature)
        columns += [np.where(feature <= v, 1.0, -1.0) for v in values[:-1]]
    return np.array(columns).T


def convex_optimum(H, y, l1, loss="exponential"):
    """Optimum of (1) over all columns: its value, margins and dual weights."""
    w = cvxpy.Variable(H.shape[1])
    margins = cvxpy.multiply(2.0 * y - 1.0, H @ w)
    value = CONVEX[loss](margins) / len(y) + l1 * cvxpy.norm1(w)
    problem = cvxpy.Problem(cvxpy.Minimize(value))
    problem.solve(solver=cvxpy.CLARABEL, tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    return problem.value, margins.value


def risk(model, X, y):
    """Mean loss and l1 term from the definitions, by the model's own scores."""
    f = model.decision_function(X)
    loss = LOSS[model.loss_](np.where(y == model.classes_[1], f, -f)).mean()
    return loss + model.l1 * 0.5 * np.abs(model.atom_coef_).sum()


# -- column generation -----------------------------------------------------------------------------


@pytest.mark.parametrize("loss", sorted(LOSS))
def test_without_a_price_it_is_l1_regularised_column_generation(loss):
    X, y = noisy(levels=2)
    H, l1 = signs(X), 0.02
    best, margins = convex_optimum(H, y, l1, loss)
    model = Paper(500, price=0.0, l1=l1, loss=loss, tol=1e-9).fit(X, y)
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    assert model.objective_ == pytest.approx(risk(model, X, y), rel=1e-9)
    # The dual weights of eq. (5) are those of the optimum, and satisfy (4) for every stump.
    sign = 2.0 * y - 1.0
    at = BINARY_LOSSES[loss].at
    u, peer = at(sign * model.decision_function(X))[1], at(margins)[1]
    np.testing.assert_allclose(u, peer, atol=2e-3)
    assert np.abs((u * sign / len(y)) @ H).max() <= l1 + 2e-9
    # Theorem 1's dual, with strong duality of the convex problem: no gap is left.
    assert model.dual_value_ <= best * (1 + 1e-8)
    assert model.duality_gap_ == pytest.approx(0.0, abs=1e-6)
    assert "dual constraint" in model.status_


def test_each_round_takes_the_most_violated_constraint_outside():
    X, y = noisy(1, levels=3)
    model = Paper(12, price=0.01).fit(X, y)
    H, sign, taken = signs(X), 2.0 * y - 1.0, []
    for entry, atom in zip(model.rounds_, model.generated_, strict=False):
        f = entry.scores(X)[:, 0]
        pull = np.abs((np.exp(-sign * f) * sign / len(y)) @ H)
        column = np.where(X[:, atom.feature] <= atom.value, 1.0, -1.0)
        same = np.flatnonzero(np.abs(column @ H) == len(y))
        outside = np.delete(pull, np.flatnonzero(np.abs(np.array(taken) @ H).max(axis=0) == len(y))
                            if taken else [])  # fmt: skip
        assert pull[same[0]] == pytest.approx(outside.max(), rel=1e-9)
        taken.append(column)


def test_stops_only_by_the_constraints_of_atoms_outside():
    X, y = noisy(2, levels=1)
    model = Paper(500, price=0.05).fit(X, y)
    # So strong a price leaves constraints of generated atoms violated (section 3.3), yet it ends.
    assert model.n_atoms_ < len(model.generated_)
    H, sign = signs(X), 2.0 * y - 1.0
    u = np.exp(-sign * model.decision_function(X)) / len(y)
    taken = np.array([np.where(X[:, a.feature] <= a.value, 1.0, -1.0) for a in model.generated_])
    inside = np.abs(taken @ H).max(axis=0) == len(y)
    pull = np.abs((u * sign) @ H)
    assert pull[inside].max() > model.l1 + model.tol
    assert not np.any(pull[~inside] > model.l1 + model.tol)


@pytest.mark.parametrize("loss", sorted(LOSS))
@pytest.mark.parametrize("intercept", [False, True])
def test_three_solvers_agree_on_the_survivors(loss, intercept):
    X, y = noisy(3)
    settings = {"price": 0.01, "l1": 0.003, "loss": loss, "fit_intercept": intercept}
    model = Paper(15, **settings).fit(X, y)
    B = 2.0 * model.transform(X) - 1.0
    sign, n = 2.0 * y - 1.0, B.shape[1]

    def value(v):
        f = B @ (v[:n] - v[n : 2 * n]) + (v[-1] if intercept else 0.0)
        u = BINARY_LOSSES[loss].at(sign * f)[1] * sign / len(y)
        pull = B.T @ u
        slope = np.concatenate([0.003 - pull, 0.003 + pull, [-u.sum()] * intercept])
        return LOSS[loss](sign * f).mean() + 0.003 * v[: 2 * n].sum(), slope

    bounds = [(0, None)] * (2 * n) + [(None, None)] * intercept
    options = {"ftol": 1e-16, "gtol": 1e-12, "maxiter": 10_000, "maxfun": 10**6}
    peer = minimize(
        value, np.zeros(len(bounds)), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    entry = model.path_[model.n_atoms_]
    assert entry.objective == pytest.approx(peer.fun, abs=1e-8)
    assert entry.certificate.gap < 1e-6
    if loss == "exponential" and not intercept:
        peer = coordinate_descent(B, sign, 0.003)
        assert entry.objective == pytest.approx(peer, abs=1e-8)


def coordinate_descent(B, sign, l1):
    """One weight at a time: on ±1 columns the exponential loss has a closed form."""
    w = np.zeros(B.shape[1])
    for _ in range(1000):
        for j in range(B.shape[1]):
            s = sign * B[:, j]
            rest = np.exp(-(sign * (B @ w) - s * w[j])) / len(s)
            P, N = rest[s > 0].sum(), rest[s < 0].sum()
            c = l1 if P > N else -l1
            step = np.log(2 * P / (c + np.sqrt(c * c + 4 * P * N)))
            w[j] = step if abs(P - N) > l1 else 0.0
    return np.exp(-sign * (B @ w)).mean() + l1 * np.abs(w).sum()


def multinomial_optimum(H, y, l1, loss, intercept):
    """Optimum of loss + l1 ‖W‖₁ over all columns, with a score for every class."""
    k = int(y.max()) + 1
    W, b = cvxpy.Variable((H.shape[1], k)), cvxpy.Variable((1, k))
    F = H @ W + (np.ones((len(y), 1)) @ b if intercept else 0.0)
    own = np.eye(k)[y]
    shift = (1.0 - own) * (loss == "margin")
    value = cvxpy.sum(cvxpy.log_sum_exp(F + shift, axis=1)) - cvxpy.sum(cvxpy.multiply(own, F))
    problem = cvxpy.Problem(cvxpy.Minimize(value / len(y) + l1 * cvxpy.sum(cvxpy.abs(W))))
    problem.solve(solver=cvxpy.CLARABEL, tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    return problem.value


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["log", "margin"])
def test_with_many_classes_every_entry_has_its_constraint(loss, intercept):
    """The stop (8) is where max |g_jc| ≤ l1, and there the dual value is the optimum."""
    X, y = random_problem(seed=4, m=60, d=3)
    X, l1 = np.round(2 * X) / 2, 0.01
    best = multinomial_optimum(signs(X), y, l1, loss, intercept)
    settings = {"price": 0.0, "l1": l1, "loss": loss, "fit_intercept": intercept, "tol": 1e-7}
    model = TotalQBoostClassifier(500, **settings).fit(X, y)
    assert "dual constraint" in model.status_
    assert model.rounds_[-1].steepest == pytest.approx(l1, rel=1e-4)
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    assert model.dual_value_ == pytest.approx(best, rel=1e-5)
    for rounds in range(0, len(model.generated_), 3):
        early = TotalQBoostClassifier(rounds, **{**settings, "price": 0.004})
        early.fit(X, y)
        assert early.dual_value_ <= best * (1 + 1e-7)
        assert early.duality_gap_ >= 0.004 * early.n_atoms_ - 1e-7
        assert early.bound_ <= early.objective_


def test_separable_data_ends_because_of_l1():
    X = np.linspace(-1, 1, 40)[:, None]
    model = Paper(l1=1e-4, price=0.0, tol=1e-6).fit(X, X[:, 0] > 0.1)
    assert model.score(X, X[:, 0] > 0.1) == 1.0
    assert np.isfinite(model.atom_coef_).all()
    assert "dual constraint" in model.status_


# -- the theorems ----------------------------------------------------------------------------------


def best_of_all(H, y, price, l1):
    """Optimum of (3) by trying every support of a few columns: value, loss + l1 part, size."""
    found = []
    sign = 2.0 * y - 1.0

    def value(v, B):
        w = v[: B.shape[1]] - v[B.shape[1] :]
        u = np.exp(-sign * (B @ w)) / len(y)
        pull = B.T @ (u * sign)
        return u.sum() + l1 * v.sum(), np.concatenate([l1 - pull, l1 + pull])

    for size in range(H.shape[1] + 1):
        for support in combinations(range(H.shape[1]), size):
            B = H[:, support]
            options = {"ftol": 1e-15, "gtol": 1e-10}
            start, bounds = np.zeros(2 * size), [(0, None)] * (2 * size)
            peer = minimize(value, start, args=(B,), jac=True, method="L-BFGS-B", bounds=bounds,
                            options=options).fun if size else 1.0  # fmt: skip
            found.append((peer + price * size, peer, size))
    return min(found)


@pytest.mark.filterwarnings("ignore:no atom is worth")
@pytest.mark.parametrize("price", [1e-5, 0.01, 0.04])
def test_duality_gap_is_at_least_the_price_of_the_atoms(price):
    """Theorems 1 and 2: the dual never hears of the price, so the gap is at least λ card(w)."""
    X, y = noisy(5, m=60, d=3, levels=0.35)
    H, l1 = signs(X), 0.01
    dual, _ = convex_optimum(H, y, l1)  # strong duality: also the optimum of the dual (7)
    best, part, size = best_of_all(H, y, price, l1)
    assert best - dual >= price * size - 1e-7
    if part <= dual + 1e-7:  # eq. (9): both problems have the same minimiser
        assert best - dual == pytest.approx(price * size, abs=1e-6)
    assert price > 1e-4 or part <= dual + 1e-7
    model = Paper(50, price=price, l1=l1, tol=1e-7, search="exact").fit(X, y)
    assert model.dual_value_ <= dual + 1e-8
    assert model.duality_gap_ >= price * model.n_atoms_ - 1e-9
    assert model.bound_ <= best + 1e-8
    assert model.objective_ >= best - 1e-8
    if len(model.generated_) == H.shape[1]:
        assert model.objective_ == pytest.approx(best, rel=1e-6)
        assert model.search_bound_ == pytest.approx(best, rel=1e-6)


def test_exact_search_proves_its_bound():
    X, y = noisy(6, m=70)
    model = Paper(8, price=0.02, search="exact").fit(X, y)
    assert model.search_bound_ <= model.objective_ + 1e-12
    assert model.search_bound_ == pytest.approx(model.objective_, rel=1e-6)
    assert "limits" not in model.status_
    model.set_params(search_options={"max_nodes": 1}, price=0.004).fit(X, y)
    assert 0 <= model.search_bound_ < model.objective_
    assert "the exact search reached its limits" in model.status_
    local = Paper(8, price=0.02).fit(X, y)
    assert local.search_bound_ == -np.inf


def test_exact_search_says_how_far_it_is(capsys):
    X, y = noisy(6, m=70)
    quiet = Paper(8, price=0.02, search="exact").fit(X, y)
    assert capsys.readouterr().out == ""
    shown = Paper(8, price=0.02, search="exact", verbose=1).fit(X, y)
    assert re.search(r"searching .* nodes +gap \S+ %", capsys.readouterr().out)
    assert shown.objective_ == quiet.objective_
    Paper(8, price=0.02, verbose=1).fit(X, y)
    assert "searching" not in capsys.readouterr().out


# -- the subset ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_never_worse_than_early_stopping_at_the_same_size(seed):
    X, y = noisy(seed, m=150, d=5)
    settings = {"l1": 1e-6, "tol": 0.0}
    early = Paper(20, price=0.0, **settings).fit(X, y)
    prefix = {entry.size: entry.objective for entry in early.rounds_}
    for cap in (1, 5, 12):
        model = Paper(20, hot_start=20, max_atoms=cap, price=0.0, **settings)
        model.fit(X, y)
        assert model.generated_ == early.generated_
        assert model.n_atoms_ == cap
        assert model.objective_ <= prefix[cap] * (1 + 1e-8)
    prices = np.geomspace(1e-3, 0.03, 5)
    selected = Paper(20, hot_start=20, **settings).fit_path(X, y, price=prices)
    grown = Paper(30, hot_start=20, **settings).fit_path(X, y, price=prices)
    values = {model.n_atoms_: model.path_[model.n_atoms_].objective for model in selected}
    assert all(value <= prefix[size] * (1 + 1e-8) for size, value in values.items())
    for model, fewer in zip(grown, selected, strict=True):
        assert model.objective_ <= fewer.objective_ * (1 + 1e-9)
        if model.n_atoms_ in values:  # D is no worse than E at the same size
            value = model.path_[model.n_atoms_].objective
            assert value <= values[model.n_atoms_] * (1 + 1e-7)


def test_a_path_of_prices_is_what_single_fits_find(assert_identical):
    X, y = noisy(4, m=120)
    prices = [0.003, 0.02]
    path = Paper(15, hot_start=6).fit_path(X, y, price=prices)
    for model, price in zip(path, prices, strict=True):
        assert_identical(model, Paper(15, hot_start=6, price=price).fit(X, y))
    again = Paper(15).fit_path(X, y, price=prices)
    assert_identical(again[1], Paper(15, price=0.02).fit(X, y))


def test_bad_settings_are_named():
    X, y = noisy()
    for settings, said in (
        ({"search": "foo"}, "search must be one of None, 'local'"),
        ({"search_options": {"restart": 1}}, "'local' has no option 'restart'.* restarts"),
        ({"search_options": {"max_nodes": 1}}, "'local' has no option 'max_nodes'"),
        ({"search": "exact", "search_options": {"max_nodes": -1}}, "max_nodes must be"),
        ({"search": None, "search_options": {"sweeps": 1}}, "search_options must be empty"),
    ):
        with pytest.raises(ValueError, match=said):
            Paper(5, **settings).fit(X, y)
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="pool"):
        Paper(pool="foo").fit(X, y)
    with pytest.raises(TypeError, match=r"price must be a sequence, such as \[0.1\]"):
        Paper(5).fit_path(X, y, price=0.1)
    with pytest.raises(ValueError, match="not both"):
        Paper(5).fit_path(X, y, price=[0.1], l1=[0.1])


def test_a_path_of_l1_finds_every_optimum():
    X, y = noisy(levels=2)
    H = signs(X)
    values = [0.02, 0.1, 0.005]
    path = Paper(400, price=0.0, tol=1e-8).fit_path(X, y, l1=values)
    assert [model.l1 for model in path] == values
    for model in path:
        best, _ = convex_optimum(H, y, model.l1)
        assert model.objective_ == pytest.approx(best, rel=1e-6)


def test_cap_is_exact_and_more_atoms_are_never_worse():
    X, y = noisy(7, m=200)
    objectives = []
    for cap in (0, 1, 3, 6):
        model = Paper(25, max_atoms=cap, price=0.0).fit(X, y)
        assert model.n_atoms_ == cap
        objectives.append(model.objective_)
    assert objectives == sorted(objectives, reverse=True)


def test_without_a_search_the_cap_is_early_stopping():
    X, y = noisy(7, m=200)
    early = Paper(25, price=0.0).fit(X, y)
    model = Paper(25, max_atoms=4, price=0.0, search=None).fit(X, y)
    assert model.atoms_ == early.at(4).atoms_


def test_a_fit_stopped_in_its_hot_start_keeps_to_the_cap():
    X, y = noisy(7)
    model = Paper(20, hot_start=10, max_atoms=3, price=0.0, tol=0.0)
    model.set_params(callbacks=[lambda state: len(state.own.generated) >= 8]).fit(X, y)
    assert len(model.generated_) == 8
    assert model.n_atoms_ == 3
    assert model.path_.sizes.max() == 3
    assert model.objective_ == model.rounds_[3].objective

    def interrupt(state):
        if len(state.own.generated) == 8:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"):
        model.set_params(callbacks=[interrupt]).fit(X, y)
    assert model.n_atoms_ == 3


def test_the_search_after_a_hot_start_answers_every_size():
    X, y = noisy(8, m=150)
    model = Paper(12, hot_start=12, max_atoms=6, price=0.0, tol=0.0).fit(X, y)
    assert model.path_.sizes.tolist() == list(range(7))
    for size in range(1, 7):
        alone = clone(model).set_params(max_atoms=size).fit(X, y)
        assert model.path_[size].objective == pytest.approx(alone.objective_, rel=1e-9)
        assert model.path_[size].objective <= model.rounds_[size].objective * (1 + 1e-9)
    assert len(model.rounds_) == 14


def test_another_size_has_its_own_certificates():
    X, y = noisy(6, m=70)
    model = Paper(8, price=0.02, search="exact", hot_start=8).fit(X, y)
    for size in model.path_.sizes:
        other = model.at(size)
        assert other.objective_ == pytest.approx(risk(other, X, y) + 0.02 * size)
        assert other.duality_gap_ == pytest.approx(other.objective_ - model.dual_value_)
        assert (other.search_bound_ == -np.inf) == (size != model.n_atoms_)
    assert np.isfinite(model.search_bound_)


def test_a_sampler_searches_too():
    pytest.importorskip("dwave.samplers")
    X, y = noisy(30, m=80)
    local = Paper(6, price=0.02).fit(X, y)
    for search in ("tabu", "anneal"):
        model = Paper(6, price=0.02, search=search, search_options={"rounds": 2}).fit(X, y)
        assert model.objective_ <= local.objective_ * 1.05
        assert np.array_equal(model.atom_coef_, clone(model).fit(X, y).atom_coef_)


@pytest.mark.filterwarnings("ignore:no atom is worth")
def test_a_higher_price_buys_fewer_atoms():
    X, y = noisy(8, m=200)
    path = Paper(30, hot_start=30).fit_path(X, y, price=[1e-4, 3e-3, 3e-2, 0.9])
    sizes = [model.n_atoms_ for model in path]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 0


def test_no_atom_of_weight_zero_is_reported():
    X, y = noisy(9, m=60)
    for settings in ({"price": 0.0, "l1": 0.03}, {"price": 0.01}, {"price": 0.01, "hot_start": 8}):
        model = Paper(25, **settings).fit(X, y)
        for entry in model.rounds_:
            assert np.all(entry.weights != 0)
            assert len(entry.weights) == len(entry.atoms) == len(entry.gains)


def test_gains_add_up_to_the_decrease_of_the_loss():
    X, y = noisy(10)
    model = Paper(20, price=0.005).fit(X, y)
    entry = model.path_[model.n_atoms_]
    assert sum(entry.gains) == pytest.approx(1.0 - entry.loss, rel=1e-9)
    assert model.feature_importances_.sum() == pytest.approx(1.0)


def test_a_feature_that_saturates_margins_has_most_of_the_importance():
    """Where the first feature is on, the class is certain; the second is a mild hint."""
    r = np.random.default_rng(0)
    sure, hint = r.random(400) < 0.4, r.random(400) < 0.5
    y = sure | (r.random(400) < np.where(hint, 0.6, 0.4))
    X = np.c_[sure, hint].astype(float)
    for loss in ("exponential", "logistic", "squared_hinge", "log"):
        model = TotalQBoostClassifier(loss=loss).fit(X, y)
        assert model.feature_importances_[0] > 0.8
        assert model.feature_importances_[1] > 0


def test_importances_of_classifiers_are_split_by_their_own():
    X, y = noisy(10)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    for classifier, own in (
        (tree, lambda c: c.feature_importances_),
        (LogisticRegression(), lambda c: np.abs(c.coef_[0]) / np.abs(c.coef_).sum()),
        (GaussianNB(), lambda c: np.full(4, 0.25)),
    ):
        model = Paper(4, pool=classifier, price=0.0).fit(X, y)
        gains = np.maximum(model.path_[model.n_atoms_].gains, 0.0)
        expected = gains @ np.array([own(atom.classifier) for atom in model.atoms_])
        np.testing.assert_allclose(model.feature_importances_, expected / gains.sum())


# -- data as it comes ------------------------------------------------------------------------------


def test_duplicate_and_complementary_columns_change_nothing():
    X, y = noisy(11, levels=3)
    settings = {"price": 0.004, "max_rounds": 25}
    plain = Paper(**settings).fit(X, y)
    doubled = Paper(**settings).fit(np.hstack([X, X[:, ::-1], -X]), y)
    np.testing.assert_allclose(doubled.objective_, plain.objective_, rtol=1e-9)
    assert len(doubled.generated_) == len(plain.generated_)
    answers = 2 * np.array([[X[:, a.feature] <= a.value] for a in plain.generated_])[:, 0] - 1
    agreement = np.abs(answers @ answers.T)
    assert np.all(agreement[~np.eye(len(answers), dtype=bool)] < len(y))


@pytest.mark.parametrize("names", [("no", "yes"), (False, True), (-1, 1), (3.0, 7.0), (1, 0)])
def test_labels_of_any_two_names(names):
    X, y = noisy(12)
    plain = Paper(8).fit(X, y)
    labels = np.array(names)[y]
    model = Paper(8).fit(X, labels)
    assert set(model.classes_.tolist()) == set(names)
    flipped = names[0] > names[1]
    f = model.decision_function(X)
    np.testing.assert_allclose(-f if flipped else f, plain.decision_function(X), atol=1e-9)
    assert np.array_equal(model.predict(X), np.array(names)[plain.predict(X)])


def test_two_classes_only_for_losses_of_the_margin():
    X, y = random_problem(k=3)
    with pytest.raises(ValueError, match='loss="log"'):
        Paper(loss="exponential").fit(X, y)


@pytest.mark.parametrize("pool", ["stumps", "columns"])
@pytest.mark.parametrize("loss", ["exponential", "log"])
def test_weight_two_is_the_row_twice_and_weight_zero_the_row_gone(pool, loss):
    X, y = noisy(13, m=80)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    settings = {"max_rounds": 8, "pool": pool, "loss": loss, "price": 0.004, "l1": 1e-3}
    weighted = Paper(**settings).fit(X, y, sample_weight=weight)
    repeated = Paper(**settings).fit(np.repeat(X, weight, 0), np.repeat(y, weight))
    assert weighted.atoms_ == repeated.atoms_
    np.testing.assert_allclose(weighted.atom_coef_, repeated.atom_coef_, rtol=1e-4, atol=1e-6)


def test_balanced_classes_weigh_the_same():
    X, y = noisy(14)
    weight = np.where(y == 1, 1 / (y == 1).sum(), 1 / (y == 0).sum())
    balanced = Paper(8, class_weight="balanced").fit(X, y)
    weighted = Paper(8).fit(X, y, sample_weight=weight)
    assert balanced.atoms_ == weighted.atoms_
    np.testing.assert_allclose(balanced.atom_coef_, weighted.atom_coef_, rtol=1e-6)


def test_single_precision_and_threads_change_nothing(assert_identical):
    X, y = noisy(15, m=300)
    X = X.astype(np.float32)
    model = Paper(10, n_jobs=1).fit(X, y)
    assert_identical(model, Paper(10, n_jobs=2).fit(X, y))
    double = Paper(10, n_jobs=1).fit(X.astype(np.float64), y)
    np.testing.assert_array_equal(model.atom_coef_, double.atom_coef_)


def test_permuted_rows_give_the_same_model():
    X, y = noisy(16, m=120)
    order = np.random.default_rng(0).permutation(len(y))
    one = Paper(10).fit(X, y)
    other = Paper(10).fit(X[order], y[order])
    assert one.atoms_ == other.atoms_
    np.testing.assert_allclose(one.atom_coef_, other.atom_coef_, rtol=1e-6)


# -- pools and losses ------------------------------------------------------------------------------


class OwnExponential(ExponentialLoss):
    """The same loss, but not by name: it goes through the rows instead of the kernels."""

    name = "own"


@pytest.mark.parametrize("intercept", [False, True])
def test_rows_and_kernels_find_the_same_model(intercept):
    X, y = noisy(17, m=150)
    settings = {"price": 0.006, "l1": 1e-4, "fit_intercept": intercept}
    fast = Paper(15, **settings).fit(X, y)
    slow = Paper(15, loss=OwnExponential(), **settings).fit(X, y)
    assert [e.objective for e in slow.rounds_] == pytest.approx(
        [e.objective for e in fast.rounds_], rel=1e-5
    )
    assert slow.atoms_ == fast.atoms_
    np.testing.assert_allclose(slow.predict_proba(X), fast.predict_proba(X), atol=1e-3)
    with pytest.raises(TypeError, match="loss of your own"):
        slow.predictor_.save("nowhere")


def test_columns_of_any_kind_are_atoms():
    X, y = noisy(18, m=200, d=8)
    model = Paper(
        8, pool=Columns("max"), loss="logistic", fit_intercept=True, price=0.003, l1=0.01
    ).fit(X, y)
    assert 0 < model.n_atoms_ < 8
    F = model.transform(X) / np.abs(X).max(axis=0)[[a.feature for a in model.atoms_]]
    w, b = cvxpy.Variable(F.shape[1]), cvxpy.Variable()
    loss = CONVEX["logistic"](cvxpy.multiply(2.0 * y - 1.0, F @ w + b)) / len(y)
    problem = cvxpy.Problem(cvxpy.Minimize(loss + 0.01 * cvxpy.norm1(w)))
    problem.solve(solver=cvxpy.CLARABEL)
    assert model.path_[model.n_atoms_].objective == pytest.approx(problem.value, rel=1e-6)


def test_balls_with_linear_functions_are_atoms():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = (X**2).sum(axis=1) < 1.4
    settings = {"pool": "pieces", "price": 0.01, "l1": 1e-2}
    model = TotalQBoostClassifier(4, hot_start=3, **settings).fit(X, y)
    assert 0 < model.n_atoms_ <= 3
    assert model.score(X, y) > 0.95
    assert len(model.predictor_.weights) == 3 * model.n_atoms_


def test_more_classes_share_atoms():
    X, y = random_problem(0, m=200, d=4, k=3)
    X = np.hstack([X, np.random.default_rng(0).uniform(-1, 1, (200, 6))])
    settings = {"loss": "log", "pool": "columns", "price": 0.02, "l1": 1e-3, "fit_intercept": True}
    model = Paper(10, **settings).fit(X, y)
    assert model.atom_coef_.shape == (3, model.n_atoms_)
    assert 0 < model.n_atoms_ < 10
    assert model.score(X, y) > 0.6
    F = model.transform(X)
    F = F / np.abs(X).max(axis=0)[[a.feature for a in model.atoms_]]
    W, b = cvxpy.Variable((F.shape[1], 3)), cvxpy.Variable((1, 3))
    scores = F @ W + np.ones((len(y), 1)) @ b
    hot = np.eye(3)[y]
    loss = cvxpy.sum(cvxpy.log_sum_exp(scores, axis=1)) - cvxpy.sum(cvxpy.multiply(hot, scores))
    problem = cvxpy.Problem(cvxpy.Minimize(loss / len(y) + 1e-3 * cvxpy.sum(cvxpy.abs(W))))
    problem.solve(solver=cvxpy.CLARABEL)
    assert model.path_[model.n_atoms_].objective == pytest.approx(problem.value, rel=1e-5)


def test_a_group_per_atom_is_searched_over_every_size():
    X, y = random_problem(1, m=200, d=4, k=3)
    X = np.hstack([X, np.random.default_rng(1).uniform(-1, 1, (200, 6))])
    settings = {"loss": "log", "pool": "columns", "l1": 1e-3, "tol": 0.0}
    early = TotalQBoostClassifier(8, price=0.0, **settings).fit(X, y)
    for cap in (2, 4):
        model = TotalQBoostClassifier(8, price=0.0, hot_start=8, max_atoms=cap, **settings)
        model.fit(X, y)
        assert model.n_atoms_ == cap
        assert model.atom_coef_.shape == (3, cap)
        assert model.objective_ <= early.rounds_[cap].objective * (1 + 1e-8)


def test_other_searches_need_signs():
    X, y = noisy()
    with pytest.raises(ValueError, match="needs two classes, a pool of stumps"):
        Paper(search="exact", pool="columns").fit(X, y)
    three = np.arange(len(y)) % 3
    with pytest.raises(ValueError, match=r'y has 3 classes, so loss="auto" is "log".*"local"'):
        TotalQBoostClassifier(2, search="exact").fit(X, three)
    with pytest.raises(ValueError, match="search must be one of"):
        Paper(search="best").fit(X, y)
    with pytest.raises(TypeError, match="loss object"):
        Paper(loss=LogLoss).fit(X, y)


class TestClassifiersAsOracle:
    def test_a_tree_of_one_split_is_a_stump(self):
        X, y = noisy(20, m=150)
        model = Paper(10, pool=DecisionTreeClassifier(max_depth=1), price=0.004)
        stumps = Paper(10, price=0.004).fit(X, y)
        model.fit(X, y)
        assert model.rounds_[1].loss == pytest.approx(stumps.rounds_[1].loss, rel=1e-3)
        assert abs(model.objective_ - stumps.objective_) < 0.1
        assert set(np.unique(model.transform(X))) <= {-1.0, 1.0}
        assert clone(model).fit(X, y).objective_ == pytest.approx(model.objective_, rel=1e-2)

    def test_nothing_is_proven_of_classifiers_that_were_not_met(self):
        """All stumps together are far below what those that a tree offers prove."""
        X, y = noisy(20)
        tree = DecisionTreeClassifier(max_depth=1, max_features=1, random_state=0)
        model = Paper(30, pool=tree, price=0.0, l1=0.01, tol=1e-6).fit(X, y)
        assert model.status_ == "the classifier offers nothing new"
        assert model.dual_value_ == 0.0
        assert model.bound_ == 0.0
        assert model.duality_gap_ == model.objective_

    def test_classifiers_that_do_not_settle_for_one_feature(self):
        X, y = noisy(21, m=150)
        model = Paper(6, pool=GaussianNB(), price=0.002).fit(X, y)
        assert model.n_atoms_ >= 1
        assert model.score(X, y) >= GaussianNB().fit(X, y).score(X, y) - 0.05
        out = io.StringIO()
        model.describe(out)
        assert "GaussianNB" in out.getvalue()
        assert "not counted" in out.getvalue()
        assert "operation" not in out.getvalue()
        with pytest.raises(TypeError, match=r"cannot be saved as a Laconic file.*joblib"):
            model.predictor_.save("nowhere")

    def test_refusals(self, tmp_path):
        X, y = noisy()
        with pytest.raises(TypeError, match="sample_weight"):
            Paper(pool=KNeighborsClassifier()).fit(X, y)
        with pytest.raises(ValueError, match="checkpoint"):
            Paper(pool=GaussianNB(), checkpoint=tmp_path / "c").fit(X, y)
        with pytest.raises(ValueError, match="two classes"):
            Paper(pool=GaussianNB(), loss="log").fit(X, y)


# -- what one gets ---------------------------------------------------------------------------------


def test_predictor_saves_and_loads(tmp_path):
    X, y = noisy(22)
    model = Paper(12, price=0.004).fit(X, np.array(["bad", "good"])[y])
    model.predictor_.save(tmp_path / "model")
    again = Predictor.load(tmp_path / "model")
    assert again.scores(X).shape == (len(y), 1)
    np.testing.assert_array_equal(again.scores(X), model.predictor_.scores(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.cost().operations == 2 * model.n_atoms_


def test_score_card():
    X, y = noisy(23)
    model = Paper(12, max_atoms=3, price=0.0).fit(X, np.array(["bad", "good"])[y])
    out = io.StringIO()
    model.describe(out)
    card = out.getvalue()
    assert "3 stumps" in card
    assert "points" in card
    assert "a sum above zero means good, otherwise bad" in " ".join(card.split())
    # The card's own arithmetic: points where the answer is yes, and the constant.
    sums = model.transform(X) @ model.atom_coef_[0] + model.intercept_[0]
    assert np.array_equal(np.where(sums > 0, "good", "bad"), model.predict(X))


def test_staged_predictions_follow_the_path():
    X, y = noisy(24)
    model = Paper(12, price=0.0).fit(X, y)
    staged = list(model.staged_predict_proba(X))
    assert len(staged) == len(model.path_)
    np.testing.assert_array_equal(staged[-1], model.predict_proba(X))
    size = model.path_.sizes[2]
    np.testing.assert_array_equal(staged[2], model.at(size).predict_proba(X))
    np.testing.assert_array_equal(list(model.staged_predict(X))[2], model.at(size).predict(X))
    assert model.decision_function(X).shape == (len(y),)


def test_probabilities_are_those_of_the_population_optimum():
    X = np.repeat([[0.0], [1.0]], 1000, axis=0)
    y = np.concatenate([np.arange(1000) < 200, np.arange(1000) < 850])
    for loss in LOSS:
        model = Paper(5, loss=loss, price=0.0, l1=0.0, fit_intercept=True)
        p = model.fit(X, y).predict_proba(np.array([[0.0], [1.0]]))[:, 1]
        np.testing.assert_allclose(p, [0.2, 0.85], atol=1e-5)


# -- interruptions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{"price": 0.004}, {"price": 0.004, "hot_start": 5},
                                      {"price": 0.0, "l1": 0.01},
                                      {"price": 0.004, "fit_intercept": True}])  # fmt: skip
@pytest.mark.parametrize("after", [1, 4, 7])
def test_a_stopped_fit_resumes_to_the_identical_model(tmp_path, assert_identical, settings, after):
    X, y = noisy(25, m=150)
    whole = Paper(12, **settings).fit(X, y)
    calls = []

    def stop(state):
        calls.append(state)
        return len(calls) > after

    file = tmp_path / "checkpoint"
    model = Paper(12, checkpoint=file, callbacks=[stop], **settings).fit(X, y)
    assert model.status_ == "stopped by a callback"
    model.set_params(callbacks=None).fit(X, y)
    assert_identical(model, whole)
    assert len(model.rounds_) == len(whole.rounds_)
    with pytest.raises(ValueError, match="other data or settings"):
        model.set_params(price=0.1).fit(X, y)


def test_a_hot_start_cut_short_goes_on_with_more_rounds(tmp_path, assert_identical):
    X, y = noisy(29, m=150)
    file, settings = tmp_path / "checkpoint", {"price": 0.004, "hot_start": 10}
    Paper(6, checkpoint=file, **settings).fit(X, y)
    resumed = Paper(14, checkpoint=file, **settings).fit(X, y)
    whole = Paper(14, **settings).fit(X, y)
    assert_identical(resumed, whole)
    assert len(resumed.rounds_) == len(whole.rounds_)


def test_a_killed_fit_resumes(tmp_path, python, assert_identical):
    code = """
import os, sys
import numpy as np
sys.path[:0] = sys.argv[2:]
from test_totalq import noisy
from laconic import TotalQBoostClassifier
X, y = noisy(26, m=150)
def die(state):
    if len(state.own.generated) == 5:
        os.kill(os.getpid(), 9)
TotalQBoostClassifier(10, hot_start=3, checkpoint=sys.argv[1], callbacks=[die]).fit(X, y)
"""
    from pathlib import Path

    file = tmp_path / "checkpoint"
    process = python(code, file, *Path(__file__).parents[:2])
    process.wait(timeout=120)
    assert process.returncode == -9, process.stderr.read()
    X, y = noisy(26, m=150)
    resumed = TotalQBoostClassifier(10, hot_start=3, checkpoint=file).fit(X, y)
    assert_identical(resumed, TotalQBoostClassifier(10, hot_start=3).fit(X, y))
    with pytest.raises(ValueError, match="max_rounds"):
        TotalQBoostClassifier(5, hot_start=3, checkpoint=file).fit(X, y)


def test_ctrl_c_keeps_a_usable_model():
    X, y = noisy(27)

    def interrupt(state):
        if len(state.own.generated) == 4:
            raise KeyboardInterrupt

    model = Paper(20, callbacks=[interrupt])
    with pytest.warns(UserWarning, match="interrupted"):
        model.fit(X, y)
    assert model.status_ == "interrupted"
    assert model.predict(X).shape == y.shape


def test_constructor_parameters_stay_as_they_were():
    X, y = noisy(28)
    pool = Stumps(bins=16)
    model = Paper(5, pool=pool, search_options={"sweeps": 1}, hot_start=3)
    before = dict(model.get_params())
    model.fit(X, y)
    assert model.get_params() == before


# -- the loss that is chosen -----------------------------------------------------------------------


def test_the_loss_follows_the_number_of_classes(three_classes):
    X, y = three_classes
    two = y != 2
    for rows, chosen in ((two, "exponential"), (slice(None), "log")):
        model = TotalQBoostClassifier(10).fit(X[rows], y[rows])
        named = TotalQBoostClassifier(10, loss=chosen).fit(X[rows], y[rows])
        assert (model.loss, model.loss_, model.predictor_.loss) == ("auto", chosen, chosen)
        assert clone(model).get_params() == TotalQBoostClassifier(10).get_params()
        assert np.array_equal(model.predict_proba(X), named.predict_proba(X))
        assert np.array_equal(
            list(model.staged_predict_proba(X)), list(named.staged_predict_proba(X))
        )
        model.plot()
        [path] = model.fit_path(X[rows], y[rows], price=[model.price])
        assert np.array_equal(path.predict_proba(X), named.predict_proba(X))
        # A fit of other classes chooses anew.
        assert model.fit(X[two], y[two]).loss_ == "exponential"


def test_a_checkpoint_goes_by_the_loss_that_was_chosen(three_classes, tmp_path):
    X, y = three_classes
    file = tmp_path / "fit"
    whole = TotalQBoostClassifier(8, loss="log", price=1e-4).fit(X, y)
    TotalQBoostClassifier(4, loss="log", price=1e-4, checkpoint=file).fit(X, y)
    resumed = TotalQBoostClassifier(8, price=1e-4, checkpoint=file).fit(X, y)
    assert np.array_equal(resumed.predict_proba(X), whole.predict_proba(X))


def test_held_out_rows_that_choose_no_atom_say_nothing_of_the_price():
    X = np.random.default_rng(0).standard_normal((60, 2))
    y = np.random.default_rng(2).integers(0, 2, 60)
    model = TotalQBoostClassifier(6, early_stopping=True, random_state=0, price=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)
    assert model.n_atoms_ == 0
