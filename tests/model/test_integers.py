"""Integer models: the same scores as loops over whole numbers, within the proven bounds."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from naive_integers import Naive, fixed, rescaled

from export.random_models import KINDS, ListMap, all_settings, fitting_inputs, random_problem
from laconic import HolePunchingClassifier, Predictor, ShareBoostClassifier
from laconic.model import input_codes
from laconic.model.balls import Balls
from laconic.model.hinges import Hinge
from laconic.model.integers import rescale, squares
from laconic.model.primitives import Compare, Gather, LookUp, Multiply
from laconic.model.program import program_of
from laconic.model.proof import bounds
from laconic.model.regions import UNSEEN
from laconic.model.route import Route
from laconic.model.windows import WindowMaximum
from problems import blobs
from problems import random_problem as fitted_problem


def own_model(primitives, n_features=2, k=3, loss="log", seed=0, size=1.0, constant=1.0):
    """Return a model with random weights of any primitives."""
    rng, map = np.random.default_rng(seed), ListMap(primitives)
    weights = size * rng.standard_normal((map.n_columns, k))
    intercept = constant * rng.standard_normal(k)
    widths = [1] * map.n_columns
    return Predictor(map, weights, intercept, np.arange(k), loss, widths, n_features)


def extreme_rows(quantised, rng, n=5):
    """Return rows of the device's lowest and highest numbers, and corners of their cube."""
    inputs = quantised.integers.inputs
    if inputs.given == "float":
        ends = np.array([-np.inf, np.inf, -0.0, np.nan, 3.4e38], np.float32)
    else:
        limits = np.iinfo(inputs.dtype)
        ends = np.array([limits.min, limits.max, limits.max - 1], inputs.dtype)
    d = quantised.n_features
    return np.array([*(np.full(d, end) for end in ends), *rng.choice(ends, (n, d))])


def assert_naive(quantised, rows):
    """The scores of rows of a device's numbers are those of loops. Return the loops."""
    naive, inputs = Naive(quantised.integers), quantised.integers.inputs
    codes = inputs.codes_of(rows[:, inputs.features])
    assert np.array_equal(quantised.integers.code_scores(codes), naive.scores(rows))
    return naive


# -- the same numbers as loops -----------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_loops_and_keep_to_the_proven_bounds(kind):
    seen = set()
    for seed in range(6):
        problem = random_problem(np.random.default_rng([seed, KINDS.index(kind)]), kind)
        for settings in all_settings(problem):
            quantised = problem.predictor.quantise(problem.rows, **settings)
            rng = np.random.default_rng(seed)
            usual = quantised.device_rows(problem.rows[:6])
            assert_naive(quantised, np.vstack([usual, extreme_rows(quantised, rng)]))
            seen.add((settings["inputs"], settings["bits"]))
    assert len(seen) >= 4


X = np.random.default_rng(1).standard_normal((40, 2))
IMAGES = np.random.default_rng(2).standard_normal((20, 36))
BALLS = X[:2], np.ones(2), X[:1]
WINDOWS = WindowMaximum(
    (6, 6), [3, 5], np.random.default_rng(3).standard_normal(34), [0, 1, 0],
    [[2.0, 2.0], [3.0, 3.0], [1.0, 4.0]], [2.0, 3.0, 4.0],
)  # fmt: skip
ODD = {
    "products and missing values": (own_model([Multiply([0], [1]), Compare([0], [0], [2])]), X),
    "balls and missing values": (own_model([Balls(*BALLS, False), Compare([0], [0], [2])]), X),
    "balls and products": (own_model([Balls(*BALLS, False), Multiply([0], [1])]), X),
    "soft balls and products": (own_model([Balls(*BALLS, True), Multiply([0], [1])]), X),
    "balls whose constants dwarf their slopes": (
        own_model([Balls(X[:1], [9.0], X[:1], False)], size=np.array([[1e-17], [1e-17], [1.0]])), X,
    ),
    "balls of hardly any radius": (own_model([Balls(X[:2], [1e-9, 0.0], X[:1], True)]), X),
    "no holes": (own_model([Route(np.empty((0, 2)), np.empty(0), [[Gather([0])]])]), X),
    "no atoms": (own_model([Gather([])]), X),
    "no weights": (own_model([Gather([0, 1])], size=0.0), X),
    "nothing at all": (own_model([Gather([0, 1])], size=0.0, constant=0.0), X),
    "hardly any weights": (own_model([Gather([0])], size=1e-310, constant=0.0), X),
    "large weights": (own_model([Gather([0, 1])], size=1e35), X),
    "large intercepts": (own_model([Gather([0, 1])], constant=1e12), X),
    "one row": (own_model([Gather([0, 1]), Multiply([0], [1])]), X[:1]),
    "rows of zeros": (own_model([Gather([0]), Multiply([0], [1])]), 0.0 * X),
    "large rows": (own_model([Gather([0, 1])]), 1e36 * X),
    "small rows": (own_model([Compare([0], [1e-38], [0])]), 1e-38 * X),
    "rows far from zero": (own_model([Gather([0, 1])]), 1e6 + X),
    "knots beyond the rows": (
        own_model([Hinge([1] * 4, [0, 1, 0, 1], [1, 1, -1, -1], [9, -9, -9, 9])]), X,
    ),
    "hinges without terms": (own_model([Hinge([0, 0, 2], [0, 0], [1.0, -1.0], [1.0, -2, 0])]), X),
    "hinges of unlike factors": (own_model([Hinge([2, 1], [0, 1, 1], [1e-9, 1e9, 0], [0, -1])]), X),
    "thresholds beyond the rows": (own_model([Compare([0, 1, 0], [1e300, -1e9, 0], [0] * 3)]), X),
    "windows and missing values": (own_model([WINDOWS, Compare([0], [0], [2])], 36), IMAGES),
    "windows and products": (own_model([WINDOWS, Multiply([0], [1])], 36), IMAGES),
    "dark images": (own_model([WINDOWS], 36), 0.0 * IMAGES),
    "tables and columns": (own_model([LookUp([0], [[3.0, 1, 2]]), Gather([0])]), np.abs(X).round()),
}  # fmt: skip


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("name", ODD)
def test_odd_models_keep_to_their_bounds_too(name, bits):
    predictor, rows = ODD[name]
    rng = np.random.default_rng(0)
    for given in (rows, np.rint(30.0 * rows)):
        for inputs in fitting_inputs(given) if np.abs(given).max() < 2**15 else ["float"]:
            quantised = predictor.quantise(given, bits=bits, inputs=inputs)
            usual = quantised.device_rows(given[:5])
            assert_naive(quantised, np.vstack([usual, extreme_rows(quantised, rng)]))


def every_pair(dtype):
    limits = np.iinfo(dtype)
    values = np.arange(limits.min, limits.max + 1)
    return np.stack(np.meshgrid(values, values), axis=-1).reshape(-1, 2).astype(dtype)


SMALL = {
    "columns": [Gather([0, 1])],
    "products": [Multiply([0, 0, 1], [0, 1, 1])],
    "stumps": [Compare([0, 1, 0, 1], [3, -7, 3, 0], [0, 0, 1, 2])],
    "hinges": [Hinge([1, 1, 2], [0, 1, 0, 1], [1, -1, 0.5, -1], [5, 5, 3])],
    "balls": [Balls(np.rint(40 * X[:3]), [30.0, 50.0, 70.0], X[:1], False)],
    "soft balls": [Balls(np.rint(40 * X[:3]), [30.0, 50.0, 70.0], X[:1], True)],
    "holes": [Route(np.rint(40 * X[:1]), [40.0], [[Gather([0])], [Multiply([0], [1])]])],
}


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("inputs", ["int8", "uint8"])
@pytest.mark.parametrize("name", SMALL)
def test_no_input_at_all_goes_beyond_the_bound(name, inputs, bits):
    rows = np.clip(np.rint(40.0 * X), 0 if inputs == "uint8" else -128, 126)
    quantised = own_model(SMALL[name]).quantise(rows, bits=bits, inputs=inputs)
    scores = quantised.integers.code_scores(quantised.integers.inputs.codes_of(every_pair(inputs)))
    bound = quantised.bounds()[0]
    assert bound.what == "score"
    assert bound.largest / 200 < np.abs(scores).max() <= bound.largest < 2 ** (bound.bits - 1)


def test_the_bound_of_columns_is_reached():
    quantised = own_model([Gather([0, 1])], constant=0.0).quantise(np.rint(40 * X), inputs="int8")
    weights = quantised.integers.program.segments[0].weights
    worst = np.abs(quantised.integers.program.bias[0]) + 128 * np.abs(weights).sum(axis=0)
    assert quantised.bounds()[0].largest == worst.max()


# -- rounding, saturation and ties -------------------------------------------------------------


def test_rescaling_rounds_half_away_from_zero():
    values = np.array([*range(-70, 71), *(s * (2**k + d) for s in (1, -1) for k in (14, 29)
                                         for d in (-1, 0, 1))])  # fmt: skip
    for bits in (0, 1, 2, 5, 15):
        found = rescale(values, bits)
        for value, own in zip(values.tolist(), found.tolist(), strict=True):
            exact = Fraction(value, 2**bits)
            assert abs(own - exact) <= Fraction(1, 2)
            assert abs(own) >= abs(exact) or abs(own - exact) < Fraction(1, 2)
            assert own == rescaled(value, bits)
        assert np.array_equal(found, -rescale(-values, bits))


def test_floats_are_rounded_as_loops_round_them():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2**32, 4000, dtype=np.uint32).view(np.float32)
    more = np.array([0.0, -0.0, np.inf, -np.inf, *rng.integers(-99, 99, 999) / 4], np.float32)
    x = np.concatenate([np.where(np.isnan(x), np.float32(np.nan), x), more])
    shift = np.concatenate([rng.integers(-120, 121, 4000), rng.integers(-3, 4, len(x) - 4000)])
    found = input_codes.fixed(x, shift).tolist()
    assert found == [fixed(*pair) for pair in zip(x.tolist(), shift.tolist(), strict=True)]


def test_squared_distances_are_exact():
    rng = np.random.default_rng(0)
    for far, d in ((2**7, 5), (2**15, 300), (2**20, 9000)):
        codes, centres = rng.integers(-(2**15), 2**15, (3, d)), rng.integers(-far, far, (2, d))
        exact = [[sum((a - b) ** 2 for a, b in zip(x, c, strict=True)) for c in centres.tolist()]
                 for x in codes.tolist()]  # fmt: skip
        assert squares(codes, centres).tolist() == exact


def test_ties_go_to_the_lowest_class():
    weights = np.array([[1.0, 2.0, 2.0, 0.5]])
    predictor = Predictor(
        ListMap([Gather([0])]), weights, np.zeros(4), np.arange(4), "scores", [1], 1
    )
    rows = np.arange(-5.0, 6.0)[:, None]
    quantised = predictor.quantise(rows, inputs="int8")
    labels = quantised.predict(rows).tolist()
    assert labels == [3] * 5 + [0] + [1] * 5
    one = Predictor(ListMap([Gather([0])]), np.ones((1, 1)), np.zeros(1), np.arange(2),
                    "exponential", [1], 1).quantise(rows, inputs="int8")  # fmt: skip
    assert one.scores(np.zeros((1, 1))).tolist() == [[0]]
    assert one.predict(rows).tolist() == [0] * 6 + [1] * 5


@pytest.mark.parametrize("kind", KINDS)
def test_rows_beyond_the_range_count_as_its_nearest_end(kind):
    for seed in range(4):
        rng = np.random.default_rng([seed, KINDS.index(kind), 7])
        problem = random_problem(rng, kind)
        rows = np.nan_to_num(problem.rows)
        for settings in all_settings(problem):
            quantised = problem.predictor.quantise(problem.rows, **settings)
            inputs = quantised.integers.inputs
            beyond = rows + rng.choice([-1e6, 0.0, 1e6], rows.shape)
            ends = [(inputs.base + n) / inputs.scale for n in (0, inputs.high - inputs.low)]
            clipped = beyond.copy()
            clipped[:, inputs.features] = np.clip(beyond[:, inputs.features], *ends)
            for place, feature in enumerate(inputs.features):
                if place in inputs.asked:  # an unknown category is *other*, not the nearest one
                    beyond[:, feature] = clipped[:, feature] = rows[:, feature]
            assert np.array_equal(quantised.scores(beyond), quantised.scores(clipped))


# -- what does not change a model --------------------------------------------------------------


def changed(predictor, **changes):
    """Return a predictor with other parts."""
    parts = {"map": predictor.map, "weights": predictor.weights, "intercept": predictor.intercept,
             "classes": predictor.classes, "loss": predictor.loss, "widths": predictor.widths,
             "n_features": predictor.n_features} | changes  # fmt: skip
    return Predictor(**parts)


@pytest.mark.parametrize("pool", ["columns", "products", "stumps", "pieces", "hinges"])
@pytest.mark.parametrize("bits", [8, 16])
def test_permuted_classes_have_permuted_scores(pool, bits):
    X, y = fitted_problem(m=300, d=5, k=4)
    predictor = ShareBoostClassifier(4, pool=pool).fit(X, y).predictor_
    order = np.array([2, 0, 3, 1])
    moved = {name: getattr(predictor, name)[..., order] for name in ("weights", "intercept")}
    other = changed(predictor, classes=predictor.classes[order], **moved)
    scores = predictor.quantise(X, bits=bits).scores(X)
    assert np.array_equal(other.quantise(X, bits=bits).scores(X), scores[:, order])


@pytest.mark.parametrize("kind", ["gather", "multiply", "compare", "hinge", "balls"])
def test_permuted_columns_of_the_rows_have_the_same_scores(kind):
    problem = random_problem(np.random.default_rng(3), kind)
    d = problem.predictor.n_features
    order = np.random.default_rng(4).permutation(d)
    place = np.argsort(order)
    [p] = problem.predictor.map.lower()
    moved = {
        "gather": lambda: Gather(place[p.feature]),
        "multiply": lambda: Multiply(place[p.first], place[p.second]),
        "compare": lambda: Compare(place[p.feature], p.value, p.test),
        "hinge": lambda: Hinge(p.length, place[p.feature], p.value, p.knot),
        "balls": lambda: Balls(p.centre[:, order], p.radius, p.origin[:, order], p.soft),
    }[kind]()
    weights = problem.predictor.weights
    if kind == "balls":
        columns = np.concatenate([b * (d + 1) + np.append(order, d) for b in range(len(p.centre))])
        weights = weights[columns]
    other = changed(problem.predictor, map=ListMap([moved]), weights=weights)
    for settings in all_settings(problem):
        one = problem.predictor.quantise(problem.rows, **settings).scores(problem.rows)
        two = other.quantise(problem.rows[:, order], **settings).scores(problem.rows[:, order])
        assert np.array_equal(one, two)


@pytest.mark.parametrize("factor", [0.37, 2.0**-9, 7.0, 1e6])
@pytest.mark.parametrize("pool", ["columns", "products", "stumps", "pieces", "hinges"])
def test_a_model_times_a_constant_is_the_same_model(pool, factor):
    X, y = fitted_problem(m=300, d=5, k=3)
    predictor = ShareBoostClassifier(4, pool=pool, loss="log").fit(X, y).predictor_
    larger = changed(predictor, weights=factor * predictor.weights,
                     intercept=factor * predictor.intercept)  # fmt: skip
    for bits in (8, 16):
        one, two = predictor.quantise(X, bits=bits), larger.quantise(X, bits=bits)
        assert np.array_equal(one.scores(X), two.scores(X))
        assert two.unit == pytest.approx(factor * one.unit, rel=1e-12)


# -- classes that a region never answers -------------------------------------------------------


@pytest.mark.parametrize("bits", [8, 16])
def test_a_class_that_a_region_has_not_seen_is_never_answered_there(bits):
    rng = np.random.default_rng(0)
    inside, outside = [Gather([0, 1])], [Gather([0, 1])]
    map = ListMap([Route(np.zeros((1, 2)), [1.0], [outside, inside])])
    weights = rng.standard_normal((6, 3))
    weights[2, 1] = weights[5, 2] = UNSEEN  # outside never class 1, inside never class 2
    predictor = Predictor(map, weights, np.zeros(3), np.arange(3), "scores", [1] * 6, 2)
    quantised = predictor.quantise(X, bits=bits)
    everywhere = np.array(list(itertools.product(np.linspace(-4, 4, 41), repeat=2)))
    labels = quantised.predict(everywhere)
    near = (everywhere**2).sum(axis=1) <= 0.9
    far = (everywhere**2).sum(axis=1) >= 1.1
    assert set(labels[near]) == {0, 1}
    assert set(labels[far]) == {0, 2}
    assert quantised.bounds()[0].fits
    assert_naive(quantised, extreme_rows(quantised, rng))


def test_holes_whose_models_know_some_classes_only():
    rows, y = blobs(300, classes=3)
    predictor = HolePunchingClassifier(ShareBoostClassifier(2), min_rows=10).fit(rows, y).predictor_
    never = program_of(predictor).never
    quantised = predictor.quantise(rows, bits=16)
    assert np.mean(quantised.predict(rows) == predictor.predict(rows)) > 0.99
    assert never.shape == quantised.integers.program.bias.shape


def test_bounds_hold_without_any_rows():
    """A proof reads tables and ranges only, so it can be made again from a file."""
    problem = random_problem(np.random.default_rng(0), "multiply")
    quantised = problem.predictor.quantise(problem.rows)
    i = quantised.integers
    assert bounds(i.program, i.inputs, i.bits, i.accumulator) == quantised.bounds()
