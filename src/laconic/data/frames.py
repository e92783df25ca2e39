"""Turn data frames into numbers: categories into codes, dates into days, durations into a unit.

The code of a category is its position among the categories that a fit saw. A missing value has the
code NaN. Any other value is called *other*: the fit never saw it, or the model does not ask about
it. The code of *other* answers no to every question, also to "is missing".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import time
from difflib import get_close_matches
from numbers import Complex, Number
from typing import Any

import numpy as np
from scipy import sparse

from laconic.data.cells import (
    Cells,
    column_names,
    is_single,
    odd_columns,
    read_column,
    replaced,
)
from laconic.data.dates import (
    DURATIONS,
    as_days,
    as_durations,
    check_days,
    is_date,
    is_other_order,
    origin,
    read_date,
)

# The code of every value that is neither missing nor a known category.
OTHER = -1.0
# The example of a date in messages.
A_DATE = "2024-05-31"

_WHOLE = re.compile(r"^(-?\d+)\.0+$")
# Numbers with a decimal comma or with points between thousands.
_COMMA = re.compile(r"\s*[-+]?[\d.]*,\d+\s*|\s*[-+]?\d{1,3}(?:\.\d{3})+\s*")
# Text that is no mistake in a column of numbers: words for missing values, and truth values.
_NO_TEXT = {"", "na", "nan", "n/a", "null", "none", "<na>", "#n/a", "true", "false"}

Categories = dict[int, dict[int, Any]]
"""Categories of every categorical feature, by their codes."""
Units = dict[int, str]
"""Units of every feature of dates or durations."""


class WrongCell(ValueError):
    """Text in a column of numbers, dates or durations."""

    def __init__(self, name: Any, row: int, text: str, unit: str | None) -> None:
        self.name, self.row, self.text = name, row, text
        self.wanted = f"dates such as {A_DATE}" if is_date(unit) else "numbers"
        if unit in DURATIONS:
            self.wanted = f"durations, or numbers of {unit}"
        super().__init__(
            f"column {name!r} of X holds text ({text!r} in row {row}); turn it into {self.wanted}"
        )

    def of_table(self, first: int = 0) -> str:
        """Return the message for a table on the command line, where rows count from 1.

        ``first`` is the number of rows before those that were read.
        """
        row = first + self.row + 1
        said = f"column {self.name!r} must hold {self.wanted}; row {row} has {self.text!r}"
        return said + reading_option(self.text, self.wanted.split()[0])


class NoValue(ValueError):
    """An object in a column that cannot be a feature's value, for example a list."""

    def __init__(self, name: Any, value: Any) -> None:
        self._name = name
        self._says = f"holds objects of type {type(value).__name__}; turn them into numbers or text"
        super().__init__(f"column {name!r} of X {self._says}")

    def of_table(self) -> str:
        """Return the message for a table on the command line."""
        return f"column {self._name!r} {self._says}, or leave the column out with --ignore"


def reading_option(text: str, wanted: str) -> str:
    """Name the command line option that reads a cell as one of ``"numbers"`` or ``"dates"``.

    Return an empty text if there is none.

    Examples
    --------
    >>> reading_option("1.234,50", "numbers"), reading_option("n.v.", "numbers")
    ('; --decimal , reads commas as decimal signs', '')
    >>> reading_option("11.10.2023", "dates")
    '; --dates dmy or --dates mdy reads such dates'
    """
    if wanted == "numbers" and "," in text and _COMMA.fullmatch(text):
        return "; --decimal , reads commas as decimal signs"
    if wanted == "dates" and is_other_order(text):
        return "; --dates dmy or --dates mdy reads such dates"
    return ""


def different_values(cells: Cells) -> list[Any]:
    """Return the different values of a column that are not missing, in order of appearance.

    Refuse bytes, times of day, and objects whose text does not show a value.
    """
    check_hashable(cells)
    known = [value for value in dict.fromkeys(cells.values) if not is_missing(value)]
    for value in known:
        kind = type(value)
        nameless = kind.__repr__ is object.__repr__ and kind.__str__ is object.__str__
        if nameless or isinstance(value, bytes | time):
            raise NoValue(cells.name, value)
    return known


def check_hashable(cells: Cells) -> None:
    """Refuse a column of objects that cannot be hashed, for example lists."""
    for value in cells.values:
        try:
            hash(value)
        except TypeError as error:
            raise NoValue(cells.name, value) from error


def all_numbers(values: Iterable[Any]) -> bool:
    """Return whether all objects are numbers. Truth values count as numbers."""
    return all(isinstance(value, Number | np.bool_) for value in values)


def asked_categories(categories: Categories, asked: Mapping[int, Iterable[int]]) -> Categories:
    """Return the categories that a model asks about.

    A model needs no others, and must not reveal them. But a category that is spelled almost like
    one of them is kept, so that the two are not confused.
    """
    out = {}
    for feature, known in categories.items():
        codes = {code for code in asked.get(feature, ()) if code in known}
        spelled = {_loosely(known[code]) for code in codes}
        out[feature] = {
            code: label
            for code, label in known.items()
            if code in codes or (spelled and _loosely(label) in spelled)
        }
    return out


def _loosely(label: Any) -> str:
    """Return a label as text, with 1.0 written as 1."""
    return _WHOLE.sub(r"\1", str(label))


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or pandas' own missing value.

    This works without pandas.
    """
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def category_codes(
    values: Iterable[Any], known: Mapping[int, Any], other: float = OTHER
) -> list[float]:
    """Return the codes of values: NaN for missing ones and ``other`` for unknown categories.

    Categories are compared as text. A table that is read again may hold the label 1 as "1" or, in a
    column with missing values, as 1.0.
    """
    exact = {str(label): float(code) for code, label in known.items()}
    loose: dict[str, float] = {}
    for text, code in exact.items():
        loose.setdefault(_loosely(text), code)
    written = (None if is_missing(value) else str(value) for value in values)
    return [
        np.nan if t is None else exact[t] if t in exact else loose.get(_loosely(t), other)
        for t in written
    ]


def encode_frame(X: Any, categories: Categories, units: Units) -> Any:
    """Return the frame with numbers in every column. Columns of plain numbers do not change."""
    odd = dict(odd_columns(X))
    new = {}
    for position, known in categories.items():
        cells = odd.pop(position, None) or read_column(X, position)
        new[position] = np.array(category_codes(cells.values, known))
    for position, unit in units.items():
        if is_date(unit) and position not in odd:  # plain numbers: days since 1970
            odd[position] = read_column(X, position)
    for position, cells in odd.items():
        if cells.kind != "b" or position in units:
            new[position] = numbers_of(cells, units.get(position))
    return replaced(X, new)


def numbers_of(cells: Cells, unit: str | None = None) -> np.ndarray:
    """Return the cells of a column as numbers, in its unit.

    Numbers in a column of dates are read as days since 1970. Numbers in a column of durations are
    read in its unit.
    """
    since = origin(unit)
    if cells.kind in "biuf":
        if is_date(unit):
            check_days(cells.values, cells.name)
        numbers = cells.values if cells.kind == "f" else cells.values.astype(np.float64)
        return numbers - since if since else numbers
    if cells.kind == "M" and is_date(unit):
        return as_days(cells.values, since)
    if cells.kind == "m" and unit in DURATIONS:
        return as_durations(cells.values, unit)[0]
    if cells.kind in "mM":
        what = "dates" if cells.kind == "M" else "durations"
        was = "numbers" if unit is None else "dates" if is_date(unit) else "durations"
        raise ValueError(f"column {cells.name!r} of X holds {what}, but it held {was} in the fit")
    out = np.full(len(cells.values), np.nan)
    for row, value in enumerate(cells.values):
        number = np.nan if is_missing(value) else _as_number(value, unit, since)
        if number is None and isinstance(value, Complex):
            raise ValueError(
                f"column {cells.name!r} of X holds complex numbers ({value} in row {row}); put "
                "their real and imaginary parts in two columns"
            )
        if number is None:
            raise WrongCell(cells.name, *_most_wrong(cells.values, row, unit), unit)
        out[row] = number
    return out


def _most_wrong(values: np.ndarray, first: int, unit: str | None) -> tuple[int, str]:
    """Return row and text of the cell to name in a message.

    ``first`` is the row of the first cell that is not a number (or date). A later cell is preferred
    if the first ones are only numbers with a decimal comma, truth values in words, or words for
    missing values.
    """
    for row in range(first, len(values)):
        text = str(values[row])
        known = text.strip().lower() in _NO_TEXT or _COMMA.fullmatch(text) is not None
        if not known and not is_missing(values[row]) and _as_number(values[row], unit) is None:
            return row, text
    return first, str(values[first])


def _as_number(value: Any, unit: str | None, since: float = 0.0) -> float | None:
    if is_date(unit) and not isinstance(value, Number):
        return read_date(str(value), since)
    try:
        return float(value) - since
    except (TypeError, ValueError):
        return None


def holds_times(X: Any) -> bool:
    """Return whether an input is an array of numpy's times or durations with two dimensions."""
    return isinstance(X, np.ndarray) and X.dtype.kind in "mM" and X.ndim == 2


def encode_times(X: np.ndarray, units: Units, names: Sequence[str] | None = None) -> np.ndarray:
    """Return an array of times or durations as numbers."""
    spelled = names if names is not None else [f"x{f}" for f in range(X.shape[1])]
    columns = zip(spelled, X.T, strict=True)
    return np.column_stack(
        [numbers_of(Cells(n, column), units.get(f)) for f, (n, column) in enumerate(columns)]
    )


def encode_days(X: Any, units: Units, names: Sequence[str] | None = None) -> Any:
    """Convert days since 1970, in the date columns of an array or sparse matrix, to their units.

    Refuse numbers in a dense array that cannot be days.
    """
    dated = [f for f, unit in units.items() if is_date(unit)]
    for f in dated if isinstance(X, np.ndarray) else ():
        check_days(X[:, f], f"x{f}" if names is None else names[f])
    since = np.zeros(X.shape[1])
    since[dated] = [origin(units[f]) for f in dated]
    if not since.any():
        return X
    if sparse.issparse(X):
        full = sparse.csc_matrix(np.ones((X.shape[0], 1))) @ sparse.csr_matrix(since[None])
        return (X - full.astype(X.dtype)).asformat(X.format)
    out = np.array(X, dtype=X.dtype if X.dtype.kind == "f" else np.float64)
    for f in dated:
        out[:, f] -= since[f]
    return out


def frame_matrix(
    X: Any,
    names: Sequence[str],
    reads: Iterable[int],
    categories: Mapping[int, Mapping[int, str]],
    units: Units,
    other: float = OTHER,
) -> np.ndarray:
    """Return a matrix of all features. Those in ``reads`` are read by name; others are zero."""
    columns = [str(name) for name in column_names(X)]
    single = is_single(X, set(names))  # over all columns, as in the estimator
    out = np.zeros((len(X), len(names)), np.float32 if single else np.float64, order="F")
    for f in reads:
        found = columns.count(names[f])
        if found != 1:
            how = "no column" if found == 0 else f"{found} columns"
            near = [] if found else get_close_matches(names[f], columns, n=1, cutoff=0.8)
            hint = f". Its column {near[0]!r} has almost the same name: rename it" if near else ""
            raise ValueError(f"X has {how} {names[f]!r}, which the predictor reads{hint}")
        cells = read_column(X, columns.index(names[f]))
        if f in categories:
            out[:, f] = category_codes(cells.values, categories[f], other)
        else:
            out[:, f] = numbers_of(cells, units.get(f))
    return out


def words_for_text(error: ValueError) -> str | None:
    """Return a better message for text in an array, or None if the error is another one.

    Columns of arrays cannot hold categories.
    """
    first = str(error).splitlines()[0]
    if "convert string" not in first:
        return None
    return (
        f"X is an array that holds text ({first}); turn it into numbers, or use a data frame and "
        'pool="stumps", which takes text columns as categories'
    )


def clearer(error: ValueError, allows_missing: bool, mixed: bool, frame: bool) -> str | None:
    """Return a better message for an error of checked input, or None.

    ``allows_missing`` says that the pool takes text and missing values. ``mixed`` says that it is a
    list of pools, and ``frame`` that the input is a data frame.
    """
    hint = None if allows_missing else what_stumps_could_do(error, mixed)
    return hint or (None if frame else words_for_text(error))


def what_stumps_could_do(error: ValueError, mixed: bool = False) -> str | None:
    """Return a better message for data that only stumps and rules accept, or None.

    ``mixed`` says that the pool is a list of pools.
    """
    first = str(error).splitlines()[0]
    if "Input y" in first:
        return None
    alone = " alone" * mixed  # every pool of a list must take what is given
    if "NaN" in first and "missing values" not in first:  # it may have been said
        return f'{first} Only the pools "stumps" and "rules"{alone} take missing values.'
    return f'{first}, or use pool="stumps"{alone}' if "holds text (" in first else None
