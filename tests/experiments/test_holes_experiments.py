"""The experiments on holes: their problems, planted slices and measures."""

from argparse import Namespace

import clumps_vs_slices as slices
import holes_mnist
import holes_vs_peers as peers
import numpy as np
import pockets
import pytest
from _common import Task

from laconic.report.features import as_table


def test_five_different_problems_of_five_digits():
    found = [tuple(first) for first in holes_mnist.problems(0)]
    assert found[0] == (0, 1, 2, 3, 4)
    assert len(set(found)) == 5
    assert all(len(set(first)) == 5 for first in found)
    assert holes_mnist.names(np.arange(5)) == "01234 | 56789"


def test_no_row_is_in_both_halves():
    fit, test = holes_mnist.halving(1, 0)
    assert len(np.intersect1d(fit, test)) == 0
    assert len(fit) + len(test) == 70_000


def test_a_curve_that_ends_early_stays_where_it_was():
    class Model:
        def staged_predict(self, X):
            yield np.zeros(4)
            yield np.array([0, 0, 0, 1])

    errors = holes_mnist.staged_errors(Model(), np.zeros((4, 1)), np.array([0, 0, 1, 1]))
    assert errors.tolist() == [0.5] + [0.25] * 20


@pytest.mark.parametrize("shape", ["boxes", "balls"])
def test_planted_slices_are_found_by_the_report(shape):
    rng = np.random.default_rng(0)
    rows = as_table(rng.standard_normal((3000, 3)))
    planted = slices.plant(rows, shape, rng)
    assert 0.03 < planted.mean() < 0.2
    wrong = rng.random(3000) < np.where(planted, slices.PLANTED, slices.STREWN)
    given = rng.permutation(3000)[:1500]
    found = slices.METHODS["report"][0](rows, wrong, given)
    scores = slices.measure(found, planted, given)
    assert scores["F1"] > 0.6


def test_precision_and_recall_are_of_rows_that_were_not_given():
    planted = np.arange(10) < 4
    scores = slices.measure([np.array([0, 1, 2, 8])], planted, np.array([0, 9]))
    assert scores == {"precision": 2 / 3, "recall": 2 / 3, "F1": 2 / 3, "regions": 1}
    assert slices.measure([], planted, np.array([0]))["precision"] == 0.0


def test_codes_are_positive_and_cut_numbers_into_bins():
    rows = as_table(np.random.default_rng(0).standard_normal((800, 2)))
    coded = slices.codes(rows, (4, 8))
    assert coded.shape == (800, 4)
    assert np.bincount(coded[:, 0]).tolist() == [0] + [200] * 4
    assert np.bincount(coded[:, 1]).tolist() == [0] + [100] * 8


def test_tables_to_tune_on_are_others_than_those_to_test_on():
    one, other = (
        slices.planted_table(None, "numbers", "balls", 200, [0, apart, 0])
        for apart in (0, slices.TUNED_APART)
    )
    assert not np.array_equal(one.rows.Z, other.rows.Z)


def test_tuning_takes_the_settings_of_the_highest_f1():
    planted = slices.planted_table(None, "numbers", "balls", 400, [0, 0, 0])

    def find(rows, wrong, given, good):
        right = np.flatnonzero(planted.planted)
        return [right[::2], right[1::2]] if good else [np.arange(10)]

    chosen, tried = slices.tune(find, [(False,), (True,)], [planted])
    assert chosen == (True, 2)
    assert len(tried) == 2 * len(slices.COUNTS)
    assert slices.tune(find, [()], [planted]) == ((slices.REGIONS,), [])


def test_peers_are_tuned_with_equal_budgets():
    for _, grid in slices.METHODS.values():
        assert grid == [()] or len(grid) == slices.BUDGET
    for _, grid in peers.METHODS.values():
        assert len(set(grid)) == peers.BUDGET


def test_no_setting_sees_a_test_row():
    rng = np.random.default_rng(0)
    whole = Task(rng.random((40, 2)), np.arange(40) % 2, rng.random((9, 2)), np.arange(9) % 2)
    part = peers.validation(whole, 0)
    rows = {tuple(row) for row in whole.X}
    assert len(part.y) == 30
    assert {tuple(row) for row in np.vstack([part.X, part.X_new])} == rows


def test_means_and_standard_errors_over_the_repeats():
    runs = [{4: {"test": e, "bytes": 8}} for e in (0.1, 0.2, 0.3)]
    found = peers.summarise(runs)
    assert found[4]["test"] == pytest.approx(0.2)
    assert found[4]["standard error"] == pytest.approx(0.1 / np.sqrt(3))
    assert peers.shown(found, 4) == "20.0 ± 5.8"
    assert peers.shown(found, 1) == "-"


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_linear_tree_cut_off_is_the_tree_of_that_depth(depth):
    lineartree = pytest.importorskip("lineartree")
    ridge = pytest.importorskip("sklearn.linear_model").RidgeClassifier
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    y = (np.sin(3 * X[:, 0]) + X[:, 1] > 0).astype(int)

    def grown(levels):
        tree = lineartree.LinearTreeClassifier(ridge(), max_depth=levels, max_bins=10)
        try:
            return tree.fit(X, y)
        except (AttributeError, TypeError):
            pytest.skip("linear-tree does not run with this scikit-learn")

    assert np.array_equal(peers.cut_off(grown(4), depth, X)[0], grown(depth).predict(X))


def test_settings_are_chosen_and_tested_within_one_halving():
    assert holes_mnist.HALF - holes_mnist.HELD_OUT >= 6000
    args = Namespace(rows=35_000, choose_rows=30_000)
    with pytest.raises(SystemExit, match="--choose-rows must be from 100 to 25000"):
        holes_mnist.check_rows(args)


def test_one_piece_is_one_linear_model():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = (X[:, 0] > 0).astype(int)
    task = Task(X[:200], y[:200], X[200:], y[200:])
    for answer in (
        peers.hole_punching(task, "logistic", 1e-3, 10),
        peers.clustered(task, 1e-3, 0),
    ):
        assert list(answer) == list(peers.PIECES)
        assert np.mean(answer[1][0] != y[200:]) < 0.1
    assert peers.clustered(task, 1e-3, 0)[4][1] == 4 * 4 * 7


def test_numbers_of_a_tree_with_linear_leaves():
    leaf = {"leaf_coeff": [1.0, 2.0]}
    tree = {"left_child": leaf, "right_child": {"left_child": leaf, "right_child": {}}}
    assert peers._tree_numbers(tree) == 2 + 5 + 2 + 5 + 1


def predicted(n=4000):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4))
    y = (rng.random(n) < 1 / (1 + np.exp(-6 * X[:, 0]))).astype(int)
    p = 1 / (1 + np.exp(-6 * X[:, 0]))
    return pockets.Predicted(X, y, np.column_stack([1 - p, p]))


@pytest.mark.parametrize("shape", pockets.SHAPES)
def test_pockets_are_of_the_promised_size_and_found(shape):
    one = predicted()
    every = pockets.tables({("made up", "none"): one}, Namespace(seed=0, repeats=1))
    (pocket,) = (pocket for pocket in every if pocket.of["shape"] == shape)
    assert 2 * pockets.LEAST <= pocket.inside.sum() <= 0.06 * len(one.y)
    moved = pocket.truth != one.y
    assert not moved[~pocket.inside].any()
    assert 0.25 < moved[pocket.inside].mean() < 0.55
    found = pockets.first_clump(pocket)
    assert found["found"]
    assert found["fewest in a half"] >= pockets.LEAST
    assert found["oracle"] < 0.01


def test_a_model_of_difficulty_finds_what_is_hard():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((2000, 3))
    wrong = rng.random(2000) < np.where(Z[:, 1] > 1, 0.5, 0.05)
    chance = pockets.difficulty(Z, wrong)
    assert chance[Z[:, 1] > 1].mean() > 4 * chance[Z[:, 1] <= 1].mean()
