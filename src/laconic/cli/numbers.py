"""Numbers of a table with decimal commas, or with points for thousands."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from laconic.data.errors import UserError

# Numbers with a decimal comma, with points for thousands, or with both; those with points for
# thousands only; and those whose comma cannot be for thousands.
_COMMA = r"[-+]?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?"
_THOUSANDS = r"[-+]?[1-9]\d{0,2}(?:\.\d{3})*|0"
_NOT_THOUSANDS = r"[-+]?(?:[\d.]+,(?:\d{1,2}|\d{4,})|0,\d+|\d{4,},\d+|[\d.]*\.[\d.]*,\d+)"


def add_decimal(parser: argparse.ArgumentParser) -> None:
    """The option of every command that reads a table."""
    parser.add_argument(
        "--decimal", choices=(".", ","), metavar="SIGN",
        help="decimal sign of a CSV table, . or , (by default it is found: see the warnings)",
    )  # fmt: skip


def mend_numbers(
    frame: Any,
    file: str,
    text: Sequence[str],
    decimal: str | None,
    read_spelled: Callable[[list[str]], Any],
) -> None:
    """Turn columns of numbers with decimal commas into numbers, where it is clear that they are.

    ``decimal`` is the decimal sign of the table. Where it is None, commas are decimal if some
    number of the table could not have its comma for thousands; points in a column such as 1.250 and
    980 are then for thousands, and a warning says so. Columns of ``text`` stay as they are, and
    ``read_spelled`` reads columns as they are spelled.
    """
    if decimal == ".":
        return
    commas = _comma_columns(frame, text)
    clear = decimal == "," or any(c.str.fullmatch(_NOT_THOUSANDS).any() for c in commas.values())
    pointed = [n for n in frame.columns if frame[n].dtype.kind == "f" and n not in text]
    if not clear and any(_has_decimals(frame[name]) for name in pointed):
        return  # points are decimal
    for name, known in commas.items() if clear else ():
        frame[name] = _number(known).reindex(frame.index)
    _mend_thousands(frame, file, read_spelled(pointed) if pointed else frame[[]], decimal, clear)


def _mend_thousands(frame: Any, file: str, spelled: Any, decimal: str | None, clear: bool) -> None:
    """Mend columns such as 1.250 and 980 where commas are decimal, and tell what is not sure."""
    found = {}
    for name in spelled.columns:
        known = spelled[name].dropna().astype(str).str.strip()
        points = known[known.str.contains(".", regex=False)]
        wrong = points[~points.str.fullmatch(_THOUSANDS)]
        if len(wrong) and decimal == ",":
            raise UserError(
                f"column {name!r} has {wrong.iloc[0]!r} in row {wrong.index[0] + 1}, but "
                "--decimal , says that points are for thousands; write its decimals with commas, "
                "or leave --decimal out"
            )
        if len(wrong) and not clear:
            return  # points are decimal
        if len(points) and (decimal == "," or known.str.fullmatch(_THOUSANDS).all()):
            found[name] = known, points
    for name, (known, points) in found.items():
        if clear:
            frame[name] = _number(known).reindex(frame.index)
        if decimal is None:
            _tell(file, name, points.iloc[0], frame[name].loc[points.index[0]], clear)


def _comma_columns(frame: Any, text: Sequence[str]) -> dict[str, Any]:
    """The known cells of columns of text in which all are numbers such as 12,5 or 1.234.567."""
    found = {}
    for name in frame.columns:
        if name in text or not is_text(frame[name]):
            continue
        known = frame[name].dropna().astype(str).str.strip()
        if known.str.fullmatch(_COMMA).all() and known.str.contains("[.,]").any():
            found[name] = known
    return found


def _number(known: Any) -> Any:
    """Numbers of text in which points are for thousands and commas are decimal."""
    plain = known.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    return plain.astype(float)


def _has_decimals(column: Any) -> bool:
    """Whether some number could not have its point for thousands, such as 12.5678 or 0.5."""
    size = column.dropna().abs()
    thousandths = (size * 1000).round() / 1000 == size
    small = (size > 0) & (size < 1)
    large = (size >= 1000) & (size % 1 != 0)
    return bool((~thousandths | small | large).any())


def _tell(file: str, name: str, cell: str, number: float, clear: bool) -> None:
    why = "because the table has decimal commas" if clear else "but its point may be for thousands"
    warnings.warn(
        f"{file}: {cell} in column {name!r} is read as {number:.15g}, {why}; add --decimal , if "
        "points are for thousands, or --decimal . if they are decimal",
        stacklevel=2,
    )


def is_text(column: Any) -> bool:
    """Whether the column is categorical; truth values with gaps are numbers with gaps."""
    kind = str(column.dtype)
    if kind != "object":
        return kind == "category" or kind.startswith("str")
    return not all(isinstance(value, bool) for value in column.dropna())
