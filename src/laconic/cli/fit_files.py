"""Fit on Parquet files whose rows stay on the disk: which tables these are, and what is refused."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from laconic.cli.files import PARQUET, need
from laconic.cli.parquet_chunks import (
    first_rows,
    null_count,
    opened,
    several_files,
    size_of,
    value_range,
)
from laconic.cli.tables import check_columns, learned_columns, named_columns
from laconic.cli.text_tables import check_twice
from laconic.data.errors import UserError

if TYPE_CHECKING:
    from laconic.beyond.parquet import ParquetRows

# First rows that show what the columns hold.
LOOKED = 1 << 16
# Rows that choose the scales of an exported model of integers, and the most files they are from.
SCALED, FILES = 1 << 16, 8

_KEEP_ASIDE = "Keep some files aside, and use laconic predict on them."
_ONE_FILE = "Fit on one small file of them instead."


def fit_files(file: str) -> list[Path] | None:
    """Return the Parquet files of a folder or a pattern, or one large file.

    Return None for tables that are read into memory.
    """
    paths = several_files(file)
    if paths is None and file.lower().endswith(PARQUET):
        from laconic.data.elsewhere import CHUNK

        return [Path(file)] if size_of(file)[0] > CHUNK else None
    return paths


def check_options(args: argparse.Namespace) -> None:
    """Refuse options that need all rows in one memory. They say what to do instead."""
    asked = {
        "--cv": (args.cv, _ONE_FILE),
        "--early-stopping": (args.early_stopping, _KEEP_ASIDE),
        "--test-fraction": (args.test_fraction, _KEEP_ASIDE),
        "--method compact": (args.method == "compact", _ONE_FILE),
        "--dates": (args.dates, "Write the dates as 2024-05-31, or as Parquet's own dates."),
    }
    for option, (given, remedy) in asked.items():
        if given:
            raise UserError(
                f"{option} needs all rows in memory, and {args.table} is read in parts. {remedy}"
            )
    # Without a method, --max-bytes would mean a search.
    args.method = args.method or "share"


def training_files(args: argparse.Namespace, paths: list[Path]) -> ParquetRows:
    """Return the rows of some files. Errors and warnings name columns.

    The first rows show which columns seem to name rows, and which hold numbers as text.
    """
    from laconic.beyond.parquet import ParquetRows

    need("pandas", "data")
    check_columns(args)
    rows = ParquetRows(paths)
    check_twice(str(paths[0]), rows.names)
    if rows.n_rows == 0:
        raise UserError(f"{args.table} has no rows.")
    frame = first_rows(paths, LOOKED, LOOKED)
    named = named_columns(frame, args)
    _check_labelled(args, paths)
    features = frame.drop(columns=[args.target, *args.ignore])
    learned = learned_columns(features, args, named)
    _leave_out_counts(args, frame, learned, named, (paths, rows.n_rows))
    numbers = [
        name
        for name, values in learned.items()
        if name not in args.categorical
        and getattr(values.dtype, "kind", "O") == "f"
        and getattr(frame[name].dtype, "kind", "O") not in "biuf"
    ]
    unread = [name for name in rows.names if name not in learned and name != args.target]
    return ParquetRows(paths, unread, args.categorical, numbers)


def _leave_out_counts(
    args: argparse.Namespace,
    frame: Any,
    learned: dict[str, Any],
    named: set[str],
    known: tuple[list[Path], int],
) -> None:
    """Leave out columns of whole numbers that count the rows of all files, perhaps in any order.

    The first rows show whether they all differ. Statistics of the files show their range.
    ``known`` holds the files and their number of rows.
    """
    from laconic.data.doubts import DENSE, is_numbered

    paths, n_rows = known
    for name in [name for name in learned if name not in named]:
        column = frame[name]
        if getattr(column.dtype, "kind", "O") not in "iu" or not is_numbered(column.to_numpy()):
            continue
        ends = value_range(paths, name)
        if ends is not None and n_rows >= DENSE * (ends[1] - ends[0] + 1):
            del learned[name]
            warnings.warn(
                f"column {name!r} is left out because it seems to name rows: its whole numbers "
                "all differ in the first rows, and there are about as many as rows. --keep-id "
                f"{quote(name)} keeps it.",
                stacklevel=2,
            )
    if not learned:
        raise UserError(f"{args.table} has no column to learn from besides those that name rows.")


def _check_labelled(args: argparse.Namespace, paths: list[Path]) -> None:
    """Refuse a target with missing labels, if the statistics of the files tell of them."""
    from laconic.model.card import count

    for path in paths:
        with opened(path) as file:
            missing = null_count(file, args.target)
        if missing:
            raise UserError(
                f"column {args.target!r} has no label in {count(missing, 'row')} of {path}."
            )


def some_rows(args: argparse.Namespace, paths: list[Path], model: Any) -> tuple[Any, Any]:
    """Return some rows of several files and their labels, to choose the scales of integers."""
    spread = paths[:: -(-len(paths) // FILES)]
    frame = first_rows(spread, SCALED, -(-SCALED // len(spread)))
    names = list(model.feature_names_in_)
    return frame[names], frame[args.target].to_numpy()
