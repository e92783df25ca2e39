"""Converted models decide as the models do, on every row."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from laconic import Predictor, convert

try:
    from lightgbm import Booster, LGBMClassifier
except ImportError:
    LGBMClassifier = None

LINEAR = {
    "logistic": LogisticRegression(max_iter=5000),
    "one class at a time": SGDClassifier(loss="log_loss", random_state=0),
    "modified huber": SGDClassifier(loss="modified_huber", random_state=0),
    "support vectors": LinearSVC(random_state=0),
    "few weights": LinearSVC(C=0.05, penalty="l1", dual=False),
    "ridge": RidgeClassifier(),
    "perceptron": Perceptron(),
    "discriminant": LinearDiscriminantAnalysis(),
}
STUMPS = {
    "adaboost": AdaBoostClassifier(n_estimators=15),
    "gradient boosting": GradientBoostingClassifier(max_depth=1, n_estimators=15),
    "from zero": GradientBoostingClassifier(max_depth=1, n_estimators=9, init="zero"),
    "histograms": HistGradientBoostingClassifier(max_leaf_nodes=2, max_iter=15),
}
if LGBMClassifier is not None:
    some = {"n_estimators": 15, "max_depth": 1, "verbose": -1, "n_jobs": 1}
    STUMPS["lightgbm"] = LGBMClassifier(**some)
    STUMPS["lightgbm, one against all"] = LGBMClassifier(objective="multiclassova", **some)
    STUMPS["lightgbm, averaged"] = LGBMClassifier(
        boosting_type="rf", bagging_freq=1, bagging_fraction=0.7, **some
    )
FRONTS = {
    "nothing": [],
    "standard": [StandardScaler()],
    "without mean": [StandardScaler(with_mean=False)],
    "range": [MinMaxScaler((-2, 3))],
    "robust": [RobustScaler()],
    "two": [MaxAbsScaler(), StandardScaler(with_std=False)],
}
DATA = {"two classes": load_breast_cancer, "three classes": load_iris}


def fitted(steps, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make_pipeline(*steps).fit(X, y)


def data(name, columns=8):
    X, y = DATA[name](return_X_y=True)
    return X[:, :columns], y


def around(predictor, rng, n=400, integers=False):
    """Rows whose values are thresholds of a predictor, or one float64 number off, or anything."""
    cuts = [[0.0, -0.0, 1e-300, 1e30, -1e30] for _ in range(predictor.n_features)]
    maps = getattr(predictor.map, "maps", [predictor.map])
    for map in maps:
        for feature, value in zip(map.feature, getattr(map, "value", ()), strict=False):
            cuts[feature] += [value, np.nextafter(value, np.inf), np.nextafter(value, -np.inf)]
            cuts[feature] += [float(np.float32(value)), value + rng.standard_normal()]
    return np.column_stack([rng.choice(values, n) for values in cuts])


def raw_scores(model, X):
    """The scores of a model, or None if they cannot be asked for."""
    last = model.steps[-1][1]
    inner = model[:-1].transform(X) if len(model.steps) > 1 else X
    if hasattr(last, "booster_"):
        return last.booster_.predict(inner, raw_score=True)
    return last.decision_function(inner)


def assert_same(model, predictor, X, scores=True):
    assert np.array_equal(predictor.predict(X), model.predict(X))
    if scores:
        found, wanted = predictor.scores(X), raw_scores(model, X)
        wanted = wanted[:, None] if wanted.ndim == 1 else wanted
        factor = np.abs(wanted).max() / (np.abs(found).max() or 1.0)
        assert np.allclose(factor * found, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
    if predictor.has_probabilities:
        assert np.allclose(predictor.predict_proba(X), model.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("which", DATA)
@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("name", LINEAR)
def test_linear_models(name, front, which):
    X, y = data(which)
    model = fitted([*FRONTS[front], LINEAR[name]], X, y)
    predictor = convert(model)
    assert_same(model, predictor, X)
    wide = np.random.default_rng(0).uniform(X.min(axis=0) - 5, X.max(axis=0) + 5, (300, X.shape[1]))
    assert_same(model, predictor, wide)
    assert predictor.weights.shape[1] == (1 if which == "two classes" else 3)
    two = len(np.unique(y)) == 2
    assert predictor.has_probabilities == (
        name in ("logistic", "modified huber", "discriminant")
        or (name == "one class at a time" and two)
    )


@pytest.mark.parametrize("which", DATA)
@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("name", STUMPS)
def test_stumps_decide_alike_right_at_their_thresholds(name, front, which):
    X, y = data(which)
    if "one against all" in name and which == "two classes":
        pytest.skip("one against all needs three classes")
    model = fitted([*FRONTS[front], STUMPS[name]], X, y)
    predictor = convert(model)
    rng = np.random.default_rng(1)
    assert_same(model, predictor, X)
    assert_same(model, predictor, around(predictor, rng))
    if not FRONTS[front]:  # scikit-learn scales float32 rows in float32
        assert_same(model, predictor, around(predictor, rng).astype(np.float32))
    assert len(predictor.weights) <= 15 * (2 * predictor.weights.shape[1])


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("name", STUMPS)
def test_clipped_columns_before_stumps(name, clip):
    X, y = data("three classes")
    model = fitted([MinMaxScaler(clip=clip), STUMPS[name]], X[:, :2], y)
    predictor = convert(model)
    rows = np.vstack([around(predictor, np.random.default_rng(2)), [[1e9, 1e9], [-1e9, 1e9]]])
    assert_same(model, predictor, rows)


@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent", "constant"])
@pytest.mark.parametrize("name", ["logistic", "ridge", *STUMPS])
def test_filled_gaps(name, strategy):
    X, y = data("three classes", 5)
    rng = np.random.default_rng(3)
    X[rng.random(X.shape) < 0.2] = np.nan
    imputer = SimpleImputer(strategy=strategy, add_indicator=True)
    for front in ([imputer, StandardScaler()], [StandardScaler(), imputer]):
        model = fitted([*front, (LINEAR | STUMPS)[name]], X, y)
        predictor = convert(model)
        rows = X if name in LINEAR else np.vstack([X, around(predictor, rng)])
        rows[rng.random(rows.shape) < 0.1] = np.nan
        assert_same(model, predictor, rows)


@pytest.mark.parametrize("gap", [-1.0, 0.0])
@pytest.mark.parametrize("name", ["logistic", "gradient boosting", "histograms"])
def test_another_number_for_missing_values(name, gap):
    X, y = data("two classes", 4)
    X[np.random.default_rng(4).random(X.shape) < 0.2] = gap
    front = [SimpleImputer(missing_values=gap, add_indicator=True), StandardScaler()]
    model = fitted([*front, (LINEAR | STUMPS)[name]], X, y)
    assert_same(model, convert(model), X)


@pytest.mark.parametrize("name", [n for n in STUMPS if n in ("histograms", "lightgbm")])
def test_missing_values_go_where_the_model_sends_them(name):
    X, y = data("three classes")
    rng = np.random.default_rng(5)
    for gaps in (0.0, 0.3):
        given = np.where(rng.random(X.shape) < gaps, np.nan, X)
        model = fitted([STUMPS[name]], given, y)
        predictor = convert(model)
        rows = around(predictor, rng)
        rows[rng.random(rows.shape) < 0.3] = np.nan
        assert_same(model, predictor, rows)
        plain = convert(model, missing=False)
        assert len(plain.weights) < len(predictor.weights)
        assert_same(model, plain, around(predictor, rng))


def test_histograms_take_infinity():
    X, y = data("two classes", 3)
    X[::5, 0] = np.nan
    model = fitted([STUMPS["histograms"]], X, y)
    rows = np.array([[np.inf, -np.inf, 1.0], [-np.inf, np.inf, np.nan], [np.nan, 0.0, 0.0]])
    assert_same(model, convert(model), rows)


@pytest.mark.parametrize("name", ["logistic", "support vectors", "adaboost", "gradient boosting"])
def test_sparse_rows(name):
    X, y = data("two classes", 6)
    X = sparse.csr_matrix(np.maximum(X - np.median(X, axis=0), 0.0))
    model = fitted([MaxAbsScaler(), (LINEAR | STUMPS)[name]], X, y)
    predictor = convert(model)
    assert np.array_equal(predictor.predict(X), model.predict(X))
    assert np.array_equal(predictor.predict(X.toarray()), model.predict(X))


def test_a_score_of_zero():
    """GradientBoosting gives the second class a score of 0, and AdaBoost the first."""
    X, y = np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([0, 0, 1, 1])
    for model in (GradientBoostingClassifier(max_depth=1, n_estimators=2),
                  GradientBoostingClassifier(max_depth=1, n_estimators=2, init="zero"),
                  HistGradientBoostingClassifier(max_leaf_nodes=2, max_iter=2)):  # fmt: skip
        assert np.array_equal(convert(model.fit(X, y)).predict(X), model.predict(X))


def test_exponential_loss_and_labels_of_any_kind():
    X, y = data("two classes")
    model = GradientBoostingClassifier(loss="exponential", max_depth=1, n_estimators=9)
    for labels in (np.array(["no", "yes"])[y], y == 1, y + 4, np.array(["a", "b"], object)[y]):
        model = fitted([model], X, labels)
        assert_same(model, convert(model), X)
    assert convert(model).loss == "exponential"


def test_trees_without_a_split_are_constants():
    X, y = data("three classes")
    model = fitted([HistGradientBoostingClassifier(min_samples_leaf=100, max_iter=3)], X, y)
    predictor = convert(model)
    assert_same(model, predictor, X)
    assert len(predictor.weights) == 0
    model = fitted([AdaBoostClassifier(DecisionTreeClassifier(max_depth=1, min_samples_leaf=90))],
                   X, y)  # fmt: skip
    assert np.array_equal(convert(model).predict(X), model.predict(X))


@pytest.mark.skipif(LGBMClassifier is None, reason="needs LightGBM")
class TestLightGBM:
    def test_boosters(self):
        for which in DATA:
            X, y = data(which)
            model = LGBMClassifier(
                n_estimators=9, max_depth=1, verbose=-1, n_jobs=1, sigmoid=1.7
            ).fit(X, y)
            trained = Booster(model_str=model.booster_.model_to_string())
            found, wanted = convert(trained).predict_proba(X), trained.predict(X)
            wanted = np.column_stack([1 - wanted, wanted]) if wanted.ndim == 1 else wanted
            assert np.allclose(found, wanted)

    @pytest.mark.parametrize("whole", [False, True])
    @pytest.mark.parametrize("missing", [False, True])
    def test_tiny_numbers_are_zero_and_zero_can_mean_missing(self, missing, whole):
        X, y = data("two classes", 4)
        rng = np.random.default_rng(6)
        X = X - X.mean(axis=0)
        X[rng.random(X.shape) < 0.3] = 0.0
        X = np.rint(X) if whole else X
        settings = {"max_depth": 1, "verbose": -1, "n_jobs": 1, "zero_as_missing": missing}
        model = fitted([LGBMClassifier(n_estimators=20, **settings)], X, (X[:, 0] == 0) | (y == 1))
        predictor = convert(model)
        tiny = float(np.float32(1e-35))
        near = [np.nextafter(s * tiny, t) for s in (-1, 1) for t in (-1, 1)]
        rows = np.vstack([around(predictor, rng), rng.choice([tiny, -tiny, 0.0, *near], (200, 4))])
        rows[rng.random(rows.shape) < 0.1] = np.nan
        assert_same(model, predictor, rows)

    def test_categories_by_number(self):
        rng = np.random.default_rng(7)
        X = rng.integers(0, 9, (500, 2)).astype(float)
        y = np.isin(X[:, 0], [1, 4, 7]) | (X[:, 1] > 6)
        model = LGBMClassifier(
            n_estimators=9, max_depth=1, verbose=-1, n_jobs=1, min_data_per_group=5
        )
        model = make_pipeline(model).fit(X, y, lgbmclassifier__categorical_feature=[0])
        predictor = convert(model)
        assert 1 in predictor.map.test
        rows = rng.choice([*range(-2, 12), np.nan, 1e9], (300, 2))
        assert_same(model, predictor, rows)


# -- what a predictor can do -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["logistic", "ridge", *STUMPS])
def test_a_converted_model_saves_quantises_and_compiles(name, tmp_path):
    X, y = data("three classes")
    given = np.where(np.random.default_rng(8).random(X.shape) < 0.1, np.nan, X)
    front = [SimpleImputer(add_indicator=True), StandardScaler()]
    predictor = convert(fitted([*front, (LINEAR | STUMPS)[name]], given, y))
    predictor.save(tmp_path / "model.laconic")
    again = Predictor.load(tmp_path / "model.laconic")
    assert np.array_equal(again.scores(given), predictor.scores(given))
    assert again.cost() == predictor.cost()
    small = predictor.quantise(given, bits=16)
    assert small.change.labels <= 0.02
    small.save(tmp_path / "small.laconic")
    again = Predictor.load(tmp_path / "small.laconic")
    assert np.array_equal(again.scores(given), small.scores(given))
    compiled = small.to_c("m").compile()
    assert np.array_equal(compiled.scores(given), small.scores(given))
    assert np.array_equal(compiled.predict(given), small.predict(given))
