"""Tables as people have them: semicolons, decimal commas, dates; and files that are no tables."""

import bz2
import csv
import gzip
import importlib
import io
import lzma
import re
import zipfile

import numpy as np
import pandas as pd
import pytest

from laconic import Predictor, ShareBoostClassifier
from laconic.cli.files import check_table_name
from laconic.cli.main import main
from laconic.cli.reading import read_table
from laconic.cli.text_tables import separator
from laconic.data.errors import UserError

M = 120


def rows(seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "when": pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 500, M), "D"),
            "price": np.round(rng.uniform(1, 50, M), 2),
            "n": rng.integers(0, 9, M),
        }
    )
    frame["y"] = np.where(frame.when > pd.Timestamp("2023-09-01"), "late", "early")
    return frame


@pytest.fixture
def saved(tmp_path):
    rows().to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "m.laconic"
    fit = ["fit", tmp_path / "t.csv", "--target", "y", "--out", out, "--pool", "stumps"]
    assert main([*map(str, fit), "--max-atoms", "1"]) == 0
    return out


def said(capsys, *argv):
    capsys.readouterr()
    assert main([*map(str, argv)]) == 2
    return capsys.readouterr().err


# -- dates -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", ["stumps", "columns"])
def test_dates_of_a_table_are_numbers_in_every_command(pool, tmp_path, capsys):
    table, model = tmp_path / "t.csv", tmp_path / "m.laconic"
    rows().drop(columns=["price", "n"]).to_csv(table, index=False)
    fit = ["fit", table, "--target", "y", "--out", model, "--pool", pool]
    assert main([*map(str, fit), "--max-atoms", "1"]) == 0
    loaded = Predictor.load(model)
    first = rows().when.min().strftime("%Y-%m-%d")
    assert (loaded.units, loaded.categories) == ({0: f"days since {first}"}, {})
    if pool == "stumps":
        assert re.search("when <= 2023-0[89]-[03]", capsys.readouterr().out)
    for seed, dates in ((3, "%Y-%m-%d"), (4, "%Y-%m-%dT00:00:00")):
        new = rows(seed)
        new.assign(when=new.when.dt.strftime(dates)).to_csv(table, index=False)
        capsys.readouterr()
        assert main(["predict", str(model), str(table)]) == 0
        answers = capsys.readouterr().out.split()[1:]
        assert answers == loaded.predict(new).tolist()
        assert np.mean(answers == new.y) > 0.95
        assert main(["holes", str(model), str(table), "--target", "y"]) == 0


def test_dates_that_are_none_are_named(saved, tmp_path, capsys):
    new = rows().astype({"when": str})
    new.loc[2, "when"] = "spring"
    new.to_csv(tmp_path / "t.csv", index=False)
    for command in (["predict", saved, tmp_path / "t.csv"], ["holes", saved, tmp_path / "t.csv"]):
        more = ["--target", "y"] if command[0] == "holes" else []
        told = said(capsys, *command, *more)
        assert "column 'when' must hold dates such as 2024-05-31; row 3 has 'spring'" in told


@pytest.mark.parametrize("form", ["%Y%m%d", "%d.%m.%Y", "days"])
def test_dates_of_another_form_are_refused(form, saved, tmp_path, capsys):
    new = rows()
    days = new.when.dt.strftime(form)
    if form == "days":
        days = (new.when - pd.Timestamp("1970-01-01")).dt.days
    new.assign(when=days).to_csv(tmp_path / "t.csv", index=False)
    for command in ("predict", "holes"):
        more = ["--target", "y"] if command == "holes" else []
        told = said(capsys, command, saved, tmp_path / "t.csv", *more)
        assert f"column 'when' must hold dates such as 2024-05-31; row 1 has '{days[0]}'" in told


@pytest.mark.parametrize("pool", ["stumps", "columns"])
@pytest.mark.parametrize(
    ("form", "order"),
    [("%d.%m.%Y", "dmy"), ("%m/%d/%Y", "mdy"), ("%d-%m-%Y 00:00", "dmy")],
)
def test_dates_of_another_order_are_read_where_the_option_says_so(
    form, order, pool, tmp_path, capsys
):
    iso, other, model = (tmp_path / name for name in ("iso.csv", "other.csv", "m.laconic"))
    plain = rows().drop(columns=["price", "n"])
    plain.to_csv(iso, index=False)
    plain.assign(when=plain.when.dt.strftime(form)).to_csv(other, index=False)
    fit = ["--target", "y", "--out", model, "--pool", pool, "--max-atoms", "1"]
    hint = "; --dates dmy or --dates mdy reads such dates"
    if pool == "stumps":
        assert main([*map(str, ["fit", other, *fit])]) == 0
        told = capsys.readouterr().err
        assert "column 'when' looks like dates, but " in told
        assert hint in told
    else:
        assert hint in said(capsys, "fit", other, *fit)
    assert main([*map(str, ["fit", iso, *fit])]) == 0
    wanted = Predictor.load(model)
    assert main([*map(str, ["fit", other, *fit, "--dates", order])]) == 0
    found = Predictor.load(model)
    assert found.units == wanted.units
    assert np.array_equal(found.scores(plain), wanted.scores(plain))
    answers = []
    for table in (iso, other):
        capsys.readouterr()
        command = ["predict", model, table, "--dates", order, "--keep", "y", "--keep", "when"]
        assert main([*map(str, command)]) == 0
        seen = pd.read_csv(io.StringIO(capsys.readouterr().out))
        assert seen.when.tolist() == pd.read_csv(table).when.tolist()  # kept as it is spelled
        answers.append(seen.prediction.tolist())
        holes = ["holes", model, table, "--target", "y", "--dates", order]
        assert main([*map(str, holes)]) == 0
    assert answers[0] == answers[1]
    told = said(capsys, "predict", model, other)
    assert "column 'when' must hold dates such as 2024-05-31; row 1 has" in told
    assert hint in told


def test_the_order_of_dates_is_not_guessed_and_wrong_cells_are_named(tmp_path, capsys):
    table, model = tmp_path / "t.csv", tmp_path / "m.laconic"
    when = rows().when.dt.strftime("%d/%m/%Y")
    fit = ["fit", table, "--target", "y", "--out", model, "--dates", "dmy"]
    for cell in ("31/02/2023", "12/31/2023", "spring", "1/2/23"):
        when[6] = cell
        rows().assign(when=when).to_csv(table, index=False)
        told = said(capsys, *fit)
        assert f"column 'when' has {cell!r} in row 7, which is not a date by --dates dmy" in told
    # Text with a few dates in it, labels and codes are not touched.
    notes = ["11.10.2023" if i % 3 == 0 else f"n{i % 3}" for i in range(M)]
    frame = rows().assign(note=notes, code="11.10.2023", y=["01.02.2023", "02.01.2023"] * (M // 2))
    frame.to_csv(table, index=False)
    read = read_table(str(table), ["code"], "y", None, "dmy")
    assert read[["note", "code", "y"]].equals(frame[["note", "code", "y"]].astype(read.y.dtype))


def test_a_stray_cell_in_new_rows_is_named_by_every_command(tmp_path, capsys):
    table, model = tmp_path / "t.csv", tmp_path / "m.laconic"
    rows().to_csv(table, index=False)
    assert main(["fit", str(table), "--target", "y", "--out", str(model)]) == 0
    rows().astype({"n": str}).replace({"n": {"3": "n.v."}}).to_csv(table, index=False)
    first = 1 + int(np.argmax(rows().n == 3))
    for more in (["predict", model, table], ["holes", model, table, "--target", "y"]):
        told = said(capsys, *more)
        assert f"column 'n' must hold numbers; row {first} has 'n.v.'" in told


def test_missing_dates_need_stumps(tmp_path, capsys):
    frame = rows()
    frame.loc[4, "when"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ["fit", tmp_path / "t.csv", "--target", "y", "--out", tmp_path / "m"]
    assert "column 'when' has a missing value in row 5" in said(capsys, *fit)
    assert main([*map(str, fit), "--pool", "stumps"]) == 0


# -- semicolons and commas -------------------------------------------------------------------------


def test_semicolons_and_decimal_commas_give_the_same_table(tmp_path):
    plain, german, packed = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "c.csv.gz"
    frame = rows().assign(large=rows().price * 1000, gap=[None, *rows().price[1:]])
    frame.to_csv(plain, index=False)
    frame.to_csv(german, index=False, sep=";", decimal=",")
    packed.write_bytes(gzip.compress(german.read_bytes()))
    wanted = read_table(str(plain))
    for file in (german, packed):
        pd.testing.assert_frame_equal(read_table(str(file)), wanted)


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        (["1,5", "2", "NA"], [1.5, 2.0, np.nan]),
        (["1.234,50", "2.000", "7"], [1234.5, 2000.0, 7.0]),
        (["0,125", "1,250", "3"], [0.125, 1.25, 3.0]),
        (["1,250", "2,125", "3"], ["1,250", "2,125", "3"]),  # thousands, or not: it is not clear
        (["1,5", "2", "x"], ["1,5", "2", "x"]),
    ],
)
def test_decimal_commas_are_read_where_they_are_clear(cells, wanted, tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("a;b\n" + "".join(f"{cell};1\n" for cell in cells))
    found = read_table(str(file))["a"]
    pd.testing.assert_series_equal(found, pd.Series(wanted, name="a"), check_dtype=False)
    spelled = read_table(str(file), text=["a"])["a"]
    assert spelled.dropna().tolist() == list(cells)


def test_a_stray_cell_among_decimal_commas_is_named_and_not_the_others(tmp_path, capsys):
    good, bad, model = tmp_path / "good.csv", tmp_path / "bad.csv", tmp_path / "m.laconic"
    frame = rows()[["price", "y"]]
    frame.to_csv(good, index=False, sep=";", decimal=",")
    lines = good.read_text().splitlines()
    lines[18] = "n.v.;early"
    bad.write_text("\n".join(lines))
    fit = ["--target", "y", "--out", model, "--max-atoms", "1"]
    assert main([*map(str, ["fit", good, *fit])]) == 0
    for more in ([], ["--decimal", ","]):
        told = said(capsys, "fit", bad, *fit, *more)
        assert "column 'price' holds text ('n.v.' in row 18), which --pool columns" in told
        assert "correct such cells, use --pool stumps" in told
        for command in (["predict", model, bad], ["holes", model, bad, "--target", "y"]):
            told = said(capsys, *command, *more)
            assert "column 'price' must hold numbers; row 18 has 'n.v.'" in told
        other = ["--pool", "stumps", "--out", tmp_path / "other", *more]
        assert main([*map(str, ["fit", bad, *fit, *other])]) == 0
        told = capsys.readouterr().err
        assert "'price' looks like numbers, but 'n.v.' in row 18 is text, so the column" in told
        assert "correct or empty such cells to read the column as numbers" in told


def test_quoted_decimal_commas_get_the_option_named(tmp_path, capsys):
    good, bad, model = tmp_path / "good.csv", tmp_path / "bad.csv", tmp_path / "m.laconic"
    rows()[["price", "y"]].to_csv(good, index=False)
    rows()[["price", "y"]].to_csv(bad, index=False, decimal=",")
    fit = ["--target", "y", "--out", model, "--max-atoms", "1"]
    assert main([*map(str, ["fit", good, *fit])]) == 0
    first = f"{rows().price[0]:.2f}".replace(".", ",")
    hint = "--decimal , reads commas as decimal signs"
    assert hint in said(capsys, "fit", bad, *fit)
    told = said(capsys, "predict", model, bad)
    assert f"column 'price' must hold numbers; row 1 has {first!r}; {hint}" in told
    assert main([*map(str, ["fit", bad, *fit, "--pool", "stumps"])]) == 0
    assert hint in capsys.readouterr().err
    assert main([*map(str, ["fit", bad, *fit, "--decimal", ","])]) == 0
    assert hint not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cells", "other", "wanted"),
    [
        (["1.250", "12.400", "NA", "980"], "1,5", [1250.0, 12400.0, np.nan, 980.0]),
        (["1.250", "12.400", "NA", "980"], "1.5", [1.25, 12.4, np.nan, 980.0]),
        (["0.250", "12.400", "NA", "980"], "1,5", [0.25, 12.4, np.nan, 980.0]),
        (["1.25", "12.400", "NA", "980"], "1,5", [1.25, 12.4, np.nan, 980.0]),
    ],
)
def test_points_are_for_thousands_beside_decimal_commas(cells, other, wanted, tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("a;b\n" + "".join(f"{cell};{other}\n" for cell in cells))
    found = read_table(str(file))
    assert found["b"].tolist() == [1.5] * 4
    pd.testing.assert_series_equal(found["a"], pd.Series(wanted, name="a"))


def flips(tmp_path):
    """A table with clear decimal commas, new rows without, and where to save a model."""
    table, new, model = tmp_path / "t.csv", tmp_path / "new.csv", tmp_path / "m.laconic"
    cells = [f"{k}.{100 + 7 * k % 900};{k},5;{'dear' if k > 4 else 'cheap'}" for k in range(1, 9)]
    table.write_text("price;w;y\n" + "\n".join(cells * 5) + "\n")
    new.write_text("price;w;y\n" + "\n".join(["2.250;1;cheap", "7.250;1;dear"] * 20) + "\n")
    return table, new, model


def test_points_for_thousands_are_told_and_the_option_decides(tmp_path, capsys):
    table, new, model = flips(tmp_path)
    fit = ["fit", str(table), "--target", "y", "--out", str(model), "--pool", "stumps"]
    read, more = f"{table}: 1.107 in column 'price' is read as", "Add --decimal ,"
    assert main([*fit, "--max-atoms", "1"]) == 0
    told = capsys.readouterr().err
    assert f"{read} 1107, because the table has decimal commas. {more}" in told
    assert main([*fit, "--max-atoms", "1", "--decimal", ","]) == 0
    assert "--decimal" not in capsys.readouterr().err
    predict = ["predict", str(model), str(new)]
    assert main(predict) == 0
    answers = capsys.readouterr()
    assert "2.250 in column 'price' is read as 2.25, but its point may separate" in answers.err
    assert answers.out.split()[1:3] == ["cheap", "cheap"]
    assert main([*predict, "--decimal", ","]) == 0
    answers = capsys.readouterr()
    assert (answers.err, answers.out.split()[1:3]) == ("", ["cheap", "dear"])
    assert main([*predict, "--decimal", "."]) == 0
    answers = capsys.readouterr()
    assert (answers.err, answers.out.split()[1:3]) == ("", ["cheap", "cheap"])
    holes = ["holes", str(model), str(new), "--target", "y"]
    assert main(holes) == 0
    seen = capsys.readouterr()
    assert "may separate thousands" in seen.err
    assert "50 % of 40 rows" in seen.out
    assert main([*holes, "--decimal", ","]) == 0
    seen = capsys.readouterr()
    assert "--decimal" not in seen.err
    assert "0 % of 40 rows" in seen.out
    with pytest.raises(SystemExit):
        main([*holes, "--decimal", "x"])


@pytest.mark.parametrize(
    ("lines", "decimal", "wanted"),
    [
        (["1,250;a", "3;b"], ",", [1.25, 3.0]),
        (["1,250;a", "3;b"], ".", ["1,250", "3"]),
        (["1.234.567;a", "980;b"], ",", [1234567.0, 980.0]),
        (["1.234.567;0,5", "980;1"], None, [1234567.0, 980.0]),
        (["1.250;a", "2.500;b"], ",", [1250.0, 2500.0]),
        (["1.250;a", "2.500;b"], ".", [1.25, 2.5]),
        (["1.250;0.5", "2.500;2.25"], None, [1.25, 2.5]),
        (["1.250;1.5", "2.500;2.25"], None, [1.25, 2.5]),
        (["1.250;a", "1234;b"], ",", [1250.0, 1234.0]),
    ],
)
def test_the_decimal_sign_may_be_told(lines, decimal, wanted, tmp_path, recwarn):
    file = tmp_path / "t.csv"
    file.write_text("a;b\n" + "\n".join(lines) + "\n")
    assert read_table(str(file), decimal=decimal)["a"].tolist() == wanted
    assert len(recwarn) == 0


def test_quoted_cells_may_have_decimal_commas_too(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text('a,b\n"1,5",x\n"2,25",y\n')
    assert read_table(str(file), decimal=",")["a"].tolist() == [1.5, 2.25]
    assert read_table(str(file))["a"].tolist() == ["1,5", "2,25"]


def test_points_that_cannot_be_for_thousands_are_refused_where_commas_are_decimal(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("a;b\n1.250;1\n2.25;2\n")
    with pytest.raises(UserError, match=r"column 'a' has '2.25' in row 2, but beside"):
        read_table(str(file), decimal=",")


def test_the_header_says_what_separates(tmp_path):
    assert separator("a;b;c") == ";"
    assert separator("a,b;c,d") == ","
    assert separator('"a;b;c",d') == ","
    assert separator("a;b", "t.tsv") == "\t"
    assert separator("a,b", "t.tab") == "\t"
    file = tmp_path / "t.csv"
    file.write_text('a;"b;c"\n1;2\n')
    assert list(read_table(str(file)).columns) == ["a", "b;c"]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("Price, EUR;Weight, kg;y\n1,5;2,5;a\n2,5;3,5;b\n", ["Price, EUR", "Weight, kg", "y"]),
        ("Price, EUR;Weight, kg\n1,5;2,5\n2,5;3,5\n", ["Price, EUR", "Weight, kg"]),
        ("a,b;c\n1,2\n3,4\n", ["a", "b;c"]),
        ("a;b\nx;1\n\ny, z;2\n", ["a", "b"]),
        ("sep=;\na;b\n1,5;2\n", ["a", "b"]),
        ('"sep=;"\r\na;b\r\n1,5;2\r\n', ["a", "b"]),
        ("\ufeffsep=,\na;c,b\n1,2\n", ["a;c", "b"]),
        ("sep\n1\n", ["sep"]),
    ],
)
def test_the_first_lines_say_what_separates(text, columns, tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(text)
    found = read_table(str(file))
    assert list(found.columns) == columns
    assert len(found) == text.replace("\n\n", "\n").count("\n") - 1 - ("sep=" in text)


def test_a_table_with_semicolons_through_every_command(saved, tmp_path, capsys):
    file = tmp_path / "t.csv"
    rows(5).to_csv(file, index=False, sep=";", decimal=",")
    capsys.readouterr()
    assert main(["predict", str(saved), str(file), "--keep", "price"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "price,prediction"
    assert len(out) == M + 1


# -- files that are no tables ----------------------------------------------------------------------


def test_excel_files_are_told(saved, tmp_path, capsys):
    for name in ("t.xlsx", "t.csv"):
        with zipfile.ZipFile(tmp_path / name, "w") as file:
            file.writestr("[Content_Types].xml", "<Types/>")
            file.writestr("xl/workbook.xml", "<workbook/>")
    (tmp_path / "old.csv").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    for name in ("t.xlsx", "t.csv", "old.csv"):
        told = said(capsys, "predict", saved, tmp_path / name)
        assert "this looks like an Excel file. Save the sheet as CSV UTF-8" in told
    with zipfile.ZipFile(tmp_path / "t.ods", "w") as file:
        file.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
    told = said(capsys, "predict", saved, tmp_path / "t.ods")
    assert "this looks like an OpenDocument file. Save the sheet as CSV UTF-8" in told


def test_files_of_another_kind_than_their_name_are_told(saved, tmp_path, capsys):
    table = b"a,b\n1,2\n"
    kinds = {
        "parquet": b"PAR1" + bytes(50),
        "gz": gzip.compress(table),
        "bz2": bz2.compress(table),
        "xz": lzma.compress(table),
    }
    for kind, held in kinds.items():
        (tmp_path / "t.csv").write_bytes(held)
        told = said(capsys, "predict", saved, tmp_path / "t.csv")
        assert "t.csv: this looks like a " in told
        assert f"Let its name end in .{kind}." in told


NOT_PARQUET = {
    "text": (
        "a,b\n1,2\nZürich,3\n".encode(),
        "looks like text, and not like Parquet. Let its name",
    ),
    "gzip": (gzip.compress(b"a,b\n1,2\n"), "this looks like a gzip file. Let its name end in .gz"),
    "old Excel": (
        b"\xd0\xcf\x11\xe0" + bytes(600),
        "this looks like an Excel file. Save the sheet",
    ),
    "other": (b"\x01\x02\xff\x00" * 9, "this is not a Parquet file"),
    "cut": (b"PAR1" + bytes(50), "this Parquet file is damaged, or its end is missing"),
    "empty": (b"", "t.parquet is empty"),
}


@pytest.mark.parametrize(("held", "wanted"), NOT_PARQUET.values(), ids=NOT_PARQUET)
def test_files_that_are_no_parquet_are_told_in_one_line(held, wanted, saved, tmp_path, capsys):
    pytest.importorskip("pyarrow")
    (tmp_path / "t.parquet").write_bytes(held)
    told = said(capsys, "predict", saved, tmp_path / "t.parquet")
    assert wanted in told
    assert "…" not in told


@pytest.mark.parametrize("held", [b"", b"\n \n", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", ["t.csv", "t.tsv.gz"])
def test_empty_files_are_told(name, held, saved, tmp_path, capsys):
    (tmp_path / name).write_bytes(gzip.compress(held) if "gz" in name else held)
    assert f"{name} is empty.\n" in said(capsys, "predict", saved, tmp_path / name)


@pytest.mark.parametrize("name", ["t.csv.gz", "t.csv.zip", "t.csv.xz"])
def test_damaged_packages_are_told(name, saved, tmp_path, capsys):
    (tmp_path / name).write_bytes(gzip.compress(b"a,b\n1,2\n")[:-9] if "gz" in name else b"a,b")
    told = said(capsys, "predict", saved, tmp_path / name)
    assert name in told
    assert "cannot be" in told


@pytest.mark.parametrize(
    ("code", "sign"),
    [
        ("latin1", "byte 0xfc"),
        ("utf-16", "UTF-16"),
        ("utf-16-le", "-f utf-16le"),
        ("utf-16-be", "-f utf-16be"),
    ],
)
def test_other_encodings_are_told(code, sign, saved, tmp_path, capsys):
    file = tmp_path / "t.csv"
    file.write_bytes("town,n\nZürich,1\n".encode(code))
    told = said(capsys, "predict", saved, file)
    assert "this is not UTF-8" in told
    assert sign in told
    assert "iconv" in told
    # With the mark that Excel puts at its beginning, UTF-8 is read.
    file.write_bytes("town,n\nZürich,1\n".encode("utf-8-sig"))
    assert read_table(str(file)).columns.tolist() == ["town", "n"]


# -- what the name of a file says ------------------------------------------------------------------


def test_predictions_are_written_as_the_name_says(saved, tmp_path, monkeypatch):
    table = tmp_path / "t.csv"
    wanted = None
    named = {"p.csv": ",", "p.tsv": "\t", "p.tsv.gz": "\t", "p.TAB": "\t", "p": ","}
    for name, sep in named.items():
        out = tmp_path / name
        assert main(["predict", str(saved), str(table), "--out", str(out), "--keep", "n"]) == 0
        found = pd.read_csv(out, sep=sep)
        wanted = found if wanted is None else wanted
        pd.testing.assert_frame_equal(found, wanted)
    made = {}
    monkeypatch.setattr("laconic.cli.files.find_spec", lambda name: True)

    def write(frame, stream, index):
        made["frame"] = frame
        stream.write(b"made")

    monkeypatch.setattr(pd.DataFrame, "to_parquet", write)
    out = tmp_path / "p.parquet"
    assert main(["predict", str(saved), str(table), "--out", str(out), "--keep", "n"]) == 0
    assert out.read_bytes() == b"made"
    assert made["frame"].to_numpy().tolist() == wanted.astype(str).to_numpy().tolist()


@pytest.mark.parametrize(
    "name",
    ["p.xlsx", "p.parquet", "p.json", "p.xls", "p.feather", "p.xlsx.gz", "p.parquet.zip", "p.md"],
)
def test_names_that_cannot_be_written_are_refused_before_anything_is_read(
    name, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("laconic.cli.files.find_spec", lambda name: None)
    out = tmp_path / name
    told = said(capsys, "predict", tmp_path / "no.laconic", tmp_path / "no.csv", "--out", out)
    assert name in told
    assert "pip install" in told or ".csv, .tsv, .parquet or .xlsx" in told
    assert not out.exists()


def test_excel_is_written_where_pandas_can(saved, tmp_path):
    pytest.importorskip("openpyxl")
    out = tmp_path / "p.xlsx"
    assert main(["predict", str(saved), str(tmp_path / "t.csv"), "--out", str(out)]) == 0
    assert pd.read_excel(out).columns.tolist() == ["prediction"]


def test_odd_names_are_csv():
    for name in ("/dev/stdout", "predictions", "p.txt", "p.csv.zip", "p.2024"):
        check_table_name(name)


NO_VALUES = {
    "lists": ([[i, 2] for i in range(M)], "ndarray"),
    "lists after a gap": ([None, *([f"{i}", "b"] for i in range(M - 1))], "ndarray"),
    "equal lists": ([["p", "q"]] * M, "ndarray"),
    "structs": ([{"u": i} for i in range(M)], "dict"),
    "bytes": ([f"{i}".encode() for i in range(M)], "bytes"),
}


@pytest.mark.parametrize(("cells", "kind"), NO_VALUES.values(), ids=NO_VALUES)
def test_cells_that_are_no_values_are_told_as_estimators_tell_them(
    cells, kind, saved, tmp_path, capsys
):
    pytest.importorskip("pyarrow")
    table = tmp_path / "t.parquet"
    frame = rows().assign(tags=cells)
    frame.to_parquet(table)
    read = pd.read_parquet(table).drop(columns=["y"])
    with pytest.raises(ValueError, match="column 'tags' of X holds") as error:
        ShareBoostClassifier(1, pool="stumps").fit(read, frame.y)
    wanted = str(error.value).replace(" of X", "")
    assert f"objects of type {kind}; turn them into numbers or text" in wanted
    for pool in ("stumps", "columns"):
        fit = ["fit", table, "--target", "y", "--pool", pool, "--out", tmp_path / "n.laconic"]
        told = said(capsys, *fit, "--max-atoms", "1")
        assert f"{wanted}, or leave the column out with --ignore" in told
        assert main([*map(str, fit), "--max-atoms", "1", "--ignore", "tags"]) == 0
    assert main(["predict", str(saved), str(table)]) == 0
    if kind != "bytes":  # the report reads them as text
        told = said(capsys, "holes", saved, table, "--target", "y")
        assert "column 'tags' of X holds objects of type" in told
    ignored = ["holes", str(saved), str(table), "--target", "y", "--ignore", "tags"]
    assert main(ignored) == 0


def test_options_name_columns_as_a_shell_reads_them(tmp_path, capsys):
    table = rows().assign(**{"row id": np.arange(M), "a": [f"{i}" for i in range(M)]})
    table.to_csv(tmp_path / "t.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
    fit = ["fit", tmp_path / "t.csv", "--target", "y", "--out", tmp_path / "m", "--pool", "stumps"]
    assert main([*map(str, fit), "--max-atoms", "1"]) == 0
    assert "--keep-id 'row id' keeps it" in capsys.readouterr().err


# -- cells of Excel --------------------------------------------------------------------------------


def test_text_stays_text_in_excel(saved, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    cells = ["=1+1", '=HYPERLINK("http://a.b")', "#N/A", "+1", "plain", "@x"]
    frame = rows()[: len(cells)].assign(**{"=name": cells})
    frame.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "p.XLSX"
    keep = ["--keep", "=name", "--keep", "n", "--out", str(out)]
    assert main(["predict", str(saved), str(tmp_path / "t.csv"), *keep]) == 0
    sheet = openpyxl.load_workbook(out).active
    assert {cell.data_type for row in sheet for cell in row} <= {"s", "n"}
    found = pd.read_excel(out, keep_default_na=False)
    assert found.columns[0] == "=name"
    assert found["=name"].tolist() == cells


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a\x01b", r"column 'name' has a control character in row 3 \('a\\x01b'\)"),
        ("a" * 40_000, r"column 'name' has 40,000 characters in row 3"),
    ],
)
def test_cells_that_excel_cannot_hold_are_refused(text, told, saved, tmp_path, capsys):
    pytest.importorskip("openpyxl")
    frame = rows()[:4].assign(name=["a", "b", text, "c"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    command = ["predict", saved, tmp_path / "t.csv", "--keep", "name", "--out"]
    found = said(capsys, *command, tmp_path / "p.xlsx")
    assert re.search(told + ".*Name a .csv file", found)
    assert not (tmp_path / "p.xlsx").exists()
    assert main([*map(str, command), str(tmp_path / "p.csv")]) == 0


# -- headers and bytes -----------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["a,a,y", "\ufeffa,b,a,y", "sep=,\na,b,a,y", "y,a,y"])
def test_columns_of_one_name_are_refused(header, saved, tmp_path, capsys):
    n = header.splitlines()[-1].count(",") + 1
    file = tmp_path / "t.csv"
    file.write_text(header + "\n" + (",".join("12345"[:n]) + "\n") * 9)
    twice = "y" if header[0] == "y" else "a"
    for command in (["fit", file, "--target", "y"], ["predict", saved, file]):
        told = said(capsys, *command, *(["--out", tmp_path / "m"] if command[0] == "fit" else []))
        assert f"t.csv has 2 columns '{twice}'. Give each its own name" in told
    file.write_text("a,a.1,,,y\n1,2,3,4,5\n")
    assert read_table(str(file)).columns.tolist()[:2] == ["a", "a.1"]


def test_columns_of_one_name_are_refused_in_parquet(saved, tmp_path, capsys):
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table([[1, 2], [3, 4]], names=["a", "a"])
    importlib.import_module("pyarrow.parquet").write_table(table, tmp_path / "t.parquet")
    told = said(capsys, "predict", saved, tmp_path / "t.parquet")
    assert "t.parquet has several columns 'a'. Give each its own name" in told


@pytest.mark.parametrize("at", [9, 100_000])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_zero_bytes_are_told_wherever_they_are(at, name, saved, tmp_path, capsys):
    text = bytearray(b"when,n\n" + b"2023-01-01,1\n" * 10_000)
    text[at] = 0
    line = text[:at].count(b"\n") + 1
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    told = said(capsys, "predict", saved, tmp_path / name)
    assert f"{name}: this is not text: line {line} has a zero byte" in told


def test_text_of_two_bytes_without_a_mark_is_told(saved, tmp_path, capsys):
    for code in ("utf-16-le", "utf-16-be"):
        (tmp_path / "t.csv").write_bytes("日本,n\nZürich,1\n".encode(code))
        told = said(capsys, "predict", saved, tmp_path / "t.csv")
        assert "this is not UTF-8 (it has zero bytes, as UTF-16 has)" in told
        assert f"iconv -f {code.replace('-le', 'le').replace('-be', 'be')} " in told


# -- names of outputs ------------------------------------------------------------------------------


def test_outputs_are_what_their_names_say(saved, tmp_path, capsys):
    table = tmp_path / "t.csv"
    for name in ("p.laconic", "p.png", "p.svg", "p.skops"):
        told = said(capsys, "predict", saved, table, "--out", tmp_path / name)
        assert f"predictions can be .csv, .tsv, .parquet or .xlsx, not {name[1:]}" in told
    for name in ("m.csv", "m.CSV", "m.tsv", "m.parquet", "m.xlsx", "m.json", "m.png", "m.csv.gz"):
        told = said(capsys, "fit", table, "--target", "y", "--out", tmp_path / name)
        assert f"{name}: a model is a .laconic file" in told
        assert not (tmp_path / name).exists()
    told = said(capsys, "holes", saved, table, "--target", "y", "--html", tmp_path / "r.csv")
    assert "r.csv: the report is a .html file, not .csv" in told
    for name in ("m", "m.laconic", "m.v2", "m.2024"):
        fit = ["fit", table, "--target", "y", "--pool", "stumps", "--max-atoms", "1"]
        assert main([*map(str, fit), "--out", str(tmp_path / name)]) == 0


def test_alpha_may_be_auto(tmp_path, capsys):
    rows().drop(columns=["when"]).to_csv(tmp_path / "t.csv", index=False)
    made = []
    for alpha in ([], ["--alpha", "auto"], ["--alpha", "0.1"]):
        out = tmp_path / f"m{len(made)}"
        fit = ["fit", tmp_path / "t.csv", "--target", "y", "--out", out, "--max-atoms", "2"]
        assert main([*map(str, fit), *alpha]) == 0
        made.append(Predictor.load(out).weights)
    assert np.array_equal(made[0], made[1])
    assert not np.array_equal(made[0], made[2])
    with pytest.raises(SystemExit):
        main(["fit", "t.csv", "--target", "y", "--alpha", "often"])
    assert "--alpha: must be a number or auto, not 'often'" in capsys.readouterr().err


def test_parquet_is_read_and_written_where_pandas_can(saved, tmp_path, capsys):
    pytest.importorskip("pyarrow")
    rows().to_csv(tmp_path / "t.parquet")
    told = said(capsys, "predict", saved, tmp_path / "t.parquet")
    assert "t.parquet: this looks like text, and not like Parquet. Let its name end in .csv" in told
    table, out = tmp_path / "T.PARQUET", tmp_path / "P.Parquet"
    rows().to_parquet(table)
    assert main(["predict", str(saved), str(table), "--out", str(out), "--keep", "when"]) == 0
    found = pd.read_parquet(out)
    assert found.columns.tolist() == ["when", "prediction"]
    assert (found.when == rows().when).all()


# -- codes -----------------------------------------------------------------------------------------


def test_codes_with_leading_zeros_are_pointed_out(tmp_path, capsys):
    table, model = tmp_path / "t.csv", tmp_path / "m.laconic"
    frame = rows().assign(zip=[f"{n:05d}" for n in range(990, 990 + M)])
    frame.to_csv(table, index=False)
    fit = ["fit", table, "--target", "y", "--out", model, "--pool", "stumps", "--max-atoms", "1"]
    fit = [*map(str, fit), "--keep-id", "zip"]
    assert main(fit) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert "column 'zip' has codes such as 00990, which are read as numbers" in told
    assert "Add --categorical zip to read them as text" in told
    for settled in ("--categorical", "--ignore"):
        assert main([*fit[:-2], settled, "zip"]) == 0
        assert "codes such as" not in capsys.readouterr().err


def test_labels_with_leading_zeros_keep_them(tmp_path, capsys):
    table, model, out = (tmp_path / name for name in ("t.csv", "m.laconic", "p.csv"))
    frame = rows()
    frame["y"] = np.where(frame.y == "late", "01", np.where(frame.n > 4, "1", "2"))
    frame.to_csv(table, index=False)
    fit = ["fit", table, "--target", "y", "--out", model, "--pool", "stumps"]
    assert main([*map(str, fit)]) == 0
    assert Predictor.load(model).classes.tolist() == ["01", "1", "2"]
    assert main(["predict", str(model), str(table), "--out", str(out)]) == 0
    assert pd.read_csv(out, dtype=str).prediction.tolist() == frame.y.tolist()
    capsys.readouterr()
    assert main(["holes", str(model), str(table), "--target", "y"]) == 0
    assert "does not know" not in capsys.readouterr().out


def test_few_rows_want_a_higher_price(tmp_path, capsys):
    table, model = tmp_path / "t.csv", tmp_path / "m.laconic"
    rows().to_csv(table, index=False)
    fit = ["fit", table, "--target", "y", "--out", model, "--method", "totalq", "--max-rounds", "3"]
    fit = [*map(str, fit)]
    assert main(fit) == 0
    hint = "The default price, 0.001, is for thousands of rows. For 120 rows, choose"
    assert hint in " ".join(capsys.readouterr().out.split())
    for chosen in (["--price", "0.01"], ["--max-atoms", "2"], ["--cv", "3"]):
        assert main([*fit, *chosen]) == 0
        assert "default price" not in capsys.readouterr().out


def test_the_model_learns_from_rows_that_are_not_set_aside(tmp_path, capsys):
    table, model = tmp_path / "t.csv", tmp_path / "m.laconic"
    rows().to_csv(table, index=False)
    fit = ["fit", table, "--target", "y", "--out", model, "--test-fraction", "0.25"]
    assert main([*map(str, fit), "--max-atoms", "1"]) == 0
    assert "learned from the 90 rows that were not set aside" in capsys.readouterr().out


# -- broken tables ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('a,b,y\n1,2,x\n3,"4,z\n5,6,x\n', "a quotation mark in row 2 is not closed."),
        ("a,b,y\n1,2,x\n3,4,5,z\n", "line 3 has 4 cells, where 3 are expected."),
    ],
)
def test_broken_tables_are_told_in_plain_words(text, told, tmp_path, capsys):
    table = tmp_path / "t.csv"
    table.write_text(text)
    err = said(capsys, "fit", table, "--target", "y", "--out", tmp_path / "m.laconic")
    assert err == f"laconic: error: {table} cannot be read as a table: {told}\n"


def test_a_model_that_is_replaced_is_named_so(tmp_path, capsys):
    table, model = tmp_path / "t.csv", tmp_path / "m.laconic"
    rows().to_csv(table, index=False)
    fit = [*map(str, ["fit", table, "--target", "y", "--out", model, "--max-atoms", "1"])]
    for done in ("saved", "replaced"):
        assert main(fit) == 0
        assert f"{done}  {model}" in capsys.readouterr().out
