"""Write tables piece by piece, in the format of the file's name. A file is written whole or not."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from laconic.cli.files import EXCEL, PARQUET, WRITERS, named_separator, need
from laconic.data.errors import LONGEST, UserError, cause
from laconic.files.whole import whole_file

# Most characters that a cell of Excel holds.
LONGEST_CELL = 32767
# Characters that the XML of an Excel file cannot hold.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")

Write = Callable[[Any], None]
"""Writes a data frame, the next rows of a table."""


@contextmanager
def table_writer(file: str | None) -> Iterator[Write]:
    """Give a function that writes the next rows of a table. Without a file, it prints them.

    By default the format is CSV, perhaps compressed. The file is opened when the first rows are
    written.
    """
    open_writer = _writer_of(Path(file or "").suffix.lower())
    with ExitStack() as opened:
        write: Write | None = None

        def write_next(frame: Any) -> None:
            nonlocal write
            write = write or opened.enter_context(open_writer(file, frame))
            write(frame)

        yield write_next


def writes_text(file: str | None) -> bool:
    """Return whether a file, or standard output, gets text."""
    return Path(file or "").suffix.lower() not in (*PARQUET, *EXCEL)


def _writer_of(kind: str) -> Callable[[Any, Any], AbstractContextManager[Write]]:
    """Return what opens a file with this ending. It is given the file and the first rows."""
    if kind in EXCEL or (kind in PARQUET and not find_spec("pyarrow")):
        return _in_memory
    return _parquet if kind in PARQUET else _text


@contextmanager
def _text(file: str | None, first: Any) -> Iterator[Write]:
    """Write CSV. Only the first rows get a header."""
    from pandas.io.common import get_handle, infer_compression

    header = True

    def write_to(stream: Any, frame: Any, **how: Any) -> None:
        nonlocal header
        frame.to_csv(stream, index=False, header=header, **how)
        header = False

    if file is None:
        yield lambda frame: write_to(sys.stdout, frame)
        return
    how: Any = infer_compression(file, "infer")
    if how in ("zip", "tar"):
        how = {"method": how, "archive_name": Path(file).stem}
    sep = named_separator(file)
    with (
        whole_file(file) as stream,
        get_handle(stream, "wb", compression=how, is_text=False) as packed,
    ):
        yield lambda frame: write_to(packed.handle, frame, sep=sep, mode="wb")


@contextmanager
def _parquet(file: str, first: Any) -> Iterator[Write]:
    """Write Parquet. If all rows come at once, pandas writes them."""
    held: list[Any] = []
    with ExitStack() as opened:
        append: Write | None = None

        def write(frame: Any) -> None:
            nonlocal append
            if append is None and not held:
                held.append(frame)
                return
            if append is None:
                append = opened.enter_context(_row_groups(file, first))
                append(held.pop())
            append(frame)

        yield write
    if held:
        _write_bytes(file, held[0])


@contextmanager
def _row_groups(file: str, first: Any) -> Iterator[Write]:
    """Write the rows of each data frame as a part of a Parquet file.

    The first rows say the type of every column.
    """
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    schema = pyarrow.Schema.from_pandas(first, preserve_index=False)
    for number, field in enumerate(schema):
        if pyarrow.types.is_null(field.type):  # no value among the first rows: text, as a rule
            schema = schema.set(number, field.with_type(pyarrow.string()))
    with whole_file(file) as stream, ParquetWriter(stream, schema) as writer:

        def write(frame: Any) -> None:
            try:
                table = pyarrow.Table.from_pandas(frame, schema, preserve_index=False)
            except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
                raise UserError(
                    f"a column to keep has different types in different rows: {cause(error)}. "
                    "Name a .csv file, or keep other columns."
                ) from error
            writer.write_table(table)

        yield write


@contextmanager
def _in_memory(file: str, first: Any) -> Iterator[Write]:
    """Write a table at the end, by packages that take whole tables only."""
    frames: list[Any] = []
    yield frames.append
    _write_bytes(file, need("pandas", "data").concat(frames) if len(frames) > 1 else frames[0])


def _write_bytes(file: str, frame: Any) -> None:
    """Make a Parquet or Excel file in memory, and write it."""
    made = BytesIO()
    if Path(file).suffix.lower() in PARQUET:
        frame.to_parquet(made, index=False)
    else:
        _write_excel(frame, file, made)
    with whole_file(file) as stream:
        stream.write(made.getvalue())


def _write_excel(frame: Any, file: str, stream: BinaryIO) -> None:
    """Write a data frame as one sheet. Text stays text, as Excel runs text that begins with “=”."""
    from pandas import ExcelWriter

    _check_cells(frame, file)
    engine = next(name for name in WRITERS[EXCEL] if find_spec(name))
    plain = {"strings_to_formulas": False, "strings_to_urls": False}
    how = {"options": plain} if engine == "xlsxwriter" else {}
    with ExcelWriter(stream, engine=engine, engine_kwargs=how) as writer:
        frame.to_excel(writer, index=False)
        if engine == "openpyxl":
            for row in writer.book.worksheets[0].iter_rows():
                for cell in row:
                    if isinstance(cell.value, str):
                        cell.data_type = "s"


def _check_cells(frame: Any, file: str) -> None:
    """Refuse text that a cell of Excel cannot hold."""
    instead = f"which {file} cannot hold. Name a .csv file."
    for name in frame.columns:
        for row, cell in enumerate([name, *frame[name]]):
            where = f"row {row}" if row else "its name"
            if isinstance(cell, str) and _CONTROL.search(cell):
                few = repr(cell if len(cell) <= LONGEST else cell[:LONGEST] + "…")
                raise UserError(
                    f"column {name!r} has a control character in {where} ({few}), {instead}"
                )
            if isinstance(cell, str) and len(cell) > LONGEST_CELL:
                raise UserError(
                    f"column {name!r} has {len(cell):,} characters in {where}, {instead}"
                )
