"""Warn of data that is probably misread: identifiers, stray cells, and amounts as labels."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from laconic.data.cells import Cells, read_column
from laconic.data.dates import read_date
from laconic.data.frames import A_DATE, is_missing

# Reports list at most this many different values. A column with no more values than this is never
# taken as one that names rows.
KINDS = 50
# Different whole numbers count as names of rows if they fill at least this part of their range, in
# equal steps. Floats beyond LARGE are all whole, so their steps tell nothing.
DENSE, LARGE = 0.9, 2.0**53
# A cell is stray if at least this part of its column is numbers (or dates) and the column has at
# least this many cells.
MOST, LEAST_CELLS = 0.9, 10
# A first check of a column reads about this many cells.
SOME = 200
# Labels are probably amounts if there are more different numbers than MANY_LABELS, and on average
# fewer rows than FEW_ROWS for each.
MANY_LABELS, FEW_ROWS = 20, 10

# Numbers as people write them: with a sign, a currency, a per cent sign, commas, apostrophes or
# spaces.
_SIGN = r"[-+−]?\s*"
_DIGITS = r"(?:\d+(?:[.,'’\s]\d{3})*|\d{1,2}(?:,\d\d)*,\d{3})(?:[.,](?:\d*|-{1,2}))?"
_MONEY = (
    r"(?:US|R|A|C|NZ|HK)?[$]|[¢-¥₠-⃀]|kr\.?|rs\.?|fr\.?|zł|kč|ft|lei|USD|EUR|GBP|JPY|CHF|CNY|INR|SEK"
    r"|NOK|DKK|AUD|CAD|NZD|HKD|SGD|BRL|MXN|PLN|CZK|HUF|RON|RUB|TRY|ZAR|KRW|ILS|THB|IDR|PHP|AED"
)
_AMOUNT = re.compile(
    rf"[<>~≈≤≥]?\s*\(?{_SIGN}(?:{_MONEY})?\s*{_SIGN}{_DIGITS}\s*(?:%|‰|{_MONEY})?\)?", re.IGNORECASE
)
# Dates in another order than year, month, day, or with other separators.
_SOME_DATE = re.compile(
    r"(?:\d{1,2}[./-]\d{1,2}[./-](?:\d\d|\d{4})|\d{4}[./-]\d{1,2}[./-]\d{1,2})(?:[T ].*)?"
)
# A code such as 007, which would lose its zeros as a number.
_CODE = re.compile(r"\s*[-+]?0\d.*")
_OF_COLUMNS = (
    "column.* of X seems? to name rows",
    "column .* of X looks like",
    "column .* of X holds numbers as text",
)
_OF_LABELS = "y has .* different numbers"


def texts_name_rows(different: int, known: int) -> bool:
    """Return whether few rows share a text, as with names and identifiers."""
    return different > max(KINDS, known // 2)


def is_numbered(known: np.ndarray) -> bool:
    """Return whether every row has its own whole number, as with identifiers.

    Examples
    --------
    >>> is_numbered(np.arange(1000.0)), is_numbered(np.arange(1000.0) / 2)
    (True, False)
    """
    if len(known) <= KINDS:
        return False
    few = known[: KINDS + 1]  # most columns fail here
    return all(
        bool((part == np.floor(part)).all()) and len(np.unique(part)) == len(part)
        for part in (few, known)
    )


def numbers_name_rows(known: np.ndarray) -> bool:
    """Return whether numbers count the rows: all are whole and different, with few gaps.

    They may count in steps, such as 7, 14, 21. Numbers with many gaps may be something else, for
    example amounts of money that are all multiples of 100.

    Examples
    --------
    >>> numbers_name_rows(np.arange(1000.0) + 17), numbers_name_rows(np.arange(1000.0) * 7)
    (True, True)
    >>> numbers_name_rows(np.arange(100.0) ** 2 * 100)
    False
    """
    if not is_numbered(known) or np.abs(known).max() > LARGE:
        return False
    exact = known.astype(np.float64)
    step = int(np.gcd.reduce((exact - exact[0]).astype(np.int64)))
    return len(known) >= DENSE * (float(np.ptp(known)) / step + 1)


def are_numbers_as_text(values: Iterable[Any]) -> bool:
    """Return whether all values that are not missing are numbers written as text.

    Codes such as ``"007"`` do not count as numbers.

    Examples
    --------
    >>> are_numbers_as_text(["12.34", "7", None]), are_numbers_as_text(["12", "007"])
    (True, False)
    >>> are_numbers_as_text(["12", "a"]), are_numbers_as_text([12, 7]), are_numbers_as_text(["nan"])
    (False, False, False)
    """
    known = [value for value in values if not is_missing(value)]
    return all(
        isinstance(text, str) and _is_number(text) and not _CODE.match(text) for text in known
    ) and any(np.isfinite(float(text)) for text in known)


class Stray(NamedTuple):
    """A cell of text in a column of numbers or dates."""

    row: int
    text: str
    number: int
    """Number of such cells in the column."""
    among: str
    """What the other cells are: ``"numbers"`` or ``"dates"``."""


def stray_cell(values: Iterable[Any]) -> Stray | None:
    """Return the first cell that is not a number in a column where nearly all cells are numbers.

    Do the same for dates. Amounts such as ``"$1,200.50"`` count as numbers, and ``"31.12.2024"``
    counts as a date. They are still stray, because they are read as text. But if most cells are
    written like that, only cells of another kind are stray.

    Examples
    --------
    >>> stray_cell([*"123456789", "12a"])
    Stray(row=9, text='12a', number=1, among='numbers')
    >>> stray_cell([*"123456789", "10"]), stray_cell([*"abcdefghijk"])
    (None, None)
    """
    cells = list(values)
    for among, is_one, like in (("numbers", _is_number, _AMOUNT), ("dates", _is_date, _SOME_DATE)):
        found = _stray(cells, is_one, like)
        if found:
            return Stray(*found[0], len(found), among)
    return None


def _stray(
    cells: list[Any], is_one: Callable[[str], bool], like: re.Pattern[str]
) -> list[tuple[int, str]]:
    """Return rows and texts of the stray cells.

    There are some only if nearly all other cells are of the kind, or look like it.
    """

    def is_odd(text: str) -> bool:
        return not is_one(text) and like.fullmatch(text.strip()) is None

    some = [str(cell) for cell in cells[:: len(cells) // SOME + 1] if not is_missing(cell)]
    if 2 * sum(map(is_odd, some)) > len(some):  # an ordinary text column
        return []
    known = [(row, str(cell)) for row, cell in enumerate(cells) if not is_missing(cell)]
    stray = [(row, text) for row, text in known if not is_one(text)]
    odd = [(row, text) for row, text in stray if is_odd(text)]
    few = len(known) < LEAST_CELLS or len(odd) > (1 - MOST) * len(known) + 1e-9
    as_amounts = 2 * (len(stray) - len(odd)) > len(known)
    return [] if few else odd if odd and as_amounts else stray


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_date(text: str) -> bool:
    return read_date(text) is not None


def in_words(stray: Stray, first_row: int = 0) -> str:
    """Describe a stray cell and what it does to its column."""
    others = f" (and {stray.number - 1:,} more such cells)" if stray.number > 1 else ""
    what = "text" if stray.among == "numbers" else f"not a date such as {A_DATE}"
    return (
        f"looks like {stray.among}, but {stray.text!r} in row {stray.row + first_row}{others} is "
        f"{what}, so the column is taken as categories; correct or empty such cells to read the "
        f"column as {stray.among}"
    )


def stacklevel_of_user() -> int:
    """Return the ``stacklevel`` that makes a warning point to the first line outside laconic."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("laconic."):
        frame, level = frame.f_back, level + 1
    return level


def warn_of_columns(X: Any, matrix: Any, categories: Any, units: Any, names: Any) -> None:
    """Warn of columns that the fit probably misreads.

    ``X`` is the user's input. ``matrix`` holds the numbers made from it.
    """
    named = []
    for position, known in categories.items():
        cells = read_column(X, position)
        if cells.labels is not None:  # the user declared it as categorical
            continue
        if are_numbers_as_text(known.values()):
            warnings.warn(
                f"column {cells.name!r} of X holds numbers as text, so it is taken as categories; "
                f"turn it into numbers with X[{cells.name!r}].astype(float) in pandas or "
                ".cast(pl.Float64) in polars, or make it a categorical column to keep categories",
                stacklevel=stacklevel_of_user(),
            )
            continue
        stray = stray_cell(cells.values)
        if stray is not None:
            warnings.warn(
                f"column {cells.name!r} of X {in_words(stray)}", stacklevel=stacklevel_of_user()
            )
        elif len(known) > KINDS and texts_name_rows(len(known), _number_known(cells)):
            named.append(cells.name)
    for f in _perhaps_numbered(matrix):
        if f not in categories and f not in units and numbers_name_rows(_finite(matrix[:, f])):
            named.append(f if names is None else names[f])
    if named:
        many = len(named) > 1
        shown = ", ".join(map(repr, named[:5])) + (", …" if named[5:] else "")
        warnings.warn(
            f"column{'s' * many} {shown} of X seem{'s' * (not many)} to name rows: most values "
            f"occur only once, or the numbers count the rows; leave {'them' if many else 'it'} out "
            "unless new rows will share these values",
            stacklevel=stacklevel_of_user(),
        )


def _perhaps_numbered(matrix: Any) -> list[int]:
    """Return the columns of an array whose first rows are all different whole numbers."""
    if not isinstance(matrix, np.ndarray) or len(matrix) <= KINDS:
        return []
    few = np.sort(matrix[: KINDS + 1], axis=0)
    with np.errstate(invalid="ignore"):  # infinity minus infinity
        whole = ((few == np.floor(few)) | np.isnan(few)).all(axis=0)
        alone = (np.diff(few, axis=0) != 0).all(axis=0)
    return np.flatnonzero(whole & alone).tolist()


def _number_known(cells: Cells) -> int:
    return sum(not is_missing(value) for value in cells.values)


def _finite(column: np.ndarray) -> np.ndarray:
    return column[np.isfinite(column)]


def warn_of_amounts(classes: np.ndarray, n_rows: int) -> None:
    """Warn of labels that are many different numbers with few rows each: probably amounts."""
    many = len(classes)
    if classes.dtype.kind in "iuf" and many > MANY_LABELS and n_rows < FEW_ROWS * many:
        warnings.warn(
            f"y has {many:,} different numbers in {n_rows:,} rows, and each becomes its own class; "
            "if they are amounts, group them into a few classes (numpy.digitize, pandas.qcut) or "
            "use a regressor",
            stacklevel=stacklevel_of_user(),
        )


@contextmanager
def told_already(labels: bool = True) -> Iterator[None]:
    """Suppress warnings of columns and labels that were checked before.

    A subset of the rows can also look odd when the whole data does not.
    """
    with warnings.catch_warnings():
        for message in (*_OF_COLUMNS, *([_OF_LABELS] if labels else [])):
            warnings.filterwarnings("ignore", message=message)
        yield
