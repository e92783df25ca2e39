"""Dates of a table that begin with the day or the month."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import Any

from laconic.cli.numbers import is_text
from laconic.data.errors import UserError

# A column of text is dates if at least this part of its cells is.
MOST = 0.9


def add_dates(parser: argparse.ArgumentParser) -> None:
    """The option of every command that reads a table."""
    parser.add_argument(
        "--dates", choices=("dmy", "mdy"), metavar="ORDER",
        help="read dates such as 11.10.2023 or 11/10/2023 too: dmy (the day first) or mdy",
    )  # fmt: skip


def mend_dates(
    frame: Any, order: str | None, text: Collection[str], dated: Collection[str]
) -> None:
    """Write dates in an order as ISO 8601 has them, which is how all else reads them.

    Columns of ``text`` stay as they are, except those that are known to be ``dated``. Others are
    dates if nearly all cells are; a cell that is none is then refused.
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
                f"column {name!r} has {wrong.iloc[0]!r} in row {wrong.index[0] + 1}, which is no "
                f"date by --dates {order}; mend or empty such cells"
            )
        frame[name] = dates.reindex(frame.index)
