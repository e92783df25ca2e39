"""One way from rows to labels: the predictor of holes answers as the models themselves would."""

import pickle

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from laconic import (
    ErrorClumpingClassifier,
    HolePunchingClassifier,
    Predictor,
    ShareBoostClassifier,
    TotalQBoostClassifier,
)
from laconic.holes.model_scores import _ONE_SCORE
from laconic.holes.routed import RoutedPredictor
from laconic.losses import BINARY_LOSSES
from problems import blobs


class Cautious(LogisticRegression):
    """Says the last class only where it is nearly sure: its labels do not follow its scores."""

    def predict(self, X):
        p = self.predict_proba(X)
        p[:, -1] -= 0.4
        return self.classes_[p.argmax(axis=1)]


class Wary(ShareBoostClassifier):
    """One of Laconic's with labels of its own."""

    def predict(self, X):
        p = self.predict_proba(X)
        p[:, 0] += 0.3
        return self.classes_[p.argmax(axis=1)]


# Models, and whether they can be written as flat arrays.
MODELS = [
    (LogisticRegression(), True),
    (LinearSVC(), True),
    (RidgeClassifier(), True),
    (Perceptron(random_state=0), True),
    (SGDClassifier(random_state=0), True),
    (LinearDiscriminantAnalysis(), True),
    (ShareBoostClassifier(2), True),
    (ShareBoostClassifier(2, pool="stumps", loss="log"), True),
    (ErrorClumpingClassifier(), True),
    (TotalQBoostClassifier(4, price=0.0), True),
    (HolePunchingClassifier(LogisticRegression(), 2, min_rows=4), True),
    (DummyClassifier(strategy="most_frequent"), True),
    (DummyClassifier(strategy="constant", constant="b"), False),
    (Cautious(), False),
    (Wary(2), False),
    (SVC(decision_function_shape="ovo"), False),
    (DecisionTreeClassifier(max_depth=2), False),
    (RandomForestClassifier(5, max_depth=2, random_state=0), False),
    (KNeighborsClassifier(4), False),
    (GaussianNB(), False),
    (make_pipeline(StandardScaler(), LogisticRegression()), False),
]


def labels_by_hand(model, X):
    """Eq. (6) from its definition: the newest hole that contains a row decides it."""
    out = []
    for row in X:
        decides = model.estimator_
        for hole in model.holes_:
            if np.linalg.norm(row - hole.centre) <= hole.radius:
                decides = hole.model
        out.append(decides.predict(row[None])[0])
    return np.array(out)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    ("inside", "flat"), MODELS, ids=[type(model).__name__ for model, _ in MODELS]
)
def test_labels_are_those_of_the_models_by_hand(inside, flat, classes):
    X, y = blobs(250, classes=classes)
    y = np.array(["a", "b", "c"])[y]
    settings = {"max_holes": 4, "min_rows": 6, "random_state": 0}
    model = HolePunchingClassifier(LogisticRegression(), local_estimator=inside, **settings)
    swapped = HolePunchingClassifier(inside, local_estimator=LogisticRegression(), **settings)
    new = np.vstack([X[::5], np.random.default_rng(1).uniform(-8, 8, (100, 2))])
    for fitted in (model.fit(X, y), swapped.fit(X, y)):
        assert np.array_equal(fitted.predict(new), labels_by_hand(fitted, new))
        *_, last = fitted.staged_predict(new)
        assert np.array_equal(last, fitted.predict(new))
        if hasattr(fitted, "predictor_"):
            assert np.array_equal(fitted.predictor_.predict(new), fitted.predict(new))
    assert hasattr(swapped, "predictor_") is flat


def test_flat_arrays_are_written_once_for_every_number_of_holes():
    X, y = blobs()
    model = HolePunchingClassifier(LogisticRegression(), 4, min_rows=5).fit(X, y)
    assert model.predictor_ is model.predictor_
    fewer = model.at(1)
    assert len(fewer.predictor_.map.parts) == 2
    assert len(model.predictor_.map.parts) == model.n_holes_ + 1


def test_labels_of_one_flat_predictor_are_asked_for(monkeypatch):
    X, y = blobs()
    model = HolePunchingClassifier(LogisticRegression(), 3, min_rows=5).fit(X, y)
    asked = []
    answer = Predictor.encoded_labels
    monkeypatch.setattr(
        Predictor, "encoded_labels", lambda self, X: asked.append(self) or answer(self, X)
    )
    monkeypatch.setattr(LogisticRegression, "predict", None)
    model.predict(X)
    assert asked == [model.predictor_]


def test_a_routed_predictor_has_the_contract_of_a_flat_one():
    answers = ("encoded_labels", "encoded_scores", "encoded_probabilities", "has_probabilities")
    for kind in (Predictor, RoutedPredictor):
        assert [name for name in answers if not hasattr(kind, name)] == []


@pytest.mark.parametrize("inside", [LogisticRegression(), DecisionTreeClassifier(max_depth=2)])
def test_a_pickle_holds_models_and_answers_as_before(inside):
    X, y = blobs()
    model = HolePunchingClassifier(inside, 3, min_rows=5).fit(X, y)
    model.predict(X)
    kept = pickle.dumps(model)
    assert b"RoutedPredictor" not in kept
    again = pickle.loads(kept)
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


def test_every_loss_of_one_score_has_one_of_two():
    """Flat arrays of holes have a column of weights for each class, whatever the loss inside."""
    assert set(_ONE_SCORE) == set(BINARY_LOSSES)
