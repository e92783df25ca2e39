"""Predictions of folders and patterns of Parquet files."""

import numpy as np
import pandas as pd
import pytest
from long_tables import N, rows
from shell import error_of, run

from laconic import Predictor


@pytest.fixture
def model(kinds_model):
    return kinds_model


@pytest.fixture
def parts(tmp_path):
    pytest.importorskip("pyarrow")
    folder = tmp_path / "rows"
    folder.mkdir()
    frame = rows(6)
    for number, start in enumerate(range(0, N, 300)):
        frame[start : start + 300].to_parquet(folder / f"{number}.parquet")
    return folder, frame


@pytest.mark.parametrize("named", ["{}", "{}/*.parquet"])
def test_a_folder_and_a_pattern_are_one_table(named, parts, model, tmp_path):
    folder, frame = parts
    out = tmp_path / "p.parquet"
    assert run("predict", model, named.format(folder), "--out", out, "--keep", "id") == 0
    found = pd.read_parquet(out)
    assert found.id.tolist() == frame.id.tolist()
    assert found.prediction.tolist() == Predictor.load(model).predict(frame).tolist()


def test_messages_name_the_file_and_its_row(parts, model, tmp_path, capsys):
    folder, frame = parts
    wrong = frame[:300].assign(single=np.float32(1))
    wrong.loc[41, "single"] = np.inf
    wrong.to_parquet(folder / "1.parquet")
    told = error_of(capsys, "predict", model, folder)
    assert f"{folder / '1.parquet'}: column 'single' has an infinite value in row 42" in told
    frame.drop(columns="whole").to_parquet(folder / "2.parquet")
    told = error_of(capsys, "predict", model, folder, "--out", tmp_path / "p.csv")
    assert f"{folder / '2.parquet'} has no column 'whole'" in told
    assert not (tmp_path / "p.csv").exists()
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no .npy or .parquet files" in error_of(capsys, "predict", model, empty)
    np.save(empty / "a.npy", np.zeros((2, 2)))
    assert "has no named columns" in error_of(capsys, "predict", model, empty)
    (empty / "a.npy").rename(empty / "a.NPY")
    assert "has no named columns" in error_of(capsys, "predict", model, empty)
    assert "no file matches" in error_of(capsys, "predict", model, f"{empty}/*.parquet")


def test_no_file_of_a_folder_is_overwritten(parts, model, capsys):
    folder, _ = parts
    told = error_of(capsys, "predict", model, folder, "--out", folder / "1.parquet")
    assert f"would overwrite {folder / '1.parquet'}, a file of the table" in told


def test_files_without_rows_are_passed_over(parts, model, tmp_path, capsys):
    folder, frame = parts
    frame[:0].to_parquet(folder / "0a.parquet")
    assert run("predict", model, folder) == 0
    assert len(capsys.readouterr().out.splitlines()) == N + 1
    for file in sorted(folder.iterdir()):
        frame[:0].to_parquet(file)
    assert "has no rows" in error_of(capsys, "predict", model, folder)


def test_columns_to_keep_have_one_type(parts, model, tmp_path, capsys):
    folder, frame = parts
    frame[600:].assign(id=1.5).to_parquet(folder / "2.parquet")
    out = tmp_path / "p.parquet"
    told = error_of(capsys, "predict", model, folder, "--keep", "id", "--out", out)
    assert "a column to keep has different types" in told
    assert not out.exists()
