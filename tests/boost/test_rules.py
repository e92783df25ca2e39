"""Selection rules against brute force from their definitions (section 2.1)."""

import numpy as np
import pytest
from scipy.optimize import minimize

from laconic import ShareBoostClassifier
from laconic.boost.rules import RULES, find_rule
from laconic.correct import Newton
from laconic.penalties import L2
from problems import make_rows, naive_objective, random_problem

PENALTY = L2(1e-3)
NOTHING = np.empty(0, dtype=np.int64)


def corrected(atoms, **kwargs):
    X, y = random_problem(m=90, d=6, seed=4)
    rows = make_rows(X, y, **kwargs)
    rows.reset(atoms)
    start = np.zeros((rows.n_columns, rows.n_outputs))
    solution = Newton(tol=1e-12).solve(rows, PENALTY, start)
    return rows, solution, X, y


def gradients(X, rows):
    return X.T @ -rows.residual_of_all_rows()


def by_hand(name, X, y, rows, solution, atom):
    """The rule's score of one column from its definition, by SciPy where it minimises."""
    x, g = X[:, atom], gradients(X, rows)[atom]
    if name == "gradient":
        return np.abs(g).sum()
    B = np.column_stack([np.ones(len(X)), X[:, rows.atoms]])
    if name == "projection":
        rest = x - B @ np.linalg.lstsq(B, x, rcond=None)[0]
        return np.abs(g).sum() / np.sqrt(np.mean(rest**2))
    free = len(rows.atoms) + 2 if name == "refit" else 1  # weights that may move, the last ones
    weights = np.vstack([solution.weights, np.zeros((1, 3))])
    first = weights[-free:]
    # Beside an intercept, weights of chosen columns are those of centred ones; the new one is raw.
    inside = X[:, rows.atoms] - X[:, rows.atoms].mean(axis=0)
    columns = np.column_stack([inside, x])

    def value(w):
        W = np.vstack([weights[:-free], w.reshape(first.shape)])
        return naive_objective(columns, y, W, True, PENALTY, centred=False)

    start = value(first.ravel())
    if name == "step":
        found = minimize(lambda a: value(a[0] * g), [0.0], method="Nelder-Mead", tol=1e-12)
    else:
        found = minimize(value, first.ravel(), method="BFGS", options={"gtol": 1e-7})
    return start - found.fun


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("atoms", [[], [1], [4, 0]])
def test_choice_and_score_by_brute_force(name, atoms):
    rows, solution, X, y = corrected(atoms)
    rule = find_rule(name, PENALTY, Newton(tol=1e-12))
    choice = rule.choose(rows, solution.weights, np.array(atoms, dtype=np.int64), None)
    others = [a for a in range(6) if a not in atoms]
    scores = {a: by_hand(name, X, y, rows, solution, a) for a in others}
    assert choice.index == max(others, key=scores.__getitem__)
    assert choice.score == pytest.approx(scores[choice.index], rel=1e-5)
    steepest = np.abs(gradients(X, rows)).sum(axis=1).max()
    assert choice.steepest == pytest.approx(steepest, rel=1e-10)


@pytest.mark.parametrize("name", RULES)
def test_forbidden_atoms_are_never_chosen(name):
    rows, solution, *_ = corrected([1])
    rule = find_rule(name, PENALTY, Newton())
    barred = [1]
    for _ in range(5):
        choice = rule.choose(rows, solution.weights, np.array(sorted(barred)), None)
        assert choice.index not in barred
        barred.append(choice.index)
    assert rule.choose(rows, solution.weights, np.arange(6), None).index == -1


@pytest.mark.parametrize("name", RULES)
def test_costs_rank_by_gain_per_cost(name):
    rows, solution, X, y = corrected([1])
    costs = np.array([1.0, 1.0, 3.0, 0.2, 5.0, 2.0])
    rule = find_rule(name, PENALTY, Newton(tol=1e-12))
    choice = rule.choose(rows, solution.weights, np.array([1]), costs)
    scores = np.array([by_hand(name, X, y, rows, solution, a) if a != 1 else 0.0 for a in range(6)])
    gain = (scores / 2) ** 2 if name in ("gradient", "projection") else scores
    assert choice.index == np.argmax(gain / costs)


@pytest.mark.parametrize("name", RULES)
def test_ties_go_to_the_lowest_index(name):
    X, y = random_problem(m=60, d=2)
    X = np.column_stack([0.01 * X[:, 1], X[:, 0], X[:, 0], X[:, 0]])
    model = ShareBoostClassifier(1, rule=name, scale=None).fit(X, y)
    first = ShareBoostClassifier(1, rule=name, scale=None).fit(X[:, :2], y)
    assert model.atoms_ == first.atoms_


@pytest.mark.parametrize("name", ["gradient", "projection"])
def test_groups_score_by_the_sum_over_their_columns(name):
    rows, solution, X, y = corrected([], groups=[0, 1, 0, 2, 1, 2])
    choice = find_rule(name, PENALTY, Newton()).choose(rows, solution.weights, NOTHING, None)
    columns = np.array([by_hand(name, X, y, rows, solution, a) for a in range(6)])
    sums = [columns[[0, 2]].sum(), columns[[1, 4]].sum(), columns[[3, 5]].sum()]
    assert choice.index == np.argmax(sums)
    assert choice.score == pytest.approx(max(sums), rel=1e-6)


def test_projection_bookkeeping_equals_a_fresh_start():
    """Atom by atom, by one rule object or by a new one each time: the same scores."""
    X, y = random_problem(m=90, d=6, seed=4)
    rows = make_rows(X, y)
    old = find_rule("projection", PENALTY, Newton())
    W = np.zeros((1, 3))
    for atom in (3, 1, 5):
        W = Newton().solve(rows, PENALTY, W).weights
        barred = np.array(rows.atoms, dtype=np.int64)
        fresh = find_rule("projection", PENALTY, Newton())
        assert old.choose(rows, W, barred, None) == fresh.choose(rows, W, barred, None)
        rows.append(atom)
        W = np.vstack([W, np.zeros((1, 3))])
    rows.reset([3, 5])
    rows.evaluate(W[:3])
    fresh = find_rule("projection", PENALTY, Newton())
    assert old.choose(rows, W[:3], NOTHING, None) == fresh.choose(rows, W[:3], NOTHING, None)


def test_refit_lowers_the_loss_at_least_as_much_as_any_other_first_choice():
    X, y = random_problem(m=150, d=6, seed=9)
    best = ShareBoostClassifier(1, rule="refit", tol=1e-10).fit(X, y).path_.objectives[1]
    for name in RULES:
        assert best <= ShareBoostClassifier(1, rule=name, tol=1e-10).fit(X, y).path_.objectives[1]
