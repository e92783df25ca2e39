"""Errors near every row, and the largest ball that is mostly wrong."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from laconic.holes.bad_balls import Around, ErrorCounts, Surroundings, largest_ball
from laconic.numeric.threads import Threads


def ball_of(d2, wrong, weight, least=0.0, codes=None):
    return largest_ball(Around.at(d2), wrong, weight, least, codes)


def largest_by_trying(d2, wrong, weight, least):
    """Every distance as a radius, one after the other."""
    found = None
    for edge in np.unique(d2):
        inside = d2 <= edge
        held, missed = weight[inside].sum(), weight[inside & wrong].sum()
        if 2 * missed > held and held >= least:
            found = np.flatnonzero(inside)
    return found


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("least", [0, 5.5, 6])
@pytest.mark.parametrize("seed", range(20))
def test_the_largest_ball_is_the_largest(seed, least, weighted):
    rng = np.random.default_rng(seed)
    d2 = rng.integers(0, 15, 40).astype(float)  # many ties
    wrong = rng.random(40) < 0.45
    weight = rng.integers(1, 4, 40).astype(float) if weighted else np.ones(40)
    ball = ball_of(d2, wrong, weight if weighted else None, least)
    expected = largest_by_trying(d2, wrong, weight, least)
    if expected is None:
        assert ball is None
        return
    assert np.array_equal(np.sort(ball.inside), expected)
    assert np.all(np.diff(d2[ball.inside]) >= 0)
    outside = np.setdiff1d(np.arange(40), expected)
    assert ball.beyond is None if len(outside) == 0 else d2[ball.beyond] == d2[outside].min()


def test_exactly_half_wrong_is_not_more_than_half():
    d2 = np.arange(4.0)
    assert ball_of(d2, np.array([True, False, True, False]), np.ones(4)).inside.tolist() == [
        0, 1, 2,
    ]  # fmt: skip
    assert ball_of(d2, np.array([False, True, False, True]), np.ones(4)) is None


def test_a_ball_of_everything_has_no_edge():
    ball = ball_of(np.arange(3.0), np.ones(3, dtype=bool), np.ones(3))
    assert ball.beyond is None
    assert len(ball.inside) == 3


def test_rows_a_rounding_error_apart_are_inside_together():
    d2 = np.array([0.0, 1.0, 1.0 + 1e-14, 9.0])
    wrong = np.array([True, True, False, False])
    assert ball_of(d2, wrong, np.ones(4)).inside.tolist() == [0, 1, 2]


def test_a_far_row_does_not_make_ties_of_the_near_ones():
    d2 = np.array([0.0, 1.0, 2.0, 3.0, 1e16])
    wrong = np.array([True, True, False, False, False])
    assert ball_of(d2, wrong, np.ones(5)).inside.tolist() == [0, 1, 2]


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_rows_at_the_same_distance_from_a_centre_far_off_stay_together(make):
    """On a lattice many distances are equal, whatever rounding makes of them."""
    grid = np.stack(np.meshgrid(*[np.arange(6) / 8] * 3), axis=-1).reshape(-1, 3) + 1e4
    X, rng = make(grid), np.random.default_rng(0)
    with Threads(1) as threads:
        for centre, around in enumerate(Surroundings(X, threads).around(list(range(30)))):
            wrong = rng.random(len(grid)) < 0.5
            ball = largest_ball(around, wrong, np.ones(len(grid)))
            steps = 8 * (grid - grid[centre])
            squares = (steps**2).sum(axis=1)
            if ball is not None and ball.beyond is not None:
                assert squares[ball.inside].max() < squares[ball.beyond]


def test_weight_two_is_a_row_twice():
    rng = np.random.default_rng(3)
    d2, wrong = rng.random(30), rng.random(30) < 0.5
    weight = rng.integers(1, 4, 30)
    one = ball_of(d2, wrong, weight.astype(float))
    other = ball_of(np.repeat(d2, weight), np.repeat(wrong, weight), np.ones(weight.sum()))
    assert len(other.inside) == weight[one.inside].sum()


@pytest.mark.parametrize("kind", ["float64", "float32", "sparse"])
def test_counts_are_those_of_every_pair(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 5)) * (rng.random((700, 5)) < 0.7) + 3.0 * (kind != "sparse")
    given = {"float64": X, "float32": X.astype(np.float32), "sparse": sparse.csr_matrix(X)}[kind]
    near = cdist(X, X) <= 1.7
    weight = rng.integers(1, 3, 700).astype(float)
    wrong = rng.random(700) < 0.3
    with Threads(2) as threads:
        counts = ErrorCounts(given, 1.7, threads)
        rows = np.flatnonzero(wrong)
        counts.change(rows, weight[rows])
        assert np.array_equal(counts.counts, near @ (weight * wrong))
        healed, new = rows[::2], np.flatnonzero(~wrong)[::5]
        counts.change(np.concatenate([healed, new]), np.r_[-weight[healed], weight[new]])
    wrong[healed], wrong[new] = False, True
    assert np.array_equal(counts.counts, near @ (weight * wrong))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_on_the_edge_are_counted_beside_a_far_row(dtype):
    """A far row puts many distances in doubt; distances of whole numbers are exact all the same."""
    X = np.random.default_rng(2).integers(0, 6, (600, 3)).astype(dtype)
    X[7] = 1e4
    near = cdist(X, X) <= 3.0  # many rows are exactly so far apart
    for radius, power in ((3.0, 0), (3.0 * 2.0**40, 40)):
        with Threads(2) as threads:
            counts = ErrorCounts(np.ldexp(X, power), radius, threads)
            counts.change(np.arange(0, 600, 7), np.ones(86))
        assert np.array_equal(counts.counts, near[:, ::7].sum(axis=1))
    with Threads(1) as threads:
        counts = ErrorCounts(X, 1e30, threads)  # whose square is no number in single precision
        counts.change(np.arange(600), np.ones(600))
    assert np.all(counts.counts == 600)


def test_threads_do_not_change_the_counts():
    X = np.random.default_rng(1).standard_normal((5000, 3))
    found = []
    for n_jobs in (1, 2):
        with Threads(n_jobs) as threads:
            counts = ErrorCounts(X, 0.5, threads)
            counts.change(np.arange(0, 5000, 7), np.full(715, 0.1))
            found.append(counts.counts)
    assert np.array_equal(*found)


@pytest.mark.parametrize("seed", range(10))
def test_with_classes_a_constant_is_better_inside(seed):
    rng = np.random.default_rng(seed)
    d2, codes = rng.random(60), rng.integers(4, size=60)
    wrong, weight = rng.random(60) < 0.55, rng.integers(1, 3, 60).astype(float)
    ball = ball_of(d2, wrong, weight, 3, codes)
    best = None
    for edge in np.sort(d2):
        inside = d2 <= edge
        held, missed = weight[inside].sum(), weight[inside & wrong].sum()
        common = np.bincount(codes[inside], weight[inside]).max()
        if 2 * missed > held and held >= 3 and held - common < missed:
            best = np.flatnonzero(inside)
    assert (ball is None) == (best is None)
    if best is not None:
        assert np.array_equal(np.sort(ball.inside), best)


def test_surroundings_are_the_same_asked_for_again():
    X = np.random.default_rng(0).standard_normal((3000, 3))
    with Threads(2) as threads:
        near = Surroundings(X, threads, room=0)  # only the last few are kept
        first = near.around([5, 7])
        near.around(list(range(100, 228)))
        again = near.around([7, 5])
    assert np.array_equal(first[1].order, again[0].order)
    assert np.array_equal(first[0].order, np.argsort(np.linalg.norm(X - X[5], axis=1)))
    assert len(near._known) <= 130
    assert near._held == sum(around.nbytes for around in near._known.values())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_at_the_very_radius_are_counted_whatever_the_origin(dtype):
    """The difference of two rows of a lattice decides, not what rounding makes of products."""
    rng = np.random.default_rng(0)
    X = (0.1 * rng.integers(0, 9, (300, 2))).astype(dtype)
    counts = ErrorCounts(X, 0.3, Threads(1))
    counts.change(np.arange(0, 300, 3), np.ones(100))
    gaps = X[:, None].astype(float) - X[::3]
    assert np.array_equal(counts.counts, (np.sqrt((gaps**2).sum(axis=2)) <= 0.3).sum(axis=1))


def test_any_byte_that_is_true_counts_as_one_error():
    """NumPy 1.24.0 compares truths into bytes of 254."""
    wrong = np.array([254, 0, 255, 0, 0], dtype=np.uint8).view(bool)
    found = ball_of(np.array([0.0, 1.0, 4.0, 9.0, 16.0]), wrong, None)
    assert found.inside.tolist() == [0, 1, 2]
