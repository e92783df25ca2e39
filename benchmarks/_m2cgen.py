"""Models that m2cgen writes as C: linear models, trees and forests of scikit-learn, and LightGBM.

* m2cgen does not take gradient boosting of scikit-learn, so that is LightGBM here.
* m2cgen writes ``double``. The text is changed to ``float``, which takes less flash and time.
* Linear models learn from scaled rows. The scales are part of the weights, so the chip does not
  compute them.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from _c_models import Model, peer_header
from _common import error, progress
from _forests import BETTER, Forests, Rows, voted
from _networks import scales
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

STRENGTHS = {LogisticRegression: (0.001, 0.01, 0.1, 1.0, 10.0), LinearSVC: (0.001, 0.01, 0.1, 1.0)}
# LinearSVC takes over a minute where there are more numbers than this, so one strength is tried. On
# the validation rows of MNIST, 0.01 is better than 0.001. Others were not tried there.
MANY_NUMBERS = 10_000_000
STRENGTHS_OF_MANY = {LogisticRegression: (0.01, 0.1, 1.0), LinearSVC: (0.01,)}
LOOPS = 200
# m2cgen calls itself for every column of a linear model.
DEEP = 20_000
MOST_BYTES = 256 * 1024
# Bytes of flash of a term of a linear model, and of a leaf of LightGBM, at least.
TERM, LEAF = 21, 24
# A leaf of a forest takes 70 bytes or more, so this many leaves take 256 kB.
MOST_LEAVES = 3700
DEPTHS = (1, 2, 3, 4, 5)
ROUNDS = (3, 5, 10, 20, 40, 80, 160, 320)
RATES = (0.1, 0.3, 0.6)
# Fits of many classes on wide rows take long.
DEPTHS_OF_WIDE = (2, 3, 4)
RATES_OF_WIDE = (0.3, 0.6)
MANY = """\
float s[{k}];
    int i, best = 0;
    score((float *)x, s);
    for (i = 1; i < {k}; i++) {{ if (s[i] > s[best]) {{ best = i; }} }}
    return best;"""
TWO = "return score((float *)x) > 0.0f;"


def m2cgen_models(forests: Forests, seed: int) -> Iterator[Model]:
    """Return linear models, trees, forests and boosted trees as C, fitted on all training rows."""
    rows = forests.rows
    yield from _linear_models(rows)
    progress(f"{rows.title}: m2cgen, forests")
    for grown in forests.frontier(lambda shares: shares, MOST_LEAVES):
        model = forests.fitted(grown)
        expected = voted(model, rows.X_test, lambda shares: shares)
        yield _model(grown.title, model, rows, grown.validation, expected)
    yield from _boosted(rows, int(rows.y.max()) + 1, seed)


def _linear_models(rows: Rows) -> Iterator[Model]:
    n_classes = int(rows.y.max()) + 1
    if n_classes * rows.X.shape[1] * TERM > MOST_BYTES:
        return
    own = scales(rows.X)
    X, y, X_test = own(rows.X), rows.y, own(rows.X_test)
    fit, held = (X[rows.fit], y[rows.fit]), (X[rows.held], y[rows.held])
    strengths_of = STRENGTHS_OF_MANY if X.size > MANY_NUMBERS else STRENGTHS
    for kind, strengths in strengths_of.items():
        progress(f"{rows.title}: m2cgen, {kind.__name__}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it may not have converged
            wrong = {C: error(kind(C=C, max_iter=LOOPS).fit(*fit).predict(held[0]), held[1])
                     for C in strengths}  # fmt: skip
            best = min(wrong, key=wrong.__getitem__)
            model = kind(C=best, max_iter=LOOPS).fit(X, y)
        expected = model.predict(X_test)
        model.coef_ = model.coef_ / own.scale
        model.intercept_ = model.intercept_ - model.coef_ @ own.mean
        yield _model(f"{kind.__name__}, C={best:g}", model, rows, wrong[best], expected)


def _boosted(rows: Rows, n_classes: int, seed: int) -> Iterator[Model]:
    """Return boosted trees that are clearly better than all with fewer leaves, and the best."""
    from lightgbm import LGBMClassifier

    def boosted(depth: int, rounds: int, rate: float) -> Any:
        return LGBMClassifier(n_estimators=rounds, max_depth=depth, num_leaves=2**depth,
                              learning_rate=rate, random_state=seed, n_jobs=1,
                              verbose=-1)  # fmt: skip

    X, y, found = rows.X.astype(np.float32), rows.y, []
    scores = 1 if n_classes == 2 else n_classes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names of columns
        for depth in DEPTHS_OF_WIDE if rows.wide else DEPTHS:
            numbers = [n for n in ROUNDS if n * scores * 2**depth * LEAF <= MOST_BYTES]
            for rate in RATES_OF_WIDE if rows.wide else RATES:
                if not numbers:
                    continue
                progress(f"{rows.title}: m2cgen, LightGBM of depth {depth}, rate {rate}")
                model = boosted(depth, max(numbers), rate).fit(X[rows.fit], y[rows.fit])
                for n in numbers:
                    wrong = error(model.predict(X[rows.held], num_iteration=n), y[rows.held])
                    found.append((n * 2**depth, wrong, depth, n, rate))
        lowest, least = np.inf, min((wrong for _, wrong, *_ in found), default=0.0)
        for _, wrong, depth, n, rate in sorted(found):
            if wrong < lowest and (wrong <= BETTER * lowest or wrong == least):
                lowest = wrong
                model = boosted(depth, n, rate).fit(X, y)
                expected = model.predict(rows.X_test.astype(np.float32))
                title = f"LightGBM, {n} rounds, depth {depth}, rate {rate:g}"
                yield _model(title, model, rows, wrong, expected)


def _model(title: str, model: Any, rows: Rows, validation: float, expected: np.ndarray) -> Model:
    import m2cgen

    sys.setrecursionlimit(DEEP)
    code = m2cgen.export_to_c(model)
    code = re.sub(r"\bdouble\b", "float", code)
    code = re.sub(r"(?<![\w.])(\d+\.\d+)\b", r"\1f", code)
    code = "#include <math.h>\n" + re.sub(r"\bexp\(", "expf(", code)
    many = "float * output" in code
    body = MANY.format(k=int(rows.y.max()) + 1) if many else TWO
    if "one-hot" in rows.title or "codes" in rows.title:
        title += f", {rows.title}"
    return Model("m2cgen", title, peer_header(code, "float", rows.X.shape[1], body), "float32",
                 validation, rows.X_test, expected)  # fmt: skip
