"""The card says what the model is: every atom, its share, its weights, within the width."""

from __future__ import annotations

import io
import re
import string

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from laconic import (
    ErrorClumpingClassifier,
    HolePunchingClassifier,
    Predictor,
    ShareBoostClassifier,
    TotalQBoostClassifier,
)
from laconic.model.atoms import ColumnsMap
from laconic.model.card import card, shares, shorten


@pytest.fixture(scope="module")
def iris():
    return load_iris(as_frame=True)


@pytest.fixture(scope="module")
def model(iris):
    return ShareBoostClassifier(3).fit(iris.data, iris.target_names[iris.target])


def random_predictor(n_columns, n_classes, names=None, scale=1.0):
    rng = np.random.default_rng(0)
    labels = np.array([f"class {c}" for c in string.ascii_uppercase[:n_classes]])
    return Predictor(
        ColumnsMap(np.arange(n_columns)),
        scale * rng.normal(size=(n_columns, n_classes)),
        rng.normal(size=n_classes),
        labels,
        "margin",
        [1] * n_columns,
        n_columns,
        names,
    )


def longest(text):
    return max(len(line) for line in text.splitlines())


def test_a_card_of_thousands_of_columns_is_cut():
    wide = card(random_predictor(20_000, 2), width=80)
    lines = wide.splitlines()
    assert "20,000 columns · 20,000 of 20,000 features" in wide
    assert sum(bool(re.match(r" *\d+ {2}x\d+ ", line)) for line in lines) == 200
    at = lines.index("… and 19,800 more")
    assert lines[at - 1].startswith("  200  x199 ")
    assert lines[at + 2].startswith("always in")
    assert "more" not in card(random_predictor(200, 2), width=80)


def test_headline_states_size_loss_and_cost(model):
    text = card(model, width=100)
    path = model.path_
    assert "3 columns" in text
    assert "3 of 4 features" in text
    assert "3 classes" in text
    assert f"training loss {path[0].loss:.3g} → {path[3].loss:.3g} (margin)" in text
    cost = model.predictor_.cost()
    assert f"{cost.operations} operations per row, {cost.bytes} bytes" in text


def test_every_atom_every_class_and_the_intercept_are_there(model):
    text = card(model, width=100)
    for name in [*model.predictor_.names(), *model.classes_, "always in"]:
        assert str(name) in text
    assert "the class with the largest" in text
    last = next(line for line in text.splitlines() if line.startswith("always in"))
    shown = [float(word) for word in last.split()[2:]]
    np.testing.assert_allclose(shown, model.intercept_, rtol=0.02, atol=0.05)


def test_shares_sum_to_100(model):
    percent = [float(p) for p in re.findall(r"(\d+\.\d) %", card(model))]
    assert len(percent) == 3
    assert sum(percent) == pytest.approx(100.0)


@pytest.mark.parametrize("gains", [[1, 1, 1], [3, 2, 1, 1e-9], [0.5, -0.1, 2], [1e-300]])
def test_rounded_shares_sum_to_100_and_follow_the_gains(gains):
    percent = shares(gains)
    assert percent.sum() == pytest.approx(100.0)
    exact = 100 * np.maximum(gains, 0) / np.maximum(gains, 0).sum()
    np.testing.assert_allclose(percent, exact, atol=0.1)


def test_no_gain_no_share():
    assert shares([0.0, -1.0]).tolist() == [0.0, 0.0]
    assert shares([]).tolist() == []


def test_numbers_of_a_class_end_in_one_column(model):
    lines = card(model, width=100).splitlines()
    head = next(line for line in lines if "share" in line)
    ends = [match.end() for match in re.finditer(r"\S+", head)][-3:]
    rows = [line for line in lines if re.match(r"\d  |always in", line)]
    assert len(rows) == 4
    for row in rows:
        assert [match.end() for match in re.finditer(r"\S+", row)][-3:] == ends


@pytest.mark.parametrize("width", [40, 60, 100, 200])
@pytest.mark.parametrize("n_classes", [2, 10, 26])
def test_lines_stay_within_the_width(width, n_classes):
    names = [f"a_long_name_of_a_feature_that_goes_on_and_on_{i}" for i in range(12)]
    text = card(random_predictor(12, n_classes, names), width)
    assert longest(text) <= width
    for label in string.ascii_uppercase[:n_classes]:
        assert re.search(rf"class\s{label}\b", text)


def test_width_holds_with_shares_too(iris):
    data = iris.data.rename(columns=lambda name: name + " as measured with a ruler")
    text = card(ShareBoostClassifier(3).fit(data, iris.target_names[iris.target]), width=40)
    assert longest(text) <= 40


def test_names_are_cut_only_where_there_is_no_room(model):
    assert "…" not in card(model, width=70)
    names = [f"{i} is the number of a feature with a name as long as a line" for i in range(3)]
    assert re.search(r"^2  1 is the .*….* a line ", card(random_predictor(3, 10, names), 100), re.M)


@pytest.mark.parametrize("n_classes", [6, 10])
def test_names_get_the_room_that_costs_no_further_block(n_classes):
    names = [f"{i}_and_the_rest_of_a_name_that_fits_half" for i in range(3)]
    text = card(random_predictor(3, n_classes, names), width=100)
    assert all(text.count(name) >= 1 for name in names)
    short = card(random_predictor(3, n_classes, ["a" * 33, "b" * 33, "c" * 33]), width=100)
    assert text.count("always in") == short.count("always in")


def test_width_follows_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "64")
    assert 50 < longest(card(random_predictor(3, 26))) <= 64


def test_a_group_lists_its_columns(iris):
    groups = [0, 1, 0, 1]
    text = card(ShareBoostClassifier(2, groups=groups).fit(iris.data, iris.target))
    assert "4 columns in 2 groups" in text
    assert len(re.findall(r"^\d  group of 2 +\d+\.\d %$", text, re.M)) == 2
    for name in iris.data.columns:
        assert re.search(rf"^     {re.escape(name)} ", text, re.M)


def test_stumps_are_questions(iris):
    model = ShareBoostClassifier(2, pool="stumps").fit(iris.data, iris.target)
    text = card(model)
    assert "2 stumps" in text
    assert all(name in text for name in model.predictor_.names())
    assert "condition holds" in text


def test_no_atoms_still_has_an_intercept(model):
    text = card(model.at(0))
    assert "0 columns · 0 of 4 features" in text
    assert "always in" in text
    assert "share" not in text


def test_a_predictor_alone_has_no_shares(model):
    text = card(model.predictor_)
    assert "%" not in text
    assert "share" not in text
    assert all(name in text for name in model.predictor_.names())


def test_a_predictor_of_groups_alone(iris):
    model = ShareBoostClassifier(1, groups=[0, 1, 0, 1]).fit(iris.data, iris.target)
    assert "2 columns in 1 group " in card(model.predictor_)


def test_no_negative_zero():
    predictor = random_predictor(2, 3)
    predictor.weights = np.array([[-1e-9, 5.0, -5.0], [-0.0, 0.0, 0.0]])
    predictor.intercept = np.array([-1e-17, 1e-17, 0.0])
    text = card(predictor)
    assert not re.search(r"-0(\.0*)?(\s|$)", text)
    assert "e-" not in text


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e4, 1e12])
def test_numbers_keep_three_digits_at_any_scale(scale):
    predictor = random_predictor(1, 4, ["x"], scale)
    row = next(line for line in card(predictor).splitlines() if line.startswith("1  x"))
    shown = np.array([float(word) for word in row.split()[2:]])
    top = np.abs(predictor.weights).max()
    np.testing.assert_allclose(shown, predictor.weights[0], atol=0.006 * top)


def test_control_characters_do_not_reach_the_terminal():
    text = card(random_predictor(2, 2, ["a\x1b[31m", "b\nc"]))
    assert "\x1b" not in text
    assert "b?c" in text


def test_shorten_keeps_both_ends():
    assert shorten("abcdefghij", 5) == "ab…ij"
    assert shorten("abc", 5) == "abc"
    assert len(shorten("abcdefghij", 4)) == 4


def test_describe_prints_the_card(model, capsys):
    model.describe()
    assert capsys.readouterr().out == card(model) + "\n"


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (ShareBoostClassifier(2), "2 columns"),
        (ShareBoostClassifier(2, pool="stumps"), "2 stumps"),
        (ShareBoostClassifier(2, pool="products"), "2 products"),
        (ShareBoostClassifier(2, pool="pieces"), "2 pieces"),
        (TotalQBoostClassifier(max_rounds=3, price=0.0), "3 stumps"),
        (ErrorClumpingClassifier(), "4 columns"),
        (HolePunchingClassifier(max_holes=1, min_rows=2), "region"),
    ],
)
def test_saved_predictors_of_every_kind_describe_themselves(iris, tmp_path, capsys, model, said):
    some = iris.target > 0
    y = iris.target_names[iris.target[some]]
    model.fit(iris.data[some], y).predictor_.save(tmp_path / "model.laconic")
    Predictor.load(tmp_path / "model.laconic").describe()
    shown = capsys.readouterr().out
    assert said in shown
    assert "2 classes" in shown
    assert "bytes" in shown


def test_classes_that_a_region_never_saw_have_no_number():
    rng = np.random.default_rng(0)
    middles, blob = rng.uniform(-6, 6, (20, 2)), rng.integers(20, size=500)
    X, y = middles[blob] + 0.6 * rng.standard_normal((500, 2)), blob % 4
    model = HolePunchingClassifier(
        LogisticRegression(), 8, min_rows=5, early_stopping=True, random_state=0
    ).fit(X, y)
    text = card(model.predictor_)
    assert "never" in text
    assert "e+30" not in text
    out = io.StringIO()
    model.at(3).describe(file=out)
    assert f"3 holes of {len(model.errors_) - 1} punched" in out.getvalue()


@pytest.mark.parametrize(
    ("pool", "said"),
    [
        ("columns", ["when (days since 2024-01-01)", "stay (hours)", "age "]),
        ("products", ["when (days since 2024-01-01) * stay (hours)", "stay (hours) * age"]),
        ("stumps", ["when <= 2024-", "stay <= "]),
    ],
)
def test_dates_and_durations_name_their_units(pool, said):
    rng = np.random.default_rng(0)
    days, hours, age = rng.integers(0, 300, 200), rng.integers(2, 20, 200), rng.normal(size=200)
    days[0] = 0
    frame = pd.DataFrame(
        {
            "when": np.datetime64("2024-01-01") + days,
            "stay": hours.astype("m8[h]").astype("m8[s]"),
            "age": age,
        }
    )
    y = days / 300 + hours / 20 + age > 1
    fitted = ShareBoostClassifier(9, pool=pool).fit(frame, y)
    for text in (card(fitted, 100), card(fitted.predictor_, 100)):
        assert [name for name in said if name not in text] == []
        assert ("days since" in text) == (pool != "stumps")
    assert not any("since" in name for name in fitted.get_feature_names_out())
    old = ShareBoostClassifier(1).fit(days[:, None], y).predictor_
    old.units[0] = "date"
    assert "x0 (days since 1970-01-01)" in card(old)
