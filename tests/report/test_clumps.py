"""Clumps of errors: found where they were planted, and not where errors are strewn at random."""

import numpy as np
import pytest
from scipy.stats import binom

from laconic.report.clumps import LARGEST, evidence, find_clumps


def planted(seed=0, m=1500):
    """Errors everywhere now and then, and mostly in two balls of different sizes."""
    rng = np.random.default_rng(seed)
    Z = rng.uniform(0, 10, (m, 2))
    large = np.linalg.norm(Z - [2, 2], axis=1) < 1.5
    small = np.linalg.norm(Z - [8, 7], axis=1) < 0.8
    rate = np.where(large, 0.9, np.where(small, 0.95, 0.02))
    return Z, rng.random(m) < rate, large, small


@pytest.mark.parametrize("seed", range(3))
def test_planted_clumps_are_found(seed):
    Z, wrong, large, small = planted(seed)
    found = find_clumps(Z, wrong, 5, 10, np.random.default_rng(0))
    assert len(found) >= 2
    for clump, truth in zip(found, (large, small), strict=False):
        inside = np.zeros(len(Z), dtype=bool)
        inside[clump.rows] = True
        overlap = (inside & truth).sum() / (inside | truth).sum()
        assert overlap > 0.7
    assert found[0].evidence > found[1].evidence


def test_clumps_share_no_row_and_are_balls():
    Z, wrong, *_ = planted(1)
    found = find_clumps(Z, wrong, 5, 10, np.random.default_rng(0))
    rows = np.concatenate([clump.rows for clump in found])
    assert len(np.unique(rows)) == len(rows)
    distance = np.linalg.norm(Z - found[0].centre, axis=1)
    assert np.array_equal(np.sort(found[0].rows), np.flatnonzero(distance <= found[0].radius))
    assert np.all(np.diff(distance[found[0].rows]) >= 0)


@pytest.mark.parametrize("steps", [None, 2, 1])
def test_the_best_ball_is_the_best_of_all(steps):
    """Every centre and radius, one by one; on a grid many rows are equally far."""
    rng = np.random.default_rng(4)
    Z, wrong = rng.standard_normal((60, 2)), rng.random(60) < 0.4
    Z = Z if steps is None else np.round(Z * steps)
    clump = find_clumps(Z, wrong, 1, 5, np.random.default_rng(0), least_evidence=0.0)[0]
    best = 0.0
    for centre in np.flatnonzero(wrong):
        distance = np.square(Z - Z[centre]).sum(axis=1)
        for radius in distance:
            inside = distance <= radius
            if 5 <= inside.sum() <= 12:  # a fifth of the rows
                caught = np.array([wrong[inside].sum()])
                best = max(best, evidence(caught, inside.sum(keepdims=True), wrong.sum(), 60)[0])
    assert clump.evidence == pytest.approx(best)


def test_evidence_is_the_ratio_of_likelihoods():
    inside, outside = binom.logpmf(7, 20, 7 / 20), binom.logpmf(13, 180, 13 / 180)
    one = binom.logpmf(7, 20, 0.1) + binom.logpmf(13, 180, 0.1)
    found = evidence(np.array([7]), np.array([20]), 20, 200)[0]
    assert found == pytest.approx(inside + outside - one)


@pytest.mark.parametrize("wrong", [np.zeros(50, dtype=bool), np.ones(50, dtype=bool)])
def test_nothing_to_find(wrong):
    assert find_clumps(np.random.default_rng(0).random((50, 2)), wrong, 3, 5, None) == []


def test_equal_rows_are_in_a_clump_together():
    Z = np.repeat([[0.0], [1.0], [5.0]], [30, 30, 200], axis=0)
    wrong = np.zeros(260, dtype=bool)
    wrong[:25] = True
    found = find_clumps(Z, wrong, 1, 5, np.random.default_rng(0))
    assert sorted(found[0].rows.tolist()) == list(range(30))


def categories(rng, m=1000):
    """Eight kinds, one of them with more errors."""
    kind = rng.integers(0, 8, m)
    return np.eye(8)[kind], np.where(kind == 3, 0.3, 0.05)


def whole_numbers(rng, m=1000):
    """Three columns of whole numbers, with more errors where the first is 1."""
    Z = rng.integers(0, 5, (m, 3)).astype(float)
    return Z, np.where(Z[:, 0] == 1, 0.4, 0.05)


def truth_values(rng, m=1000):
    """Four columns of zeros and ones at a tenth of their weight, with more errors in one cell."""
    Z = rng.integers(0, 2, (m, 4)) * 0.1
    return Z, np.where((Z[:, :3] > 0).all(axis=1), 0.5, 0.05)


def early_rows(rng, m=1000):
    """Four kinds, and errors that depend on the place in the file alone."""
    return np.eye(4)[rng.integers(0, 4, m)], np.where(np.arange(m) < 150, 0.4, 0.05)


@pytest.mark.parametrize("table", [categories, whole_numbers, truth_values, early_rows])
def test_rows_at_the_same_distance_are_held_together(table):
    """What is claimed of a clump is true of its rows, which are no more than they may be."""
    rng = np.random.default_rng(0)
    Z, rate = table(rng)
    wrong = rng.random(len(Z)) < rate
    found = find_clumps(Z, wrong, 5, 10, np.random.default_rng(0))
    assert (table is early_rows) == (found == [])
    alive = np.ones(len(Z), dtype=bool)
    for clump in found:
        caught, held = wrong[clump.rows].sum(keepdims=True), np.array([len(clump.rows)])
        assert 10 <= held <= LARGEST * alive.sum()
        claimed = evidence(caught, held, int(wrong[alive].sum()), int(alive.sum()))
        assert clump.evidence == pytest.approx(claimed[0])
        distance = np.linalg.norm(Z - clump.centre, axis=1)
        inside = np.flatnonzero((distance <= clump.radius) & alive)
        assert np.array_equal(np.sort(clump.rows), inside)
        alive[clump.rows] = False


@pytest.mark.parametrize("most", [400, 20])
@pytest.mark.parametrize("table", [categories, whole_numbers, truth_values, planted])
def test_the_order_of_the_rows_does_not_matter(table, most):
    """Also where not every error is tried as a centre."""
    rng = np.random.default_rng(1)
    if table is planted:
        Z, wrong, *_ = planted()
    else:
        Z, rate = table(rng)
        wrong = rng.random(len(Z)) < rate
    found = find_clumps(Z, wrong, 5, 10, np.random.default_rng(0), most)
    assert found
    for _ in range(5):
        order = rng.permutation(len(Z))
        moved = find_clumps(Z[order], wrong[order], 5, 10, np.random.default_rng(0), most)
        assert len(moved) == len(found)
        for one, other in zip(found, moved, strict=True):
            assert np.array_equal(np.sort(order[other.rows]), np.sort(one.rows))
            assert np.array_equal(other.centre, one.centre)
            assert other.radius == pytest.approx(one.radius)


def test_a_far_row_does_not_hide_a_clump():
    Z, wrong, *_ = planted()
    clump = find_clumps(Z, wrong, 1, 10, np.random.default_rng(0))[0]
    Z, wrong = np.vstack([Z, [[1e8, -1e8]]]), np.append(wrong, False)
    found = find_clumps(Z, wrong, 1, 10, np.random.default_rng(0))[0]
    assert found.radius == pytest.approx(clump.radius)
    assert np.array_equal(found.rows, clump.rows)
