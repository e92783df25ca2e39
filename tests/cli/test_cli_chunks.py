"""Predictions of tables in chunks of rows are those of the same tables in one memory."""

import gzip
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from long_tables import ROWS, N, rows, write
from shell import error_of, run

from laconic import ShareBoostClassifier

KEEP = ("--keep", "id", "--keep", "town", "--keep", "note")


@pytest.fixture
def model(kinds_model):
    return kinds_model


# -- the same answers ------------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["p.csv", "p.tsv", "p.csv.gz", "p.parquet", "p.xlsx"])
@pytest.mark.parametrize("table", ["t.csv", "t.csv.gz", "t.tsv", "t.parquet"])
@pytest.mark.parametrize("proba", [(), ("--proba",)])
def test_chunks_give_the_answers_of_one_memory(table, out, proba, model, tmp_path, small_chunks):
    for kind, needed in ((".parquet", "pyarrow"), (".xlsx", "openpyxl")):
        if kind in (table[-8:], out[-8:], out[-5:]):
            pytest.importorskip(needed)
    table, whole, pieces = tmp_path / table, tmp_path / f"whole_{out}", tmp_path / f"pieces_{out}"
    frame = rows(1)
    write(frame, table)
    options = (*KEEP, *proba)
    assert run("predict", model, table, "--out", whole, *options) == 0
    seen = small_chunks(frame)
    assert run("predict", model, table, "--out", pieces, *options) == 0
    assert max(seen) < 3 * ROWS
    assert sum(seen) == N
    if out.endswith((".csv", ".tsv")):
        assert pieces.read_bytes() == whole.read_bytes()
        return
    read = {".parquet": pd.read_parquet, ".xlsx": pd.read_excel, ".gz": pd.read_csv}[whole.suffix]
    pd.testing.assert_frame_equal(read(pieces), read(whole))


def test_standard_output_comes_in_chunks_too(model, tmp_path, capsys, small_chunks):
    frame = rows(2)
    write(frame, tmp_path / "t.csv")
    assert run("predict", model, tmp_path / "t.csv", *KEEP, "--proba") == 0
    wanted = capsys.readouterr().out
    small_chunks(frame)
    assert run("predict", model, tmp_path / "t.csv", *KEEP, "--proba") == 0
    assert capsys.readouterr().out == wanted
    assert wanted.count("prediction") == 1


def test_dates_of_another_order(model, tmp_path, small_chunks):
    frame, out = rows(3), [tmp_path / "a.csv", tmp_path / "b.csv"]
    frame["when"] = frame.when.dt.strftime("%d.%m.%Y")
    write(frame, tmp_path / "t.csv")
    options = ("--dates", "dmy", "--keep", "when")
    assert run("predict", model, tmp_path / "t.csv", "--out", out[0], *options) == 0
    small_chunks(frame)
    assert run("predict", model, tmp_path / "t.csv", "--out", out[1], *options) == 0
    assert out[0].read_bytes() == out[1].read_bytes()


@pytest.mark.parametrize("gap", [None, 5, N - 5])
def test_whole_numbers_are_spelled_the_same_in_every_chunk(gap, model, tmp_path, small_chunks):
    """As pandas reads whole numbers with a gap as floats, wherever the gap is."""
    pytest.importorskip("pyarrow")
    frame, out = rows(4), [tmp_path / "a.csv", tmp_path / "b.csv"]
    frame["n"] = pd.array(range(N), dtype="Int64")
    if gap is not None:
        frame.loc[gap, "n"] = pd.NA
    plain = importlib.import_module("pyarrow").Table.from_pandas(frame)
    write_plain = importlib.import_module("pyarrow.parquet").write_table
    write_plain(plain.replace_schema_metadata(None), tmp_path / "t.parquet")
    options = ("--keep", "n", "--keep", "code")
    assert run("predict", model, tmp_path / "t.parquet", "--out", out[0], *options) == 0
    small_chunks(frame)
    assert run("predict", model, tmp_path / "t.parquet", "--out", out[1], *options) == 0
    assert out[0].read_bytes() == out[1].read_bytes()
    assert ("7.0," in out[0].read_text()) == (gap is not None)


@pytest.mark.parametrize("zone", [None, "Europe/Oslo"])
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("fine", [None, "12:00", "12:00:00.5", "12:00:00.000005"])
def test_times_are_spelled_the_same_in_every_chunk(fine, unit, zone, model, tmp_path, small_chunks):
    pytest.importorskip("pyarrow")
    frame, out = rows(12), [tmp_path / "a.csv", tmp_path / "b.csv"]
    times = frame.when.astype(str)
    times[N - 5] = f"2024-01-01 {fine or ''}".strip()
    times[3] = None
    moments = pd.Series(pd.to_datetime(times, format="ISO8601")).dt.as_unit(unit)
    frame["at"], frame["long"] = moments.dt.tz_localize(zone), moments - moments.min()
    write(frame, tmp_path / "t.parquet")
    options = ("--keep", "at", "--keep", "when", "--keep", "long")
    assert run("predict", model, tmp_path / "t.parquet", "--out", out[0], *options) == 0
    small_chunks(frame)
    assert run("predict", model, tmp_path / "t.parquet", "--out", out[1], *options) == 0
    assert out[0].read_bytes() == out[1].read_bytes()


def test_columns_without_a_value_in_the_first_chunk(model, tmp_path, small_chunks):
    pytest.importorskip("pyarrow")
    frame = rows(5)
    frame["late"] = [None] * (N - 10) + ["here"] * 10
    small_chunks(frame)
    for table in ("t.csv", "t.parquet"):
        write(frame, tmp_path / table)
        out = tmp_path / "p.parquet"
        assert run("predict", model, tmp_path / table, "--out", out, "--keep", "late") == 0
        assert pd.read_parquet(out).late.dropna().tolist() == ["here"] * 10


def test_a_model_without_names_counts_the_columns(tmp_path, capsys, small_chunks):
    X = rows()[["single", "whole"]]
    fitted = ShareBoostClassifier(3, pool="stumps").fit(X.to_numpy(), X.whole > 4)
    model, table = tmp_path / "m.laconic", tmp_path / "t.csv"
    fitted.predictor_.save(model)
    write(X, table)
    small_chunks(X)
    assert run("predict", model, table) == 0
    said = capsys.readouterr().out.split()[1:]
    assert said == [str(label) for label in fitted.predict(X.to_numpy())]
    write(rows(), table)
    assert "its 2 columns in order, not 9" in error_of(capsys, "predict", model, table)


# -- memory ----------------------------------------------------------------------------------------

PROGRAM = """
import sys
from laconic.cli import chunks, predict
from laconic.cli.main import main
chunks.CELLS = 40_000
answers, peaks = predict._answers, []
def anon(model, chunk, *more):
    told = dict(line.split(":", 1) for line in open("/proc/self/status"))
    peaks.append(int(told["RssAnon"].split()[0]))
    return answers(model, chunk, *more)
predict._answers = anon
assert main(sys.argv[1:]) == 0
third = len(peaks) // 3
print(len(peaks), max(peaks[third:2 * third]), max(peaks[2 * third:]))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_memory_does_not_grow_with_the_rows(model, tmp_path):
    """The last third of the chunks takes no more memory than the third before it."""
    pytest.importorskip("pyarrow")
    table, out = tmp_path / "t.parquet", tmp_path / "p.parquet"
    pd.concat([rows()] * 200, ignore_index=True).to_parquet(table, row_group_size=1 << 20)
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM, "predict", model, table, "--out", out],
        capture_output=True, text=True, check=True, env=os.environ,
    )  # fmt: skip
    n_chunks, before, last = map(int, told.stdout.split())
    assert n_chunks > 20
    assert last - before < 8 << 10  # kilobytes


def test_a_packed_table_of_any_length_is_counted(tmp_path, model, small_chunks):
    frame = rows(11)
    small_chunks(frame, 10)
    with gzip.open(tmp_path / "t.csv.gz", "wt") as stream:
        frame.to_csv(stream, index=False)
    assert run("predict", model, tmp_path / "t.csv.gz", "--out", tmp_path / "p.csv") == 0
    assert len(pd.read_csv(tmp_path / "p.csv")) == N
