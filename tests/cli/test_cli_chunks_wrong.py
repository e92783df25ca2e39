"""What is wrong in a later chunk of a table is told as in the whole table."""

import numpy as np
import pandas as pd
import pytest
from long_tables import N, rows, write
from shell import error_of, run

from laconic import ShareBoostClassifier
from laconic.cli.numbers import found_sign


@pytest.fixture
def model(kinds_model):
    return kinds_model


@pytest.mark.parametrize("table", ["t.csv", "t.csv.gz", "t.parquet"])
def test_rows_are_numbered_as_in_the_whole_table(table, model, tmp_path, capsys, small_chunks):
    if table.endswith("parquet"):
        pytest.importorskip("pyarrow")
    frame, out = rows(7), tmp_path / "p.csv"
    frame.loc[712, "single"] = np.inf
    write(frame, tmp_path / table)
    out.write_text("precious")
    small_chunks(frame)
    told = error_of(capsys, "predict", model, tmp_path / table, "--out", out)
    assert "column 'single' has an infinite value in row 713" in told
    assert out.read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 2


def test_wrong_cells_of_later_chunks_are_named(model, tmp_path, capsys, small_chunks):
    frame = rows(8).astype({"number": object, "when": object})
    small_chunks(frame)
    frame.loc[800, "number"] = "12a"
    write(frame, tmp_path / "t.csv")
    told = error_of(capsys, "predict", model, tmp_path / "t.csv")
    assert "column 'number' must hold numbers; row 801 has '12a'" in told
    frame.loc[700, "when"] = "spring"
    frame.loc[800, "number"] = 1
    write(frame, tmp_path / "t.csv")
    told = error_of(capsys, "predict", model, tmp_path / "t.csv")
    assert "column 'when' must hold dates such as 2024-05-31; row 701 has 'spring'" in told
    told = error_of(capsys, "predict", model, tmp_path / "t.csv", "--keep", "twon")
    assert "no column 'twon'. Did you mean 'town'?" in told


def test_broken_lines_of_later_chunks_are_told(model, tmp_path, capsys, small_chunks):
    frame = rows(9).drop(columns="note")
    table = tmp_path / "t.csv"
    write(frame, table)
    small_chunks(frame)
    lines = table.read_text().splitlines()
    lines[600] += ",9,9"
    table.write_text("\n".join(lines))
    assert "line 601 has 10 cells, where 8 are expected" in error_of(
        capsys, "predict", model, table
    )
    table.write_bytes("\n".join(lines[:500]).encode() + b"\n\xff\xfe")
    assert "is not UTF-8" in error_of(capsys, "predict", model, table)
    header, *rest = lines[:500]
    table.write_text("\n".join([header, *(f"{line},1" for line in rest)]))
    told = error_of(capsys, "predict", model, table)
    assert "line 2 has 9 cells, where 8 are expected" in told


def test_a_damaged_parquet_file(model, tmp_path, capsys, small_chunks):
    pytest.importorskip("pyarrow")
    frame, table = rows(10), tmp_path / "t.parquet"
    frame.to_parquet(table, compression="gzip")
    held = bytearray(table.read_bytes())
    held[200:9000] = bytes(8800)
    table.write_bytes(held)
    small_chunks(frame)
    assert "t.parquet" in error_of(capsys, "predict", model, table)


# -- decimal signs ---------------------------------------------------------------------------------


@pytest.fixture
def of_numbers(tmp_path):
    """A model of two numbers, and a function that writes a long table with semicolons."""
    X = pd.DataFrame({"a": rows().single.astype(float), "b": rows().whole})
    fitted = ShareBoostClassifier(4, pool="stumps").fit(X, (X.a > 0.25) ^ (X.b > 3))
    model, table = tmp_path / "m.laconic", tmp_path / "t.csv"
    fitted.predictor_.save(model)

    def make(a, b):
        lines = [f"{x};{y}" for x, y in zip(a, b, strict=True)]
        table.write_text("\n".join(["a;b", *lines]))

    return model, table, make, X


@pytest.mark.parametrize("option", [(), ("--decimal", ",")])
def test_decimal_commas(option, of_numbers, tmp_path, small_chunks):
    model, table, make, X = of_numbers
    make([f"{x:.3f}".replace(".", ",") for x in X.a], X.b)
    whole, pieces = tmp_path / "whole.csv", tmp_path / "pieces.csv"
    assert run("predict", model, table, "--out", whole, *option) == 0
    seen = small_chunks(X)
    assert run("predict", model, table, "--out", pieces, *option) == 0
    assert len(seen) > 5
    assert pieces.read_bytes() == whole.read_bytes()
    assert pd.read_csv(pieces).prediction.nunique() == 2


def test_a_later_chunk_may_not_contradict_the_first(of_numbers, capsys, small_chunks):
    model, table, make, X = of_numbers
    small_chunks(X)
    points, commas = [f"{x:.4f}" for x in X.a], [f"{x:.4f}".replace(".", ",") for x in X.a]
    make(points[:500] + commas[500:], X.b)
    told = error_of(capsys, "predict", model, table)
    assert "column 'a' must hold numbers; row 501 has" in told
    assert "--decimal , reads commas" in told
    make(commas[:540] + points[540:], X.b)
    assert "in row 541, but " in error_of(capsys, "predict", model, table)
    make(["1.250", "980"] * (N // 2), X.b)
    told = error_of(capsys, "predict", model, table)
    assert "1.250 in column 'a' may be thousands or have decimals" in told
    assert run("predict", model, table, "--decimal", ".") == 0


def test_numbers_without_signs_decide_nothing():
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    assert found_sign(frame, "t", [], lambda names: frame[names].astype(str)) is None
