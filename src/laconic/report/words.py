"""The report on clumps as text: for the terminal, and sentences that the page uses too."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from laconic.data.doubts import in_words
from laconic.holes.local_models import few_labels
from laconic.look.numbers import number, percent, percents
from laconic.model.card import MOST_NAMES, count, listed, shorten
from laconic.report.clump_words import (
    filter_lines,
    mistakes_sentence,
    rates_sentence,
    shown,
    status,
)
from laconic.report.columns import quoted
from laconic.report.facts import CONFIRMED
from laconic.report.search import HARD, PLAIN, SURPRISING
from laconic.report.titles import title

if TYPE_CHECKING:
    from rich.console import RenderableType

    from laconic.report.facts import ClumpFacts, HolesReport

# Numbers of features and of rows that the terminal shows for each clump.
FEATURES, ROWS = 4, 5


def headline(report: HolesReport) -> str:
    """Say how often the classifier is wrong, and which labels it does not know."""
    if report.losses is not None:
        mean = number(float(report.losses.mean()))
        return f"The mean loss of {len(report.losses):,} rows is {mean}."
    rate = report.overall
    share = percent(rate.share)
    text = f"{share} of {rate.rows:,} rows are misclassified ({count(int(rate.errors), 'error')})."
    strange = report.strange
    if not strange.any():
        return text
    labels = np.unique(report.truth[strange]).tolist()
    which = "label" if len(labels) == 1 else "one of the labels"
    rows = int(strange.sum())
    verb = "has" if rows == 1 else "have"
    knows = "never predicts here" if report.known is None else "does not know"
    return (
        f"{text} {count(rows, 'row')} {verb} {which} {few_labels(labels)}, which the model {knows}."
    )


def summary(report: HolesReport) -> str:
    """Say in a sentence or two what was found."""
    if report.losses is None and report.overall.errors == 0:
        return "The classifier makes no error on these rows. There is nothing to look for."
    if report.overall.errors == report.overall.rows:
        return (
            "Every row is misclassified, so errors cannot clump. Check that the labels mean the "
            "same to the classifier and in these rows."
        )
    if not report.clumps and report.overall.rows < report.rows_needed:
        return (
            f"These rows are too few to look for clumps. A clump must have at least "
            f"{count(report.min_rows, 'row')} of the searched half, and at most half of it. "
            f"Give at least {report.rows_needed} rows, or allow smaller clumps (min_rows)."
        )
    sure = [clump for clump in report.clumps if clump.confirmed]
    what = "errors" if report.losses is None else "high losses"
    if report.losses is None and report.few_errors and not sure:
        return _few_errors(report)
    if not report.found:
        than = "than the rest" if report.probability is None else "than the rest or than expected"
        return (
            f"No clump of {what} was found. No rule, and no neighbourhood of up to a fifth of the "
            f"rows, has clearly more {what} {than}{_without(report)}."
        )
    if not sure:
        return f"No clump of {what} was confirmed on fresh rows{_without(report)}."
    text = " ".join(_confirmed(report, kind, sure) for kind in dict.fromkeys(c.kind for c in sure))
    if sure[0].kind == HARD:
        text = f"There is no surprising clump: no region fails clearly more than expected. {text}"
    if report.probability is None and report.losses is None:
        text += (
            " Without probabilities, rows that are hard for any model cannot be told from rows "
            "that this model gets wrong."
        )
    if fixes_help(report):
        before, after = percents(report.on_fresh.share, report.fixed.share)
        text += (
            f" Local fixes, chosen on the other half, would lower the error on fresh rows from "
            f"{before} to {after}."
        )
    return text


def fixes_help(report: HolesReport) -> bool:
    """Return whether local fixes visibly lower the error on fresh rows, and not by luck alone."""
    fresh, fixed = report.on_fresh, report.fixed
    before, after = percents(fresh.share, fixed.share)
    sure = any(clump.fix.verdict in ("helps", "may help") for clump in report.clumps)
    return report.losses is None and sure and fixed.errors < fresh.errors and before != after


def _confirmed(report: HolesReport, kind: str, sure: list[ClumpFacts]) -> str:
    """Say how many clumps of a kind fresh rows confirm, and what these hold."""
    some = [clump for clump in sure if clump.kind == kind]
    held = sum(clump.inside.errors for clump in some)
    rows = sum(clump.inside.rows for clump in some)
    fresh = report.on_fresh
    word = "clump" if kind == PLAIN else f"{kind} clump"
    text = f"Fresh rows confirm {count(len(some), word)}, with "
    among = f"in {percent(rows / fresh.rows)} of the rows"
    if report.losses is not None:
        return f"{text}a mean loss of {number(held / rows)} {among}."
    text += f"{percent(held / fresh.errors)} of the errors {among}"
    if kind == SURPRISING:
        due = sum(clump.expected or 0.0 for clump in some)
        return f"{text}: {count(int(held), 'error')}, where {number(due)} were expected."
    explained = kind == HARD and all(clump.as_expected for clump in some)
    return text + (", as the model expects." if explained else ".")


def _few_errors(report: HolesReport) -> str:
    """Say that the errors are too few to search, and whether they are near each other."""
    searched = report.overall.errors - report.on_fresh.errors
    text = (
        f"There are too few errors to look for clumps of at least {count(report.min_rows, 'row')}: "
        f"the searched half has {searched}. Give more rows, or allow smaller clumps (min_rows)."
    )
    near = report.nearness
    if near is None or not near.expected > 0:
        return text
    how = "closer" if near.p_value < CONFIRMED else "no closer"
    return (
        f"{text} Taken together, the errors are {how} to each other than chance explains"
        f"{_without(report)}: {count(near.pairs, 'pair')} of near errors, where "
        f"{near.expected:.2g} would be expected by chance (p = {near.p_value:.2g})."
    )


def _without(report: HolesReport) -> str:
    """Name the columns that the search did not use."""
    names = report.table.left_out
    return f" (columns not used: {listed(names)})" if names else ""


def about_columns(report: HolesReport, cells: bool = True) -> str:
    """Name the columns that the search did not use, and those that it perhaps should not use.

    With ``cells=False``, no cell of the table is quoted.
    """
    text = ""
    if report.ignored:
        text += f"Ignored on request: {listed(report.ignored)}. "
    if columns := report.table.names_of_rows:
        rows = f"in {len(report.truth):,} rows"
        named = listed([f"{c.name} ({c.different:,} {rows})" for c in columns])
        text += f"Left out because of too many different values: {named}. "
    if names := report.table.numbered:
        text += (
            f"Different whole numbers in every row: {listed(names)}. Ignore such a column if it "
            "names rows rather than describes them. "
        )
    if report.table.image_shape is not None:
        return text
    stray = [(c.name, c.stray) for c in report.table.columns if c.stray is not None and cells]
    for name, cell in stray[:MOST_NAMES]:
        text += f"{name} {in_words(cell, report.first_row)}. "
    if len(stray) > MOST_NAMES:
        text += f"The same holds for {len(stray) - MOST_NAMES:,} more columns. "
    return text


def how_it_was_measured(report: HolesReport, cells: bool = True) -> str:
    """Explain how the numbers were measured. With ``cells=False``, no cell is quoted."""
    fresh = report.on_fresh
    text = (
        f"Clumps were searched on {len(report.truth) - fresh.rows:,} rows and measured on "
        f"{fresh.rows:,} fresh rows, so that the search does not flatter them. Outside means in "
        "none of the clumps found. The features of a clump are compared with those of all other "
        "rows. "
    )
    if report.probability is not None:
        text += (
            "Surprising clumps have more errors than the model's probabilities predict, after "
            "these were recalibrated on the searched rows. Hard clumps have many errors, about as "
            "predicted. "
        )
    left_out = report.found - len(report.clumps)
    if left_out:
        more = "one more" if left_out == 1 else f"{left_out} more"
        but = "but there fresh rows fail no more often than elsewhere"
        if report.probability is not None:
            but = (
                "but fresh rows do not bear them out"
                if left_out > 1
                else "but fresh rows do not bear it out"
            )
        text += f"The search found {more}, {but}. "
    if report.clumps and report.losses is None and not fixes_help(report):
        before, after = percents(report.on_fresh.share, report.fixed.share)
        what = "change" if before == after else "lower"
        text += f"The local fixes tried would not {what} the error on fresh rows. "
    text += about_columns(report, cells)
    text += f"The first row of {report.source or 'the table'} is row {report.first_row}. "
    return text + "The model should not have been trained on any of these rows."


def fix_sentence(report: HolesReport, clump: ClumpFacts) -> str:
    """Say whether a local fix helps, what it is, and which features it relies on."""
    fix = clump.fix
    if fix.verdict == "not tried":
        return "There are no labels, so no local fix was tried."
    if fix.verdict == "too few rows to tell":
        return (
            f"The clump has only {count(fix.rows, 'fresh row')}, too few to tell whether a fix "
            "helps."
        )
    if fix.kind == "keep":
        return "No local model did better than the classifier itself."
    what = (
        f"always predicting “{fix.says}”"
        if fix.kind == "constant"
        else "a linear model for this clump"
    )
    lead = {
        "helps": "A local fix helps",
        "may help": "A local fix may help",
        "no clear difference": "A local fix makes no clear difference",
    }.get(fix.verdict, "A local fix does not help")
    luck = f" (p = {fix.luck:.2g} if both were equally good)" if fix.luck < 1 else ""
    text = f"{lead}: {what} makes {fix.after} instead of {count(fix.before, 'error')}"
    return f"{text} on {count(fix.rows, 'fresh row')}{luck}." + _leanings(report, clump)


def _leanings(report: HolesReport, clump: ClumpFacts) -> str:
    """Name the largest weights of a linear fix."""
    parts = []
    for column, label in clump.fix.leans_on:
        what, large = report.table.meaning(column)
        parts.append(f"{what} ({large} suggests {quoted(label)})")
    if not parts:
        return ""
    listed = " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
    return f" It relies mostly on {listed}."


def report_text(report: HolesReport, width: int) -> str:
    """Return the report as plain text."""
    from rich.console import Console

    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, highlight=False)
    console.print(report_lines(report))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def report_lines(report: HolesReport) -> RenderableType:
    """Return the report for a terminal."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    parts: list[Any] = [
        Text(_plain(report.headline), style="bold"),
        Text(_plain(headline(report))),
        Text(_plain(summary(report))),
    ]
    if report.clumps:
        # Rates are of fresh rows only, so the table shows both numbers of rows.
        parts += [_ranking(report), Text(_plain(how_it_was_measured(report)), style="dim")]
    elif columns := about_columns(report):
        parts.append(Text(_plain(columns.strip()), style="dim"))
    for place, clump in enumerate(report.clumps, start=1):
        parts.append(Text("\n" + _plain(f"Clump {place}: {title(report, clump)}"), style="bold"))
        lines = [rates_sentence(report, clump), *filter_lines(clump)]
        lines += [mistakes_sentence(clump)] if report.losses is None else []
        lines += [gap.sentence for gap in clump.gaps[:FEATURES]]
        lines.append(fix_sentence(report, clump))
        mark = "high loss" if report.losses is not None else "misclassified"
        nearest = ", ".join(
            f"{report.first_row + row}{'*' if report.wrong[row] else ''}"
            for row in clump.rows[:ROWS].tolist()
        )
        lines.append(f"Rows nearest to its centre (* {mark}): {nearest}")
        parts += [Padding(Text(_plain(line)), (0, 0, 0, 2)) for line in lines]
    return Group(*parts)


def _plain(text: str) -> str:
    """Replace control characters, as names may come from an untrusted file."""
    return shorten(text, len(text) + 1)


def _ranking(report: HolesReport) -> RenderableType:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    losses = report.losses is not None
    rate = "mean loss\n" if losses else "wrong\n"
    heads = ["clump", "kind", "rows,\nall", "rows,\nfresh", f"{rate}inside", "expected",
             f"{rate}outside", "with the\nfix", "on fresh\nrows", "local fix"]  # fmt: skip
    hidden = {"kind", "expected"} if report.probability is None else set()
    if losses or report.probability is not None:  # so that the table is not too wide
        hidden |= {"with the\nfix", "local fix"}
    for name in heads:
        left = name in ("kind", *heads[-2:])
        if name not in hidden:
            short = name not in heads[-2:]  # only the last two columns may be cut into lines
            table.add_column(name, justify="left" if left else "right", no_wrap=short)
    for place, clump in enumerate(report.clumps, start=1):
        fix = clump.fix
        after = "" if fix.kind == "keep" or not fix.rows else percent(fix.after / fix.rows)
        due = None if clump.expected is None else clump.expected / max(clump.inside.rows, 1)
        cells = [
            str(place),
            clump.kind,
            f"{len(clump.rows):,}",
            f"{clump.inside.rows:,}",
            shown(report, clump.inside.share),
            "" if due is None else percent(due),
            shown(report, clump.outside.share),
            after,
            status(clump),
            fix.verdict,
        ]
        kept = [cell for cell, name in zip(cells, heads, strict=True) if name not in hidden]
        table.add_row(*kept, style="" if clump.confirmed else "dim")
    return table
