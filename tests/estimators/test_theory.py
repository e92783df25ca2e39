"""The paper's theorems and worked examples (section 4, appendices B and C)."""

from itertools import pairwise

import cvxpy as cp
import numpy as np
import pytest

from laconic import ShareBoostClassifier
from laconic.boost.path import rounds_needed
from laconic.correct import Newton
from laconic.penalties import L2
from problems import make_rows, random_problem


def paper_model(max_atoms, **kwargs):
    """Algorithm 1 as written: no intercept, no penalty, columns as they are."""
    kwargs = {"fit_intercept": False, "alpha": 0.0, "scale": None, "tol": 1e-9, **kwargs}
    return ShareBoostClassifier(max_atoms, **kwargs)


def training_loss(X, y, W):
    """L(W) of eq. (3); W has one column per class."""
    F = X @ W
    shift = (np.arange(W.shape[1]) != y[:, None]).astype(float)
    return np.log(np.exp(shift + F - F[np.arange(len(y)), y][:, None]).sum(axis=1)).mean()


def norm(W):
    """‖W‖_{∞,1}: the sum over columns of the largest weight."""
    return np.abs(W).max(axis=1).sum()


@pytest.mark.parametrize("seed", range(6))
def test_lemma_2_smoothness_in_one_column(seed):
    rng = np.random.default_rng(seed)
    X, y = random_problem(seed=seed, m=60, d=5)
    rows = make_rows(X, y, intercept=False)
    for atom in range(5):
        rows.append(atom)
    W = 2 * rng.standard_normal((5, 3))
    value, gradient = rows.evaluate(W)
    for r in range(5):
        u = rng.standard_normal(3)
        moved = W.copy()
        moved[r] -= u
        bound = value - gradient[r] @ u + np.abs(u).max() ** 2
        assert training_loss(X, y, moved) <= bound + 1e-12


@pytest.mark.parametrize("seed", range(8))
def test_lemma_3_every_round_makes_the_promised_progress(seed):
    """L(t) − L(t+1) ≥ (L(t) − L(W*))² / (4 ‖W*‖²) while L(t) > L(W*)."""
    X, y = random_problem(seed=seed, m=100, d=12, k=4)
    rival_columns = np.random.default_rng(seed).choice(12, 5, replace=False)
    rows = make_rows(X, y, intercept=False)
    rows.reset(rival_columns.tolist())
    rival = Newton(tol=1e-12).solve(rows, L2(0.0), np.zeros((5, 4)))
    losses = paper_model(12).fit(X, y).path_.losses
    for before, after in pairwise(losses):
        if before > rival.loss:
            promised = (before - rival.loss) ** 2 / (4 * norm(rival.weights) ** 2)
            assert before - after >= promised - 1e-9


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("size", "epsilon"), [(1.0, 0.5), (1.5, 0.6), (2.0, 1.0)])
def test_theorem_2_rounds_reach_any_rival(seed, size, epsilon):
    rng = np.random.default_rng(100 + seed)
    X, y = random_problem(seed=seed, m=80, d=40, k=3)
    rounds = rounds_needed(size, epsilon)
    assert rounds == int(np.ceil(4 * size**2 / epsilon)) < 40
    reached = paper_model(rounds).fit(X, y).path_.losses[-1]
    for sparsity in (1, 3, 40):
        rival = np.zeros((40, 3))
        support = rng.choice(40, sparsity, replace=False)
        towards = X[:, support].T @ (np.eye(3)[y] - 1 / 3)
        rival[support] = towards + 0.1 * rng.standard_normal(towards.shape)
        rival *= size / norm(rival)
        assert reached <= training_loss(X, y, rival) + epsilon


@pytest.mark.parametrize("seed", range(5))
def test_bound_from_lemma_3_holds_against_the_best_rival_of_that_norm(seed):
    """No W* with ‖W*‖_{∞,1} ≤ s does better than the bound says, found by CVXPY."""
    X, y = random_problem(seed=seed, m=50, d=6)
    model = ShareBoostClassifier(2, scale=None).fit(X, y)
    for s in (0.5, 2.0, 10.0):
        W = cp.Variable((7, 3))
        F = np.column_stack([np.ones(50), X]) @ W
        hot = np.eye(3)[y]
        loss = (
            cp.sum(cp.log_sum_exp(F + 1 - hot, axis=1) - cp.sum(cp.multiply(hot, F), axis=1)) / 50
        )
        best = cp.Problem(cp.Minimize(loss), [cp.sum(cp.max(cp.abs(W), axis=1)) <= s]).solve()
        for size in (0, 1, 2):
            bound = model.at(size).excess_loss_bound(s)
            assert model.path_[size].loss - best <= bound + 1e-7


def binary(k):
    """bin(y) ∈ {±1}^{log₂ k} for every class."""
    bits = int(np.log2(k))
    return np.array([[1.0 if (c >> b) & 1 else -1.0 for b in range(bits)] for c in range(k)])


def first_example(k):
    """x = [bin(y), 2 log(k) e^y], one row per class."""
    return np.column_stack([binary(k), 2 * np.log(k) * np.eye(k)]), np.arange(k)


class TestFirstExample:
    """Shared features: log₂ k of them against the k of l1 and l2 regularisation."""

    @pytest.mark.parametrize("k", [16, 64, 256])
    @pytest.mark.parametrize("scale", [None, "max"])
    def test_shareboost_finds_the_shared_solution(self, k, scale):
        X, y = first_example(k)
        bits = int(np.log2(k))
        model = ShareBoostClassifier(bits, scale=scale).fit(X, y)
        assert sorted(a.feature for a in model.atoms_) == list(range(bits))
        assert model.score(X, y) == 1.0
        assert model.at(bits - 1).score(X, y) < 1.0

    @pytest.mark.parametrize("p", [1, 2])
    def test_entrywise_norms_use_k_features(self, p):
        k = 16
        X, _ = first_example(k)
        W = cp.Variable((X.shape[1], k))
        F = X @ W
        hot = np.eye(k)
        loss = cp.sum(cp.log_sum_exp(F + 1 - hot, axis=1) - cp.diag(F)) / k
        size = cp.sum(cp.abs(W)) if p == 1 else cp.norm(W, "fro")
        cp.Problem(cp.Minimize(loss + 0.003 * size)).solve(solver="CLARABEL")
        largest = np.abs(W.value).max(axis=1)
        used = largest > 1e-3 * largest.max()
        assert used[4:].all()
        assert used.sum() >= k


class TestSecondExample:
    """s copies of every bit, one block now and then missing: the mixed norm keeps all copies."""

    k, s = 8, 4

    def rows(self, missing_share=0.2):
        code = binary(self.k)
        full = np.tile(code, (1, self.s))
        X, y = [], []
        copies = round(self.s * (1 - missing_share) / missing_share)
        for c in range(self.k):
            X += [full[c]] * copies
            y += [c] * (copies + self.s)
            for block in range(self.s):
                row = full[c].copy()
                row[3 * block : 3 * block + 3] = 0.0
                X.append(row)
        return np.array(X), np.array(y)

    def test_shareboost_takes_one_copy_of_every_bit(self):
        X, y = self.rows()
        model = ShareBoostClassifier(3).fit(X, y)
        assert sorted(a.feature % 3 for a in model.atoms_) == [0, 1, 2]
        whole = (X != 0).all(axis=1)
        assert model.score(X[whole], y[whole]) == 1.0

    def test_mixed_norm_takes_every_copy(self):
        X, y = self.rows()
        W = cp.Variable((X.shape[1], self.k))
        F = X @ W
        hot = np.eye(self.k)[y]
        loss = cp.sum(cp.log_sum_exp(F + 1 - hot, axis=1) - cp.sum(cp.multiply(hot, F), axis=1))
        mixed = cp.sum(cp.max(cp.abs(W), axis=1))
        cp.Problem(cp.Minimize(loss / len(y) + 0.05 * mixed)).solve(solver="CLARABEL")
        largest = np.abs(W.value).max(axis=1)
        assert (largest > 0.1 * largest.max()).sum() == 3 * self.s


def test_corollary_1_bounds_the_features_needed():
    """L(W*) ≤ ε with r columns in [−c, c]: at most 4 r² c²/ε features for 2ε."""
    k = 16
    X, y = first_example(k)
    c, epsilon = 2.0, 0.5
    shared = np.zeros((X.shape[1], k))
    shared[:4] = c * binary(k).T
    assert training_loss(X, y, shared) <= epsilon
    losses = paper_model(20).fit(X, y).path_.losses
    needed = int(np.flatnonzero(losses <= 2 * epsilon)[0])
    assert needed <= 4 * 4**2 * c**2 / epsilon
    assert needed <= 5
