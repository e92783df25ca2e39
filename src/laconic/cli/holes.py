"""``laconic holes``: show where a classifier fails, as text and as a page."""

from __future__ import annotations

import argparse
import zipfile
from pathlib import Path
from typing import Any

from laconic.cli.console import make_console, say
from laconic.cli.dates import add_dates
from laconic.cli.files import (
    check_files,
    check_name,
    check_present,
    load_predictor,
    need,
    why_unsaved,
)
from laconic.cli.numbers import add_decimal
from laconic.cli.tables import labelled_table
from laconic.data.errors import UserError, cause
from laconic.report.given_columns import columns_of, pixels_of, predictions

SUMMARY = "Show where a classifier's errors clump, what those rows share, and what would help."

# Types in a .skops file that hold only data, for example an encoder's type of number.
HARMLESS = ("numpy.dtype",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "model", metavar="MODEL",
        help="Laconic model, or scikit-learn model in a .skops, .joblib or .pkl file",
    )  # fmt: skip
    parser.add_argument(
        "table", metavar="TABLE",
        help="CSV or Parquet file of rows that the model was not trained on",
    )  # fmt: skip
    parser.add_argument("--target", required=True, metavar="COLUMN", help="column of true labels")
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="COLUMN",
        help="column to leave out of distances and sentences; a model that was fitted on it still "
        "gets it (repeatable)",
    )  # fmt: skip
    parser.add_argument(
        "--categorical", action="append", default=[], metavar="COLUMN",
        help="column of codes, such as 007, to read as text (repeatable)",
    )  # fmt: skip
    add_decimal(parser)
    add_dates(parser)
    parser.add_argument(
        "--trust", action="store_true",
        help="load a pickle, or unknown types in a .skops file, which can run any code",
    )  # fmt: skip
    parser.add_argument("--html", metavar="FILE", help="file for the report as a page")
    parser.add_argument(
        "--image", metavar="HxW",
        help="show rows as pictures of this height and width, such as 28x28",
    )  # fmt: skip
    parser.add_argument(
        "--clumps", type=int, default=8, metavar="N",
        help="largest number of clumps to show (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--min-rows", type=int, default=10, metavar="N",
        help="smallest number of searched rows in a clump (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=int, default=0,
        help="seed of the random split into two halves (default: %(default)s)",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Load the model and the rows, find clumps and show them."""
    from laconic.model.card import count
    from laconic.report.columns import without
    from laconic.report.models import in_groups, known_labels, may_classify, model_name
    from laconic.report.report import LEAST_ROWS, report_holes
    from laconic.report.words import report_lines

    check_files({"--html": args.html}, {"the model": args.model, "the table": args.table})
    if args.html:
        check_name(args.html, "the report", (".html", ".htm"))
    if args.target in args.ignore:
        raise UserError(f"column {args.target!r} cannot be both --target and --ignore.")
    if args.seed < 0:
        raise UserError("--seed must be at least 0.")
    if args.clumps < 1 or args.min_rows < 1:
        raise UserError("--clumps and --min-rows must be at least 1.")
    shape = _shape(args.image)
    model = load_model(args.model, args.trust)
    if not may_classify(model):
        raise UserError(f"{args.model} holds a {model_name(model)}, which is not a classifier.")
    # Columns that the model reads as categories or dates are read as they are spelled.
    known, dated = _named(model, "categories"), _named(model, "units")
    spelled = [*known, *dated, *args.categorical]
    if _labels_are_text(model):
        spelled.append(args.target)
    X, labels = labelled_table(args.table, args.target, spelled, args.decimal, args.dates, dated)
    beside = [name for name in args.categorical if name != args.target]
    check_present(X, beside, args.table)
    if len(X) < LEAST_ROWS:
        raise UserError(f"{args.table} has {count(len(X), 'row')}, too few to look for clumps.")
    kept = without(X, args.ignore, args.table)
    read = columns_of(model, X, kept, args.table)
    predicted = predictions(model, read, args.table)
    declared = [name for name in (*known, *beside) if name in X.columns]
    X = X.astype(dict.fromkeys(declared, "category"))  # so that the report takes them as such
    report = report_holes(
        predicted,
        X if shape is None else pixels_of(shape, read, kept, args.table),
        in_groups(model, labels),
        ignore=args.ignore if shape is None else (),
        n_clumps=args.clumps,
        min_rows=args.min_rows,
        image_shape=shape,
        title=f"{model_name(model)} ({Path(args.model).name})",
        source=Path(args.table).name,
        first_row=1,
        random_state=args.seed,
    )
    report.known = known_labels(model)
    unsaved = why_unsaved(args.html, lambda: report.save(args.html)) if args.html else None
    console = make_console()
    console.print(report_lines(report))
    if unsaved:
        raise UserError(unsaved)
    if args.html:
        console.print()
        say(console, f"saved  {args.html}", "open it in a browser (no network needed)")
    return 0


def _labels_are_text(model: Any) -> bool:
    """Return whether a table must have the model's labels as they are spelled."""
    from laconic.report.models import known_labels

    known = known_labels(model)
    if known is None or getattr(model, "label_groups", None) is not None:
        return False
    return all(isinstance(label, str) for label in known.tolist())


def load_model(file: str, trust: bool) -> Any:
    """Load a model from a file: Laconic's own, skops, or a pickle if the user trusts it."""
    path = Path(file)
    if path.is_dir():
        raise UserError(f"{file} is a folder. Name the model's file in it.")
    if not path.is_file():
        raise UserError(f"{file}: there is no such file.")
    model = _loaded(file, path, trust)
    if not hasattr(model, "predict"):
        raise UserError(f"{file} holds a {type(model).__name__}, which does not predict.")
    return model


def _loaded(file: str, path: Path, trust: bool) -> Any:
    """Return what the file holds, which may not be a model."""
    names = _archived(path)
    if "schema.json" in names:
        return _load_skops(file, trust)
    if "header.npy" in names:
        return load_predictor(file)
    kind = {".laconic": "Laconic", ".skops": "skops"}.get(path.suffix.lower())
    if kind is not None:
        raise UserError(f"{file} is damaged, or is not a {kind} file.")
    if _start(file, 4) == b"PK\x03\x04":
        raise UserError(f"{file} is damaged, or is neither a Laconic nor a skops file.")
    if not trust:
        raise UserError(
            f"{file} is not a Laconic model. If it is a pickle and you trust its source, add "
            "--trust. A pickle can run any code when it is loaded."
        )
    return _unpickle(file)


def _archived(path: Path) -> list[str]:
    """Return the names in a zip archive, such as a Laconic or skops file; none if it is damaged."""
    if not zipfile.is_zipfile(path):
        return []
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except zipfile.BadZipFile:
        return []


def _start(file: str, size: int) -> bytes:
    with open(file, "rb") as stream:
        return stream.read(size)


def _unpickle(file: str) -> Any:
    import joblib

    try:
        return joblib.load(file)
    except Exception as error:  # whatever unpickling another program's file raises
        # A pickle may ask for a package that is not installed. Another file asks for nonsense.
        module = getattr(error, "name", None) if isinstance(error, ImportError) else None
        if isinstance(error, AttributeError) or (module or "").replace(".", "_").isidentifier():
            raise UserError(f"{file} cannot be loaded here: {cause(error)}") from error
        what = "is not a pickle of a model, or is damaged"
        if _start(file, 1) == b"\x80":  # how pickles begin, except old and compressed ones
            what = "is damaged, or was made by other versions of its packages"
        raise UserError(f"{file} {what} ({cause(error)}).") from error


def _load_skops(file: str, trust: bool) -> Any:
    io = need("skops.io", "skops")
    try:
        types = io.get_untrusted_types(file=file)
        unknown = [name for name in types if name not in HARMLESS]
        if unknown and not trust:
            raise UserError(
                f"{file} holds types that skops does not vouch for: {', '.join(unknown)}. Add "
                "--trust if you trust the source of the file."
            )
        return io.load(file, trusted=types)
    except UserError:
        raise
    except Exception as error:  # whatever reading another program's file raises
        raise UserError(f"{file} is damaged or cannot be loaded here ({cause(error)}).") from error


def _named(model: Any, kind: str) -> list[str]:
    """Return the features that a Laconic model reads as ``"categories"`` or in ``"units"``."""
    names = getattr(model, "feature_names", None)
    return [names[f] for f in getattr(model, kind, ())] if names is not None else []


def _shape(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    height, cross, width = text.lower().partition("x")
    if not (cross and height.isdigit() and width.isdigit() and int(height) and int(width)):
        raise UserError(f"--image must be HEIGHTxWIDTH, such as 28x28, not {text!r}.")
    return int(height), int(width)
