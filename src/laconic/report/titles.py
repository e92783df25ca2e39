"""Titles of clumps, such as “Local-gov, age over 45”."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from laconic.data.dates import DATE, date_text
from laconic.model.card import shorten
from laconic.report.gaps import MOSTLY

if TYPE_CHECKING:
    from laconic.report.columns import TableColumn
    from laconic.report.conditions import RuleCondition
    from laconic.report.facts import ClumpFacts, HolesReport

# Most features in the title of a ball, and the share of its rows that a category needs to be one.
PARTS, COMMON = 3, 0.5
# Longest name in a title. The rule and the filters below it have the whole name.
LONGEST = 60
# Names that say nothing without the name of their column.
ANSWERS = {"yes", "no", "true", "false", "none", "nan", "null", "other", "unknown", "missing"}
# A name that stands for itself has three letters in a row.
WORD = re.compile(r"[^\W\d_]{3}")


def title(report: HolesReport, clump: ClumpFacts) -> str:
    """Return a title in a few words. It is exact for a rule, and says “mostly” for a ball.

    A ball is named by the features that set it apart: by a category that at least half of its rows
    have, or by the numbers of the middle half of its rows. A ball of pictures is named by its most
    common mistakes.
    """
    if clump.rule is not None:
        return _of_rule(report, clump)
    if report.table.image_shape is not None:
        return _of_mistakes(clump)
    columns = {column.name: column for column in reversed(report.table.columns)}
    apart = [columns[gap.name] for gap in clump.gaps]
    said = ((_of_many(report, column, clump.rows), column) for column in apart)
    parts = [(part, column) for part, column in said if part is not None]
    return f"Mostly {_joined(parts[:PARTS])}" if parts else "Rows that are alike"


def _of_mistakes(clump: ClumpFacts) -> str:
    """Name the two most common mistakes."""
    pairs = [tuple(shorten(str(x), LONGEST) for x in pair[:2]) for pair in clump.mistakes[:2]]
    if len(pairs) == 2 and pairs[0] == pairs[1][::-1]:
        return f"{pairs[0][0]} and {pairs[0][1]} confused"
    return ", ".join(f"{a} predicted as {b}" for a, b in pairs) or "Pictures that are alike"


def _of_rule(report: HolesReport, clump: ClumpFacts) -> str:
    conditions = clump.rule.conditions if clump.rule is not None else ()
    return _joined([(_of_condition(report, c), c.column) for c in conditions])


def _joined(parts: list[tuple[str, TableColumn]]) -> str:
    """List what is said about some columns, categories first."""
    return ", ".join(part for part, _ in sorted(parts, key=lambda pair: pair[1].names is None))


def _of_condition(report: HolesReport, condition: RuleCondition) -> str:
    column = condition.column
    name = shorten(column.name, LONGEST)
    if condition.missing:
        return f"{name} missing"
    if condition.known:
        return f"{name} known"
    if condition.category is not None:
        return _category(report, column, (column.names or [])[condition.category])
    if (only := condition.only) is not None:
        return f"{name} {_number(column, only)}"
    low, high, dated = condition.low, condition.high, column.unit == DATE
    if high is None:
        return f"{name} {'after' if dated else 'over'} {_number(column, low)}"
    if low is None:
        return f"{name} {'until' if dated else 'up to'} {_number(column, high)}"
    if column.whole and not dated:
        low = np.floor(low) + 1  # the smallest number that the interval holds
    return f"{name} {_number(column, low)} to {_number(column, high)}"


def _category(report: HolesReport, column: TableColumn, category: str) -> str:
    """Return the name of a category, with that of its column if it says nothing by itself."""
    others = (c.names for c in report.table.columns if c is not column and c.names is not None)
    plain = WORD.search(category) and category.lower() not in ANSWERS
    if plain and not any(category in names for names in others):
        return shorten(category, LONGEST)
    return f"{shorten(column.name, LONGEST)} {shorten(category, LONGEST)}"


def _number(column: TableColumn, value: float | None) -> str:
    """Return a number of a rule, without loss for up to six digits."""
    value = float(value or 0.0)
    if column.unit == DATE:
        return date_text(value, value == np.floor(value))
    digits = f"{value:.0f}" if value == np.floor(value) and abs(value) < 1e15 else f"{value:.6g}"
    return f"{digits} {column.unit}" if column.unit else digits


def _quarters(values: np.ndarray) -> np.ndarray:
    """Return quartiles that are among the values."""
    return np.quantile(values, [0.25, 0.5, 0.75], method="inverted_cdf")


def _of_many(report: HolesReport, column: TableColumn, rows: np.ndarray) -> str | None:
    """Say what most of some rows have in a column, or None if they have nothing in common."""
    values = column.values[rows]
    if column.names is not None:
        (code, often), *_ = Counter(values.tolist()).most_common(1)
        share = often / len(rows)
        if code < 0 or share < COMMON or share <= np.mean(column.values == code):
            return None
        return _category(report, column, column.names[int(code)])
    known = values[~np.isnan(values)]
    if len(known) < COMMON * len(rows):
        return None
    name = shorten(column.name, LONGEST)
    low, middle, high = (float(q) for q in _quarters(known))
    if low == high or np.mean(known == middle) >= MOSTLY:
        return f"{name} {column.spelled(middle)}"
    return f"{name} {column.spelled(low)} to {column.spelled(high)}"
