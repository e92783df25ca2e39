"""The Gaussian SVM takes the settings that the held-out rows prefer."""

import numpy as np
import pytest
from gaussian_svm import STRENGTHS, WIDTHS, choose_svm
from sklearn.svm import SVC

from problems import random_problem


def test_no_other_setting_is_better_on_the_held_out_rows():
    X, y = random_problem(m=150, d=4, k=3, noise=0.3)
    model, said = choose_svm(X[:100], y[:100], X[100:], y[100:])
    unit = 1.0 / (X.shape[1] * X[:100].var())
    tried = [
        1 - SVC(C=C, gamma=f * unit).fit(X[:100], y[:100]).score(X[100:], y[100:])
        for C in STRENGTHS
        for f in WIDTHS
    ]
    assert said["validation error"] == min(tried)
    assert np.mean(model.predict(X[100:]) != y[100:]) == pytest.approx(min(tried))
    assert said["support vectors"] == len(model.support_)
