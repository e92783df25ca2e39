"""A Gaussian SVM of scikit-learn, the kernel machine that the paper compares itself with."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from _common import error
from sklearn.svm import SVC

STRENGTHS = (1.0, 10.0)
WIDTHS = (0.3, 1.0, 3.0)


def choose_svm(
    X: np.ndarray,
    y: np.ndarray,
    X_held: np.ndarray,
    y_held: np.ndarray,
    strengths: Sequence[float] = STRENGTHS,
    gammas: Sequence[float] | None = None,
) -> tuple[SVC, dict[str, Any]]:
    """Return a machine fitted on (X, y), with the C and gamma of lowest error on held-out rows.

    Without ``gammas``, gamma is a factor of `WIDTHS` times scikit-learn's "scale",
    1 / (features · variance). Among equally good machines, the first one tried is taken.
    """
    scale = 1.0 / (X.shape[1] * X.var())
    models, tried = [], []
    for C, gamma in product(strengths, gammas or [factor * scale for factor in WIDTHS]):
        models.append(SVC(C=C, gamma=gamma, cache_size=500).fit(X, y))
        wrong = error(models[-1].predict(X_held), y_held)
        tried.append({"C": C, "gamma": gamma, "error": wrong})
    best = int(np.argmin([t["error"] for t in tried]))
    model, chosen = models[best], tried[best]
    return model, {
        "C": chosen["C"],
        "gamma": chosen["gamma"],
        "gamma / scale": chosen["gamma"] / scale,
        "validation error": chosen["error"],
        "support vectors": int(model.n_support_.sum()),
        "tried": tried,
    }
