"""`clump_score`: errors that clump, errors that do not, and the null in between."""

from itertools import combinations

import numpy as np
import pytest

from laconic import clump_score
from laconic.clumping.neighbours import radius_graph


@pytest.fixture
def rows():
    return np.random.default_rng(0).uniform(size=(400, 2))


def test_mean_and_deviation_are_those_over_all_placements():
    X = np.random.default_rng(1).uniform(size=(9, 2))
    near = radius_graph(X, 0.4).to_sparse().toarray()
    for k in (2, 3, 5, 9):
        counts = [near[np.ix_(c, c)].sum() / 2 for c in combinations(range(9), k)]
        found = clump_score(X, np.arange(9) < k, radius=0.4, n_permutations=0)
        assert found.pairs == near[:k, :k].sum() / 2
        assert found.expected == pytest.approx(np.mean(counts))
        assert found.deviation == pytest.approx(np.std(counts), abs=1e-7)
        assert np.isnan(found.p_value)


def test_clumped_errors_stand_out(rows):
    found = clump_score(rows, np.abs(rows - 0.5).max(axis=1) < 0.15, random_state=0)
    assert found.score > 3
    assert found.z > 10
    assert found.p_value == 1 / 200
    assert found.share == pytest.approx(0.05, abs=1e-3)
    assert 0.1 < found.radius < 0.2


def test_errors_strewn_at_random_do_not(rows):
    rng = np.random.default_rng(2)
    found = [clump_score(rows, rng.random(400) < 0.2, random_state=s) for s in range(20)]
    assert np.mean([f.score for f in found]) == pytest.approx(1, abs=0.1)
    assert 0.2 < np.mean([f.p_value for f in found]) < 0.8


def test_errors_that_keep_apart_score_below_one():
    grid = np.stack(np.meshgrid(*[np.arange(10.0)] * 2), axis=-1).reshape(-1, 2)
    found = clump_score(grid, grid.sum(axis=1) % 2 == 0, radius=1.0, random_state=0)
    assert found.pairs == 0
    assert found.score == 0
    assert found.p_value == 1


def test_any_graph_will_do(rows):
    wrong = rows[:, 0] < 0.3
    graph = radius_graph(rows, 0.1)
    by_radius = clump_score(rows, wrong, radius=0.1, random_state=0)
    given = clump_score(rows, wrong.astype(int), graph=graph, random_state=0)
    assert given.score == by_radius.score
    assert given.p_value == by_radius.p_value
    assert np.isnan(given.radius)
    assert clump_score(None, wrong, graph=graph, random_state=0) == pytest.approx(
        given, nan_ok=True
    )
    assert clump_score(None, wrong, graph=graph.to_sparse(), random_state=0).pairs == given.pairs
    assert clump_score(rows, wrong, n_neighbors=5, n_permutations=0).score > 2


@pytest.mark.parametrize("n_errors", [0, 1])
def test_too_few_errors_have_no_score(rows, n_errors):
    found = clump_score(rows, np.arange(400) < n_errors, random_state=0)
    assert np.isnan(found.score)
    assert np.isnan(found.z)
    assert found.p_value == 1
    assert "0 pairs of neighbouring errors where 0 were expected" in repr(found)


def test_wrong_errors_are_refused(rows):
    with pytest.raises(ValueError, match=r"one entry per row \(400\)"):
        clump_score(rows, [True])
    with pytest.raises(ValueError, match="true or false"):
        clump_score(rows, np.full(400, 2))
    with pytest.raises(ValueError, match="n_permutations"):
        clump_score(rows, rows[:, 0] < 0.5, n_permutations=-1)
    with pytest.raises(ValueError, match="n_permutations"):
        clump_score(rows, rows[:, 0] < 0.5, n_permutations=2.5)
    with pytest.raises(ValueError, match="X is needed"):
        clump_score(None, rows[:, 0] < 0.5)
    with pytest.raises(ValueError, match="radius must be"):
        clump_score(rows, rows[:, 0] < 0.5, radius="wide")


def test_a_score_prints_in_one_line():
    rng = np.random.default_rng(0)
    found = clump_score(rng.random((50, 2)), np.arange(50) < 10, radius=0.3, n_permutations=0)
    assert len(repr(found)) < 100
    assert repr(found).startswith("ClumpScore(score=")
    assert "p=" not in repr(found)
