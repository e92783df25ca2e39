"""Rules: the scan against all rules one by one, and filters that select their rows."""

import sqlite3
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

from laconic.numeric.threads import Threads
from laconic.report.bins import COARSE, cut_points, in_bins
from laconic.report.columns import read_columns
from laconic.report.conditions import ErrorRule, RuleCondition
from laconic.report.rules import MOST, RuleSearch
from laconic.report.scan import gains


def small_table(seed, n=300):
    """Columns of few values, with more errors where three conditions hold."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.integers(0, 4, n),
            "b": rng.integers(0, 5, n).astype(float),
            "c": rng.choice(list("xyz"), n),
            "d": rng.integers(0, 3, n),
        }
    )
    frame.loc[rng.random(n) < 0.1, "b"] = np.nan
    pocket = (frame.a > 1) & (frame.c == "x") & (frame.d < 2)
    wrong = rng.random(n) < np.where(pocket, 0.6, 0.15)
    return frame, wrong.astype(float)


def best_of_all(search, gain, most):
    """Try every rule of up to ``most`` conditions, one by one."""
    n = len(gain)
    masks = {}
    for column, codes in enumerate(search.coarse.codes):
        ranges = search.coarse.only(column).ranges
        masks[column] = [(codes >= low) & (codes <= high) for low, high in ranges]
    best = {}
    for size in range(1, most + 1):
        best[size] = 0.0
        for columns in combinations(masks, size):
            for met in product(*(masks[column] for column in columns)):
                inside = np.logical_and.reduce(met)
                if search.least <= inside.sum() <= MOST * n:
                    best[size] = max(best[size], gain[inside].sum(axis=0).max())
    return best


def scanned(search, gain):
    from laconic.report.rules import _Scan

    scan = _Scan(search, np.arange(len(gain)), gain)
    ones = scan.joined(())
    pairs = np.array(list(combinations(range(len(search.columns)), 2)))
    twos = scan.twos(pairs, ones)
    threes = [three for two in twos for three in scan.extended(two)]
    return [max(found.evidence for found in some) for some in (ones, twos, threes)]


@pytest.mark.parametrize("seed", range(3))
def test_one_and_two_conditions_are_exact(seed):
    frame, error = small_table(seed)
    gain = gains(error, np.full(len(error), error.mean()))
    search = RuleSearch(read_columns(frame), np.arange(len(frame)), 8, Threads(1))
    best = best_of_all(search, gain, 2)
    found = scanned(search, gain)
    assert found[0] == pytest.approx(best[1])
    assert found[1] == pytest.approx(best[2])


def test_the_beam_for_three_conditions_is_near_the_best():
    ratios, gaps = [], []
    for seed in range(6):
        frame, error = small_table(seed, 200)
        gain = gains(error, np.full(len(error), error.mean()))
        search = RuleSearch(read_columns(frame), np.arange(len(frame)), 8, Threads(1))
        best = best_of_all(search, gain, 3)
        ratios.append(scanned(search, gain)[2] / best[3])
        assert ratios[-1] <= 1 + 1e-9
        top = search.best(np.ones(len(gain), dtype=bool), gain)
        gaps.append(max(best[k] - search.price(k) for k in (1, 2, 3)) - top.worth)
    assert np.mean(ratios) > 0.9
    # What counts in the end is evidence beyond the price. A few small bins are also the fine bins.
    assert min(gaps) > -1e-9
    assert sum(gap < 1e-9 for gap in gaps) >= 5
    assert max(gaps) < 1.0


def test_the_number_of_threads_and_the_order_of_columns_change_nothing():
    frame, error = small_table(0)
    gain = gains(error, np.full(len(error), error.mean()))
    rules = []
    for columns in (list(frame), list(frame)[::-1]):
        search = RuleSearch(read_columns(frame[columns]), np.arange(len(frame)), 8, Threads(1))
        found = search.best(np.ones(len(gain), dtype=bool), gain)
        rules.append((sorted(map(str, found.shape.conditions)), found.evidence))
    assert rules[0][0] == rules[1][0]
    assert rules[0][1] == pytest.approx(rules[1][1])


def test_a_sample_picks_the_pairs_of_a_large_table(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 30))
    pocket = (X[:, 7] > 0.8) & (X[:, 20] < -0.6)
    error = (rng.random(4000) < np.where(pocket, 0.7, 0.1)).astype(float)
    gain = gains(error, np.full(4000, error.mean()))
    every = np.ones(4000, dtype=bool)
    whole = RuleSearch(read_columns(X), np.arange(4000), 10, Threads(1))
    best = whole.best(every, gain)
    for name, value in (("CELLS", 435_000), ("FEWEST", 20), ("SAMPLE", 500)):
        monkeypatch.setattr(f"laconic.report.rules.{name}", value)
    sampled = RuleSearch(read_columns(X), np.arange(4000), 10, Threads(1))
    found = sampled.best(every, gain)
    assert (len(whole.pairs), len(sampled.pairs)) == (435, 8 * 30)
    assert {condition.column.name for condition in found.shape.conditions} == {"x7", "x20"}
    assert str(found.shape) == str(best.shape)


def test_a_row_twice_counts_twice():
    frame, error = small_table(1)
    gain = gains(error, np.full(len(error), error.mean()))
    once = RuleSearch(read_columns(frame), np.arange(len(frame)), 8, Threads(1))
    two = np.arange(2 * len(frame)) // 2
    twice = RuleSearch(read_columns(frame.iloc[two]), np.arange(len(two)), 16, Threads(1))
    alone = scanned(once, gain)
    double = scanned(twice, gain[two])
    assert double == pytest.approx([2 * evidence for evidence in alone])


def test_bins_are_about_equally_full_and_heavy_numbers_have_their_own():
    rng = np.random.default_rng(0)
    cuts = cut_points(rng.normal(size=10_000), COARSE, False)
    full = np.histogram(rng.normal(size=10_000), [-np.inf, *cuts, np.inf])[0]
    assert len(full) == COARSE
    assert full.min() > 0.7 * full.max()
    many = np.r_[np.zeros(9000), rng.exponential(size=1000)]
    cuts = cut_points(many, COARSE, False)
    assert 0 <= cuts[0] < many[9000:].min()
    assert len(cuts) > COARSE // 2
    assert cut_points(np.array([1.0, 2.0, 2.0, 5.0]), COARSE, True).tolist() == [1.0, 2.0]
    (column,) = read_columns(pd.DataFrame({"v": [np.nan] * 5}).astype(float))
    assert in_bins(column, np.arange(5), COARSE).size == 2


AWKWARD = pd.DataFrame(
    {
        "age": [30, 46, 50, 61, 45, 70],
        "work class": ["Local-gov", "it's \"own\"", "Local-gov", None, "Private", "Local-gov"],
        'say "hi"': [0.125, 0.25, np.nan, 0.5, 0.75, 1.0],
        "when": pd.to_datetime(["2023-01-01", "2023-02-01", "2023-03-01", "2023-04-01",
                                "2023-05-01", "2023-06-01"]),
        "flag": [True, False, True, True, False, False],
    }
)  # fmt: skip


def selected(rule, frame):
    """Return the rows that the pandas filter and the SQL filter select."""
    by_pandas = eval(rule.pandas, {"df": frame, "pd": pd}).index.to_numpy()
    with sqlite3.connect(":memory:") as base:
        spelled = frame.assign(row=frame.index)
        for name in frame.select_dtypes("datetime"):
            spelled[name] = spelled[name].dt.strftime("%Y-%m-%d %H:%M:%S")
        spelled.to_sql("t", base, index=False)
        by_sql = [row for (row,) in base.execute(f"SELECT row FROM t WHERE {rule.sql}")]
    return by_pandas.tolist(), by_sql


def test_filters_select_the_rows_of_the_rule():
    columns = {column.name: column for column in read_columns(AWKWARD)}
    work = columns["work class"].names
    conditions = [
        RuleCondition(columns["age"], low=45.0),
        RuleCondition(columns["age"], low=30.0, high=50.0),
        RuleCondition(columns["age"], high=45.5),
        RuleCondition(columns["age"], low=45.0, high=46.0),
        RuleCondition(columns["work class"], category=work.index("Local-gov")),
        RuleCondition(columns["work class"], category=work.index('it\'s "own"')),
        RuleCondition(columns["work class"]),
        RuleCondition(columns['say "hi"'], low=0.2, high=0.6),
        RuleCondition(columns['say "hi"']),
        RuleCondition(columns["flag"], low=0.5),
    ]
    for some in (*((c,) for c in conditions), *combinations(conditions, 2)):
        rule = ErrorRule(some)
        rows = np.flatnonzero(rule.holds()).tolist()
        assert selected(rule, AWKWARD) == (rows, rows), str(rule)
    dated = ErrorRule((RuleCondition(columns["when"], low=float(columns["when"].values[1])),))
    assert selected(dated, AWKWARD)[0] == np.flatnonzero(dated.holds()).tolist() == [2, 3, 4, 5]
    said = [str(condition) for condition in conditions]
    assert said[:4] == ["age > 45", "30 < age ≤ 50", "age ≤ 45.5", "age is 46"]
    assert said[4] == "work class is Local-gov"
    assert said[6] == "work class is missing"
    assert (
        str(ErrorRule(conditions[:1] + conditions[4:5])) == "age > 45 and work class is Local-gov"
    )


def test_filters_of_codes_and_of_numbers_as_text():
    frame = pd.DataFrame(
        {"zip": pd.Categorical([1004, 1004, 2000, 2000]), "n": ["1", "2", "10", "30"]}
    )
    zips, numbers = read_columns(frame)
    for condition in (RuleCondition(numbers, low=5.0), RuleCondition(numbers, low=1.0, high=10.0)):
        rows = np.flatnonzero(condition.holds()).tolist()
        assert selected(ErrorRule((condition,)), frame) == (rows, rows)
    if zips.names is not None:
        rule = ErrorRule((RuleCondition(zips, category=0),))
        assert selected(rule, frame)[0] == np.flatnonzero(rule.holds()).tolist()
