"""Joint descent: its gradients beside finite differences, and what it reaches."""

import numpy as np
import pytest
from test_tuned_patches import images, some_patches, work

from laconic.losses import find_loss
from laconic.penalties import L2, SmoothL1
from laconic.tune.batches import Batch, Batches
from laconic.tune.descent import Frame, TunedModel, descend, loss_and_slopes


class Waves:
    """Columns sin⟨θ_j, x⟩, in double precision."""

    def __init__(self, start):
        self.start, self.units = [start], [1.0]

    def values(self, parameters, X):
        angles = parameters[0] @ X.T
        return np.sin(angles), (angles, X)

    def slopes(self, kept, pull):
        angles, X = kept
        return [(pull * np.cos(angles)) @ X]

    def settled(self, parameters):
        return parameters


def problem(loss="margin", penalty=None, k=3, n=80):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4))
    atoms = Waves(rng.standard_normal((5, 4)))
    loss = find_loss(loss)
    codes = rng.integers(0, k, n)
    weight = rng.uniform(0.5, 2.0, n)
    weight /= weight.sum()
    outputs = loss.n_outputs(k)
    model = TunedModel(atoms.start, rng.standard_normal((5, outputs)), rng.standard_normal(outputs))
    frame = Frame(
        rng.uniform(0.3, 1.0, 5), rng.uniform(0, 1, 5), loss, penalty or L2(0.1), intercept=True
    )
    return atoms, model, frame, Batch(X, codes, weight)


@pytest.mark.parametrize(
    ("loss", "k", "penalty"),
    [("margin", 3, L2(0.1)), ("log", 3, SmoothL1(0.1, 5.0)), ("logistic", 2, L2(0.0))],
)
def test_gradients_are_finite_differences(loss, k, penalty):
    atoms, model, frame, batch = problem(loss, penalty, k)
    _, gradients = loss_and_slopes(atoms, model, frame, batch)
    parts = [*model.parameters, model.weights, model.base]
    rng, step = np.random.default_rng(3), 1e-5
    for number, gradient in enumerate(gradients):
        along = rng.standard_normal(gradient.shape)
        ends = []
        for sign in (1, -1):
            moved = list(parts)
            moved[number] = parts[number] + sign * step * along
            *parameters, weights, base = moved
            given = TunedModel(parameters, weights, base)
            value = loss_and_slopes(atoms, given, frame, batch)[0]
            ends.append(value + frame.penalty.value(weights))
        found = (ends[0] - ends[1]) / (2 * step)
        assert found == pytest.approx(float((gradient * along).sum()), rel=1e-6, abs=1e-9)


def test_descent_finds_a_template_again():
    """Labels come from one patch. A neighbouring template is tuned until it separates them."""
    given = some_patches(4, sizes=(3,), template=(0,))
    given.sigma[:] = np.inf
    X = images(5, 1000)
    truth = work(type(given)(**given.arrays()))
    values = truth.values(truth.start, X)[0][0]
    codes = (values > np.median(values)).astype(np.int64)
    rng = np.random.default_rng(6)
    start = truth.settled([truth.start[0] + 0.25 * rng.standard_normal((1, 9))])
    atoms = work(truth.map(start))
    weight = np.full(1000, 1e-3)
    frame = Frame(np.ones(1), np.array([values.mean()]), find_loss("log"), L2(1e-4), True)
    seen = []

    def told(epoch, model, value):
        seen.append(value)
        return False

    model = TunedModel(atoms.start, np.array([[-1.0, 1.0]]), np.zeros(2))
    found = descend(atoms, model, frame, Batches(X, codes, weight, 50, 0), 30, 0.05, told)
    assert len(seen) == 30
    assert seen[-1] < 0.3 * seen[0]
    near = [float((p[0] * truth.start[0][0]).sum()) for p in (start, found.parameters)]
    assert near[1] > 0.97 > near[0]


def test_every_row_comes_once_in_an_epoch():
    X, codes, weight = np.arange(10)[:, None], np.arange(10), np.arange(10) / 45
    batches = Batches(X, codes, weight, 4, 3)
    seen = list(batches.epoch(2))
    assert [len(b.codes) for b in seen] == [4, 4, 2]
    assert batches.n_batches == 3
    order = np.concatenate([b.codes for b in seen])
    assert sorted(order) == list(range(10))
    for b in seen:
        np.testing.assert_array_equal(b.X[:, 0], b.codes)
        np.testing.assert_allclose(b.weight, b.codes / 45 * 10 / len(b.codes))
    again = np.concatenate([b.codes for b in Batches(X, codes, weight, 4, 3).epoch(2)])
    np.testing.assert_array_equal(order, again)
    assert (np.concatenate([b.codes for b in batches.epoch(3)]) != order).any()
