"""``laconic holes``: show where a classifier fails, as text and as a page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laconic.cli.console import make_console, say
from laconic.cli.dates import add_dates
from laconic.cli.files import check_files, check_name, check_present, why_unsaved
from laconic.cli.given import WAY_OUT, add_given, check_given, column_of, probability_of, take
from laconic.cli.model_files import load_model
from laconic.cli.numbers import add_decimal
from laconic.cli.tables import labelled_table
from laconic.data.errors import UserError
from laconic.report.given_columns import columns_of, pixels_of, predictions

if TYPE_CHECKING:
    from laconic.report.facts import HolesReport

SUMMARY = "Show where a classifier's errors clump, what those rows share, and what would help."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_given(parser)
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
        "--no-rows", action="store_true", help="leave rows of the data out of the page"
    )
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
    from laconic.report.words import report_lines

    check_given(args)
    files = {"the model": args.model, "the table": args.table}
    check_files({"--html": args.html}, {name: file for name, file in files.items() if file})
    if args.html:
        check_name(args.html, "the report", (".html", ".htm"))
    if args.target is not None and args.target in args.ignore:
        raise UserError(f"column {args.target!r} cannot be both --target and --ignore.")
    if args.seed < 0:
        raise UserError("--seed must be at least 0.")
    if args.clumps < 1 or args.min_rows < 1:
        raise UserError("--clumps and --min-rows must be at least 1.")
    shape = _shape(args.image)
    settings = {
        "n_clumps": args.clumps, "min_rows": args.min_rows, "image_shape": shape, "first_row": 1,
        "source": Path(args.table).name, "random_state": args.seed,
    }  # fmt: skip
    make = _of_columns if args.model is None else _of_model
    report = make(args, shape, settings)
    rows = not args.no_rows
    unsaved = why_unsaved(args.html, lambda: report.save(args.html, rows)) if args.html else None
    console = make_console()
    console.print(report_lines(report))
    if unsaved:
        raise UserError(unsaved)
    if args.html:
        console.print()
        say(console, f"saved  {args.html}", "open it in a browser (no network needed)")
    return 0


def _of_model(
    args: argparse.Namespace, shape: tuple[int, int] | None, settings: dict[str, Any]
) -> HolesReport:
    """Let a model predict the rows of the table."""
    from laconic.report.columns import without
    from laconic.report.models import in_groups, known_labels, may_classify, model_name
    from laconic.report.report import report_holes

    model = load_model(args.model, args.trust)
    if not may_classify(model):
        raise UserError(
            f"{args.model} holds a {model_name(model)}, which is not a classifier. For a "
            "regression, add losses to the table: laconic holes TABLE --loss COLUMN."
        )
    # Columns that the model reads as categories or dates are read as they are spelled.
    known, dated = _named(model, "categories"), _named(model, "units")
    spelled = [*known, *dated, *args.categorical]
    if _labels_are_text(model):
        spelled.append(args.target)
    X, labels = labelled_table(args.table, args.target, spelled, args.decimal, args.dates, dated)
    beside = [name for name in args.categorical if name != args.target]
    check_present(X, beside, args.table)
    _check_rows(X, args.table)
    kept = without(X, args.ignore, args.table)
    read = columns_of(model, X, kept, args.table)
    predicted, chances = predictions(model, read, args.table, WAY_OUT)
    declared = [name for name in (*known, *beside) if name in X.columns]
    X = X.astype(dict.fromkeys(declared, "category"))  # so that the report takes them as such
    report = report_holes(
        predicted,
        X if shape is None else pixels_of(shape, read, kept, args.table),
        in_groups(model, labels),
        probabilities=chances,
        ignore=args.ignore if shape is None else (),
        title=f"{model_name(model)} ({Path(args.model).name})",
        **settings,
    )
    report.known = known_labels(model)
    return report


def _of_columns(
    args: argparse.Namespace, shape: tuple[int, int] | None, settings: dict[str, Any]
) -> HolesReport:
    """Take predictions or losses from columns of the table."""
    from laconic.report.report import report_holes

    target = args.loss if args.target is None else args.target
    X, labels = labelled_table(args.table, target, args.categorical, args.decimal, args.dates)
    beside = [name for name in args.categorical if name not in (target, args.predicted)]
    check_present(X, beside, args.table)
    _check_rows(X, args.table)
    X = X.astype(dict.fromkeys(beside, "category"))
    try:
        if args.loss is not None:
            return report_holes(
                None, X, losses=labels, title=f"the model of {args.loss!r}", ignore=args.ignore,
                **settings,
            )  # fmt: skip
        named = [column_of(text, X.columns) for text in args.probability]
        X, (said, *values) = take(X, [args.predicted, *(name for name, _ in named)], args.table)
        predicted = _plain_labels(said)
        chances = probability_of(predicted, labels, named, values) if named else None
        return report_holes(
            predicted, X, labels, probabilities=chances, title=f"the model of {args.predicted!r}",
            ignore=args.ignore, **settings,
        )  # fmt: skip
    except ValueError as error:  # columns that cannot be what they are said to be
        raise UserError(f"{args.table}: {error}") from error


def _plain_labels(column: Any) -> Any:
    """Return labels in their common plain type, whatever type pandas kept them in."""
    import numpy as np

    if column.isna().any():
        raise UserError(f"column {column.name!r} has rows without a predicted label.")
    return np.asarray(column.tolist())


def _check_rows(X: Any, file: str) -> None:
    from laconic.model.card import count
    from laconic.report.report import LEAST_ROWS

    if len(X) < LEAST_ROWS:
        raise UserError(f"{file} has {count(len(X), 'row')}, too few to look for clumps.")


def _labels_are_text(model: Any) -> bool:
    """Return whether a table must have the model's labels as they are spelled."""
    from laconic.report.models import known_labels

    known = known_labels(model)
    if known is None or getattr(model, "label_groups", None) is not None:
        return False
    return all(isinstance(label, str) for label in known.tolist())


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
