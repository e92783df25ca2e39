"""Subset searches against brute force, a second solver, and each other."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from laconic.subset import METHODS, SubsetProblem, search
from laconic.subset.exact import branch_and_bound, weight_bounds
from laconic.subset.local import local_search
from laconic.subset.problem import LOSSES

LOSS = {
    "exponential": lambda g: np.exp(-g),
    "logistic": lambda g: np.logaddexp(0.0, -g),
    "squared_hinge": lambda g: np.maximum(1.0 - g, 0.0) ** 2,
}
PRICES = (3e-4, 3e-3, 2e-2)


def stump_data(seed, n_rows=120, n_columns=9, binary=False):
    """Correlated stump columns, and labels that need several of them."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_rows, 4))
    which, at = rng.integers(0, 4, n_columns), rng.normal(size=n_columns) * 0.8
    columns = (features[:, which] > at).astype(int)
    score = features[:, 0] + features[:, 1] * features[:, 2] + 0.7 * rng.normal(size=n_rows)
    return (columns if binary else 2 * columns - 1), np.where(score > 0, 1, -1)


def make(seed, loss="exponential", l1=1e-3, nonnegative=True, intercept=False, **data):
    X, y = stump_data(seed, **data)
    weight = np.random.default_rng(seed).uniform(0.5, 2.0, len(y))
    return SubsetProblem(X, y, weight / weight.sum(), loss, l1, nonnegative, intercept)


def brute_force(problem, price, cap=None):
    """Best objective over all supports."""
    cap = problem.n_columns if cap is None else cap
    return min(
        problem.fit(support).value + price * size
        for size in range(cap + 1)
        for support in combinations(range(problem.n_columns), size)
    )


SETTINGS = [
    pytest.param(loss, nonnegative, intercept, id=f"{loss}-{nonnegative}-{intercept}")
    for loss in LOSSES
    for nonnegative in (True, False)
    for intercept in (True, False)
]


@pytest.mark.parametrize(("loss", "nonnegative", "intercept"), SETTINGS)
@pytest.mark.parametrize("binary", [True, False])
def test_fit_is_the_optimum_of_a_second_solver(loss, nonnegative, intercept, binary):
    problem = make(3, loss, 0.01, nonnegative, intercept, binary=binary)
    n = problem.n_columns

    def value(v):
        w = v[:n] - (0.0 if nonnegative else v[n : 2 * n])
        b = v[-1] if intercept else 0.0
        margins = problem.y * (problem.columns @ w + b)
        return problem.weight @ LOSS[loss](margins) + 0.01 * v[: n if nonnegative else 2 * n].sum()

    size = n if nonnegative else 2 * n
    bounds = [(0, None)] * size + [(None, None)] * intercept
    options = {"ftol": 1e-15, "gtol": 1e-11, "maxiter": 10_000, "maxfun": 10**6}
    peer = minimize(value, np.zeros(len(bounds)), method="L-BFGS-B", bounds=bounds, options=options)
    fit = problem.fit(tuple(range(n)))
    assert fit.value <= peer.fun * (1 + 1e-8)
    assert fit.value >= peer.fun * (1 - 1e-6)  # the peer differentiates numerically
    w = fit.weights if intercept else np.append(fit.weights, 0.0)
    direct = problem.weight @ LOSS[loss](problem.y * (problem.columns @ w[:n] + w[n]))
    np.testing.assert_allclose(fit.value, direct + 0.01 * np.abs(w[:n]).sum(), rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("nonnegative", [True, False])
def test_gains_of_adding(loss, nonnegative):
    """Exact for the exponential loss: the best step along the column alone, by a scalar search."""
    problem = make(5, loss, 0.004, nonnegative, True)
    fit = problem.fit((1, 4))
    gains = problem.gains(fit)
    S = problem.matrix((1, 4))
    margins = fit.weights @ S
    for j in set(range(problem.n_columns)) - {1, 4}:
        column = problem.y * problem.columns[:, j]

        def along(d, column=column):
            return problem.weight @ LOSS[loss](margins + d * column) + 0.004 * abs(d)

        grid = np.linspace(0.0 if nonnegative else -2.0, 2.0, 8001)
        decrease = along(0.0) - min(along(d) for d in grid)
        if loss == "exponential":
            np.testing.assert_allclose(gains[j], decrease, atol=2e-7)
        else:
            assert (gains[j] > 0) == (decrease > 1e-9)
    assert np.all(gains[[1, 4]] == -np.inf)


def test_dropping_is_ranked_by_its_true_loss():
    problem = make(7, n_rows=400)
    fit = problem.fit(tuple(range(problem.n_columns)))
    used = [j for j, w in enumerate(fit.weights) if w > 0]
    fit = problem.fit(tuple(used))
    model = problem.losses_of_dropping(fit)
    true = [problem.without(fit, column).value - fit.value for column in used]
    assert np.argmin(model) == np.argmin(true)
    np.testing.assert_allclose(model, true, rtol=0.5)


@pytest.mark.parametrize(("loss", "nonnegative", "intercept"), SETTINGS)
@pytest.mark.parametrize("price", PRICES)
def test_exact_is_brute_force(loss, nonnegative, intercept, price):
    problem = make(11, loss, 1e-3, nonnegative, intercept)
    best = brute_force(problem, price)
    proof = branch_and_bound(problem, price)
    np.testing.assert_allclose(proof.objective, best, rtol=1e-9)
    assert proof.bound <= best * (1 + 1e-12)
    assert proof.bound >= best * (1 - 1e-7)


@pytest.mark.parametrize("cap", [0, 1, 2, 4, 8])
@pytest.mark.parametrize("price", [0.0, 2e-3])
@pytest.mark.parametrize("nonnegative", [True, False])
def test_exact_with_a_cap_is_brute_force(cap, price, nonnegative):
    problem = make(13, nonnegative=nonnegative, intercept=True)
    best = brute_force(problem, price, cap)
    proof = branch_and_bound(problem, price, cap)
    assert len(proof.fit.support) <= cap
    np.testing.assert_allclose(proof.objective, best, rtol=1e-9)
    assert best * (1 - 1e-7) <= proof.bound <= best * (1 + 1e-12)


@pytest.mark.parametrize("max_nodes", [0, 1, 3, 10])
def test_an_unfinished_proof_is_still_one(max_nodes):
    """From a poor start and after a few nodes, the bound must hold and the answer be attained."""
    problem = make(17, n_columns=12, nonnegative=False, intercept=True)
    best = brute_force(problem, 2e-3)
    poor = [problem.fit(())]
    proof = branch_and_bound(problem, 2e-3, known=poor, max_nodes=max_nodes)
    assert proof.nodes <= max_nodes
    assert proof.bound <= best * (1 + 1e-12)
    assert proof.objective >= best * (1 - 1e-12)


def test_weight_bounds_hold_on_the_level_set():
    problem = make(19, l1=0.01, nonnegative=False, intercept=True, n_columns=4)
    best = problem.fit(tuple(range(4)))
    level = best.value * 1.1
    most = weight_bounds(problem, level)
    S = problem.matrix(range(4))
    rng = np.random.default_rng(0)
    reached = np.zeros(5)
    for _ in range(300):
        direction = rng.normal(size=5)
        low, high = 0.0, 50.0
        for _ in range(40):
            t = 0.5 * (low + high)
            w = best.weights + t * direction
            value = problem.derivatives(S, w)[0] + 0.01 * np.abs(w[:4]).sum()
            low, high = (t, high) if value <= level else (low, t)
        reached = np.maximum(reached, np.abs(best.weights + low * direction))
    assert np.all(reached <= most)
    assert np.all(most <= 3 * reached)


@pytest.mark.parametrize("seed", range(6))
def test_local_search_finds_the_best_of_small_problems(seed):
    """Never below the true best; here it also finds it, at every price."""
    problem = make(seed, nonnegative=bool(seed % 2), intercept=True)
    fits = local_search(problem, problem.n_columns)
    for price in PRICES:
        best = brute_force(problem, price)
        found = min(fit.value + price * len(fit.support) for fit in fits)
        assert found >= best * (1 - 1e-12)
        np.testing.assert_allclose(found, best, rtol=1e-6)


def test_local_search_is_never_worse_than_its_starts():
    problem = make(23, n_rows=300, n_columns=40)
    order = np.random.default_rng(1).permutation(40)[:12]
    prefixes = [order[:n].tolist() for n in range(1, 13)]
    by_size = {len(fit.support): fit.value for fit in local_search(problem, 12, prefixes)}
    for prefix in prefixes:
        assert by_size[len(prefix)] <= problem.fit(tuple(sorted(prefix))).value * (1 + 1e-12)


# -- metamorphic -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_repeated_rows(method):
    X, y = stump_data(2)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    a = search(X, y, method=method, price=4e-3, l1=1e-3, sample_weight=times)
    b = search(X.repeat(times, axis=0), y.repeat(times), method=method, price=4e-3, l1=1e-3)
    assert a.support.tolist() == b.support.tolist()
    np.testing.assert_allclose(a.objective, b.objective, rtol=1e-9)
    np.testing.assert_allclose(a.weights, b.weights, rtol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_permuted_columns_give_the_permuted_answer(method):
    X, y = stump_data(4)
    order = np.random.default_rng(3).permutation(X.shape[1])
    a = search(X, y, method=method, price=4e-3, l1=1e-3)
    b = search(X[:, order], y, method=method, price=4e-3, l1=1e-3)
    assert sorted(order[b.support].tolist()) == a.support.tolist()
    np.testing.assert_allclose(a.objective, b.objective, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_duplicates_and_complements_are_not_paid_for_twice(method):
    X, y = stump_data(6, n_columns=4)
    doubled = np.hstack([X, X, -X])
    a = search(X, y, method=method, price=3e-3, l1=1e-3)
    b = search(doubled, y, method=method, price=3e-3, l1=1e-3)
    np.testing.assert_allclose(a.objective, b.objective, rtol=1e-9)
    assert len(set((b.support % 4).tolist())) == len(b.support)


@pytest.mark.parametrize("names", [("no", "yes"), (False, True), (1, 2), (-1, 1)])
def test_any_two_labels(names):
    X, y = stump_data(8)
    named = np.where(y > 0, names[1], names[0])
    expected = search(X, y, price=4e-3, l1=1e-3)
    found = search(X, named, price=4e-3, l1=1e-3)
    assert found.support.tolist() == expected.support.tolist()
    np.testing.assert_array_equal(found.weights, expected.weights)


def test_separable_data_ends_because_of_l1():
    X = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    y = np.array([1, 1, 0, 0])
    for method in METHODS:
        found = search(X, y, method=method, price=1e-3, l1=1e-3)
        assert found.support.tolist() == [0]
        assert np.isfinite(found.weights).all()
        # e^-w + ν w is least at w = -ln ν.
        np.testing.assert_allclose(found.weights, -np.log(1e-3), rtol=1e-6)


def test_a_price_too_high_keeps_nothing():
    X, y = stump_data(9)
    for method in METHODS:
        found = search(X, y, method=method, price=10.0)
        assert found.support.size == 0
        assert found.intercept != 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"columns": np.full((120, 9), 2)}, "0 and 1"),
        ({"columns": np.ones(120)}, "matrix with a row"),
        ({"columns": np.full((120, 9), np.nan)}, "0 and 1"),
        ({"y": np.ones(120)}, "two different labels"),
        ({"price": -1.0}, "price must be"),
        ({"price": np.nan}, "price must be"),
        ({"price": None}, "give a price"),
        ({"max_atoms": -1}, "max_atoms must be"),
        ({"l1": -1.0}, "l1 must be"),
        ({"loss": "hinge"}, "loss must be one of 'exponential'"),
        ({"method": "magic"}, "method must be one of 'local'"),
        ({"sample_weight": np.zeros(120)}, "zero everywhere"),
        ({"sample_weight": -np.ones(120)}, "at least 0"),
        ({"sample_weight": np.ones(7)}, "for every row"),
    ],
)
def test_bad_input_says_what_would_do(change, said):
    X, y = stump_data(1)
    arguments = {"columns": X, "y": y, "price": 0.01, **change}
    with pytest.raises(ValueError, match=said):
        search(arguments.pop("columns"), arguments.pop("y"), **arguments)
