"""One clump on the page: its title and rates in a line, and what a click shows."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from laconic.look.numbers import number, percent
from laconic.model.card import count
from laconic.report import clump_words, words
from laconic.report.page_map import RINGS
from laconic.report.page_plots import plots
from laconic.report.page_rows import rows_of
from laconic.report.page_text import told
from laconic.report.search import PLAIN
from laconic.report.titles import title

if TYPE_CHECKING:
    from laconic.report.facts import ClumpFacts, HolesReport

# Verdicts on local fixes that a clump's line tells.
FIXES = {"helps": "local fix helps", "may help": "local fix may help"}


def clump_card(report: HolesReport, place: int, held: int | None) -> str:
    """Return one clump. ``held`` is the number of its rows in the page, or None without rows."""
    clump = report.clumps[place]
    facts = [clump_words.rates_sentence(report, clump)]
    if report.losses is None:
        facts += [clump_words.mistakes_sentence(clump), words.fix_sentence(report, clump)]
    listed = "".join(f"<li>{told(text)}</li>" for text in facts)
    rows = "" if held is None else rows_of(report, clump, held)
    opened = " open" if place == 0 else ""
    return (
        f'<details class="clump {clump.kind} ring{place % RINGS}" data-clump="{place}"{opened}>'
        f'<summary><span class="rank">{place + 1}</span><span class="what">'
        f"<strong>{told(title(report, clump))}</strong>"
        f"<span>{told(_rates(report, clump))}</span></span>{_bars(report, clump)}"
        f'<span class="badges">{_badges(clump)}</span></summary>'
        f'<div class="inside">{_filters(clump)}<ul class="facts">{listed}</ul>'
        f"{plots(clump.gaps)}{rows}</div></details>"
    )


def _rates(report: HolesReport, clump: ClumpFacts) -> str:
    """Return the rate of errors, how many were expected, and the number of rows."""
    inside = clump.inside
    every = count(len(clump.rows), "row")
    if not inside.rows:
        return f"{every}, none of them fresh"
    if report.losses is not None:
        return f"mean loss {number(inside.share)}, outside {number(clump.outside.share)}; {every}"
    text = f"{percent(inside.share)} wrong"
    if clump.expected is not None:
        text += f", {percent(clump.expected / inside.rows)} expected"
    return f"{text}, {percent(clump.outside.share)} outside; {every}"


def _bars(report: HolesReport, clump: ClumpFacts) -> str:
    """Draw the rate inside, with the part beyond what was expected, and the rate outside."""
    longest = 1.0
    if report.losses is not None:
        rates = [abs(r.share) for c in report.clumps for r in (c.inside, c.outside) if r.rows]
        longest = max(rates, default=1.0) or 1.0
    inside = _part(clump.inside.share, longest)
    due = 0.0
    if clump.expected is not None and clump.inside.rows:
        due = min(_part(clump.expected / clump.inside.rows, longest), inside)
    outside = _part(clump.outside.share, longest)
    return (
        '<span class="bars" aria-hidden="true"><span>'
        f'<i class="due" style="width:{due:.1f}%"></i>'
        f'<i class="in" style="width:{inside - due:.1f}%"></i></span>'
        f'<span><i class="out" style="width:{outside:.1f}%"></i></span></span>'
    )


def _part(share: float, longest: float) -> float:
    return 100 * max(share, 0.0) / longest if share == share else 0.0


def _badges(clump: ClumpFacts) -> str:
    """Return what speaks for a clump. A fix that does not help is not worth a badge."""
    badges = [] if clump.kind == PLAIN else [(clump.kind, clump.kind)]
    badges.append(("good" if clump.confirmed else "plain", clump_words.status(clump)))
    if clump.fix.verdict in FIXES:
        badges.append(
            ("good" if clump.fix.verdict == "helps" else "some", FIXES[clump.fix.verdict])
        )
    return "".join(f'<b class="{kind}">{text}</b>' for kind, text in badges)


def _filters(clump: ClumpFacts) -> str:
    """Return a rule and its filters to copy. Their text is not changed in any way."""
    if clump.rule is None:
        return ""
    button = '<button type="button" class="copy" hidden>copy</button>'
    lines = [("pandas", clump.rule.pandas), ("SQL", f"WHERE {clump.rule.sql}")]
    filters = "".join(
        f"<dt>{name}</dt><dd><code>{_exact(code)}</code> {button}</dd>" for name, code in lines
    )
    shared = clump_words.shared_sentence(clump)
    beside = f'<p class="hint">{told(shared)}</p>' if shared else ""
    return (
        f'<p class="rule">{escape(str(clump.rule))}</p><dl class="filters">{filters}</dl>{beside}'
    )


def _exact(code: str) -> str:
    """Escape text to copy. A browser would turn a carriage return into another end of a line."""
    return escape(code).replace("\r", "&#13;")
