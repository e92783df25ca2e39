"""Data that is probably not meant as it is read is pointed out; amounts of money are let be."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes

from laconic import (
    ErrorClumpingClassifier,
    HolePunchingClassifier,
    ShareBoostClassifier,
    TotalQBoostClassifier,
    report_holes,
)
from laconic.cli.main import main
from laconic.data.doubts import numbers_name_rows, stray_cell, texts_name_rows
from laconic.report.features import as_table

M = 300
MODELS = [
    ShareBoostClassifier(1),
    TotalQBoostClassifier(1),
    ErrorClumpingClassifier(1.0, max_iter=2, n_neighbors=2),
    HolePunchingClassifier(ErrorClumpingClassifier(1.0, n_neighbors=2), max_holes=1),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)


def money(seed=0):
    """Columns in which most rows have a value of their own, or nearly, and none names rows."""
    rng = np.random.default_rng(seed)
    return {
        "price": np.round(rng.uniform(5, 900, M), 2),
        "salary": rng.choice(np.arange(18_000, 140_000), M, replace=False),
        "year": rng.integers(1950, 2024, M),
        "count": rng.poisson(30, M),
        "zip": rng.choice(np.arange(10_000, 99_999), M, replace=False),
    }


IDS = {"id": np.arange(M) + 1000, "customer": [f"c{i}" for i in range(M)]}


def labels():
    return np.random.default_rng(1).integers(0, 2, M)


@every_model
def test_many_numbers_with_few_rows_each_are_no_labels(model):
    X, y = load_diabetes(return_X_y=True)
    with pytest.warns(UserWarning, match="y has 214 different numbers in 442 rows.*qcut"):
        _quietly_stopped(model, X, y)


def _quietly_stopped(model, X, y):
    """Fit, or only begin to where that takes long."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="stopped at a gap|no atom is worth")
        if isinstance(model, HolePunchingClassifier | TotalQBoostClassifier):
            X, y = X[:, :1], y
        model.fit(X, y)


@pytest.mark.parametrize("kind", [int, float, str])
def test_labels_of_many_classes_with_rows_enough_are_let_be(kind):
    y = np.repeat(np.arange(30), 12).astype(kind)
    X = np.random.default_rng(0).standard_normal((len(y), 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ShareBoostClassifier(1).fit(X, y)


@every_model
def test_estimators_warn_of_columns_that_name_rows_and_take_them(model):
    amounts = pd.DataFrame(money())
    frame = amounts.assign(id=IDS["id"])
    for given in (frame, pl.DataFrame({name: frame[name].to_numpy() for name in frame})):
        with pytest.warns(UserWarning, match="column 'id' of X seems to name rows"):
            fitted = model.fit(given, labels())
        assert fitted.n_features_in_ == 6
    with pytest.warns(UserWarning, match="column 5 of X seems to name rows"):
        model.fit(frame.to_numpy(), labels())
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*name rows")
        model.fit(amounts, labels())


def test_numbers_that_count_in_steps_name_rows():
    rng = np.random.default_rng(0)
    for step, first in ((7, 7), (2, 1), (1000, -3), (10**12, 0)):
        ids = (rng.permutation(M) * float(step)) + first
        assert numbers_name_rows(ids)
        assert numbers_name_rows(ids[: M - 1])
        assert numbers_name_rows(np.delete(np.sort(ids), slice(None, None, 20)))
        assert not numbers_name_rows(np.sort(ids) ** 2)
        assert not numbers_name_rows(np.append(ids[:-1], ids[0]))
    # Amounts in round numbers, all different, are amounts.
    assert not numbers_name_rows(100.0 * rng.choice(2 * M, M, replace=False))
    assert not numbers_name_rows(2.0**80 * np.arange(1, M))
    frame = pd.DataFrame({"order": 7 * np.arange(M) + 7, **money()})
    with pytest.warns(UserWarning, match="column 'order' of X seems to name rows"):
        ShareBoostClassifier(1).fit(frame, labels())


def test_text_that_names_rows_is_told_unless_it_is_declared():
    frame = pd.DataFrame({**money(), **IDS})
    model = ShareBoostClassifier(2, pool="stumps", cv=3)
    with pytest.warns(UserWarning, match="columns 'customer', 'id' of X seem to name") as told:
        model.fit(frame, labels())
    assert len([w for w in told if "name" in str(w.message)]) == 1
    frame = frame.drop(columns="id").astype({"customer": "category"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(frame, labels())


@pytest.mark.parametrize("cell", ["12a", "-", "?", "$7"])
def test_a_stray_cell_is_named(cell):
    age = [str(a) for a in np.random.default_rng(0).integers(20, 60, M)]
    age[17] = cell
    where = re.escape(f"{cell!r} in row 17")
    with pytest.warns(UserWarning, match=rf"column 'age' of X looks like.*{where} is text"):
        ShareBoostClassifier(2, pool="stumps").fit(pd.DataFrame({"age": age}), labels())
    with pytest.raises(ValueError, match=rf"column 'age' of X holds text \({where}\)"):
        ShareBoostClassifier(2).fit(pd.DataFrame({"age": age}), labels())


def test_what_is_stray():
    numbers = [str(i) for i in range(20)]
    assert stray_cell([*numbers, "x", None, "y"]) == (20, "x", 2, "numbers")
    assert stray_cell([*numbers, *"abc"]) is None
    assert stray_cell(numbers) is None
    assert stray_cell(["$1,200.50", "$ 30", "-4", "5 %", "7 EUR", "1'000", *numbers])[:2] == (
        0,
        "$1,200.50",
    )
    assert stray_cell([f"{i}-{i + 1}" for i in range(20)]) is None
    dates = [f"2024-01-{i:02d}" for i in range(1, 21)]
    assert stray_cell([*dates, "soon", "2024-02-31"]) == (20, "soon", 2, "dates")
    assert stray_cell(dates) is None


AMOUNTS = [
    "$%s.50", "-$%s.50", "$-%s.50", "($%s.50)", "USD %s", "%s.50 EUR", "%s,50 €", "1.%s,50 €",
    "CHF 1’%s.50", "1\u00a0%s,50\u00a0kr", "R$ %s,00", "1 %s zł", "₹1,20,%s", "%s.5 %%", "<%s",
    "%s,-",
]  # fmt: skip
NAMES = ["#%s", "c%s", "%sA", "INV %s", "10.0.0.%s", "1.2.%s", "%s-7", "%s/24", "id_%s", "AB%sC"]


@pytest.mark.parametrize("form", AMOUNTS)
def test_amounts_of_money_are_no_names(form):
    cells = [form % number for number in range(100, 400)]
    assert stray_cell(cells) == (0, cells[0], 300, "numbers")


@pytest.mark.parametrize("form", NAMES)
def test_names_are_no_amounts(form):
    assert stray_cell([form % number for number in range(100, 400)]) is None


@pytest.mark.parametrize("form", ["%d.%m.%Y", "%m/%d/%y", "%d-%m-%Y %H:%M", "%Y/%m/%d"])
def test_dates_of_another_form_are_told(form):
    days = pd.date_range("2024-01-01", periods=M)
    frame = pd.DataFrame({"day": days.strftime(form)})
    wanted = r"column 'day' of X looks like dates, but .* in row 0 \(and 299 more.*2024-05-31"
    with pytest.warns(UserWarning, match=wanted):
        ShareBoostClassifier(1, pool="stumps").fit(frame, labels())


def test_the_rule_is_that_of_the_report():
    frame = pd.DataFrame({**money(), **IDS})
    assert as_table(frame).left_out == ["id", "customer"]
    for name, values in money().items():
        assert not numbers_name_rows(np.asarray(values, dtype=float)), name
    assert texts_name_rows(151, 300)
    assert not texts_name_rows(150, 300)
    assert not texts_name_rows(50, 60)


def test_the_report_names_stray_cells():
    age = [str(a) for a in np.random.default_rng(0).integers(20, 60, M)]
    age[17] = "n.v."
    price = [f"{p:.2f}" for p in money()["price"]]
    price[2] = "free"
    X = pd.DataFrame({"age": age, "price": price, "salary": money()["salary"]})
    y, labels_of_rows = labels(), np.roll(labels(), 1)
    said = " ".join(report_holes(labels_of_rows, X, y, first_row=1).text().split())
    assert "age looks like numbers, but 'n.v.' in row 18 is text" in said
    assert "price looks like numbers, but 'free' in row 3 is text" in said
    declared = X.astype({"age": "category", "price": "category"})
    assert "looks like" not in report_holes(labels_of_rows, declared, y).text()


# -- the command line ------------------------------------------------------------------------------


def fit(frame, tmp_path, *more):
    table = tmp_path / "t.csv"
    frame.assign(y=np.where(labels() > 0, "yes", "no")).to_csv(table, index=False)
    out = tmp_path / "m.laconic"
    return main(["fit", str(table), "--target", "y", "--out", str(out), *more])


def columns_learned(tmp_path):
    from laconic import Predictor

    return Predictor.load(tmp_path / "m.laconic").feature_names


@pytest.mark.parametrize("pool", ["columns", "stumps"])
def test_identifiers_are_left_out_of_a_table_and_told(pool, tmp_path, capsys):
    frame = pd.DataFrame({**money(), **IDS})
    assert fit(frame, tmp_path, "--pool", pool, "--max-atoms", "2") == 0
    assert columns_learned(tmp_path) == list(money())
    told = capsys.readouterr().err
    for name in IDS:
        assert f"column {name!r} is left out" in told
    assert "300 different values in 300 rows" in told
    assert "--keep-id" in told
    assert told.count("warning") == 2


def test_identifiers_can_be_kept(tmp_path, capsys):
    frame = pd.DataFrame({**money(), **IDS})
    keep = ["--keep-id", "id", "--keep-id", "customer"]
    assert fit(frame, tmp_path, "--pool", "stumps", "--max-atoms", "2", *keep) == 0
    assert columns_learned(tmp_path) == [*money(), *IDS]
    assert "warning" not in capsys.readouterr().err
    # Whoever names a column means it.
    assert fit(frame[["id", "price"]], tmp_path, "--include", "id", "--max-atoms", "2") == 0
    assert columns_learned(tmp_path) == ["id", "price"]
    assert fit(frame[["id"]], tmp_path) == 2
    assert "no column to learn from except 'id'" in capsys.readouterr().err
    assert fit(frame, tmp_path, "--keep-id", "idd") == 2
    assert "no column 'idd'" in capsys.readouterr().err


def test_a_stray_cell_of_a_table_is_named(tmp_path, capsys):
    price = [f"{p:.2f}" for p in money()["price"]]
    price[4] = "-"
    frame = pd.DataFrame({"price": price, "year": money()["year"]})
    assert fit(frame, tmp_path, "--pool", "stumps", "--max-atoms", "2") == 0
    told = capsys.readouterr().err
    assert "column 'price' looks like numbers, but '-' in row 5 is text" in told
    assert told.count("price") == 1
    assert columns_learned(tmp_path) == ["price", "year"]
    assert fit(frame, tmp_path) == 2
    told = capsys.readouterr().err
    assert "column 'price' holds text ('-' in row 5)" in told


@pytest.mark.parametrize("cell", ["spring", "2024-02-31", "31.12.2023"])
def test_a_stray_date_of_a_table_is_named(cell, tmp_path, capsys):
    day = pd.date_range("2023-01-01", periods=M).strftime("%Y-%m-%d").tolist()
    day[6] = cell
    frame = pd.DataFrame({"day": day, "year": money()["year"]})
    assert fit(frame, tmp_path, "--pool", "stumps", "--max-atoms", "2") == 0
    told = capsys.readouterr().err
    assert f"column 'day' looks like dates, but {cell!r} in row 7 is no date such as" in told
    assert columns_learned(tmp_path) == ["day", "year"]
    assert fit(frame, tmp_path) == 2
    assert f"column 'day' holds text ({cell!r} in row 7)" in capsys.readouterr().err


@pytest.mark.parametrize("form", AMOUNTS)
def test_amounts_of_money_do_not_vanish_from_a_table(form, tmp_path, capsys):
    frame = pd.DataFrame({"pay": [form % n for n in range(100, 400)], "year": money()["year"]})
    assert fit(frame, tmp_path, "--pool", "stumps", "--max-atoms", "1") == 0
    assert columns_learned(tmp_path) == ["pay", "year"]
    assert "column 'pay' looks like numbers" in capsys.readouterr().err


def test_the_report_of_a_table_names_stray_cells(tmp_path, capsys):
    frame = pd.DataFrame(money()).astype({"year": str, "zip": str})
    frame.loc[4, "year"] = frame.loc[5, "zip"] = "?"
    keep = ["--pool", "stumps", "--max-atoms", "2", "--ignore", "year", "--ignore", "zip"]
    assert fit(frame, tmp_path, *keep) == 0
    capsys.readouterr()
    holes = ["holes", str(tmp_path / "m.laconic"), str(tmp_path / "t.csv"), "--target", "y"]
    assert main([*holes, "--categorical", "zip"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "year looks like numbers, but '?' in row 5 is text" in said
    assert "zip looks" not in said  # it is declared


def test_a_table_of_amounts_as_labels_is_told(tmp_path, capsys):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    table = tmp_path / "t.csv"
    X.iloc[:, :2].assign(y=y).to_csv(table, index=False)
    main(["fit", str(table), "--target", "y", "--max-atoms", "1", "--out", str(tmp_path / "m")])
    assert "214 different numbers in 442 rows" in capsys.readouterr().err


# -- numbers as text -------------------------------------------------------------------------------


def prices_as_text():
    price = money()["price"]
    return [f"{p:.2f}" for p in price], price > np.median(price)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("gap", [False, True])
def test_numbers_as_text_are_told(make, gap):
    text, y = prices_as_text()
    ages = [str(20 + i % 40) for i in range(M)]
    text[3] = None if gap else text[3]
    frame = make({"price": text, "age": ages, "zip": [f"{i % 7:05}" for i in range(M)]})
    for model in (ShareBoostClassifier(1, pool="stumps"), TotalQBoostClassifier(1)):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            model.fit(frame, y)
        told = [str(w.message) for w in seen]
        assert [re.match(r"column '(\w+)' of X holds numbers as text", t)[1] for t in told] == [
            "price",
            "age",
        ]
        assert all(".astype(float)" in t and "categor" in t for t in told)
    if not gap:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ShareBoostClassifier(1).fit(frame, y)  # takes them as numbers


def test_categories_that_are_declared_are_no_numbers_as_text():
    _, y = prices_as_text()
    frame = pd.DataFrame({"age": [str(20 + i % 40) for i in range(M)]}, dtype="category")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ShareBoostClassifier(1, pool="stumps").fit(frame, y)


def test_amounts_as_text_do_not_vanish(tmp_path, monkeypatch, capsys):
    text, y = prices_as_text()
    frame = pd.DataFrame({"price": text, "zip": [f"{i % 7:05}" for i in range(M)], "y": y})
    assert as_table(frame).left_out == []
    assert as_table(frame).columns[0].names is None
    monkeypatch.setattr(pd, "read_parquet", lambda file: frame.copy())
    fit = ["fit", "t.parquet", "--target", "y", "--out", str(tmp_path / "m"), "--pool", "stumps"]
    assert main([*fit, "--max-atoms", "1"]) == 0
    seen = capsys.readouterr()
    assert "column 'price' holds numbers as text, and is read as numbers. --categorical" in seen.err
    assert "'zip'" not in seen.err
    assert "price <= " in seen.out
    assert main(["predict", str(tmp_path / "m"), "t.parquet"]) == 0
    assert np.mean(np.array(capsys.readouterr().out.split()[1:]) == y.astype(str)) > 0.98


@every_model
def test_warnings_point_to_the_line_of_the_user(model):
    frame, y = pd.DataFrame({"id": np.arange(M) + 1000, "x": np.sin(np.arange(M))}), labels()
    with pytest.warns(UserWarning, match="name rows") as seen:
        clone(model).fit(frame, y)
    [told] = [w for w in seen if "name rows" in str(w.message)]
    assert told.filename == __file__
