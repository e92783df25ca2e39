"""Steps in front of a model: categories, selected columns, frames, and what is refused."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from laconic import Predictor, ShareBoostClassifier, convert

MODELS = {
    "logistic": LogisticRegression(max_iter=1000),
    "adaboost": AdaBoostClassifier(n_estimators=15),
    "gradient boosting": GradientBoostingClassifier(max_depth=1, n_estimators=30),
    "histograms": HistGradientBoostingClassifier(max_leaf_nodes=2, max_iter=30),
}
ENCODERS = {
    "ignore": {"handle_unknown": "ignore"},
    "error": {},
    "drop first": {"drop": "first", "handle_unknown": "ignore"},
    "drop of two": {"drop": "if_binary"},
    "rare": {"min_frequency": 60},
    "rare and unknown": {"min_frequency": 60, "handle_unknown": "infrequent_if_exist"},
    "few": {"max_categories": 3, "drop": "first", "handle_unknown": "infrequent_if_exist"},
    "one dropped": {"drop": ["cook", 0], "handle_unknown": "ignore"},
}

SHARES = [0.4, 0.3, 0.2, 0.07, 0.03]


@pytest.fixture(scope="module")
def table():
    rng, n = np.random.default_rng(0), 500
    X = pd.DataFrame({
        "age": rng.normal(40, 12, n).round(1),
        "income": rng.lognormal(10, 1, n),
        "job": rng.choice(["cook", "nurse", "pilot", "clerk", "judge"], n, p=SHARES),
        "kids": rng.integers(0, 5, n),
    })  # fmt: skip
    X.loc[rng.random(n) < 0.1, "age"] = np.nan
    X.loc[rng.random(n) < 0.1, "job"] = np.nan
    total = X.age.fillna(50) + 20 * (X.job == "pilot") + 5 * X.kids + rng.normal(0, 8, n)
    return X, np.where(total > 55, "yes", "no")


def prepared(filled=True, **encoder):
    """Return a ColumnTransformer of numbers and categories."""
    hot = OneHotEncoder(sparse_output=False, **encoder)
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    words = make_pipeline(SimpleImputer(strategy="most_frequent"), hot) if filled else hot
    parts = [("numbers", numbers, ["age", "income"]), ("words", words, ["job", "kids"])]
    return ColumnTransformer(parts, remainder="passthrough")


def assert_same(model, predictor, X):
    assert np.array_equal(predictor.predict(X), model.predict(X))
    assert np.allclose(predictor.predict_proba(X), model.predict_proba(X), atol=1e-9)


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("filled", [True, False])
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("name", ["logistic", "gradient boosting"])
def test_categories(name, encoder, filled, table):
    X, y = table
    model = make_pipeline(prepared(filled, **ENCODERS[encoder]), MODELS[name]).fit(X, y)
    predictor = convert(model)
    assert_same(model, predictor, X)
    if "handle_unknown" in ENCODERS[encoder]:
        odd = X.assign(job=np.where(np.arange(len(X)) % 3, X.job, "juggler"), kids=X.kids + 3)
        assert_same(model, predictor, odd)


@pytest.mark.parametrize("name", MODELS)
def test_a_pipeline_of_a_table(name, table, tmp_path):
    X, y = table
    model = make_pipeline(prepared(handle_unknown="ignore"), MODELS[name]).fit(X, y)
    predictor = convert(model)
    assert_same(model, predictor, X)
    words = [None if pd.isna(job) else job for job in X["job"]]
    frame = pl.DataFrame({**{n: X[n].to_numpy() for n in ("age", "income", "kids")}, "job": words})
    assert np.array_equal(predictor.predict(frame.select(X.columns)), model.predict(X))
    shuffled = X[["kids", "job", "income", "age"]].assign(more=1)
    assert np.array_equal(predictor.predict(shuffled), model.predict(X))
    assert predictor.feature_names == list(X.columns)
    predictor.save(tmp_path / "m.laconic")
    assert np.array_equal(Predictor.load(tmp_path / "m.laconic").predict(X), model.predict(X))
    small = predictor.quantise(X, bits=16)
    assert np.array_equal(small.to_c().compile().scores(X), small.scores(X))
    assert small.change.labels <= 0.01


def test_the_card_of_a_converted_model(table, capsys):
    X, y = table
    convert(
        make_pipeline(prepared(handle_unknown="ignore"), MODELS["logistic"]).fit(X, y)
    ).describe()
    said = capsys.readouterr().out
    for words in (
        "filled columns + ",
        "4 of 4 features",
        "age (missing: 39",
        "age is missing",
        "job = pilot",
        "kids = 2",
    ):
        assert words in said


def test_an_imputer_that_leaves_none_is_refused(table):
    X, y = table
    words = X["job"].astype(object)
    odd = X.assign(job=words.where(words.notna(), None).astype(object))
    assert odd["job"].isna().any()
    model = make_pipeline(prepared(handle_unknown="ignore"), MODELS["logistic"]).fit(odd, y)
    if None not in list(model[0].named_transformers_["words"][-1].categories_[0]):
        pytest.skip("this pandas keeps no None")
    with pytest.raises(ValueError, match="replace None by NaN"):
        convert(model)


def test_categories_of_histograms(table):
    X, y = table
    X = X.assign(job=X.job.astype("category"))[["age", "job", "kids"]]
    model = HistGradientBoostingClassifier(max_leaf_nodes=2, max_iter=30, min_samples_leaf=5)
    model.fit(X, y)
    odd = X.assign(job=np.where(np.arange(len(X)) % 3, X.job, "juggler")).astype(
        {"job": "category"}
    )
    predictor = convert(model)
    assert predictor.categories
    for rows in (X, odd):
        assert_same(model, predictor, rows)
    numbered = X.assign(job=X.job.cat.codes.astype(float) * 1.5 - 2.0).to_numpy(float)
    model = HistGradientBoostingClassifier(max_leaf_nodes=2, max_iter=30, categorical_features=[1])
    model.fit(numbered, y)
    assert_same(model, convert(model), numbered)
    small = convert(model).quantise(numbered, bits=16)
    assert small.change.labels == 0.0


def test_categories_of_lightgbm(table):
    LGBMClassifier = pytest.importorskip("lightgbm").LGBMClassifier
    X, y = table
    X = X.assign(job=X.job.astype("category"), kids=X.kids.astype("category"))
    model = LGBMClassifier(n_estimators=30, max_depth=1, verbose=-1, n_jobs=1, min_data_per_group=5)
    model.fit(X, y)
    predictor = convert(model)
    assert "job" in str(predictor.names())
    assert_same(model, predictor, X)
    odd = X.assign(job=np.where(np.arange(len(X)) % 3, X.job, "juggler")).astype(
        {"job": "category"}
    )
    assert_same(model, predictor, odd)


def test_lightgbm_changes_names_and_the_message_says_which_column_is_meant():
    LGBMClassifier = pytest.importorskip("lightgbm").LGBMClassifier
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 2)), columns=["weekly hours", "age"])
    model = LGBMClassifier(n_estimators=3, max_depth=1, verbose=-1).fit(X, X["weekly hours"] > 0)
    with pytest.raises(ValueError, match="Its column 'weekly hours' has almost the same name"):
        convert(model).predict(X)
    found = convert(model, feature_names=list(X.columns)).predict(X)
    np.testing.assert_array_equal(found, model.predict(X))


def test_selectors_searches_and_passed_columns(table):
    X, y = table
    numbers = make_column_selector(dtype_include="number")
    front = ColumnTransformer([("all", make_pipeline(SimpleImputer(), "passthrough"), numbers)])
    steps = make_pipeline(front, FunctionTransformer(), SelectKBest(k=2), MODELS["logistic"])
    search = GridSearchCV(steps, {"selectkbest__k": [1, 2]}, cv=2).fit(X, y)
    predictor = convert(search)
    assert_same(search, predictor, X)
    assert len(predictor.map.features()) <= 2


def test_columns_of_zero_weight_are_not_read():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 30))
    model = LinearSVC(C=0.02, penalty="l1", dual=False).fit(X, X[:, 3] > 0)
    assert convert(model).map.features().tolist() == [3]


def test_names_and_what_is_no_copy():
    X, y = np.random.default_rng(2).standard_normal((60, 2)), np.arange(60) % 2
    model = LogisticRegression().fit(X, y)
    assert convert(model, feature_names=["a", "b"]).names() == ["a", "b"]
    assert convert(model).feature_names is None
    with pytest.raises(ValueError, match="feature_names must have 2 names, not 1"):
        convert(model, ["a"])
    own = ShareBoostClassifier(1).fit(X, y)
    assert convert(own) is own.predictor_ is convert(own.predictor_)


class Contrary(LogisticRegression):
    def predict(self, X):
        return self.classes_[1 - np.searchsorted(self.classes_, super().predict(X))]


REFUSED = {
    "deep trees": (GradientBoostingClassifier(max_depth=2, n_estimators=2), "max_depth=1"),
    "deep histograms": (HistGradientBoostingClassifier(max_iter=2), "max_leaf_nodes=2"),
    "deep votes": (AdaBoostClassifier(DecisionTreeClassifier(max_depth=2)), "max_depth=1"),
    "votes of others": (AdaBoostClassifier(GaussianNB()), "AdaBoost of GaussianNB"),
    "another start": (GradientBoostingClassifier(max_depth=1, n_estimators=2,
                                                 init=LogisticRegression()), 'init="zero"'),
    "forest": (RandomForestClassifier(3), "more than one split"),
    "calibrated": (CalibratedClassifierCV(LogisticRegression(), cv=2), "known models are"),
    "regression": (LinearRegression(), "predicts numbers"),
    "own way": (Contrary(), r"has a predict\(\) of its own"),
    "unknown step": (make_pipeline(PolynomialFeatures(), LogisticRegression()),
                     "PolynomialFeatures in front of a model cannot be converted; known steps"),
    "function": (make_pipeline(FunctionTransformer(np.abs), LogisticRegression()), "its function"),
    "clipped": (make_pipeline(MinMaxScaler(clip=True), LogisticRegression()), "clip=False"),
    "encoded twice": (make_pipeline(StandardScaler(), OneHotEncoder(handle_unknown="ignore"),
                                    LogisticRegression()), "behind a scaler"),
    "scaled gaps": (make_pipeline(StandardScaler(), SimpleImputer(missing_values=-1.0),
                                  LogisticRegression()), "only NaN and, as the first step"),
    "weights": (make_pipeline(ColumnTransformer([("a", StandardScaler(), [0])],
                                                transformer_weights={"a": 2.0}),
                              LogisticRegression()), "transformer_weights"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_converted_says_why(name):
    rng = np.random.default_rng(3)
    X, model = rng.standard_normal((80, 3)), REFUSED[name][0]
    model.fit(X, (X[:, 0] * X[:, 1] + 0.1 * X[:, 2] > 0).astype(int))
    with pytest.raises((TypeError, ValueError), match=REFUSED[name][1]):
        convert(model)


def test_models_that_are_not_fitted_or_have_many_labels():
    X = np.random.default_rng(4).standard_normal((60, 3))
    with pytest.raises(ValueError, match="not fitted"):
        convert(LogisticRegression())
    with pytest.raises(TypeError, match="a fitted classifier, not ndarray"):
        convert(X)
    with pytest.raises(ValueError, match="several labels per row"):
        convert(RidgeClassifier().fit(X, X > 0))


def test_neither_library_is_imported():
    code = "import sys, laconic; laconic.convert; print([m for m in sys.modules if m in %r])"
    names = ["lightgbm", "sklearn.ensemble", "sklearn.linear_model", "numba", "pandas"]
    done = subprocess.run([sys.executable, "-c", code % names], capture_output=True, text=True,
                          check=True)  # fmt: skip
    assert done.stdout.strip() == "[]"
