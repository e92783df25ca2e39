"""Predicted changes are the minima of the quadratic model, found by solving it whole."""

from dataclasses import replace

import numpy as np
import pytest
from subset_problems import make

from laconic.subset.contract import TOLERANCE, Move
from laconic.subset.moves import Moves

SUPPORT = (1, 4, 6)


def quadratic(problem, fit):
    """Slope, with the l1 term of the support, and curvature over all columns and the intercept."""
    n = problem.n_columns
    S = problem.matrix(range(n))
    w = np.zeros(len(S))
    w[list(fit.support)] = fit.weights[: len(fit.support)]
    w[n:] = fit.weights[len(fit.support) :]
    _, first, second = problem.derivatives(S, w)
    slope = S @ first
    slope[list(fit.support)] += problem.l1 * np.sign(w[list(fit.support)])
    return w, slope, (S * second) @ S.T


def change(problem, fit, out, into):
    """Least change of the model over the weights that may move, and the weights there.

    The column that comes in may have either sign, or the positive one only, or stay at zero.
    """
    w, slope, H = quadratic(problem, fit)
    n = problem.n_columns
    best = np.inf, w
    for sign in (0.0,) if into < 0 else (0.0, 1.0) if problem.nonnegative else (0.0, 1.0, -1.0):
        moving = [j for j in fit.support if j != out]
        moving += [into] * (sign != 0) + list(range(n, len(w)))
        g = slope.copy()
        if into >= 0:
            g[into] += sign * problem.l1
        fixed = np.zeros(len(w))
        if out >= 0:
            fixed[out] = -w[out]
        d = fixed.copy()
        d[moving] -= np.linalg.lstsq(H[np.ix_(moving, moving)], (g + H @ fixed)[moving])[0]
        if into >= 0 and d[into] * sign < 0:
            continue
        value = g @ d + 0.5 * d @ H @ d
        if value < best[0]:
            best = value, w + d
    return best


@pytest.fixture(params=[(loss, p, i) for loss in ("exponential", "logistic") for p in (0, 1)
                        for i in (0, 1)])  # fmt: skip
def case(request):
    loss, nonnegative, intercept = request.param
    problem = make(7, loss, 0.003, False, bool(intercept), n_rows=200)
    if nonnegative:  # turn the columns round that would have weight zero
        turn = np.ones(problem.n_columns, dtype=int)
        turn[list(SUPPORT)] = np.sign(problem.fit(SUPPORT).weights[:3])
        columns = problem.columns * turn
        problem = replace(problem, columns=columns, nonnegative=True)
    fit = problem.fit(SUPPORT)
    assert np.all(fit.weights != 0)
    return problem, fit, Moves(problem, fit)


def test_drops(case):
    problem, fit, moves = case
    found = moves.drops(9)
    assert sorted(m.out for m in found) == [0, 1, 2]
    for move in found:
        expected = change(problem, fit, SUPPORT[move.out], -1)[0]
        np.testing.assert_allclose(move.change, expected, rtol=1e-6, atol=TOLERANCE)


def test_swaps(case):
    problem, fit, moves = case
    outside = sorted(set(range(problem.n_columns)) - set(SUPPORT))
    for move in moves.swaps(9):
        all_changes = [change(problem, fit, SUPPORT[move.out], j)[0] for j in outside]
        np.testing.assert_allclose(move.change, min(all_changes), rtol=1e-6, atol=1e-12)
        at_it = all_changes[outside.index(move.into)]
        np.testing.assert_allclose(move.change, at_it, rtol=1e-6, atol=1e-12)


def test_adds_are_ranked_by_the_model_where_steps_have_no_closed_form(case):
    problem, fit, moves = case
    found = {m.into: m.change for m in moves.adds(9)}
    assert not set(found) & set(SUPPORT)
    for j, predicted in found.items():
        expected = change(problem, fit, -1, j)[0]
        rtol = 1e-6 if problem.loss == "logistic" else 0.2
        np.testing.assert_allclose(predicted, expected, rtol=rtol, atol=1e-12)


def test_refits_start_at_the_minimum_of_the_model(case):
    problem, fit, moves = case
    n = problem.n_columns
    for move in (Move(0.0, 1, -1), *moves.swaps(1), *moves.adds(1)):
        out = SUPPORT[move.out] if move.out >= 0 else -1
        whole = change(problem, fit, out, move.into)[1]
        if problem.nonnegative:
            whole[:n] = np.maximum(whole[:n], 0.0)
        columns = [*SUPPORT, *range(n, len(whole))]
        if move.out < 0:
            columns.append(move.into)
        else:
            columns[move.out : move.out + 1] = [move.into] if move.into >= 0 else []
        expected = whole[columns]
        np.testing.assert_allclose(moves.start(move), expected, rtol=1e-5, atol=1e-7)


def test_a_move_ends_at_the_fit_of_its_support(case):
    problem, _, moves = case
    for move in (*moves.drops(3), *moves.swaps(3), *moves.adds(3)):
        found = moves.make(move)
        kept = [j for s, j in enumerate(SUPPORT) if s != move.out]
        kept += [move.into] if move.into >= 0 else []
        expected = problem.fit(tuple(sorted(kept)))
        assert found.support == expected.support
        np.testing.assert_allclose(found.value, expected.value, rtol=1e-9)
        np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-3, atol=1e-5)


def test_a_target_out_of_reach_ends_a_fit_early(case):
    _, fit, moves = case
    move = moves.drops(1)[0]
    whole, cut = moves.make(move), moves.make(move, 0.5 * fit.value)
    assert cut.value >= whole.value > 0.5 * fit.value
    reached = moves.make(move, whole.value * 1.01)
    np.testing.assert_allclose(reached.value, whole.value, rtol=1e-9)


def test_dropping_is_ranked_by_its_true_loss():
    problem = make(7, n_rows=400)
    fit = problem.fit(tuple(range(problem.n_columns)))
    used = tuple(np.flatnonzero(fit.weights > 0).tolist())
    fit = problem.fit(used)
    found = sorted(Moves(problem, fit).drops(len(used)), key=lambda move: move.out)
    true = [problem.fit(used[:s] + used[s + 1 :]).value - fit.value for s in range(len(used))]
    assert np.argmin([move.change for move in found]) == np.argmin(true)
    np.testing.assert_allclose([move.change for move in found], true, rtol=0.5)
