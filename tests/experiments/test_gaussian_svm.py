"""The Gaussian SVM takes the settings that held-out rows prefer, where the answer is known."""

import numpy as np
import pytest
from gaussian_svm import STRENGTHS, WIDTHS, choose_svm
from sklearn.svm import SVC

WIDE, NARROW = 0.1, 3e3


def rows(m, seed):
    return np.random.default_rng(seed).uniform(size=(m, 2))


def stripes(X):
    return (np.floor(8 * X[:, 0]) % 2).astype(int)


def half(X):
    return (X[:, 0] > 0.5).astype(int)


def test_fine_stripes_need_a_narrow_kernel():
    X, X_held = rows(400, 0), rows(200, 1)
    model, said = choose_svm(
        X, stripes(X), X_held, stripes(X_held), strengths=(10.0,), gammas=(WIDE, NARROW / 10, 1e-3)
    )
    assert said["gamma"] == model.gamma == NARROW / 10
    assert said["validation error"] < 0.15
    assert said["validation error"] == pytest.approx(1 - model.score(X_held, stripes(X_held)))
    assert said["support vectors"] == len(model.support_)
    assert [t["gamma"] for t in said["tried"]] == [WIDE, NARROW / 10, 1e-3]
    assert min(t["error"] for t in said["tried"] if t["gamma"] != NARROW / 10) > 0.3


def test_held_out_rows_decide_and_not_those_of_the_fit():
    """Wrong labels that a narrow kernel learns by heart, where a wide one is wrong about them."""
    X, X_held = rows(200, 0), rows(200, 1)
    y = half(X) ^ (np.random.default_rng(2).random(200) < 0.25)
    model, said = choose_svm(X, y, X_held, half(X_held), strengths=(10.0,), gammas=(NARROW, WIDE))
    assert said["gamma"] == WIDE
    assert said["validation error"] < 0.1
    by_heart = SVC(C=10.0, gamma=NARROW).fit(X, y)
    assert by_heart.score(X, y) > 0.95 > model.score(X, y)


def test_every_setting_is_tried_and_the_first_of_equals_taken():
    X, X_held = np.array([[0.0], [1.0]] * 10), np.array([[0.0], [1.0]])
    _, said = choose_svm(X, X[:, 0], X_held, X_held[:, 0])
    assert {t["error"] for t in said["tried"]} == {0.0}
    assert (said["C"], said["gamma / scale"]) == (STRENGTHS[0], pytest.approx(WIDTHS[0]))
    scale = SVC(gamma="scale").fit(X, X[:, 0])._gamma
    settings = [(t["C"], pytest.approx(t["gamma"] / scale)) for t in said["tried"]]
    assert settings == [(C, factor) for C in STRENGTHS for factor in WIDTHS]
