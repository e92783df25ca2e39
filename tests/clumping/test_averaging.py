"""The paper's stochastic dual averaging: its steps as written, and where they lead."""

import numpy as np
import pytest
from scipy import sparse

from laconic.clumping.averaging import Averages, average, take_pass
from laconic.clumping.margins import Margins
from laconic.clumping.solver import solve
from laconic.numeric.threads import Threads
from problems import clumping_problem as make

NORMALIZE = ["degree", "pairs"]


def as_written(problem, drawn, gamma):
    """The update rule at the end of section 3, with every vector written out."""
    X = np.hstack([problem.rows.X, np.ones((len(drawn), 1))])
    y, m = problem.sign, len(drawn)
    matrix = problem.theta.dense() / problem.theta.weight[:, None]
    u, mu, total = np.zeros(X.shape[1]), np.zeros(m), np.zeros(X.shape[1])
    for t, i in enumerate(drawn):
        rate = gamma / np.sqrt(max(t, 1))
        w = -rate * u
        total += w
        g = 1 - y * (X @ w)
        slack = np.maximum(np.maximum(-rate * mu, g), 0)
        force = matrix[i] @ slack
        u = u + problem.alpha * w - force * y[i] * X[i] * (slack[i] == g[i]) * (force > 0)
        mu[i] += force * ((force < 0) + (slack[i] > 0) * (slack[i] > g[i]) * (force > 0))
    return u, mu, total


@pytest.mark.parametrize("normalize", NORMALIZE)
def test_steps_are_those_of_the_paper(normalize):
    weight = np.random.default_rng(0).choice([0.5, 1.0, 3.0], 60)
    problem = make(discount=0.9, normalize=normalize, weight=weight, radius=2.0)
    state = Averages.start(problem)
    take_pass(problem, state, 0.3, seed=5)
    drawn = np.random.default_rng([5, 0]).choice(60, size=60, p=weight / weight.sum())
    u, mu, total = as_written(problem, drawn, 0.3)
    assert state.u == pytest.approx(u)
    assert state.mu == pytest.approx(mu)
    assert np.count_nonzero(mu) >= 3
    assert state.mean == pytest.approx(total / 60)


@pytest.mark.parametrize("normalize", NORMALIZE)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_papers_algorithm_approaches_the_same_optimum(normalize, weighted):
    weight = np.random.default_rng(7).choice([0.5, 1.0, 2.0], 100) if weighted else None
    problem = make(m=100, discount=0.5, normalize=normalize, alpha=0.1, weight=weight)
    best = solve(problem, 1e-10)
    excess = {}

    def note(state, alpha, value, gap):
        excess[state.iterations] = value / best.objective - 1

    average(problem, 1e-12, 400, seed=1, hook=note)
    assert 0 <= excess[400] < 4e-3
    assert excess[400] < excess[100] < excess[10]


def test_the_papers_algorithm_needs_dense_rows():
    problem = make()
    problem.rows = Margins(sparse.csr_matrix(problem.rows.X), True, Threads(1))
    with pytest.raises(ValueError, match="needs dense rows"):
        average(problem)
