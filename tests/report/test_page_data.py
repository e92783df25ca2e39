"""Rows in the page: what is there, what is not, and how many bytes they may take."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from laconic import report_holes
from laconic.report import page_data
from laconic.report.page_data import page_rows
from problems import EVIL, flipped, hostile_rows


@pytest.fixture(scope="module")
def report():
    frame, y, predicted = hostile_rows()
    chance = np.random.default_rng(1).uniform(0.9, 1, len(y))
    return report_holes(
        predicted, frame, y, probabilities=chance, ignore=["secret"], first_row=1, source="t.csv"
    )


def rows_of(data, number):
    """Return the rows of a clump, as the script reads them."""
    texts = data["texts"]
    return [
        [texts[j][v] if texts[j] is not None and v is not None else v for j, v in enumerate(row)]
        for row in data["regions"][number]["rows"]
    ]


def test_all_rows_of_all_clumps_are_there(report):
    frame = hostile_rows()[0]
    kept = page_rows(report)
    data = json.loads(kept.text)
    assert data["columns"] == [
        "row", "true", "predicted", "probability", "wrong", "half",
        "row (2)", "wrong (2)", "wait (days)", "when", "x",
    ]  # fmt: skip
    assert kept.held == [len(clump.rows) for clump in report.clumps]
    for number, clump in enumerate(report.clumps):
        rows = rows_of(data, number)
        assert [row[0] for row in rows] == (clump.rows + 1).tolist()
        for row, values in zip(clump.rows.tolist(), rows, strict=True):
            of = frame.iloc[row]
            assert values[1:3] == [report.truth[row], report.predicted[row]]
            assert values[3] == pytest.approx(report.probability[row], abs=1e-6)
            assert values[4] == report.wrong[row]
            assert values[5] == ("fresh" if report.fresh[row] else "searched")
            assert values[6] == of["row"]
            assert values[7] == (None if pd.isna(of["wrong"]) else of["wrong"])
            assert values[8] == pytest.approx(of["wait"] / pd.Timedelta("1D"))
            assert values[9] == of["when"].strftime("%Y-%m-%d")
            assert values[10] is None if pd.isna(of["x"]) else values[10] == of["x"]


def test_nothing_in_the_rows_can_end_the_script(report):
    page = report.html()
    data = re.search(r'<script type="application/json" id="rows">(.*?)</script>', page, re.S)[1]
    assert json.loads(data) == json.loads(page_rows(report).text)
    assert EVIL in json.loads(data)["texts"][7]
    assert page.count("</script>") == 2
    assert not set("<>&\u2028\u2029") & set(data)


def test_ignored_columns_are_never_in_the_page(report):
    assert "s3cret" not in report.html()
    assert "Ignored columns are not in it." in report.html()


def test_a_page_without_rows(report, tmp_path):
    report.save(tmp_path / "page.html", rows=False)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page == report.html(rows=False)
    assert "This page has no rows of the data" in page
    for part in ('id="rows"', "<table", "<td", 'class="save"', "CSV"):
        assert part not in page.split("<script>")[0]
    assert "This page contains" not in page
    assert page.count("<details") == len(report.clumps)
    digits = np.random.default_rng(0).random((400, 16))
    digits[:80] *= 0.2
    y = np.arange(400) % 2
    pictures = report_holes(flipped(y, np.arange(400) < 80), digits, y, image_shape=(4, 4))
    assert "data:image" in pictures.html()
    assert "data:image" not in pictures.html(rows=False)


def test_a_page_without_rows_quotes_no_cell():
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 1000, 400).astype(str).astype(object)
    cells[78] = "John Smith"
    frame = pd.DataFrame({"x": rng.normal(size=400), "amount": cells})
    y = np.arange(400) % 2
    report = report_holes(flipped(y, frame.x > 0.8), frame, y)
    assert "John Smith" in report.html()
    assert "John Smith" not in report.html(rows=False)


@pytest.mark.parametrize("most", [200, 3000, 6000])
def test_the_cap_holds_and_the_nearest_rows_are_kept(report, monkeypatch, most):
    monkeypatch.setattr(page_data, "MOST_BYTES", most)
    kept = page_rows(report)
    data = json.loads(kept.text)
    frame = len(json.dumps({**data, "regions": [], "texts": []})) + 120 * len(report.clumps)
    assert len(kept.text.encode()) <= most + frame
    assert sum(kept.held) < sum(len(clump.rows) for clump in report.clumps)
    full = [n for n, c in zip(kept.held, report.clumps, strict=True) if n < len(c.rows)]
    assert max(full) - min(full) <= 1
    for number, clump in enumerate(report.clumps):
        numbers = [row[0] - 1 for row in data["regions"][number]["rows"]]
        assert numbers == clump.rows[: len(numbers)].tolist()
        for column, texts in enumerate(data["texts"]):  # no text that no row has
            used = {row[column] for one in data["regions"] for row in one["rows"]} - {None}
            assert texts is None or used == set(range(len(texts)))


def test_a_cap_is_told(report, monkeypatch):
    assert f"all {len(report.clumps[0].rows):,} rows of the clump" in report.html()
    monkeypatch.setattr(page_data, "MOST_BYTES", 5000)
    held = page_rows(report).held
    said = f"the {held[0]:,} rows nearest to its centre, of {len(report.clumps[0].rows):,}."
    assert said in report.html()
    monkeypatch.setattr(page_data, "MOST_BYTES", 10)
    assert 'class="save"' not in report.html()  # there is nothing to download


def test_losses_and_pictures_can_be_downloaded_too():
    rng = np.random.default_rng(0)
    X = rng.random((1000, 4))
    losses = rng.exponential(np.where(X[:, 0] > 0.8, 4.0, 1.0))
    for shape in (None, (2, 2)):
        report = report_holes(None, X, losses=losses, image_shape=shape)
        data = json.loads(page_rows(report).text)
        assert data["columns"] == ["row", "loss", "high_loss", "half", "x0", "x1", "x2", "x3"]
        for row, loss, high, _, *values in rows_of(data, 0):
            assert (loss, high) == (losses[row], report.truth[row])
            assert values == X[row].tolist()
