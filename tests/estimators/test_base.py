"""The base of all estimators: one way from rows to labels, and what is checked once for all."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from laconic import (
    ErrorClumpingClassifier,
    HolePunchingClassifier,
    ShareBoostClassifier,
    TotalQBoostClassifier,
)
from problems import blobs

ESTIMATORS = [
    ShareBoostClassifier(2),
    TotalQBoostClassifier(4, price=0.01),
    ErrorClumpingClassifier(),
    HolePunchingClassifier(LogisticRegression(max_iter=1000), 2),
]
KINDS = [type(estimator) for estimator in ESTIMATORS]
every = pytest.mark.parametrize("estimator", ESTIMATORS, ids=[kind.__name__ for kind in KINDS])
X, y = load_iris(return_X_y=True)


@pytest.mark.parametrize("seed", range(4))
@every
def test_answers_are_those_of_the_predictor_on_any_rows(estimator, seed):
    """New rows, dense or sparse, in either precision, with two to four classes, at every stage."""
    rng = np.random.default_rng(seed)
    rows, codes = blobs(150, seed=seed, classes=2 + seed % 3)
    labels = np.array(["z", "a long name", "m", "b"])[codes]
    model = clone(estimator).fit(rows.astype([np.float64, np.float32][seed // 2]), labels)
    new = rng.uniform(-8, 8, (200, rows.shape[1]))
    new[rng.random(new.shape) < 0.2] = 0.0
    for given in (new, new.astype(np.float32), sparse.csr_matrix(new)):
        scores = model.predictor_.scores(given)
        best = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
        assert np.array_equal(model.predict(given), model.classes_[best])
        assert np.array_equal(model.predictor_.predict(given), model.predict(given))
        if hasattr(model, "predict_proba"):
            p = model.predictor_.predict_proba(given)
            assert np.array_equal(model.predict_proba(given), p)
        if hasattr(model, "staged_predict"):
            sizes = model.path_.sizes if hasattr(model, "path_") else range(len(model.holes_) + 1)
            for size, staged in zip(sizes, model.staged_predict(given), strict=True):
                assert np.array_equal(staged, model.at(size).predictor_.predict(given))


@every
def test_labels_scores_and_words_are_those_of_the_predictor(estimator, capsys):
    names = np.array(["setosa", "versicolor", "virginica"])
    model = estimator.fit(X, names[y])
    scores = model.predictor_.scores(X)
    assert np.array_equal(model.predict(X), names[scores.argmax(axis=1)])
    assert np.array_equal(model.predict(X), model.predictor_.predict(X))
    assert np.array_equal(model.decision_function(X), scores)
    assert hasattr(model, "predict_proba") == hasattr(model.predictor_, "predict_proba")
    if hasattr(model, "predict_proba"):
        assert np.array_equal(model.predict_proba(X), model.predictor_.predict_proba(X))
    model.describe()
    assert "3 classes" in capsys.readouterr().out


@every
def test_an_unfitted_estimator_says_so(estimator):
    fresh = type(estimator)()
    for method in ("predict", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(fresh, method)(X)
    with pytest.raises(NotFittedError):
        fresh.describe()


@every
def test_columns_of_a_frame_keep_their_names(estimator):
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = estimator.fit(frame, y)
    assert model.predictor_.feature_names == ["a", "b", "c", "d"]
    assert np.array_equal(model.predict(frame), model.predictor_.predict(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c", "d"]])


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (ShareBoostClassifier(early_stopping=True), "with early_stopping .* holds out the same"),
        (TotalQBoostClassifier(early_stopping=True), "with early_stopping .* holds out the same"),
        (ErrorClumpingClassifier(solver="averaging"), "solver='averaging' .* draws the same rows"),
        (HolePunchingClassifier(guard=True, pickle_models=True), "holds rows out .* the same rows"),
        (HolePunchingClassifier(n_candidates=2, pickle_models=True), "draws candidates needs an"),
    ],
)
def test_a_checkpoint_of_a_fit_that_draws_needs_an_integer_seed(estimator, words, tmp_path):
    file = tmp_path / "checkpoint"
    for seed in (None, np.random.RandomState(0)):
        with pytest.raises(ValueError, match=f"needs an integer random_state.*|{words}") as told:
            estimator.set_params(checkpoint=file, random_state=seed).fit(X, y)
        assert told.match(words)
    assert not file.exists()


@pytest.mark.parametrize("kind", [k for k in KINDS if k is not ErrorClumpingClassifier])
def test_callbacks_are_called(kind):
    with pytest.raises(TypeError, match="callbacks must be a list of callables; 3 is not one"):
        kind(callbacks=[3]).fit(X, y)


@pytest.mark.parametrize("kind", KINDS)
def test_labels_that_are_missing_are_counted(kind):
    missing = np.array(["a", "b", None] * 50, dtype=object)
    with pytest.raises(ValueError, match="y has no label in 50 of 150 rows"):
        kind().fit(X, missing)
