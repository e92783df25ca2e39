"""Tables as the commands need them: rows to learn from, and rows with labels."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING, Any

from laconic.cli.files import check_present, need
from laconic.cli.numbers import is_text
from laconic.cli.reading import read_table
from laconic.data.errors import UserError
from laconic.registry import allows_missing

if TYPE_CHECKING:
    import numpy as np

    from laconic.data.doubts import Stray
    from laconic.report.columns import TableColumn


def training_table(args: argparse.Namespace) -> tuple[Any, np.ndarray]:
    """Return the features and the labels. Errors name the columns at fault."""
    import numpy as np

    from laconic.model.card import count

    pandas = need("pandas", "data")
    check_columns(args)
    written = args.decimal, args.dates
    unread = [args.target, *args.ignore]
    frame = read_table(args.table, args.categorical, args.target, *written, unread=unread)
    named = named_columns(frame, args)
    labels = frame[args.target]
    if unlabelled := int(labels.isna().sum()):
        raise UserError(f"column {args.target!r} has no label in {count(unlabelled, 'row')}.")
    X = learned_columns(frame.drop(columns=[args.target, *args.ignore]), args, named)
    # A list gives labels their common plain type, whatever type pandas kept them in.
    return pandas.DataFrame(X), np.asarray(labels.tolist())


def check_columns(args: argparse.Namespace) -> None:
    """Refuse options of columns that do not go together."""
    if args.target in args.ignore:
        raise UserError(f"column {args.target!r} cannot be both --target and --ignore.")
    if args.categorical and not allows_missing(args.pool):
        raise UserError("--categorical needs --pool stumps or rules. Others take no categories.")


def named_columns(frame: Any, args: argparse.Namespace) -> set[str]:
    """Return the columns that options name, and check them. Make columns of codes categorical."""
    args.cost = {_sensor(text, frame): cost for text, cost in args.cost.items()}
    paid = [column for key in args.cost for column in (key if isinstance(key, tuple) else [key])]
    named = {*args.include, *paid, *args.categorical, *args.keep_id}
    check_present(frame, [args.target, *args.ignore, *named], args.table)
    if odd := {args.target, *args.ignore} & named:
        raise UserError(
            f"column {min(odd)!r} is the target or is ignored, so no other option can name it."
        )
    frame[args.categorical] = frame[args.categorical].astype("category")
    return named


def _sensor(text: str, frame: Any) -> str | tuple[str, ...]:
    """Return the columns of a sensor, or the column whose name is the whole text."""
    return text if text in frame.columns or "+" not in text else tuple(text.split("+"))


def learned_columns(frame: Any, args: argparse.Namespace, named: set[str]) -> dict[str, Any]:
    """Return the columns to learn from.

    Columns that seem to name rows are left out, unless they are in ``named``.
    """
    from laconic.data.doubts import are_numbers_as_text, in_words
    from laconic.report.columns import read_columns

    _check_values(frame)
    X: dict[str, Any] = {}
    left: list[TableColumn] = []
    hint = ". --pool stumps and --pool rules accept missing values."
    for seen in read_columns(frame):
        name, column = seen.name, frame[seen.name]
        text = is_text(column) and seen.names is not None
        stray = seen.stray if text else None
        if name in args.categorical:
            X[name] = column
        elif seen.left_out and name not in named and stray is None:
            left.append(seen)
        elif not text:
            numbers = as_numbers(column, name) if seen.unit is None else seen.values
            check_numbers(numbers, name, allows_missing(args.pool), hint)
            X[name] = numbers if seen.unit is None else column  # the model reads dates itself
            if seen.unit is None and is_text(column) and are_numbers_as_text(column):
                warnings.warn(
                    f"column {name!r} holds numbers as text, and is read as numbers. "
                    f"--categorical {quote(name)} reads it as categories.",
                    stacklevel=2,
                )
        elif allows_missing(args.pool):
            X[name] = column
            if stray is not None:
                told = in_words(stray, 1) + _remedy(stray)
                warnings.warn(f"column {name!r} {told}", stacklevel=2)
        else:
            where = "" if stray is None else f" ({stray.text!r} in row {stray.row + 1})"
            mend = "" if stray is None else "correct such cells, "
            given = args.pool if isinstance(args.pool, str) else ",".join(args.pool)
            raise UserError(
                f"column {name!r} holds text{where}, which --pool {given} cannot use. "
                f"You can {mend}use --pool stumps, or leave it out with --ignore{_remedy(stray)}"
            )
    if not X:
        beside = f" except {left[0].name!r}, which seems to name rows" if left else ""
        raise UserError(f"{args.table} has no column to learn from{beside}.")
    for seen in left:
        rows = len(seen.values)
        warnings.warn(
            f"column {seen.name!r} is left out because it seems to name rows ({seen.different:,} "
            f"different values in {rows:,} rows). --keep-id {quote(seen.name)} keeps it.",
            stacklevel=2,
        )
    return X


def _check_values(frame: Any) -> None:
    """Refuse columns of lists or other objects, as a fit does, before they are taken for names."""
    from laconic.data.cells import odd_columns
    from laconic.data.frames import NoValue, different_values

    for _, cells in odd_columns(frame):
        if cells.kind == "O" and cells.labels is None:
            try:
                different_values(cells)
            except NoValue as error:
                raise UserError(error.of_table()) from error


def _remedy(stray: Stray | None) -> str:
    """Return a hint at the option that may read a stray cell, if there is one."""
    from laconic.data.frames import reading_option

    return "" if stray is None else reading_option(stray.text, stray.among)


def labelled_table(
    file: str,
    target: str,
    text: Iterable[str] = (),
    decimal: str | None = None,
    dates: str | None = None,
    dated: Iterable[str] = (),
) -> tuple[Any, np.ndarray]:
    """Return every other column, of any kind, and the labels.

    The arguments after ``target`` are those of `read_table`.
    """
    import numpy as np

    from laconic.model.card import count

    frame = read_table(file, text, target, decimal, dates, dated)
    check_present(frame, [target], file)
    labels = frame[target]
    if unlabelled := int(labels.isna().sum()):
        raise UserError(f"column {target!r} has no label in {count(unlabelled, 'row')}.")
    rest = frame.drop(columns=[target])
    if rest.shape[1] == 0:
        raise UserError(f"{file} has no column except the labels.")
    return rest, np.asarray(labels.tolist())


def as_numbers(column: Any, name: str, first: int = 0) -> np.ndarray:
    """Return the values as floats. An error says which cell cannot be read.

    ``first`` is the number of rows of the table before these.
    """
    from laconic.data.cells import read_series
    from laconic.data.frames import numbers_of

    with cells_named(first):
        return numbers_of(read_series(column, name))


@contextmanager
def cells_named(first: int = 0) -> Iterator[None]:
    """Say in the words of the command line which cell is wrong.

    ``first`` is the number of rows of the table before those that are read.
    """
    from laconic.data.frames import WrongCell

    try:
        yield
    except WrongCell as error:
        raise UserError(error.of_table(first)) from error


def check_numbers(
    values: np.ndarray, name: str, missing: bool, hint: str = ".", first: int = 0
) -> None:
    """Refuse infinite values, and missing ones unless allowed. The error names the first row.

    ``first`` is the number of rows of the table before these.
    """
    import numpy as np

    bad = np.isinf(values) if missing else ~np.isfinite(values)
    if bad.any():
        row = int(bad.argmax())
        what = f"a missing value{{}}{hint}" if np.isnan(values[row]) else "an infinite value{}."
        raise UserError(f"column {name!r} has " + what.format(f" in row {first + row + 1}"))
