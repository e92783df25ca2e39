"""The experiments on holes: their problems, planted slices and measures."""

import clumps_vs_slices as slices
import holes_mnist
import holes_vs_peers as peers
import numpy as np
import pytest
from _common import Task

from laconic.look.features import as_table


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
def test_planted_slices_are_found_by_clumps(shape):
    rng = np.random.default_rng(0)
    rows = as_table(rng.standard_normal((3000, 3)))
    planted = slices.plant(rows, shape, rng)
    assert 0.03 < planted.mean() < 0.2
    wrong = rng.random(3000) < np.where(planted, slices.PLANTED, slices.STREWN)
    given = rng.permutation(3000)[:1500]
    found = slices.FINDERS["clumps"](rows, wrong, given)
    scores = slices.measure(found, planted, given)
    assert scores["precision"] > 3 * planted.mean()


def test_precision_and_recall_are_of_rows_that_were_not_given():
    planted = np.arange(10) < 4
    scores = slices.measure([np.array([0, 1, 2, 8])], planted, np.array([0, 9]))
    assert scores == {"precision": 2 / 3, "recall": 2 / 3, "regions": 1}
    assert slices.measure([], planted, np.array([0]))["precision"] == 0.0


def test_codes_are_positive_and_cut_numbers_into_eighths():
    rows = as_table(np.random.default_rng(0).standard_normal((800, 2)))
    coded = slices.codes(rows)
    assert np.bincount(coded[:, 0]).tolist() == [0] + [100] * 8


def test_one_piece_is_one_linear_model():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = (X[:, 0] > 0).astype(int)
    task = Task(X[:200], y[:200], X[200:], y[200:])
    for answer in (
        peers.hole_punching(task, "logistic", 1e-3, 10),
        peers.clustered(task, 1e-3),
    ):
        assert list(answer) == list(peers.PIECES)
        assert np.mean(answer[1][0] != y[200:]) < 0.1
    assert peers.clustered(task, 1e-3)[4][1] == 4 * 4 * 7


def test_numbers_of_a_tree_with_linear_leaves():
    leaf = {"leaf_coeff": [1.0, 2.0]}
    tree = {"left_child": leaf, "right_child": {"left_child": leaf, "right_child": {}}}
    assert peers._tree_numbers(tree) == 2 + 5 + 2 + 5 + 1
