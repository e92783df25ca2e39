"""Columns of a table: numbers, dates or categories, and whether they describe rows or name them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from laconic.data.cells import Cells, column_names, dropped, is_frame, read_column
from laconic.data.dates import DATE, as_days, as_durations, date_text, read_dates
from laconic.data.doubts import (
    KINDS,
    Stray,
    are_numbers_as_text,
    is_numbered,
    numbers_name_rows,
    stray_cell,
    texts_name_rows,
)
from laconic.data.frames import all_numbers, check_hashable, is_missing, numbers_of
from laconic.look.numbers import number
from laconic.numeric.once import once

RARER = "any rarer value"
# If a column's dates span more days than this, sentences leave out the time of day.
LONG = 7.0


def spelled(value: float, unit: str | None, long: bool) -> str:
    """Return a number with its unit. If ``long``, dates have no time of day.

    Examples
    --------
    >>> spelled(1.5, "date", True), spelled(1.5, "date", False), spelled(1.5, "hours", True)
    ('1970-01-02', '1970-01-02 12:00', '1.5 hours')
    """
    if unit == DATE:
        return date_text(value, long)
    return number(value) if unit is None else f"{number(value)} {unit}"


@dataclass(frozen=True)
class TableColumn:
    """One feature: numbers, or codes of categories, commonest first, with -1 for missing."""

    name: str
    values: np.ndarray
    names: list[str] | None = None
    unit: str | None = None
    """Unit of the numbers: ``"date"`` (days since 1970), ``"days"``, ``"hours"``, …"""
    declared: bool = False
    """Whether the user says that the values are categories."""
    as_written: bool = True
    """Whether a filter can compare the cells as they are. Otherwise text stands for numbers or
    dates, or categories are not text."""
    key: Any = None
    """What the frame calls the column, if it is not ``name``."""

    @once
    def left_out(self) -> bool:
        """Whether the values name rows: few rows share a text, or the numbers count the rows.

        Whole numbers that are all different count the rows if they leave out hardly any number, or
        hardly any step of one size. Others may be, for example, amounts of money.
        """
        if self.names is not None:
            return texts_name_rows(len(self.names), int(np.count_nonzero(self.values >= 0)))
        return self.unit is None and numbers_name_rows(self.known)

    @once
    def stray(self) -> Stray | None:
        """The first cell of text if nearly all others are numbers or dates."""
        if self.names is None or self.declared:
            return None
        return stray_cell(None if code < 0 else self.names[int(code)] for code in self.values)

    @property
    def different(self) -> int:
        """Number of different values."""
        return len(np.unique(self.known)) if self.names is None else len(self.names)

    @once
    def numbered(self) -> bool:
        """Whether all known numbers are whole and different, as identifiers are."""
        return self.names is None and self.unit is None and is_numbered(self.known)

    @once
    def known(self) -> np.ndarray:
        """The numbers that are not missing. If none is, they are not copied."""
        missing = np.isnan(self.values)
        return self.values[~missing] if missing.any() else self.values

    @once
    def whole(self) -> bool:
        """Whether all numbers are whole. Such dates have no time of day."""
        return bool((self.known == np.floor(self.known)).all())

    def spelled(self, value: float) -> str:
        """Return a number of this column as text: a date, a duration, or a number."""
        long = self.unit == DATE and (self.whole or bool(np.ptp(self.known) > LONG))
        return spelled(value, self.unit, long)

    def cell(self, row: int) -> str:
        """Return the value of a row as a table shows it."""
        value = self.values[row]
        if self.names is not None:
            return "missing" if value < 0 else self.names[int(value)]
        if np.isnan(value):
            return "missing"
        if self.unit == DATE:
            return spelled(value, DATE, self.whole)
        whole = value == np.floor(value) and abs(value) < 1e15
        return (f"{value:.0f}" if whole else f"{value:.6g}") + (
            f" {self.unit}" if self.unit else ""
        )

    def kind_name(self, code: int) -> str:
        """Return the name of a code of `kinds`."""
        names = self.names or []
        return RARER if len(names) > KINDS + 1 and code >= KINDS else names[code]

    def kinds(self) -> tuple[np.ndarray, int]:
        """Return the codes of the categories, with one code for all rare ones, and their number."""
        n = len(self.names or ())
        return np.minimum(self.values, KINDS), min(n, KINDS + 1)


def without(X: Any, ignore: Sequence[Any], what: str = "X") -> Any:
    """Return a table without some columns: by name, or for an array by number or report name."""
    X = X if hasattr(X, "shape") else np.asarray(X)
    if is_frame(X):
        known = column_names(X)
        gone = {name for name in ignore if name in known}
    else:
        known = list(range(X.shape[1])) if X.ndim == 2 else []
        gone = {i for i in known if i in ignore or f"x{i}" in ignore}
        known += [f"x{i}" for i in known]
    for name in ignore:
        if name not in known:
            raise ValueError(f"{what} has no column {name!r} to ignore.")
    if len(gone) == X.shape[1]:
        raise ValueError(f"no column of {what} is left, as all are ignored.")
    if is_frame(X):
        return dropped(X, gone)
    return X[:, [i for i in range(X.shape[1]) if i not in gone]]


def read_columns(X: Any) -> list[TableColumn]:
    """Return the columns of a frame, array or sparse matrix."""
    if is_frame(X):
        names = [str(name) for name in column_names(X)]
        keys = column_names(X)
        return [
            replace(_column(name, read_column(X, i)), key=key)
            for i, (name, key) in enumerate(zip(names, keys, strict=True))
        ]
    array = np.asarray(X.toarray() if sparse.issparse(X) else X)
    if array.ndim == 3:
        array = array.reshape(len(array), -1)
    if array.ndim != 2:
        raise ValueError(f"X must be a table of rows and columns, not of shape {array.shape}.")
    named = (Cells(f"x{i}", array[:, i]) for i in range(array.shape[1]))
    return [_column(cells.name, cells) for cells in named]


def _column(name: str, cells: Cells) -> TableColumn:
    """Read cells as numbers or dates if possible, otherwise as categories by their spelling."""
    if cells.kind in "biuf":
        numbers = np.asarray(cells.values, dtype=np.float64)
        return TableColumn(name, np.where(np.isinf(numbers), np.nan, numbers))
    if cells.kind == "M":
        return TableColumn(name, as_days(cells.values), unit=DATE)
    if cells.kind == "m":
        lengths, unit = as_durations(cells.values)
        return TableColumn(name, lengths, unit=unit)
    check_hashable(cells)
    plain = cells.values
    missing = np.array([is_missing(v) for v in plain])
    told = cells.labels is not None
    numeric = all_numbers(plain[~missing])
    if numeric or (not told and are_numbers_as_text(plain)):
        numbers = numbers_of(cells)
        return TableColumn(name, np.where(np.isinf(numbers), np.nan, numbers), as_written=False)
    text = np.array(["" if gone else str(v) for v, gone in zip(plain, missing, strict=True)])
    names, codes, counts = np.unique(text[~missing], return_inverse=True, return_counts=True)
    days = read_dates(names.tolist())
    if days is not None:
        out = np.full(len(text), np.nan)
        out[~missing] = days[codes]
        return TableColumn(name, out, unit=DATE, as_written=False)
    commonest = np.argsort(-counts, kind="stable")
    out = np.full(len(text), -1.0)
    out[~missing] = np.argsort(commonest)[codes]
    written = all(isinstance(v, str) for v in plain[~missing])
    return TableColumn(name, out, names[commonest].tolist(), declared=told, as_written=written)


def quoted(label: Any) -> str:
    """Return a label in quotation marks."""
    return RARER if label == RARER else f"“{label}”"
