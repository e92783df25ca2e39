"""Fits on Parquet files that cannot be done, and Ctrl-C."""

import numpy as np
import pandas as pd
import pytest
from fit_tables import FIT, STUMPS, N, rows, write
from shell import error_of, run

from laconic import Predictor
from laconic.cli import fit_files

pytest.importorskip("pyarrow")


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
    assert "rows/1.parquet lacks 'a', which rows/0.parquet has" in told
    assert "give all parts the same columns" in told
    frame[:300].assign(a="x").to_parquet(folder / "1.parquet")
    told = error_of(capsys, "fit", "rows", *STUMPS)
    assert "column 'a' holds float in rows/0.parquet and large_string in rows/1.parquet" in told


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


def test_a_pattern_without_quotes(folder, capsys):
    told = error_of(capsys, "fit", "rows/0.parquet", "rows/1.parquet", *STUMPS)
    assert "unrecognized arguments: rows/1.parquet; to give several files, quote" in told
