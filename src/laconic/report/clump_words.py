"""One clump of a report in words: its rates, its mistakes, its filters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laconic.look.numbers import number, percent
from laconic.model.card import count
from laconic.report.search import HARD, SURPRISING

if TYPE_CHECKING:
    from laconic.report.facts import ClumpFacts, HolesReport


def status(clump: ClumpFacts) -> str:
    """Say whether fresh rows confirm the clump."""
    if clump.confirmed:
        return "confirmed"
    return "not confirmed" if clump.inside.rows else "no fresh rows"


def shown(report: HolesReport, share: float) -> str:
    """Return a share of errors in per cent, or a mean loss as a number."""
    if report.losses is None or share != share:
        return percent(share)
    return number(share)


def mistakes_sentence(clump: ClumpFacts) -> str:
    """Name the most common mistakes."""
    total = clump.searched.errors + clump.inside.errors
    parts = [f"{true} predicted as {taken} ({n})" for true, taken, n in clump.mistakes]
    return (
        f"Mistakes: {', '.join(parts)}, out of {total} in both halves." if parts else "No mistakes."
    )


def rates_sentence(report: HolesReport, clump: ClumpFacts) -> str:
    """Say how many rows are wrong inside, were expected to be, and are outside."""
    inside, outside, searched = clump.inside, clump.outside, clump.searched
    odds = f"{clump.chance:.1g}" if clump.chance >= 1e-12 else "less than 1e-12"
    if report.losses is not None:
        return (
            f"The mean loss of {count(inside.rows, 'fresh row')} inside is "
            f"{shown(report, inside.share)}, and {shown(report, outside.share)} of "
            f"{outside.rows:,} outside all clumps (chance {odds} if losses were spread evenly). In "
            f"the search, it was {shown(report, searched.share)}."
        )
    are = "is" if inside.rows == 1 else "are"
    text = f"{inside.errors:,} of {count(inside.rows, 'fresh row')} inside {are} wrong"
    due = "" if clump.expected is None else number(clump.expected)
    if clump.kind == SURPRISING:
        text += (
            f", where the model's probabilities predict {due} (chance {odds} if rows failed as "
            f"predicted). Outside all clumps, {outside.errors:,} of {outside.rows:,} are wrong."
        )
    else:
        text += (
            f", and {outside.errors:,} of {outside.rows:,} outside all clumps (chance {odds} if "
            "errors were spread evenly)."
        )
        text += f" The model's probabilities predict {due} wrong rows inside" if due else ""
        if due and clump.kind == HARD and clump.too_sure:
            text += (
                f", after they were recalibrated. Before, they predict {number(clump.own or 0.0)}: "
                "the model is far too sure of these rows"
            )
        elif due and not clump.as_expected and clump.kind == HARD:
            text += (
                f" (chance {clump.beyond:.1g} of so many errors). The clump may be surprising, but "
                "its fresh rows are too few to be sure"
            )
        text += "." if due else ""
    return f"{text} In the search, {searched.errors:,} of {searched.rows:,} inside were wrong."


def filter_lines(clump: ClumpFacts) -> list[str]:
    """Return the filters that select the rows of a rule, and what else they select."""
    if clump.rule is None:
        return []
    lines = [f"pandas: {clump.rule.pandas}", f"SQL: WHERE {clump.rule.sql}", shared_sentence(clump)]
    return list(filter(None, lines))


def shared_sentence(clump: ClumpFacts) -> str:
    """Say that the filters of a rule also select rows of other clumps, if they do."""
    if not clump.shared:
        return ""
    return f"The filters also select {count(clump.shared, 'row')} of clumps found before."
