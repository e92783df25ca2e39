"""`ErrorClumpingClassifier`: what it promises its users, one statement at a time."""

import io
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from laconic import (
    ErrorClumpingClassifier,
    HolePunchingClassifier,
    Predictor,
    clump_score,
    grouped_scorer,
)
from laconic.clumping import neighbours as neighbours_module
from laconic.clumping.neighbours import auto_radius, nearest_graph, radius_graph

EXACT = {"tol": 1e-10}


@parametrize_with_checks(
    [
        ErrorClumpingClassifier(),
        ErrorClumpingClassifier(discount=0.9, normalize="pairs", radius=2.0),
    ]
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.fixture
def two_classes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    return X, np.where(X[:, 0] + X[:, 1] ** 2 + rng.standard_normal(120) > 1, "b", "a")


def coefficients(model):
    return np.column_stack([model.coef_, model.intercept_])


# -- weights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalize", ["degree", "pairs"])
@pytest.mark.parametrize("radius", ["auto", 0.8])
def test_an_integer_weight_is_the_row_repeated_and_zero_the_row_gone(
    two_classes, normalize, radius
):
    X, y = two_classes
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    model = ErrorClumpingClassifier(radius=radius, normalize=normalize, **EXACT)
    weighted = clone(model).fit(X, y, weight)
    repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.radius_ == pytest.approx(repeated.radius_, rel=1e-12)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)
    assert coefficients(weighted) == pytest.approx(coefficients(repeated), abs=1e-6)


def test_fractional_weights_are_parts_of_rows(two_classes):
    """By degree, halving all weights of at most 1 changes nothing."""
    X, y = two_classes
    weight = np.random.default_rng(2).uniform(0.1, 1, len(X))
    model = ErrorClumpingClassifier(radius=1.0, **EXACT)
    one = coefficients(clone(model).fit(X, y, weight))
    assert coefficients(clone(model).fit(X, y, weight / 2)) == pytest.approx(one, abs=1e-7)


def test_class_weights_of_at_most_one_are_parts_of_rows(two_classes):
    X, y = two_classes
    model = ErrorClumpingClassifier(radius=1.0, **EXACT)
    by_class = clone(model).set_params(class_weight={"a": 1.0, "b": 0.25}).fit(X, y)
    by_row = clone(model).fit(X, y, np.where(y == "a", 1.0, 0.25))
    assert coefficients(by_class) == pytest.approx(coefficients(by_row), abs=1e-7)


@pytest.mark.parametrize("normalize", ["degree", "pairs"])
def test_only_the_ratios_of_class_weights_count(two_classes, normalize):
    X, y = two_classes
    model = ErrorClumpingClassifier(normalize=normalize, **EXACT)
    one = clone(model).set_params(class_weight={"a": 1.0, "b": 0.25}).fit(X, y)
    four = clone(model).set_params(class_weight={"a": 4.0, "b": 1.0}).fit(X, y)
    assert coefficients(four) == pytest.approx(coefficients(one), abs=1e-7)
    balanced = clone(model).set_params(class_weight="balanced").fit(X, y)
    shares = {label: 1 / np.sum(y == label) for label in "ab"}
    by_hand = clone(model).set_params(class_weight=shares).fit(X, y)
    assert coefficients(balanced) == pytest.approx(coefficients(by_hand), abs=1e-7)
    assert one.radius_ == four.radius_ == clone(model).fit(X, y).radius_


def test_without_a_discount_a_class_weight_is_the_class_repeated(two_classes):
    X, y = two_classes
    times = np.where(y == "a", 3, 1)
    model = ErrorClumpingClassifier(1e-2, discount=0.0, **EXACT)
    by_class = clone(model).set_params(class_weight={"a": 3.0, "b": 1.0}).fit(X, y)
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert coefficients(by_class) == pytest.approx(coefficients(repeated), abs=1e-7)
    C = 1 / (2 * times.sum() * 1e-2)
    svm = LinearSVC(C=C, class_weight={"a": 3.0, "b": 1.0}, tol=1e-10, dual=False).fit(X, y)
    assert coefficients(by_class) == pytest.approx(coefficients(svm), abs=1e-6)


# -- what it learns --------------------------------------------------------------------------------


def test_without_a_discount_it_is_linear_svc(two_classes):
    X, y = two_classes
    model = ErrorClumpingClassifier(alpha=1e-2, discount=0.0, **EXACT).fit(X, y)
    svm = LinearSVC(C=1 / (2 * len(X) * 1e-2), tol=1e-10, dual=False).fit(X, y)
    assert model.coef_ == pytest.approx(svm.coef_, abs=1e-6)
    assert model.intercept_ == pytest.approx(svm.intercept_, abs=1e-6)
    assert model.decision_function(X) == pytest.approx(svm.decision_function(X), abs=1e-5)


def test_a_discount_gives_up_on_the_tight_cluster():
    """A tight cluster and a wide one pull at the classifier; discounted, the tight one loses."""
    wide, _ = make_blobs(400, centers=[[2, 0]], cluster_std=1.5, random_state=0)
    tight, _ = make_blobs(100, centers=[[-1.0, 2.0]], cluster_std=0.05, random_state=1)
    other, _ = make_blobs(400, centers=[[-2, 0]], cluster_std=1.5, random_state=2)
    X = np.vstack([wide, tight, other])
    y = np.repeat([1, 1, 0], [400, 100, 400])
    errors = {}
    for discount in (0.0, 0.9):
        model = ErrorClumpingClassifier(1e-3, radius=0.1, discount=discount).fit(X, y)
        wrong = model.predict(X) != y
        errors[discount] = wrong[400:500].mean(), np.delete(wrong, slice(400, 500)).mean()
    assert errors[0.9][0] > errors[0.0][0]
    assert errors[0.9][1] < errors[0.0][1]


def test_more_classes_are_told_apart_one_against_the_rest():
    X, y = load_iris(return_X_y=True)
    model = ErrorClumpingClassifier(1e-3, radius=0.7, **EXACT).fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert model.score(X, y) > 0.9
    objective = 0.0
    for c in range(3):
        alone = ErrorClumpingClassifier(1e-3, radius=0.7, **EXACT).fit(X, y == c)
        assert alone.coef_[0] == pytest.approx(model.coef_[c])
        objective += alone.objective_
    assert model.objective_ == pytest.approx(objective)


def test_label_groups_make_one_problem_of_many_labels():
    X, y = load_digits(return_X_y=True)
    X, y = X[:500], y[:500]
    groups = {"low": range(5), "high": [5, 6, 7, 8, 9]}
    model = ErrorClumpingClassifier(1e-2, label_groups=groups, radius=30.0).fit(X, y)
    plain = ErrorClumpingClassifier(1e-2, radius=30.0).fit(X, np.where(y < 5, "low", "high"))
    assert model.classes_.tolist() == ["high", "low"]
    assert np.array_equal(model.coef_, plain.coef_)
    assert model.score(X, y) == np.mean(model.predict(X) == np.where(y < 5, "low", "high"))
    for same in (
        {"low": set(range(5)), "high": {5, 6, 7, 8, 9}},
        {"low": np.arange(5), "high": (5, 6, 7, 8, 9, "ten")},
    ):
        again = clone(model).set_params(label_groups=same).fit(X, y)
        assert np.array_equal(again.coef_, plain.coef_)
    one = clone(model).set_params(label_groups={"zero": 0, "more": range(1, 10)}).fit(X, y)
    assert one.classes_.tolist() == ["more", "zero"]
    for wrong, match in (
        ({0: [0], "rest": range(1, 10)}, "must all be text"),
        ({"low": [0], "high": [0, 1]}, "label 0 in two groups"),
        ({"low": range(5), "high": range(5, 9)}, "no group for label 9"),
        ({0: range(5), 1: range(5, 10)}, "group 0, which is also a label of group 0.*'group 0'"),
        ({10: range(5), 3: range(5, 10)}, "group 3, which is also a label of group 10"),
    ):
        with pytest.raises(ValueError, match=match):
            clone(model).set_params(label_groups=wrong).fit(X, y)
    with pytest.raises(ValueError, match="at least two classes"):
        clone(model).set_params(label_groups={"all": range(10)}).fit(X, y)


def test_scorers_that_compare_groups():
    X, y = load_digits(return_X_y=True)
    X, y = X[:400], y[:400]
    groups = {"low": range(5), "high": range(5, 10)}
    model = ErrorClumpingClassifier(1e-2, label_groups=groups).fit(X, y)
    truth = np.where(y < 5, "low", "high")
    assert grouped_scorer("accuracy")(model, X, y) == model.score(X, y)
    assert grouped_scorer("balanced_accuracy")(model, X, y) == pytest.approx(
        balanced_accuracy_score(truth, model.predict(X))
    )
    area = grouped_scorer("roc_auc")(model, X, y)
    assert area == pytest.approx(roc_auc_score(truth == "low", model.decision_function(X)))
    piped = make_pipeline(StandardScaler(), clone(model))
    scoring = pickle.loads(pickle.dumps(grouped_scorer("accuracy")))
    found = cross_val_score(piped, X, y, scoring=scoring, cv=2)
    assert np.array_equal(found, cross_val_score(piped, X, y, cv=2))
    assert repr(scoring) == "grouped_scorer('accuracy')"
    plain = ErrorClumpingClassifier().fit(X, y)
    with pytest.raises(ValueError, match="use scoring='accuracy' itself"):
        scoring(plain, X, y)


def test_a_group_of_one_label_may_bear_its_name():
    X, y = load_digits(return_X_y=True)
    X, y = X[:200], np.where(y[:200] == 3, "three", np.where(y[:200] < 3, "less", "more"))
    model = ErrorClumpingClassifier(label_groups={"three": "three", "rest": ["less", "more"]})
    assert model.fit(X, y).classes_.tolist() == ["rest", "three"]


def test_a_radius_and_nearest_neighbours_are_one_too_many(two_classes):
    X, y = two_classes
    with pytest.raises(ValueError, match=r"n_neighbors=3 and radius=0.5 were both given"):
        ErrorClumpingClassifier(n_neighbors=3, radius=0.5).fit(X, y)
    with pytest.raises(ValueError, match="both given"):
        clump_score(X, y == y[0], n_neighbors=3, radius=0.5)


def test_the_certificate_holds(two_classes):
    X, y = two_classes
    loose = ErrorClumpingClassifier(1e-5, tol=1e-1).fit(X, y)
    exact = ErrorClumpingClassifier(1e-5, tol=1e-12).fit(X, y)
    assert exact.gap_ <= 1e-12
    assert 0 <= loose.objective_ - exact.objective_ <= loose.gap_ <= 0.1 * loose.objective_
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        ErrorClumpingClassifier(1e-5, tol=1e-12, max_iter=1).fit(X, y)


def test_what_to_do_is_said_where_rounding_hides_all_progress(two_classes):
    X, y = two_classes
    with pytest.warns(ConvergenceWarning, match="rounding .* scale or centre X") as told:
        far = ErrorClumpingClassifier().fit(X + 1e6, y)
    assert far.n_iter_ < far.max_iter
    assert "max_iter" not in str(told[0].message)


@pytest.mark.parametrize("discount", [0.0, 0.5])
def test_raw_pixels_and_few_rows_are_solved_by_the_default_settings(discount):
    X, y = load_digits(return_X_y=True)
    X, y = 16 * X[:40], y[:40] > 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ErrorClumpingClassifier(discount=discount).fit(X, y)
        scaled = ErrorClumpingClassifier(1e-3 / 256**2, discount=discount, fit_intercept=False)
        scaled.fit(np.column_stack([X, np.ones(40)]) / 256, y)
    assert model.gap_ <= 1e-10 * model.objective_
    assert model.score(X, y) == 1
    assert coefficients(model)[0] == pytest.approx(scaled.coef_[0] / 256, rel=1e-4, abs=1e-7)


def test_the_papers_solver_comes_near(two_classes):
    X, y = two_classes
    newton = ErrorClumpingClassifier(0.1).fit(X, y)
    model = ErrorClumpingClassifier(0.1, solver="averaging", max_iter=200, tol=1e-2, random_state=0)
    assert model.fit(X, y).objective_ == pytest.approx(newton.objective_, rel=1e-2)
    again = clone(model).fit(X, y)
    assert np.array_equal(again.coef_, model.coef_)


# -- neighbours ------------------------------------------------------------------------------------


def test_the_radius_in_use_is_said(two_classes, capsys):
    X, y = two_classes
    model = ErrorClumpingClassifier(verbose=1).fit(X, y)
    said = capsys.readouterr().out
    assert f"radius {model.radius_:.4g}: 5" in said
    assert "iteration 1: " in said
    assert model.neighbour_share_ == pytest.approx(0.05, abs=1e-3)
    assert ErrorClumpingClassifier(radius=0.5).fit(X, y).radius_ == 0.5


@pytest.mark.parametrize("neighbours", [{"radius": 1.0}, {"n_neighbors": 4}])
def test_the_search_for_neighbours_says_how_far_it_is(two_classes, capsys, monkeypatch, neighbours):
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, for rich
    X, y = two_classes
    ErrorClumpingClassifier(**neighbours, verbose=1).fit(X, y)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().out)
    assert re.search("finding neighbours .* 100/100 %", plain)
    ErrorClumpingClassifier(**neighbours).fit(X, y)
    ErrorClumpingClassifier(**neighbours, discount=0.0, verbose=1).fit(X, y)
    assert "finding" not in capsys.readouterr().out


def test_a_graph_may_be_given(two_classes):
    X, y = two_classes
    by_radius = ErrorClumpingClassifier(radius=1.0).fit(X, y)
    graph = radius_graph(X, 1.0)
    for given in (graph, graph.to_sparse(), np.triu(graph.to_sparse().toarray())):
        model = ErrorClumpingClassifier().fit(X, y, graph=given)
        assert np.array_equal(model.coef_, by_radius.coef_)
        assert np.isnan(model.radius_)
    nearest = ErrorClumpingClassifier(n_neighbors=4).fit(X, y)
    given = ErrorClumpingClassifier().fit(X, y, graph=nearest_graph(X, 4))
    assert np.array_equal(given.coef_, nearest.coef_)
    weight = np.arange(len(X)) % 2
    dropped = ErrorClumpingClassifier().fit(X, y, weight, graph=graph)
    halved = ErrorClumpingClassifier(radius=1.0).fit(X[1::2], y[1::2])
    assert dropped.coef_ == pytest.approx(halved.coef_)


@pytest.mark.parametrize("solver", ["newton", "averaging"])
def test_without_a_discount_no_graph_is_built(two_classes, monkeypatch, solver):
    X, y = two_classes
    settings = {"discount": 0.0, "solver": solver, "tol": 0.5, "random_state": 0}
    weight = np.arange(len(X)) % 4
    given = ErrorClumpingClassifier(**settings).fit(X, y, weight, graph=radius_graph(X, 0.0))

    def build(*args, **settings):
        raise AssertionError("a graph was built")

    for name in ("radius_graph", "nearest_graph"):
        monkeypatch.setattr(neighbours_module, name, build)
    model = ErrorClumpingClassifier(**settings).fit(X, y, weight)
    assert np.array_equal(model.coef_, given.coef_)
    assert model.radius_ == pytest.approx(auto_radius(X[weight > 0], weight[weight > 0]))
    assert np.isnan(model.neighbour_share_)
    assert np.isnan(ErrorClumpingClassifier(n_neighbors=3, **settings).fit(X, y).radius_)
    holes = HolePunchingClassifier(ErrorClumpingClassifier(**settings), 1).fit(X, y)
    assert holes.radius_ == holes.estimator_.radius_ == auto_radius(X)


def test_other_metrics(two_classes):
    X, y = two_classes
    one = ErrorClumpingClassifier(radius=1.0, metric="chebyshev").fit(X, y)
    assert one.neighbour_share_ > ErrorClumpingClassifier(radius=1.0).fit(X, y).neighbour_share_


def test_a_feature_map_makes_it_a_kernel_classifier():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    y = (X**2).sum(axis=1) < 0.5
    plain = ErrorClumpingClassifier(1e-4).fit(X, y)
    kernel = make_pipeline(
        Nystroem(gamma=2.0, n_components=50, random_state=0), ErrorClumpingClassifier(1e-4)
    )
    assert plain.score(X, y) < 0.7
    assert kernel.fit(X, y).score(X, y) > 0.95


# -- storage, threads, files -----------------------------------------------------------------------


def test_rows_in_any_storage(two_classes):
    X, y = two_classes
    model = ErrorClumpingClassifier(radius=1.0, tol=1e-7)
    plain = coefficients(clone(model).fit(X, y))
    for made in (sparse.csr_matrix(X), sparse.csc_matrix(X), np.asfortranarray(X)):
        assert coefficients(clone(model).fit(made, y)) == pytest.approx(plain, abs=1e-4)
    single = clone(model).fit(X.astype(np.float32), y)
    assert coefficients(single) == pytest.approx(plain, abs=1e-3)
    for n_jobs in (1, 3):
        assert np.array_equal(coefficients(clone(model).set_params(n_jobs=n_jobs).fit(X, y)), plain)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_predictor_predicts_the_same_after_saving(tmp_path, n_classes):
    X, y = load_iris(return_X_y=True, as_frame=True)
    X, y = X[y < n_classes].assign(nothing=0.0), y[y < n_classes]
    model = ErrorClumpingClassifier().fit(X, y)
    model.predictor_.save(tmp_path / "iris.laconic")
    loaded = Predictor.load(tmp_path / "iris.laconic")
    assert np.array_equal(loaded.predict(X), model.predict(X))
    scores = loaded.scores(X)
    expected = model.decision_function(X)
    assert scores[:, -1] == pytest.approx(expected if n_classes == 2 else expected[:, -1])
    assert loaded.cost().features == 4
    for one in (model, loaded):
        assert not hasattr(one, "predict_proba")
    with pytest.raises(AttributeError, match="its scores are not probabilities; use predict"):
        loaded.predict_proba(X)
    out = io.StringIO()
    loaded.describe(file=out)
    assert "no probabilities" in out.getvalue()
    assert "petal length" in out.getvalue()


def test_data_frames_keep_their_names(two_classes):
    X, y = two_classes
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    model = ErrorClumpingClassifier().fit(frame, y)
    assert model.predictor_.names() == ["u", "v", "w"]
    assert np.array_equal(model.predictor_.predict(frame[["w", "v", "u"]]), model.predict(frame))


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"alpha": 0.0}, "'alpha' parameter"),
        ({"radius": -1.0}, "'radius' parameter"),
        ({"radius": "wide"}, "'radius' parameter"),
        ({"discount": 1.0}, r"discount must be in \[0, 1\) with normalize='degree'"),
        ({"discount": 1.0, "normalize": "pairs", "radius": 1e9}, "nothing to minimise"),
        ({"discount": 1 - 1e-12}, "with normalize='degree' leaves nothing to minimise; lower"),
        ({"metric": lambda a, b: abs(a - b).max(), "checkpoint": "file"}, "not as a lambda"),
        ({"normalize": "rows"}, "'normalize' parameter"),
        ({"n_neighbors": 0}, "'n_neighbors' parameter"),
        ({"metric": "nearness"}, "metric"),
        ({"solver": "averaging", "checkpoint": "file"}, "integer random_state"),
    ],
)
def test_wrong_settings_are_refused(two_classes, settings, match):
    with pytest.raises(ValueError, match=match):
        ErrorClumpingClassifier(**settings).fit(*two_classes)


def test_wrong_data_is_refused(two_classes):
    X, y = two_classes
    with pytest.raises(ValueError, match=r"shape \(120, 120\)"):
        ErrorClumpingClassifier().fit(X, y, graph=np.eye(3))
    with pytest.raises(ValueError, match="overflows"):
        ErrorClumpingClassifier().fit(X, y, np.full(120, 1e307))
    with pytest.raises(ValueError, match="one class, 'a'"):
        ErrorClumpingClassifier().fit(X, y, y == "a")
    with pytest.raises(ValueError, match="graph has NaN"):
        ErrorClumpingClassifier().fit(X, y, graph=np.full((120, 120), np.nan))
    for huge in (X * 1e155, X.astype(np.float32) * 1e25, sparse.csr_matrix(X * 1e155)):
        with pytest.raises(ValueError, match="scale X"):
            ErrorClumpingClassifier().fit(huge, y)
    with pytest.raises(ValueError, match="dense rows"):
        ErrorClumpingClassifier(solver="averaging").fit(sparse.csr_matrix(X), y)


def test_odd_data_has_an_answer(two_classes):
    X, y = two_classes
    constant = ErrorClumpingClassifier().fit(np.ones((20, 2)), np.arange(20) % 4 == 0)
    assert not constant.predict(np.ones((1, 2)))[0]
    duplicates = ErrorClumpingClassifier(radius=0.0).fit(np.tile(X, (3, 1)), np.tile(y, 3))
    assert duplicates.neighbour_share_ == pytest.approx(2 / 359)
    huge = ErrorClumpingClassifier(1e-3, tol=1e-4).fit(X * 1e6, y)
    assert huge.score(X * 1e6, y) > 0.6
    two = ErrorClumpingClassifier().fit(X[:2], ["a", "b"])
    assert two.predict(X[:2]).tolist() == ["a", "b"]
