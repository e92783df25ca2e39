"""Numbers in tables with decimal commas, or with points that separate thousands."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from laconic.data.errors import UserError

# Numbers with a decimal comma, with points that separate thousands, or with both.
_COMMA = r"[-+]?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?"
# Whole numbers, with or without points that separate thousands.
_THOUSANDS = r"[-+]?[1-9]\d{0,2}(?:\.\d{3})*|0"
# Numbers whose comma cannot separate thousands.
_NOT_THOUSANDS = r"[-+]?(?:[\d.]+,(?:\d{1,2}|\d{4,})|0,\d+|\d{4,},\d+|[\d.]*\.[\d.]*,\d+)"


def add_decimal(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--decimal``, which every command that reads a table has."""
    parser.add_argument(
        "--decimal", choices=(".", ","), metavar="SIGN",
        help="decimal sign of a CSV table, . or , (default: detected; warnings tell of doubts)",
    )  # fmt: skip


def mend_numbers(
    frame: Any,
    file: str,
    text: Sequence[str],
    decimal: str | None,
    read_spelled: Callable[[list[str]], Any],
) -> None:
    """Turn text columns with decimal commas into numbers, where it is clear that they are numbers.

    ``decimal`` is the decimal sign of the table. If it is None, commas are decimal if the comma of
    some number in the table cannot separate thousands. Points in a column such as 1.250 and 980
    then separate thousands, and a warning says so. Columns in ``text`` stay as they are.
    ``read_spelled`` reads columns as they are spelled.
    """
    if decimal == ".":
        return
    commas = _comma_columns(frame, text)
    clear = decimal == "," or any(c.str.fullmatch(_NOT_THOUSANDS).any() for c in commas.values())
    pointed = _pointed(frame, text)
    if not clear and any(_has_decimals(frame[name]) for name in pointed):
        return  # points are decimal
    for name, known in commas.items() if clear else ():
        frame[name] = _number(known).reindex(frame.index)
    _mend_thousands(frame, file, read_spelled(pointed) if pointed else frame[[]], decimal, clear)


def found_sign(
    frame: Any, file: str, text: Sequence[str], read_spelled: Callable[[list[str]], Any]
) -> str | None:
    """Return the decimal sign that the first rows of a table show, or None if no number has one.

    Other rows of the table must be read in the same way, so doubts are refused. The arguments are
    those of `mend_numbers`.
    """
    commas = _comma_columns(frame, text)
    if any(known.str.fullmatch(_NOT_THOUSANDS).any() for known in commas.values()):
        return ","
    pointed = _pointed(frame, text)
    if any(_has_decimals(frame[name]) for name in pointed):
        return "."
    spelled = read_spelled(pointed) if pointed else frame[[]]
    texts = [*commas.items(), *((name, spelled[name].dropna()) for name in spelled.columns)]
    for name, known in texts:
        signs = known[known.str.contains("[.,]")]
        if len(signs):
            raise UserError(
                f"{file}: {signs.iloc[0]} in column {name!r} may be thousands or have decimals, "
                "and the table is too long to compare all rows. Add --decimal , or --decimal . to "
                "say which sign is decimal."
            )
    return None


def _mend_thousands(frame: Any, file: str, spelled: Any, decimal: str | None, clear: bool) -> None:
    """Read columns such as 1.250 and 980 as thousands if commas are decimal. Warn of doubts."""
    found = {}
    for name in spelled.columns:
        known = spelled[name].dropna().astype(str).str.strip()
        points = known[known.str.contains(".", regex=False)]
        wrong = points[~points.str.fullmatch(_THOUSANDS)]
        if len(wrong) and decimal == ",":
            raise UserError(
                f"column {name!r} has {wrong.iloc[0]!r} in row {wrong.index[0] + 1}, but beside "
                "decimal commas, points separate thousands. Write its decimals with commas, or add "
                "--decimal . if points are decimal."
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
    """Return the known cells of text columns with only numbers such as 12,5 or 1.234.567."""
    found = {}
    for name in frame.columns:
        if name in text or not is_text(frame[name]):
            continue
        known = frame[name].dropna().astype(str).str.strip()
        if known.str.fullmatch(_COMMA).all() and known.str.contains("[.,]").any():
            found[name] = known
    return found


def _pointed(frame: Any, text: Sequence[str]) -> list[str]:
    """Return the columns whose numbers may have points."""
    return [n for n in frame.columns if frame[n].dtype.kind == "f" and n not in text]


def _number(known: Any) -> Any:
    """Convert text to numbers. Points separate thousands, and commas are decimal."""
    plain = known.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    return plain.astype(float)


def _has_decimals(column: Any) -> bool:
    """Return whether the point of some number cannot separate thousands, as in 12.5678 or 0.5."""
    size = column.dropna().abs()
    thousandths = (size * 1000).round() / 1000 == size
    small = (size > 0) & (size < 1)
    large = (size >= 1000) & (size % 1 != 0)
    return bool((~thousandths | small | large).any())


def _tell(file: str, name: str, cell: str, number: float, clear: bool) -> None:
    why = (
        "because the table has decimal commas" if clear else "but its point may separate thousands"
    )
    warnings.warn(
        f"{file}: {cell} in column {name!r} is read as {number:.15g}, {why}. Add --decimal , if "
        "points separate thousands, or --decimal . if they are decimal.",
        stacklevel=2,
    )


def is_text(column: Any) -> bool:
    """Return whether a column is categorical. Truth values with gaps count as numbers."""
    kind = str(column.dtype)
    if kind != "object":
        return kind == "category" or kind.startswith("str")
    return not all(isinstance(value, bool) for value in column.dropna())
