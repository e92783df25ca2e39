"""The report on clumps: what it measures, says and shows."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import hypergeom
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from laconic import ErrorClumpingClassifier, report_holes
from laconic.look.numbers import percent
from laconic.report.facts import Rate
from laconic.report.features import as_table, focus
from laconic.report.fix import try_fix
from laconic.report.gaps import feature_gaps
from problems import KnowsIncome, shop


@pytest.fixture(scope="module")
def found():
    frame, y, _ = shop()
    return report_holes(KnowsIncome(frame), frame, y)


def test_the_planted_clump_is_found_measured_and_explained(found):
    assert found.overall.errors == shop()[2].sum()
    best = found.clumps[0]
    assert best.confirmed
    assert best.inside.share > 3 * best.outside.share
    features = [gap.name for gap in best.gaps[:2]]
    assert set(features) == {"age", "way"}
    sentences = " ".join(gap.sentence for gap in best.gaps)
    assert "age is higher: the middle half of the clump has" in sentences
    assert "way is “phone” in" in sentences


def test_rates_are_those_of_fresh_rows(found):
    for clump in found.clumps:
        fresh = clump.rows[found.fresh[clump.rows]]
        assert clump.inside.rows == len(fresh)
        assert clump.inside.errors == found.wrong[fresh].sum()
        assert clump.outside == found.clumps[0].outside
        assert clump.searched.rows == len(clump.rows) - len(fresh)
        assert clump.fix.before == clump.inside.errors
    every = np.concatenate([clump.rows for clump in found.clumps])
    assert len(np.unique(every)) == len(every)
    assert len(found.clumps) == found.found  # so that outside is in none of these
    rest = np.setdiff1d(np.flatnonzero(found.fresh), every)
    assert found.clumps[0].outside == Rate(int(found.wrong[rest].sum()), len(rest))
    excess = [clump.excess for clump in found.clumps if clump.confirmed]
    assert excess == sorted(excess, reverse=True)


def test_fixes_lower_the_error_on_fresh_rows(found):
    assert found.clumps[0].fix.verdict == "helps"
    assert found.fixed.errors < found.on_fresh.errors
    assert found.fixed.rows == found.on_fresh.rows


@pytest.mark.parametrize("kept", [["city"], ["city", "kind"]])
def test_a_city_that_fails_is_named_in_any_order_of_the_rows(kept):
    """All rows of a category are equally far from each other, whatever stands first in the file."""
    rng = np.random.default_rng(0)
    city, kind = rng.choice(list("abcdefgh"), 2000), rng.choice(list("xyz"), 2000)
    y = rng.integers(0, 2, 2000)
    wrong = rng.random(2000) < np.where(city == "d", 0.35, 0.05)
    predicted = np.where(wrong, 1 - y, y)
    frame = pd.DataFrame({"city": city, "kind": kind})[kept]
    for order in (
        np.arange(2000),
        np.argsort(city != "d", kind="stable"),
        np.argsort(city == "d", kind="stable"),
        np.argsort(wrong, kind="stable"),
        np.argsort(~wrong, kind="stable"),
    ):
        report = report_holes(predicted[order], frame.iloc[order], y[order])
        best = report.clumps[0]
        assert best.confirmed
        assert np.array_equal(np.sort(order[best.rows]), np.flatnonzero(city == "d"))
        assert best.gaps[0].sentence == "city is “d” in 100 % of the clump, in 0 % elsewhere."
    page = report.html()  # every row counts, though there are few places
    assert _counted(page) == (2000, report.overall.errors)
    assert "principal components of all 2,000 rows" in page
    # No fix helps here, so that there is no error with fixes to tell.
    assert len(re.findall("<li class=.*?><strong>", page)) == 2
    assert "with local fixes" not in page


def _counted(page):
    """Return how many rows the discs of the map stand for, and how many wrong ones."""
    discs = re.findall(r"<title>([\d,]+) rows?, (\d+) wrong</title>", page)
    return tuple(sum(int(disc[i].replace(",", "")) for disc in discs) for i in (0, 1))


def test_a_small_clump_is_not_measured_against_a_large_one():
    """It fails less often than all other rows together, and far more often than most of them."""
    rng = np.random.default_rng(0)
    kind = rng.choice(list("abcdefgh"), 3000, p=[0.15, 0.07, *[0.13] * 6])
    large, small, y = kind == "a", kind == "b", np.arange(3000) % 2
    wrong = rng.random(3000) < np.where(large, 0.9, np.where(small, 0.12, 0.005))
    assert wrong[small].mean() < wrong[~small].mean()
    report = report_holes(np.where(wrong, 1 - y, y), pd.DataFrame({"kind": kind}), y)
    assert len(report.clumps) == report.found == 2
    for clump, planted in zip(report.clumps, (large, small), strict=True):
        assert clump.confirmed
        assert np.array_equal(np.sort(clump.rows), np.flatnonzero(planted))
        assert clump.outside.share < 0.02
        rows = clump.inside.rows + clump.outside.rows
        errors = clump.inside.errors + clump.outside.errors
        at_least = hypergeom(rows, errors, clump.inside.rows).sf(clump.inside.errors - 1)
        assert clump.chance == pytest.approx(at_least)
        expected = clump.inside.rows * clump.outside.share
        assert clump.excess == pytest.approx(clump.inside.errors - expected)
    assert "Outside means in none of the clumps found" in " ".join(report.text().split())
    assert "Outside means in none of the clumps found" in report.html()


def test_errors_strewn_at_random_are_not_confirmed():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1500, 4)), rng.integers(2, size=1500)
    predicted = np.where(rng.random(1500) < 0.1, 1 - y, y)
    report = report_holes(predicted, X, y)
    assert not any(clump.confirmed for clump in report.clumps)
    assert "No clump of errors" in report.text()


def test_a_category_of_more_than_a_fifth_of_the_rows_is_a_rule():
    y = np.arange(1000) % 2
    third = np.arange(1000) % 5 < 2
    kind = np.where(third, "common", "other")
    report = report_holes(
        np.where(third & (np.arange(1000) % 3 == 0), 1 - y, y), pd.DataFrame({"kind": kind}), y
    )
    (best,) = report.clumps
    assert best.confirmed
    assert str(best.rule) == "kind is common"
    assert np.array_equal(np.sort(best.rows), np.flatnonzero(third))
    even = report_holes(np.where(np.arange(1000) % 11 == 0, 1 - y, y), pd.DataFrame({"k": kind}), y)
    said = " ".join(even.text().split())
    assert even.found == 0
    assert "No rule, and no neighbourhood of up to a fifth of the rows, has clearly more" in said


def test_a_model_without_errors():
    X, y = np.random.default_rng(0).random((40, 2)), np.arange(40) % 2
    report = report_holes(y, X, y)
    assert report.clumps == []
    assert "makes no error" in report.text()
    assert "makes no error" in report.html()


def test_a_model_that_is_always_wrong():
    X, y = np.random.default_rng(0).random((40, 2)), np.arange(40) % 2
    report = report_holes(1 - y, X, y)
    assert report.overall.share == 1.0
    assert report.clumps == []
    assert "<h1>" in report.html()

    assert "Every row is misclassified" in report.text()


def test_labels_that_cannot_match_or_are_missing_are_refused():
    X, y = np.random.default_rng(0).random((40, 2)), np.arange(40) % 2
    with pytest.raises(ValueError, match="predicts 'no', 'yes', and the true labels are '0', '1'"):
        report_holes(np.array(["no", "yes"])[y], X, y)
    for gone, kind in ((np.nan, float), (None, object), (pd.NA, object)):
        some = y.astype(kind)
        some[3:5] = gone
        with pytest.raises(ValueError, match="y has no label in 2 of 40 rows"):
            report_holes(y, X, some)


def test_labels_of_a_model_with_groups_are_its_groups():
    digits = load_digits()
    X, y = digits.data, digits.target
    groups = {"low": range(5), "high": range(5, 10)}
    model = ErrorClumpingClassifier(1.0, label_groups=groups).fit(X[:300], y[:300])
    pipeline = make_pipeline(StandardScaler(), model).fit(X[:300], y[:300])
    named = np.where(y < 5, "low", "high")
    for one in (model, pipeline):
        report = report_holes(one, X[300:600], y[300:600])
        assert report.overall.errors == (one.predict(X[300:600]) != named[300:600]).sum()
        assert report.html() == report_holes(one, X[300:600], named[300:600]).html()
        assert report.headline == "Where ErrorClumpingClassifier fails"
    with pytest.raises(ValueError, match="Give y in the labels that the model predicts"):
        report_holes(model.predictor_, X, y)


def test_labels_that_the_model_does_not_know_are_told():
    digits = load_digits()
    X, y = digits.data[:1000], digits.target[:1000]
    known = y[:600] < 9
    model = LogisticRegression(C=1e-4).fit(X[:600][known], y[:600][known])
    nines = int((y[600:] == 9).sum())
    report = report_holes(model, X[600:], y[600:])
    assert f"{nines} rows have label 9, which the model does not know." in report.html()
    assert f"{nines} rows have label 9, which the model does not know." in " ".join(
        report.text().split()
    )
    never = report_holes(model.predict(X[600:]), X[600:], y[600:].astype(str))
    assert f"{nines} rows have label '9', which the model never predicts here." in never.text(200)
    odd = np.where(np.arange(len(y)) == 700, 11, y)
    both = report_holes(model, X[600:], odd[600:]).text(200)
    assert f"{nines + 1} rows have one of the labels 9, 11, which the model does not know." in both
    fine = report_holes(model, X[:600][known], y[:600][known])
    assert "does not know" not in fine.text()


def test_labels_spelled_as_text_are_the_same_labels():
    X, y = np.random.default_rng(0).random((40, 2)), np.arange(40) % 2
    assert report_holes(y.astype(str), X, y).overall.errors == 0


def test_a_linear_fix_says_what_it_goes_by():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(0, 1, (3000, 3)), columns=["a", "b", "c"])
    corner = (X.a > 0.8).to_numpy()
    y = np.where(corner, X.b > 0.5, X.c > 0.5)
    report = report_holes(np.where(corner, rng.random(3000) < 0.5, y), X, y)
    best = report.clumps[0]
    assert (best.fix.kind, best.fix.verdict) == ("linear", "helps")
    assert _counted(report.html()) == (3000, report.overall.errors)
    said = " ".join(report.text().split())
    assert "It relies mostly on b (a high value suggests “True”)" in said
    assert "It relies mostly on b (a high value suggests “True”)" in report.html()


def test_too_few_rows_are_said_to_be_too_few():
    X, y = np.random.default_rng(0).random((36, 2)), np.arange(36) % 2
    wrong = np.where(X[:, 0] < 0.3, 1 - y, y)
    said = " ".join(report_holes(wrong, X, y).text().split())
    assert "too few to look for clumps. A clump must have at least 10 rows" in said
    assert "Give at least 40 rows" in said
    assert report_holes(wrong, X, y).clumps == []
    assert "too few to look" not in report_holes(wrong, X, y, min_rows=3).text()


def test_few_errors_are_said_to_be_few():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(400, 8)), np.arange(400) % 2
    near = np.argsort(np.square(X - 1).sum(axis=1))[:4]
    strewn = rng.choice(400, 4, replace=False)
    for rows, said in ((near, "are closer to each other than"), (strewn, "are no closer to each")):
        wrong = np.isin(np.arange(400), rows)
        report = report_holes(np.where(wrong, 1 - y, y), X, y)
        for text in (" ".join(report.text().split()), report.html()):
            assert (
                "There are too few errors to look for clumps of at least 10 rows: the searched"
                in text
            )
            assert said in text
            assert "No clump" not in text
    one = report_holes(np.where(np.arange(400) == 3, 1 - y, y), X, y)
    assert "the searched half has 1." in " ".join(one.text().split())
    assert one.nearness is None
    many = np.where(np.arange(400) % 19 == 0, 1 - y, y)  # 22 errors
    assert "No clump of errors" in report_holes(many, X, y).text()


def test_rows_are_numbered_from_where_they_are_asked_to_be(found):
    frame, y, _ = shop()
    other = report_holes(KnowsIncome(frame), frame, y, first_row=1, source="shop.csv")
    assert other.headline == "Where KnowsIncome fails on shop.csv"
    assert "The first row of shop.csv is row 1." in " ".join(other.text().split())
    assert "The first row of the table is row 0." in " ".join(found.text().split())
    row = int(found.clumps[0].rows[0])
    for report, number in ((found, row), (other, row + 1)):
        first = report.html().split("<tbody>")[1]
        assert re.search("<td class=.n.>(.*?)</td>", first)[1] == str(number)


def test_the_text(found):
    text = found.text(width=90)
    assert "Where KnowsIncome fails" in text
    assert "Clump 1" in text
    assert "A local fix helps" in text
    assert max(map(len, text.splitlines())) <= 90
    assert str(found) == found.text()


def test_pictures_are_shown_as_pictures():
    digits = load_digits()
    X, y = digits.data, (digits.target > 4).astype(int)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01)).fit(X[::3], y[::3])
    keep = np.arange(len(X)) % 3 > 0
    report = report_holes(model, X[keep], y[keep], image_shape=(8, 8))
    assert report.clumps
    page = report.html()
    assert page.count("data:image/png;base64,") > len(report.clumps)
    assert "figure" in page
    with pytest.raises(ValueError, match="have 63 pixels"):
        report_holes(model, X[keep], y[keep], image_shape=(7, 9))


def test_the_page_needs_no_network(found):
    page = found.html()
    assert not re.search(r"https?://", page)
    assert not re.search(r"<(link|iframe|script src|img src=\"(?!data:))", page)
    assert page.count("<details") == len(found.clumps)
    assert "error on fresh rows with local fixes" in page
    assert page.startswith("<!doctype html>")


def test_names_cannot_break_the_page():
    rng = np.random.default_rng(0)
    bad = "<script>alert(1)</script>"
    X = pd.DataFrame({bad: rng.random(600), "b": rng.choice(["<b>", '"q"'], 600)})
    y = np.where(X[bad] > 0.8, "<i>no", "yes")
    report = report_holes(np.repeat("yes", 600), X, y, title=bad)
    assert report.clumps
    page = report.html()
    assert "<script>alert" not in page
    assert "<i>no" not in page
    assert "<td><b>" not in page


def test_saving(found, tmp_path):
    found.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == found.html()


def test_the_same_seed_gives_the_same_report(found):
    frame, y, _ = shop()
    assert report_holes(KnowsIncome(frame), frame, y).html() == found.html()


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.ones((5, 2)), np.ones(4), "5 rows, but y has 4"),
        (np.ones((3, 2)), np.ones(3), "at least 4 labels"),
        (np.ones(5), np.ones(5), "table of rows"),
    ],
)
def test_bad_input(X, y, message):
    with pytest.raises(ValueError, match=message):
        report_holes(np.zeros(len(y)), X, y)


def test_what_is_no_classifier_is_refused():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.arange(40) % 2
    other = LinearRegression().fit(X, y)
    with pytest.raises(ValueError, match="LinearRegression is not a classifier"):
        report_holes(other, X, y)
    with pytest.raises(ValueError, match="KMeans is not a classifier"):
        report_holes(KMeans(2, n_init=1).fit(X), X, y)
    for labels in (y, np.where(y, "yes", "no")):
        with pytest.raises(ValueError, match="is not a classifier: it predicts numbers such as"):
            report_holes(other.predict(X), X, labels)
    with pytest.raises(ValueError, match="None is not a classifier: it has no predict"):
        report_holes(None, X, y)
    with pytest.raises(ValueError, match="of type object is not a classifier"):
        report_holes(object(), X, y)


def test_bad_settings():
    with pytest.raises(ValueError, match="at least 1"):
        report_holes(np.zeros(5), np.ones((5, 1)), np.zeros(5), n_clumps=0)
    with pytest.raises(ValueError, match="predictions for"):
        report_holes(np.zeros(4), np.ones((5, 1)), np.zeros(5))


# -- its parts ---------------------------------------------------------------------------------


def test_points_are_alike_in_every_column():
    frame = pd.DataFrame(
        {
            "n": [1.0, 2.0, 3.0, np.nan],
            "huge": [1e6, 2e6, 3e6, 4e6],
            "c": pd.Categorical(["u", "v", None, "u"]),
            "flat": [5, 5, 5, 5],
        }
    )
    table = as_table(frame)
    assert table.Z.shape == (4, 2 + 1 + 2 + 1)
    assert np.isfinite(table.Z).all()
    assert table.Z[:, 2].std() == pytest.approx(1.0)
    assert table.Z[:, 1].tolist() == [0, 0, 0, 1]  # the column that says n is missing
    assert table.Z[2, 3:5].tolist() == [0, 0]
    assert not table.Z[:, 5].any()


def test_features_count_by_how_much_errors_depend_on_them():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "noise": rng.standard_normal(2000),
            "middle": rng.standard_normal(2000),  # neither high nor low, and some missing
            "kind": rng.choice(list("abc"), 2000),
        }
    )
    wrong = (frame.middle.abs() < 0.3).to_numpy() | (frame.kind == "a").to_numpy()
    frame.loc[::10, "middle"] = np.nan
    table = as_table(frame)
    even, every = np.full(2000, wrong.mean()), np.arange(2000)
    weights = focus(table, wrong, even, every)
    assert table.owner.tolist() == [0, 1, 1, 2, 2, 2]
    assert weights[0] <= 0.2 < 0.3 < weights[1] == weights[2]
    assert weights[3] == weights[5] == 1.0
    assert focus(table, np.zeros(2000), np.full(2000, 1e-9), every).tolist() == [1.0] * 6
    # Errors that are expected give no feature weight, others do.
    expected = np.where(frame.kind == "a", 0.9, 0.1)
    raised = np.where(frame.noise > 0.5, np.maximum(expected, 0.6), expected)
    surprising = rng.random(2000) < raised
    weights = focus(table, surprising, expected, every)
    assert weights[0] > 0.5 > focus(table, surprising, np.full(2000, surprising.mean()), every)[0]
    pixels = as_table(rng.random((50, 4)), (2, 2))
    assert focus(pixels, np.arange(50) < 9, np.full(50, 0.2), np.arange(50)).tolist() == [1.0] * 4


def test_gaps_are_those_of_scipy():
    from scipy.stats import ks_2samp

    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    X[:40, 1] += 1.0
    (gaps,) = feature_gaps(as_table(X), [np.arange(40)])
    assert gaps[0].name == "x1"
    assert gaps[0].gap == pytest.approx(ks_2samp(X[:40, 1], X[40:, 1]).statistic)
    assert sum(bar[1] for bar in gaps[0].bars) == pytest.approx(1.0)
    assert sum(bar[2] for bar in gaps[0].bars) == pytest.approx(1.0)


def test_gaps_of_categories_truth_values_and_missing_ones():
    frame = pd.DataFrame(
        {
            "c": ["a"] * 30 + ["b"] * 70,
            "t": [True] * 30 + [False] * 70,
            "gone": [np.nan] * 30 + [1.0] * 70,
        }
    )
    said = [gap.sentence for gap in feature_gaps(as_table(frame), [np.arange(30)])[0]]
    assert "c is “a” in 100 % of the clump, in 0 % elsewhere." in said
    assert "t is 1 in 100 % of the clump, in 0 % elsewhere." in said
    assert "gone is missing in 100 % of the clump, in 0 % elsewhere." in said


def test_columns_of_points_in_words():
    frame = pd.DataFrame(
        {"n": [1.0, 2.0, np.nan, 4.0], "c": ["u", "v", "u", "w"], "flat": [5, 5, 5, 5]}
    )
    table = as_table(frame)
    assert [table.meaning(j) for j in range(table.Z.shape[1])] == [
        ("n", "a high value"),
        ("n missing", "it"),
        ("c “u”", "it"),
        ("c “v”", "it"),
        ("c “w”", "it"),
        ("flat", "a high value"),
    ]
    pixels = as_table(np.eye(4)[:, [0, 1, 2, 3, 0, 1]], (2, 3))
    assert pixels.meaning(4) == ("the pixel in row 2, column 2", "a large value")


def test_numbers_that_are_missing_more_often_are_told():
    rng = np.random.default_rng(0)
    number = rng.standard_normal(400)
    number[:100:2] = np.nan  # half of the clump, and a tenth of the others
    number[100::10] = np.nan
    ((gap,),) = feature_gaps(as_table(pd.DataFrame({"n": number})), [np.arange(100)])
    assert gap.gap == pytest.approx(0.4)
    assert gap.sentence == "n is missing in 50 % of the clump, in 10 % elsewhere."


def test_the_centre_is_the_row_in_the_middle():
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 10, (3000, 2))
    y = np.zeros(3000, dtype=int)
    near = np.linalg.norm(X - 5, axis=1)
    predicted = np.where(rng.random(3000) < np.where(near < 1, 0.9, np.where(near < 2, 0.5, 0.02)),
                         1, 0)  # fmt: skip
    y[0], predicted[0] = 1, 1
    report = report_holes(predicted, X, y, image_shape=(1, 2))  # pictures have no rules
    Z = report.table.Z
    balls = [clump for clump in report.clumps if clump.rule is None]
    assert balls
    for clump in balls:
        ball = clump.shape
        distance = np.linalg.norm(Z * ball.weights - ball.centre, axis=1)
        assert distance[clump.rows].max() <= ball.radius
        assert np.all(np.diff(distance[clump.rows]) >= 0)
        assert clump.centre == clump.rows[0]


def test_columns_that_do_not_vary_and_names_that_do_not_differ():
    y = np.arange(60) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report_holes(np.zeros(60, dtype=int), np.ones((60, 3)), y).html()
    frame, y, _ = shop(600)
    frame.columns = ["age", "income", "age"]
    page = report_holes(np.where(frame.iloc[:, 1] > frame.income.median(), 1, 0), frame, y).html()
    head = re.search(r'<table class="rows"><thead>(.*?)</thead>', page).group(1)
    assert head.count(">age<") == 2


def test_one_odd_label_does_not_rule_out_a_linear_fix():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((200, 2))
    truth = np.where(Z[:, 0] > 0, "b", "a")
    truth[0] = "odd"
    fix = try_fix(Z, truth, np.repeat("c", 200), np.arange(100), np.arange(100, 200))
    assert (fix.kind, fix.verdict) == ("linear", "helps")


@pytest.mark.parametrize(
    ("better", "worse", "verdict"),
    [
        (40, 20, "helps"),
        (40, 28, "may help"),
        (40, 38, "no clear difference"),
        (40, 40, "does not help"),
        (30, 40, "does not help"),
    ],
)
def test_what_luck_does_as_well_makes_no_clear_difference(better, worse, verdict):
    """The fix says 1 of every row, and is right where the classifier is not in so many."""
    old, new = np.arange(40), np.arange(40, 200)
    truth, predicted = np.ones(200, dtype=int), np.ones(200, dtype=int)
    predicted[old] = 0
    predicted[40 : 40 + better] = 0
    truth[40 + better : 40 + better + worse] = predicted[40 + better : 40 + better + worse] = 0
    fix = try_fix(np.zeros((200, 1)), truth, predicted, old, new)
    assert (fix.kind, fix.before, fix.after) == ("constant", better, worse)
    assert fix.verdict == verdict


def changed(report, errors):
    return replace(report, fixed=Rate(errors, report.fixed.rows))


def test_an_error_that_hardly_changes_is_not_said_to_fall(found):
    fresh = found.on_fresh
    one = changed(found, fresh.errors - 1)
    said = re.search(r"on fresh rows from (.*) % to (.*) %\.", one.text(1000))
    assert float(said.group(1)) > float(said.group(2))
    assert f"{said.group(1)}\N{NO-BREAK SPACE}% → {said.group(2)}\N{NO-BREAK SPACE}%" in one.html()
    same = changed(found, fresh.errors)
    assert "would not change the error on fresh rows" in same.text(1000)
    assert "→" not in same.html()
    assert "would not lower the error" in changed(found, fresh.errors + 1).text(1000)
    clump = found.clumps[0]
    fix = replace(clump.fix, verdict="no clear difference", after=clump.fix.before - 2, luck=0.9)
    vague = replace(found, clumps=[replace(clump, fix=fix), *found.clumps[1:]])
    assert "A local fix makes no clear difference: " in vague.text(1000)
    assert "A local fix makes no clear difference: " in vague.html()
    assert 'class="good">local fix' not in vague.html()  # what does not help is no headline


def test_the_text_has_the_rows_that_its_rates_are_of(found):
    text = found.text(200)
    for clump in found.clumps:
        rates = (
            f"{clump.inside.errors} of {clump.inside.rows} fresh rows inside are wrong, and "
            f"{clump.outside.errors} of {clump.outside.rows} outside all clumps"
        )
        assert rates in text
        assert rates in found.html()
        searched = f"In the search, {clump.searched.errors} of {clump.searched.rows} inside were"
        assert searched in text
        assert f"of {clump.searched.errors + clump.inside.errors} in both halves." in text
        row = rf"{len(clump.rows)} +{clump.inside.rows} +{percent(clump.inside.share)} "
        assert re.search(row, text)


def test_a_fix_is_chosen_without_fresh_rows():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((200, 2))
    truth = (Z[:, 0] > 0).astype(int)
    old, new = np.arange(100), np.arange(100, 200)
    fix = try_fix(Z, truth, 1 - truth, old, new)
    assert (fix.kind, fix.verdict, fix.before) == ("linear", "helps", 100)
    assert fix.leans_on == ((0, 1),)
    assert try_fix(-Z, truth, 1 - truth, old, new).leans_on == ((0, 0),)
    three = np.digitize(Z[:, 1], [-0.5, 0.5])
    assert try_fix(Z, three, (three + 1) % 3, old, new).leans_on[0] == (1, 2)
    other = truth.copy()
    other[new] = 1 - other[new]  # on fresh rows the same fix is all wrong
    fix = try_fix(Z, other, 1 - truth, old, new)
    assert (fix.kind, fix.verdict) == ("linear", "does not help")
    assert fix.after > fix.before == 0
    constant = try_fix(Z, np.ones(200), np.zeros(200), old, new)
    assert (constant.kind, constant.says, constant.after) == ("constant", 1.0, 0)
    few = try_fix(Z, np.ones(200), np.zeros(200), old, new[:3])
    assert few.verdict == "too few rows to tell"
    keep = try_fix(Z, truth, truth, old, new)
    assert (keep.kind, keep.labels) == ("keep", None)


def test_labels_in_no_group_are_errors_that_are_told():
    digits = load_digits()
    X, y = digits.data, digits.target
    groups = {"low": range(5), "high": range(5, 10)}
    model = ErrorClumpingClassifier(label_groups=groups).fit(X[:800], y[:800])
    strange, named = y[800:].copy(), np.where(y[800:] < 5, "low", "high").astype(object)
    strange[:5], named[:5] = 77, "other"
    wrong = model.predict(X[800:]) != np.where(y[800:] < 5, "low", "high")
    for labels, told in ((strange, "'77'"), (named, "'other'")):
        report = report_holes(model, X[800:], labels)
        assert report.overall.errors == 5 + wrong[5:].sum()
        said = " ".join(report.text().split())
        assert f"5 rows have label {told}, which the model does not know" in said
