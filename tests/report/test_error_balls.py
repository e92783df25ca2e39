"""Balls of errors: found where they were planted, and not where errors are strewn at random."""

import numpy as np
import pytest
from scipy.stats import binom

from laconic.numeric.threads import Threads
from laconic.report.balls import LARGEST, BallSearch
from laconic.report.nearest import Left, Nearest
from laconic.report.regions import find_regions
from laconic.report.scan import SHARES, gains


def ball_search(Z, error, expected, least, threads=1):
    """Search all rows with plain distances."""
    plain, rng = np.ones(Z.shape[1]), np.random.default_rng(0)
    return BallSearch(
        Z, np.arange(len(Z)), np.arange(0), plain, error, expected, least, rng, Threads(threads)
    )


def find_balls(Z, wrong, most, least):
    """Find balls where the same error rate is expected of all rows."""
    error, expected = wrong.astype(float), np.full(len(Z), np.clip(wrong.mean(), 1e-6, 1 - 1e-6))
    search = ball_search(Z, error, expected, least)
    return find_regions([search], error, lambda alive: np.full(len(Z), wrong[alive].mean()), most)


def planted(seed=0, m=1500):
    """Errors everywhere now and then, and mostly in two balls of different sizes."""
    rng = np.random.default_rng(seed)
    Z = rng.uniform(0, 10, (m, 2))
    large = np.linalg.norm(Z - [2, 2], axis=1) < 1.5
    small = np.linalg.norm(Z - [8, 7], axis=1) < 0.8
    rate = np.where(large, 0.9, np.where(small, 0.95, 0.02))
    return Z, rng.random(m) < rate, large, small


@pytest.mark.parametrize("seed", range(3))
def test_planted_balls_are_found(seed):
    Z, wrong, large, small = planted(seed)
    found = find_balls(Z, wrong, 5, 10)
    assert len(found) >= 2
    for ball, truth in zip(found, (large, small), strict=False):
        inside = np.zeros(len(Z), dtype=bool)
        inside[ball.inside] = True
        overlap = (inside & truth).sum() / (inside | truth).sum()
        assert overlap > 0.7
    assert found[0].evidence > found[1].evidence


def test_balls_share_no_row_and_are_balls():
    Z, wrong, *_ = planted(1)
    found = find_balls(Z, wrong, 5, 10)
    rows = np.concatenate([ball.inside for ball in found])
    assert len(np.unique(rows)) == len(rows)
    shape = found[0].shape
    distance = np.linalg.norm(Z - shape.centre, axis=1)
    assert np.array_equal(np.sort(found[0].inside), np.flatnonzero(distance <= shape.radius))
    assert np.all(np.diff(distance[found[0].inside]) >= 0)


def best_of_all(Z, gain, centres, least):
    """Try every centre and every radius, one by one."""
    best = 0.0
    for centre in centres:
        distance = np.square(Z - Z[centre]).sum(axis=1)
        for radius in distance:
            inside = distance <= radius
            if least <= inside.sum() <= LARGEST * len(Z):
                best = max(best, gain[inside].sum(axis=0).max())
    return best


def is_its_evidence(ball, gain):
    """Whether the evidence is that of the rows inside."""
    return ball.evidence == pytest.approx(gain[ball.inside].sum(axis=0).max())


@pytest.mark.parametrize("steps", [None, 2, 1])
def test_no_ball_around_an_error_is_better_than_the_one_found(steps):
    """On a grid many rows are equally far."""
    rng = np.random.default_rng(4)
    Z, wrong = rng.standard_normal((60, 2)), rng.random(60) < 0.4
    Z = Z if steps is None else np.round(Z * steps)
    gain = gains(wrong.astype(float), np.full(60, wrong.mean()))
    search = ball_search(Z, wrong.astype(float), np.full(60, 0.4), 5)
    found = search.best(np.ones(60, dtype=bool), gain)
    assert found.evidence >= best_of_all(Z, gain, np.flatnonzero(wrong), 5) - 1e-9
    assert is_its_evidence(found, gain)
    assert 5 <= len(found.inside) <= LARGEST * 60


def test_gains_are_ratios_of_likelihoods():
    wrong, p = np.array([1.0, 1, 0, 0, 0]), 0.2
    total = gains(wrong, np.full(5, p)).sum(axis=0)
    for share, found in zip(SHARES, total, strict=True):
        ratio = binom.logpmf(2, 5, p + share * (1 - p)) - binom.logpmf(2, 5, p)
        assert found == pytest.approx(ratio)


@pytest.mark.parametrize("wrong", [np.zeros(50, dtype=bool), np.ones(50, dtype=bool)])
def test_nothing_to_find(wrong):
    with np.errstate(all="ignore"):
        Z = np.random.default_rng(0).random((50, 2))
        error = wrong.astype(float)
        search = ball_search(Z, error, np.full(50, 0.5), 5)
        gain = gains(error, np.full(50, np.clip(error.mean(), 1e-6, 1 - 1e-6)))
        found = search.best(np.ones(50, dtype=bool), gain)
    assert found is None or found.worth <= 0


def test_equal_rows_are_in_a_ball_together():
    Z = np.repeat([[0.0], [1.0], [5.0]], [30, 30, 200], axis=0)
    wrong = np.zeros(260, dtype=bool)
    wrong[:25] = True
    found = find_balls(Z, wrong, 1, 5)
    assert sorted(found[0].inside.tolist()) == list(range(30))


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
    """What is claimed of a ball is true of its rows, which are no more than they may be."""
    rng = np.random.default_rng(0)
    Z, rate = table(rng)
    wrong = rng.random(len(Z)) < rate
    found = find_balls(Z, wrong, 5, 10)
    assert (table is early_rows) == (found == [])
    alive = np.ones(len(Z), dtype=bool)
    for ball in found:
        assert 10 <= len(ball.inside) <= LARGEST * alive.sum()
        gain = gains(wrong.astype(float), np.full(len(Z), wrong[alive].mean()))
        assert is_its_evidence(ball, gain)
        distance = np.linalg.norm(Z - ball.shape.centre, axis=1)
        inside = np.flatnonzero((distance <= ball.shape.radius) & alive)
        assert np.array_equal(np.sort(ball.inside), inside)
        alive[ball.inside] = False


def test_a_far_row_does_not_hide_a_ball():
    Z, wrong, *_ = planted()
    ball = find_balls(Z, wrong, 1, 10)[0]
    Z, wrong = np.vstack([Z, [[1e8, -1e8]]]), np.append(wrong, False)
    found = find_balls(Z, wrong, 1, 10)[0]
    assert found.shape.radius == pytest.approx(ball.shape.radius, rel=0.05)
    assert len(np.intersect1d(found.inside, ball.inside)) > 0.9 * len(ball.inside)


def test_the_kernel_tries_every_radius():
    rng = np.random.default_rng(0)
    for _ in range(20):
        d2, alive = rng.integers(0, 30, 100).astype(float), rng.random(100) < 0.8
        gain = rng.normal(size=(100, 4))
        left = Left(alive, gain, 5.0, 40.0)
        evidence, last = (near := Nearest.at(d2, 0.0, 1.0)).best(left)
        tried = {
            radius: gain[alive & (d2 <= radius)].sum(axis=0).max()
            for radius in np.unique(d2) if 5 <= (alive & (d2 <= radius)).sum() <= 40
        }  # fmt: skip
        best = max(tried, key=tried.get)
        assert evidence == pytest.approx(max(tried[best], 0.0))
        assert tried[best] < 0 or d2[near.order[last]] == best


def test_a_sample_places_the_balls_of_a_large_table(monkeypatch):
    """All rows then choose the radius. The number of threads changes nothing."""
    Z, wrong, large, _ = planted(m=9000)
    monkeypatch.setattr("laconic.report.balls.PLACED", 9000)
    error, expected = wrong.astype(float), np.full(9000, wrong.mean())
    found = []
    for threads in (1, 2):
        search = ball_search(Z, error, expected, 10, threads)
        assert len(search.points) == 4500
        with search.threads:
            found.append(search.best(np.ones(9000, dtype=bool), gains(error, expected)))
    assert np.array_equal(found[0].inside, found[1].inside)
    inside = np.isin(np.arange(9000), found[0].inside)
    assert (inside & large).sum() / (inside | large).sum() > 0.8


def test_rows_of_the_other_half_are_centres_too():
    """The middle of a ring of errors is a row beside those that are searched."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 60)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    Z = np.vstack([ring, rng.uniform(-8, 8, (900, 2)), [[0.0, 0.0]]])
    Z = Z[(np.arange(len(Z)) < 60) | (np.linalg.norm(Z, axis=1) > 1.3) | (np.arange(len(Z)) == 960)]
    rows, n = np.arange(len(Z) - 1), len(Z) - 1
    error, expected = (rows < 60).astype(float), np.full(n, 60 / n)
    search = BallSearch(Z, rows, np.array([n]), np.ones(2), error, expected, 10, rng, Threads(1))
    ball = search.best(np.ones(n, dtype=bool), gains(error, expected))
    assert ball.shape.centre.tolist() == [0.0, 0.0]
    assert sorted(ball.inside.tolist()) == list(range(60))
