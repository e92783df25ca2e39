"""Conditions on one feature: the tests of stumps and rules, on rows and in words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from laconic.model.distinct_names import written_apart
from laconic.model.feature_maps import Labels, Names, feature_name

# The tests, by number. A missing value passes only the test for missing values.
AT_MOST, EQUAL, MISSING, ABOVE = range(4)
CONDITION_KINDS = ("le", "eq", "missing", "gt")
"""Names of the tests in records of atoms."""


def passes(v: np.ndarray, value: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Return which numbers pass the test of their column, (n_rows, n_columns)."""
    out = np.empty(v.shape, dtype=bool)
    ask = {AT_MOST: np.less_equal, EQUAL: np.equal, ABOVE: np.greater}
    for number in np.unique(test).tolist():
        of = np.flatnonzero(test == number)
        with np.errstate(invalid="ignore"):
            out[:, of] = np.isnan(v[:, of]) if number == MISSING else (
                ask[number](v[:, of], value[of])
            )  # fmt: skip
    return out


def condition_writer(
    feature: np.ndarray,
    value: np.ndarray,
    test: np.ndarray,
    feature_names: Names = None,
    categories: Labels = None,
) -> Callable[[Callable[[str], str]], list[str]]:
    """Return a function that writes all conditions, such as ``age <= 40`` or ``job is missing``.

    Its argument writes the names of features and categories, but not numbers.
    """
    listed = list(zip(feature.tolist(), value.tolist(), test.tolist(), strict=True))
    asked: dict[int, list[float]] = {}
    for f, v, t in listed:
        if t != MISSING:
            asked.setdefault(f, []).append(v)
    words = categories or {}
    spelled = {f: written_apart(values, words.get(f)) for f, values in asked.items()}

    def write(name: Callable[[str], str]) -> list[str]:
        out = []
        for f, v, t in listed:
            known = name(feature_name(f, feature_names))
            if t == MISSING:
                out.append(f"{known} is missing")
            elif t == EQUAL:
                out.append(f"{known} = {name(spelled[f][v])}")
            else:
                out.append(f"{known} {'<=' if t == AT_MOST else '>'} {spelled[f][v]}")
        return out

    return write


def categories_asked(
    feature: np.ndarray, value: np.ndarray, test: np.ndarray
) -> dict[int, set[int]]:
    """Return the category codes that the conditions ask about, for each feature."""
    out: dict[int, set[int]] = {}
    of = test == EQUAL
    for f, v in zip(feature[of].tolist(), value[of].tolist(), strict=True):
        out.setdefault(f, set()).add(int(v))
    return out
