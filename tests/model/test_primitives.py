"""Every primitive computes what its definition says, on rows of any storage."""

import copy
import pickle

import numpy as np
import pytest
from naive_primitives import naive
from scipy import sparse

from laconic.model.balls import Balls
from laconic.model.hinges import Hinge
from laconic.model.primitives import Compare, Filled, Gather, LookUp, Multiply
from laconic.model.route import Route
from laconic.model.rules import Both
from laconic.model.windows import WindowMaximum

STORAGES = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "integers": lambda X: np.nan_to_num(X, posinf=0, neginf=0).astype(np.int32),
    "unsigned": lambda X: np.abs(np.nan_to_num(X, posinf=0, neginf=0)).astype(np.uint8),
    "columns first": np.asfortranarray,
    "CSR": sparse.csr_matrix,
    "CSC": sparse.csc_matrix,
    "no rows": lambda X: X[:0],
    "one row": lambda X: X[:1],
}


def some_rows(n=30, d=6, seed=0):
    """Small whole numbers, so that sums of squares are exact and distances tie with radii."""
    return np.random.default_rng(seed).integers(-3, 4, (n, d)).astype(float)


def with_gaps(X, rng):
    """The rows with some missing values, some fractions and some infinities."""
    X = X.copy()
    X[rng.random(X.shape) < 0.2] = np.nan
    X[rng.random(X.shape) < 0.2] += 0.5
    X[rng.random(X.shape) < 0.05] = np.inf
    X[rng.random(X.shape) < 0.05] = -np.inf
    return X


def made(name, rng):
    """A primitive of six features with random arrays of whole numbers.

    There are two or four centres, so that their mean and all distances are exact.
    """
    feature = rng.integers(6, size=9)
    centre, radius = rng.integers(-2, 3, (4, 6)).astype(float), [3.0, 4.0, 5.0, 6.0]
    if name == "Gather":
        return Gather(feature)
    if name == "Gather of all":
        return Gather(range(6))
    if name == "Gather of some":
        return Gather(range(1, 6, 2))
    if name == "Filled":
        return Filled(feature, rng.integers(-3, 4, 9))
    if name == "Compare":
        return Compare(feature, rng.integers(-3, 4, 9), np.arange(9) % 3)
    if name == "Both":
        values, tests = rng.integers(-3, 4, (2, 9)), np.arange(9)
        return Both(feature, values[0], tests % 4, rng.permutation(feature), values[1], tests % 3)
    if name == "Multiply":
        return Multiply(feature, rng.permutation(feature))
    if name == "Hinge":
        return Hinge([1] * 9, feature, rng.choice([-1, 1], 9), rng.integers(-3, 4, 9))
    if name == "Hinge of directions":
        length, feature = [3, 0, 1, 3, 2], np.r_[feature[:3], 4, feature[:3], 5, 1]
        value = np.r_[1.0, 2.0, -1.0, -1.0, 1.0, 2.0, -1.0, 3.0, 0.0]
        return Hinge(length, feature, value, [1.0, -2.0, 0.0, -1.0, 2.0])
    if name == "LookUp":
        return LookUp(feature, rng.standard_normal((9, 3)))
    if name == "Balls":
        return Balls(centre, radius, -centre, False)
    if name == "Balls of one centre and one origin":
        return Balls(centre[[0, 0, 0, 0]], radius, np.ones((1, 6)), False)
    if name == "soft Balls":
        return Balls(centre, radius, centre, True)
    if name == "WindowMaximum":
        values, centre = rng.standard_normal(4 + 1), [[0.5, 0.5], [1.0, 2.0], [0.0, 1.0], [0, 1]]
        return WindowMaximum([2, 3], [2, 1], values, [0, 1, 1, 0], centre, [1, 0.5, np.inf, 2])
    parts = [[Gather(feature)], [], [made("soft Balls", rng), made("Hinge", rng)], [Gather([1])]]
    if name == "Route":
        return Route(centre, [5.0, 4.0, 4.0, 3.0], [*parts, [made("Compare", rng)]])
    if name == "Route of infinite radius":
        return Route(centre[:1], [np.inf], parts[:2])
    inner = Route(centre[:2], [4.0, 5.0], parts[:3])
    return Route(centre[3:], [5.0], [[Gather([0]), inner], [inner]])


NAMES = [
    "Gather", "Gather of all", "Gather of some", "Filled", "Compare", "Both", "Multiply", "Hinge",
    "Hinge of directions",
    "LookUp", "Balls", "Balls of one centre and one origin", "soft Balls", "WindowMaximum", "Route",
    "Route of infinite radius", "nested Route",
]  # fmt: skip
TAKES_GAPS = ["Gather", "Filled", "Compare", "Both", "Hinge", "Hinge of directions", "LookUp"]
EMPTY = {
    "Gather": Gather([]),
    "Gather of none": Gather(range(0)),
    "Filled": Filled([], []),
    "Compare": Compare([], [], []),
    "Both": Both([], [], [], [], [], []),
    "Multiply": Multiply([], []),
    "Hinge": Hinge([], [], [], []),
    "LookUp": LookUp([], np.empty((0, 3))),
    "Balls": Balls(np.empty((0, 6)), [], np.zeros((1, 6)), True),
    "WindowMaximum": WindowMaximum([2, 3], [], [], [], np.empty((0, 2)), []),
}


# -- columns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", NAMES)
def test_columns_are_those_of_the_definition(name, storage):
    primitive = made(name, np.random.default_rng(1))
    X = STORAGES[storage](some_rows())
    found = primitive.columns(X)
    assert found.shape == (X.shape[0], primitive.n_columns)
    np.testing.assert_allclose(found, naive([primitive], X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", TAKES_GAPS)
def test_missing_infinite_and_broken_numbers_are_dealt_with_as_defined(name, storage):
    rng = np.random.default_rng(2)
    primitive, X = made(name, rng), STORAGES[storage](with_gaps(some_rows(60), rng))
    np.testing.assert_array_equal(primitive.columns(X), naive([primitive], X))


@pytest.mark.parametrize("storage", ["float64", "float32", "CSR", "no rows"])
@pytest.mark.parametrize("name", EMPTY)
def test_a_primitive_of_nothing_has_no_columns(name, storage):
    X = STORAGES[storage](some_rows())
    primitive = EMPTY[name]
    assert primitive.n_columns == 0
    assert primitive.columns(X).shape == (X.shape[0], 0)
    assert primitive.scores(X, np.empty((0, 3))).tolist() == [[0.0] * 3] * X.shape[0]
    assert primitive.reads().tolist() == []
    assert primitive.operations() == primitive.score_operations(3) == 0


def test_single_precision_stays_where_it_is_exact():
    X, rng = some_rows().astype(np.float32), np.random.default_rng(1)
    for name in ("Gather", "Gather of all", "Compare", "Multiply", "WindowMaximum"):
        assert made(name, rng).columns(X).dtype == np.float32


def test_a_gather_of_all_features_copies_nothing():
    X = some_rows()
    assert Gather(range(6)).columns(X) is X
    wide = Gather(range(2**31 - 1))
    assert wide.n_columns == 2**31 - 1


def test_an_unknown_category_is_looked_up_as_zero():
    table = LookUp([0], [[5.0, 6.0]])
    X = np.array([[0.0], [1.0], [2.0], [-1.0], [0.5], [np.nan], [np.inf], [-0.0], [1e300]])
    assert table.columns(X)[:, 0].tolist() == [5.0, 6.0, 0, 0, 0, 0, 0, 5.0, 0]
    assert LookUp([0], np.empty((1, 0))).columns(X).tolist() == [[0.0]] * len(X)


def test_a_row_on_the_sphere_is_outside_a_ball_but_inside_a_hole():
    X = np.array([[3.0, 4.0], [0.0, 0.0], [3.0, 4.0 + 1e-9]])
    for soft in (False, True):
        ball = Balls(np.zeros((1, 2)), [5.0], np.zeros((1, 2)), soft)
        assert ball.columns(X)[:, 2].tolist() == [0.0, 1.0, 0.0]
    hole = Route(np.zeros((1, 2)), [5.0], [[], []])
    assert hole.columns(X).tolist() == [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]


def test_the_newest_hole_wins():
    X = np.array([[0.0], [2.0], [9.0]])
    holes = Route([[0.0], [1.0], [0.0]], [5.0, 1.0, 0.5], [[]] * 4)
    assert holes.region(X).tolist() == [3, 2, 0]


def test_products_that_leave_single_precision_are_wide():
    X = np.array([[1e30, 1e30], [1e-30, 1e-30], [2.0, 3.0]], dtype=np.float32)
    found = Multiply([0], [1]).columns(X)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, naive([Multiply([0], [1])], X))
    with pytest.raises(ValueError, match="columns 0 and 1 of X overflows in row 1"):
        Multiply([0], [1]).columns(np.array([[1.0, 2.0], [1e200, 1e200]]))


# -- scores ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", NAMES)
def test_scores_are_columns_times_weights(name, storage):
    rng = np.random.default_rng(3)
    primitive = made(name, rng)
    X = STORAGES[storage](some_rows())
    weights = rng.standard_normal((primitive.n_columns, 4))
    expected = naive([primitive], X) @ weights
    np.testing.assert_allclose(primitive.scores(X, weights), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["Gather", "Gather of all", "Multiply", "Hinge", "Balls", "Route"])
def test_scores_refuse_missing_values_that_would_count(name):
    primitive = made(name, np.random.default_rng(3))
    X = np.full((2, 6), np.nan)
    with pytest.raises(ValueError, match="missing or infinite"):
        primitive.scores(X, np.ones((primitive.n_columns, 1)))


# -- costs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_reads_are_the_features_that_matter(name):
    rng = np.random.default_rng(4)
    primitive, X = made(name, rng), some_rows()
    reads = primitive.reads()
    assert reads.tolist() == sorted(set(reads.tolist()))
    other = X + rng.integers(-9, 9, X.shape)
    other[:, reads] = X[:, reads]
    np.testing.assert_array_equal(primitive.columns(other), primitive.columns(X))


def test_operations_are_multiplications_and_comparisons():
    rng = np.random.default_rng(5)
    counts = {name: made(name, rng).operations() for name in NAMES[:13]}
    assert counts == {
        "Gather": 0, "Gather of all": 0, "Gather of some": 0, "Filled": 9, "Compare": 9,
        "Both": 18,
        "Multiply": 9, "Hinge": 18, "Hinge of directions": 9 + 5, "LookUp": 9, "Balls": 4 * 6 + 4,
        "Balls of one centre and one origin": 6 + 4, "soft Balls": 4 * 6 + 4,
    }  # fmt: skip
    for name in NAMES[:9]:
        primitive = made(name, rng)
        assert primitive.score_operations(4) == primitive.operations() + 4 * primitive.n_columns


def test_without_shares_the_worst_row_counts():
    ball = Balls(np.zeros((2, 6)), [1.0, 2.0], np.zeros((1, 6)), False)
    assert ball.score_operations(4) == ball.operations() + 2 * 6 * 4
    parts = [[Multiply([0, 1], [1, 2])], [Gather([0, 1, 2])]]
    hole = Route(np.zeros((1, 6)), [1.0], parts)
    assert hole.operations() == 6 + 1 + 2
    assert hole.score_operations(4) == hole.operations() + 3 * 4
    shared = Route(np.zeros((1, 6)), [1.0], parts, [0.75, 0.25])
    assert shared.operations() == 6 + 1 + round(0.75 * 2)
    assert shared.score_operations(4) == shared.operations() + round((0.75 * 2 + 0.25 * 3) * 4)


# -- objects ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_copies_and_pickles_compute_the_same(name):
    primitive, X = made(name, np.random.default_rng(6)), some_rows()
    expected = primitive.columns(X)
    for other in (copy.deepcopy(primitive), pickle.loads(pickle.dumps(primitive))):
        np.testing.assert_array_equal(other.columns(X), expected)


@pytest.mark.parametrize("name", [name for name in NAMES if "Route" not in name])
def test_arrays_make_the_primitive_again(name):
    primitive, X = made(name, np.random.default_rng(7)), some_rows()
    again = type(primitive)(**primitive.arrays())
    np.testing.assert_array_equal(again.columns(X), primitive.columns(X))


def test_every_yields_what_is_inside():
    primitive = made("nested Route", np.random.default_rng(8))
    kinds = [type(inner).__name__ for inner in primitive.every()]
    inside = ["Route", "Gather", "Balls", "Hinge"]
    assert kinds == ["Route", "Gather", *inside, *inside]
    assert len(primitive.arrays()) == 2 + 1 + 2 * (2 + 1 + 4 + 4)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Gather([[0, 1]]), r"Gather .* feature \(1, 2\)"),
        (lambda: Compare([0, 1], [0.0], [0, 0]), r"Compare .* value \(1,\)"),
        (lambda: Compare([0], [0.0], [3]), "test must hold 0, 1 or 2, not 3"),
        (lambda: Multiply([0], [0, 1]), r"Multiply .* second \(2,\)"),
        (lambda: Hinge([1], [0], [1.0], [0.0, 1.0]), r"Hinge .* knot \(2,\)"),
        (lambda: Hinge([1], [0, 1], [1.0], [0.0]), r"Hinge .* value \(1,\)"),
        (lambda: Hinge([1, 2], [0, 1], [1.0, 1.0], [0.0, 0.0]), "the lengths add up to 3"),
        (lambda: Hinge([3, -1], [0, 1], [1.0, 1.0], [0.0, 0.0]), "number of terms"),
        (lambda: LookUp([0, 1], [[1.0, 2.0]]), "one line per feature"),
        (lambda: LookUp([0], 1.0), "one line per feature"),
        (lambda: Balls(np.zeros((2, 3)), [1.0], np.zeros((1, 3)), False), "balls do not fit"),
        (lambda: Balls(np.zeros((1, 3)), [1.0], np.zeros((1, 2)), False), "balls do not fit"),
        (lambda: Balls(np.zeros((1, 3)), 1.0, np.zeros((1, 3)), False), "balls do not fit"),
        (lambda: Route(np.zeros((1, 3)), [1.0], [[]]), "regions do not fit"),
        (lambda: Route(np.zeros((1, 3)), [1.0], [[], []], [1.0]), "regions do not fit"),
        (lambda: WindowMaximum([2, 2], [3], np.ones(9), [0], [[1, 1]], [1]), "patches do not fit"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
