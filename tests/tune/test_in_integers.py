"""With a budget in bytes, tuned and chosen models are compared in integers."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from laconic import ShareBoostClassifier
from laconic.boost.held_out import HeldOut
from laconic.export.footprint import Target
from laconic.losses import find_loss
from laconic.model.choose_codes import TooWide
from laconic.tune import Tuning
from laconic.tune.in_integers import HeldOutInIntegers, Shipped


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X.astype(np.uint8), y


def held(X, y):
    return HeldOut(X, y, np.full(len(y), 1 / len(y)), find_loss("margin"), 1)


def shipped(X, y, bits=8, inputs="uint8"):
    return Shipped(bits, inputs, X, np.full(len(y), 1 / len(y)), len(set(y)), "margin")


def log_loss(scores, y):
    """Return the margin loss of eq. (3), row by row."""
    total = 0.0
    for own, label in zip(scores, y, strict=True):
        gaps = 1.0 - (np.arange(len(own)) == label) + own - own[label]
        total += np.log(np.exp(gaps - gaps.max()).sum()) + gaps.max()
    return total / len(y)


@pytest.mark.parametrize("bits", [8, 16])
def test_the_loss_is_that_of_the_integer_scores(digits, bits):
    X, y = digits
    model = ShareBoostClassifier(8, pool="hinges").fit(X[:800], y[:800])
    small = model.predictor_.quantise(X[:800], bits=bits)
    judge = HeldOutInIntegers(held(X[800:], y[800:]), shipped(X[:800], y[:800], bits))
    wanted = log_loss(small.scores(X[800:]) * small.unit, y[800:])
    assert judge.loss(model.path_[8]) == pytest.approx(wanted, rel=1e-9)
    assert judge.loss(model.path_[8]) != held(X[800:], y[800:]).loss(model.path_[8])


def test_two_classes_have_one_integer_score():
    X, y = load_breast_cancer(return_X_y=True)
    model = ShareBoostClassifier(4, pool="hinges").fit(X[:400], y[:400])
    small = model.predictor_.quantise(X[:400], bits=8)
    judge = HeldOutInIntegers(held(X[400:], y[400:]), shipped(X[:400], y[:400], 8, "float"))
    scores = np.column_stack([np.zeros(169), small.scores(X[400:]) * small.unit])
    assert judge.loss(model.path_[4]) == pytest.approx(log_loss(scores, y[400:]), rel=1e-9)


def test_a_model_that_integers_cannot_hold_is_never_the_best(digits, monkeypatch):
    X, y = digits

    def refuse(*given):
        raise TooWide("too wide")

    monkeypatch.setattr("laconic.tune.in_integers.integers_of", refuse)
    model = ShareBoostClassifier(1, pool="hinges").fit(X[:200], y[:200])
    assert HeldOutInIntegers(held(X, y), shipped(X, y)).loss(model.path_[1]) == np.inf


def test_a_fit_with_a_budget_asks_integers(digits, monkeypatch):
    X, y = digits
    asked = []
    kept = HeldOutInIntegers.loss
    monkeypatch.setattr(
        HeldOutInIntegers, "loss", lambda own, entry: asked.append(entry) or kept(own, entry)
    )
    settings = {"pool": "hinges", "tune": Tuning(epochs=3), "random_state": 0}
    ShareBoostClassifier(3, **settings).fit(X[:500], y[:500])
    real = Target("c99", bits=None)
    ShareBoostClassifier(3, max_bytes=9999, chip=real, **settings).fit(X[:500], y[:500])
    assert not asked  # without a budget, or with floats, nothing is rounded
    model = ShareBoostClassifier(3, max_bytes=999, **settings).fit(X[:500], y[:500])
    assert asked
    assert model.path_[3].footprint <= 999
