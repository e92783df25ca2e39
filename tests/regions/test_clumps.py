"""Clumps of errors: found where they were planted, and not where errors are strewn at random."""

import numpy as np
import pytest
from scipy.stats import binom

from laconic.regions.clumps import evidence, find_clumps


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


def test_the_best_ball_is_the_best_of_all(monkeypatch):
    """Every centre and radius, one by one."""
    monkeypatch.setattr("laconic.regions.clumps.EVIDENCE", 0.0)
    rng = np.random.default_rng(4)
    Z, wrong = rng.standard_normal((60, 2)), rng.random(60) < 0.4
    clump = find_clumps(Z, wrong, 1, 5, np.random.default_rng(0))[0]
    best = 0.0
    for centre in np.flatnonzero(wrong):
        distance = np.linalg.norm(Z - Z[centre], axis=1)
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


def test_a_far_row_does_not_hide_a_clump():
    Z, wrong, *_ = planted()
    clump = find_clumps(Z, wrong, 1, 10, np.random.default_rng(0))[0]
    Z, wrong = np.vstack([Z, [[1e8, -1e8]]]), np.append(wrong, False)
    found = find_clumps(Z, wrong, 1, 10, np.random.default_rng(0))[0]
    assert found.radius == pytest.approx(clump.radius)
    assert np.array_equal(found.rows, clump.rows)
