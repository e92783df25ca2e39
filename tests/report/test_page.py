"""The page in a real browser: it opens, lists the clumps, and a click shows the rows."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from laconic import report_holes
from laconic.look.numbers import percent
from laconic.report.titles import title

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report():
    digits = load_digits()
    X, y = digits.data, (digits.target > 4).astype(int)
    model = LogisticRegression(C=3e-4).fit(X[:600], y[:600])
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
    titles = opened.locator(".what strong").all_inner_texts()
    assert titles == [title(report, clump) for clump in report.clumps]


def test_surprising_clumps_come_first_and_are_told_from_hard_ones(opened, report):
    groups = opened.locator("section.group").all()
    names = [group.locator("h2").inner_text().partition(":")[0] for group in groups]
    assert names == ["Surprising", "Hard", "Not confirmed by fresh rows"]
    kinds = [clump.kind if clump.confirmed else None for clump in report.clumps]
    for group, kind in zip(groups, ("surprising", "hard", None), strict=True):
        numbers = group.locator("details.clump").evaluate_all(
            "all => all.map(c => c.dataset.clump)"
        )
        assert numbers == [str(i) for i, other in enumerate(kinds) if other == kind]
    # Of the bar, the part beyond what was expected is drawn in another colour.
    for number, clump in enumerate(report.clumps):
        card = opened.locator("details.clump").nth(number)
        whole = card.locator(".bars > span").first.bounding_box()["width"]
        due, beyond = (
            card.locator(f".bars .{kind}").bounding_box()["width"] for kind in ("due", "in")
        )
        expected = clump.expected / clump.inside.rows
        assert (due + beyond) / whole == pytest.approx(clump.inside.share, abs=0.02)
        assert due / whole == pytest.approx(min(expected, clump.inside.share), abs=0.02)


def test_the_headline_gives_shares_of_errors_and_of_rows(opened, report):
    for kind in ("surprising", "hard"):
        sure = [c.inside for c in report.clumps if c.confirmed and c.kind == kind]
        errors, rows = sum(rate.errors for rate in sure), sum(rate.rows for rate in sure)
        tile = opened.locator(f".tiles .{kind}").inner_text().replace("\N{NO-BREAK SPACE}", " ")
        assert tile.startswith(f"{percent(errors / report.on_fresh.errors)} of the errors")
        assert f"in {percent(rows / report.on_fresh.rows)} of the rows: " in tile


def test_a_click_shows_the_rows(opened, report):
    clump = opened.locator("details.clump").nth(1)
    pictures, ring = clump.locator(".rows figure"), opened.locator('.ring[data-clump="1"]')
    assert not pictures.first.is_visible()
    assert not ring.is_visible()
    clump.locator("summary").click()
    # Browsers tell the page a moment later that a part was opened: wait for what it then does.
    pictures.first.wait_for(state="visible")
    ring.wait_for(state="visible")
    assert pictures.count() == min(24, len(report.clumps[1].rows)) + 1
    clump.locator("summary").press("Enter")  # and the keyboard hides them
    pictures.first.wait_for(state="hidden")
    ring.wait_for(state="hidden")


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
    sure = np.maximum(0.9 + 0.1 * X.length, 0.5)
    return report_holes(
        (X.score > 0.5).to_numpy(), X, y, probabilities=sure, source="rows.csv", first_row=1
    )


@pytest.mark.parametrize("width", [360, 1100])
def test_small_plots_have_labelled_axes(browser, table_report, tmp_path, width):
    table_report.save(tmp_path / "page.html")
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((tmp_path / "page.html").as_uri())
    assert page.title() == "Where this classifier fails on rows.csv"
    plots = page.locator("details.clump").first.locator(".plot")
    gaps = table_report.clumps[0].gaps
    assert plots.count() == len(gaps) > 1
    assert {len(gap.bars) > 6 for gap in gaps} == {True, False}
    for number, gap in enumerate(gaps):
        plot = plots.nth(number)
        assert plot.locator(".name").inner_text() == gap.name
        assert plot.locator(".name").is_visible()
        if len(gap.bars) <= 6:
            assert plot.locator(".kind").all_inner_texts() == [bar[0] for bar in gap.bars]
            continue
        top, bottom = plot.locator(".up i").all_inner_texts()
        tallest = max(max(bar[1:]) for bar in gap.bars)
        assert (top.replace("\N{NO-BREAK SPACE}", " "), bottom) == (percent(tallest), "0")
        chart, drawn = plot.bounding_box(), plot.locator("svg").bounding_box()
        ticks = plot.locator(".ticks").bounding_box()
        assert ticks["y"] >= drawn["y"] + drawn["height"] - 1
        assert drawn["x"] + drawn["width"] <= chart["x"] + chart["width"] + 1
        assert plot.locator(".ticks i").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_a_click_shows_the_rows_of_a_table(browser, table_report, tmp_path):
    table_report.save(tmp_path / "page.html")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    assert len(table_report.clumps) > 1
    clump, facts = page.locator("details.clump").nth(1), table_report.clumps[1]
    rows, ring = clump.locator("tbody tr"), page.locator('.ring[data-clump="1"]')
    assert not rows.first.is_visible()
    assert not ring.is_visible()
    clump.locator("summary").click()
    rows.first.wait_for(state="visible")
    ring.wait_for(state="visible")
    shown = facts.rows[:24]
    numbers = clump.locator("tbody tr td:first-child").all_inner_texts()
    assert numbers == [str(row + 1) for row in shown.tolist()]
    first = rows.first.locator("td").all_inner_texts()
    labels = (table_report.truth[shown[0]], table_report.predicted[shown[0]])
    assert first[1:3] == [str(label) for label in labels]
    assert first[3] == f"{table_report.probability[shown[0]]:.3f}"
    assert set(clump.locator("th").all_inner_texts()[4:]) == {"age", "length", "score", "way"}
    numbers = {"row", "probability", "age", "length", "score"}
    for head in clump.locator("th").all():
        aligned = head.evaluate("(cell) => getComputedStyle(cell).textAlign")
        assert (aligned == "right") == (head.inner_text() in numbers)
        place = 1 + head.evaluate("(cell) => cell.cellIndex")
        cell = rows.first.locator(f"td:nth-child({place})")
        assert cell.evaluate("(cell) => getComputedStyle(cell).textAlign") == aligned.replace(
            "left", "start"
        )
    clump.locator(".only input").check()
    clump.locator(".rows.only-wrong").wait_for()
    visible = [row.locator("td").first.inner_text() for row in rows.all() if row.is_visible()]
    assert visible == [str(row + 1) for row in shown[table_report.wrong[shown]].tolist()]
    page.close()


def test_open_clumps_are_told_apart_on_the_map(opened):
    assert "A ring marks rows of an open clump" in opened.locator(".map").inner_text()
    clumps = opened.locator("details.clump")
    clumps.nth(1).locator("summary").click()
    strokes = []
    for number in (0, 1):
        ring = opened.locator(f'.ring[data-clump="{number}"]')
        ring.wait_for(state="visible")
        strokes.append(ring.locator("circle").first.evaluate("(c) => getComputedStyle(c).stroke"))
        assert ring.locator("text").text_content() == str(number + 1)
        rank = clumps.nth(number).locator(".rank")
        assert rank.evaluate("(mark) => getComputedStyle(mark).backgroundColor") == strokes[-1]
    assert strokes[0] != strokes[1]
    assert not opened.locator('.ring[data-clump="2"]').is_visible()


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
    discs = page.locator(".map circle[class]").evaluate_all(
        "all => all.map(disc => disc.getBoundingClientRect().width)"
    )
    assert max(discs) > 5
    assert not re.search(r"\d %", page.locator("main").inner_text())
    assert "\N{NO-BREAK SPACE}%" in page.locator(".plots").first.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["pictures", "table"])
def test_text_can_be_read(browser, report, table_report, tmp_path, scheme, kind):
    """Contrast of at least 4.5 (WCAG AA) between all visible text and what lies behind it."""
    (report if kind == "pictures" else table_report).save(tmp_path / "page.html")
    page = browser.new_page(color_scheme=scheme)
    page.goto((tmp_path / "page.html").as_uri())
    colours = page.evaluate(
        """() => {
            const found = {}, walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            while (walk.nextNode()) {
                let at = walk.currentNode.parentElement;
                if (!walk.currentNode.data.trim() || !at.checkVisibility()) continue;
                if (at.closest("svg")) continue;
                const what = `${at.tagName}.${at.className} in ${at.parentElement.className}`;
                const front = getComputedStyle(at).color;
                let back = "rgba(0, 0, 0, 0)";
                while (at && back === "rgba(0, 0, 0, 0)") {
                    back = getComputedStyle(at).backgroundColor;
                    at = at.parentElement;
                }
                found[what] = [front, back];
            }
            return found;
        }"""
    )
    page.close()
    assert len(colours) > 20
    for where, (front, back) in colours.items():
        bright = sorted((_luminance(front), _luminance(back)))
        assert (bright[1] + 0.05) / (bright[0] + 0.05) >= 4.5, (where, front, back)


def _luminance(colour):
    parts = np.array([float(n) for n in colour[colour.index("(") + 1 : -1].split(",")[:3]]) / 255
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


LONG = "a_name_without_any_place_where_a_line_could_end_" * 3


@pytest.fixture(scope="module")
def wide_report():
    """Names and categories that are too long for any line."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({LONG: rng.choice([LONG.upper(), "b", "c"], 2000), "x": rng.random(2000)})
    y = rng.integers(0, 2, 2000)
    wrong = rng.random(2000) < np.where((X[LONG] == LONG.upper()) & (X.x > 0.5), 0.8, 0.03)
    return report_holes(np.where(wrong, 1 - y, y), X, y, title=LONG)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 390, 900, 1400])
@pytest.mark.parametrize("kind", ["pictures", "table", "wide"])
def test_nothing_is_cut_or_too_wide(request, browser, tmp_path, width, scheme, kind):
    """At any width: no text is cut off, tiles wrap, and only tables of rows scroll sideways."""
    names = {"pictures": "report", "table": "table_report", "wide": "wide_report"}
    request.getfixturevalue(names[kind]).save(tmp_path / "page.html")
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto((tmp_path / "page.html").as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    cut = page.evaluate(
        """() => [...document.querySelectorAll("main *:not(svg *, .scroll, .scroll *)")].filter(
            (part) => {
                const style = getComputedStyle(part);
                if (!part.checkVisibility() || style.display === "inline") return false;
                const wide = part.clientWidth > 0 && part.scrollWidth > part.clientWidth + 1;
                return wide || style.textOverflow === "ellipsis";
            }
        ).map((part) => part.outerHTML.slice(0, 200))"""
    )
    tiles = [tile.bounding_box() for tile in page.locator(".tiles li").all()]
    page.close()
    assert cut == []
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in tiles)
    assert width > 400 or len({box["y"] for box in tiles}) > 1
