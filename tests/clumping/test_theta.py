"""Θ of eq. (1): its entries, definiteness, weights, and the slacks it leads to."""

import numpy as np
import pytest
from scipy import sparse

from laconic.clumping.graph import GraphLimits, graph_of
from laconic.clumping.neighbours import given_graph, radius_graph
from laconic.clumping.theta import Theta

NORMALIZE = ["degree", "pairs"]


def random_graph(rng, m, share):
    upper = np.triu(rng.random((m, m)) < share, 1)
    return graph_of(sparse.csr_matrix(upper | upper.T), GraphLimits())


def from_the_definition(graph, discount, normalize):
    """Θ for weights of 1: 1, −η/(m − 1) or −η/√(d_i d_j), and 0."""
    near = graph.to_sparse().toarray().astype(float)
    degree = np.maximum(near.sum(axis=1), 1)
    by = len(near) - 1 if normalize == "pairs" else np.sqrt(np.outer(degree, degree))
    return np.eye(len(near)) - discount * near / by


@pytest.mark.parametrize("normalize", NORMALIZE)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("discount", [0.0, 0.5, 0.99])
def test_theta_is_the_matrix_of_the_paper_and_positive_definite(normalize, share, discount):
    rng = np.random.default_rng(0)
    graph = random_graph(rng, 30, share)
    theta = Theta(graph, discount, normalize)
    matrix = from_the_definition(graph, discount, normalize)
    assert theta.dense() == pytest.approx(matrix, abs=1e-14)
    values = np.linalg.eigvalsh(matrix)
    assert values.min() >= 1 - discount - 1e-12
    assert values.max() <= 1 + discount + 1e-12
    slack = rng.random(30)
    spread = theta.spread(slack)
    assert slack - spread == pytest.approx(matrix @ slack)
    assert theta.value(slack, spread) == pytest.approx(slack @ matrix @ slack / 60)


@pytest.mark.parametrize("normalize", NORMALIZE)
@pytest.mark.parametrize("seed", range(4))
def test_weighted_theta_is_positive_semidefinite(normalize, seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 25, rng.random())
    weight = rng.choice([1e-3, 0.3, 1.0, 1.7, 2.0, 30.0], 25)
    theta = Theta(graph, 0.999, normalize, weight)
    root = 1 / np.sqrt(weight)
    values = np.linalg.eigvalsh(theta.dense() * np.outer(root, root))
    assert values.min() >= 1 - 0.999 - 1e-12
    assert values.max() <= 2


@pytest.mark.parametrize("normalize", NORMALIZE)
def test_an_integer_weight_is_the_row_repeated(normalize):
    rng = np.random.default_rng(1)
    X, weight = rng.standard_normal((12, 2)), rng.integers(1, 4, 12)
    copies = np.repeat(np.arange(12), weight)
    once = Theta(radius_graph(X, 1.0), 0.6, normalize, weight.astype(float))
    repeated = Theta(radius_graph(X[copies], 1.0), 0.6, normalize)
    slack = rng.random(12)
    assert once.total == repeated.total
    assert once.spread(slack)[copies] == pytest.approx(repeated.spread(slack[copies]))
    value = slack[copies] @ repeated.dense() @ slack[copies]
    assert slack @ once.dense() @ slack == pytest.approx(value)


@pytest.mark.parametrize("normalize", NORMALIZE)
@pytest.mark.parametrize("seed", range(4))
def test_with_prices_too_a_weight_is_the_row_repeated(normalize, seed):
    rng = np.random.default_rng(seed)
    X, weight = rng.standard_normal((12, 2)), rng.integers(1, 4, 12)
    price = rng.choice([0.3, 1.0, 2.5], 12)
    copies = np.repeat(np.arange(12), weight)
    once = Theta(radius_graph(X, 1.0), 0.6, normalize, weight.astype(float), None, price)
    repeated = Theta(radius_graph(X[copies], 1.0), 0.6, normalize, price=price[copies])
    slack = rng.random(12)
    assert once.total == pytest.approx(repeated.total)
    assert once.spread(slack)[copies] == pytest.approx(repeated.spread(slack[copies]))
    value = slack[copies] @ repeated.dense() @ slack[copies]
    assert slack @ once.dense() @ slack == pytest.approx(value)
    thrice = Theta(radius_graph(X, 1.0), 0.6, normalize, weight.astype(float), None, 3 * price)
    assert thrice.spread(slack) == pytest.approx(once.spread(slack))


@pytest.mark.parametrize("normalize", NORMALIZE)
@pytest.mark.parametrize("seed", range(4))
def test_with_prices_too_theta_is_positive_semidefinite(normalize, seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 25, rng.random())
    weight = rng.choice([1e-3, 0.3, 1.0, 1.7, 2.0, 30.0], 25)
    price = rng.choice([1e-4, 0.5, 1.0, 70.0], 25)
    theta = Theta(graph, 0.999, normalize, weight, None, price)
    root = 1 / np.sqrt(weight * price)
    values = np.linalg.eigvalsh(theta.dense() * np.outer(root, root))
    assert values.min() >= 1 - 0.999 - 1e-12
    assert values.max() <= 2
    spread = theta.spread(theta.scale)
    assert (spread <= theta.rate * theta.scale * (1 + 1e-12)).all()
    plain = Theta(graph, 0.0, normalize, weight, None, price).dense()
    assert plain == pytest.approx(np.diag(weight * price))


def test_a_dear_neighbour_allows_more():
    """Equal degrees: what a row is allowed is η times the mean slack, by price."""
    graph = given_graph(1 - np.eye(3), 3)
    theta = Theta(graph, 0.5, price=np.array([1.0, 1.0, 1.0]))
    assert theta.spread(np.array([9.0, 1.0, 3.0]))[0] == pytest.approx(0.5 * 2.0)
    dear = Theta(graph, 0.5, "pairs", price=np.array([1.0, 1.0, 3.0]))
    assert dear.spread(np.array([9.0, 1.0, 3.0]))[0] == pytest.approx(0.5 * (1 + 3 * 3) / 4)


def test_isolated_rows_get_no_discount():
    theta = Theta(given_graph(np.zeros((3, 3)), 3), 0.5)
    assert np.array_equal(theta.dense(), np.eye(3))
    assert np.array_equal(theta.spread(np.ones(3)), np.zeros(3))


def test_by_degree_unsymmetric_graphs_would_not_do():
    """Why given graphs are made symmetric: one hub that all others point at."""
    near = np.zeros((9, 9))
    near[1:, 0] = 1
    degree = np.maximum(near.sum(axis=1), 1)
    theta = np.eye(9) - 0.9 * near / np.sqrt(np.outer(degree, degree))
    assert np.linalg.eigvalsh((theta + theta.T) / 2).min() < 0
    assert np.linalg.eigvalsh(Theta(given_graph(near, 9), 0.9, "degree").dense()).min() > 0


@pytest.mark.parametrize("normalize", NORMALIZE)
@pytest.mark.parametrize("discount", [0.0, 0.5, 0.95, 0.999])
def test_relax_solves_the_bound_constrained_problem(normalize, discount):
    rng = np.random.default_rng(2)
    theta = Theta(random_graph(rng, 40, 0.3), discount, normalize)
    floor = np.maximum(rng.standard_normal(40), 0)
    matrix = theta.dense()
    for start in (np.zeros(40), np.full(40, 9.0)):
        slack, spread = theta.relax(floor, start, 1e-13)
        force = matrix @ slack
        assert slack - spread == pytest.approx(force, abs=1e-12)
        assert (slack >= floor).all()
        assert force.min() > -1e-11
        assert np.abs(force * (slack - floor)).max() < 1e-11


@pytest.mark.parametrize("normalize", NORMALIZE)
def test_the_contraction_shrinks_by_its_rate_and_never_raises_the_value(normalize):
    rng = np.random.default_rng(3)
    theta = Theta(random_graph(rng, 40, 0.4), 0.7, normalize)
    floor = np.maximum(rng.standard_normal(40), 0)
    best, _ = theta.relax(floor, floor, 1e-14)
    slack = np.maximum(floor, 3 * rng.random(40))
    assert theta.rate <= 0.7
    for _ in range(10):
        spread = theta.spread(slack)
        value, distance = theta.value(slack, spread), np.abs((slack - best) / theta.scale).max()
        slack = np.maximum(floor, spread)
        assert theta.value(slack, theta.spread(slack)) <= value + 1e-15
        assert np.abs((slack - best) / theta.scale).max() <= theta.rate * distance + 1e-14


def test_wrong_settings_are_refused():
    graph = given_graph(1 - np.eye(4), 4)
    with pytest.raises(ValueError, match="normalize must be"):
        Theta(graph, 0.5, "rows")
    for discount, normalize in ((1.0, "degree"), (-0.1, "pairs"), (1.1, "pairs")):
        with pytest.raises(ValueError, match="discount must be in"):
            Theta(graph, discount, normalize)
    with pytest.raises(ValueError, match=r"discount=1.0 with normalize='pairs' leaves nothing"):
        Theta(graph, 1.0, "pairs")
    path = given_graph(np.eye(4, k=1), 4)
    assert Theta(path, 1.0, "pairs").rate == pytest.approx(2 / 3)
