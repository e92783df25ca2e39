"""Losses of tensors: the answers of NumPy to rounding, and derivatives by finite differences."""

import numpy as np
import pytest
import torch

from laconic.losses import BINARY_LOSSES, LINKS, LOSSES, decide

EVERY = [make() for make in (*LOSSES.values(), *BINARY_LOSSES.values())]
BOTH = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["single", "double"])
ALL = pytest.mark.parametrize("loss", EVERY, ids=lambda loss: loss.name)


def problem(loss, dtype, n_rows=50):
    rng = np.random.default_rng(5)
    k = 4 if loss.name in LOSSES else 1
    y = rng.integers(max(k, 2), size=n_rows)
    scores = (2 * rng.standard_normal((k, n_rows))).astype(dtype)
    weight = (rng.random(n_rows) / n_rows).astype(dtype)
    return scores, y, weight, rng.standard_normal((k, n_rows)).astype(dtype)


def answers(loss, scores, y, weight, direction, empty_like):
    state = empty_like(scores)
    target = loss.targets(y, len(scores))
    value = loss.evaluate(scores, target, weight, state)
    residual = loss.residual(target, weight, state)
    curved = loss.curve(weight, state, direction)
    return value, residual, curved, loss.curvature(weight, state)


@ALL
@BOTH
def test_tensors_give_the_answers_of_arrays(loss, dtype):
    arrays = problem(loss, dtype)
    known = answers(loss, *arrays, np.empty_like)
    found = answers(loss, *map(torch.from_numpy, arrays), torch.empty_like)
    assert found[0].dtype == torch.float64
    assert found[0].shape == ()
    assert all(own.numpy().dtype == dtype for own in found[1:])
    rounding = 64 * np.finfo(dtype).eps
    for own, other in zip(found, known, strict=True):
        np.testing.assert_allclose(own.numpy(), other, rtol=rounding, atol=rounding)


@ALL
def test_derivatives_by_finite_differences(loss):
    scores, y, weight, direction = map(torch.from_numpy, problem(loss, np.float64))
    target, h = loss.targets(y, len(scores)), 1e-6

    def at(moved):
        state = torch.empty_like(moved)
        return loss.evaluate(moved, target, weight, state), state

    _, state = at(scores)
    value = [float(at(scores + s * h * direction)[0]) for s in (1, -1)]
    slope = -float((loss.residual(target, weight, state) * direction).sum())
    assert slope == pytest.approx((value[0] - value[1]) / (2 * h), abs=1e-8)
    ends = [loss.residual(target, weight, at(scores + s * h * direction)[1]) for s in (-1, 1)]
    bend = loss.curve(weight, state, direction)
    np.testing.assert_allclose(bend, (ends[0] - ends[1]) / (2 * h), atol=1e-8)


@pytest.mark.parametrize("name", [name for name in LINKS if hasattr(LINKS[name], "probabilities")])
def test_probabilities_and_decisions_are_those_of_arrays(name):
    link = LINKS[name]()
    k = 1 if name in BINARY_LOSSES else 3
    scores = 3 * np.random.default_rng(1).standard_normal((40, k))
    tensors = torch.from_numpy(scores)
    np.testing.assert_allclose(link.probabilities(tensors), link.probabilities(scores), rtol=1e-13)
    np.testing.assert_array_equal(decide(tensors), decide(scores))


@ALL
def test_any_finite_score_is_safe(loss):
    _, y, weight, _ = map(torch.from_numpy, problem(loss, np.float64))
    k = loss.n_outputs(4) if loss.name in LOSSES else 1
    scores = torch.full((k, len(y)), 1e60, dtype=torch.float64)
    scores[:, ::2] *= -1
    state = torch.empty_like(scores)
    target = loss.targets(y, k)
    assert torch.isfinite(loss.evaluate(scores, target, weight, state))
    assert torch.isfinite(loss.residual(target, weight, state)).all()
