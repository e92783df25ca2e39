"""Filters for pandas select exactly the rows of a rule, whatever the columns are."""

import datetime

import numpy as np
import pandas as pd
import pytest

from laconic import report_holes
from laconic.report.columns import read_columns
from laconic.report.conditions import ErrorRule, RuleCondition

N = 300


def days(rng):
    return pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, N), "D")


def times(rng):
    return pd.Timestamp("2024-01-01 10:00") + pd.to_timedelta(rng.integers(0, 90_000, N), "ms")


def gaps(cells, rng):
    return np.where(rng.random(N) < 0.1, None, np.asarray(cells, dtype=object))


KINDS = {
    "numbers": lambda rng: rng.normal(size=N),
    "float32": lambda rng: rng.normal(size=N).astype(np.float32),
    "numbers as text": lambda rng: rng.normal(size=N).round(3).astype(str),
    "category of numbers": lambda rng: pd.Categorical(rng.integers(0, 9, N)),
    "category of truth values": lambda rng: pd.Categorical(rng.random(N) < 0.5),
    "dates": lambda rng: days(rng),
    "times within seconds": lambda rng: times(rng),
    "dates as text": lambda rng: gaps(days(rng).strftime("%Y-%m-%d"), rng),
    "times as text with T": lambda rng: times(rng).strftime("%Y-%m-%dT%H:%M:%S"),
    "dates of datetime": lambda rng: [d.date() for d in days(rng)],
    "durations": lambda rng: pd.to_timedelta(rng.integers(1, 99, N), "h"),
    "categories": lambda rng: rng.choice(["a", "b c", "d'e", 'f"g'], N),
}


@pytest.mark.parametrize("name", ["plain", 3, ("a", "b"), "odd \"name's"])
@pytest.mark.parametrize("kind", KINDS)
def test_filters_of_pandas(kind, name):
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"other": rng.normal(size=N), "x": KINDS[kind](rng)})
    df.columns = pd.Index(["other", name], tupleize_cols=False)
    _, column = read_columns(df)
    rules = [RuleCondition(column)] if kind == "dates as text" else []
    if column.names is None:
        rules.append(RuleCondition(column, low=-np.inf))
    if column.names is not None:
        rules += [RuleCondition(column, category=code) for code in range(len(column.names))]
    else:
        known = np.unique(column.values[~np.isnan(column.values)])
        low, high = known[len(known) // 3], known[-2]
        rules += [RuleCondition(column, low=low), RuleCondition(column, high=high)]
        rules += [RuleCondition(column, low=low, high=high)]
        rules += [RuleCondition(column, low=known[0], high=known[1])]
    for condition in rules:
        rule = ErrorRule([condition])
        selected = eval(rule.pandas, {"df": df, "pd": pd, "datetime": datetime})
        assert selected.index.tolist() == np.flatnonzero(rule.holds()).tolist(), rule.pandas


def test_a_number_that_is_known_is_a_rule():
    """What fails where a number is given is one region, with a rule that says so."""
    rng = np.random.default_rng(0)
    known = rng.random(2000) < 0.3
    df = pd.DataFrame({
        "returned": np.where(known, rng.integers(1, 5, 2000), np.nan),
        "x": rng.normal(size=2000),
    })  # fmt: skip
    y = rng.integers(0, 2, 2000)
    wrong = rng.random(2000) < np.where(known, 0.4, 0.05)
    first, *_ = report_holes(np.where(wrong, 1 - y, y), df, y).clumps
    assert str(first.rule) == "returned is known"
    assert first.confirmed
    assert np.array_equal(np.sort(first.rows), np.flatnonzero(known))
    assert first.rule.pandas == "df[df['returned'].notna()]"
    assert first.rule.sql == '"returned" IS NOT NULL'
