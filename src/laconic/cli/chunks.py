"""Tables in chunks of rows, so that a table of any length takes the same memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

from laconic.cli.files import PARQUET, need
from laconic.cli.kept_times import finest_times
from laconic.cli.model_rows import Wanted
from laconic.cli.numbers import found_sign, mend_numbers
from laconic.cli.parquet_chunks import parquet_chunks, several_files, size_of
from laconic.cli.reading import read_table
from laconic.cli.text_tables import TextTable, check_twice, plain_errors
from laconic.data.errors import UserError

# A table with at most this many cells is read as a whole. A longer one comes in chunks of as many.
CELLS = 1 << 21


class Chunk(NamedTuple):
    """Some rows of a table that follow each other."""

    file: str | None
    """The file with these rows, if the table has several files."""
    frame: Any
    """The rows. The index is their numbers in the file, from zero."""
    finest: Mapping[str, Any] = {}
    """The finest times of columns to keep, if they are to be spelled; see `spelled`."""


def chunks(file: str, wanted: Wanted, decimal: str | None, to_text: bool) -> Iterator[Chunk]:
    """Yield the rows of a table as data frames with at least the columns that are wanted.

    ``decimal`` is the decimal sign of a text file, which is found if it is None. ``to_text`` says
    that columns to keep become text.
    """
    pandas = need("pandas", "data")
    opened, paths = None, several_files(file)
    if paths is None and file.lower().endswith(PARQUET):
        n_rows, n_columns = size_of(file)
        paths = [Path(file)] if n_rows * n_columns > CELLS else None
    elif paths is None:
        with plain_errors(file):
            opened = TextTable(pandas, file)
        if opened.n_lines * opened.n_columns > CELLS:
            yield from (Chunk(None, frame) for frame in _text_chunks(opened, wanted, decimal))
            return
    if paths is not None:
        finest: dict[str, Any] | None = None
        for path, frame in parquet_chunks(paths, wanted, CELLS):
            if finest is None:  # now all files are known to have the columns
                finest = finest_times(paths, wanted.keep) if to_text else {}
            yield Chunk(str(path) if len(paths) > 1 else None, frame, finest)
        return
    frame = read_table(file, wanted.text, decimal=decimal, opened=opened)
    wanted.check(list(frame.columns), file)
    yield Chunk(None, frame)


@contextmanager
def of_file(file: str | None) -> Iterator[None]:
    """Name the file in errors of its rows, if the table has several files."""
    try:
        yield
    except (UserError, ValueError) as error:
        if file is None:
            raise
        raise UserError(f"{file}: {error}") from error


def _text_chunks(table: TextTable, wanted: Wanted, decimal: str | None) -> Iterator[Any]:
    """Yield the rows of a text file.

    Columns to read as they are spelled are read a second time, with only empty cells as missing.
    """
    file, size = table.file, max(1, CELLS // table.n_columns)
    with plain_errors(file):
        table.read((), header=None, nrows=2)  # refuses rows with more cells than the header
        columns = [str(name) for name in table.read((), nrows=0).columns]
        check_twice(file, columns)
        wanted.check(columns, file)
        signs = table.has_signs(decimal)
        plain = table.read((), chunksize=size)
        again = columns if signs else wanted.text
        spelled: Any = repeat(None)
        if again:
            only_empty = {"keep_default_na": False, "na_values": [""], "dtype": str}
            spelled = table.read((), chunksize=size, usecols=again, **only_empty)
        for frame, as_spelled in zip(plain, spelled, strict=False):
            frame.columns = columns
            if signs:
                decimal = _mended(frame, as_spelled, file, wanted.text, decimal)
            for name in wanted.text:
                frame[name] = as_spelled[name]
            yield frame


def _mended(
    frame: Any, spelled: Any, file: str, text: list[str], decimal: str | None
) -> str | None:
    """Read numbers with decimal commas. Return the decimal sign, or None if no number has one."""

    def read_spelled(names: list[str]) -> Any:
        return spelled[names].where(frame[names].notna())

    decimal = decimal or found_sign(frame, file, text, read_spelled)
    if decimal == ",":
        mend_numbers(frame, file, text, decimal, read_spelled)
    return decimal
