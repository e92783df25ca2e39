"""Newton steps among kinks where columns are alike and the penalty is tiny."""

import cvxpy as cp
import numpy as np
import pytest

from laconic.correct import Newton, Orthant
from laconic.losses import ExponentialLoss
from laconic.numeric.threads import Threads
from laconic.penalties import L1, L2
from laconic.pools import Columns
from laconic.rows.limits import Limits
from laconic.rows.rows import rows_in_memory
from problems import make_rows


def alike(seed, m=60, d=3, k=3):
    """Columns, and what the twin of the first differs from it by, up to a factor."""
    rng = np.random.default_rng(seed)
    X, z = rng.standard_normal((m, d)), rng.standard_normal(m)
    score = np.column_stack([X, z]) @ rng.standard_normal((d + 1, k))
    y = np.argmax(score + rng.gumbel(size=(m, k)), axis=1)
    y[:k] = np.arange(k)
    return X, z, y


def second_solver(X, z, apart, y, l1):
    """The optimum by an interior-point method.

    Its variables are weights U of the columns and v of z alone: the twin of the first column has
    the weight v / apart, and the first has the rest of its own. So all are of one size.
    """
    k = int(y.max()) + 1
    U, v, b = cp.Variable((X.shape[1], k)), cp.Variable((1, k)), cp.Variable((1, k))
    twin = v / apart if apart else 0 * v
    size = cp.sum(cp.abs(U[1:])) + cp.sum(cp.abs(U[:1] - twin)) + cp.sum(cp.abs(twin))
    F = X @ U + np.ones((len(y), 1)) @ b
    F = F + z[:, None] @ v if apart else F
    own = cp.sum(cp.multiply(np.eye(k)[y], F), axis=1)
    loss = cp.sum(cp.log_sum_exp(F, axis=1) - own) / len(y)
    problem = cp.Problem(cp.Minimize(loss + l1 * size))
    return problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-9, tol_gap_abs=1e-9, tol_feas=1e-9)


@pytest.mark.parametrize("face", [0, 1000], ids=["products", "hessian"])
@pytest.mark.parametrize("apart", [0.0, 1e-4, 1e-3])
@pytest.mark.parametrize("seed", range(3))
def test_columns_that_are_alike_do_not_hold_a_solve_up(seed, apart, face):
    """A Hessian that rows do not write down is put together where steps get stuck at kinks."""
    X, z, y = alike(seed)
    both = np.column_stack([X, X[:, 0] + apart * z])
    rows = make_rows(both, y, loss="log", limits=Limits(face=face))
    rows.reset(range(4))
    best = second_solver(X, z, apart, y, 1e-6)
    rng = np.random.default_rng(seed)
    shape = rows.n_columns, rows.n_outputs
    for start in (np.zeros(shape), rng.standard_normal(shape) * (rng.random(shape) < 0.5)):
        solution = Orthant().solve(rows, L1(1e-6), start)
        assert solution.certificate.converged
        assert solution.value == pytest.approx(best, rel=1e-7)
        assert solution.certificate.evaluations < 100


@pytest.mark.parametrize("corrector", [Orthant(), Newton()], ids=["orthant", "newton"])
def test_a_start_at_saturated_weights_is_left(corrector):
    """From weights where the exponential loss is 1e33, steps would gain only rounding errors."""
    X = np.random.default_rng(0).standard_normal((80, 3))
    y = (X[:, 0] + 0.5 * np.random.default_rng(1).standard_normal(80) > 0).astype(int)
    weight = np.full(80, 1 / 80)
    bound = Columns(scale=None).bind(X, weight, Threads(1))
    rows = rows_in_memory([bound], ExponentialLoss(), y, weight, 1, Threads(1))
    for atom in range(3):
        rows.append(atom)
    penalty = L1(1e-3) if isinstance(corrector, Orthant) else L2(1e-3)
    far = corrector.solve(rows, penalty, np.full((4, 1), -900.0))
    near = corrector.solve(rows, penalty, np.zeros((4, 1)))
    assert far.certificate.converged
    assert np.allclose(far.weights, near.weights, rtol=0, atol=1e-12)
    assert far.certificate.evaluations <= near.certificate.evaluations + 2
