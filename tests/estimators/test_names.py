"""Names of features, costs by name, and probabilities under class weights."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from laconic import Predictor, ShareBoostClassifier, TotalQBoostClassifier
from laconic.files.store import read_archive, write_archive
from laconic.model.atoms import StumpsMap
from laconic.model.patches import PatchesMap
from problems import random_problem

TEXTS = ["the cat sat", "a dog ran", "the cat ran", "a dog sat", "cat and cat", "dog and dog"] * 6
ANIMALS = ["cat", "dog"] * 18


def test_names_go_through_pipelines():
    X, y = random_problem(d=4)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    pipeline = make_pipeline(StandardScaler(), ShareBoostClassifier(2)).fit(frame, y)
    used = {frame.columns[atom.feature] for atom in pipeline[-1].atoms_}
    assert set(pipeline.get_feature_names_out()) == used
    assert set(pipeline[-1].get_feature_names_out(list("wxyz"))) <= set("wxyz")


@pytest.mark.parametrize("pool", ["columns", "stumps", "products"])
def test_input_features_follow_the_contract_of_scikit_learn(pool):
    X, y = random_problem(d=4)
    model = ShareBoostClassifier(2, pool=pool).fit(X, y)
    named = ShareBoostClassifier(2, pool=pool).fit(pd.DataFrame(X, columns=list("abcd")), y)
    assert model.get_feature_names_out(list("abcd")).tolist() == (
        named.get_feature_names_out().tolist()
    )
    with pytest.raises(ValueError, match="should have length equal"):
        model.get_feature_names_out(["a", "b"])
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        named.get_feature_names_out(list("wxyz"))


def test_words_of_a_text_are_named(tmp_path, capsys):
    pipeline = make_pipeline(TfidfVectorizer(), ShareBoostClassifier(2)).fit(TEXTS, ANIMALS)
    model = pipeline[-1].name_features(pipeline[:-1].get_feature_names_out())
    assert {"cat", "dog"} >= set(model.get_feature_names_out())
    model.describe()
    assert "cat" in capsys.readouterr().out
    assert set(model.at(1).predictor_.names()) < {"cat", "dog"}
    model.predictor_.save(tmp_path / "m")
    assert Predictor.load(tmp_path / "m").names() == model.predictor_.names()
    assert pipeline.predict(TEXTS[:2]).tolist() == ANIMALS[:2]
    pipeline.fit(TEXTS, ANIMALS)
    assert pipeline[-1].get_feature_names_out()[0].startswith("x")


@pytest.mark.parametrize(("base", "step"), [(1234567890, 1), (1e6, 0.01), (1, 1e-9), (1, 0.5)])
def test_thresholds_are_written_apart(base, step):
    X = base + step * np.arange(90.0)[:, None] % (9 * step)
    y = np.digitize((X[:, 0] - base) / step, [3.5, 6.5])
    model = ShareBoostClassifier(2, pool="stumps").fit(pd.DataFrame(X, columns=["c"]), y)
    names = model.get_feature_names_out().tolist()
    assert len(set(names)) == model.n_atoms_ == 2
    written = [float(name.removeprefix("c <= ")) for name in names]
    assert np.argsort(written).tolist() == np.argsort([a.value for a in model.atoms_]).tolist()
    if step == 0.5:
        assert all(len(name) <= len("c <= 2.75") for name in names)


@pytest.mark.parametrize(("unit", "pattern"), [("D", 10), ("h", 16), ("s", 19), ("ms", 23)])
def test_moments_are_written_apart(unit, pattern):
    steps = np.arange(90) % 9 * 2
    X = pd.DataFrame({"t": np.datetime64("2024-05-31T00:00", unit) + steps.astype(f"m8[{unit}]")})
    y = np.digitize(steps, [7, 13])
    model = ShareBoostClassifier(2, pool="stumps").fit(X, y)
    names = model.get_feature_names_out().tolist()
    assert len(set(names)) == 2
    written = pd.to_datetime([name.removeprefix("t <= ") for name in names]).to_numpy()
    assert np.array_equal(X.to_numpy() <= written, model.transform(X))
    assert {len(name.removeprefix("t <= ")) for name in names} == {pattern}


def test_names_of_two_features_are_told_apart():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] > 0
    frame = pd.DataFrame(X, columns=["a", "b * c", "a * b", "c"])
    model = ShareBoostClassifier(6, pool="products").fit(frame, y)
    names = model.get_feature_names_out().tolist()
    assert len(set(names)) == 6
    assert {"'a' * 'b * c'", "'a * b' * 'c'"} < set(names)
    assert model.set_output(transform="polars").transform(frame).columns == names

    both = StumpsMap(np.array([0, 1]), np.zeros(2), np.ones(2))
    names = both.names(["a", "a = b"], {0: {0: "b = c"}, 1: {0: "c"}})
    assert names == ["'a' = 'b = c'", "'a = b' = 'c'"]


def test_patches_that_differ_a_little_have_names_of_their_own():
    places, widths = np.array([[1.0, 2.0], [1.0004, 2.0], [3.0, 4.0]]), np.full(3, 1.5)
    one = np.array([0, 0, 0])
    both = PatchesMap(np.array([9, 9]), one[:1], one[:1] + 3, np.ones(9), one, places, widths)
    assert both.names() == [
        "patch 0 (3x3) near (1, 2) ± 1.5",
        "patch 0 (3x3) near (1.0004, 2) ± 1.5",
        "patch 0 (3x3) near (3, 4) ± 1.5",
    ]


@pytest.mark.filterwarnings("error")
def test_given_names_say_which_column_is_which():
    X, y = random_problem(d=4)
    model = ShareBoostClassifier(3).fit(X, y).name_features("wxyz")
    frame = pd.DataFrame(X, columns=list("wxyz"))
    for same in (frame, X, pl.from_pandas(frame)):
        assert np.array_equal(model.predict(same), model.predictor_.predict(frame))
        assert np.array_equal(model.at(2).transform(same), model.at(2).transform(X))
    turned = frame[list("zyxw")]
    assert np.array_equal(model.predictor_.predict(turned), model.predict(X))
    for wrong in (turned, pl.from_pandas(turned)):
        with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
            model.predict(wrong)
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- a"):
        model.predict(frame.rename(columns={"w": "a"}))
    assert not hasattr(model, "feature_names_in_")


def test_names_that_cannot_be_given():
    X, y = random_problem(d=3)
    model = ShareBoostClassifier(2).fit(X, y)
    for wrong in (["a", "b"], ["a", "b", "b"]):
        with pytest.raises(ValueError, match="names must be 3 different names"):
            model.name_features(wrong)
    named = ShareBoostClassifier(2).fit(pd.DataFrame(X, columns=list("abc")), y)
    with pytest.raises(ValueError, match="have names already"):
        named.name_features(list("xyz"))


# -- costs -----------------------------------------------------------------------------------------


def test_features_without_a_cost_cost_one(assert_identical):
    X, y = random_problem(d=3)
    frame = pd.DataFrame(X, columns=["alcohol", "ash", "hue"])
    for costs in ({"alcohol": 5}, pd.Series({"alcohol": 5})):
        some = ShareBoostClassifier(3, costs=costs, max_cost=6).fit(frame, y)
        every = ShareBoostClassifier(3, costs=[5, 1, 1], max_cost=6).fit(frame, y)
        assert_identical(some, every)
    with pytest.raises(ValueError, match=r"costs names 'alcohl'.*did you mean 'alcohol'\?"):
        ShareBoostClassifier(3, costs={"alcohl": 5}).fit(frame, y)


def test_no_costs_are_ones(assert_identical):
    X, y = random_problem(d=3)
    for rows in (X, pd.DataFrame(X, columns=list("abc"))):
        every = ShareBoostClassifier(3, costs=[1, 1, 1], max_cost=2).fit(rows, y)
        for none in ({}, pd.Series(dtype=float)):
            some = ShareBoostClassifier(3, costs=none, max_cost=2).fit(rows, y)
            assert_identical(some, every)


def test_words_of_a_text_may_be_meant_by_number(assert_identical):
    words = TfidfVectorizer().fit(TEXTS)
    cat, dog = words.vocabulary_["cat"], words.vocabulary_["dog"]
    for setting in ({"costs": {"cat": 5}}, {"include": ["cat"]}, {"exclude": ["cat"]}):
        for cv in (None, 3):
            pipeline = make_pipeline(TfidfVectorizer(), ShareBoostClassifier(2, cv=cv, **setting))
            told = r"X has no feature names; give numbers of columns \(.*vocabulary_\), or a data"
            with pytest.raises(ValueError, match=told):
                pipeline.fit(TEXTS, ANIMALS)
    X, n = words.transform(TEXTS), len(words.vocabulary_)
    every = np.where(np.arange(n) == cat, 5.0, np.where(np.arange(n) == dog, 4.0, 1.0))
    for costs in ({cat: 5, dog: 4}, pd.Series({cat: 5, dog: 4}), pd.Series(every)):
        some = ShareBoostClassifier(3, costs=costs, max_cost=6).fit(X, ANIMALS)
        assert_identical(some, ShareBoostClassifier(3, costs=every, max_cost=6).fit(X, ANIMALS))
    assert ShareBoostClassifier(2, include=[cat]).fit(X, ANIMALS).atoms_[0].feature == cat
    with pytest.raises(ValueError, match="costs must have one number per feature"):
        ShareBoostClassifier(3, costs=pd.Series([1.0, 2.0])).fit(X, ANIMALS)
    with pytest.raises(ValueError, match=f"costs names {n}, which is not a feature of X"):
        ShareBoostClassifier(2, costs={n: 5}).fit(X, ANIMALS)


# -- class weights ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        ShareBoostClassifier(6, loss="log", class_weight="balanced", alpha=1e-9, tol=1e-12),
        ShareBoostClassifier(6, class_weight="balanced", alpha=1e-9, tol=1e-12),
        ShareBoostClassifier(6, loss="log", class_weight={0: 1, 1: 7.0, 2: 2}, alpha=1e-9),
    ],
    ids=["log", "margin", "dict"],
)
def test_corrected_probabilities_are_those_of_a_fit_without_class_weights(model, tmp_path):
    """Where every cell of a table has a weight of its own, a model can say any probability."""
    rng = np.random.default_rng(0)
    cell = rng.integers(0, 4, 6000)
    X = np.eye(4)[cell]
    shares = np.array([[0.9, 0.05, 0.05], [0.6, 0.3, 0.1], [0.8, 0.1, 0.1], [0.5, 0.2, 0.3]])
    y = np.array([rng.choice(3, p=shares[c]) for c in cell])
    counted = np.array([[np.mean(y[cell == c] == k) for k in range(3)] for c in range(4)])
    model.fit(X, y)
    np.testing.assert_allclose(model.corrected_proba(np.eye(4)), counted, atol=2e-3)
    assert np.abs(model.predict_proba(np.eye(4)) - counted).max() > 0.05
    model.predictor_.save(tmp_path / "m")
    loaded = Predictor.load(tmp_path / "m")
    assert np.array_equal(loaded.corrected_proba(X), model.corrected_proba(X))


def test_without_class_weights_there_is_nothing_to_correct():
    X, y = random_problem(k=2)
    for model in (ShareBoostClassifier(3), TotalQBoostClassifier(3, price=0.0)):
        model.fit(X, y)
        np.testing.assert_allclose(model.corrected_proba(X), model.predict_proba(X), rtol=1e-14)


def test_class_weights_that_a_file_does_not_know_are_not_guessed(tmp_path):
    X, y = random_problem(k=2)
    ShareBoostClassifier(2, class_weight="balanced").fit(X, y).predictor_.save(tmp_path / "m")
    header, arrays = read_archive(tmp_path / "m", "predictor")
    del header["class_factors"]
    write_archive(tmp_path / "old", "predictor", header, arrays)
    old, new = Predictor.load(tmp_path / "old"), Predictor.load(tmp_path / "m")
    assert np.array_equal(old.predict_proba(X), new.predict_proba(X))
    with pytest.raises(AttributeError, match="does not know the class weights of its fit"):
        old.corrected_proba(X)
    for wrong in ([1.0], [1.0, 0.0], [1.0, float("nan")], [1.0, 2.0], [1, 1], "ab", {"0": 1.0}):
        write_archive(tmp_path / "bad", "predictor", {**header, "class_factors": wrong}, arrays)
        with pytest.raises(ValueError, match="is not a sound predictor"):
            Predictor.load(tmp_path / "bad")


def test_a_card_of_two_classes_has_one_column(capsys):
    X, y = random_problem(k=2)
    model = ShareBoostClassifier(2).fit(X, y)
    model.describe()
    said = capsys.readouterr().out
    assert "points" in said
    assert "a sum above zero means 1, otherwise 0" in " ".join(said.split())
    difference = model.atom_coef_[1] - model.atom_coef_[0]
    assert f"{difference[0]:.2f}"[:4] in said
