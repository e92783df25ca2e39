"""Surprising and hard clumps, losses, and halves that do not depend on the order of the rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from laconic import report_holes
from laconic.report.clump_words import rates_sentence


def risky(seed, n=2000, pocket=True):
    """Rows whose errors are expected where x is near 0, and a pocket of unexpected ones."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "age": rng.integers(18, 90, n),
            "work": rng.choice(["gov", "own", "firm", "none"], n, p=[0.15, 0.15, 0.6, 0.1]),
            "noise": rng.normal(size=n),
        }
    )
    predicted = (frame.x > 0).astype(int).to_numpy()
    probability = 1.0 / (1.0 + np.exp(-2.5 * np.abs(frame.x.to_numpy())))
    planted = ((frame.work == "gov") & (frame.age > 55)).to_numpy() & pocket
    # The probabilities are too high by a curve, which recalibration must find.
    error = np.where(planted, 0.55, np.minimum(1.3 * (1 - probability), 0.6))
    wrong = rng.random(n) < error
    return frame, np.where(wrong, 1 - predicted, predicted), predicted, probability, planted


def test_a_pocket_is_told_from_what_is_hard():
    frame, y, predicted, probability, planted = risky(0, 4000)
    report = report_holes(predicted, frame, y, probabilities=probability)
    best = report.clumps[0]
    assert (best.kind, best.confirmed) == ("surprising", True)
    assert {c.column.name for c in best.rule.conditions} == {"age", "work"}
    inside = np.isin(np.arange(len(y)), best.rows)
    assert 2 * (inside & planted).sum() / (inside.sum() + planted.sum()) > 0.8
    assert best.inside.errors > 1.5 * best.expected
    hard = [clump for clump in report.clumps if clump.kind == "hard" and clump.confirmed]
    assert np.abs(frame.x[hard[0].rows]).mean() < 0.5 * np.abs(frame.x).mean()
    for clump in hard:
        assert clump.expected > clump.inside.rows * clump.outside.share
    kinds = [clump.kind for clump in report.clumps if clump.confirmed]
    assert kinds == sorted(kinds, key=["surprising", "hard"].index)
    text, page = " ".join(report.text(200).split()), report.html()
    assert "Fresh rows confirm 1 surprising clump" in text
    assert "where the model's probabilities predict" in text
    assert 'class="surprising">surprising</b>' in page
    assert "work is gov" in page
    assert "df[&#x27;work&#x27;] == &#x27;gov&#x27;" in page
    assert "SQL: WHERE" in text


def test_clumps_share_no_row_and_say_how_many_their_shape_holds_too():
    frame, y, predicted, probability, _ = risky(0, 4000)
    report = report_holes(predicted, frame, y, probabilities=probability)
    rows = np.concatenate([clump.rows for clump in report.clumps])
    assert len(np.unique(rows)) == len(rows)
    rules = [clump for clump in report.clumps if clump.rule is not None]
    assert any(clump.shared for clump in rules)
    for clump in rules:
        assert clump.rule.holds().sum() == len(clump.rows) + clump.shared
        assert clump.rule.holds()[clump.rows].all()


@pytest.mark.parametrize("digits", [6, 1, 0])
def test_a_shuffled_table_gives_the_same_report(digits):
    """Also if many rows are equally far from each other, or alike."""
    frame, y, predicted, probability, _ = risky(1, 1200)
    frame = frame.drop(columns="noise").assign(
        x=frame.x.round(digits), age=frame.age // 10 if digits == 0 else frame.age
    )
    probability = np.round(probability, 2)
    report = report_holes(predicted, frame, y, probabilities=probability)
    order = np.random.default_rng(0).permutation(len(y))
    other = report_holes(
        predicted[order], frame.iloc[order], y[order], probabilities=probability[order]
    )
    assert len(report.clumps) == len(other.clumps) > 0
    for one, two in zip(report.clumps, other.clumps, strict=True):
        assert (one.kind, one.chance, one.inside) == (two.kind, two.chance, two.inside)
        assert str(one.rule) == str(two.rule)
        assert np.array_equal(
            frame.iloc[one.rows].to_numpy(), frame.iloc[order].iloc[two.rows].to_numpy()
        )
    assert other.places.tolist() == report.places.tolist()
    numbers = {f"{row}{m}{c}" for row in range(len(y)) for m in ("", "*") for c in ("", ",")}
    assert set(other.text().split()) - set(report.text().split()) <= numbers | {"-0"}


def test_copies_of_a_row_are_in_both_halves():
    y = np.arange(1000) % 2
    report = report_holes(y, pd.DataFrame({"a": np.repeat([1, 2], 500)}), y)
    for value in (1, 2):
        for label in (0, 1):
            same = (report.table.columns[0].values == value) & (y == label)
            assert 90 < report.fresh[same].sum() < 160
    again = report_holes(y, pd.DataFrame({"a": np.repeat([1, 2], 500)}), y, random_state=1)
    assert (again.fresh != report.fresh).any()


def test_no_surprise_where_rows_fail_as_expected():
    """Five tables without a pocket; the probabilities are wrong by a curve only."""
    for seed in range(5):
        frame, y, predicted, probability, _ = risky(seed, 1200, pocket=False)
        report = report_holes(predicted, frame, y, probabilities=probability)
        assert not any(c.confirmed and c.kind == "surprising" for c in report.clumps)


def test_what_is_only_hard_is_said_not_to_be_surprising():
    frame, y, predicted, probability, _ = risky(0, 3000, pocket=False)
    report = report_holes(predicted, frame, y, probabilities=probability)
    hard = [clump for clump in report.clumps if clump.confirmed]
    assert {clump.kind for clump in hard} == {"hard"}
    assert "There is no surprising clump" in " ".join(str(report).split())
    for clump in report.clumps:
        assert (
            clump.inside.share > report.on_fresh.share
        )  # hard, so worse than the model as a whole
    alone = report_holes(predicted, frame, y)
    assert "Without probabilities, rows that are hard" in " ".join(str(alone).split())


def test_hard_clumps_say_when_they_may_be_surprising():
    frame, y, predicted, probability, _ = risky(0, 3000, pocket=False)
    report = report_holes(predicted, frame, y, probabilities=probability)
    hard = [clump for clump in report.clumps if clump.kind == "hard"]
    assert hard
    for clump in hard:
        # If the errors are about as many as expected, so many have no small chance.
        assert clump.inside.errors < clump.expected + 2 * clump.expected**0.5
        assert clump.beyond > 0.02
        for chance, doubt in ((0.04, True), (0.06, False)):
            other = replace(clump, beyond=chance)
            assert other.as_expected is not doubt
            assert ("The clump may be surprising" in rates_sentence(report, other)) is doubt


def test_a_model_that_is_surest_where_it_fails_is_not_said_to_expect_it():
    """The recalibration learns such a pocket, so the report tells what the model itself says."""
    rng = np.random.default_rng(0)
    shop = rng.choice(["p", "q", "r"], 4000, p=[0.1, 0.45, 0.45])
    sure = np.where(shop == "p", 0.999, rng.uniform(0.6, 0.99, 4000))
    wrong = rng.random(4000) < np.where(shop == "p", 0.5, 1 - sure)
    y = rng.integers(0, 2, 4000)
    frame = pd.DataFrame({"shop": shop, "x": rng.normal(size=4000)})
    report = report_holes(np.where(wrong, 1 - y, y), frame, y, probabilities=sure)
    first = report.clumps[0]
    assert str(first.rule) == "shop is p"
    if first.kind == "hard":
        assert first.too_sure
        assert not first.as_expected
        assert "far too sure of these rows" in rates_sentence(report, first)
        assert "as the model expects" not in " ".join(str(report).split())


@pytest.mark.parametrize("broken", [np.nan, 1.5, -0.25, 0.2])
def test_probabilities_of_a_model_that_are_none_are_refused(broken):
    frame, y, *_ = risky(2, 400)
    X = frame[["x", "age", "noise"]]
    model = LogisticRegression(max_iter=1000).fit(X, y)

    class Broken(LogisticRegression):
        def predict_proba(self, X):
            every = super().predict_proba(X)
            every[7, 0] = broken if broken != 0.2 else every[7, 0] + 0.2
            return every

    model.__class__ = Broken
    with pytest.raises(ValueError, match=r"for row 7\. These are no probabilities"):
        report_holes(model, X, y)


def test_the_last_bits_of_probabilities_do_not_matter():
    frame, y, predicted, probability, _ = risky(3, 1200)
    report = report_holes(predicted, frame, y, probabilities=probability)
    other = report_holes(predicted, frame, y, probabilities=np.nextafter(probability, 0.0))
    assert np.array_equal(report.fresh, other.fresh)


def test_a_model_is_asked_for_its_probabilities():
    frame, y, *_ = risky(2)
    X = frame[["x", "age", "noise"]]
    model = LogisticRegression(max_iter=1000).fit(X[::2], y[::2])
    report = report_holes(model, X[1::2], y[1::2])
    assert np.allclose(report.probability, model.predict_proba(X[1::2]).max(axis=1))
    assert report_holes(model.predict(X[1::2]), X[1::2], y[1::2]).probability is None


def test_probabilities_that_cannot_be_those_of_the_predicted_labels():
    frame, y, predicted, probability, _ = risky(0, 400)
    positive = np.where(predicted == 1, probability, 1 - probability)
    for wrong, said in (
        (positive, "may be the probabilities of one of them"),
        (probability * 2, "between 0 and 1"),
        (probability[:-1], "one number for each of 400 rows"),
    ):
        with pytest.raises(ValueError, match=said):
            report_holes(predicted, frame, y, probabilities=wrong)


def test_losses_clump_where_they_are_large():
    rng = np.random.default_rng(0)
    frame, *_ = risky(0)
    bad = ((frame.work == "own") & (frame.age <= 40)).to_numpy()
    losses = rng.exponential(np.where(bad, 3.0, 1.0))
    report = report_holes(None, frame, losses=losses, title="the regression")
    best = report.clumps[0]
    assert (best.kind, best.confirmed) == ("plain", True)
    inside = np.isin(np.arange(len(frame)), best.rows)
    assert 2 * (inside & bad).sum() / (inside.sum() + bad.sum()) > 0.7
    fresh = best.rows[report.fresh[best.rows]]
    assert best.inside.share == pytest.approx(losses[fresh].mean())
    text, page = " ".join(report.text(200).split()), report.html()
    assert "The mean loss of 2,000 rows is" in text
    assert "misclassified" not in text + page
    assert "true" not in page.split("<thead>")[1].split("</thead>")[0]
    for seed in range(4):
        strewn = np.random.default_rng(seed).exponential(1.0, len(frame))
        even = report_holes(None, frame, losses=strewn)
        assert not any(clump.confirmed for clump in even.clumps)
    with pytest.raises(ValueError, match="take the place of"):
        report_holes(None, frame, np.ones(len(frame)), losses=losses)
    with pytest.raises(ValueError, match="finite numbers"):
        report_holes(None, frame, losses=np.append(losses[1:], np.nan))
    with pytest.raises(ValueError, match="2000 rows, but losses has 9"):
        report_holes(None, frame, losses=losses[:9])
