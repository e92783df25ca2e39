"""Rows on the page: a table or pictures of those nearest to a clump's centre, and downloads."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from laconic.data.dates import DATE
from laconic.look.numbers import number
from laconic.model.card import shorten
from laconic.report.page_data import MOST_BYTES
from laconic.report.page_text import told
from laconic.report.pictures import as_grey, png_uri

if TYPE_CHECKING:
    from laconic.report.facts import ClumpFacts, HolesReport

# Most rows of a clump that the page shows.
EXAMPLES = 24
# Most columns in the table of a clump's rows. Those that set the clump apart come first.
WIDEST = 12
# Longest text of a cell, and the longest one that is not broken into lines.
LONGEST, ONE_LINE = 300, 40


def rows_of(report: HolesReport, clump: ClumpFacts, held: int) -> str:
    """Return rows of a clump, and buttons to download the ``held`` rows that the page has."""
    bad = "misclassified" if report.losses is None else "high-loss"
    shown = _gallery(report, clump) if report.table.image_shape else _table(report, clump)
    return (
        f"<h3>Rows nearest to its centre</h3>{_downloads(clump, held)}"
        f'<label class="only"><input type="checkbox"> show only the {bad} rows</label>{shown}'
    )


def _downloads(clump: ClumpFacts, held: int) -> str:
    if not held:
        return ""
    every = len(clump.rows)
    which = f"all {every:,} rows of the clump"
    if held < every:
        size = f"{MOST_BYTES // 10**6} MB"
        which = (
            f"the {held:,} rows nearest to its centre, of {every:,}. A page holds at most {size} "
            "of rows"
        )
    return (
        '<p class="save" hidden><button type="button" data-kind="csv">CSV</button> '
        f'<button type="button" data-kind="json">JSON</button> <span>{which}</span></p>'
    )


def _table(report: HolesReport, clump: ClumpFacts) -> str:
    first = [c.column.name for c in clump.rule.conditions] if clump.rule is not None else []
    first += [gap.name for gap in clump.gaps]
    apart = {name: place for place, name in enumerate(dict.fromkeys(first))}
    columns = sorted(report.table.columns, key=lambda c: apart.get(c.name, len(apart)))
    columns = columns[: max(WIDEST, len(apart))]
    heads = [("row", "n"), *_outcome_heads(report)]
    heads += [(c.name, "n" if c.names is None and c.unit != DATE else "") for c in columns]
    head = "".join(_cell(name, kind, "th scope='col'") for name, kind in heads)
    body = ""
    for row in clump.rows[:EXAMPLES].tolist():
        cells = [str(report.first_row + row), *_outcome(report, row)]
        cells += [column.cell(row) for column in columns]
        body += f'<tr class="{"wrong" if report.wrong[row] else "right"}">'
        body += "".join(_cell(c, kind) for c, (_, kind) in zip(cells, heads, strict=True))
        body += "</tr>"
    return (
        '<p class="sideways hint" hidden>Scroll the table sideways to see more columns.</p>'
        '<div class="scroll" tabindex="0" role="region" aria-label="rows of the clump">'
        f'<table class="rows"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _outcome_heads(report: HolesReport) -> list[tuple[str, str]]:
    """Return heads and classes of the labels or losses: ``n`` for numbers, ``said`` if one errs."""
    if report.losses is not None:
        return [("loss", "n said")]
    true, taken = (
        "n" if labels.dtype.kind in "iuf" else "" for labels in (report.truth, report.predicted)
    )
    heads = [("true", true), ("predicted", f"{taken} said".strip())]
    return heads if report.probability is None else [*heads, ("probability", "n")]


def _outcome(report: HolesReport, row: int) -> list[str]:
    """Return the labels or the loss of a row, and the probability of the predicted label."""
    if report.losses is not None:
        return [f"{report.losses[row]:.6g}"]
    labels = [str(report.truth[row]), str(report.predicted[row])]
    return labels if report.probability is None else [*labels, f"{report.probability[row]:.3f}"]


def _cell(text: str, kind: str, tag: str = "td") -> str:
    """Return a cell of a class. Long text is broken into lines."""
    long = len(text) > ONE_LINE
    kinds = f"{kind} long".strip() if long else kind
    shown = escape(shorten(text, LONGEST) if long else text)
    style = f' class="{kinds}"' if kinds else ""
    return f"<{tag}{style}>{shown}</{tag.partition(' ')[0]}>"


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
        wrong = bool(report.wrong[row])
        out += (
            f'<figure class="{"wrong" if wrong else "right"}">'
            f'<img src="{png_uri(picture)}" alt="row {report.first_row + row}">'
            f"<figcaption>{_caption(report, row, wrong)}</figcaption></figure>"
        )
    return f'<div class="gallery rows">{out}</div>'


def _caption(report: HolesReport, row: int, wrong: bool) -> str:
    """Return the labels of a picture, the probability of the predicted one, and its number."""
    if report.losses is not None:
        said = f"loss {number(float(report.losses[row]))}"
    else:
        true, taken = str(report.truth[row]), str(report.predicted[row])
        said = f"{true} as {taken}" if wrong else true
    chance = report.probability
    sure = "" if chance is None else f"<small>p = {chance[row]:.2f}</small>"
    return f"{told(said)}{sure}<small>row {report.first_row + row}</small>"
