"""Read tables as data frames: Parquet, or text with any of three separators."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from laconic.cli.dates import mend_dates
from laconic.cli.files import PARQUET, need
from laconic.cli.numbers import is_text, mend_numbers
from laconic.cli.parquet_tables import check_parquet, parquet_errors
from laconic.cli.text_tables import TextTable, check_twice, plain_errors
from laconic.data.errors import UserError

# Rows that tell whether whole numbers are codes such as 01004.
FIRST_ROWS = 1000
# A code such as 01004, which is not the number 1004.
_CODE = r"0\d+"


def read_table(
    file: str,
    text: Iterable[str] = (),
    target: str | None = None,
    decimal: str | None = None,
    dates: str | None = None,
    dated: Iterable[str] = (),
    unread: Iterable[str] | None = None,
    opened: TextTable | None = None,
) -> Any:
    """Read a table as a data frame with string column names.

    ``text`` names columns to read as they are spelled. ``decimal`` is the decimal sign of a text
    file, which is found if it is None. ``dates`` is the order of dates that are not written in
    ISO 8601. ``dated`` names columns in ``text`` that hold dates. ``unread`` names columns that are
    not used. If it is given, a warning names the other columns with codes such as 01004, and a
    target with such codes is read as text. ``opened`` is a text file that was opened before.
    """
    text, dated = list(text), list(dated)
    pandas = need("pandas", "data")
    if file.lower().endswith(PARQUET):
        frame = _read_parquet(pandas, file)
    else:
        with plain_errors(file):
            table = opened or TextTable(pandas, file)
            frame = _read_csv(table, text, target, decimal, unread)
    frame.columns = [str(name) for name in frame.columns]
    check_twice(file, frame.columns.tolist())
    if len(frame) == 0:
        raise UserError(f"{file} has no rows.")
    mend_dates(frame, dates, text if target is None else [*text, target], dated)
    return frame


def _read_parquet(pandas: Any, file: str) -> Any:
    """Read a Parquet file, or a folder of them."""
    check_parquet(file)
    with parquet_errors(file):
        return pandas.read_parquet(file)


def _read_csv(
    table: TextTable,
    text: Sequence[str],
    target: str | None,
    decimal: str | None,
    unread: Iterable[str] | None,
) -> Any:
    """Read a CSV file.

    ``NA`` and similar words count as missing in columns of numbers. In columns of text they are
    ordinary values. The whole column decides which of the two it is. So columns of text that seem
    to have gaps are read a second time, with only empty cells as missing. A target that seems to
    have no label at all is read again too.
    """
    file, read = table.file, table.read
    frame = read(text)
    if table.has_signs(decimal):
        mend_numbers(frame, file, text, decimal, lambda names: read(names)[names])
    if unread is not None and set(text) <= set(frame.columns):  # an error follows otherwise
        passed = {*text, *unread}
        numbers = [n for n in frame.columns if frame[n].dtype.kind in "if" and n not in passed]
        _warn_of_codes(file, read(numbers, nrows=FIRST_ROWS)[numbers])
        if target is not None and target in frame and frame[target].dtype.kind in "if":
            labels = read([target], usecols=[target])[target]
            if labels.str.fullmatch(_CODE).any():
                frame[target] = labels  # labels are names, so they keep their zeros
    gaps = frame.columns[frame.isna().any()]
    spelled = {*text, *(n for n in gaps if is_text(frame[n]))}
    if target in gaps and frame[target].isna().all():
        spelled.add(target)
    again = [n for n in gaps if n in spelled]
    if again:
        frame[again] = read(again, keep_default_na=False, na_values=[""])[again]
    return frame


def _warn_of_codes(file: str, spelled: Any) -> None:
    """Warn of columns of numbers with codes such as 01004, which lose their zeros."""
    for name in spelled.columns:
        codes = spelled[name].dropna()
        codes = codes[codes.str.fullmatch(_CODE)]
        if len(codes):
            warnings.warn(
                f"{file}: column {name!r} has codes such as {codes.iloc[0]}, which are read as "
                f"numbers. Add --categorical {name} to read them as text.",
                stacklevel=2,
            )
