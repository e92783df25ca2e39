"""Losses, penalties and rules of one's own in ShareBoost."""

import numpy as np
import pytest

from laconic import ShareBoostClassifier, TotalQBoostClassifier
from laconic.boost.rules import GradientRule, ProjectionRule
from laconic.losses import LogisticLoss, LogLoss, MarginLoss
from laconic.penalties import L1, L2, SmoothL1
from laconic.pools import Choice
from problems import random_problem


@pytest.fixture(scope="module")
def data():
    return random_problem(seed=2, m=150, d=6, k=3)


def same(one, other):
    assert one.atoms_ == other.atoms_
    np.testing.assert_array_equal(one.atom_coef_, other.atom_coef_)


@pytest.mark.parametrize(
    ("by_name", "as_object"),
    [
        ({"loss": "margin"}, {"loss": MarginLoss()}),
        ({"loss": "log"}, {"loss": LogLoss()}),
        ({"rule": "gradient"}, {"rule": GradientRule()}),
        ({"rule": "projection"}, {"rule": ProjectionRule()}),
        ({"penalty": "l2", "alpha": 1e-3}, {"penalty": L2(1e-3)}),
        ({"penalty": "l1", "alpha": 1e-3, "beta": 30.0}, {"penalty": SmoothL1(1e-3, 30.0)}),
    ],
)
def test_an_object_is_as_good_as_its_name(data, by_name, as_object):
    X, y = data
    named, given = (ShareBoostClassifier(4, **s).fit(X, y) for s in (by_name, as_object))
    same(named, given)
    assert given.alpha_ == named.alpha_
    np.testing.assert_array_equal(given.predict_proba(X), named.predict_proba(X))


def test_losses_of_the_margin_serve_two_classes(data):
    """ShareBoost that keeps all atoms is TotalQBoost without a price; only the penalty differs."""
    X, y = data
    y = (y > 0).astype(int)
    settings = {"pool": "columns", "loss": "logistic", "scale": None}
    share = ShareBoostClassifier(6, alpha=1e-9, **settings).fit(X, y)
    total = TotalQBoostClassifier(6, price=0.0, l1=1e-9, tol=0.0, **settings).fit(X, y)
    assert share.path_[6].loss == pytest.approx(total.path_[6].loss, rel=1e-5)
    same(
        share, ShareBoostClassifier(6, alpha=1e-9, **{**settings, "loss": LogisticLoss()}).fit(X, y)
    )
    with pytest.raises(ValueError, match="two classes"):
        ShareBoostClassifier(2, loss="logistic").fit(*data)


def test_a_rule_of_ones_own_chooses(data):
    class Last:
        """Takes the admissible atom of the largest number."""

        def choose(self, rows, W, forbidden, costs):
            choice = rows.best(forbidden, None, costs)
            left = np.setdiff1d(np.arange(rows.pool.n_atoms), forbidden)
            return choice._replace(index=int(left[-1]))

    model = ShareBoostClassifier(3, rule=Last()).fit(*data)
    assert [atom.feature for atom in model.atoms_] == [5, 4, 3]


class Hollow:
    """Has nothing but a strength."""

    alpha = 0.1


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"loss": "nothing"}, ValueError, "loss must be one of"),
        ({"loss": Hollow()}, TypeError, "has no 'name'"),
        ({"loss": MarginLoss}, TypeError, "is a class; pass an object"),
        ({"rule": "nothing"}, ValueError, "rule must be one of"),
        ({"rule": Hollow()}, TypeError, "has no method 'choose'"),
        ({"rule": GradientRule}, TypeError, "is a class. Pass an object"),
        ({"penalty": "nothing"}, ValueError, "penalty must be one of"),
        ({"penalty": object()}, TypeError, "has no 'alpha'"),
        ({"penalty": L2}, TypeError, "is a class; pass an object"),
        ({"penalty": Hollow()}, TypeError, "Newton.*Hollow.*kink"),
        ({"penalty": L1(0.1)}, ValueError, 'kink of 0.1.*penalty="l1" of ShareBoostClassifier'),
        ({"penalty": L1(0.1), "rule": "step"}, ValueError, "kink of 0.1"),
        ({"penalty": L2(-1.0)}, ValueError, "alpha of L2 to be finite and >= 0, not -1"),
    ],
)
def test_what_is_missing_is_named_before_the_data_is_touched(settings, error, message):
    with pytest.raises(error, match=message):
        ShareBoostClassifier(2, **settings).fit(None, None)


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (Choice(0, 1.0, 1.0), ValueError, "chose atom 0, which does not exist or is forbidden"),
        (Choice(99, 1.0, 1.0), ValueError, "chose atom 99"),
        (3, TypeError, "must return a laconic.pools.Choice"),
        (None, TypeError, "must return a laconic.pools.Choice"),
    ],
)
def test_a_rule_that_chooses_what_it_may_not_is_stopped(data, answer, error, message):
    class Stubborn:
        def choose(self, rows, W, forbidden, costs):
            return answer

    with pytest.raises(error, match=message):
        ShareBoostClassifier(3, rule=Stubborn()).fit(*data)


def test_a_penalty_object_brings_its_own_strength(data):
    with pytest.raises(ValueError, match=r"leave alpha=5\.0 out"):
        ShareBoostClassifier(3, penalty=L2(1e-3), alpha=5.0).fit(*data)
