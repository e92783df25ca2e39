"""Steps that a device finds are those of conjugate gradients in the memory of the processor."""

from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from laconic.correct import Newton  # noqa: E402
from laconic.correct.conjugate import FORCING, conjugate_gradients  # noqa: E402
from laconic.correct.objective import Objective  # noqa: E402
from laconic.correct.steps import StepsHere, StepsThere, steps_of  # noqa: E402
from laconic.device.pool import device_pool  # noqa: E402
from laconic.device.shard import on_device  # noqa: E402
from laconic.losses import BINARY_LOSSES, LOSSES, find_loss  # noqa: E402
from laconic.numeric.threads import Threads  # noqa: E402
from laconic.penalties import L2, SmoothL1, SmoothLinfL1  # noqa: E402
from laconic.pools import Columns  # noqa: E402
from laconic.rows.rows import Rows  # noqa: E402
from problems import random_problem  # noqa: E402


def rows_there(loss="log", intercept=True, m=150, d=6, dtype=np.float64, device="cpu"):
    X, y = random_problem(m=m, d=d, k=3)
    loss = find_loss(loss)
    y = y if loss.name in LOSSES else (y > 0).astype(int)
    X, y = (torch.tensor(given, device=device) for given in (X.astype(dtype), y.astype(np.int64)))
    weight = torch.full((m,), 1 / m, dtype=torch.float64, device=device)
    pool = device_pool(Columns(), X, weight, Threads(1))
    rows = Rows(on_device(pool, loss, y, weight, loss.n_outputs(int(y.max()) + 1)), intercept)
    rows.reset(range(d))
    return rows


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", [L2(1e-3), L2(0.0), SmoothL1(1e-2, 10.0)])
@pytest.mark.parametrize("loss", [*LOSSES, *BINARY_LOSSES])
def test_a_step_is_that_of_the_processor(loss, penalty, intercept):
    rows = rows_there(loss, intercept)
    W = 0.3 * np.random.default_rng(0).standard_normal((rows.n_columns, rows.n_outputs))
    objective = Objective(rows, penalty)
    W = objective.centre(W)
    _, gradient = objective.evaluate(W)
    found = steps_of(objective)
    assert isinstance(found, StepsThere)
    found.renew(W)
    apply, curve = objective.preconditioner(W), partial(objective.curve, W)
    bend, there = objective.penalty_curvature(W), rows.steps()
    for forcing in (FORCING, 1e-4):
        expected, n = conjugate_gradients(curve, apply, -gradient, forcing)
        given = bend, -gradient, objective.centred, forcing, 1000
        step, products = there.find(*given)
        assert products == n
        np.testing.assert_allclose(step, expected, rtol=1e-8, atol=1e-10)
        assert np.array_equal(step, there.find(*given)[0])
    assert n > 1 or rows.n_outputs == 1  # with one output the preconditioner is exact
    assert objective.products >= n


def test_without_curvature_the_first_direction_is_the_step():
    rows = rows_there("squared_hinge", intercept=False)
    steps = rows.steps()
    rows.evaluate(np.zeros((6, 1)))
    steps.renew(np.ones((6, 1)), 0, 1e-16)
    bend = np.full((6, 1), -100.0)
    r = np.ones((6, 1))
    step, products = steps.find(bend, r, False, FORCING, 100)
    assert products == 1
    assert np.array_equal(step, steps._iteration.first.numpy())


def test_few_remembered_residuals_still_solve():
    rows = rows_there()
    objective = Objective(rows, L2(1e-2))
    W = np.zeros((rows.n_columns, rows.n_outputs))
    _, gradient = objective.evaluate(W)
    steps = rows.steps()
    steps.renew(objective.penalty_curvature(W), 1, 1e-16)
    step, _ = steps.find(objective.penalty_curvature(W), -gradient, True, 1e-6, 2)
    left = objective.curve(W, step) + gradient
    assert np.linalg.norm(left) < 1e-4 * np.linalg.norm(gradient)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("penalty", [L2(1e-3), SmoothL1(1e-3, 20.0), SmoothLinfL1(1e-3, 20.0)])
def test_a_correction_is_that_of_the_processor(penalty, dtype):
    rows = rows_there(dtype=dtype)
    start = np.zeros((rows.n_columns, rows.n_outputs))
    there = Newton(tol=1e-10).solve(rows, penalty, start)
    rows.steps = lambda: None
    here = Newton(tol=1e-10).solve(rows, penalty, start)
    assert there.certificate.converged
    assert there.value == pytest.approx(here.value, rel=1e-6)
    np.testing.assert_allclose(there.weights, here.weights, atol=3e-4)


def test_penalties_without_a_diagonal_are_solved_here():
    objective = Objective(rows_there(), SmoothLinfL1(1e-3, 20.0))
    assert isinstance(steps_of(objective), StepsHere)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_may_be_replaced_between_steps(dtype, device):
    rows = rows_there(dtype=dtype, device=device)
    for atoms in ([0, 1, 2], [0, 1, 3], [0, 1], [*range(6)], [0, 1, 3], [5, 4, 3, 2, 1, 0]):
        rows.reset(atoms)
        start = np.zeros((rows.n_columns, rows.n_outputs))
        there = Newton(tol=1e-12).solve(rows, L2(1e-3), start)
        fresh = rows_there(dtype=dtype)
        fresh.reset(atoms)
        fresh.steps = lambda: None
        here = Newton(tol=1e-12).solve(fresh, L2(1e-3), start)
        np.testing.assert_allclose(there.weights, here.weights, atol=3e-4)
