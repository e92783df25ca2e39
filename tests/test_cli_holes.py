"""``laconic holes`` end to end: models of every kind, the text, the page, and what goes wrong."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from laconic import HolePunchingClassifier, ShareBoostClassifier
from test_cli import error_of, run


@pytest.fixture(scope="module")
def rows():
    """A table on which a linear model is wrong in one corner."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(0, 1, (1200, 3)), columns=["a", "b", "c"])
    corner = (X.a > 0.75) & (X.b > 0.75)
    label = np.where((X.a > 0.5) ^ corner, "yes", "no")
    return X.assign(way=rng.choice(["web", "shop"], 1200), label=label)


@pytest.fixture
def table(rows, tmp_path):
    rows[600:].to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv"


@pytest.fixture
def model(rows):
    numbers = rows[["a", "b", "c"]]
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(
        numbers[:600], rows.label[:600]
    )


def test_a_pickle_that_is_trusted(table, model, tmp_path, capsys):
    joblib.dump(model, tmp_path / "model.joblib")
    page = tmp_path / "page.html"
    arguments = ["holes", tmp_path / "model.joblib", table, "--target", "label", "--trust"]
    assert run(*arguments, "--html", page) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    for said in ("LogisticRegression (model.joblib) fails", "confirmed", "Clump 1", "saved"):
        assert said in shown.out
    assert "a is higher" in shown.out
    text = page.read_text(encoding="utf-8")
    assert "<details" in text
    assert "http" not in text
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(model))
    assert run("holes", tmp_path / "model.pkl", table, "--target", "label", "--trust") == 0


def test_a_pickle_that_is_not_trusted_is_not_opened(table, tmp_path, capsys):
    class Trap:
        def __reduce__(self):
            return (print, ("the trap sprang",))

    (tmp_path / "model.pkl").write_bytes(pickle.dumps(Trap()))
    said = error_of(capsys, "holes", tmp_path / "model.pkl", table, "--target", "label")
    assert "--trust" in said


@pytest.mark.parametrize("kind", [ShareBoostClassifier, HolePunchingClassifier])
def test_models_of_our_own(rows, table, tmp_path, capsys, kind):
    model = kind(**({"max_atoms": 1} if kind is ShareBoostClassifier else {"max_holes": 1}))
    model.fit(rows[["a", "b", "c"]][:600], rows.label[:600])
    model.predictor_.save(tmp_path / "model.laconic")
    assert run("holes", tmp_path / "model.laconic", table, "--target", "label") == 0
    assert "Predictor (model.laconic) fails" in capsys.readouterr().out


def test_stumps_read_text_as_it_is_spelled(rows, table, tmp_path, capsys):
    columns = rows.drop(columns="label")[:600]
    model = ShareBoostClassifier(2, pool="stumps").fit(columns, rows.label[:600])
    model.predictor_.save(tmp_path / "model.laconic")
    ignored = ["--ignore", "c", "--clumps", 2, "--min-rows", 5, "--seed", 3]
    assert run("holes", tmp_path / "model.laconic", table, "--target", "label", *ignored) == 0
    assert "Clump 3" not in capsys.readouterr().out


def test_skops(table, model, tmp_path, capsys):
    skops = pytest.importorskip("skops.io")
    skops.dump(model, tmp_path / "model.skops")
    assert run("holes", tmp_path / "model.skops", table, "--target", "label") == 0
    assert "Clump 1" in capsys.readouterr().out


def test_pictures(tmp_path, capsys):
    digits = load_digits()
    X, y = digits.data, digits.target > 4
    joblib.dump(LogisticRegression(C=1e-4).fit(X[:600], y[:600]), tmp_path / "model.joblib")
    frame = pd.DataFrame(X[600:], columns=digits.feature_names).assign(high=y[600:])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    page = tmp_path / "page.html"
    known = ["holes", tmp_path / "model.joblib", tmp_path / "rows.csv", "--target", "high"]
    assert run(*known, "--trust", "--image", "8x8", "--html", page) == 0
    assert "data:image/png" in page.read_text(encoding="utf-8")
    capsys.readouterr()
    assert "63 pixels" in error_of(capsys, *known, "--trust", "--image", "7x9")
    assert "28x28" in error_of(capsys, *known, "--trust", "--image", "big")


def test_what_goes_wrong(table, rows, model, tmp_path, capsys):
    file = tmp_path / "model.joblib"
    joblib.dump(model, file)
    known = ["holes", file, table, "--target", "label", "--trust"]
    assert "there is no such file" in error_of(capsys, "holes", "no", table, "--target", "label")
    assert "no column 'lable'; did you mean 'label'" in error_of(
        capsys, "holes", file, table, "--target", "lable", "--trust"
    )
    assert "no folder" in error_of(capsys, *known, "--html", tmp_path / "no" / "page.html")
    assert "is a folder" in error_of(capsys, *known, "--html", tmp_path)
    assert "both --target and --ignore" in error_of(capsys, *known, "--ignore", "label")
    assert "--seed must be at least 0" in error_of(capsys, *known, "--seed", -1)
    assert "'z'" in error_of(capsys, *known, "--ignore", "z")
    assert "at least 1" in error_of(capsys, *known, "--clumps", 0)
    few = tmp_path / "few.csv"
    rows.drop(columns="b").to_csv(few, index=False)
    assert "'b', which the model reads" in error_of(
        capsys, "holes", file, few, "--target", "label", "--trust"
    )
    joblib.dump({"no": "model"}, file)
    assert "holds a dict, which does not predict" in error_of(capsys, *known)
    file.write_bytes(b"nonsense")
    assert "cannot be loaded" in error_of(capsys, *known)
    unlabelled = tmp_path / "unlabelled.csv"
    rows.assign(label=rows.label.where(rows.index > 3)).to_csv(unlabelled, index=False)
    joblib.dump(model, file)
    assert "no label in 4 rows" in error_of(
        capsys, "holes", file, unlabelled, "--target", "label", "--trust"
    )
