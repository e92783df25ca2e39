"""The kernel machine that the paper measures itself by: a Gaussian SVM, scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.svm import SVC

STRENGTHS = (1.0, 10.0)
WIDTHS = (0.3, 1.0, 3.0)


def choose_svm(
    X: np.ndarray, y: np.ndarray, X_held: np.ndarray, y_held: np.ndarray
) -> tuple[SVC, dict[str, Any]]:
    """A machine fitted on (X, y), its C and width those of lowest error on the held-out rows.

    gamma is a factor of `WIDTHS` times scikit-learn's "scale", 1 / (features · variance).
    """
    unit = 1.0 / (X.shape[1] * X.var())
    tried = []
    for C in STRENGTHS:
        for factor in WIDTHS:
            model = SVC(C=C, gamma=factor * unit).fit(X, y)
            tried.append((1.0 - model.score(X_held, y_held), C, factor, model))
    wrong, C, factor, model = min(tried, key=lambda t: t[0])
    return model, {
        "C": C,
        "gamma / scale": factor,
        "validation error": wrong,
        "support vectors": int(model.n_support_.sum()),
    }
