"""The one entry to the subset searches: metamorphic statements, and what bad input gets."""

import numpy as np
import pytest
from subset_problems import stump_data

from laconic.subset import METHODS, path, search


@pytest.fixture(params=METHODS)
def method(request):
    """Every method that is installed."""
    if request.param in ("tabu", "anneal"):
        pytest.importorskip("dwave.samplers")
    return request.param


def test_weights_are_repeated_rows(method):
    X, y = stump_data(2)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    a = search(X, y, method=method, price=4e-3, l1=1e-3, sample_weight=times)
    b = search(X.repeat(times, axis=0), y.repeat(times), method=method, price=4e-3, l1=1e-3)
    assert a.support.tolist() == b.support.tolist()
    np.testing.assert_allclose(a.objective, b.objective, rtol=1e-9)
    np.testing.assert_allclose(a.weights, b.weights, rtol=1e-4)


def test_permuted_columns_give_the_permuted_answer(method):
    X, y = stump_data(4)
    order = np.random.default_rng(3).permutation(X.shape[1])
    a = search(X, y, method=method, price=4e-3, l1=1e-3)
    b = search(X[:, order], y, method=method, price=4e-3, l1=1e-3)
    assert sorted(order[b.support].tolist()) == a.support.tolist()
    np.testing.assert_allclose(a.objective, b.objective, rtol=1e-9)


def test_duplicates_and_complements_are_not_paid_for_twice(method):
    X, y = stump_data(6, n_columns=4)
    doubled = np.hstack([X, X, -X])
    a = search(X, y, method=method, price=3e-3, l1=1e-3)
    b = search(doubled, y, method=method, price=3e-3, l1=1e-3)
    np.testing.assert_allclose(a.objective, b.objective, rtol=1e-9)
    assert len(set((b.support % 4).tolist())) == len(b.support)


@pytest.mark.parametrize("names", [("no", "yes"), (False, True), (1, 2), (-1, 1)])
def test_any_two_labels(names):
    X, y = stump_data(8)
    named = np.where(y > 0, names[1], names[0])
    expected = search(X, y, price=4e-3, l1=1e-3)
    found = search(X, named, price=4e-3, l1=1e-3)
    assert found.support.tolist() == expected.support.tolist()
    np.testing.assert_array_equal(found.weights, expected.weights)


def test_separable_data_ends_because_of_l1(method):
    X = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    y = np.array([1, 1, 0, 0])
    found = search(X, y, method=method, price=1e-3, l1=1e-3)
    assert found.support.tolist() == [0]
    assert np.isfinite(found.weights).all()
    # e^-w + ν w is least at w = -ln ν.
    np.testing.assert_allclose(found.weights, -np.log(1e-3), rtol=1e-6)


def test_a_price_too_high_keeps_nothing(method):
    X, y = stump_data(9)
    found = search(X, y, method=method, price=10.0)
    assert found.support.size == 0
    assert found.intercept != 0


def test_constant_columns_are_left_out(method):
    X, y = stump_data(10, n_columns=4, binary=True)
    padded = np.hstack([np.zeros((len(y), 1), int), X, np.ones((len(y), 1), int)])
    a = search(X, y, method=method, price=3e-3, l1=1e-3)
    b = search(padded, y, method=method, price=3e-3, l1=1e-3)
    assert b.support.tolist() == (a.support + 1).tolist()
    np.testing.assert_allclose(a.objective, b.objective, rtol=1e-9)
    only = search(padded[:, [0, 5]], y, method=method, max_atoms=1)
    assert only.support.size == 0


def test_no_column_of_the_answer_has_weight_zero(method):
    """Even where columns are free up to the cap, and the l1 term holds most of them at zero."""
    X, y = stump_data(11)
    found = search(X, y, method=method, max_atoms=9, l1=0.05)
    assert 0 < len(found.support) < 9
    assert np.all(found.weights != 0)


def test_whole_numbers_are_numbers(method):
    X, y = stump_data(12)
    for l1, price in ((0, 0.0), (0, 1), (1, 0)):
        a = search(X, y, method=method, l1=l1, price=price, max_atoms=3)
        b = search(X, y, method=method, l1=float(l1), price=float(price), max_atoms=3)
        np.testing.assert_array_equal(a.weights, b.weights)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"columns": np.full((120, 9), 2)}, "0 and 1"),
        ({"columns": np.ones(120)}, "matrix with one row"),
        ({"columns": np.full((120, 9), np.nan)}, "0 and 1"),
        ({"y": np.ones(120)}, "two different labels"),
        ({"price": -1.0}, "price must be"),
        ({"price": np.nan}, "price must be"),
        ({"price": None}, "price and max_atoms are both None"),
        ({"max_atoms": -1}, "max_atoms must be"),
        ({"l1": -1.0}, "l1 must be"),
        ({"loss": "hinge"}, "loss must be one of 'exponential'"),
        ({"method": "magic"}, "method must be one of 'local'"),
        ({"sample_weight": np.zeros(120)}, "positive for at least one row"),
        ({"sample_weight": -np.ones(120)}, "at least 0"),
        ({"sample_weight": np.ones(7)}, "for every row"),
        ({"sample_weight": stump_data(1)[1] > 0}, "two different labels in rows of positive"),
        ({"y": np.where(stump_data(1)[1] > 0, 1.0, np.nan)}, "no label"),
        ({"y": np.where(stump_data(1)[1] > 0, "yes", None)}, "no label in"),
        ({"price": "a"}, "price must be a finite number"),
        ({"max_atoms": 2.5}, "max_atoms must be a whole number"),
        ({"restart": 3}, r"'local' has no option 'restart'\. Its options are restarts, sweeps"),
        ({"method": "exact", "sweeps": 3}, "Its options are max_nodes, max_seconds"),
        ({"method": "exact", "max_nodes": -1}, "max_nodes must be a whole number"),
        ({"method": "exact", "max_seconds": -0.5}, "max_seconds must be a finite number"),
        ({"starts": [(0, 9)]}, "column numbers from 0 to 8, not"),
        ({"starts": [(-1,)]}, "column numbers"),
        ({"starts": [(2, 2)]}, "different column numbers"),
        ({"starts": [(0.5,)]}, "column numbers"),
    ],
)
def test_bad_input_says_what_would_do(change, said):
    X, y = stump_data(1)
    arguments = {"columns": X, "y": y, "price": 0.01, **change}
    with pytest.raises(ValueError, match=said):
        search(arguments.pop("columns"), arguments.pop("y"), **arguments)


def test_supports_to_start_from_come_in_any_order():
    X, y = stump_data(1)
    expected = search(X, y, max_atoms=3, l1=1e-3, starts=[(0, 2, 4)])
    for starts in (np.array([[4, 0, 2]]), ([4, 2, 0], []), iter([(2, 4, 0)])):
        found = search(X, y, max_atoms=3, l1=1e-3, starts=starts)
        assert found.objective == expected.objective
    with pytest.raises(ValueError, match="starts must hold"):
        path(X, y, 3, starts=[(12,)])
