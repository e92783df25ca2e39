"""Fits on Parquet files whose rows stay on the disk."""

import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from fit_tables import FIT, STUMPS, N, rows, write
from shell import run

from laconic import Predictor, ShareBoostClassifier
from laconic.cli import fit_files
from laconic.numeric.parts import Here

pytest.importorskip("pyarrow")


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


def test_a_column_may_be_text_in_one_file_and_categories_in_another(folder):
    assert run("fit", "rows", *STUMPS) == 0
    expected = Predictor.load("m.laconic")
    for name in ("0", "1"):  # the first file, and a later one
        write(rows(), folder)
        frame = pd.read_parquet(folder / f"{name}.parquet")
        frame.astype({"town": "category"}).to_parquet(folder / f"{name}.parquet")
        assert run("fit", "rows", *STUMPS) == 0
        found = Predictor.load("m.laconic")
        assert np.array_equal(found.scores(rows()), expected.scores(rows()))


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
