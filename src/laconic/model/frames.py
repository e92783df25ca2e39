"""Data frames with categorical columns: their categories, and their codes."""

from __future__ import annotations

from typing import Any

import numpy as np


def frame_categories(X: Any) -> dict[int, list[Any]]:
    """Categories of the categorical and text columns of a pandas frame, by position."""
    if not (hasattr(X, "dtypes") and hasattr(X, "assign")):
        return {}
    out = {}
    for position, dtype in enumerate(X.dtypes):
        column = X.iloc[:, position]
        if hasattr(dtype, "categories"):
            out[position] = list(dtype.categories)
        elif str(dtype) in ("object", "str", "string"):
            out[position] = sorted(column.dropna().unique(), key=str)
    return out


def encode_frame(X: Any, categories: dict[int, list[Any]]) -> Any:
    """A frame with each categorical column as the positions of its values; unknown ones missing."""
    if not categories or not hasattr(X, "assign"):
        return X
    coded = X.copy(deep=False)
    for position, known in categories.items():
        code = {value: float(i) for i, value in enumerate(known)}
        # A file read again may have turned the label "1" into the number 1.
        spelled = {str(value): number for value, number in code.items()}
        values = X.iloc[:, position].astype(object)
        coded[X.columns[position]] = [code.get(v, spelled.get(str(v), np.nan)) for v in values]
    return coded


def what_stumps_could_do(X: Any, error: ValueError) -> str | None:
    """A better message where data was refused that decision stumps would take."""
    first = str(error).splitlines()[0]
    if "NaN" in first:
        return f'{first} Only pool="stumps" takes missing values.'
    text = frame_categories(X)
    if not text or not ("cast" in first or "convert" in first):
        return None
    name = X.columns[next(iter(text))]
    return f'column {name!r} of X holds text; turn it into numbers, or use pool="stumps"'
