"""Data frames with categorical columns: their categories, and their codes.

The code of a category is its position among the categories that a fit saw. A missing value has the
code NaN. Every other value is *other*: one that the fit never saw, or one that the model does not
ask about. It has a code that answers no to every question, "is missing" included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

# The code of every value that is neither missing nor a known category.
OTHER = -1.0

_WHOLE = re.compile(r"^(-?\d+)\.0+$")

Categories = dict[int, dict[int, Any]]
"""Of every categorical feature, its categories by their codes."""


def frame_categories(X: Any) -> Categories:
    """Categories of the categorical and text columns of a pandas frame, by position."""
    if not (hasattr(X, "dtypes") and hasattr(X, "assign")):
        return {}
    out = {}
    for position, dtype in enumerate(X.dtypes):
        column = X.iloc[:, position]
        if hasattr(dtype, "categories"):
            out[position] = dict(enumerate(dtype.categories))
        elif str(dtype) in ("object", "str", "string"):
            out[position] = dict(enumerate(sorted(column.dropna().unique(), key=str)))
    return out


def asked_categories(categories: Categories, asked: Mapping[int, Iterable[int]]) -> Categories:
    """The categories that are asked about; a model needs no others, and must not tell them.

    Those that are spelled almost like one of them stay, to be told apart from it.
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
    """How a label is written, 1.0 as 1."""
    return _WHOLE.sub(r"\1", str(label))


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or pandas' own missing value; pandas need not be there."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def category_codes(
    values: Iterable[Any], known: Mapping[int, Any], other: float = OTHER
) -> list[float]:
    """Codes of values among the known categories; NaN for missing ones, and ``other`` for others.

    Categories are compared by how they are written, since a table read again may spell the label 1
    as "1" or, beside a missing value, as 1.0.
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


def encode_frame(X: Any, categories: Categories) -> Any:
    """A frame with each categorical column as the codes of its values."""
    if not categories or not hasattr(X, "assign"):
        return X
    coded = X.copy(deep=False)
    for position, known in categories.items():
        values = X.iloc[:, position].astype(object)
        coded[X.columns[position]] = category_codes(values, known)
    return coded


def frame_matrix(
    X: Any,
    names: Sequence[str],
    reads: Iterable[int],
    categories: Mapping[int, Mapping[int, str]],
    other: float = OTHER,
) -> np.ndarray:
    """The features that are read, by name, in their places; zeros in those that are not."""
    columns = [str(name) for name in X.columns]
    out = np.zeros((len(X), len(names)), order="F")
    for f in reads:
        found = columns.count(names[f])
        if found != 1:
            how = "no column" if found == 0 else f"{found} columns"
            raise ValueError(f"X has {how} {names[f]!r}, which the predictor reads")
        column = X[X.columns[columns.index(names[f])]]
        if f in categories:
            out[:, f] = category_codes(column, categories[f], other)
        elif hasattr(column, "isna"):  # pandas' own missing value is no number
            out[:, f] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            out[:, f] = np.asarray(column, dtype=np.float64)
    return out


def refuse_times(X: Any) -> None:
    """An error that names a column of a data frame that holds dates, times or spans of time."""
    for name, dtype in zip(getattr(X, "columns", ()), getattr(X, "dtypes", ()), strict=False):
        if getattr(dtype, "kind", "") in "mM":
            raise ValueError(
                f"column {name!r} of X holds times; turn them into numbers, such as days since a "
                "date, or leave it out"
            )


def words_for_text(X: Any, error: ValueError) -> str | None:
    """A better message where text came in an array, whose columns have no categories."""
    first = str(error).splitlines()[0]
    if hasattr(X, "columns") or "convert string" not in first:
        return None
    return (
        f"X is an array that holds text ({first}); turn it into numbers, or give a data frame, "
        'whose text columns are categories for pool="stumps"'
    )


def what_stumps_could_do(X: Any, error: ValueError) -> str | None:
    """A better message where data was refused that decision stumps would take."""
    first = str(error).splitlines()[0]
    if "Input y" in first:
        return None
    if "NaN" in first:
        return f'{first} Only pool="stumps" takes missing values.'
    text = frame_categories(X)
    if not text or not ("cast" in first or "convert" in first):
        return None
    name = X.columns[next(iter(text))]
    return f'column {name!r} of X holds text; turn it into numbers, or use pool="stumps"'
