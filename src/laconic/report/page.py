"""The report on clumps as one HTML page that contains its style, script, plots and pictures."""

from __future__ import annotations

import re
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from laconic.look.numbers import percent, percents
from laconic.model.card import count
from laconic.report import clump_words, words
from laconic.report.facts import CONFIRMED
from laconic.report.features import CATEGORIES
from laconic.report.pictures import as_grey, png_uri
from laconic.report.search import PLAIN

if TYPE_CHECKING:
    from laconic.report.facts import ClumpFacts, HolesReport
    from laconic.report.features import FeatureGap

# Most rows of a clump that the page shows.
EXAMPLES = 24
# Most columns in the table of a clump's rows. Those that set the clump apart come first.
WIDEST = 12
# Width and height of the map and of a small plot, in units of their SVG drawings.
MAP, PLOT = (920, 380), (220, 64)
# Number of colours of the rings around rows of open clumps.
RINGS = 4
# Rows in the same place on the map are drawn this far apart, and at most this far from it.
APART, FARTHEST = 4.0, 60.0


def report_page(report: HolesReport) -> str:
    """Return the whole page."""
    here = files("laconic.report")
    style, script = (here.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js"))
    clumps = "".join(_clump(report, number) for number in range(len(report.clumps)))
    if clumps:
        clumps = (
            '<section aria-labelledby="list"><h2 id="list">Clumps, ranked by excess errors</h2>'
            '<p class="hint">Click a clump to see what its rows share, and the rows themselves.</p>'
            f'<div class="clumps">{clumps}</div></section>'
        )
    drawing = _map(report) if report.clumps else ""
    title = escape(report.headline)
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{style}</style></head><body><main>"
        f"<header><p class='kicker'>Laconic · clumps of errors</p><h1>{title}</h1>"
        f"<p class='lead'>{escape(words.headline(report))} {escape(words.summary(report))}</p>"
        f"{_tiles(report)}</header>{drawing}{clumps}"
        f"<footer><p>{escape(words.how_it_was_measured(report))} A clump is <em>confirmed</em> "
        "if its fresh rows fail more often than chance explains (probability below "
        f"{CONFIRMED} for all clumps of this page together). Excess errors are the errors on fresh "
        "rows beyond those expected, or, without probabilities and for hard clumps, beyond those "
        "that the rate outside would give.</p></footer></main>"
        f"<script>{script}</script></body></html>\n"
    )
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", page)


def _tiles(report: HolesReport) -> str:
    sure = [clump for clump in report.clumps if clump.confirmed]
    whole = (percent(report.overall.share), "of all rows are misclassified")
    if report.losses is not None:
        whole = (clump_words.shown(report, float(report.losses.mean())), "is the mean loss")
    tiles = [
        whole,
        (str(len(sure)), f"{'clump' if len(sure) == 1 else 'clumps'} confirmed on fresh rows"),
    ]
    fresh = report.on_fresh
    if sure and fresh.errors and report.losses is None:
        held = sum(clump.inside.errors for clump in sure)
        tiles.append((percent(held / fresh.errors), "of the errors are in these clumps"))
    before, after = percents(fresh.share, report.fixed.share)
    fixes = report.losses is None and report.fixed.errors < fresh.errors
    if sure and fixes and before != after:
        tiles.append((f"{before} → {after}", "error on fresh rows with local fixes"))
    items = "".join(f"<li><strong>{escape(a)}</strong><span>{escape(b)}</span></li>"
                    for a, b in tiles)  # fmt: skip
    return f'<ul class="tiles">{items}</ul>'


# -- one clump ---------------------------------------------------------------------------------


def _clump(report: HolesReport, number: int) -> str:
    clump = report.clumps[number]
    inside, outside = clump.inside, clump.outside
    longest = 1.0
    if report.losses is not None:
        longest = max(abs(rate.share) for c in report.clumps for rate in (c.inside, c.outside))
    badge = "good" if clump.confirmed else "plain"
    help_badge = {"helps": "good", "may help": "some"}.get(clump.fix.verdict, "plain")
    bars = (
        f'<span class="bars" aria-hidden="true">'
        f'<i class="in" style="width:{_width(inside.share / longest)}"></i>'
        f'<i class="out" style="width:{_width(outside.share / longest)}"></i></span>'
    )
    wrong = clump_words.shown(report, inside.share) + (" wrong" if report.losses is None else "")
    beside = f"outside {clump_words.shown(report, outside.share)}"
    if clump.expected is not None and inside.rows:
        beside = f"expected {percent(clump.expected / inside.rows)}, {beside}"
    kind = "" if clump.kind == PLAIN else f'<b class="{clump.kind}">{clump.kind}</b>'
    summary = (
        f'<summary><span class="rank">{number + 1}</span>'
        f'<span class="what"><strong>{wrong}</strong> '
        f"<span>{beside}</span></span>{bars}"
        f'<span class="size">{count(len(clump.rows), "row")}</span>'
        f'<span class="badges">{kind}<b class="{badge}">{clump_words.status(clump)}</b>'
        f'<b class="{help_badge}">{_fix_badge(clump)}</b></span></summary>'
    )
    facts = "".join(f"<li>{escape(text)}</li>" for text in _facts(report, clump))
    plots = "".join(_small_plot(gap) for gap in clump.gaps)
    key = (
        '<p class="axis">Bars show the rows of the clump, and the line shows all others, '
        "each in per cent of its rows.</p>"
    )
    plots = f'<div class="plots">{plots}</div>{key}' if plots else ""
    rows = _gallery(report, clump) if report.table.image_shape else _row_table(report, clump)
    opened = " open" if number == 0 else ""
    bad = "misclassified" if report.losses is None else "high-loss"
    return (
        f'<details class="clump ring{number % RINGS}" data-clump="{number}"{opened}>{summary}'
        '<div class="inside">'
        f"{_rule(clump)}<ul class='facts'>{facts}</ul>{plots}<h3>Rows nearest to its centre</h3>"
        f'<label class="only"><input type="checkbox"> show only the {bad} rows</label>'
        f"{rows}</div></details>"
    )


def _rule(clump: ClumpFacts) -> str:
    """Return the title of a rule and the filters to copy."""
    if clump.rule is None:
        return ""
    lines = [line.partition(": ") for line in clump_words.filter_lines(clump)]
    filters = "".join(
        f"<dt>{name}</dt><dd><code>{escape(code)}</code></dd>" if code else f"<dd>{name}</dd>"
        for name, _, code in lines
    )
    return f'<p class="rule">{escape(str(clump.rule))}</p><dl class="filters">{filters}</dl>'


def _fix_badge(clump: ClumpFacts) -> str:
    return {
        "not tried": "no fix tried",
        "helps": "local fix helps",
        "may help": "local fix may help",
        "no clear difference": "fix makes no clear difference",
        "does not help": "no local fix",
    }.get(clump.fix.verdict, "too few rows to judge a fix")


def _facts(report: HolesReport, clump: ClumpFacts) -> list[str]:
    if report.losses is not None:
        return [clump_words.rates_sentence(report, clump)]
    return [
        clump_words.rates_sentence(report, clump),
        clump_words.mistakes_sentence(clump),
        words.fix_sentence(report, clump),
    ]


def _small_plot(gap: FeatureGap) -> str:
    """Draw bars for the clump and a line for the other rows, with the sentence."""
    width, height = PLOT
    top = max([*(b[1] for b in gap.bars), *(b[2] for b in gap.bars), 1e-9])
    step = width / max(len(gap.bars), 1)
    parts, steps = [], []
    for i, (what, here, there) in enumerate(gap.bars):
        tall, other = (height - 4) * here / top, (height - 4) * there / top
        title = escape(f"{what}: {percent(here)} of the clump, {percent(there)} elsewhere")
        parts.append(
            f'<rect class="in" x="{i * step + 1:.1f}" y="{height - tall:.1f}" '
            f'width="{max(step - 2, 1):.1f}" height="{tall:.1f}"><title>{title}</title></rect>'
        )
        steps += [
            f"{i * step:.1f},{height - other:.1f}",
            f"{(i + 1) * step:.1f},{height - other:.1f}",
        ]
    return (
        f'<figure class="plot"><figcaption>{escape(gap.sentence)}</figcaption>'
        f'<div class="chart"><span class="axis up"><i>{percent(top)}</i><i>0</i></span>'
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(gap.sentence)}">'
        f'{"".join(parts)}<polyline class="out" points="{" ".join(steps)}"/></svg>'
        f'{_ticks(gap)}<span class="axis name">{escape(gap.name)}</span></div></figure>'
    )


def _ticks(gap: FeatureGap) -> str:
    """Return the labels below the bars: the name of each bar, or the two ends of many intervals."""
    names = [what for what, _, _ in gap.bars]
    kind = "each"
    if len(names) > CATEGORIES:
        kind, names = "ends", [names[0].split(" to ")[0], names[-1].split(" to ")[-1]]
    cells = "".join(f'<i title="{escape(name)}">{escape(name)}</i>' for name in names)
    return f'<span class="axis ticks {kind}">{cells}</span>'


def _row_table(report: HolesReport, clump: ClumpFacts) -> str:
    apart = list(dict.fromkeys(gap.name for gap in clump.gaps))
    places = {name: place for place, name in enumerate(apart)}
    columns = sorted(report.table.columns, key=lambda c: places.get(c.name, len(places)))
    shown = columns[: max(WIDEST, len(apart))]
    told = ["true", "predicted"] if report.losses is None else ["loss"]
    heads = ["row", *told, *(column.name for column in shown)]
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    body = ""
    for row in clump.rows[:EXAMPLES].tolist():
        wrong = bool(report.wrong[row])
        number = str(report.first_row + row)
        cells = [number, str(report.truth[row]), str(report.predicted[row])]
        if report.losses is not None:
            cells = [number, f"{report.losses[row]:.6g}"]
        cells += [column.cell(row) for column in shown]
        body += f'<tr class="{"wrong" if wrong else "right"}">' + "".join(
            f"<td>{escape(cell)}</td>" for cell in cells
        )
        body += "</tr>"
    return (
        '<p class="sideways hint" hidden>Scroll the table sideways to see more columns.</p>'
        '<div class="scroll" tabindex="0" role="region" aria-label="rows of the clump">'
        f'<table class="rows"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _gallery(report: HolesReport, clump: ClumpFacts) -> str:
    """Return pictures of the rows, and their mean."""
    shape = report.table.image_shape or (1, 1)
    some = np.concatenate([clump.rows[:EXAMPLES], clump.rows[: 20 * EXAMPLES]])
    pixels = np.column_stack([column.values[some] for column in report.table.columns])
    low, high = float(pixels.min()), float(pixels.max())
    pixels = as_grey(pixels, low, high).reshape(len(some), *shape)
    shown = min(EXAMPLES, len(clump.rows))
    mean = png_uri(pixels[shown:].mean(axis=0))
    out = (
        f'<figure class="mean"><img src="{mean}" alt="mean"><figcaption>mean</figcaption></figure>'
    )
    for row, picture in zip(clump.rows[:shown].tolist(), pixels, strict=False):
        number = report.first_row + row
        true, taken = escape(str(report.truth[row])), escape(str(report.predicted[row]))
        wrong = bool(report.wrong[row])
        said = f"{true} as {taken}" if wrong else true
        out += (
            f'<figure class="{"wrong" if wrong else "right"}" title="row {number}">'
            f'<img src="{png_uri(picture)}" alt="row {number}, {said}">'
            f"<figcaption>{said}</figcaption></figure>"
        )
    return f'<div class="gallery rows">{out}</div>'


# -- the map -----------------------------------------------------------------------------------


def _map(report: HolesReport) -> str:
    """Draw rows by their first two principal components. Errors stand out."""
    width, height = MAP
    places = report.places
    low, high = np.quantile(places, [0.005, 0.995], axis=0)
    unit = (places - low) / np.where(high > low, high - low, 1.0)
    drawn = (
        np.abs(unit - 0.5).max(axis=1) <= 0.52
    )  # a few rows far away would leave no room for the others
    aside = _side_by_side(unit)
    farthest = np.abs(aside).max(initial=0.0)
    edge = 14 + farthest
    x = edge + unit[:, 0] * (width - 2 * edge) + aside[:, 0]
    y = height - edge - unit[:, 1] * (height - 2 * edge) + aside[:, 1]
    owner = np.full(len(report.truth), -1)
    for number, clump in enumerate(report.clumps):
        owner[clump.rows] = number
    wrong = report.wrong
    dots = ""
    for i in np.argsort(wrong[report.shown], kind="stable"):  # errors are drawn last
        if not drawn[i]:
            continue
        row = report.shown[i]
        kind = "wrong" if wrong[row] else "right"
        mark = ""
        if owner[row] >= 0:
            kind += f" ring{owner[row] % RINGS}"
            mark = f' data-clump="{owner[row]}"'
        radius = 3.2 if wrong[row] else 2.1
        dots += f'<circle class="{kind}"{mark} cx="{x[i]:.1f}" cy="{y[i]:.1f}" r="{radius}"/>'
    for number in range(len(report.clumps)):
        here = np.flatnonzero(drawn & (owner[report.shown] == number))
        if len(here):
            dots += (
                f'<text class="ring{number % RINGS}" data-clump="{number}" '
                f'x="{np.median(x[here]):.1f}" y="{np.median(y[here]):.1f}">{number + 1}</text>'
            )
    bad, good = ("misclassified", "right") if report.losses is None else ("high loss", "lower loss")
    fewer = len(report.shown) < len(report.truth)
    of = f"of {len(report.truth):,} rows, errors first" if fewer else "rows"
    disc = " Rows in the same place are drawn as a disc." if farthest > 2 * APART else ""
    return (
        '<section class="map" aria-labelledby="map"><h2 id="map">Where the errors are</h2>'
        f'<figure><svg viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="Rows on a map, errors in orange">{dots}</svg>'
        f'<figcaption><span class="dot wrong"></span> {bad} '
        f'<span class="dot right"></span> {good} <span class="dot chosen"></span> in an open '
        "clump, with its number in the middle. The map has the first two principal components of "
        f"{int(drawn.sum()):,} {of}. Clumps that overlap here may be far apart.{disc}</figcaption>"
        "</figure></section>"
    )


def _side_by_side(places: np.ndarray) -> np.ndarray:
    """Return how far to move each row that shares its place on the map with others.

    Such rows fill a disc around the place, so that all can be seen. The k-th row goes to the k-th
    seed of a sunflower, in an order that does not depend on that of the rows. Each sunflower is
    turned by another angle, so that the seeds of near ones do not coincide.
    """
    which, number = np.unique(places.round(3), axis=0, return_inverse=True, return_counts=True)[1:]
    which = which.reshape(-1)
    mixed = np.random.default_rng(0).permutation(len(places))
    mixed = mixed[np.argsort(which[mixed], kind="stable")]
    seed = np.empty(len(places))
    seed[mixed] = np.arange(len(places)) - np.repeat(np.cumsum(number) - number, number)
    far = min(APART, FARTHEST / np.sqrt(number.max(initial=1))) * np.sqrt(seed)
    turn = seed * np.pi * (3.0 - np.sqrt(5.0)) + which
    return np.column_stack([far * np.cos(turn), far * np.sin(turn)])


def _width(share: float) -> str:
    return f"{100 * max(share, 0.0):.1f}%" if share == share else "0"
