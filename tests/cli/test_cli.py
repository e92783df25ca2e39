"""The command line: what it prints, what it writes, and one line for what went wrong."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold

from cli.shell import error_of, run
from laconic import (
    ErrorClumpingClassifier,
    Predictor,
    ShareBoostClassifier,
    TotalQBoostClassifier,
    __version__,
)
from laconic.boost.rules import RULES
from laconic.cli import fit_options, headers
from laconic.cli.main import _build_parser, main
from laconic.data.errors import UserError
from laconic.estimators.priced import PRICES
from laconic.estimators.sizes import one_standard_error
from laconic.export.footprint import CHIP_NAMES
from laconic.losses import BINARY_LOSSES, LOSSES
from laconic.pools import POOLS
from laconic.subset import METHODS


@pytest.fixture(scope="module")
def frame():
    iris = load_iris(as_frame=True)
    frame = iris.data.rename(columns=lambda name: name.removesuffix(" (cm)").replace(" ", "_"))
    return frame.assign(species=iris.target_names[iris.target])


@pytest.fixture
def table(frame, tmp_path):
    file = tmp_path / "iris.csv"
    frame.to_csv(file, index=False)
    return file


@pytest.fixture
def saved(frame, tmp_path):
    model = ShareBoostClassifier(2).fit(frame.drop(columns="species"), frame.species)
    file = tmp_path / "saved.laconic"
    model.predictor_.save(file)
    return file, model


def settings(*argv):
    """The parsed arguments of laconic fit."""
    return _build_parser().parse_args(["fit", *(str(a) for a in argv)])


# -- the parser --------------------------------------------------------------------------------


def test_choices_are_those_of_the_library():
    assert set(fit_options.POOLS) == set(POOLS)
    assert set(fit_options.LOSSES) == set(LOSSES)
    assert set(fit_options.BINARY_LOSSES) == set(BINARY_LOSSES)
    assert set(fit_options.SEARCHES) == set(METHODS)
    assert set(fit_options.RULES) == set(RULES)
    assert headers.CHIPS == CHIP_NAMES


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"laconic {__version__}\n"


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from laconic.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "assert not {'numpy', 'sklearn', 'rich', 'pandas'} & set(sys.modules), 'heavy import'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "demo" in done.stdout


def test_no_command_shows_the_help(capsys):
    assert main([]) == 2
    assert "predict" in capsys.readouterr().out


def test_wrong_arguments(capsys):
    assert "--target" in error_of(capsys, "fit", "x.csv")
    assert "invalid choice" in error_of(capsys, "fit", "x.csv", "--target", "y", "--pool", "trees")
    assert "not allowed" in error_of(
        capsys, "fit", "x.csv", "--target", "y", "--cv", "3", "--early-stopping"
    )


# -- demo --------------------------------------------------------------------------------------


# ``python -m laconic``, where scikit-learn has 500 digits
DEMO = """
import runpy, sklearn.datasets
X, y = sklearn.datasets.load_digits(return_X_y=True)
sklearn.datasets.load_digits = lambda return_X_y: (X[:500], y[:500])
runpy.run_module("laconic", run_name="__main__", alter_sys=True)
"""


@pytest.mark.long
def test_demo_as_a_program(tmp_path):
    out = tmp_path / "tmp"
    done = subprocess.run(
        [sys.executable, "-c", DEMO, "demo", "--max-atoms", "3", "--out", str(out)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for said in ("test error", "▶", "Tried", "predicts the same", "Next"):
        assert said in done.stdout
    if shutil.which("cc"):
        assert "The compiled digits.h reads" in done.stdout
    predictor = Predictor.load(out / "model.laconic")
    assert predictor.cost().atoms <= 3
    assert "digits_predict" in (out / "digits.h").read_text()
    assert (out / "pareto.png").stat().st_size > 10_000


def test_demo_without_matplotlib_and_without_a_compiler(few_digits, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setenv("CC", "no-such-compiler")
    assert run("demo", "--max-atoms", 1, "--out", tmp_path) == 0
    shown = capsys.readouterr().out
    assert 'pip install ".[plot]"' in shown
    assert not (tmp_path / "pareto.png").exists()
    assert "The C code was not run" in shown


# -- fit ---------------------------------------------------------------------------------------


def test_a_budget_of_bytes_takes_the_best_model_that_fits(table, frame, tmp_path, capsys):
    model, header = tmp_path / "small.laconic", tmp_path / "small.h"
    budget = ("--max-bytes", 900, "--chip", "cortex-m0", "--max-atoms", 6)
    given = (table, "--target", "species", *budget, "--test-fraction", 0.3)
    picture = tmp_path / "frontier.png"
    out = ("--out", model, "--export", header, "--plot", picture)
    assert run("fit", *given, *out) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for said in ("cv error", "▶", "best score of all models that fit 900 bytes"):
        assert said in shown
    assert Predictor.load(model).integers.bits in (8, 16)
    assert "small_predict" in header.read_text()
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("options", "method"),
    [
        ((), "share"),
        (("--max-bytes", 900), "compact"),
        (("--max-bytes", 900, "--pool", "stumps"), "share"),
        (("--max-bytes", 900, "--price", 0.1), "share"),
        (("--method", "compact"), "compact"),
    ],
)
def test_a_budget_without_a_pool_is_a_search(options, method):
    args = settings("t.csv", "--target", "y", *options)
    if "--price" in options:
        with pytest.raises(UserError, match="--price works only with --method totalq"):
            fit_options.settle(args)
    else:
        fit_options.settle(args)
        assert args.method == method


def test_options_of_other_methods_are_refused_by_a_search():
    args = settings("t.csv", "--target", "y", "--method", "compact", "--pool", "stumps")
    with pytest.raises(UserError, match="--pool works only with --method share or totalq"):
        fit_options.settle(args)
    args = settings("t.csv", "--target", "y", "--time-limit", 3)
    with pytest.raises(UserError, match="--time-limit works only with --method compact"):
        fit_options.settle(args)


def test_fit_saves_what_the_estimator_learns(table, frame, tmp_path, capsys):
    out = tmp_path / "model.laconic"
    assert run("fit", table, "--target", "species", "--max-atoms", 3, "--out", out) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    X = frame.drop(columns="species")
    model = ShareBoostClassifier(3).fit(X, frame.species)
    predictor = Predictor.load(out)
    np.testing.assert_array_equal(predictor.scores(X.to_numpy()), model.decision_function(X))
    assert predictor.feature_names == list(X.columns)
    for said in ("petal_width", "always in", "in use", str(out)):
        assert said in shown.out


def test_fit_with_everything(table, tmp_path, capsys):
    out, plot, checkpoint = tmp_path / "m.laconic", tmp_path / "p.png", tmp_path / "c.npz"
    options = f"--max-atoms 3 --pool products --loss log --rule projection --alpha 1e-4 --refine \
        --cv 3 --test-fraction 0.3 --checkpoint {checkpoint} --out {out} --plot {plot}".split()
    assert run("fit", table, "--target", "species", *options) == 0
    shown = capsys.readouterr().out
    assert "3-fold cross-validation" in shown
    assert "test" in shown
    assert "accuracy" in shown
    assert Predictor.load(out).map.kind == "products"
    assert Predictor.load(out).loss == "log"
    assert plot.exists()
    assert checkpoint.exists()


def test_fit_knows_costs_and_columns_that_are_always_in(table, frame, tmp_path, capsys):
    out = tmp_path / "m.laconic"
    settings = ("--target", "species", "--out", out, "--max-atoms", "4")
    dear = ("--cost", "petal_width=10", "--cost", "petal_length=10", "--max-cost", "2")
    assert run("fit", table, *settings, *dear) == 0
    assert "The path ends at 2 atoms: no admissible atom is left" in capsys.readouterr().out
    assert sorted(Predictor.load(out).names()) == ["sepal_length", "sepal_width"]
    assert run("fit", table, *settings, "--include", "sepal_width", "--balanced") == 0
    assert Predictor.load(out).names()[0] == "sepal_width"
    wrong = [
        (("--cost", "petal_width"), "--cost must be COLUMN=NUMBER"),
        (("--cost", "petal_width=much"), "--cost must be COLUMN=NUMBER"),
        (("--cost", "petal_wide=1"), "Did you mean 'petal_width'?"),
        (("--cost", "petal_width+petal_wide=1"), "Did you mean 'petal_width'?"),
        (
            ("--cost", "petal_width=1", "--cost", "petal_width+sepal_width=1"),
            "costs names 'petal_width' more than once",
        ),
        (("--max-features", "0"), "max_features"),
        (("--chip", "avr"), "Give one of them, too"),
        (("--max-bytes", "3"), "more than max_bytes=3"),
        (("--include", "species"), "'species' is the target or is ignored"),
        (("--test-fraction", "0.001"), "--test-fraction 0.001 does not work"),
    ]
    capsys.readouterr()
    for arguments, said in wrong:
        assert said in error_of(capsys, "fit", table, *settings, *arguments)


@pytest.mark.parametrize("method", ["share", "totalq"])
def test_fit_stays_within_budgets(table, tmp_path, capsys, method):
    out = tmp_path / "m.laconic"
    settings = ("--target", "species", "--out", out, "--method", method)
    assert run("fit", table, *settings, "--max-features", "1", "--pool", "stumps") == 0
    cost = Predictor.load(out).cost()
    assert (cost.features, cost.atoms > 1) == (1, True)
    assert run("fit", table, *settings, "--max-operations", "7", "--pool", "columns") == 0
    assert Predictor.load(out).cost().operations == 6
    capsys.readouterr()
    assert run("fit", table, *settings, "--max-bytes", "1200", "--chip", "avr") == 0
    assert "bytes on" in capsys.readouterr().out


def test_fit_pays_for_a_sensor_once(frame, tmp_path):
    """Columns with a plus in their names are still found."""
    renamed = frame.rename(columns={"sepal_width": "sepal+width"})
    renamed.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "m.laconic"
    settings = ("--target", "species", "--out", out, "--max-cost", "3")
    costs = ("--cost", "petal_width+petal_length=3", "--cost", "sepal+width=9")
    assert run("fit", tmp_path / "t.csv", *settings, *costs, "--ignore", "sepal_length") == 0
    assert sorted(Predictor.load(out).names()) == ["petal_length", "petal_width"]


def test_fit_with_a_price_on_every_stump(frame, tmp_path, capsys):
    two = frame[frame.species != "setosa"]
    two.to_csv(tmp_path / "two.csv", index=False)
    file = tmp_path / "model"
    options = ("--method", "totalq", "--price", 0.05, "--max-rounds", 20, "--out", file)
    assert run("fit", tmp_path / "two.csv", "--target", "species", *options) == 0
    said = " ".join(capsys.readouterr().out.split())  # the card breaks its lines
    assert "points" in said
    assert "a sum above zero means virginica, otherwise versicolor" in said
    X = two.drop(columns="species")
    model = TotalQBoostClassifier(20, price=0.05).fit(X, two.species)
    assert np.array_equal(Predictor.load(file).scores(X), model.predictor_.scores(X))


def test_fit_chooses_the_price_by_cross_validation(frame, tmp_path, capsys):
    two = frame[frame.species != "setosa"]
    two.to_csv(tmp_path / "two.csv", index=False)
    fit = ("fit", tmp_path / "two.csv", "--target", "species", "--method", "totalq", "--cv", 3)
    file = tmp_path / "model"
    assert run(*fit, "--max-rounds", 5, "--out", file) == 0
    X, y = two.drop(columns="species"), two.species.to_numpy()
    scores = np.empty((3, len(PRICES)))
    for fold, (part, test) in zip(scores, StratifiedKFold(3).split(X, y), strict=True):
        for at, price in enumerate(PRICES):
            model = TotalQBoostClassifier(5, price=price).fit(X.iloc[part], y[part])
            fold[at] = model.score(X.iloc[test], y[test])
    price = PRICES[one_standard_error(scores)]
    model = TotalQBoostClassifier(5, price=price).fit(X, y)
    assert f"at a price of {price:g}, chosen by 3-fold cross-validation" in capsys.readouterr().out
    np.testing.assert_array_equal(Predictor.load(file).scores(X), model.predictor_.scores(X))
    assert "--cv chooses the price" in error_of(capsys, *fit, "--price", 0.1)


def test_options_of_the_other_method_are_refused(table, capsys):
    fit = ("fit", table, "--target", "species")
    assert "--price works only with --method totalq" in error_of(capsys, *fit, "--price", 0.1)
    assert "--rule works only with --method share" in error_of(
        capsys, *fit, "--method", "totalq", "--rule", "step"
    )
    assert "only with --method totalq" in error_of(capsys, *fit, "--loss", "logistic")
    two_only = ("--method", "totalq", "--loss", "logistic")
    assert "Only binary" in error_of(capsys, *fit, *two_only)


def test_a_price_on_every_stump_for_three_classes(table, tmp_path, capsys):
    file = tmp_path / "model"
    options = ("--method", "totalq", "--price", 0.05, "--max-rounds", 6, "--out", file)
    assert run("fit", table, "--target", "species", *options) == 0
    assert "(log)" in capsys.readouterr().out
    assert Predictor.load(file).loss == "log"


def test_early_stopping_says_so(table, tmp_path, capsys):
    options = ["--target", "species", "--early-stopping", "--max-atoms", 2]
    assert run("fit", table, *options, "--out", tmp_path / "m.laconic") == 0
    shown = capsys.readouterr().out
    assert "held-out" in shown
    assert "chosen by the loss on held-out rows" in shown


@pytest.mark.parametrize("method", ["share", "totalq"])
def test_atoms_are_tuned(table, frame, method, tmp_path, capsys):
    file = tmp_path / "m.laconic"
    fit = ("fit", table, "--target", "species", "--method", method, "--max-atoms", 2, "--tune")
    assert run(*fit, "--pool", "hinges", "--out", file) == 0
    made = {"share": ShareBoostClassifier(2), "totalq": TotalQBoostClassifier(max_atoms=2)}[method]
    made.set_params(pool="hinges", random_state=0, tune=True)
    model = made.fit(frame.drop(columns="species"), frame["species"])
    assert model.path_.is_tuned(2)
    X = frame.drop(columns="species")
    saved = Predictor.load(file).scores(X)  # the order of a table in memory rounds sums
    np.testing.assert_allclose(saved, model.predictor_.scores(X), rtol=1e-8)
    assert "The atoms of the model in use were tuned." in capsys.readouterr().out
    told = error_of(capsys, *fit)
    assert "--tune needs atoms with parameters. Add --pool bumps or --pool hinges." in told
    assert "a search" not in told
    told = error_of(capsys, *fit, "--max-bytes", 600)
    assert "Or leave out --tune: a search by --max-bytes tunes by itself." in told
    told = error_of(capsys, *fit, "--pool", "columns,hinges")
    assert "--pool columns,hinges cannot be tuned" in told


@pytest.mark.parametrize("method", ["share", "totalq"])
def test_atoms_that_stay_are_reported(table, method, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("laconic.tune.path.Tuner.tuned", lambda self, entry: None)
    options = ["--target", "species", "--method", method, "--max-atoms", 2, "--tune"]
    options += ["--pool", "hinges", "--max-operations", 100, "--out", tmp_path / "m.laconic"]
    assert run("fit", table, *options) == 0
    shown = " ".join(capsys.readouterr().out.split())
    fewer = " or has fewer atoms" if method == "totalq" else ""
    told = "The tuned model is no better on held-out rows or takes more operations"
    assert f"The atoms stay as they were chosen. {told}{fewer}." in shown


def test_a_search_does_not_tune():
    args = settings("t.csv", "--target", "y", "--method", "compact", "--tune")
    with pytest.raises(UserError, match=r"share or totalq\. A search tunes by itself"):
        fit_options.settle(args)


def test_text_columns_need_stumps(frame, tmp_path, capsys):
    table = tmp_path / "t.csv"
    frame.assign(site="north").to_csv(table, index=False)
    message = error_of(capsys, "fit", table, "--target", "species")
    assert "'site'" in message
    assert "--pool stumps" in message
    options = ["--target", "species", "--max-atoms", 1, "--out", tmp_path / "m.laconic"]
    assert run("fit", table, *options, "--ignore", "site") == 0
    assert run("fit", table, *options, "--pool", "stumps") == 0


def test_fit_errors_name_the_column(table, frame, tmp_path, capsys):
    assert "no column 'kind'" in error_of(capsys, "fit", table, "--target", "kind")
    gap = tmp_path / "gap.csv"
    holed = frame.copy()
    holed.loc[4, "petal_width"] = np.nan
    holed.loc[7, "species"] = np.nan
    holed.to_csv(gap, index=False)
    assert "no label in 1 row" in error_of(capsys, "fit", gap, "--target", "species")
    holed.drop(index=7).to_csv(gap, index=False)
    message = error_of(capsys, "fit", gap, "--target", "species")
    assert "'petal_width' has a missing value in row 5" in message
    assert "--pool stumps" in message
    frame[["species"]].to_csv(gap, index=False)
    assert "no column to learn from" in error_of(capsys, "fit", gap, "--target", "species")


def test_fit_errors_before_the_fit(table, tmp_path, capsys, monkeypatch):
    fit = ["fit", table, "--target", "species"]
    assert "no-such.csv: No such file" in error_of(capsys, "fit", "no-such.csv", "--target", "y")
    assert "no folder" in error_of(capsys, *fit, "--out", tmp_path / "none" / "m.laconic")
    assert "--test-fraction" in error_of(capsys, *fit, "--test-fraction", 1.5)
    assert "max_atoms" in error_of(capsys, *fit, "--max-atoms", -1)
    assert "both --target and --ignore" in error_of(capsys, *fit, "--ignore", "species")
    assert "not 'xyz'" in error_of(capsys, *fit, "--plot", tmp_path / "path.xyz")
    empty = tmp_path / "empty.csv"
    empty.write_text("a,b\n")
    assert "no rows" in error_of(capsys, "fit", empty, "--target", "a")
    empty.write_text("")
    error_of(capsys, "fit", empty, "--target", "a")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert '".[plot]"' in error_of(capsys, *fit, "--plot", tmp_path / "p.png")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert 'pip install ".[data]"' in error_of(capsys, *fit)


def test_parquet_without_its_reader(capsys, monkeypatch):
    def read(file):
        raise ImportError("no engine\nfor parquet")

    monkeypatch.setattr(pd, "read_parquet", read)
    assert "pyarrow" in error_of(capsys, "fit", "t.parquet", "--target", "y")


def test_parquet(frame, tmp_path, monkeypatch):
    monkeypatch.setattr(pd, "read_parquet", lambda file: frame)
    out = tmp_path / "m.laconic"
    assert run("fit", "t.parquet", "--target", "species", "--max-atoms", 1, "--out", out) == 0


# -- predict -----------------------------------------------------------------------------------


def predictions(capsys, *argv):
    assert run("predict", *argv) == 0
    return pd.read_csv(io.StringIO(capsys.readouterr().out))


def test_predict_finds_columns_by_name(saved, frame, tmp_path, capsys):
    file, model = saved
    X = frame.drop(columns="species")
    table = tmp_path / "t.csv"
    # Only the features that the model reads, in another order, among others.
    used = [X.columns[f] for f in model.predictor_.map.features()]
    frame[["species", *used[::-1]]].to_csv(table, index=False)
    got = predictions(capsys, file, table, "--proba")
    assert got.prediction.tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(
        got[[f"p_{c}" for c in model.classes_]], model.predict_proba(X), atol=1e-5
    )


def test_no_probabilities_where_the_model_has_none(frame, table, tmp_path, capsys):
    model = ErrorClumpingClassifier().fit(frame.drop(columns="species"), frame.species)
    file = tmp_path / "clumped.laconic"
    model.predictor_.save(file)
    assert "Leave --proba out" in error_of(capsys, "predict", file, table, "--proba")
    assert predictions(capsys, file, table).prediction.nunique() > 1


def test_predict_to_a_file(saved, table, tmp_path, capsys):
    out = tmp_path / "out.csv"
    assert run("predict", saved[0], table, "--out", out) == 0
    assert list(pd.read_csv(out).columns) == ["prediction"]
    assert capsys.readouterr().out == ""


def test_predict_keeps_columns_as_they_are_spelled(saved, frame, tmp_path, capsys):
    file, _ = saved
    table = tmp_path / "named.csv"
    names = [f"{i:04d}" for i in range(len(frame))]
    frame.assign(id=names).to_csv(table, index=False)
    run("predict", file, table, "--keep", "id", "--keep", "species")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "id,species,prediction"
    assert lines[1].startswith("0000,setosa,")
    assert len(lines) == len(frame) + 1
    wrong = error_of(capsys, "predict", file, table, "--keep", "specie")
    assert "no column 'specie'. Did you mean 'species'?" in wrong
    frame.assign(prediction=1).to_csv(table, index=False)
    assert "overwritten" in error_of(capsys, "predict", file, table, "--keep", "prediction")


def test_predict_without_feature_names_goes_by_order(frame, tmp_path, capsys):
    X = frame.drop(columns="species")
    model = ShareBoostClassifier(2).fit(X.to_numpy(), frame.species)
    model.predictor_.save(tmp_path / "m.laconic")
    table = tmp_path / "t.csv"
    X.to_csv(table, index=False)
    got = predictions(capsys, tmp_path / "m.laconic", table)
    assert got.prediction.tolist() == model.predict(X.to_numpy()).tolist()
    frame.to_csv(table, index=False)
    assert "4 columns in order, not 5" in error_of(capsys, "predict", tmp_path / "m.laconic", table)


def test_categories_are_encoded_and_unknown_ones_missing(tmp_path, capsys):
    rows = pd.DataFrame({"size": ["1", "2", "x"] * 20, "n": [0.0, np.nan, 2.0] * 20})
    rows["y"] = rows["size"].map({"1": "a", "2": "b", "x": "c"})
    table, model = tmp_path / "t.csv", tmp_path / "m.laconic"
    rows.to_csv(table, index=False)
    assert run("fit", table, "--target", "y", "--pool", "stumps", "--out", model) == 0
    assert "size = " in capsys.readouterr().out
    assert predictions(capsys, model, table).prediction.tolist() == rows.y.tolist()
    # Without the x the column looks like numbers, and with a gap like 1.0: still categories.
    rows[rows.y != "c"].assign(y=0).to_csv(table, index=False)
    assert set(predictions(capsys, model, table).prediction) == {"a", "b"}
    pd.DataFrame({"size": ["1", "new", None], "n": [0.0, 0.0, 0.0]}).to_csv(table, index=False)
    first, unknown, missing = predictions(capsys, model, table).prediction
    assert first == "a"
    assert unknown == missing


def test_codes_can_be_categories(tmp_path, capsys):
    frame = pd.DataFrame({"code": ["007", "07", "7", "12"] * 10, "y": [1, 0, 0, 0] * 10})
    file, model = tmp_path / "codes.csv", tmp_path / "m"
    frame.to_csv(file, index=False)
    how = ["--target", "y", "--pool", "stumps", "--max-atoms", "1", "--out", model]
    assert run("fit", file, *how, "--categorical", "code") == 0
    assert "code = 007" in capsys.readouterr().out
    assert predictions(capsys, model, file).prediction.tolist() == frame.y.tolist()
    plain = ["fit", file, "--target", "y", "--categorical", "code"]
    assert "--categorical needs --pool stumps" in error_of(capsys, *plain)
    assert "Did you mean 'code'?" in error_of(capsys, "fit", file, *how, "--categorical", "cod")


def test_text_that_looks_missing_is_text_among_text(tmp_path, capsys):
    """NA, the country, and None, the answer; among numbers either is a missing value."""
    rows = pd.DataFrame({"land": ["NA", "nan", "DE", ""] * 20, "n": ["1", "NA", "nan", "4"] * 20})
    rows["y"] = ["None", "b", "c", "d"] * 20
    table, model = tmp_path / "t.csv", tmp_path / "m.laconic"
    rows.to_csv(table, index=False)
    fit = ["fit", table, "--target", "y", "--pool", "stumps", "--out", model]
    assert run(*fit, "--ignore", "n") == 0
    loaded = Predictor.load(model)
    known = loaded.categories[0]
    assert known.items() <= {0: "DE", 1: "NA", 2: "nan"}.items()
    asked = {name.removeprefix("land = ") for name in loaded.names()} - {"land is missing"}
    assert set(known.values()) == asked
    capsys.readouterr()
    assert run("predict", model, table, "--keep", "land") == 0
    said = [line.split(",") for line in capsys.readouterr().out.splitlines()[1:]]
    assert said == rows[["land", "y"]].to_numpy().tolist()
    # One row alone, or text that is missing: what the model knows of the column counts.
    rows[:1].to_csv(table, index=False)
    assert run("predict", model, table) == 0
    assert capsys.readouterr().out == "prediction\nNone\n"
    rows.to_csv(table, index=False)
    assert run(*fit, "--ignore", "land") == 0
    assert Predictor.load(model).categories == {}
    assert "n is missing" in capsys.readouterr().out
    rows.assign(y=["1", "0", "NA", "0"] * 20).to_csv(table, index=False)
    assert "'y' has no label in 20 rows" in error_of(capsys, *fit)


def test_tables_come_through_pipes(saved, table, tmp_path, capsys):
    """Also where text with gaps makes for a second look."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = table.read_text().replace("setosa", "", 1)
    writer = threading.Thread(target=pipe.write_text, args=(text,), daemon=True)
    writer.start()
    assert len(predictions(capsys, saved[0], pipe)) == 150
    writer.join()


def test_truth_values_are_numbers(tmp_path, capsys):
    rows = pd.DataFrame({"flag": [True, False, None] * 20, "y": ["a", "b", "b"] * 20})
    table, model = tmp_path / "t.csv", tmp_path / "m.laconic"
    rows.to_csv(table, index=False)
    assert run("fit", table, "--target", "y", "--pool", "stumps", "--out", model) == 0
    capsys.readouterr()
    assert predictions(capsys, model, table).prediction.tolist() == rows.y.tolist()


def test_predict_errors(saved, frame, tmp_path, capsys):
    file, _ = saved
    table = tmp_path / "t.csv"
    frame[["sepal_width"]].to_csv(table, index=False)
    assert "no column 'petal_length'" in error_of(capsys, "predict", file, table)
    frame.assign(petal_length="long").to_csv(table, index=False)
    message = error_of(capsys, "predict", file, table)
    assert "'petal_length' must hold numbers" in message
    for value, said in [(np.nan, "a missing value"), (np.inf, "an infinite value")]:
        frame.assign(petal_width=value).to_csv(table, index=False)
        assert said in error_of(capsys, "predict", file, table)
    assert "No such file" in error_of(capsys, "predict", tmp_path / "none", table)


# -- describe, and how commands end ------------------------------------------------------------


def test_describe_a_saved_model(saved, capsys):
    file, model = saved
    assert run("describe", file) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in model.predictor_.names())
    assert "share" not in shown


def test_damaged_models(saved, table, tmp_path, capsys):
    file, _ = saved
    whole = file.read_bytes()
    for name, content in [("cut", whole[:400]), ("text", b"hello"), ("empty", b"")]:
        bad = tmp_path / name
        bad.write_bytes(content)
        assert name in error_of(capsys, "describe", bad)
        assert name in error_of(capsys, "predict", bad, table)
    assert "pickle" not in error_of(capsys, "describe", table)


def test_ctrl_c_is_polite(saved, capsys, monkeypatch):
    def interrupt(args):
        raise KeyboardInterrupt

    monkeypatch.setattr("laconic.cli.describe.run", interrupt)
    assert run("describe", saved[0]) == 130
    assert capsys.readouterr().err == "laconic: interrupted\n"


def test_an_interrupted_fit_keeps_its_model(table, tmp_path, capsys, monkeypatch):
    def stop(self, X, y):
        def interrupt(state):
            if state.last.size == 2:
                raise KeyboardInterrupt

        return fit(self.set_params(callbacks=[interrupt]), X, y)

    fit = ShareBoostClassifier.fit
    monkeypatch.setattr(ShareBoostClassifier, "fit", stop)
    out = tmp_path / "m.laconic"
    assert run("fit", table, "--target", "species", "--out", out) == 130
    assert "laconic: warning: fit was interrupted" in capsys.readouterr().err
    assert Predictor.load(out).cost().atoms == 2


def test_the_first_wrong_cell_is_named(tmp_path, capsys):
    good = pd.DataFrame({"age": [20.0, 40.0, 60.0, 70.0] * 10, "y": [0, 0, 1, 1] * 10})
    good.to_csv(tmp_path / "good.csv", index=False)
    model = tmp_path / "m.laconic"
    fit = ["fit", tmp_path / "good.csv", "--target", "y", "--pool", "stumps", "--out", model]
    assert run(*fit) == 0
    (tmp_path / "bad.csv").write_text("age\n30\nNA\n12o\n")
    capsys.readouterr()
    assert run("predict", model, tmp_path / "bad.csv") == 2
    assert "column 'age' must hold numbers; row 3 has '12o'" in capsys.readouterr().err


def test_several_pools(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 3))
    table, model = tmp_path / "t.csv", tmp_path / "m"
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=X[:, 0] * X[:, 1] + 0.3 * X[:, 2] > 0)
    frame.to_csv(table, index=False)
    fit = ["fit", table, "--target", "y", "--max-atoms", "2", "--out", model]
    assert run(*fit, "--pool", "columns,products") == 0
    assert sorted(Predictor.load(model).names()) == ["a * b", "c"]
    assert "choose from columns" in error_of(capsys, *fit, "--pool", "columns,trees")
    assert "must name each pool once" in error_of(capsys, *fit, "--pool", "stumps,stumps")
    frame.assign(a="text").to_csv(table, index=False)
    message = error_of(capsys, *fit, "--pool", "stumps,columns")
    assert "--pool stumps,columns cannot use" in message
