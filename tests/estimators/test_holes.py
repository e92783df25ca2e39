"""Hole punching: what every hole promises, and the estimator around it."""

import io
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, make_moons
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier, StackingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron, RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from laconic import (
    ErrorClumpingClassifier,
    HolePunchingClassifier,
    Predictor,
    ShareBoostClassifier,
    TotalQBoostClassifier,
)
from laconic.clumping.neighbours import auto_radius
from problems import blobs


def holes(**settings):
    settings = {"estimator": LogisticRegression(), "max_holes": 6, "min_rows": 5, **settings}
    return HolePunchingClassifier(pickle_models="checkpoint" in settings, **settings)


@parametrize_with_checks([HolePunchingClassifier(max_holes=3), holes(max_holes=3)])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


# -- what every hole promises ------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("local", [None, DecisionTreeClassifier(max_depth=1), Perceptron()])
def test_every_hole_lowers_the_training_error(classes, local):
    X, y = blobs(classes=classes)
    model = holes(local_estimator=local, max_holes=12, min_rows=1).fit(X, y)
    assert model.n_holes_ > 2
    assert np.all(np.diff(model.errors_) < 0)
    staged = [np.mean(p != y) for p in model.staged_predict(X)]
    assert staged == pytest.approx(model.errors_)
    for hole in model.holes_:
        assert hole.error_before > 0.5
        assert hole.error_after < hole.error_before


def test_a_bad_local_classifier_is_not_used():
    class Contrary(DummyClassifier):
        """Says what is least common."""

        def predict(self, X):
            return np.repeat(self.classes_[np.argmin(self.class_prior_)], len(X))

    X, y = blobs()
    model = holes(local_estimator=Contrary(strategy="prior")).fit(X, y)
    assert {hole.kind for hole in model.holes_} == {"constant"}
    assert np.all(np.diff(model.errors_) < 0)


def test_the_first_hole_is_found_where_the_paper_says():
    X, y = blobs(200)
    model = holes(max_holes=1, radius=1.5, min_rows=1).fit(X, y)
    wrong = model.estimator_.predict(X) != y
    distance = np.linalg.norm(X[:, None] - X, axis=2)
    order = np.argsort(distance, axis=1)
    mostly = np.cumsum(wrong[order], axis=1) / np.arange(1, 201) > 0.5
    errors_near = (distance <= 1.5) @ wrong.astype(int)
    hole = model.holes_[0]
    centre = hole.row
    assert errors_near[centre] == errors_near[mostly.any(axis=1)].max()
    inside = order[centre, : np.flatnonzero(mostly[centre])[-1] + 1]
    assert np.array_equal(hole.centre, X[centre])
    assert np.array_equal(np.flatnonzero(distance[centre] <= hole.radius), np.sort(inside))
    assert hole.n_rows == len(inside)
    assert hole.error_before == wrong[inside].mean()


def test_training_error_goes_to_zero_where_rows_differ():
    X, y = blobs(120)
    model = holes(max_holes=200, min_rows=1).fit(X, y)
    assert model.errors_[-1] == 0.0
    assert model.score(X, y) == 1.0
    assert model.status_ == "the training error is at most 0"


def test_it_stops_at_the_error_asked_for():
    X, y = blobs()
    whole = holes(max_holes=12).fit(X, y)
    model = holes(max_holes=12, tol=whole.errors_[2]).fit(X, y)
    assert model.n_holes_ == 2


@pytest.mark.parametrize("far", [3e4, 1e7])
def test_a_far_row_does_not_matter(far):
    X, y = make_moons(300, noise=0.1, random_state=0)
    base = {"estimator": DummyClassifier(), "local_estimator": LogisticRegression()}
    near = holes(radius=0.5, **base).fit(X, y)
    model = holes(radius=0.5, **base).fit(np.vstack([X, [[far, -far]]]), np.append(y, 0))
    assert near.n_holes_ > 1
    assert [h.row for h in model.holes_] == [h.row for h in near.holes_]
    assert [h.radius for h in model.holes_] == [h.radius for h in near.holes_]


# -- regions -----------------------------------------------------------------------------------


def test_the_newest_hole_decides():
    X, y = blobs(classes=3, seed=1)
    model = holes(max_holes=15).fit(X, y)
    distance = np.array([np.linalg.norm(X - h.centre, axis=1) for h in model.holes_])
    inside = distance <= np.array([h.radius for h in model.holes_])[:, None]
    assert (inside.sum(axis=0) > 1).any()  # holes do overlap here
    region = model.apply(X)
    for row in range(len(X)):
        newest = np.flatnonzero(inside[:, row])
        assert region[row] == (newest[-1] + 1 if len(newest) else 0)
        used = model.holes_[newest[-1]].model if len(newest) else model.estimator_
        assert model.predict(X[[row]]) == used.predict(X[[row]])


def test_errors_in_an_old_hole_heal_in_a_newer_one():
    """A hole of class 1 in class 0, and a grain of class 0 in the hole."""
    rng = np.random.default_rng(0)
    far = rng.uniform(-10, 10, (300, 2))
    far = far[np.linalg.norm(far, axis=1) > 4]
    near, grain = rng.normal(0, 1, (120, 2)), rng.normal(0.0, 0.05, (40, 2))
    X = np.vstack([far, near, grain])
    y = np.r_[np.zeros(len(far)), np.ones(len(near)), np.zeros(len(grain))]
    base = DummyClassifier(strategy="most_frequent")
    model = holes(estimator=base, max_holes=4, radius=1.0).fit(X, y)
    first, second = model.holes_[:2]
    assert second.radius < first.radius
    assert np.linalg.norm(second.centre - first.centre) + second.radius < first.radius
    old, new = model.at(1).predict(grain), model.at(2).predict(grain)
    assert (old == 1).mean() > 0.9
    assert (new == 0).mean() > 0.9


def test_a_hole_of_one_class():
    X = np.vstack([np.random.default_rng(0).normal(c, 0.3, (40, 2)) for c in (0, 3, 6)])
    y = np.repeat([0, 1, 0], 40)
    model = holes(local_estimator=LogisticRegression()).fit(X, y)
    assert "constant" in {hole.kind for hole in model.holes_}
    assert model.score(X, y) > 0.99
    assert np.array_equal(model.predictor_.predict(X), model.predict(X))


def test_no_errors_no_holes():
    X = np.r_[np.zeros((20, 1)), np.ones((20, 1))]
    y = np.repeat(["no", "yes"], 20)
    model = holes().fit(X, y)
    assert model.n_holes_ == 0
    assert model.errors_.tolist() == [0.0]
    assert model.score(X, y) == 1.0
    out = io.StringIO()
    model.describe(file=out)
    assert "No hole" in out.getvalue()


def test_equal_rows_with_different_labels_end_the_loop():
    X = np.zeros((30, 2))
    y = np.arange(30) % 3
    model = holes(min_rows=1).fit(X, y)
    assert model.n_holes_ == 0
    assert model.status_ == "no hole was found that lowers the error"


# -- rows that count differently ---------------------------------------------------------------


def test_weight_two_is_a_row_twice_and_weight_zero_a_row_gone():
    X, y = blobs(150)
    weight = np.random.default_rng(0).integers(0, 3, 150)
    # Unpenalised and solved to the end, so that only the problem counts.
    base = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
    one = holes(estimator=base).fit(X, y, sample_weight=weight)
    other = holes(estimator=base).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert one.errors_ == pytest.approx(other.errors_)
    assert [h.radius for h in one.holes_] == pytest.approx([h.radius for h in other.holes_])
    assert np.array_equal(one.predict(X), other.predict(X))
    # Numbers of centres are those of the rows that were given.
    assert all(np.array_equal(X[h.row], h.centre) for h in one.holes_)


def test_class_weights():
    X, y = blobs(classes=3)
    dear = holes(class_weight={0: 1, 1: 1, 2: 50}, max_holes=3).fit(X, y)
    plain = holes(max_holes=3).fit(X, y)
    assert np.mean(dear.predict(X)[y == 2] != 2) < np.mean(plain.predict(X)[y == 2] != 2)
    # They do not count copies of rows, so they leave the radius alone.
    assert dear.radius_ == plain.radius_
    by_hand = holes(max_holes=3, radius=plain.radius_)
    by_hand.fit(X, y, sample_weight=np.where(y == 2, 50.0, 1.0))
    assert dear.errors_ == pytest.approx(by_hand.errors_)
    balanced = holes(class_weight="balanced", max_holes=3).fit(X, y)
    assert np.all(np.diff(balanced.errors_) < 0)


def test_estimators_get_class_weights_where_they_have_a_place_for_them():
    X, y = blobs(classes=2)
    prices = {0: 1.0, 1: 3.0}
    model = HolePunchingClassifier(class_weight=prices, max_holes=2).fit(X, y)
    assert model.estimator_.class_weight == prices
    alone = ErrorClumpingClassifier(class_weight=prices).fit(X, y)
    assert np.array_equal(model.estimator_.coef_, alone.coef_)
    # One of their own is multiplied by the prices.
    doubled = ErrorClumpingClassifier(class_weight={1: 2.0})
    model = HolePunchingClassifier(doubled, class_weight=prices, max_holes=0).fit(X, y)
    assert model.estimator_.class_weight == {0: 1.0, 1: 6.0}
    balanced = ErrorClumpingClassifier(class_weight="balanced")
    model = HolePunchingClassifier(balanced, class_weight=prices, max_holes=0).fit(X, y)
    share = np.bincount(y) / len(y)
    expected = {0: 0.5 / share[0], 1: 1.5 / share[1]}
    assert model.estimator_.class_weight == pytest.approx(expected)


@pytest.mark.parametrize("own", [None, "balanced", {0: 1.0, 1: 2.0}], ids=str)
def test_weight_two_is_a_row_twice_whatever_class_weights_estimators_have(own):
    X, y = blobs(90, classes=2, flipped=0.1)
    weight = np.random.default_rng(0).integers(0, 4, 90)
    inner = ErrorClumpingClassifier(class_weight=own, tol=1e-12)
    model = HolePunchingClassifier(inner, 3, min_rows=3, class_weight={0: 0.3, 1: 2.5})
    one = clone(model).fit(X, y, weight)
    other = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert one.estimator_.coef_ == pytest.approx(other.estimator_.coef_, abs=1e-8)
    assert one.errors_ == pytest.approx(other.errors_)


def test_weights_too_small_for_any_hole_are_told():
    X, y = blobs(60)
    with pytest.warns(UserWarning, match="add up to 1, so no hole can hold min_rows=5"):
        holes().fit(X, y, sample_weight=np.full(60, 1 / 60))
    told = "there are 60 training rows, so no hole can hold min_rows=100 of them; lower min_rows$"
    with pytest.warns(UserWarning, match=told):
        HolePunchingClassifier(LogisticRegression(), min_rows=100).fit(X, y)


@pytest.mark.parametrize("classes", [2, 3])
def test_weights_that_leave_room_for_no_hole_are_told(classes):
    """A sum of 6 has room for min_rows=5, but hardly for five sixths that are mostly wrong."""
    X, y = blobs(60, classes=classes)
    small = np.full(60, 6 / 60)
    with pytest.warns(
        UserWarning, match="weights of the 60 training rows add up to 6, so a hole of min_rows=5"
    ):
        model = holes().fit(X, y, sample_weight=small)
    assert model.n_holes_ == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert holes().fit(X, y, sample_weight=np.ones(60)).n_holes_ > 0
        assert holes(min_rows=0.5).fit(X, y, sample_weight=small).n_holes_ > 0
        # Where no ball is mostly wrong, no scale of the weights would help.
        assert holes().fit(X, X[:, 0] > 0, sample_weight=small).n_holes_ == 0


def test_a_share_of_the_rows_for_their_number_is_told():
    X, y = blobs(60)
    with pytest.warns(UserWarning, match="min_rows=0.1 is a number of rows"):
        holes(min_rows=0.1).fit(X, y)


def test_weights_need_an_estimator_that_takes_them():
    X, y = blobs(60)
    base = KNeighborsClassifier()
    with pytest.raises(TypeError, match="KNeighborsClassifier takes no sample_weight"):
        holes(estimator=base).fit(X, y, sample_weight=np.ones(60))
    holes(estimator=base).fit(X, y)


# -- guards ------------------------------------------------------------------------------------


def test_holes_hold_as_many_rows_as_asked_for():
    X, y = blobs()
    for least in (1, 20, 40):
        model = holes(min_rows=least, max_holes=10).fit(X, y)
        assert all(hole.n_rows >= least for hole in model.holes_)


def test_early_stopping_uses_the_lowest_held_out_error():
    X, y = blobs(300)
    y = np.where(np.random.default_rng(1).random(300) < 0.25, 1 - y, y)
    model = holes(
        early_stopping=True, max_holes=40, min_rows=1, n_iter_no_change=3, random_state=0
    ).fit(X, y)
    assert model.n_holes_ == np.argmin(model.validation_errors_)
    assert len(model.validation_errors_) == len(model.errors_)
    assert model.n_holes_ < 40
    punched = len(model.errors_) - 1
    told = f"by the held-out rows, {model.n_holes_} of the {punched} holes punched are used"
    assert model.status_.endswith(told)


def test_guarded_holes_help_held_out_rows():
    X, y = blobs(600)
    y = np.where(np.random.default_rng(1).random(600) < 0.2, 1 - y, y)
    model = holes(guard=True, max_holes=20, min_rows=1, validation_fraction=0.3, random_state=0)
    model.fit(X, y)
    assert model.n_holes_ > 0
    assert np.all(np.diff(model.validation_errors_) < 0)
    assert all(hole.held[2] < hole.held[1] for hole in model.holes_)


def test_pruning_never_raises_the_held_out_error():
    X, y = blobs(500)
    y = np.where(np.random.default_rng(1).random(500) < 0.25, 1 - y, y)
    settings = {"max_holes": 20, "min_rows": 1, "validation_fraction": 0.3, "random_state": 0}
    whole = holes(guard=False, early_stopping=True, n_iter_no_change=99, **settings).fit(X, y)
    pruned = holes(prune=True, **settings).fit(X, y)
    assert 0 < pruned.n_holes_ < len(whole.validation_errors_) - 1
    assert pruned.validation_errors_[-1] <= whole.validation_errors_[-1]
    assert len(pruned.errors_) == pruned.n_holes_ + 1


def test_every_row_as_a_candidate_finds_the_fullest_ball():
    X, y = blobs(300, seed=3)
    model = holes(max_holes=1, n_candidates=300, random_state=0).fit(X, y)
    wrong = model.estimator_.predict(X) != y
    fullest = 0
    for centre in X:
        order = np.argsort(np.linalg.norm(X - centre, axis=1))
        errors = np.cumsum(wrong[order])
        sizes = np.flatnonzero((2 * errors > np.arange(1, 301)) & (np.arange(1, 301) >= 5))
        fullest = max(fullest, errors[sizes[-1]] if len(sizes) else 0)
    hole = model.holes_[0]
    assert round(hole.n_rows * hole.error_before) == fullest
    one = holes(max_holes=1).fit(X, y).holes_[0]
    assert round(one.n_rows * one.error_before) < fullest


def test_candidates_are_drawn_by_the_random_state(tmp_path):
    X, y = blobs(400, seed=3)
    some = {"n_candidates": 4, "max_holes": 5}
    first, again, other = (holes(**some, random_state=s).fit(X, y) for s in (0, 0, 1))
    assert [h.row for h in first.holes_] == [h.row for h in again.holes_]
    assert [h.row for h in first.holes_] != [h.row for h in other.holes_]
    with pytest.raises(ValueError, match="integer random_state"):
        holes(**some, checkpoint=tmp_path / "fit").fit(X, y)
    file = {"checkpoint": tmp_path / "fit", "random_state": 0}
    holes(**some, **file, callbacks=[lambda state: len(state.holes) == 2]).fit(X, y)
    resumed = holes(**some, **file).fit(X, y)
    assert [h.row for h in resumed.holes_] == [h.row for h in first.holes_]


# -- any classifier ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "base",
    [
        RandomForestClassifier(3, max_depth=1, random_state=0),
        SVC(kernel="linear", decision_function_shape="ovo"),
        make_pipeline(StandardScaler(), LinearSVC()),
        RidgeClassifier(),
        KNeighborsClassifier(5),
    ],
)
def test_any_classifier_inside_and_outside(base):
    X, y = blobs(classes=4)
    model = holes(estimator=base, max_holes=3).fit(X, y)
    assert np.all(np.diff(model.errors_) < 0)
    scores = model.decision_function(X)
    assert scores.shape == (400, 4)
    if not isinstance(base, SVC):
        assert np.array_equal(model.classes_[scores.argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize("column", [False, True])
def test_labels_are_the_same_however_an_estimator_spells_them(column):
    class Terse(LogisticRegression):
        """Answers in the shortest type that will do, or as a column."""

        def predict(self, X):
            said = np.array(super().predict(X).tolist())
            return said[:, None] if column else said

    X, y = blobs(classes=3)
    y = np.array(["a", "b", "longest"])[y]
    settings = {"guard": True, "prune": True, "random_state": 0}
    terse = holes(estimator=Terse(), **settings).fit(X, y)
    plain = holes(**settings).fit(X, y)
    assert np.array_equal(terse.errors_, plain.errors_)
    assert np.array_equal(terse.predict(X), plain.predict(X))
    assert np.array_equal(list(terse.staged_predict(X)), list(plain.staged_predict(X)))


def test_scores_follow_predictions_where_a_model_scores_pairs():
    X, y = blobs(classes=3)
    base = SVC(kernel="linear", decision_function_shape="ovo")
    model = holes(estimator=base, max_holes=3).fit(X, y)
    scores = model.decision_function(X)
    assert np.array_equal(model.classes_[scores.argmax(axis=1)], model.predict(X))


def test_probabilities_where_every_model_has_them():
    X, y = blobs(classes=3)
    model = holes(max_holes=4).fit(X, y)
    p = model.predict_proba(X)
    assert np.allclose(p.sum(axis=1), 1.0)
    assert np.array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(model.predictor_.predict_proba(X), p, atol=1e-12)
    for base in (LinearSVC(), ErrorClumpingClassifier()):
        without = holes(estimator=base, max_holes=1).fit(X, y)
        assert not hasattr(without, "predict_proba")
        assert not hasattr(without.predictor_, "predict_proba")


@pytest.mark.parametrize(
    "models",
    [
        (LogisticRegression(), ShareBoostClassifier(2)),  # two losses
        (ShareBoostClassifier(2), DummyClassifier()),  # the margin loss and constants
        (LogisticRegression(solver="liblinear"), LogisticRegression()),
        (ShareBoostClassifier(2, loss="log"), LogisticRegression()),
        (RidgeClassifier(), LogisticRegression()),
    ],
)
def test_a_predictor_has_the_same_probabilities_or_none(models):
    X, y = blobs()
    outside, inside = models
    model = holes(estimator=outside, local_estimator=inside, max_holes=3).fit(X, y)
    predictor = model.predictor_
    np.testing.assert_array_equal(predictor.predict(X), model.predict(X))
    if hasattr(predictor, "predict_proba"):
        np.testing.assert_allclose(predictor.predict_proba(X), model.predict_proba(X), atol=1e-9)
    alike = [isinstance(m, LogisticRegression) or getattr(m, "loss", "") == "log" for m in models]
    assert hasattr(predictor, "predict_proba") == all(alike)


def test_a_hole_of_no_rows_is_refused():
    X, y = blobs(60)
    with pytest.raises(ValueError, match="'min_rows' parameter of HolePunchingClassifier must be"):
        holes(min_rows=0).fit(X, y)


def test_sparse_rows_are_as_good():
    X, y = blobs(classes=3)
    X[np.abs(X) < 0.5] = 0.0
    dense, thin = holes().fit(X, y), holes().fit(sparse.csr_matrix(X), y)
    assert [h.row for h in dense.holes_] == [h.row for h in thin.holes_]
    assert np.array_equal(dense.predict(X), thin.predict(sparse.csr_matrix(X)))


def test_float32_stays_float32():
    X, y = blobs()
    seen = []

    class Watched(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            seen.append(X.dtype)
            return super().fit(X, y, sample_weight)

    model = holes(estimator=Watched()).fit(X.astype(np.float32), y)
    assert set(seen) == {np.dtype(np.float32)}
    assert np.array_equal(model.apply(X.astype(np.float32)), model.apply(X))


def test_a_local_fit_that_fails_leaves_a_constant():
    class Picky(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            if len(y) < 200:
                raise ValueError("too few rows")
            return super().fit(X, y)

    X, y = blobs()
    with pytest.warns(UserWarning, match="too few rows"):
        model = holes(estimator=Picky()).fit(X, y)
    assert {h.kind for h in model.holes_} == {"constant"}


def test_fits_are_repeatable_and_threads_do_not_matter():
    X, y = blobs(classes=3)
    base = RandomForestClassifier(3, max_depth=2)
    one = holes(estimator=base, random_state=3, n_jobs=1).fit(X, y)
    other = holes(estimator=base, random_state=3, n_jobs=2).fit(X, y)
    assert np.array_equal(one.errors_, other.errors_)
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))


# -- the deployable result ---------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "local", [None, LinearSVC(), ShareBoostClassifier(1), ShareBoostClassifier(2, pool="stumps")]
)
def test_the_predictor_is_the_model(tmp_path, classes, local):
    X, y = blobs(classes=classes)
    X = np.hstack([X, np.random.default_rng(0).standard_normal((400, 3))])
    y = np.array(["a", "b", "c"])[y]
    model = holes(local_estimator=local, max_holes=5, min_rows=12).fit(X, y)
    new = np.random.default_rng(1).uniform(-8, 8, (300, 5))
    for n in (0, model.n_holes_):
        part = model.at(n)
        predictor = part.predictor_
        predictor.save(tmp_path / "model")
        loaded = Predictor.load(tmp_path / "model")
        assert np.array_equal(loaded.predict(new), part.predict(new))
        scores = loaded.scores(new)
        decision = scores[:, 1] - scores[:, 0] if classes == 2 else scores
        assert decision == pytest.approx(part.decision_function(new), abs=1e-9)
        columns = predictor.map.columns(new) @ predictor.weights
        assert columns == pytest.approx(scores, abs=1e-9)
        assert loaded.cost() == predictor.cost()
        assert predictor.map.share.sum() == pytest.approx(1.0)
    assert model.predictor_.cost().atoms == model.n_holes_ + 1


@pytest.mark.parametrize("loss", ["exponential", "logistic", "squared_hinge"])
def test_a_model_of_one_score_inside(loss):
    X, y = blobs()
    local = TotalQBoostClassifier(max_rounds=3, price=0.0, loss=loss)
    model = holes(estimator=local, local_estimator=local, max_holes=3).fit(X, y)
    predictor = model.predictor_
    np.testing.assert_array_equal(predictor.predict(X), model.predict(X))
    np.testing.assert_allclose(predictor.predict_proba(X), model.predict_proba(X), atol=1e-12)
    outside = model.apply(X) == 0
    own = local.fit(X, y)
    np.testing.assert_allclose(
        model.predict_proba(X)[outside], own.predict_proba(X)[outside], atol=1e-9
    )


def test_cost_counts_distances_and_the_expected_model():
    X, y = make_moons(300, noise=0.1, random_state=0)
    model = holes(max_holes=2).fit(X, y)
    predictor = model.predictor_
    share = np.bincount(model.apply(X), minlength=3) / 300
    assert predictor.map.share == pytest.approx(share)
    widths = np.array([len(part.names()) for part in predictor.map.parts])
    expected = 2 * 2 + 2 + round(float(share @ widths) * 2)
    assert predictor.cost().operations == expected


def test_models_that_are_not_flat_have_no_predictor():
    X, y = blobs()
    model = holes(estimator=DecisionTreeClassifier(max_depth=1)).fit(X, y)
    with pytest.raises(AttributeError, match="DecisionTreeClassifier is neither linear"):
        _ = model.predictor_
    assert not hasattr(model, "predictor_")


# -- numbers of holes, looks -------------------------------------------------------------------


def test_every_number_of_holes():
    X, y = blobs(classes=3)
    model = holes().fit(X, y)
    for n, staged in enumerate(model.staged_predict(X)):
        assert np.array_equal(model.at(n).predict(X), staged)
        assert model.at(n).n_holes_ == len(model.at(n).holes_) == n
        shorter = holes(max_holes=n).fit(X, y)
        assert np.array_equal(shorter.predict(X), staged)
    with pytest.raises(ValueError, match="give a number from 0 to"):
        model.at(99)


def test_description_and_plot():
    plt = pytest.importorskip("matplotlib.pyplot")
    X, y = blobs(classes=3)
    model = holes(early_stopping=True, random_state=0).fit(X, y)
    out = io.StringIO()
    model.describe(file=out)
    said = out.getvalue()
    assert "LogisticRegression with" in said
    assert all(f"{hole.radius:.4g}" in said for hole in model.holes_)
    ax = model.plot(X, y)
    assert ax.get_xlabel() == "holes"
    assert [line.get_label() for line in ax.lines][:3] == ["training", "held out", "given rows"]
    plt.close(ax.figure)
    with pytest.raises(ValueError, match="both X and y"):
        model.plot(X)


def test_data_frames_keep_their_names():
    iris = load_iris(as_frame=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = holes(estimator=RidgeClassifier(), max_holes=2).fit(
            iris.data, iris.target_names[iris.target]
        )
        model.predict(iris.data)
    assert model.predictor_.feature_names == list(iris.data.columns)
    assert np.array_equal(model.predictor_.predict(iris.data), model.predict(iris.data))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(iris.data.rename(columns=str.upper))


# -- long fits ---------------------------------------------------------------------------------

KILLED = """
from sklearn.linear_model import LogisticRegression
from laconic import HolePunchingClassifier

def kill(state):
    if len(state.holes) == 3:
        os.kill(os.getpid(), signal.SIGKILL)

def die(data, checkpoint, settings):
    model = HolePunchingClassifier(
        LogisticRegression(), checkpoint=checkpoint, pickle_models=True, callbacks=[kill],
        **settings
    )
    model._save_every = 0.0
    with np.load(data) as file:
        model.fit(file["X"], file["y"])
"""
HELD_OUT = ({}, {"early_stopping": True, "guard": True, "random_state": 1})


@pytest.fixture(scope="module")
def killed(killed_fits, tmp_path_factory):
    """Data, and settings and checkpoints of fits to it that were killed after three holes."""
    folder = tmp_path_factory.mktemp("killed")
    X, y = blobs(900, classes=4)
    y = np.array(["a", "b", "c", "d"])[y]
    np.savez(folder / "data.npz", X=X, y=y)
    asked = [{"max_holes": 6, "min_rows": 5, **held} for held in HELD_OUT]
    files = [folder / f"{number}" for number in range(len(asked))]
    killed_fits(KILLED, [(folder / "data.npz", *fit) for fit in zip(files, asked, strict=True)])
    return X, y, asked, files


@pytest.mark.parametrize("number", range(len(HELD_OUT)))
def test_a_killed_fit_resumes_to_the_identical_model(killed, number):
    X, y, asked, files = killed
    settings, file = asked[number], files[number]
    rounds = []
    resumed = holes(checkpoint=file, callbacks=[rounds.append], **settings).fit(X, y)
    whole = holes(**settings).fit(X, y)
    assert len(rounds) == len(whole.errors_) - 1 - 3
    assert np.array_equal(resumed.errors_, whole.errors_)
    assert resumed.n_holes_ == whole.n_holes_
    assert resumed.status_ == whole.status_
    for a, b in zip(resumed.holes_, whole.holes_, strict=True):
        assert (a.row, a.radius, a.kind, a.n_rows, a.held) == (
            b.row, b.radius, b.kind, b.n_rows, b.held,
        )  # fmt: skip
    assert np.array_equal(resumed.decision_function(X), whole.decision_function(X))
    again = holes(checkpoint=file, **{**settings, "max_holes": 2}).fit(X, y)
    assert np.array_equal(
        again.predict(X), holes(**{**settings, "max_holes": 2}).fit(X, y).predict(X)
    )


def test_a_checkpoint_of_other_data_is_refused(tmp_path):
    X, y = blobs(100)
    holes(checkpoint=tmp_path / "fit").fit(X, y)
    with pytest.raises(ValueError, match="other data or settings"):
        holes(checkpoint=tmp_path / "fit").fit(X + 1.0, y)
    with pytest.raises(ValueError, match="other data or settings"):
        holes(checkpoint=tmp_path / "fit", min_rows=7).fit(X, y)
    with pytest.raises(ValueError, match="integer random_state"):
        holes(checkpoint=tmp_path / "fit", guard=True).fit(X, y)

    held = {"checkpoint": tmp_path / "held", "guard": True, "random_state": 0}
    holes(**held).fit(X, y)
    watched = train_test_split(np.arange(100), test_size=10, random_state=0, stratify=y)[1]
    other = X.copy()
    other[watched.max()] += 1.0
    with pytest.raises(ValueError, match="other data or settings"):
        holes(**held).fit(other, y)
    with pytest.raises(ValueError, match="other data or settings"):
        holes(**{**held, "guard": False}).fit(X, y)
    holes(checkpoint=tmp_path / "whole", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="other data or settings"):
        holes(checkpoint=tmp_path / "whole", random_state=0, prune=True).fit(X, y)


class Lucky(ClassifierMixin, BaseEstimator):
    """The nearest row where its seed is even, else the first class."""

    def __init__(self, random_state=0):
        self.random_state = random_state

    def fit(self, X, y):
        self.classes_, self.X_, self.y_ = np.unique(y), X, y
        return self

    def predict(self, X):
        if self.random_state % 2:
            return np.full(len(X), self.classes_[0])
        return self.y_[((X[:, None] - self.X_) ** 2).sum(axis=2).argmin(axis=1)]


def test_a_ball_that_a_round_filled_in_vain_is_tried_again_in_the_next(tmp_path):
    """Another seed may fill it; a resumed fit, which does not know of it, would try too."""
    X = np.random.default_rng(0).uniform(size=(90, 2))
    y = np.floor(3 * X[:, 0]).astype(int)
    settings = {"local_estimator": Lucky(), "guard": True, "random_state": 0, "min_rows": 3,
                "estimator": DummyClassifier(), "validation_fraction": 0.3}  # fmt: skip
    whole = holes(max_holes=5, **settings).fit(X, y)
    holes(max_holes=2, checkpoint=tmp_path / "fit", **settings).fit(X, y)
    resumed = holes(max_holes=5, checkpoint=tmp_path / "fit", **settings).fit(X, y)
    assert [h.row for h in resumed.holes_] == [h.row for h in whole.holes_]
    assert np.array_equal(resumed.errors_, whole.errors_)


def test_an_interrupted_fit_keeps_its_holes():
    def stop(state):
        if len(state.holes) == 2:
            raise KeyboardInterrupt

    X, y = blobs()
    with pytest.warns(UserWarning, match="keeps 2 holes"):
        model = holes(callbacks=[stop]).fit(X, y)
    assert model.status_ == "interrupted"
    assert model.n_holes_ == 2
    assert np.array_equal(model.predict(X), holes(max_holes=2).fit(X, y).predict(X))


def test_a_callback_can_stop_it(capsys):
    X, y = blobs()
    model = holes(callbacks=[lambda state: len(state.holes) == 1], verbose=1).fit(X, y)
    assert model.n_holes_ == 1
    assert model.status_ == "a callback stopped it"
    assert "training error" in capsys.readouterr().out


# -- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_holes": -1}, "max_holes"),
        ({"radius": 0.0}, "radius"),
        ({"radius": "wide"}, "radius"),
        ({"n_candidates": 0}, "n_candidates"),
        ({"tol": 1.0}, "tol"),
        ({"estimator": "svm"}, "estimator"),
        ({"validation_fraction": 1.5}, "validation_fraction"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    X, y = blobs(50)
    with pytest.raises(ValueError, match=message):
        holes(**settings).fit(X, y)


def test_estimators_that_do_not_predict_the_labels_are_refused():
    class Wide(LogisticRegression):
        def predict(self, X):
            return np.column_stack([super().predict(X)] * 2)

    X, y = blobs(60, classes=4)
    with pytest.raises(ValueError, match=r"Wide predicted an array of shape \(60, 2\)"):
        holes(estimator=Wide()).fit(X, y)
    groups = ErrorClumpingClassifier(label_groups={"low": [0, 1], "high": [2, 3]})
    with pytest.raises(ValueError, match="learned the classes 'high', 'low', but y has 0, 1, 2, 3"):
        holes(estimator=groups).fit(X, y)
    for part in ("estimator", "local_estimator"):
        with pytest.raises(TypeError, match="LinearRegression is not a classifier"):
            holes(**{part: LinearRegression()}).fit(X, y)


def test_only_a_euclidean_radius_is_taken_from_the_estimator():
    X, y = blobs(80)
    for metric in ("euclidean", "cosine"):
        model = holes(estimator=ErrorClumpingClassifier(metric=metric), max_holes=1).fit(X, y)
        assert model.radius_ == pytest.approx(auto_radius(X))
        assert (model.estimator_.radius_ == model.radius_) == (metric == "euclidean")


def test_callbacks_must_be_callable():
    X, y = blobs(50)
    with pytest.raises(TypeError, match="callables"):
        holes(callbacks=["print"]).fit(X, y)


def test_rows_that_cannot_be():
    X, y = blobs(50)
    with pytest.raises(ValueError, match="at least two classes"):
        holes().fit(X, np.zeros(50))
    with pytest.raises(ValueError, match="at least two classes"):
        holes().fit(X, y, sample_weight=(y == 0).astype(float))
    with pytest.raises(ValueError, match="NaN"):
        holes().fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(ValueError, match="features"):
        holes().fit(X, y).predict(X[:, :1])
    with pytest.raises(ValueError, match="scale X"):
        holes().fit(X * 1e155, y)
    with pytest.raises(ValueError, match="set guard=False and prune=False"):
        holes(guard=True, prune=True).fit(X[:4], [0, 1, 2, 3])


def test_a_frame_column_of_text_is_refused():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]})
    with pytest.raises(ValueError, match=r"column 'b' of X holds text \('x' in row 0\)"):
        holes().fit(frame, [0, 1, 0])


def test_parameters_are_left_as_they_were_given():
    X, y = blobs(80)
    base = LogisticRegression()
    model = holes(estimator=base, random_state=0)
    before = clone(model).get_params()
    model.fit(X, y)
    assert not hasattr(base, "coef_")
    assert base.random_state is None
    assert model.get_params().keys() == before.keys()


def test_a_model_that_can_predict_only_after_its_fit():
    """`StackingClassifier` has no ``predict`` before it is fitted."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    y = (X[:, 0] + X[:, 1] ** 2 > 1).astype(int)
    tree = DecisionTreeClassifier(max_depth=1)
    stacked = StackingClassifier([("linear", LogisticRegression()), ("tree", tree)])
    model = HolePunchingClassifier(stacked, 1).fit(X, y)
    assert np.array_equal(model.at(0).predict(X), model.estimator_.predict(X))
