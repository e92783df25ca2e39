"""The report on clumps as one HTML page that contains its style, script, plots and pictures."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from laconic.look.numbers import number, percent, percents
from laconic.model.card import count
from laconic.report import words
from laconic.report.facts import CONFIRMED
from laconic.report.page_clump import clump_card
from laconic.report.page_data import PageRows, page_rows
from laconic.report.page_map import the_map
from laconic.report.page_rows import EXAMPLES
from laconic.report.page_text import told
from laconic.report.search import HARD, PLAIN, SURPRISING

if TYPE_CHECKING:
    from laconic.report.facts import HolesReport

# Heading and first sentence of each group of clumps. The last group is not confirmed.
GROUPS = {
    SURPRISING: (
        "Surprising: more errors than the model expects",
        "Look here first. The model is wrong more often than its own probabilities say.",
    ),
    HARD: (
        "Hard: many errors, about as the model expects",
        "The model's probabilities, recalibrated, say that these rows are uncertain. Errors are "
        "not clearly more than they predict.",
    ),
    PLAIN: (
        "Clumps, ranked by excess errors",
        "There are no probabilities, so what is wrong cannot be told from what is hard.",
    ),
    None: (
        "Not confirmed by fresh rows",
        "Chance may explain these. They are listed because the search found them.",
    ),
}


def report_page(report: HolesReport, rows: bool = True) -> str:
    """Return the whole page, with or without rows of the data."""
    here = files("laconic.report")
    style, script = (here.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js"))
    kept = page_rows(report) if rows and report.clumps else None
    data = f'<script type="application/json" id="rows">{kept.text}</script>' if kept else ""
    title = told(report.headline)
    drawing = the_map(report) if report.clumps else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{style}</style></head><body><main>"
        f"<header><p class='kicker'>Laconic · where a model fails</p><h1>{title}</h1>"
        f"<p class='lead'>{told(words.headline(report))} {told(words.summary(report))}</p>"
        f"{_tiles(report)}{_notice(report, kept)}</header>{drawing}{_groups(report, kept)}"
        f"<footer><p>{told(words.how_it_was_measured(report, rows))} A clump is <em>confirmed</em> "
        "if its fresh rows fail more often than chance explains (probability below "
        f"{CONFIRMED} for all clumps of this page together). Excess errors are the errors on fresh "
        "rows beyond those expected, or, without probabilities and for hard clumps, beyond those "
        f"that the rate outside would give.</p></footer></main>{data}"
        f"<script>{script}</script></body></html>\n"
    )


def _tiles(report: HolesReport) -> str:
    """Return the headline in numbers: the errors, and which share is where."""
    whole = (percent(report.overall.share), f"of {report.overall.rows:,} rows are misclassified")
    if report.losses is not None:
        whole = (
            number(float(report.losses.mean())),
            f"is the mean loss of {len(report.losses):,} rows",
        )
    tiles = [("", *whole)]
    fresh = report.on_fresh
    sure = [clump for clump in report.clumps if clump.confirmed]
    for kind in dict.fromkeys(clump.kind for clump in sure):
        some = [clump for clump in sure if clump.kind == kind]
        errors = sum(clump.inside.errors for clump in some)
        held = sum(clump.inside.rows for clump in some)
        word = "confirmed clump" if kind == PLAIN else f"{kind} clump"
        where = f"in {percent(held / fresh.rows)} of the rows: {count(len(some), word)}"
        if report.losses is not None:
            tiles.append((kind, number(errors / held), f"is their mean {where}"))
        else:
            tiles.append((kind, f"{percent(errors / fresh.errors)} of the errors", where))
    if sure and words.fixes_help(report):
        before, after = percents(fresh.share, report.fixed.share)
        tiles.append(("", f"{before} → {after}", "error on fresh rows with local fixes"))
    items = "".join(
        f'<li class="{kind}"><strong>{told(a)}</strong><span>{told(b)}</span></li>'
        for kind, a, b in tiles
    )
    return f'<ul class="tiles">{items}</ul>'


def _notice(report: HolesReport, kept: PageRows | None) -> str:
    """Say whether the page has rows of the data."""
    text = "This page has no rows of the data, only counts, names of categories and summaries."
    if kept is not None:
        pairs = zip(report.clumps, kept.held, strict=True)
        rows = sum(max(held, min(EXAMPLES, len(clump.rows))) for clump, held in pairs)
        text = (
            f"This page contains {count(rows, 'row')} of the data. Check them before you share it, "
            "or leave rows out (rows=False, --no-rows)."
        )
        if report.ignored:
            text += " Ignored columns are not in it."
    elif not report.clumps:
        return ""
    return f'<p class="notice">{told(text)}</p>'


def _groups(report: HolesReport, kept: PageRows | None) -> str:
    """Return the clumps: surprising ones, hard ones, and those that are not confirmed."""
    groups = [clump.kind if clump.confirmed else None for clump in report.clumps]
    out = ""
    for place, kind in enumerate(dict.fromkeys(groups)):
        head, hint = GROUPS[kind]
        if report.losses is not None and kind == PLAIN:
            head, hint = "Clumps, ranked by excess loss", "Their losses are higher than elsewhere."
        cards = "".join(
            clump_card(report, i, None if kept is None else kept.held[i])
            for i, group in enumerate(groups)
            if group == kind
        )
        key = _key(report) if place == 0 else ""
        name = kind or "unconfirmed"
        out += (
            f'<section class="group {name}" aria-labelledby="{name}"><h2 id="{name}">{head}</h2>'
            f'<p class="hint">{hint}</p>{key}<div class="clumps">{cards}</div></section>'
        )
    return out


def _key(report: HolesReport) -> str:
    """Explain the bars of the clumps."""
    bars = [("in", "mean loss inside")] if report.losses is not None else [("in", "wrong inside")]
    if report.probability is not None:
        bars = [("due", "wrong inside, as expected"), ("in", "wrong beyond what was expected")]
    bars.append(("out", "outside all clumps"))
    items = " ".join(f'<span><i class="{kind}"></i>{text}</span>' for kind, text in bars)
    return f'<p class="key">{items}<span>Click a clump to see more.</span></p>'
