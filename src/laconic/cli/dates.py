"""Dates in tables that are written with the day or the month first."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import Any

from laconic.cli.numbers import is_text
from laconic.data.errors import UserError

# A text column counts as dates if at least this share of its cells are dates.
MOST = 0.9


def add_dates(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--dates``, which every command that reads a table has."""
    parser.add_argument(
        "--dates", choices=("dmy", "mdy"), metavar="ORDER",
        help="order of dates such as 11.10.2023 or 11/10/2023: dmy (day first) or mdy "
        "(month first)",
    )  # fmt: skip


def mend_dates(
    frame: Any, order: str | None, text: Collection[str], dated: Collection[str]
) -> None:
    """Rewrite dates of the given order in ISO 8601, the only form that other code reads.

    Columns in ``text`` stay as they are, unless they are in ``dated`` too. Any other column counts
    as dates if nearly all of its cells are dates. Its remaining cells are then refused.
    """
    from laconic.data.dates import as_iso, is_other_order

    if order is None:
        return
    for name in frame.columns:
        if not is_text(frame[name]) or (name in text and name not in dated):
            continue
        known = frame[name].dropna().astype(str)
        if not known.map(is_other_order).any():
            continue
        dates = known.map(lambda cell: as_iso(cell, order))
        wrong = known[dates.isna()]
        if name not in dated and len(wrong) > (1 - MOST) * len(known):
            continue
        if len(wrong):
            raise UserError(
                f"column {name!r} has {wrong.iloc[0]!r} in row {wrong.index[0] + 1}, which is not "
                f"a date by --dates {order}. Correct or empty such cells."
            )
        frame[name] = dates.reindex(frame.index)
