"""One way from rows to labels: the predictor of holes answers as the models themselves would."""

import pickle

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier
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
from laconic.losses import BINARY_LOSSES, LogisticLoss, LogLoss
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


class Fickle(DummyClassifier):
    """A constant whose labels follow the rows."""

    def predict(self, X):
        return self.classes_[(np.asarray(X)[:, 0] > 0).astype(int)]


class Sworn(DummyClassifier):
    """A constant with probabilities of its own."""

    def predict_proba(self, X):
        return np.tile(np.eye(len(self.classes_))[0], (len(X), 1))


class Sure(ShareBoostClassifier):
    """One of Laconic's with probabilities of its own."""

    def predict_proba(self, X):
        p = super().predict_proba(X) ** 3
        return p / p.sum(axis=1, keepdims=True)


class Stretched(ShareBoostClassifier):
    """One of Laconic's that changes the rows before it looks at them."""

    def _validated(self, X, y=None, reset=False, weight=None):
        X, y = super()._validated(X, y, True, weight) if reset else (super()._validated(X), None)
        return (np.abs(X), y) if reset else np.abs(X)


class Tilted(RidgeClassifier):
    """A linear model with scores of its own."""

    def decision_function(self, X):
        return super().decision_function(X) + 3.0 * np.sin(np.asarray(X)[:, 0])


class Bound(LogisticRegression):
    """A model that gets another ``predict`` when it is fitted."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.predict = lambda X: self.classes_[(np.asarray(X)[:, 1] > 0).astype(int)]
        return self


class OneScore(LogisticLoss):
    """A loss of one score with a name of its own."""

    name = "mine"


class SameName(LogisticLoss):
    """A loss with the name of a built-in one, and probabilities of its own."""

    def positive(self, score):
        return 0.5 * (1.0 + np.tanh(score))


class Scores(LogLoss):
    """A loss of one score per class, with a name of its own."""

    name = "also mine"


# Models, whether they can be written as flat arrays, and the numbers of classes they are for.
MODELS = [
    (LogisticRegression(), True, (2, 3)),
    (LinearSVC(), True, (2, 3)),
    (RidgeClassifier(), True, (2, 3)),
    (Perceptron(random_state=0), True, (2, 3)),
    (SGDClassifier(random_state=0), True, (2, 3)),
    (LinearDiscriminantAnalysis(), True, (2, 3)),
    (ShareBoostClassifier(2), True, (2, 3)),
    (ShareBoostClassifier(2, pool="stumps", loss="log"), True, (2, 3)),
    (ShareBoostClassifier(2, loss=OneScore()), True, (2,)),
    (ShareBoostClassifier(2, loss=SameName()), True, (2,)),
    (ShareBoostClassifier(2, loss=Scores()), True, (2, 3)),
    (ErrorClumpingClassifier(), True, (2, 3)),
    (TotalQBoostClassifier(4, price=0.0), True, (2, 3)),
    (HolePunchingClassifier(LogisticRegression(), 2, min_rows=4), True, (2, 3)),
    (DummyClassifier(strategy="most_frequent"), True, (2, 3)),
    (DummyClassifier(strategy="prior"), True, (2, 3)),
    (Sworn(), True, (2, 3)),
    (Sure(2), True, (2, 3)),
    (DummyClassifier(strategy="constant", constant="b"), False, (2, 3)),
    (Fickle(), False, (2, 3)),
    (Cautious(), False, (2, 3)),
    (Wary(2), False, (2, 3)),
    (Stretched(2), False, (2, 3)),
    (Tilted(), False, (2,)),
    (Bound(), False, (2, 3)),
    (SVC(decision_function_shape="ovo"), False, (2, 3)),
    (DecisionTreeClassifier(max_depth=2), False, (2, 3)),
    (RandomForestClassifier(5, max_depth=2, random_state=0), False, (2, 3)),
    (KNeighborsClassifier(4), False, (2, 3)),
    (GaussianNB(), False, (2, 3)),
    (make_pipeline(StandardScaler(), LogisticRegression()), False, (2, 3)),
    (CalibratedClassifierCV(LogisticRegression(), cv=2), False, (2, 3)),
    (FixedThresholdClassifier(LogisticRegression(), threshold=0.8), False, (2,)),
]
CASES = [(model, flat, k) for model, flat, numbers in MODELS for k in numbers]


def by_hand(model, X, ask):
    """Eq. (6) from its definition: the newest hole that contains a row decides it."""
    out = []
    for row in X:
        decides = model.estimator_
        for hole in model.holes_:
            if np.linalg.norm(row - hole.centre) <= hole.radius:
                decides = hole.model
        out.append(ask(decides, row[None]))
    return np.array(out)


def assert_like_the_models(fitted, X):
    """Labels, stages and probabilities are those of the models."""

    def probabilities(decides, row):
        of_class = dict(zip(decides.classes_, decides.predict_proba(row)[0], strict=True))
        return [of_class.get(label, 0.0) for label in fitted.classes_]

    assert np.array_equal(fitted.predict(X), by_hand(fitted, X, lambda m, row: m.predict(row)[0]))
    for n, labels in enumerate(fitted.staged_predict(X)):
        assert np.array_equal(labels, fitted.at(n).predict(X))
        assert labels.dtype == fitted.classes_.dtype
    scores = fitted.decision_function(X)
    best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    assert np.array_equal(fitted.classes_[best], fitted.predict(X))
    if hasattr(fitted, "predict_proba"):
        expected = by_hand(fitted, X, probabilities)
        np.testing.assert_allclose(fitted.predict_proba(X), expected, atol=1e-9)
    if hasattr(fitted, "predictor_"):
        assert np.array_equal(fitted.predictor_.predict(X), fitted.predict(X))


@pytest.mark.parametrize(
    ("inside", "flat", "classes"), CASES, ids=[f"{type(m).__name__}-{k}" for m, _, k in CASES]
)
def test_answers_are_those_of_the_models_by_hand(inside, flat, classes):
    X, y = blobs(250, classes=classes)
    y = np.array(["a", "b", "c"])[y]
    settings = {"max_holes": 4, "min_rows": 6, "random_state": 0}
    model = HolePunchingClassifier(LogisticRegression(), local_estimator=inside, **settings)
    swapped = HolePunchingClassifier(inside, local_estimator=LogisticRegression(), **settings)
    new = np.vstack([X[::10], np.random.default_rng(1).uniform(-8, 8, (50, 2))])
    both = HolePunchingClassifier(inside, **settings)
    for fitted in (model.fit(X, y), swapped.fit(X, y), both.fit(X, y)):
        assert_like_the_models(fitted, new)
    assert hasattr(swapped, "predictor_") is flat


@pytest.mark.parametrize("seed", range(8))
def test_any_two_models_with_any_labels(seed):
    rng = np.random.default_rng(seed)
    classes = int(rng.integers(2, 4))
    labels = [
        np.array(["z", "a long name", "m"], dtype=object),
        np.array(["-1", "0", "yes"]),
        np.array([7, -3, 0], dtype=np.int8),
        np.array([5.0, -1.0, 2.0], dtype=np.float32),
        np.array([True, False]),
    ][seed % 5]
    able = [model for model, _, k in CASES if k == min(classes, len(labels))]
    able = [model for model in able if getattr(model, "strategy", "") != "constant"]
    outside, inside = (able[i] for i in rng.choice(len(able), 2, replace=False))
    X, y = blobs(200, classes=min(classes, len(labels)))
    model = HolePunchingClassifier(outside, 4, local_estimator=inside, min_rows=6, random_state=0)
    model.fit(X, labels[y])
    assert_like_the_models(model, rng.uniform(-8, 8, (80, 2)))


def test_a_constant_with_shares_a_rounding_error_apart():
    """Sums of weights may differ by rounding only. The logarithms of such shares may be equal."""
    X = np.zeros((25, 1))
    base = DummyClassifier(strategy="prior").fit(X, np.arange(25))
    base.class_prior_[-1] = np.nextafter(base.class_prior_[0], 1.0)
    assert base.predict(X[:1]) == [24]
    routed = RoutedPredictor(base, [], base.classes_, np.ones(1), 1)
    assert routed.encoded_labels(X[:1]) == [24]
    assert routed.flat().predict(X[:1]) == [24]


def test_flat_arrays_are_written_once_for_every_number_of_holes():
    X, y = blobs()
    model = HolePunchingClassifier(LogisticRegression(), 4, min_rows=5).fit(X, y)
    assert model.predictor_ is model.predictor_
    fewer = model.at(1)
    assert len(fewer.predictor_.map.parts) == 2
    assert len(model.predictor_.map.parts) == model.n_holes_ + 1


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
