"""The map of a report: how many rows lie where, and how many of them are wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.spatial import KDTree

from laconic.look.numbers import percent
from laconic.model.card import count
from laconic.report.page_text import told

if TYPE_CHECKING:
    from laconic.report.facts import HolesReport

# Width and height of the map, and the distance of neighbouring cells, in units of its SVG drawing.
WIDTH, HEIGHT, STEP = 920, 400, 20.0
# Radii of discs: at least this, and for the fullest cell at most this. Where cells are far apart,
# discs may be larger than cells.
FAINTEST, LARGEST = 1.5, 34.0
# Distance of rings from discs, and the least strength of a ring.
ROOM, PALEST = 1.4, 0.35
# Shares of the rows on either side of the map that are drawn at its edge, as a few rows far away
# would leave no room for the others.
FAR = 0.005
# The colours change where the odds of an error are these multiples of those of all rows.
ODDS = (0.5, 1.0, 2.0, 4.0)
# Number of colours of the rings around open clumps.
RINGS = 4


class MapCells(NamedTuple):
    """The cells of the map that hold rows."""

    places: np.ndarray
    """Middles of the cells on the drawing."""
    of: np.ndarray
    """Number of the cell of every row that is shown."""
    rows: np.ndarray
    """Number of rows in each cell."""
    wrong: np.ndarray
    """Number of wrong rows in each cell."""


def the_map(report: HolesReport) -> str:
    """Draw a disc for every cell: its area is the number of rows, its colour the share of errors.

    All rows count alike. No error is drawn on top of another row.
    """
    cells = cells_of(report.places, report.wrong[report.shown])
    radii = _radii(cells)
    breaks = _breaks(report)
    shares = cells.wrong / cells.rows
    kinds = np.searchsorted(breaks, shares, side="left")
    bad = "wrong" if report.losses is None else "of high loss"
    drawn = []
    for place, radius, kind, n, k in zip(
        cells.places, radii, kinds, cells.rows, cells.wrong, strict=True
    ):
        said = f"{count(int(n), 'row')}, {k} {bad}"
        drawn.append(
            f'<circle class="e{kind}"{_circle(place, radius)}><title>{said}</title></circle>'
        )
    drawn += [_ring(report, number, cells, radii) for number in range(len(report.clumps))]
    return (
        '<section class="map" aria-labelledby="map"><h2 id="map">Where the rows and the errors are'
        f'</h2><figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="Map of rows, coloured by the share that is {bad}">{"".join(drawn)}</svg>'
        f"{_legend(breaks, bad)}<figcaption>{told(_caption(report, cells))}</figcaption></figure>"
        "</section>"
    )


def cells_of(places: np.ndarray, wrong: np.ndarray) -> MapCells:
    """Put rows into hexagonal cells of the drawing."""
    edges = np.quantile(places, [FAR, 1.0 - FAR], axis=0)
    edges = np.where(edges[1] > edges[0], edges, [places.min(axis=0), places.max(axis=0)])
    low, high = edges
    unit = np.where(high > low, (places - low) / np.where(high > low, high - low, 1.0), 0.5)
    unit[:, 1] = 1.0 - unit[:, 1]
    room = np.array([WIDTH, HEIGHT]) - 2 * STEP
    at = STEP + np.clip(unit, 0.0, 1.0) * room
    # A hexagonal grid is two rectangular ones. Every row goes to the nearest middle of either.
    grid = np.array([STEP, np.sqrt(3.0) * STEP])
    even = np.round(at / grid) * grid
    odd = (np.floor(at / grid) + 0.5) * grid
    nearer = np.square(at - odd).sum(axis=1) < np.square(at - even).sum(axis=1)
    middles = np.where(nearer[:, None], odd, even).round(1)
    cells, of = np.unique(middles, axis=0, return_inverse=True)
    of = of.reshape(-1)
    rows = np.bincount(of, minlength=len(cells))
    return MapCells(cells, of, rows, np.bincount(of[wrong], minlength=len(cells)))


def _radii(cells: MapCells) -> np.ndarray:
    """Return radii whose squares go with the numbers of rows. There is room for rings."""
    apart = STEP
    if len(cells.places) > 1:
        apart = float(KDTree(cells.places).query(cells.places, k=2)[0][:, 1].min())
    largest = min(apart / 2 - ROOM, LARGEST) if len(cells.places) > 1 else LARGEST
    return np.maximum(largest * np.sqrt(cells.rows / cells.rows.max()), FAINTEST)


def _breaks(report: HolesReport) -> np.ndarray:
    """Return the shares of errors at which the colour changes."""
    share = report.overall.share
    odds = np.array(ODDS) * share / max(1.0 - share, 1e-9)
    return odds / (1.0 + odds)


def _ring(report: HolesReport, number: int, cells: MapCells, radii: np.ndarray) -> str:
    """Draw a ring around each disc with rows of a clump, the stronger the more there are.

    The script shows the rings while the clump is open.
    """
    inside = np.isin(report.shown, report.clumps[number].rows)
    if not inside.any():
        return ""
    held = np.bincount(cells.of[inside], minlength=len(cells.rows))
    rings = "".join(
        f"<circle{_circle(cells.places[i], radii[i] + ROOM)}{_strong(held[i] / cells.rows[i])}/>"
        for i in np.flatnonzero(held)
    )
    x, y = np.median(cells.places[cells.of[inside]], axis=0)
    return (
        f'<g class="ring ring{number % RINGS}" data-clump="{number}">{rings}'
        f'<text x="{x:.1f}" y="{y:.1f}">{number + 1}</text></g>'
    )


def _circle(place: np.ndarray, radius: float) -> str:
    return f' cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="{max(radius, FAINTEST):.1f}"'


def _strong(share: float) -> str:
    """Return the strength of a ring, so that its darkness tells a share. None is invisible."""
    strength = max(np.sqrt(share), PALEST)
    return "" if strength == 1 else f' opacity="{strength:.2f}"'


def _legend(breaks: np.ndarray, bad: str) -> str:
    """Explain the colours."""
    ends = [percent(share) for share in breaks]
    names = [f"up to {ends[0]} {bad}", *(f"to {end}" for end in ends[1:]), f"over {ends[-1]}"]
    items = "".join(
        f'<li><i class="e{kind}"></i>{told(name)}</li>' for kind, name in enumerate(names)
    )
    return f'<ul class="legend">{items}<li><i class="chosen"></i>in an open clump</li></ul>'


def _caption(report: HolesReport, cells: MapCells) -> str:
    every, shown = len(report.truth), len(report.shown)
    which = (
        f"all {every:,} rows" if shown == every else f"{shown:,} rows, drawn at random of {every:,}"
    )
    bad = "wrong" if report.losses is None else "of high loss (the highest tenth)"
    return (
        "The area of a disc is the number of rows in its place, right or wrong (at most "
        f"{cells.rows.max():,}). Its colour is the share that is {bad}. A ring marks rows of an "
        "open clump: the stronger, the more of the disc. The number is in the middle of the clump. "
        f"The map has the first two principal components of {which}. Rows far away are drawn at "
        "the edge. Clumps that overlap here may be far apart."
    )
