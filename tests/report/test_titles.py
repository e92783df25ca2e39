"""Titles of clumps, and sentences that do not begin with what is absent."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from laconic import report_holes
from laconic.report.conditions import ErrorRule, RuleCondition
from laconic.report.features import as_table
from laconic.report.gaps import feature_gaps
from laconic.report.titles import title
from problems import flipped


def rule_title(frame, *conditions):
    """Return the title of a clump that is a rule."""
    table = as_table(frame)
    columns = {column.name: column for column in table.columns}
    parts = [RuleCondition(columns[name], **limits) for name, limits in conditions]
    return title(SimpleNamespace(table=table), SimpleNamespace(rule=ErrorRule(parts)))


def is_(frame, name, category):
    """Return a condition that a column has a category."""
    names = next(column.names for column in as_table(frame).columns if column.name == name)
    return name, {"category": names.index(category)}


def day(text):
    return float((pd.Timestamp(text) - pd.Timestamp("1970-01-01")).days)


@pytest.fixture
def people():
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, 3000),
            "work": rng.choice(["Local-gov", "Private", "none"], 3000),
            "size": rng.choice(["a", "b"], 3000),
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1400, 3000), "D"),
            "gain": rng.choice([0.0, 1.5, np.nan], 3000),
            "share": rng.random(3000),
        }
    )


def test_a_rule_is_titled_by_its_conditions(people):
    over = ("age", {"low": 45.0})
    for conditions, said in (
        ([over, is_(people, "work", "Local-gov")], "Local-gov, age over 45"),
        ([("age", {"low": 45.0, "high": 60.0})], "age 46 to 60"),
        ([("age", {"low": 45.5, "high": 60.0})], "age 46 to 60"),
        ([("age", {"high": 30.0}), is_(people, "size", "b")], "size b, age up to 30"),
        ([is_(people, "work", "none"), over], "work none, age over 45"),
        ([("when", {"low": day("2023-01-15")})], "when after 2023-01-15"),
        ([("when", {"high": day("2020-08-01")})], "when until 2020-08-01"),
        ([("gain", {}), over], "gain missing, age over 45"),
        ([("gain", {"low": 0.5, "high": 2.0})], "gain 1.5"),
        ([("share", {"low": 0.125, "high": 0.5})], "share 0.125 to 0.5"),
    ):
        assert rule_title(people, *conditions) == said


def test_a_category_of_two_columns_has_the_name_of_its_column(people):
    both = people.assign(was=np.where(people.index % 2, "Local-gov", "Private"))
    assert rule_title(both, is_(both, "work", "Local-gov")) == "work Local-gov"


def test_a_long_category_is_shortened():
    long = "so long a name " * 20
    frame = pd.DataFrame({"kind": [long, "short", "other"] * 99})
    said = rule_title(frame, is_(frame, "kind", long))
    assert len(said) == 60
    assert "…" in said


def test_a_ball_is_titled_by_what_most_of_its_rows_share():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(4000, 4)), columns=list("abcd"))
    # A ball in four numbers is no rule of up to three conditions.
    where = (np.square(frame - 0.8).sum(axis=1) < 1.3).to_numpy()
    y = rng.integers(0, 2, 4000)
    report = report_holes(flipped(y, where), frame, y)
    balls = [clump for clump in report.clumps if clump.rule is None]
    said = title(report, balls[0])
    assert said.startswith("Mostly ")
    parts = said.removeprefix("Mostly ").split(", ")
    assert len(parts) == 3
    for part in parts:
        name, low, to, high = part.split(" ")
        assert (to, name in "abcd") == ("to", True)
        assert 0 < float(low) < 0.8 < float(high) < 1.6


def test_pictures_are_titled_by_their_mistakes():
    digits = load_digits()
    X, y = digits.data, (digits.target > 4).astype(int)
    model = LogisticRegression(C=1e-4).fit(X[:600], y[:600])
    report = report_holes(model, X[600:], y[600:], image_shape=(8, 8))
    for clump in report.clumps:
        said = title(report, clump)
        one, *more = [(str(a), str(b)) for a, b, _ in clump.mistakes[:2]]
        if not more:
            assert said == f"{one[0]} predicted as {one[1]}"
        else:
            assert said == f"{one[0]} and {one[1]} confused"


def test_sentences_name_what_is_there():
    """Half of the others have a category that no row of the clump has. It goes without saying."""
    inside = np.arange(1000) < 200
    rng = np.random.default_rng(0)
    here = rng.choice(["p", "q", "r", "s"], 1000)
    there = rng.choice(["common", "p", "q", "r", "s"], 1000, p=[0.6, 0.1, 0.1, 0.1, 0.1])
    frame = pd.DataFrame(
        {
            "kind": np.where(inside, here, there),
            "flag": np.where(inside, 0, rng.integers(0, 2, 1000)),
            "some": np.where(inside | (np.arange(1000) % 2 == 0), rng.normal(size=1000), np.nan),
        }
    )
    gaps = {gap.name: gap for gap in feature_gaps(as_table(frame), [np.flatnonzero(inside)])[0]}
    assert gaps["kind"].sentence.startswith("kind is “")
    assert "“common”" not in gaps["kind"].sentence
    shares = [bar[1] for bar in gaps["kind"].bars]
    assert shares == sorted(shares, reverse=True)
    assert gaps["kind"].bars[-1][0] == "common"
    assert gaps["flag"].sentence.startswith("flag is 0 in 100 % of the clump, in 5")
    assert gaps["some"].sentence == "some is known in 100 % of the clump, in 50 % elsewhere."
