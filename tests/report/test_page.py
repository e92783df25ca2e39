"""The page in a real browser: it opens, lists the clumps, and a click shows the rows."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from laconic import report_holes
from laconic.look.numbers import percent

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report():
    digits = load_digits()
    X, y = digits.data, (digits.target > 4).astype(int)
    model = LogisticRegression(C=1e-4).fit(X[:600], y[:600])
    return report_holes(model, X[600:], y[600:], image_shape=(8, 8))


@pytest.fixture
def opened(browser, report, tmp_path):
    """The page, and everything that went wrong or over the network while it was open."""
    report.save(tmp_path / "page.html")
    page = browser.new_page()
    troubles = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda said: troubles.append(said.text))
    page.on("request", lambda asked: troubles.append(asked.url))
    page.goto((tmp_path / "page.html").as_uri())
    yield page
    page.close()
    assert [t for t in troubles if not t.startswith(("file:", "data:"))] == []


def test_the_page_opens_and_lists_the_clumps(opened, report):
    assert opened.title() == "Where LogisticRegression fails"
    assert opened.locator("details.clump").count() == len(report.clumps) > 1
    assert opened.locator(".tiles li").count() == 4


def test_a_click_shows_the_rows(opened, report):
    clump = opened.locator("details.clump").nth(1)
    pictures, dots = clump.locator(".rows figure"), opened.locator('circle.chosen[data-clump="1"]')
    assert not pictures.first.is_visible()
    assert dots.count() == 0
    clump.locator("summary").click()
    # Browsers tell the page a moment later that a part was opened: wait for what it then does.
    pictures.first.wait_for(state="visible")
    dots.first.wait_for(state="attached")
    assert pictures.count() == min(24, len(report.clumps[1].rows)) + 1
    clump.locator("summary").press("Enter")  # and the keyboard hides them
    pictures.first.wait_for(state="hidden")
    dots.first.wait_for(state="detached")


def test_only_misclassified_rows(opened, report):
    clump = opened.locator("details.clump").first
    right = clump.locator(".rows .right")
    shown = report.clumps[0].rows[:24]
    assert right.count() == int((~report.wrong[shown]).sum())
    clump.locator(".only input").check()
    clump.locator(".rows.only-wrong").wait_for()
    assert all(not figure.is_visible() for figure in right.all())
    assert clump.locator(".rows .wrong").first.is_visible()


@pytest.fixture(scope="module")
def table_report():
    """A report on a table: numbers, categories, a linear fix."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(0, 1, (3000, 3)), columns=["age", "length", "score"])
    X = X.assign(way=np.where(rng.random(3000) < X.age, "by telephone and letter", "web"))
    y = np.where(X.age > 0.8, X.length > 0.5, X.score > 0.5)
    y ^= (X.age < 0.2) & (X.length > 0.7)
    return report_holes((X.score > 0.5).to_numpy(), X, y, source="rows.csv", first_row=1)


@pytest.mark.parametrize("width", [360, 1100])
def test_small_plots_have_labelled_axes(browser, table_report, tmp_path, width):
    table_report.save(tmp_path / "page.html")
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((tmp_path / "page.html").as_uri())
    assert page.title() == "Where this classifier fails on rows.csv"
    plots = page.locator("details.clump").first.locator(".plot")
    gaps = table_report.clumps[0].gaps
    assert plots.count() == len(gaps) > 1
    for number, gap in enumerate(gaps):
        plot = plots.nth(number)
        assert plot.locator(".name").inner_text() == gap.name
        assert plot.locator(".name").is_visible()
        top, bottom = plot.locator(".up i").all_inner_texts()
        tallest = max(max(bar[1:]) for bar in gap.bars)
        assert (top.replace("\N{NO-BREAK SPACE}", " "), bottom) == (percent(tallest), "0")
        chart, drawn = plot.bounding_box(), plot.locator("svg").bounding_box()
        ticks = plot.locator(".ticks").bounding_box()
        assert ticks["y"] >= drawn["y"] + drawn["height"] - 1
        assert drawn["x"] + drawn["width"] <= chart["x"] + chart["width"] + 1
        assert plot.locator(".ticks i").count() == (2 if len(gap.bars) > 6 else len(gap.bars))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_a_click_shows_the_rows_of_a_table(browser, table_report, tmp_path):
    table_report.save(tmp_path / "page.html")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    assert len(table_report.clumps) > 1
    clump, facts = page.locator("details.clump").nth(1), table_report.clumps[1]
    rows, dots = clump.locator("tbody tr"), page.locator('circle.chosen[data-clump="1"]')
    assert not rows.first.is_visible()
    assert dots.count() == 0
    clump.locator("summary").click()
    rows.first.wait_for(state="visible")
    dots.first.wait_for(state="attached")
    shown = facts.rows[:24]
    numbers = clump.locator("tbody tr td:first-child").all_inner_texts()
    assert numbers == [str(row + 1) for row in shown.tolist()]
    first = rows.first.locator("td").all_inner_texts()
    labels = (table_report.truth[shown[0]], table_report.predicted[shown[0]])
    assert first[1:3] == [str(label) for label in labels]
    assert set(clump.locator("th").all_inner_texts()[3:]) == {"age", "length", "score", "way"}
    clump.locator(".only input").check()
    clump.locator(".rows.only-wrong").wait_for()
    visible = [row.locator("td").first.inner_text() for row in rows.all() if row.is_visible()]
    assert visible == [str(row + 1) for row in shown[table_report.wrong[shown]].tolist()]
    page.close()


def test_open_clumps_are_told_apart_on_the_map(opened, report):
    assert "in an open clump, with its number" in opened.locator(".map").inner_text()
    clumps = opened.locator("details.clump")
    clumps.nth(1).locator("summary").click()
    rings = []
    for number in (0, 1):
        dots = opened.locator(f'circle.chosen[data-clump="{number}"]')
        dots.first.wait_for(state="attached")
        rings.append(dots.first.evaluate("(dot) => getComputedStyle(dot).stroke"))
        name = opened.locator(f'.map text[data-clump="{number}"]')
        assert name.is_visible()
        assert name.text_content() == str(number + 1)
        rank = clumps.nth(number).locator(".rank")
        assert rank.evaluate("(mark) => getComputedStyle(mark).backgroundColor") == rings[-1]
    assert rings[0] != rings[1]
    assert not opened.locator('.map text[data-clump="2"]').is_visible()


@pytest.mark.parametrize(("width", "cut"), [(400, True), (1200, False)])
def test_what_a_narrow_screen_shows(browser, table_report, tmp_path, width, cut):
    """A table that is cut off says so, dots are seen, and numbers stay with their per cent."""
    table_report.save(tmp_path / "page.html")
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((tmp_path / "page.html").as_uri())
    clump = page.locator("details.clump").first
    assert clump.locator(".sideways").is_visible() == cut
    table = clump.locator(".scroll")
    assert table.evaluate("(table) => table.scrollWidth > table.clientWidth") == cut
    for kind, least in (("wrong", 4), ("right", 2.5)):
        assert page.locator(f"circle.{kind}").first.bounding_box()["width"] >= least
    assert not re.search(r"\d %", page.locator("main").inner_text())
    assert "\N{NO-BREAK SPACE}%" in page.locator(".plots").first.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(browser, report, tmp_path, scheme):
    """Contrast of at least 4.5 (WCAG AA) between text and what lies behind it."""
    report.save(tmp_path / "page.html")
    page = browser.new_page(color_scheme=scheme)
    page.goto((tmp_path / "page.html").as_uri())
    colours = page.evaluate(
        """() => [".lead", ".tiles span", ".hint", ".what span", ".facts li", ".badges b",
                  ".gallery .wrong figcaption", "footer p"].map((where) => {
            let at = document.querySelector(where), front = getComputedStyle(at).color;
            let back = "rgba(0, 0, 0, 0)";
            while (at && back === "rgba(0, 0, 0, 0)") {
                back = getComputedStyle(at).backgroundColor;
                at = at.parentElement;
            }
            return [where, front, back];
        })"""
    )
    page.close()
    for where, front, back in colours:
        bright = sorted((_luminance(front), _luminance(back)))
        assert (bright[1] + 0.05) / (bright[0] + 0.05) >= 4.5, (where, front, back)


def _luminance(colour):
    parts = np.array([float(n) for n in colour[colour.index("(") + 1 : -1].split(",")[:3]]) / 255
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_a_narrow_screen_needs_no_scrolling_sideways(browser, report, tmp_path):
    report.save(tmp_path / "page.html")
    page = browser.new_page(viewport={"width": 360, "height": 740})
    page.goto((tmp_path / "page.html").as_uri())
    wide = page.evaluate("document.documentElement.scrollWidth")
    page.close()
    assert wide <= 360
