"""The map: every row counts once, and area and colour say how many rows are there and wrong."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from laconic import report_holes
from laconic.report.page_map import HEIGHT, STEP, WIDTH, cells_of, the_map


def test_every_row_goes_to_the_nearest_middle_of_a_hexagonal_grid():
    rng = np.random.default_rng(0)
    places, wrong = rng.uniform(0, 1, (2000, 2)), rng.random(2000) < 0.3
    cells = cells_of(places, wrong)
    assert cells.rows.sum() == 2000
    assert cells.wrong.sum() == wrong.sum()
    for cell in range(len(cells.rows)):
        mine = cells.of == cell
        assert cells.rows[cell] == mine.sum()
        assert cells.wrong[cell] == (mine & wrong).sum()
    # The naive twin: all middles of the grid, and the distances to each of them.
    across, down = np.arange(-1, 60), np.arange(-1, 30)
    even = np.array([(i * STEP, j * np.sqrt(3) * STEP) for i in across for j in down])
    grid = np.concatenate([even, even + np.array([0.5, np.sqrt(3) / 2]) * STEP])
    low, high = np.quantile(places, [0.005, 0.995], axis=0)
    unit = np.clip((places - low) / (high - low), 0, 1)
    at = STEP + np.column_stack(
        [unit[:, 0] * (WIDTH - 2 * STEP), (1 - unit[:, 1]) * (HEIGHT - 2 * STEP)]
    )
    nearest = np.linalg.norm(at[:, None] - grid, axis=2).min(axis=1)
    assert np.allclose(np.linalg.norm(at - cells.places[cells.of], axis=1), nearest, atol=0.1)


@pytest.mark.parametrize(
    "places",
    [
        np.zeros((9, 2)),
        np.column_stack([np.arange(9), np.zeros(9)]),
        np.repeat([[1, 2], [3, 4], [5, 6]], 3, axis=0),
    ],
)
def test_places_that_are_alike_or_on_a_line(places):
    cells = cells_of(places.astype(float), np.arange(9) < 4)
    assert (cells.rows.sum(), cells.wrong.sum()) == (9, 4)
    assert (cells.places >= 0).all()
    assert (cells.places <= [WIDTH, HEIGHT]).all()


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(3000, 3)), columns=list("abc"))
    y = rng.integers(0, 2, 3000)
    wrong = rng.random(3000) < np.where(X.a > 1, 0.6, 0.03)
    return report_holes(np.where(wrong, 1 - y, y), X, y)


DISC = re.compile(
    r'<circle class="e(\d)" cx="(.*?)" cy="(.*?)" r="(.*?)">'
    r"<title>([\d,]+) rows?, (\d+) wrong</title>"
)


def test_areas_are_numbers_of_rows_and_colours_shares_of_errors(report):
    discs = np.array(
        [[float(n.replace(",", "")) for n in disc] for disc in DISC.findall(the_map(report))]
    )
    kinds, radii, rows, wrong = discs[:, 0], discs[:, 3], discs[:, 4], discs[:, 5]
    assert (rows.sum(), wrong.sum()) == (3000, report.overall.errors)
    large = radii > 3
    assert np.allclose(radii[large] ** 2 / radii.max() ** 2, rows[large] / rows.max(), rtol=0.05)
    share = report.overall.share
    odds = share / (1 - share)
    for kind, n, k in zip(kinds, rows, wrong, strict=True):
        here = k / max(n - k, 1e-9)
        assert kind == sum(here > multiple * odds * (1 + 1e-9) for multiple in (0.5, 1, 2, 4))


def test_discs_do_not_touch(report):
    discs = np.array([[float(n) for n in disc[1:4]] for disc in DISC.findall(the_map(report))])
    apart = np.linalg.norm(discs[:, None, :2] - discs[None, :, :2], axis=2)
    np.fill_diagonal(apart, np.inf)
    assert (apart - discs[:, None, 2] - discs[None, :, 2] > 1).all()


def test_rows_of_a_clump_are_ringed(report):
    page = the_map(report)
    for number, clump in enumerate(report.clumps):
        group = re.search(
            rf'<g class="ring ring{number % 4}" data-clump="{number}">(.*?)</g>', page
        )[1]
        cells = cells_of(report.places, report.wrong[report.shown])
        inside = np.isin(report.shown, clump.rows)
        assert group.count("<circle") == len(np.unique(cells.of[inside]))
        assert f">{number + 1}</text>" in group


def test_rows_are_drawn_whether_right_or_wrong(monkeypatch):
    """With more rows than the map can have, the share of errors on it is that of all rows."""
    monkeypatch.setattr("laconic.report.report.POINTS", 2000)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6000, 2)), rng.integers(0, 2, 6000)
    report = report_holes(np.where(rng.random(6000) < 0.05, 1 - y, y), X, y)
    assert len(np.unique(report.shown)) == len(report.shown) == 2000
    drawn = report.wrong[report.shown].mean()
    error = np.sqrt(0.05 * 0.95 / 2000)
    assert abs(drawn - report.overall.share) < 3 * error
    some = SimpleNamespace(**{**vars(report), "clumps": []})
    some.overall, some.wrong = report.overall, report.wrong
    assert "2,000 rows, drawn at random of 6,000" in the_map(some)
