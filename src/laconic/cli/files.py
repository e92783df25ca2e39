"""Files of the commands: checks before work starts, and writing. Errors say what to change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laconic.data.errors import UserError
from laconic.files.whole import check_can_write, same_file

if TYPE_CHECKING:
    from laconic.model.predictor import Predictor


def need(module: str, extra: str) -> Any:
    """Import a module of one of the package's extras, or say how to install it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise UserError(f'this needs {module}: pip install ".[{extra}]"') from error


def check_files(outputs: Mapping[str, str | None], inputs: Mapping[str, str]) -> None:
    """Check, before anything is read or fitted, that each output can be written.

    Both arguments map what a file is to the command, such as ``--out`` or ``the table``, to its
    name. An output must not be another output or an input.
    """
    named = {option: file for option, file in outputs.items() if file}
    for (one, file), (other, theirs) in combinations(named.items(), 2):
        if same_file(file, theirs):
            raise UserError(f"{one} and {other} are both {file}. Name two files.")
    for option, file in named.items():
        for what, theirs in inputs.items():
            if same_file(file, theirs):
                raise UserError(f"{option} {file} would overwrite {what}. Name another file.")
        check_can_write(file)


def why_unsaved(file: str, save: Callable[[], object]) -> str | None:
    """Save a file. If that fails, return the reason, which the command reports at its end."""
    try:
        save()
    except OSError as error:
        return f"{file} is not saved: {error.strerror or error}"
    return None


def picture_kind(file: str) -> str:
    """Return the kind of picture that the name of a file asks for."""
    return Path(file).suffix[1:].lower() or "png"


def check_picture(file: str) -> None:
    """Check, before a long fit, that a picture can be written to a file of this name."""
    need("matplotlib", "plot")
    from matplotlib.figure import Figure

    known = Figure().canvas.get_supported_filetypes()
    if picture_kind(file) not in known:
        kinds = ", ".join(sorted(known))
        raise UserError(f"{file}: a picture must be {kinds}, not {picture_kind(file)!r}.")


# What commands read that need not have all rows in memory.
TABLE = (
    "CSV file with a header, Parquet file, folder of Parquet files, or a quoted pattern such as "
    "'rows/*.parquet'"
)
# Endings of files that are not text, and the packages that write them.
PARQUET, EXCEL = (".parquet", ".pq"), (".xlsx",)
WRITERS = {PARQUET: ("pyarrow", "fastparquet"), EXCEL: ("openpyxl", "xlsxwriter")}
OTHERS = (
    ".xls", ".xlsm", ".xlsb", ".ods", ".numbers", ".json", ".jsonl", ".ndjson", ".feather",
    ".arrow", ".orc", ".avro", ".h5", ".hdf5", ".sav", ".dta", ".sas7bdat", ".html", ".xml",
    ".pkl", ".pickle", ".npy", ".npz", ".db", ".sqlite", ".pdf", ".docx", ".md", ".tex", ".yaml",
    ".yml", ".mat", ".rds", ".rdata", ".laconic", ".skops", ".joblib", ".onnx", ".png", ".jpg",
    ".jpeg", ".svg", ".svgz", ".gif", ".webp", ".tif", ".tiff", ".eps", ".ps", ".htm",
)  # fmt: skip
TEXT = (".csv", ".tsv", ".tab", ".txt")
# Endings of compressed text.
PACKED_TEXT = (".gz", ".bz2", ".zip", ".xz", ".zst", ".tar")


def check_table_name(file: str) -> None:
    """Check, before anything is read, that a table can be written to a file of this name."""
    kind = Path(file).suffix.lower()
    inside = Path(Path(file).stem).suffix.lower() if kind in PACKED_TEXT else ""
    if kind in OTHERS or inside in (*OTHERS, *PARQUET, *EXCEL):
        raise UserError(
            f"{file}: predictions can be .csv, .tsv, .parquet or .xlsx, not {inside}{kind}. Rename "
            "it."
        )
    for kinds, writers in WRITERS.items():
        if kind in kinds and not any(find_spec(name) for name in writers):
            raise UserError(
                f'writing {file} needs {writers[0]}: pip install ".[tables]". Or name a .csv file.'
            )


def check_name(file: str, what: str, kinds: tuple[str, ...]) -> None:
    """Refuse a file name with the ending of another kind of file than ``kinds``."""
    kind = Path(file).suffix.lower()
    if kind in (*TEXT, *PARQUET, *EXCEL, *OTHERS, *PACKED_TEXT) and kind not in kinds:
        raise UserError(f"{file}: {what} is a {kinds[0]} file, not {kind}. Rename it.")


def named_separator(file: str) -> str:
    """Return the separator that the name of a file stands for."""
    kinds = {kind.lower() for kind in Path(file).suffixes[-2:]}
    return "\t" if kinds & {".tsv", ".tab"} else ","


def load_predictor(file: str) -> Predictor:
    """Read a saved predictor."""
    from laconic.model.predictor import Predictor

    return Predictor.load(file)


def check_present(frame: Any, names: Iterable[str], file: str) -> None:
    """Refuse a table that lacks some of these columns. Suggest a column that may be meant."""
    check_listed(list(frame.columns), names, file)


def check_listed(columns: Sequence[str], names: Iterable[str], file: str) -> None:
    """Refuse a table that has only the given columns, if one of ``names`` is not among them."""
    missing = [n for n in names if n not in columns]
    if missing:
        from difflib import get_close_matches

        shown = ", ".join(map(repr, missing[:5]))
        shown += f" and {len(missing) - 5} more" if missing[5:] else ""
        near = get_close_matches(missing[0], columns, n=1, cutoff=0.75)
        few = ", ".join(map(repr, columns[:5])) + (" and more" if len(columns) > 5 else "")
        hint = f". Did you mean {near[0]!r}?" if near else f". It has {few}."
        raise UserError(f"{file} has no column {shown}{hint}")
