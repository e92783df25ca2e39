"""Read tables as data frames: Parquet, or text with any of three separators."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from io import BytesIO
from pathlib import Path
from typing import Any

from laconic.cli.dates import mend_dates
from laconic.cli.files import PARQUET, named_separator, need
from laconic.cli.numbers import is_text, mend_numbers
from laconic.data.errors import UserError, cause

# Bytes that tell the kind of a file, and lines that tell the separator of its cells.
START, LINES = 65536, 100
# Rows that tell whether whole numbers are codes such as 01004.
FIRST_ROWS = 1000
# Text is taken for UTF-16 if more than this share of its bytes, only every second one, is zero.
ZEROS = 0.1
# First bytes of packed files, and their endings. A text may begin with PAR1 or BZh too, so these
# patterns ask for more.
PACKED = {
    rb"PK\x03\x04": ("zip archive", "zip"),
    rb"\x1f\x8b": ("gzip file", "gz"),
    rb"BZh\d1AY&SY": ("bzip2 file", "bz2"),
    rb"\xfd7zXZ\0": ("xz file", "xz"),
    rb"\x28\xb5\x2f\xfd": ("zstd file", "zst"),
    rb"PAR1[^\s -~\x80-\xff]": ("Parquet file", "parquet"),
}
# A code such as 01004, which is not the number 1004.
_CODE = r"0\d+"
# The line that tells Excel the separator of the cells.
_SEP_LINE = re.compile(r'\ufeff?"?sep=([,;\t])"?\s*', re.IGNORECASE)


def read_table(
    file: str,
    text: Iterable[str] = (),
    target: str | None = None,
    decimal: str | None = None,
    dates: str | None = None,
    dated: Iterable[str] = (),
    unread: Iterable[str] | None = None,
) -> Any:
    """Read a table as a data frame with string column names.

    ``text`` names columns to read as they are spelled. ``decimal`` is the decimal sign of a text
    file, which is found if it is None. ``dates`` is the order of dates that are not written in
    ISO 8601. ``dated`` names columns in ``text`` that hold dates. ``unread`` names columns that are
    not used. If it is given, a warning names the other columns with codes such as 01004, and a
    target with such codes is read as text.
    """
    text, dated = list(text), list(dated)
    pandas = need("pandas", "data")
    if file.lower().endswith(PARQUET):
        frame = _read_parquet(pandas, file)
    else:
        try:
            frame = _read_csv(pandas, file, text, target, decimal, unread)
        except UnicodeDecodeError as error:
            sign = f"byte 0x{error.object[error.start]:02x}"
            raise UserError(_not_utf8(file, sign, "latin1")) from error
        except ValueError as error:  # what pandas raises for a file it cannot make sense of
            raise UserError(f"{file} cannot be read as a table: {_broken(str(error))}") from error
    frame.columns = [str(name) for name in frame.columns]
    _check_twice(file, frame.columns.tolist())
    if len(frame) == 0:
        raise UserError(f"{file} has no rows.")
    mend_dates(frame, dates, text if target is None else [*text, target], dated)
    return frame


def _read_parquet(pandas: Any, file: str) -> Any:
    """Read a Parquet file, or a folder of them."""
    if Path(file).is_file():
        with open(file, "rb") as opened:
            start = opened.read(START)
        if not start.startswith((b"PAR1", b"PARE")):
            _check_start(file, start)
            text = b"\0" not in start
            kind = "looks like text, and not like Parquet" if text else "is not a Parquet file"
            raise UserError(f"{file}: this {kind}." + " Let its name end in .csv." * text)
    try:
        return pandas.read_parquet(file)
    except ImportError as error:
        raise UserError('reading Parquet needs pyarrow: pip install "laconic[tables]"') from error
    except ValueError as error:
        if "magic bytes" in str(error) or "footer" in str(error):
            raise UserError(
                f"{file}: this Parquet file is damaged, or its end is missing."
            ) from error
        if twice := re.search(r"Multiple matches for FieldRef.Name\((.*?)\) in", str(error)):
            raise UserError(
                f"{file} has several columns {twice[1]!r}. Give each its own name."
            ) from error
        raise UserError(f"{file} cannot be read as Parquet: {cause(error)}") from error


def _read_csv(
    pandas: Any,
    file: str,
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
    # A pipe can be read only once.
    piped = Path(file).read_bytes() if Path(file).is_fifo() else None
    start = piped[:START] if piped is not None else b""
    if piped is None:
        with _unpacked(file) as stream:
            start = stream.read(START)
    _check_start(file, start)
    _check_bytes(file, start, piped)
    whole = start if len(start) < START else start[: start.rfind(b"\n") + 1] or start
    begun = whole.decode("utf-8", "replace")
    told = _SEP_LINE.fullmatch(begun.partition("\n")[0])
    sep = told[1] if told else separator(begun, file)

    def read(as_text: Iterable[str], **how: Any) -> Any:
        source = file if piped is None else BytesIO(piped)
        # Reading a column in one go keeps numbers and text in it from getting different types.
        types = {"dtype": dict.fromkeys(as_text, str), "skiprows": 1 if told else 0}
        return pandas.read_csv(source, sep=sep, low_memory=False, **{**types, **how})

    header = read((), header=None, nrows=1, dtype=str, keep_default_na=False)
    _check_twice(file, [name for name in header.iloc[0] if name])  # pandas would call them a, a.1
    frame = read(text)
    if sep != "," or decimal == ",":
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


def _broken(told: str) -> str:
    """Return in plain words what pandas says of a broken table."""
    if found := re.search(r"EOF inside string starting at row (\d+)", told):
        return f"a quotation mark in row {found[1]} is not closed."
    if found := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", told):
        return f"line {found[2]} has {found[3]} cells, where {found[1]} are expected."
    return told


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


@contextmanager
def _unpacked(file: str) -> Iterator[Any]:
    """Open a file for reading. A compressed file is unpacked."""
    from pandas.io.common import get_handle, infer_compression

    how = infer_compression(file, "infer")
    try:
        with get_handle(file, "rb", is_text=False, compression=how) as opened:
            yield opened.handle
    except UserError:
        raise
    except Exception as error:  # whatever opening and unpacking raise
        if getattr(error, "filename", None) is None:
            raise UserError(f"{file} cannot be unpacked: {cause(error)}") from error
        raise


def _check_start(file: str, start: bytes) -> None:
    """Refuse empty files and files that are not text, and say what they look like."""
    if not start.removeprefix(b"\xef\xbb\xbf").strip():
        raise UserError(f"{file} is empty.")
    kind = Path(file).suffix.lower()
    sheets = start.startswith(b"PK\x03\x04") and (b"[Content_Types]" in start or b"xl/" in start)
    if sheets or start.startswith(b"\xd0\xcf\x11\xe0") or kind in (".xls", ".xlsx", ".xlsm"):
        raise UserError(
            f"{file}: this looks like an Excel file. Save the sheet as CSV UTF-8 (in Excel: File, "
            "Save As) and use that file."
        )
    if b"mimetypeapplication/vnd.oasis.opendocument" in start[:200]:
        raise UserError(
            f"{file}: this looks like an OpenDocument file. Save the sheet as CSV UTF-8 and use "
            "that file."
        )
    for begin, (what, end) in PACKED.items():
        if re.match(begin, start):
            raise UserError(f"{file}: this looks like a {what}. Let its name end in .{end}.")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UserError(_not_utf8(file, "it begins like UTF-16", "utf-16"))


def _check_bytes(file: str, start: bytes, piped: bytes | None) -> None:
    """Refuse a file with zero bytes. pandas would cut a cell off there without a warning."""
    even, odd = start[::2].count(0), start[1::2].count(0)
    if max(even, odd) > ZEROS * len(start) and min(even, odd) == 0:
        old = "utf-16be" if even else "utf-16le"
        raise UserError(_not_utf8(file, "it has zero bytes, as UTF-16 has", old))
    lines = 1
    with _unpacked(file) if piped is None else nullcontext(BytesIO(piped)) as stream:
        while part := stream.read(START):
            at = part.find(0)
            if at >= 0:
                line = lines + part.count(b"\n", 0, at)
                raise UserError(
                    f"{file}: this is not text: line {line} has a zero byte. Write the table "
                    "again as CSV UTF-8."
                )
            lines += part.count(b"\n")


def _check_twice(file: str, names: Sequence[str]) -> None:
    """Refuse a table in which two columns have the same name."""
    twice = [name for name, number in Counter(names).items() if number > 1]
    if twice:
        raise UserError(
            f"{file} has {names.count(twice[0])} columns {twice[0]!r}. Give each its own name."
        )


def _not_utf8(file: str, sign: str, old: str) -> str:
    return (
        f"{file}: this is not UTF-8 ({sign}). Save it as CSV UTF-8, or convert it, for example "
        f"with iconv -f {old} -t utf-8."
    )


def separator(start: str, file: str = "") -> str:
    """Return the separator of a table's cells, by its first lines: a comma, semicolon or tab.

    It is the tab or the semicolon if every line has as many of them as the header. Commas may then
    be parts of names and numbers. Otherwise it is the most frequent of the three signs in the
    header.

    Examples
    --------
    >>> separator("a,b;c,d"), separator('a;"b,c,d"'), separator("a\\tb"), separator("a")
    (',', ';', '\\t', ',')
    >>> separator("price, EUR;weight, kg;x\\n1,5;2,5;3")
    ';'
    """
    if named_separator(file) != ",":
        return named_separator(file)
    bare = re.sub(r'"[^"]*"', "", start)
    header, *lines = [line for line in bare.splitlines() if line.strip()][:LINES] or [""]
    for sep in "\t;":
        cuts = header.count(sep)
        if lines and cuts and all(line.count(sep) == cuts for line in lines):
            return sep
    return max(",;\t", key=header.count)
