"""The search by binary quadratic models: the model is the objective, and samplers plug in."""

import itertools
import sys

import numpy as np
import pytest
from subset_problems import PRICES, brute_force, brute_force_within, few_groups, make, stump_data

from laconic.subset import search
from laconic.subset.qubo import annealing_sampler, binary_model, quadratic_model, qubo_search, signs

dimod = pytest.importorskip("dimod")
pytest.importorskip("dwave.samplers")


class Exhaustive:
    """Every state of a small model."""

    def sample(self, model):
        return dimod.ExactSolver().sample(model)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_quadratic_model_follows_the_loss_around_the_point(loss, intercept):
    problem = make(2, loss, 0.0, nonnegative=False, intercept=intercept, n_columns=5)
    point = problem.fit((0, 3))
    constant, linear, curvature = quadratic_model(problem, point)
    w = np.zeros(5)
    w[[0, 3]] = point.weights[:2]
    S = problem.matrix(range(5))

    def loss_at(v):
        """With the intercept at its best."""
        if not intercept:
            return problem.derivatives(S, v)[0]
        grid = point.weights[2] + np.linspace(-0.05, 0.05, 2001)
        return min(problem.derivatives(S, np.append(v, b))[0] for b in grid)

    rng = np.random.default_rng(0)
    for _ in range(4):
        v = w + 0.01 * rng.normal(size=5)
        model = constant + linear @ v + 0.5 * v @ curvature @ v
        np.testing.assert_allclose(model, loss_at(v), atol=3e-6)
    np.testing.assert_allclose(constant + linear @ w + 0.5 * w @ curvature @ w, point.value)


def fixed_point_objectives(problem, point, price, values):
    """Bits of every assignment, and the objective of the quadratic model at its weights."""
    constant, linear, curvature = quadratic_model(problem, point)
    sign, n = signs(problem, point, linear, curvature), problem.n_columns
    for flat in itertools.product((0, 1), repeat=n * len(values)):
        w = sign * (np.array(flat).reshape(n, -1) @ values)
        value = constant + linear @ w + 0.5 * w @ curvature @ w
        yield flat, value + problem.l1 * np.abs(w).sum() + price * np.count_nonzero(w)


@pytest.mark.parametrize("nonnegative", [True, False])
def test_the_lowest_energy_of_given_bits_is_their_objective(nonnegative):
    """The bit z of a column makes its price exact, with no strength to choose."""
    problem = make(4, l1=0.01, nonnegative=nonnegative, intercept=True, n_columns=3)
    point, values = problem.fit((1,)), 0.2 * 2.0 ** np.arange(3)
    model = binary_model(problem, point, 0.03, 3, 0.0, values)
    assert model.num_variables == 3 * (3 + 1)
    lowest = {}
    for state, energy in dimod.ExactSolver().sample(model).data(["sample", "energy"]):
        bits = tuple(state[v] for v in range(9))
        lowest[bits] = min(energy, lowest.get(bits, np.inf))
    for bits, objective in fixed_point_objectives(problem, point, 0.03, values):
        np.testing.assert_allclose(lowest[bits], objective, rtol=1e-12)


def test_a_cap_costs_nothing_within_it_and_more_than_it_gains_beyond():
    problem = make(6, l1=0.001, intercept=True, n_columns=3)
    point, values = problem.fit((0, 1, 2)), 0.15 * 2.0 ** np.arange(2)
    worth = 0.05
    model = binary_model(problem, point, 0.01, 2, worth, values)
    lowest = {}
    for state, energy in dimod.ExactSolver().sample(model).data(["sample", "energy"]):
        bits = tuple(state[v] for v in range(6))
        lowest[bits] = min(energy, lowest.get(bits, np.inf))
    for bits, objective in fixed_point_objectives(problem, point, 0.01, values):
        used = np.array(bits).reshape(3, 2).any(axis=1).sum()
        expected = objective + (worth if used == 3 else 0.0)
        np.testing.assert_allclose(lowest[bits], expected, rtol=1e-12)


@pytest.mark.parametrize("method", ["tabu", "anneal"])
def test_never_below_brute_force_and_mostly_there(method):
    hits = []
    for seed, price in itertools.product(range(4), PRICES):
        X, y = stump_data(seed, n_columns=8)
        settings = {"l1": 1e-3, "nonnegative": bool(seed % 2), "price": price}
        found = search(X, y, method=method, **settings)
        problem = make(seed, l1=1e-3, nonnegative=bool(seed % 2), intercept=True, n_columns=8)
        problem.weight[:] = 1.0 / len(y)
        best = brute_force(problem, price)
        assert found.objective >= best * (1 - 1e-12)
        assert found.objective <= best * 1.02
        hits.append(found.objective <= best * (1 + 1e-9))
    assert np.mean(hits) >= 0.75


@pytest.mark.parametrize("cap", [1, 2, 3, 5])
def test_a_cap_holds(cap):
    problem = make(8, intercept=True, n_columns=8)
    best = brute_force(problem, 0.0, cap)
    X, y = problem.columns, problem.y
    settings = {"l1": problem.l1, "nonnegative": True, "sample_weight": problem.weight}
    found = search(X, y, method="anneal", max_atoms=cap, **settings)
    assert len(found.support) <= cap
    assert best * (1 - 1e-12) <= found.objective <= best * 1.02


@pytest.mark.parametrize("method", ["tabu", "anneal"])
def test_a_seed_is_an_answer(method):
    X, y = stump_data(9, n_columns=20)
    first, again = (search(X, y, method=method, price=2e-3, l1=1e-4, seed=5) for _ in range(2))
    np.testing.assert_array_equal(first.support, again.support)
    np.testing.assert_array_equal(first.weights, again.weights)


class _Answers:
    """A sampler that answers with whatever it is given to make of a model."""

    def __init__(self, answer):
        self.sample = lambda model, **_: answer(model)


def test_answers_that_are_none_are_refused_by_name():
    X, y = stump_data(1)
    for answer in (
        lambda model: None,
        lambda model: {"energy": 1.0},
        lambda model: dimod.SampleSet.from_samples([], dimod.BINARY, energy=[]),
        lambda model: dimod.SampleSet.from_samples([{0: 1}], dimod.BINARY, energy=[1.0]),
    ):
        with pytest.raises(TypeError, match=r"_Answers must return a dimod\.SampleSet"):
            search(X, y, method=_Answers(answer), price=0.01)
    with pytest.raises(ValueError, match="an object with a method sample"):
        search(X, y, method=Exhaustive, price=0.01)


def test_spins_are_bits():
    X, y = stump_data(1)

    def bits(model):
        one = {v: int(v % 7 < 3) for v in model.variables}
        return dimod.SampleSet.from_samples_bqm([one], model)

    expected = search(X, y, method=_Answers(bits), price=1e-4, l1=1e-3, rounds=2)
    spins = _Answers(lambda model: bits(model).change_vartype("SPIN", inplace=False))
    found = search(X, y, method=spins, price=1e-4, l1=1e-3, rounds=2)
    assert found.support.tolist() == expected.support.tolist()


def test_any_sampler_will_do():
    X, y = stump_data(3, n_columns=4)
    problem = make(3, l1=1e-3, nonnegative=True, intercept=True, n_columns=4)
    problem.weight[:] = 1.0 / len(y)
    best = brute_force(problem, 5e-3)
    settings = {"price": 5e-3, "l1": 1e-3, "nonnegative": True}
    for sampler in (Exhaustive(), dimod.ExactSolver()):
        found = search(X, y, method=sampler, bits=3, **settings)
        np.testing.assert_allclose(found.objective, best, rtol=1e-3)


def test_never_worse_than_its_starts():
    problem = make(10, n_columns=12)
    start = (1, 4, 7)

    class Poor:
        def sample(self, model):
            return dimod.SampleSet.from_samples_bqm(dict.fromkeys(model.variables, 0), model)

    fit = qubo_search(problem, 1e-4, 12, [start], sampler=Poor())
    assert fit.value + 1e-4 * len(fit.support) <= problem.fit(start).value + 3e-4


@pytest.mark.parametrize("bits", [0, 17])
def test_bits_out_of_range(bits):
    X, y = stump_data(1)
    with pytest.raises(ValueError, match="bits must be from 1 to 16"):
        search(X, y, method="tabu", price=0.01, bits=bits)


def test_an_absent_library_is_named_with_its_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "dwave.samplers", None)
    X, y = stump_data(1)
    with pytest.raises(ImportError, match=r'pip install "\.\[dwave\]"'):
        search(X, y, method="tabu", price=0.01)


@pytest.mark.parametrize("most", [0, 1, 2, 3])
def test_limits_that_the_sampler_does_not_know_are_kept(most):
    problem, allows = make(most, nonnegative=False, intercept=True), few_groups(most, most)
    fit = qubo_search(problem, 2e-3, 6, sampler=annealing_sampler(), allows=allows)
    assert allows(fit.support)
    assert len(fit.support) <= 6
    objective = fit.value + 2e-3 * len(fit.support)
    assert objective >= brute_force_within(problem, 2e-3, allows) - 1e-10
    assert objective <= problem.fit(()).value
