"""Text files of tables: what separates their cells, and whether they are tables at all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from io import BytesIO
from pathlib import Path
from typing import Any

from laconic.cli.files import named_separator
from laconic.data.errors import UserError, cause

# Bytes that tell the kind of a file, and lines that tell the separator of its cells.
START, LINES = 65536, 100
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
# The line that tells Excel the separator of the cells.
_SEP_LINE = re.compile(r'\ufeff?"?sep=([,;\t])"?\s*', re.IGNORECASE)


class TextTable:
    """A text file that is checked, and that pandas can read.

    Parameters
    ----------
    pandas : module
    file : str
        A compressed file is unpacked.
    """

    def __init__(self, pandas: Any, file: str) -> None:
        self.file = file
        self._pandas = pandas
        # A pipe can be read only once.
        self._piped = Path(file).read_bytes() if Path(file).is_fifo() else None
        start = self._piped[:START] if self._piped is not None else b""
        if self._piped is None:
            with _unpacked(file) as stream:
                start = stream.read(START)
        check_start(file, start)
        self.n_lines = _checked_bytes(file, start, self._piped)
        """Number of lines, also of those inside of cells."""
        whole = start if len(start) < START else start[: start.rfind(b"\n") + 1] or start
        begun = whole.decode("utf-8", "replace")
        told = _SEP_LINE.fullmatch(begun.partition("\n")[0])
        self._skipped = 1 if told else 0
        self.sep = told[1] if told else separator(begun, file)
        header = self.read((), header=None, nrows=1, dtype=str, keep_default_na=False)
        # pandas would call two columns of one name a and a.1
        check_twice(file, [name for name in header.iloc[0] if name])
        self.n_columns = header.shape[1]

    def has_signs(self, decimal: str | None) -> bool:
        """Return whether commas may be decimal signs. ``decimal`` is the sign, if it is known."""
        return self.sep != "," or decimal == ","

    def read(self, as_text: Iterable[str], **how: Any) -> Any:
        """Read the table as `pandas.read_csv` does, with some columns as text."""
        source = self.file if self._piped is None else BytesIO(self._piped)
        # Reading a column in one go keeps numbers and text in it from getting different types.
        types = {"dtype": dict.fromkeys(as_text, str), "skiprows": self._skipped}
        return self._pandas.read_csv(source, sep=self.sep, low_memory=False, **{**types, **how})


@contextmanager
def plain_errors(file: str) -> Iterator[None]:
    """Say in plain words why pandas cannot read a text file."""
    try:
        yield
    except UnicodeDecodeError as error:
        sign = f"byte 0x{error.object[error.start]:02x}"
        raise UserError(_not_utf8(file, sign, "latin1")) from error
    except ValueError as error:  # what pandas raises for a file it cannot make sense of
        raise UserError(f"{file} cannot be read as a table: {_broken(str(error))}") from error


def _broken(told: str) -> str:
    """Return in plain words what pandas says of a broken table."""
    if found := re.search(r"EOF inside string starting at row (\d+)", told):
        return f"a quotation mark in row {found[1]} is not closed."
    if found := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", told):
        return f"line {found[2]} has {found[3]} cells, where {found[1]} are expected."
    return told


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


def check_start(file: str, start: bytes) -> None:
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


def _checked_bytes(file: str, start: bytes, piped: bytes | None) -> int:
    """Return the number of lines. Refuse zero bytes: pandas would cut a cell off there."""
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
    return lines


def check_twice(file: str, names: Sequence[str]) -> None:
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
