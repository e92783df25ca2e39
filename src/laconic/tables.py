"""Tables and models on disk, as the command line reads them: errors are for people to put right."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from io import BytesIO
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laconic.model.files import check_can_write, same_file, whole_file

if TYPE_CHECKING:
    from laconic.model.predictor import Predictor

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
# Numbers with a decimal comma and perhaps points for thousands; those whose comma is clearly one.
_COMMA = r"[-+]?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?"
_NOT_THOUSANDS = r"[-+]?(?:[\d.]+,(?:\d{1,2}|\d{4,})|0,\d+|\d{4,},\d+|[\d.]*\.[\d.]*,\d+)"
# Characters of another library's message that are worth a line.
LONGEST = 120


class UserError(Exception):
    """Something the user can put right; its message is all they need to see."""


def cause(error: Exception) -> str:
    """The first line of what another library says, with its kind where it says little."""
    said = str(error).strip().splitlines() or [""]
    few = said[0] if len(said[0]) <= LONGEST else said[0][:LONGEST] + "…"
    return few if " " in few else f"{type(error).__name__} {few}".strip()


def need(module: str, extra: str) -> Any:
    """Import what an extra of the package brings, or say how to get it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise UserError(f'this needs {module}: pip install "laconic[{extra}]"') from error


def check_files(outputs: Mapping[str, str | None], inputs: Mapping[str, str]) -> None:
    """Before anything is read or fitted: can each file be written, without harm to another?

    Both map what a file is to the command, such as ``--out`` or ``the table``, to its name.
    """
    named = {option: file for option, file in outputs.items() if file}
    for (one, file), (other, theirs) in combinations(named.items(), 2):
        if same_file(file, theirs):
            raise UserError(f"{one} and {other} are both {file}; name two files")
    for option, file in named.items():
        for what, theirs in inputs.items():
            if same_file(file, theirs):
                raise UserError(f"{option} {file} would overwrite {what}")
        check_can_write(file)


def why_unsaved(file: str, save: Callable[[], object]) -> str | None:
    """Save a file; if that fails, the reason, to be told when all else is shown."""
    try:
        save()
    except OSError as error:
        return f"{file} is not saved: {error.strerror or error}"
    return None


def picture_kind(file: str) -> str:
    """The kind of picture that the name of a file asks for."""
    return Path(file).suffix[1:].lower() or "png"


def check_picture(file: str) -> None:
    """Before a long fit, not after it: can a picture be written to a file of this name?"""
    need("matplotlib", "plot")
    from matplotlib.figure import Figure

    known = Figure().canvas.get_supported_filetypes()
    if picture_kind(file) not in known:
        kinds = ", ".join(sorted(known))
        raise UserError(f"{file}: pictures can be {kinds}, not {picture_kind(file)!r}")


# Names of files that are no text, and what writes them.
PARQUET, EXCEL = (".parquet", ".pq"), (".xlsx",)
WRITERS = {PARQUET: ("pyarrow", "fastparquet"), EXCEL: ("openpyxl", "xlsxwriter")}
OTHERS = (
    ".xls", ".xlsm", ".xlsb", ".ods", ".numbers", ".json", ".jsonl", ".ndjson", ".feather",
    ".arrow", ".orc", ".avro", ".h5", ".hdf5", ".sav", ".dta", ".sas7bdat", ".html", ".xml",
    ".pkl", ".pickle", ".npy", ".npz", ".db", ".sqlite", ".pdf", ".docx", ".md", ".tex", ".yaml",
    ".yml", ".mat", ".rds", ".rdata",
)  # fmt: skip
# Names of text that is packed.
PACKED_TEXT = (".gz", ".bz2", ".zip", ".xz", ".zst", ".tar")


def check_table_name(file: str) -> None:
    """Before anything is read: can a table be written as the name of the file says?"""
    kind = Path(file).suffix.lower()
    inside = Path(Path(file).stem).suffix.lower() if kind in PACKED_TEXT else ""
    if kind in OTHERS or inside in (*OTHERS, *PARQUET, *EXCEL):
        raise UserError(
            f"{file}: predictions can be .csv, .tsv, .parquet or .xlsx, not {inside}{kind}; rename "
            "it"
        )
    for kinds, writers in WRITERS.items():
        if kind in kinds and not any(find_spec(name) for name in writers):
            raise UserError(
                f"writing {file} needs {writers[0]}: pip install {writers[0]}, or name a .csv file"
            )


def write_table(frame: Any, file: str) -> None:
    """Write a data frame as the name of the file says: by default CSV, perhaps compressed."""
    kind = Path(file).suffix.lower()
    if kind in (*PARQUET, *EXCEL):
        made = BytesIO()
        if kind in PARQUET:
            frame.to_parquet(made, index=False)
        else:
            engine = next(name for name in WRITERS[EXCEL] if find_spec(name))
            frame.to_excel(made, index=False, engine=engine)
        with whole_file(file) as stream:
            stream.write(made.getvalue())
        return
    from pandas.io.common import infer_compression

    how = infer_compression(file, "infer")
    if how in ("zip", "tar"):
        how = {"method": how, "archive_name": Path(file).stem}
    with whole_file(file) as stream:
        frame.to_csv(stream, index=False, mode="wb", compression=how, sep=_named_separator(file))


def _named_separator(file: str) -> str:
    """What the name of a file says about its separator."""
    kinds = {kind.lower() for kind in Path(file).suffixes[-2:]}
    return "\t" if kinds & {".tsv", ".tab"} else ","


def load_predictor(file: str) -> Predictor:
    """Read a saved predictor."""
    from laconic.model.predictor import Predictor

    return Predictor.load(file)


def read_table(file: str, text: Iterable[str] = (), target: str | None = None) -> Any:
    """A data frame with string column names; ``text`` names columns to read as they are spelled."""
    pandas = need("pandas", "data")
    if file.lower().endswith(PARQUET):
        try:
            frame = pandas.read_parquet(file)
        except ImportError as error:
            raise UserError("reading parquet needs pyarrow: pip install pyarrow") from error
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
    if sep != ",":
        _mend_decimal_commas(frame, text)
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
    if _named_separator(file) != ",":
        return _named_separator(file)
    bare = re.sub(r'"[^"]*"', "", start)
    header, *lines = [line for line in bare.splitlines() if line.strip()][:LINES] or [""]
    for sep in "\t;":
        cuts = header.count(sep)
        if lines and cuts and all(line.count(sep) == cuts for line in lines):
            return sep
    return max(",;\t", key=header.count)


def _mend_decimal_commas(frame: Any, text: Sequence[str]) -> None:
    """Turn columns of numbers with decimal commas into numbers, where it is clear that they are.

    A column has them if all its cells are numbers such as 12,5 or 1.234,50. That is clear if some
    number of the table could not have its comma for thousands.
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


def check_present(frame: Any, names: Iterable[str], file: str) -> None:
    """Name the columns that a table does not have, and one that may be meant."""
    missing = [n for n in names if n not in frame.columns]
    if missing:
        from difflib import get_close_matches

        shown = ", ".join(map(repr, missing[:5]))
        shown += f" and {len(missing) - 5} more" if missing[5:] else ""
        near = get_close_matches(missing[0], list(frame.columns), n=1, cutoff=0.75)
        few = ", ".join(map(repr, frame.columns[:5])) + (", …" if len(frame.columns) > 5 else "")
        hint = f"; did you mean {near[0]!r}?" if near else f"; it has {few}"
        raise UserError(f"{file} has no column {shown}{hint}")


def is_text(column: Any) -> bool:
    """Whether the column is categorical; truth values with gaps are numbers with gaps."""
    kind = str(column.dtype)
    if kind != "object":
        return kind == "category" or kind.startswith("str")
    return not all(isinstance(value, bool) for value in column.dropna())
