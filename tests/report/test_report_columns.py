"""Columns of a table: which describe rows and which name them, dates, and columns to ignore."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from laconic import report_holes
from laconic.report.features import as_table, focus
from laconic.report.gaps import feature_gaps
from problems import KnowsIncome, flipped, shop


def test_text_of_many_kinds_takes_few_columns():
    rng = np.random.default_rng(0)
    rare = [f"r{i}" for i in range(300)]
    town = np.r_[np.repeat("big", 500), np.repeat("small", 300), rng.choice(rare, 1200)]
    frame = pd.DataFrame(
        {"id": [f"k{i}" for i in range(2000)], "town": town, "n": np.arange(2000) / 2}
    )
    table = as_table(frame)
    assert table.Z.shape == (2000, 51 + 1)
    assert table.Z[:, :51].sum(axis=1).tolist() == [1.0] * 2000
    assert table.Z[:, 0].sum() == 500
    assert table.left_out == ["id"]
    weights = focus(table, np.arange(2000) < 500, np.full(2000, 0.25), np.arange(2000))
    assert weights.shape == (52,)
    (gaps,) = feature_gaps(table, [np.flatnonzero(np.arange(2000) >= 800)])
    assert "id" not in [gap.name for gap in gaps]
    assert "town is any rarer value in" in next(g.sentence for g in gaps if g.name == "town")
    y = np.arange(2000) % 2
    report = report_holes(np.where(np.arange(2000) < 200, 1 - y, y), frame, y)
    said = " ".join(report.text().split())
    assert "Left out because of too many different values: id (2,000 in 2,000 rows)." in said
    with pytest.raises(ValueError, match="seems to name rows"):
        as_table(frame[["id"]])


def test_numbers_that_name_rows_are_left_out_or_pointed_out():
    rng = np.random.default_rng(0)
    frame, y, _ = shop(600)
    spread = rng.choice(10**7, 600, replace=False)
    frame = frame.assign(
        id=rng.permutation(600) + 1,
        gaps=rng.permutation(650)[:600],
        when=10 * np.sort(spread),
        account=spread,
        half=spread / 2,
    )
    table = as_table(frame)
    assert table.left_out == ["id", "gaps"]
    assert table.numbered == ["when", "account"]
    assert as_table(frame[:50]).left_out == []
    report = report_holes(KnowsIncome(frame), frame, y)
    said = " ".join(report.text().split())
    assert report.clumps
    listed = "id (600 in 600 rows), gaps (600 in 600 rows)."
    assert f"Left out because of too many different values: {listed}" in said
    assert "Different whole numbers in every row: when, account." in said
    assert not {"id", "gaps"} & {gap.name for clump in report.clumps for gap in clump.gaps}
    assert as_table(np.arange(8000).reshape(2000, 4), (2, 2)).left_out == []


def test_long_lists_of_columns_are_cut():
    frame, y, _ = shop(600)
    ids = {f"id{i}": np.arange(600) + i for i in range(14)}
    codes = {f"no{i}": np.arange(600) ** 2 for i in range(13)}
    stray = {f"s{i}": ["?", *map(str, np.arange(599) % 90)] for i in range(12)}
    frame = frame.assign(**ids, **codes, **stray)
    others = [f"x{i}" for i in range(15)]
    given = frame.assign(**dict.fromkeys(others, 1.0))
    said = " ".join(report_holes(KnowsIncome(given), given, y, ignore=others).text().split())
    assert "Ignored on request: x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, … and 5 more. " in said
    assert "id9 (600 in 600 rows), … and 4 more. " in said
    assert "no9, … and 3 more. Ignore such a column" in said
    assert said.count("looks like numbers, but '?' in row 0") == 10
    assert "The same holds for 2 more columns. " in said


def test_amounts_that_are_all_different_are_looked_at():
    rng = np.random.default_rng(0)
    amount, y = rng.permutation(7 * 1500)[:1500], rng.integers(0, 2, 1500)
    bad = (amount > 4200) & (amount < 5250)
    wrong = rng.random(1500) < np.where(bad, 0.8, 0.05)
    frame = pd.DataFrame({"amount_cents": amount, "z": rng.normal(size=1500)})
    for order in (np.arange(1500), np.argsort(amount)):  # sorted amounts are amounts
        report = report_holes(flipped(y, wrong)[order], frame.iloc[order], y[order])
        best = report.clumps[0]
        assert best.confirmed
        assert bad[order][best.rows].mean() > 0.8
        assert best.gaps[0].name == "amount_cents"
        assert "Different whole numbers in every row: amount_cents." in report.html()


def test_scattered_errors_are_said_to_be_so_without_regard_to_what_was_left_out():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1000)
    frame = pd.DataFrame({"id": np.arange(1000), "z": rng.normal(size=1000)})
    report = report_holes(flipped(y, np.arange(1000) % 10 == 0), frame, y)
    assert not any(clump.confirmed for clump in report.clumps)
    for said in (" ".join(report.text().split()), report.html()):
        assert "(columns not used: id)" in said
        assert "Left out because of too many different values: id (1,000 in 1,000 rows)." in said


@pytest.mark.parametrize(
    "spelling", ["%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S+00:00"]
)
def test_dates_spelled_as_text_are_dates(spelling):
    rng = np.random.default_rng(0)
    when = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1500 * 1440, 2000), "min")
    bad = (when >= "2023-01-01") & (when < "2023-07-01")
    y = rng.integers(0, 2, 2000)
    wrong = rng.random(2000) < np.where(bad, 0.8, 0.05)
    frame = pd.DataFrame({"signup": when.strftime(spelling), "age": rng.normal(size=2000)})
    report = report_holes(flipped(y, wrong), frame, y)
    best = report.clumps[0]
    assert best.confirmed
    assert bad[best.rows].mean() > 0.9
    assert best.gaps[0].name == "signup"
    said = r"signup is later: the middle half of the clump has 2023-0\d-\d\d to 2023-0\d-\d\d, and"
    assert re.match(said, best.gaps[0].sentence)
    row = int(best.rows[0])
    written = frame.signup[row][:16].replace("T", " ")
    assert f"<td>{written}</td>" in report.html()
    frame.loc[0, "signup"] = "in spring"
    assert as_table(frame).left_out == ["signup"]


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Vienna"])
def test_times_and_durations_are_numbers_and_the_model_gets_what_it_was_given(zone):
    rng = np.random.default_rng(0)
    when = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1500, 2000), "D")
    wait = pd.to_timedelta(rng.uniform(0, 100, 2000), "h")
    frame = pd.DataFrame({"signup": when.tz_localize(zone), "wait": wait})
    late, slow = when > "2023-08-01", np.asarray(wait > pd.Timedelta("88h"))
    y = rng.integers(0, 2, 2000)
    frame.loc[5, "signup"] = pd.NaT

    class Given:
        def predict(self, X):
            assert X is frame
            return flipped(y, bad)

    for bad, said in (
        (late, r"signup is later: the middle half of the clump has 2023-\d\d-\d\d to 20"),
        (slow, r"wait is higher: the middle half of the clump has 3.\d+ days to 4.\d+ days, and"),
    ):
        report = report_holes(Given(), frame, y)
        best = report.clumps[0]
        assert best.confirmed
        assert bad[best.rows].mean() > 0.8
        assert re.match(said, best.gaps[0].sentence), best.gaps[0].sentence
        page = report.html()
        assert " days</td>" in page
        assert f"<td>{when[best.rows[0]].strftime('%Y-%m-%d')}</td>" in page
    times = frame[["signup"]].to_numpy().astype("datetime64[ns]") if zone is None else None
    if times is not None:
        assert np.array_equal(as_table(times).Z, as_table(frame[["signup"]]).Z)


def test_every_day_a_row_is_a_date_and_no_number_of_rows():
    days = pd.date_range("2022-01-01", periods=500)
    assert as_table(pd.DataFrame({"day": days})).left_out == []
    assert as_table(pd.DataFrame({"day": days.astype(str)})).left_out == []
    hours = pd.DataFrame({"at": pd.date_range("2022-01-01 00:00", periods=60, freq="h")})
    ((gap,),) = feature_gaps(as_table(hours), [np.arange(10)])
    assert "the middle half of the clump has 2022-01-01 02:15 to 2022-01-01 06:45" in gap.sentence


def test_ignored_columns_reach_the_model_only():
    frame, y, _ = shop()
    frame = frame.assign(note=[f"n{i}" for i in range(len(frame))])
    report = report_holes(KnowsIncome(frame), frame, y, ignore=["income", "note"])
    assert report.overall.errors == shop()[2].sum()
    assert [column.name for column in report.table.columns] == ["age", "way"]
    assert "Ignored on request: income, note." in " ".join(report.text().split())
    assert "Ignored on request: income, note." in report.html()
    numbers = frame[["age", "income"]]
    fitted = LogisticRegression().fit(numbers, y)  # it knows names: the note does not reach it
    report = report_holes(fitted, frame, y, ignore=["income", "note"])
    assert np.array_equal(report.predicted, fitted.predict(numbers))
    plain = LogisticRegression().fit(numbers.to_numpy(), y)
    for name in (1, "x1"):
        report = report_holes(plain, numbers.to_numpy(), y, ignore=[name])
        assert np.array_equal(report.predicted, fitted.predict(numbers))
        assert [column.name for column in report.table.columns] == ["x0"]
    with pytest.raises(ValueError, match="X has no column 'incom' to ignore"):
        report_holes(KnowsIncome(frame), frame, y, ignore="incom")
    with pytest.raises(ValueError, match="no column of X is left"):
        report_holes(KnowsIncome(frame), frame, y, ignore=list(frame.columns))


@pytest.mark.parametrize("word", ["NA", "", "nan", "NaT", "unknown", None])
def test_missing_dates_however_they_are_written(word):
    days = pd.Series(pd.date_range("2024-01-01", periods=600).strftime("%Y-%m-%d")).astype(object)
    days[::10] = word
    column = as_table(pd.DataFrame({"day": days, "n": np.arange(600) / 7})).columns[0]
    assert (column.unit, column.left_out) == ("date", False)
    assert np.array_equal(np.isnan(column.values), np.arange(600) % 10 == 0)


def test_missing_text_of_pandas_own_type():
    text = pd.array(["q", None, "<NA>", "r"] * 25, dtype="string")
    column = as_table(pd.DataFrame({"s": text, "n": np.arange(100) / 7})).columns[0]
    assert column.values.min() == -1
    assert sorted(column.names) == ["<NA>", "q", "r"]


def test_numbers_of_rows_stay_so_with_one_missing():
    number = np.arange(1500.0)
    number[3] = np.nan
    table = as_table(pd.DataFrame({"id": number, "n": np.sin(np.arange(1500))}))
    assert table.left_out == ["id"]


def test_a_model_of_fewer_columns_gets_its_own():
    rng = np.random.default_rng(0)
    X = rng.random((500, 3))
    y = (X[:, 0] > 0.5) ^ (rng.random(500) < 0.1)
    model = LogisticRegression().fit(X[:, :2], y)
    errors = int((model.predict(X[:, :2]) != y).sum())
    assert report_holes(model, X, y, ignore=[2]).overall.errors == errors
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = LogisticRegression().fit(frame[["a", "b"]], y)
    assert report_holes(named, frame, y).overall.errors == errors
    with pytest.raises(ValueError, match="3 features"):
        report_holes(model, X, y)


def test_a_code_that_the_clump_has_is_named():
    rng = np.random.default_rng(0)
    code = rng.integers(1, 11, 2000)
    table = as_table(pd.DataFrame({"code": code, "n": rng.random(2000)}))
    gap = feature_gaps(table, [np.flatnonzero(code == 5)])[0][0]
    assert gap.sentence == "code is 5 in 100 % of the clump, in 0 % elsewhere."


def test_cells_show_whole_numbers_in_full():
    column = as_table(np.array([[1184622.0], [0.123456789], [-3.0], [np.nan]])).columns[0]
    assert [column.cell(row) for row in range(4)] == ["1184622", "0.123457", "-3", "missing"]
