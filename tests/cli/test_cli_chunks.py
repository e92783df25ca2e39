"""Predictions of tables in chunks of rows are those of the same tables in one memory."""

import gzip
import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shell import error_of, run

from laconic import Predictor, ShareBoostClassifier
from laconic.cli import chunks, predict
from laconic.cli.numbers import found_sign

N = 900
ROWS = 90  # of a chunk


def rows(seed=0):
    """Columns of every kind, with gaps."""
    rng = np.random.default_rng(seed)
    number = rng.normal(size=N)
    frame = pd.DataFrame(
        {
            "id": [f"{i:05d}" for i in range(N)],
            "number": np.where(rng.uniform(size=N) < 0.1, np.nan, number.round(4)),
            "single": rng.normal(size=N).astype(np.float32),
            "whole": rng.integers(0, 9, N),
            "truth": rng.uniform(size=N) < 0.5,
            "town": rng.choice(["Oslo", "Rome", "NA", "Ulm"], N),
            "code": rng.integers(0, 4, N),
            "when": pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 500, N), "D"),
            "note": rng.choice(["a, b", 'a "quote"', "two\nlines", "plain", ""], N),
        }
    )
    frame.loc[::7, "town"] = None
    frame.loc[N - 3, "note"] = "NA"
    return frame


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model that asks about every kind of column."""
    frame = rows().drop(columns=["id", "note"]).astype({"code": "category"})
    kinds = [
        frame.number.fillna(1) > 0, frame.single > 0, frame.whole > 4, frame.truth,
        frame.town == "Rome", frame.town.isna(), frame.code == 2, frame.when > "2023-09-01",
    ]  # fmt: skip
    y = np.where(sum(kind.astype(int) for kind in kinds) > 3, "yes", "no")
    fitted = ShareBoostClassifier(12, pool="stumps").fit(frame, y)
    assert len(fitted.predictor_.map.features()) == frame.shape[1]
    file = tmp_path_factory.mktemp("model") / "m.laconic"
    fitted.predictor_.save(file)
    return file


@pytest.fixture
def small_chunks(monkeypatch):
    """A function that makes chunks small, and then counts them."""
    seen = []

    def make(frame, rows_of_a_chunk=ROWS):
        monkeypatch.setattr(chunks, "CELLS", rows_of_a_chunk * frame.shape[1])
        monkeypatch.setattr("laconic.cli.parquet_chunks.LEAST", 1)
        answers = predict._answers
        monkeypatch.setattr(
            predict,
            "_answers",
            lambda model, chunk, *more: (
                seen.append(len(chunk.frame)),
                answers(model, chunk, *more),
            )[1],
        )
        return seen

    return make


def write(frame, file):
    if file.suffix == ".parquet":
        frame.to_parquet(file)
    else:
        frame.to_csv(file, index=False, sep="\t" if ".tsv" in file.name else ",")


KEEP = ("--keep", "id", "--keep", "town", "--keep", "note")


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


# -- several files ---------------------------------------------------------------------------------


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


# -- what goes wrong -------------------------------------------------------------------------------


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
