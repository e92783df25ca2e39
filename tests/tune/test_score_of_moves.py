"""The score of an atom as a function of its parameters, its gradient, and the ascent on it."""

import numpy as np
import pytest

from laconic.model.hinges import HingeAtom, HingesMap
from laconic.model.patches import PatchesMap
from laconic.numeric.threads import Threads
from laconic.tune.ascent import ascend
from laconic.tune.hinges import TunedHinges
from laconic.tune.patches import TunedPatches
from laconic.tune.score import Score, Unexplained, largest_entry, no_size


def rows(n=80, d=5, k=3, seed=0):
    """Return rows, a residual and weights."""
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.5, 2.0, n)
    return rng.standard_normal((n, d)), rng.standard_normal((n, k)) / n, weight / weight.sum()


def naive(x, residual, weight, size):
    """Return the score of a column, one output after the other."""
    centred = x - weight @ x
    return sum(abs(residual[:, k] @ centred) for k in range(residual.shape[1])) / size


def sizes(weight):
    other = np.random.default_rng(9).standard_normal((len(weight), 2))
    ones = np.ones(len(weight))
    every = np.column_stack([ones, other])

    def deviation(x):
        return np.sqrt(weight @ (x - weight @ x) ** 2)

    def rest(x):
        root = np.sqrt(weight)
        left = x - every @ np.linalg.lstsq(every * root[:, None], x * root, rcond=None)[0]
        return np.sqrt(weight @ left**2)

    return {
        "none": (no_size, lambda x: 1.0),
        "max": (largest_entry, np.max),
        "std": (Unexplained(ones[:, None], weight), deviation),
        "projection": (Unexplained(every, weight), rest),
    }


def hinge(X):
    return TunedHinges(HingesMap.of([HingeAtom((0, 2, 3), (1.0, -0.4, 0.7), -0.2)]), X)


def patch(X):
    rng = np.random.default_rng(3)
    given = PatchesMap([6, 6], [0], [3], rng.standard_normal(9), [0], [[2.4, 2.7]], [1.7])
    return TunedPatches(given, Threads(1), places=True)


@pytest.mark.parametrize("name", ["none", "max", "std", "projection"])
def test_the_score_is_that_of_the_column(name):
    X, residual, weight = rows()
    atoms, (size, plain) = hinge(X), sizes(weight)[name]
    seen = Score(atoms, X, residual, weight, 2.5, size, 33).at(atoms.start)
    x = 2.5 * atoms.map(atoms.start).columns(X)[:, 0]
    assert seen.value == pytest.approx(naive(x, residual, weight, plain(x)), rel=1e-10)
    np.testing.assert_allclose(seen.column, x, atol=1e-12)


@pytest.mark.parametrize("name", ["none", "max", "std", "projection"])
@pytest.mark.parametrize("make", [hinge, patch])
def test_slopes_are_finite_differences(make, name):
    X, residual, weight = rows(80, 5 if make is hinge else 36)
    atoms = make(X)
    score = Score(atoms, X, residual, weight, 0.7, sizes(weight)[name][0], 33)
    found = score.slopes(atoms.start, score.at(atoms.start))
    step = 1e-6 if make is hinge else 3e-3  # patches are computed in single precision
    for number, array in enumerate(atoms.start):
        expected = np.zeros_like(array)
        for at in np.ndindex(array.shape):
            ends = []
            for sign in (1, -1):
                moved = [p.copy() for p in atoms.start]
                moved[number][at] += sign * step
                ends.append(score.at(moved).value)
            expected[at] = (ends[0] - ends[1]) / (2 * step)
        far = 1e-4 if make is hinge else 0.03
        np.testing.assert_allclose(found[number], expected, atol=far * np.abs(expected).max())


@pytest.mark.parametrize("make", [hinge, patch])
def test_the_gradient_along_what_is_allowed(make):
    """Its products with any step are the changes of a function of the settled parameters."""
    atoms, rng = make(rows()[0]), np.random.default_rng(5)
    factors = [rng.standard_normal(array.shape) for array in atoms.start]
    found = atoms.along(atoms.start, factors)  # of a linear function

    def value(parameters):
        return sum((f * p).sum() for f, p in zip(factors, atoms.settled(parameters), strict=True))

    for _ in range(5):
        step = [rng.standard_normal(array.shape) for array in atoms.start]
        ends = [
            value([p + e * d for p, d in zip(atoms.start, step, strict=True)])
            for e in (1e-6, -1e-6)
        ]
        expected = sum((g * d).sum() for g, d in zip(found, step, strict=True))
        assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", ["max", "std", "projection"])
def test_a_larger_column_has_no_larger_score(name):
    X, residual, weight = rows()
    atoms, size = hinge(X), sizes(weight)[name][0]
    small, large = (
        Score(atoms, X, residual, weight, f, size, 80).at(atoms.start) for f in (1.0, 7.0)
    )
    assert large.value == pytest.approx(small.value)


def test_a_constant_column_has_no_score():
    X, residual, weight = rows()
    atoms = TunedHinges(HingesMap.of([HingeAtom((0,), (1.0,), 99.0)]), X)
    for size in (largest_entry, Unexplained(np.ones((80, 1)), weight)):
        score = Score(atoms, X, residual, weight, 1.0, size, 1000)
        assert score.at(atoms.start).value == -np.inf


class Watched:
    """A score that keeps what it has answered."""

    def __init__(self, score):
        self.score, self.values = score, []

    def at(self, parameters):
        seen = self.score.at(parameters)
        self.values.append(seen.value)
        return seen

    def slopes(self, parameters, seen):
        return self.score.slopes(parameters, seen)


@pytest.mark.parametrize("name", ["none", "max", "std", "projection"])
def test_the_score_never_falls(name):
    for seed in range(5):
        X, residual, weight = rows(seed=seed)
        atoms = hinge(X)
        score = Score(atoms, X, residual, weight, 1.0, sizes(weight)[name][0], 33)
        watched = Watched(score)
        parameters, seen = ascend(watched, atoms)
        assert seen.value == score.at(parameters).value == max(watched.values)
        assert seen.value > watched.values[0]
        assert np.linalg.norm(parameters[0]) == pytest.approx(1.0)


def test_an_ascent_ends_where_nothing_is_higher():
    """Two features: brute force over all angles and knots of a disc's residual."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (1500, 2))
    inside = np.hypot(*(X - [0.2, -0.1]).T) < 0.6
    residual = ((inside - inside.mean()) / len(X))[:, None]
    weight = np.full(len(X), 1 / len(X))
    given = HingesMap.of([HingeAtom((0, 1), (1.0, 0.3), 0.4)])
    atoms = TunedHinges(given, X)
    score = Score(atoms, X, residual, weight, 1.0, no_size, 2000)
    parameters, seen = ascend(score, atoms)

    def grid(angles, knots):
        found = [
            (score.at([np.array([[np.cos(a), np.sin(a)]]), np.array([[b]])]).value, a, b)
            for a in angles
            for b in knots
        ]
        return max(found)

    angle, knot = np.arctan2(*parameters[0][0, ::-1]), parameters[1].item()
    near = grid(angle + np.linspace(-0.3, 0.3, 31), knot + np.linspace(-0.3, 0.3, 31))
    assert near[0] <= seen.value * 1.002
    every = grid(np.linspace(-np.pi, np.pi, 60), np.linspace(-2, 2, 41))
    assert seen.value >= 0.95 * every[0]
    assert seen.value > 1.02 * score.at(atoms.start).value


def test_one_feature_has_its_best_knot():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (400, 1))
    residual = ((X[:, 0] > 0.35) - 0.3)[:, None] / 400
    weight = np.full(400, 1 / 400)
    atoms = TunedHinges(HingesMap.of([HingeAtom((0,), (1.0,), 0.0)]), X)
    for size in (no_size, largest_entry):
        score = Score(atoms, X, residual, weight, 1.0, size, 1000)
        _, seen = ascend(score, atoms)
        best = max(
            score.at([np.array([[1.0]]), np.array([[b]])]).value
            for b in np.linspace(-1.7, 1.7, 800)
        )
        assert seen.value >= best * (1 - 1e-3)


@pytest.mark.parametrize("name", ["none", "max", "std", "projection"])
def test_a_row_of_weight_two_is_the_row_twice(name):
    X, residual, weight = rows()
    twice = np.r_[np.arange(80), 3, 5]
    heavy = weight.copy()
    heavy[[3, 5]] *= 2
    residuals = residual.copy()
    residuals[[3, 5]] *= 2
    atoms = hinge(X)
    one = Score(atoms, X, residuals, heavy / heavy.sum(), 1.0, size_of(name, heavy), 80)
    other_weight = weight[twice] / weight[twice].sum()
    size = size_of(name, weight[twice], twice)
    other = Score(atoms, X[twice], residual[twice], other_weight, 1.0, size, 82)
    found, expected = other.at(atoms.start), one.at(atoms.start)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    for a, b in zip(
        other.slopes(atoms.start, found), one.slopes(atoms.start, expected), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def size_of(name, weight, which=slice(None)):
    """Return a size on some of 80 rows. Weights need not sum to one."""
    if name in ("none", "max"):
        return no_size if name == "none" else largest_entry
    columns = np.ones((80, 1))
    if name == "projection":
        columns = np.hstack([columns, np.random.default_rng(9).standard_normal((80, 2))])
    return Unexplained(columns[which], weight / weight.sum())
