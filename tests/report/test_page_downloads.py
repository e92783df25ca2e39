"""Rows saved from the page in a real browser, and filters copied from it."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

from laconic import report_holes
from laconic.notebook import frame as framed
from problems import EVIL, hostile_rows

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report():
    frame, y, predicted = hostile_rows()
    chance = np.random.default_rng(1).uniform(0.9, 1, len(y))
    return report_holes(predicted, frame, y, probabilities=chance, ignore=["secret"], first_row=1)


@pytest.fixture
def opened(browser, report, tmp_path):
    report.save(tmp_path / "page.html")
    page = browser.new_page()
    troubles = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", lambda box: troubles.append(box.message))
    page.goto((tmp_path / "page.html").as_uri())
    yield page
    page.close()
    assert troubles == []


def saved(page, number, kind, where=None):
    """Click a button of a clump and return the name and the text of the file."""
    clump = (where or page).locator("details.clump").nth(number)
    if clump.get_attribute("open") is None:
        clump.locator("summary").click()
    with page.expect_download() as waited:
        clump.locator(f'.save button[data-kind="{kind}"]').click()
    with open(waited.value.path(), encoding="utf-8", newline="") as file:
        return waited.value.suggested_filename, file.read()


def test_json_has_all_rows_of_a_clump(opened, report):
    frame = hostile_rows()[0]
    assert len(report.clumps) > 1
    for number, clump in enumerate(report.clumps):
        name, text = saved(opened, number, "json")
        assert name.startswith(f"clump-{number + 1}-")
        assert name.endswith(".json")
        rows = json.loads(text)
        assert [row["row"] for row in rows] == (clump.rows + 1).tolist()
        for at, row in zip(clump.rows.tolist(), rows, strict=True):
            assert "secret" not in row
            assert row["true"] == report.truth[at]
            assert row["predicted"] == report.predicted[at]
            assert row["probability"] == pytest.approx(report.probability[at], abs=1e-6)
            assert row["wrong"] == report.wrong[at]
            assert row["row (2)"] == frame["row"][at]
            was = frame["wrong"][at]
            assert row["wrong (2)"] == (None if pd.isna(was) else was)
            assert row["x"] is None if pd.isna(frame.x[at]) else row["x"] == frame.x[at]


def test_csv_is_read_back_as_it_was(opened, report):
    """By Python and by pandas: commas, quotes, ends of lines, other alphabets, missing cells."""
    for number in range(len(report.clumps)):
        rows = json.loads(saved(opened, number, "json")[1])
        name, text = saved(opened, number, "csv")
        assert name.endswith(".csv")
        assert text.startswith("\ufeffrow,true,")  # so that spreadsheets read UTF-8
        assert text.endswith("\r\n")
        head, *lines = csv.reader(io.StringIO(text[1:], newline=""), strict=True)
        assert head == list(rows[0])
        assert len(lines) == len(rows)
        for line, row in zip(lines, rows, strict=True):
            for cell, value in zip(line, row.values(), strict=True):
                if isinstance(value, bool):
                    assert cell == str(value).lower()
                elif isinstance(value, int | float):
                    assert float(cell) == value
                elif value is None:
                    assert cell == ""
                elif value.startswith("="):
                    assert cell == "'" + value
                else:
                    assert cell == value
        frame = pd.read_csv(io.StringIO(text[1:]))
        assert len(frame) == len(rows)
        assert np.allclose(
            frame.x, [np.nan if r["x"] is None else r["x"] for r in rows], equal_nan=True
        )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-2+3", "'-2+3"),
        ("@SUM(1)", "'@SUM(1)"),
        ("  =1", "'  =1"),
        ("\t=1", '"\'\t=1"'),
        ("\rx", '"\'\rx"'),
        ("\N{FULLWIDTH EQUALS SIGN}1", "'\N{FULLWIDTH EQUALS SIGN}1"),
        ("-5", "-5"),
        ("+49123", "+49123"),
        ("-1.5e-3", "-1.5e-3"),
        ('a"b', '"a""b"'),
        ("a,b", '"a,b"'),
        ("a\r\nb", '"a\r\nb"'),
        ("", '""'),
        (" a ", '" a "'),
        ("Zoë ☃", "Zoë ☃"),
        (EVIL, EVIL),
        (-5, "-5"),
        (0.1, "0.1"),
        (None, ""),
        (True, "true"),
    ],
)
def test_cells_of_csv(opened, text, expected):
    assert opened.evaluate("(cell) => csvCell(cell)", text) == expected


def test_a_page_in_the_frame_of_a_notebook_saves_files_too(browser, report, tmp_path):
    (tmp_path / "notebook.html").write_text(
        f"<!doctype html><meta charset=utf-8>{framed(report.html())}", encoding="utf-8"
    )
    page = browser.new_page()
    page.goto((tmp_path / "notebook.html").as_uri())
    name, text = saved(page, 0, "csv", page.frame_locator("iframe"))
    page.close()
    assert name.endswith(".csv")
    assert text.count("\r\n") >= len(report.clumps[0].rows)


def test_a_filter_can_be_copied(browser, report, tmp_path):
    report.save(tmp_path / "page.html")
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    number = next(i for i, clump in enumerate(report.clumps) if clump.rule is not None)
    clump, rule = page.locator("details.clump").nth(number), report.clumps[number].rule
    if clump.get_attribute("open") is None:
        clump.locator("summary").click()
    for place, filter_ in enumerate((rule.pandas, f"WHERE {rule.sql}")):
        button = clump.locator(".copy").nth(place)
        button.click()
        assert button.inner_text() == "copied"
        assert page.evaluate("navigator.clipboard.readText()") == filter_
    context.close()


def test_a_page_without_rows_still_works(browser, report, tmp_path):
    report.save(tmp_path / "page.html", rows=False)
    page = browser.new_page()
    troubles = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto((tmp_path / "page.html").as_uri())
    page.locator("details.clump summary").nth(1).click()
    page.locator('.ring[data-clump="1"]').wait_for(state="visible")
    assert page.locator("table, .save, .only").count() == 0
    page.close()
    assert troubles == []
