"""A model keeps the categories that it asks about, and no others; what is not asked is *other*."""

import pickle

import numpy as np
import pandas as pd
import pytest

from laconic import Predictor, ShareBoostClassifier, TotalQBoostClassifier
from laconic.cli.main import main
from laconic.data.frames import OTHER, asked_categories, category_codes


def customers(m=300, seed=0):
    """Ids that nobody may learn of, a town that matters, and gaps in it that matter too."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "customer": [f"secret-{i}" for i in range(m)],
            "town": rng.choice(["Rome", "Oslo", "Bern", "Kyiv", "Lima"], m),
            "age": rng.uniform(20, 70, m),
        }
    )
    frame.loc[::7, "town"] = None
    bought = frame.town.isna() | (frame.town == "Oslo") | (frame.age > 62)
    return frame, bought.to_numpy().astype(int)


def fitted(kind, **settings):
    frame, y = customers()
    if kind is ShareBoostClassifier:
        return kind(3, pool="stumps", **settings).fit(frame, y)
    return kind(3, price=0.01, **settings).fit(frame, y)


both = pytest.mark.parametrize("kind", [ShareBoostClassifier, TotalQBoostClassifier])


def contents(path):
    """Everything in a file that may spell text, in whichever encoding."""
    raw = path.read_bytes()
    return raw.replace(b"\0", b"")


@both
def test_a_saved_model_tells_nothing_that_it_does_not_ask(kind, tmp_path):
    model = fitted(kind)
    path = tmp_path / "model.laconic"
    model.predictor_.save(path)
    assert b"secret" not in contents(path)
    assert b"Oslo" in contents(path)
    for town in (b"Rome", b"Bern", b"Lima"):
        assert town not in contents(path)
    assert path.stat().st_size < 10_000


@both
def test_pickles_and_checkpoints_tell_no_more(kind, tmp_path):
    model = fitted(kind, checkpoint=tmp_path / "fit")
    pickled = pickle.dumps(model)
    assert b"secret" not in pickled
    assert b"Rome" not in pickled
    assert b"secret" not in contents(tmp_path / "fit")
    X, _ = customers()
    assert np.array_equal(pickle.loads(pickled).predict_proba(X), model.predict_proba(X))


def test_every_size_can_still_be_asked():
    model = fitted(ShareBoostClassifier)
    X, _ = customers()
    sizes = list(model.staged_predict(X))
    for size in model.path_.sizes:
        assert np.array_equal(model.at(size).predict(X), sizes[size])


@both
def test_known_unasked_unseen_and_missing_values_have_one_answer(kind, tmp_path):
    model = fitted(kind)
    names = model.predictor_.names()
    assert {"town = Oslo", "town is missing"} <= set(names)
    path = tmp_path / "model.laconic"
    model.predictor_.save(path)
    loaded = Predictor.load(path)
    new = pd.DataFrame(
        {"customer": "x", "town": ["Oslo", "Rome", "Atlantis", None, np.nan, ""], "age": 30.0}
    )
    answers = dict(zip(names, model.transform(new).T.tolist(), strict=True))
    assert answers["town = Oslo"] == [1, 0, 0, 0, 0, 0]
    assert answers["town is missing"] == [0, 0, 0, 1, 1, 0]
    for other in (model.predictor_, loaded):
        assert np.array_equal(other.predict_proba(new), model.predict_proba(new))
    new.to_csv(tmp_path / "new.csv", index=False)
    assert main(f"predict {path} {tmp_path / 'new.csv'} --out {tmp_path / 'out.csv'}".split()) == 0
    said = pd.read_csv(tmp_path / "out.csv")["prediction"]
    # In a table an empty cell is missing.
    assert said.tolist() == [*model.predict(new)[:5], model.predict(new)[3]]


def test_codes_in_an_array_mean_the_same_before_and_after_saving(tmp_path):
    model = fitted(ShareBoostClassifier)
    model.predictor_.save(tmp_path / "m")
    loaded = Predictor.load(tmp_path / "m")
    frame, _ = customers()
    towns = sorted(frame.town.dropna().unique())
    codes = frame.town.map({t: i for i, t in enumerate(towns)})
    coded = np.column_stack([np.arange(len(frame)), codes, frame.age]).astype(float)
    for predictor in (model.predictor_, loaded):
        assert np.array_equal(predictor.scores(coded), model.predictor_.scores(frame))


def test_labels_that_are_spelled_alike_are_told_apart(tmp_path):
    """``1`` is not asked about, but only it keeps a table's 1 from being taken for ``1.0``."""
    frame = pd.DataFrame({"code": ["1", "1.0", "2"] * 30})
    y = (frame.code == "1.0").to_numpy()
    model = ShareBoostClassifier(1, pool="stumps").fit(frame, y)
    model.predictor_.save(tmp_path / "m")
    for predicts in (model, model.predictor_, Predictor.load(tmp_path / "m")):
        assert np.array_equal(predicts.predict(frame), y)


def test_codes_of_categories():
    known = {3: "a", 7: "1"}
    values = ["a", "1", 1, 1.0, "b", None, float("nan"), pd.NA, ""]
    codes = category_codes(values, known)
    expected = [3, 7, 7, 7, OTHER, np.nan, np.nan, np.nan, OTHER]
    assert np.array_equal(codes, expected, equal_nan=True)


def test_only_what_is_asked_is_kept():
    known = {0: dict(enumerate("abc")), 5: dict(enumerate("xy"))}
    assert asked_categories(known, {0: [2, 99], 8: [1]}) == {0: {2: "c"}, 5: {}}
