"""``laconic holes`` end to end: models of every kind, the text, the page, and what goes wrong."""

from __future__ import annotations

import pickle
import re
import zipfile

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from test_cli import error_of, run

from laconic import ErrorClumpingClassifier, HolePunchingClassifier, ShareBoostClassifier
from laconic.cli.given import column_of


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
    headline = "Where LogisticRegression (model.joblib) fails on rows.csv"
    for said in (headline, "confirmed", "Clump 1", "saved", "The first row of rows.csv is row 1"):
        assert said in " ".join(shown.out.split())
    assert "a is higher" in shown.out
    text = page.read_text(encoding="utf-8")
    assert "<details" in text
    assert "http" not in text
    assert f"<title>{headline}</title>" in text
    assert "<td" in text
    assert run(*arguments, "--html", page, "--no-rows") == 0
    assert "<td" not in page.read_text(encoding="utf-8")
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(model))
    assert run("holes", tmp_path / "model.pkl", table, "--target", "label", "--trust") == 0


def test_a_pickle_that_is_not_trusted_is_not_opened(table, tmp_path, capsys):
    class Trap:
        def __reduce__(self):
            return (print, ("the trap sprang",))

    (tmp_path / "model.pkl").write_bytes(pickle.dumps(Trap()))
    said = error_of(capsys, "holes", tmp_path / "model.pkl", table, "--target", "label")
    assert "--trust" in said


def test_damaged_files_are_not_to_be_trusted(rows, table, model, tmp_path, capsys):
    """Nobody is asked to unpickle what is no pickle; what does not unpickle is said to be none."""
    ours = ShareBoostClassifier(1).fit(rows[["a", "b", "c"]], rows.label)
    ours.predictor_.save(tmp_path / "model.laconic")
    whole = (tmp_path / "model.laconic").read_bytes()
    noise = np.random.default_rng(0).bytes(2000)

    def said(name, content, *trust):
        (tmp_path / name).write_bytes(content)
        out = error_of(capsys, "holes", tmp_path / name, table, "--target", "label", *trust)
        return out.replace(str(tmp_path), "")

    for content in (whole[:500], noise, b""):
        for trust in ([], ["--trust"]):
            assert "cut.laconic is damaged, or is not a Laconic" in said(
                "cut.laconic", content, *trust
            )
            assert "cut.skops is damaged, or is not a skops" in said("cut.skops", content, *trust)
    assert "or is damaged" in said("flip.laconic", whole[:200] + noise[:60] + whole[260:])
    assert "is damaged, or is neither" in said("cut", whole[:500])
    assert "not a pickle of a model, or is damaged (" in said("noise", b"h" + noise, "--trust")
    assert "is damaged, or was made by" in said("cut.pkl", pickle.dumps(model)[:300], "--trust")
    text = said("churn.csv", b"customer_id,age\n1,2\n3,4\n", "--trust")
    assert "is not a pickle of a model, or is damaged (No module named 'ustomer_id,age')" in text
    needs = b"\x80\x04cnowhere.here\nModel\n."
    assert "cannot be loaded here: No module named 'nowhere'" in said("m.pkl", needs, "--trust")


def test_damaged_skops_files(table, model, tmp_path, capsys):
    skops = pytest.importorskip("skops.io")
    whole = bytearray(skops.dumps(model))
    whole[100:140] = bytes(40)
    (tmp_path / "model.skops").write_bytes(whole)
    known = ["holes", tmp_path / "model.skops", table, "--target", "label"]
    for trust in ([], ["--trust"]):
        told = error_of(capsys, *known, *trust)
        assert "is damaged or cannot be loaded here (Bad CRC" in told
        assert "add its predictions to the table" in told


@pytest.mark.parametrize("kind", [ShareBoostClassifier, HolePunchingClassifier])
def test_models_of_our_own(rows, table, tmp_path, capsys, kind):
    model = kind(**({"max_atoms": 1} if kind is ShareBoostClassifier else {"max_holes": 1}))
    model.fit(rows[["a", "b", "c"]][:600], rows.label[:600])
    model.predictor_.save(tmp_path / "model.laconic")
    assert run("holes", tmp_path / "model.laconic", table, "--target", "label") == 0
    atoms = "1 column" if kind is ShareBoostClassifier else "2 regions"
    headline = f"Where the Laconic model of {atoms} (model.laconic) fails on rows.csv"
    assert headline in " ".join(capsys.readouterr().out.split())


def test_stumps_read_text_as_it_is_spelled(rows, table, tmp_path, capsys):
    columns = rows.drop(columns="label")[:600]
    model = ShareBoostClassifier(2, pool="stumps").fit(columns, rows.label[:600])
    model.predictor_.save(tmp_path / "model.laconic")
    ignored = ["--ignore", "c", "--clumps", 2, "--min-rows", 5, "--seed", 3]
    assert run("holes", tmp_path / "model.laconic", table, "--target", "label", *ignored) == 0
    assert "Clump 3" not in capsys.readouterr().out


def wrong_rows(text):
    """Rows that the terminal marks as misclassified, by the number it gives them."""
    return {int(row) for row in re.findall(r"\b(\d+)\*", text)}


def test_rows_are_numbered_as_in_the_file(table, model, tmp_path, capsys):
    joblib.dump(model, tmp_path / "model.joblib")
    known = ["holes", tmp_path / "model.joblib", table, "--target", "label", "--trust"]
    assert run(*known) == 0
    named = wrong_rows(capsys.readouterr().out)
    assert named
    frame = pd.read_csv(table)
    missed = np.flatnonzero(model.predict(frame[["a", "b", "c"]]) != frame.label)
    assert named <= set((missed + 1).tolist())


def test_ignored_columns_still_reach_a_model_that_reads_them(table, model, tmp_path, capsys):
    joblib.dump(model, tmp_path / "model.joblib")
    known = ["holes", tmp_path / "model.joblib", table, "--target", "label", "--trust"]
    shown = []
    for ignored in ([], ["--ignore", "c"]):
        assert run(*known, *ignored) == 0
        shown.append(capsys.readouterr().out)
    errors = [re.search(r"\((\d+) errors\)", text).group(1) for text in shown]
    assert errors[0] == errors[1]
    assert run(*known, "--ignore", "a") == 0
    assert "a is higher" not in capsys.readouterr().out


def test_a_model_without_names_gets_as_many_columns_as_it_was_fitted_on(rows, tmp_path, capsys):
    X = rows[["a", "b", "c"]].to_numpy()
    file, table = tmp_path / "model.joblib", tmp_path / "rows.csv"
    joblib.dump(LogisticRegression().fit(X[:600], rows.label[:600]), file)
    rows[["a", "b", "c", "label"]][600:].to_csv(table, index=False)
    known = ["holes", file, table, "--target", "label", "--trust"]
    assert run(*known) == 0
    assert run(*known, "--ignore", "c") == 0  # the model still gets it
    rows[600:].assign(id=range(600)).to_csv(table, index=False)
    assert run(*known, "--ignore", "id", "--ignore", "way") == 0
    capsys.readouterr()
    said = error_of(capsys, *known, "--ignore", "id")
    assert "fitted on 3 columns" in said
    assert "has 5 besides the labels, 4 of them not ignored. Add --ignore for the" in said


def test_skops(table, model, tmp_path, capsys):
    skops = pytest.importorskip("skops.io")
    skops.dump(model, tmp_path / "model.skops")
    assert run("holes", tmp_path / "model.skops", table, "--target", "label") == 0
    assert "Clump 1" in capsys.readouterr().out


def test_skops_of_an_ordinary_pipeline_needs_no_trust(rows, table, tmp_path, capsys):
    skops = pytest.importorskip("skops.io")
    kinds = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["a", "b", "c"]),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["way"]),
    )
    known = ["holes", tmp_path / "model.skops", table, "--target", "label"]
    for last in (LogisticRegression(), CalibratedClassifierCV(LogisticRegression(), cv=2)):
        model = make_pipeline(kinds, last).fit(rows.drop(columns="label")[:600], rows.label[:600])
        skops.dump(model, tmp_path / "model.skops")
        if isinstance(last, LogisticRegression):
            assert run(*known) == 0
            capsys.readouterr()
    said = error_of(capsys, *known)
    for name in skops.get_untrusted_types(file=tmp_path / "model.skops"):
        assert (name in said) == (name != "numpy.dtype")
    assert "sklearn" in said
    assert run(*known, "--trust") == 0


def test_text_that_looks_missing_is_text(tmp_path, capsys):
    """A country of the name NA, and None as a label, reach the model as they are spelled."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=800), "cc": rng.choice(["NA", "DE", "FR"], 800)})
    label = np.where(3 * (frame.cc == "NA") - 1 + frame.a > 0, "None", "some")
    kinds = make_column_transformer((OneHotEncoder(), ["cc"]), remainder="passthrough")
    model = make_pipeline(kinds, LogisticRegression()).fit(frame[:400], label[:400])
    joblib.dump(model, tmp_path / "model.joblib")
    rest = frame[400:].assign(label=label[400:])
    known = ["holes", tmp_path / "model.joblib", tmp_path / "rows.csv", "--target", "label"]
    rest.to_csv(tmp_path / "rows.csv", index=False)
    assert run(*known, "--trust") == 0
    wrong = (model.predict(frame[400:]) != label[400:]).sum()
    assert f"({wrong} errors)" in capsys.readouterr().out
    rest[rest.label == "None"].to_csv(tmp_path / "rows.csv", index=False)
    assert run(*known, "--trust") == 0


def test_codes_can_be_text(tmp_path, capsys):
    """Codes of leading zeros, in a column and as labels, as the model was given them."""
    rng = np.random.default_rng(0)
    zips = np.array([f"{number:05d}" for number in rng.integers(1000, 1005, 800)])
    frame = pd.DataFrame({"a": rng.normal(size=800), "zip": zips})
    label = np.where((zips < "01002") ^ (rng.random(800) < 0.1), "01", "02")
    kinds = make_column_transformer((OneHotEncoder(), ["zip"]), remainder="passthrough")
    model = make_pipeline(kinds, LogisticRegression()).fit(frame[:400], label[:400])
    joblib.dump(model, tmp_path / "model.joblib")
    frame[400:].assign(y=label[400:]).to_csv(tmp_path / "rows.csv", index=False)
    known = ["holes", tmp_path / "model.joblib", tmp_path / "rows.csv", "--target", "y", "--trust"]
    said = error_of(capsys, *known)
    assert (
        "if it was fitted on codes as text, such as 007, try --categorical COLUMN ('zip' is" in said
    )
    assert "isnan" in said
    assert run(*known, "--categorical", "zip", "--categorical", "y") == 0
    wrong = (model.predict(frame[400:]) != label[400:]).sum()
    assert f"({wrong} errors)" in capsys.readouterr().out
    assert "Did you mean 'zip'?" in error_of(capsys, *known, "--categorical", "zipp")


def test_skops_files_without_a_classifier(table, model, tmp_path, capsys):
    skops = pytest.importorskip("skops.io")
    file = tmp_path / "model.skops"
    known = ["holes", file, table, "--target", "label"]
    skops.dump(model[0], file)
    assert "model.skops holds a StandardScaler, which does not predict" in error_of(capsys, *known)
    skops.dump({"no": "model"}, file)
    assert "model.skops holds a dict, which does not predict" in error_of(capsys, *known)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("schema.json", "nonsense")
    assert "model.skops is damaged or cannot be loaded here" in error_of(capsys, *known)


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
    said = error_of(capsys, *known, "--trust", "--image", "7x9")
    assert "means 63 pixels, but the model reads 64 columns of the 64 in" in said
    assert "28x28" in error_of(capsys, *known, "--trust", "--image", "big")


def test_labels_of_the_file_in_groups_or_unknown_to_the_model(tmp_path, capsys):
    digits = load_digits(as_frame=True)
    X, y = digits.data, digits.target
    digits.frame[600:].to_csv(tmp_path / "rows.csv", index=False)
    command = ["holes", tmp_path / "model", tmp_path / "rows.csv", "--target", "target", "--trust"]
    groups = {"low": range(5), "high": range(5, 10)}
    grouped = ErrorClumpingClassifier(1.0, label_groups=groups).fit(X[:600], y[:600])
    joblib.dump(grouped, tmp_path / "model")
    assert run(*command) == 0
    wrong = round((1 - grouped.score(X[600:], y[600:])) * 1197)
    assert f"({wrong} errors)" in capsys.readouterr().out
    known = y[:600] < 9
    few = make_pipeline(StandardScaler(), LogisticRegression(C=1e-4))
    joblib.dump(few.fit(X[:600][known], y[:600][known]), tmp_path / "model")
    assert run(*command) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"{(y[600:] == 9).sum()} rows have label 9, which the model does not know." in said
    assert said.startswith("Where LogisticRegression (model) fails on rows.csv")


def test_pictures_beside_other_columns(tmp_path, capsys):
    """Pixels are the model's columns; without names it must be said which are none."""
    digits = load_digits(as_frame=True)
    X, y = digits.data, digits.target > 4
    frame = X[600:].assign(high=y[600:], scanner="old", id=range(len(X) - 600))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    plain, file, page = LogisticRegression(C=1e-4), tmp_path / "model.joblib", tmp_path / "page"
    known = ["holes", file, tmp_path / "rows.csv", "--target", "high", "--trust", "--image", "8x8"]
    joblib.dump(plain.fit(X[:600], y[:600]), file)
    assert run(*known, "--html", page) == 0
    shown = page.read_text(encoding="utf-8")
    joblib.dump(plain.fit(X[:600].to_numpy(), y[:600]), file)
    capsys.readouterr()
    said = error_of(capsys, *known)
    assert "fitted on 64 columns" in said
    assert "Add --ignore for 'scanner', 'id'." in said
    assert run(*known, "--ignore", "id", "--ignore", "scanner", "--html", page) == 0
    assert page.read_text(encoding="utf-8") == shown
    # A model of few pixels: the table's columns are the picture, once the others are ignored.
    joblib.dump(plain.fit(X.iloc[:600, 20:40], y[:600]), file)
    capsys.readouterr()
    said = error_of(capsys, *known)
    assert "64 pixels, but the model reads 20 columns of the 66 in" in said
    assert "Add --ignore for 'scanner', 'id'." in said
    assert run(*known, "--ignore", "id", "--ignore", "scanner") == 0
    assert "--ignore" not in error_of(capsys, *known[:-1], "28x28")


def test_what_goes_wrong(table, rows, model, tmp_path, capsys):
    file = tmp_path / "model.joblib"
    joblib.dump(model, file)
    known = ["holes", file, table, "--target", "label", "--trust"]
    assert "there is no such file" in error_of(capsys, "holes", "no", table, "--target", "label")
    assert "is a folder. Name" in error_of(capsys, "holes", tmp_path, table, "--target", "label")
    assert "no column 'lable'. Did you mean 'label'" in error_of(
        capsys, "holes", file, table, "--target", "lable", "--trust"
    )
    assert "no folder" in error_of(capsys, *known, "--html", tmp_path / "no" / "page.html")
    assert "is a folder" in error_of(capsys, *known, "--html", tmp_path)
    assert "both --target and --ignore" in error_of(capsys, *known, "--ignore", "label")
    assert "--seed must be at least 0" in error_of(capsys, *known, "--seed", -1)
    assert "'z'" in error_of(capsys, *known, "--ignore", "z")
    assert "at least 1" in error_of(capsys, *known, "--clumps", 0)
    few = tmp_path / "few.csv"
    ours = ShareBoostClassifier(1).fit(rows[["a", "b"]], rows.label)
    ours.predictor_.save(tmp_path / "model.laconic")
    rows[["b", "label"]].to_csv(few, index=False)
    assert "few.csv has no column 'a', which the model reads" in error_of(
        capsys, "holes", tmp_path / "model.laconic", few, "--target", "label"
    )
    rows.drop(columns="b").to_csv(few, index=False)
    assert "'b', which the model reads" in error_of(
        capsys, "holes", file, few, "--target", "label", "--trust"
    )
    rows[:3].to_csv(few, index=False)
    assert "few.csv has 3 rows, too few to look for clumps" in error_of(
        capsys, "holes", file, few, "--target", "label", "--trust"
    )
    other = make_pipeline(StandardScaler(), LinearRegression())
    joblib.dump(other.fit(rows[["a", "b"]], rows.c), file)
    assert "holds a LinearRegression, which is not a classifier" in error_of(capsys, *known)
    joblib.dump({"no": "model"}, file)
    assert "holds a dict, which does not predict" in error_of(capsys, *known)
    file.write_bytes(b"nonsense")
    assert "is not a pickle of a model" in error_of(capsys, *known)
    unlabelled = tmp_path / "unlabelled.csv"
    rows.assign(label=rows.label.where(rows.index > 3)).to_csv(unlabelled, index=False)
    joblib.dump(model, file)
    assert "no label in 4 rows" in error_of(
        capsys, "holes", file, unlabelled, "--target", "label", "--trust"
    )


@pytest.fixture
def scored(rows, model, tmp_path):
    """A table with predictions and probabilities, as another program may write it."""
    new = rows[600:].reset_index(drop=True)
    chances = model.predict_proba(new[["a", "b", "c"]])
    frame = new.assign(
        said=model.predict(new[["a", "b", "c"]]), sure=chances.max(axis=1),
        p_no=chances[:, 0], p_yes=chances[:, 1],
    )  # fmt: skip
    frame.to_csv(tmp_path / "scored.csv", index=False)
    return tmp_path / "scored.csv"


def test_labels_and_columns_may_hold_signs_of_equality():
    columns = ["p_no", "p_yes", "a=b"]
    assert column_of("p_no=<=50K", columns) == ("p_no", "<=50K")
    assert column_of("a=b=yes", columns) == ("a=b", "yes")
    assert column_of("a=b", columns) == ("a=b", None)
    assert column_of("other=yes", columns) == ("other", "yes")


def test_predictions_from_elsewhere(scored, table, model, tmp_path, capsys):
    """One column of probabilities or one for each label: the same report as with the model."""
    joblib.dump(model, tmp_path / "model.joblib")
    assert run("holes", tmp_path / "model.joblib", table, "--target", "label", "--trust") == 0
    by_model = capsys.readouterr().out
    known = ["holes", scored, "--target", "label", "--predicted", "said"]
    several = ["--probability", "p_no", "p_yes", "--ignore", "sure"]
    ways = [
        ["--probability", "sure", "--ignore", "p_no", "--ignore", "p_yes"],
        several,
        ["--probability", "p_no=no", "--probability", "p_yes=yes", "--ignore", "sure"],
        ["--probability", "p_yes", "--ignore", "p_no", "--ignore", "sure"],
    ]
    texts = []
    for way in ways:
        assert run(*known, *way) == 0
        texts.append(capsys.readouterr().out)
    for text in texts:
        assert "Where the model of 'said' fails on scored.csv" in " ".join(text.split())
        assert "surprising" in text
        # The same rows and errors; only names and the columns that are left differ.
        assert by_model.split("misclassified")[1][:40] == text.split("misclassified")[1][:40]
    assert "confirmed" in texts[0]


def test_options_may_stand_between_the_files(scored, table, model, tmp_path, capsys):
    file = tmp_path / "model.joblib"
    joblib.dump(model, file)
    with_model = [
        ["holes", file, table, "--target", "label", "--trust"],
        ["holes", file, "--target", "label", table, "--trust"],
        ["holes", "--trust", "--target", "label", file, table],
        ["holes", "--trust", file, "--target", "label", table],
    ]
    without = [
        ["holes", scored, "--target", "label", "--predicted", "said"],
        ["holes", "--target", "label", "--predicted", "said", scored],
        ["holes", "--target", "label", scored, "--predicted", "said"],
    ]
    for ways in (with_model, without):
        texts = []
        for way in ways:
            assert run(*way) == 0
            texts.append(capsys.readouterr().out)
        assert len(set(texts)) == 1


def test_losses_from_a_column(scored, tmp_path, capsys):
    frame = pd.read_csv(scored)
    rng = np.random.default_rng(0)
    frame = frame[["a", "b", "way"]].assign(
        off=rng.exponential(np.where(frame.a > 0.8, 4, 1)).round(3)
    )
    frame.to_csv(tmp_path / "losses.csv", index=False)
    assert run("holes", tmp_path / "losses.csv", "--loss", "off") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "The mean loss of 600 rows is" in said
    assert "Clump 1: a over" in said


def test_what_goes_wrong_with_given_predictions(scored, table, model, tmp_path, capsys):
    joblib.dump(model, tmp_path / "model.joblib")
    known = ["holes", scored, "--target", "label"]
    assert "--predicted COLUMN (or --loss COLUMN)" in error_of(capsys, *known)
    assert "--target COLUMN is needed" in error_of(capsys, "holes", scored, "--predicted", "said")
    both = [*known[:1], tmp_path / "model.joblib", *known[1:], "--predicted", "said", "--trust"]
    assert "take the place of MODEL" in error_of(capsys, *both)
    taken = error_of(capsys, *known, "--loss", "sure")
    assert "takes the place of --target" in taken
    assert "use --ignore label" in taken
    known += ["--predicted", "said"]
    two = error_of(capsys, *known, "--probability", "p_yes=yes", "p_no=yes")
    assert "names two columns for the label 'yes'" in two
    assert "no column 'sur'" in error_of(capsys, *known, "--probability", "sur")
    few = error_of(capsys, *known, "--probability", "p_no", "sure")
    assert "COLUMN=LABEL for each label" in few
    one = error_of(capsys, *known, "--probability", "a")
    assert "must be those of the predicted labels" in one
    refused = error_of(capsys, "holes", tmp_path / "model.joblib", table, "--target", "label")
    assert "--predicted COLUMN --probability COLUMN" in refused
    lame = LogisticRegression().fit(np.zeros((4, 3)), [0, 1, 0, 1])
    lame.coef_ = np.zeros((1, 9))
    joblib.dump(lame, tmp_path / "lame.joblib")
    command = ["holes", tmp_path / "lame.joblib", table, "--target", "label", "--trust"]
    failed = error_of(capsys, *command, "--ignore", "way")
    assert "add its predictions to the table and leave the model out" in failed
