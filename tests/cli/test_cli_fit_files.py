"""Fits on Parquet files whose rows stay on the disk."""

import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from shell import error_of, run

from laconic import Predictor, ShareBoostClassifier
from laconic.cli import fit_files
from laconic.numeric.parts import Here

pytest.importorskip("pyarrow")

N = 900


def rows(seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=N).astype(np.float32),
            "b": np.where(rng.uniform(size=N) < 0.1, np.nan, rng.normal(size=N)),
            "town": rng.choice(["Oslo", "Rome", "Ulm"], N),
            "code": rng.integers(1, 4, N),
            "when": pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 500, N), "D"),
        }
    )
    points = (frame.a > 0).astype(int) + (frame.town == "Rome") + (frame.code == 2)
    return frame.assign(y=np.where(points + (frame.when > "2023-09-01") > 1, "yes", "no"))


def write(frame, folder, n_files=3):
    folder.mkdir(exist_ok=True)
    for number, start in enumerate(range(0, len(frame), -(-len(frame) // n_files))):
        end = start + -(-len(frame) // n_files)
        frame[start:end].to_parquet(folder / f"{number}.parquet")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write(rows(), tmp_path / "rows")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "rows"


FIT = ("--target", "y", "--max-atoms", 5, "--out", "m.laconic")
STUMPS = (*FIT, "--pool", "stumps")


# -- the same models -------------------------------------------------------------------------------


@pytest.mark.parametrize("named", ["rows", "rows/*.parquet"])
def test_files_give_the_model_of_one_memory(named, folder, capsys):
    assert run("fit", named, *STUMPS, "--categorical", "code", "--balanced") == 0
    told = capsys.readouterr().out
    assert "of the training rows" in told
    assert "replaced" not in told
    frame = rows()
    X = frame.drop(columns="y").astype({"code": "category"})
    model = ShareBoostClassifier(5, pool="stumps", class_weight="balanced").fit(X, frame.y)
    found = Predictor.load("m.laconic")
    assert found.names() == model.predictor_.names()
    np.testing.assert_allclose(found.scores(frame), model.predictor_.scores(X), atol=1e-6)
    assert f"{100 * model.class_prior_.max():.1f} % of the training rows" in told
    assert model.predictor_._card().split()[:3] == told[told.index("5 stumps") :].split()[:3]


def test_a_large_file_stays_on_disk(folder, monkeypatch):
    frame = rows()
    frame.to_parquet("t.parquet", row_group_size=100)
    assert run("fit", "t.parquet", *STUMPS) == 0
    wanted = Predictor.load("m.laconic")
    assert fit_files.fit_files("t.parquet") is None
    monkeypatch.setattr("laconic.data.elsewhere.CHUNK", 300)
    assert len(fit_files.fit_files("t.parquet")) == 1
    monkeypatch.setattr("laconic.cli.fit.training_table", None)
    assert run("fit", "t.parquet", *STUMPS) == 0
    found = Predictor.load("m.laconic")
    assert found.names() == wanted.names()
    np.testing.assert_allclose(found.scores(frame), wanted.scores(frame), atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        ("--ignore", "b", "--pool", "columns", "--ignore", "town", "--include", "code"),
        ("--method", "totalq", "--price", 0.01),
        ("--method", "totalq", "--ignore", "town", "--max-rounds", 8),
        ("--pool", "stumps", "--cost", "a=2", "--cost", "code+when=3", "--max-cost", 4),
        ("--pool", "stumps", "--max-bytes", 400),
        ("--pool", "rules", "--max-features", 2),
        ("--pool", "stumps", "--refine", "--plot", "p.png"),
    ],
)
def test_options_of_models(options, folder, capsys):
    assert run("fit", "rows", *FIT, *options) == 0
    model = Predictor.load("m.laconic")
    ignored = {value for name, value in pairwise(options) if name == "--ignore"}
    assert not ignored & set(model.feature_names)
    assert len(model.classes) == 2


def test_a_checkpoint_is_resumed(folder):
    assert run("fit", "rows", *STUMPS, "--checkpoint", "c.ck") == 0
    first = Predictor.load("m.laconic")
    assert run("fit", "rows", *STUMPS, "--checkpoint", "c.ck", "--max-atoms", 7) == 0
    assert Predictor.load("m.laconic").names()[:5] == first.names()


@pytest.mark.parametrize("name", ["m.h", "m.onnx"])
def test_exports(name, folder, capsys):
    if name == "m.onnx":
        pytest.importorskip("onnx")
    options = ("--ignore", "town", "--ignore", "b", "--ignore", "when", "--export", name)
    assert run("fit", "rows", *STUMPS, *options) == 0
    told = capsys.readouterr().out
    assert re.search(rf"saved  {name}", told)
    assert ("rows given" in told) == (name == "m.h")


def test_numbers_as_text_are_numbers(folder, capsys, monkeypatch):
    monkeypatch.setattr(fit_files, "LOOKED", 300)
    frame = rows().assign(a=lambda f: f.a.map("{:.5f}".format))
    write(frame, folder)
    assert run("fit", "rows", *STUMPS) == 0
    assert "column 'a' holds numbers as text, and is read as numbers" in capsys.readouterr().err
    assert "a" in {name.split()[0] for name in Predictor.load("m.laconic").names()}
    frame[600:].assign(a="x").to_parquet(folder / "2.parquet")
    told = error_of_quiet(capsys, "fit", "rows", *STUMPS)
    assert "column 'a' of rows/2.parquet must hold numbers, as its first rows do" in told


def error_of_quiet(capsys, *argv):
    """The last line on stderr of a command that fails after a warning."""
    assert run(*argv) == 2
    return capsys.readouterr().err.splitlines()[-1]


# -- columns that name rows ------------------------------------------------------------------------


def test_columns_that_name_rows_are_left_out(folder, capsys):
    frame = rows().assign(id=[f"r{i}" for i in range(N)], number=np.arange(N) + 17)
    write(frame, folder)
    assert run("fit", "rows", *STUMPS, "--keep-id", "number") == 0
    told = capsys.readouterr().err
    assert "column 'id' is left out because it seems to name rows" in told
    assert "'number' is left out" not in told
    assert "id" not in Predictor.load("m.laconic").feature_names
    assert "number" in Predictor.load("m.laconic").feature_names


def test_only_the_first_rows_are_looked_at(folder, capsys, monkeypatch):
    monkeypatch.setattr(fit_files, "LOOKED", 100)
    frame = rows().assign(number=[*range(100), *[5] * (N - 100)])
    write(frame, folder)
    assert run("fit", "rows", *STUMPS) == 0
    assert "(100 different values in 100 rows)" in capsys.readouterr().err


def test_numbers_of_rows_may_be_in_any_order(folder, capsys, monkeypatch):
    monkeypatch.setattr(fit_files, "LOOKED", 100)
    rng = np.random.default_rng(0)
    frame = rows().assign(number=rng.permutation(N), amount=rng.permutation(3 * N)[:N])
    write(frame, folder)
    assert run("fit", "rows", *STUMPS) == 0
    told = capsys.readouterr().err
    assert "column 'number' is left out because it seems to name rows: its whole numbers" in told
    assert "amount" not in told
    assert run("fit", "rows", *STUMPS, "--keep-id", "number") == 0
    assert capsys.readouterr().err == ""


# -- what goes wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--cv", 3), "--cv needs all rows in memory"),
        (("--early-stopping",), "--early-stopping needs all rows in memory"),
        (("--test-fraction", 0.25), "Keep some files aside"),
        (("--method", "compact", "--max-bytes", 900), "Fit on one small file"),
        (("--dates", "dmy"), "Write the dates as 2024-05-31"),
    ],
)
def test_what_needs_all_rows_is_refused_before_anything_is_read(
    options, told, folder, capsys, monkeypatch
):
    monkeypatch.setattr("laconic.cli.fit.training_files", None)
    assert told in error_of(capsys, "fit", "rows", *FIT, *options)


def test_files_that_do_not_fit_together(folder, capsys):
    frame = rows()
    frame[:300].drop(columns="a").to_parquet(folder / "1.parquet")
    told = error_of(capsys, "fit", "rows", *STUMPS)
    assert "rows/1.parquet has the columns 'b', 'town'" in told
    assert "give all files the same columns" in told
    frame[:300].assign(a="x").to_parquet(folder / "1.parquet")
    told = error_of(capsys, "fit", "rows", *STUMPS)
    assert "columns of different types" in told
    assert "Field a" in told


def test_wrong_names(folder, tmp_path, capsys):
    assert "no file matches none/*.parquet" in error_of(capsys, "fit", "none/*.parquet", *STUMPS)
    (tmp_path / "empty").mkdir()
    assert "has no .npy or .parquet files" in error_of(capsys, "fit", "empty", *STUMPS)
    np.save("empty/a.npy", np.zeros((3, 2)))
    assert "Give Parquet files" in error_of(capsys, "fit", "empty", *STUMPS)
    for option in ("--target", "--ignore", "--categorical"):
        told = error_of(capsys, "fit", "rows", *STUMPS, option, "tow")
        assert "rows has no column 'tow'. Did you mean 'town'?" in told
    assert "both --target and --ignore" in error_of(capsys, "fit", "rows", *FIT, "--ignore", "y")


def test_labels_that_are_missing(folder, capsys):
    frame = rows()
    frame.loc[700:701, "y"] = None
    write(frame, folder)
    told = error_of(capsys, "fit", "rows", *STUMPS)
    assert "column 'y' has no label in 2 rows of rows/2.parquet" in told
    write(frame.assign(y=np.where(frame.index < 800, 1.0, np.nan)), folder)
    assert "y" in error_of(capsys, "fit", "rows", *STUMPS)


def test_one_class(folder, capsys):
    write(rows().assign(y="yes"), folder)
    assert "at least two classes" in error_of(capsys, "fit", "rows", *STUMPS)


def test_an_empty_file_among_them(folder, capsys):
    assert run("fit", "rows", *STUMPS) == 0
    wanted = Predictor.load("m.laconic").names()
    for name in ("0", "1a", "9"):
        empty = folder / f"{name}.parquet"
        frame = pd.read_parquet(empty) if empty.exists() else rows()[:0]
        frame.to_parquet(folder / "1b.parquet") if len(frame) else None
        rows()[:0].to_parquet(empty)
    assert run("fit", "rows", *STUMPS) == 0
    assert sorted(Predictor.load("m.laconic").names()) == sorted(wanted)
    for file in folder.iterdir():
        rows()[:0].to_parquet(file)
    capsys.readouterr()
    assert "rows has no rows" in error_of(capsys, "fit", "rows", *STUMPS)


@pytest.mark.parametrize("damage", ["end", "middle"])
def test_damaged_files_are_named(damage, folder, capsys):
    file = folder / "1.parquet"
    rows()[:300].to_parquet(file, compression="gzip")
    held = bytearray(file.read_bytes())
    if damage == "end":
        held = held[:-100]
    else:
        held[100:2000] = bytes(1900)
    file.write_bytes(held)
    assert "1.parquet" in error_of(capsys, "fit", "rows", *STUMPS)


def test_pools_that_take_no_text_or_gaps_say_what_does(folder, capsys):
    told = error_of(capsys, "fit", "rows", *FIT, "--pool", "columns", "--ignore", "b")
    assert "column 'town' holds text, which --pool columns cannot use" in told
    assert "use --pool stumps" in told
    told = error_of(capsys, "fit", "rows", *FIT, "--pool", "columns", "--ignore", "town")
    assert "column 'b' has a missing value in row" in told
    assert "--pool stumps and --pool rules accept missing values" in told
    frame = rows()
    frame["b"] = frame.b.fillna(0.0)
    frame.loc[N - 1, "b"] = np.nan
    write(frame.drop(columns="town"), folder)
    assert run("fit", "rows", *STUMPS) == 0


def test_gaps_beyond_the_first_rows_get_the_same_advice(folder, capsys, monkeypatch):
    monkeypatch.setattr(fit_files, "LOOKED", 100)
    frame = rows().drop(columns="town")
    frame["b"] = frame.b.fillna(0.0)
    frame.loc[N - 1, "b"] = np.nan
    write(frame, folder)
    told = error_of(capsys, "fit", "rows", *FIT, "--pool", "columns")
    assert 'Only the pools "stumps" and "rules" take missing values' in told


# -- while it runs ---------------------------------------------------------------------------------


def test_ctrl_c_while_files_are_read(folder, capsys, monkeypatch):
    monkeypatch.setattr("laconic.beyond.parquet.read", interrupted)
    assert run("fit", "rows", *STUMPS) == 130
    assert capsys.readouterr().err == "laconic: interrupted\n"
    assert not list(folder.parent.glob("*.laconic"))


def test_ctrl_c_while_rows_are_predicted(folder, capsys, monkeypatch):
    assert run("fit", "rows", *STUMPS) == 0
    capsys.readouterr()
    monkeypatch.setattr("laconic.cli.parquet_chunks._frame", interrupted)
    assert run("predict", "m.laconic", "rows", "--out", "p.csv") == 130
    assert capsys.readouterr().err == "laconic: interrupted\n"
    assert sorted(file.name for file in folder.parent.iterdir()) == ["m.laconic", "rows"]


def interrupted(*_):
    raise KeyboardInterrupt


def test_bars_tell_how_many_parts_have_answered(monkeypatch):
    from laconic.look import parts_bar

    shares = []

    class Bar:
        def __init__(self, verbose, what):
            self.what = what

        def __enter__(self):
            return lambda share: shares.append((self.what, share))

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(parts_bar, "share_bar", Bar)
    parts = Here([1, 2, 3, 4])
    with parts_bar.parts_progress(1):
        ask_as_files_do(parts)
    with parts_bar.parts_progress(0):
        ask_as_files_do(parts)
    ask_as_files_do(parts)
    assert shares == [("reading the rows", share) for share in (0.25, 0.5, 0.75, 1.0)]


def ask_as_files_do(parts):
    from laconic.beyond.read_again import ReadAgain

    answers = ReadAgain([lambda item=item: item for item in parts.items]).ask(_double)
    assert answers == [2, 4, 6, 8]


def _double(item, threads):
    return 2 * item
