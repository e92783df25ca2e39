"""Tables on disk as data frames: Parquet, or text with any of three separators."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from laconic.tables import PARQUET, UserError, cause, named_separator, need

# Bytes of a file that say what it is, and lines that say what separates its cells.
START, LINES = 65536, 100
# How packed files begin (a header of text may begin with PAR1 or BZh too), and how they are named.
PACKED = {
    rb"PK\x03\x04": ("zip archive", "zip"),
    rb"\x1f\x8b": ("gzip file", "gz"),
    rb"BZh\d1AY&SY": ("bzip2 file", "bz2"),
    rb"\xfd7zXZ\0": ("xz file", "xz"),
    rb"\x28\xb5\x2f\xfd": ("zstd file", "zst"),
    rb"PAR1[^\s -~\x80-\xff]": ("Parquet file", "parquet"),
}
# The line that tells Excel what separates the cells.
_SEP_LINE = re.compile(r'\ufeff?"?sep=([,;\t])"?\s*', re.IGNORECASE)
# Numbers with a decimal comma and perhaps points for thousands; with points for thousands only; and
# those whose comma cannot be for thousands.
_COMMA = r"[-+]?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?"
_THOUSANDS = r"[-+]?[1-9]\d{0,2}(?:\.\d{3})*|0"
_NOT_THOUSANDS = r"[-+]?(?:[\d.]+,(?:\d{1,2}|\d{4,})|0,\d+|\d{4,},\d+|[\d.]*\.[\d.]*,\d+)"


def read_table(file: str, text: Iterable[str] = (), target: str | None = None) -> Any:
    """A data frame with string column names; ``text`` names columns to read as they are spelled."""
    pandas = need("pandas", "data")
    if file.lower().endswith(PARQUET):
        try:
            frame = pandas.read_parquet(file)
        except ImportError as error:
            raise UserError("reading parquet needs pyarrow: pip install pyarrow") from error
        except ValueError as error:
            raise UserError(f"{file} cannot be read as Parquet: {cause(error)}") from error
    else:
        try:
            frame = _read_csv(pandas, file, list(text), target)
        except UnicodeDecodeError as error:
            sign = f"byte 0x{error.object[error.start]:02x}"
            raise UserError(_not_utf8(file, sign, "latin1")) from error
        except ValueError as error:  # what pandas raises for a file it cannot make sense of
            raise UserError(f"{file} cannot be read as a table: {error}") from error
    frame.columns = [str(name) for name in frame.columns]
    if len(frame) == 0:
        raise UserError(f"{file} has no rows")
    return frame


def _read_csv(pandas: Any, file: str, text: Sequence[str], target: str | None) -> Any:
    """A CSV file in which NA and its like are missing among numbers, and text among text.

    Only the whole column says which it is, so columns of text that seem to have gaps are read once
    more, now with nothing missing but empty cells; so is a target that seems to have no label.
    """
    # A pipe can be read only once.
    piped = Path(file).read_bytes() if Path(file).is_fifo() else None
    start = _start(file) if piped is None else piped[:START]
    _check_start(file, start)
    whole = start if len(start) < START else start[: start.rfind(b"\n") + 1] or start
    begun = whole.decode("utf-8", "replace")
    told = _SEP_LINE.fullmatch(begun.partition("\n")[0])
    sep = told[1] if told else separator(begun, file)

    def read(as_text: Iterable[str], **how: Any) -> Any:
        source = file if piped is None else BytesIO(piped)
        # Reading a column in one go keeps numbers and text in it from getting different types.
        types = dict.fromkeys(as_text, str)
        skipped = 1 if told else 0
        return pandas.read_csv(
            source, sep=sep, low_memory=False, dtype=types, skiprows=skipped, **how
        )

    frame = read(text)
    if sep != "," and _mend_decimal_commas(frame, text):
        pointed = [n for n in frame.columns if frame[n].dtype.kind == "f" and n not in text]
        _mend_thousands(frame, read(pointed)[pointed])
    gaps = frame.columns[frame.isna().any()]
    spelled = {*text, *(n for n in gaps if is_text(frame[n]))}
    if target in gaps and frame[target].isna().all():
        spelled.add(target)
    again = [n for n in gaps if n in spelled]
    if again:
        frame[again] = read(again, keep_default_na=False, na_values=[""])[again]
    return frame


def _start(file: str) -> bytes:
    """The first bytes of a file, of a compressed one those inside."""
    from pandas.io.common import get_handle, infer_compression

    how = infer_compression(file, "infer")
    try:
        with get_handle(file, "rb", is_text=False, compression=how) as opened:
            return opened.handle.read(START)
    except Exception as error:  # whatever opening and unpacking raise
        if getattr(error, "filename", None) is None:
            raise UserError(f"{file} cannot be unpacked: {cause(error)}") from error
        raise


def _check_start(file: str, start: bytes) -> None:
    """Refuse files of other kinds by name: tables are text."""
    kind = Path(file).suffix.lower()
    sheets = start.startswith(b"PK\x03\x04") and (b"[Content_Types]" in start or b"xl/" in start)
    if sheets or start.startswith(b"\xd0\xcf\x11\xe0") or kind in (".xls", ".xlsx", ".xlsm"):
        raise UserError(
            f"{file}: this looks like an Excel file; save the sheet as CSV UTF-8 (in Excel: File, "
            "Save As) and give that file"
        )
    if b"mimetypeapplication/vnd.oasis.opendocument" in start[:200]:
        raise UserError(
            f"{file}: this looks like an OpenDocument file; save the sheet as CSV UTF-8 and give "
            "that file"
        )
    for begin, (what, end) in PACKED.items():
        if re.match(begin, start):
            raise UserError(f"{file}: this looks like a {what}; let its name end in .{end}")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UserError(_not_utf8(file, "it begins like UTF-16", "utf-16"))
    if b"\0" in start[:2]:
        old = "utf-16be" if start[:1] == b"\0" else "utf-16le"
        raise UserError(_not_utf8(file, "it has zero bytes, as UTF-16 has", old))


def _not_utf8(file: str, sign: str, old: str) -> str:
    return (
        f"{file}: this is not UTF-8 ({sign}); save it as CSV UTF-8, or convert it, for example "
        f"with iconv -f {old} -t utf-8"
    )


def separator(start: str, file: str = "") -> str:
    """What separates the cells of a table, by its first lines: a comma, a semicolon or a tab.

    A tab or a semicolon does where all lines have as many of them as the header. Commas may then be
    in names and numbers. Otherwise it is what the header has most of.

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


def _mend_decimal_commas(frame: Any, text: Sequence[str]) -> bool:
    """Turn columns of numbers with decimal commas into numbers, where it is clear that they are.

    A column has them if all its cells are numbers such as 12,5 or 1.234,50. That is clear if some
    number of the table could not have its comma for thousands. Returns whether it is.
    """
    found, clear = {}, False
    for name in frame.columns:
        if name in text or not is_text(frame[name]):
            continue
        known = frame[name].dropna().astype(str).str.strip()
        if known.str.fullmatch(_COMMA).all() and known.str.contains(",").any():
            found[name] = known
            clear = clear or bool(known.str.fullmatch(_NOT_THOUSANDS).any())
    for name, known in found.items() if clear else ():
        plain = known.str.replace(".", "").str.replace(",", ".")
        frame[name] = plain.astype(float).reindex(frame.index)
    return clear


def _mend_thousands(frame: Any, spelled: Any) -> None:
    """Mend columns such as 1.250 and 980, of a table in which commas are for decimals."""
    for name in spelled.columns:
        known = spelled[name].dropna().astype(str).str.strip()
        if known.str.fullmatch(_THOUSANDS).all() and known.str.contains(".", regex=False).any():
            plain = known.str.replace(".", "", regex=False)
            frame[name] = plain.astype(float).reindex(frame.index)


def is_text(column: Any) -> bool:
    """Whether the column is categorical; truth values with gaps are numbers with gaps."""
    kind = str(column.dtype)
    if kind != "object":
        return kind == "category" or kind.startswith("str")
    return not all(isinstance(value, bool) for value in column.dropna())
