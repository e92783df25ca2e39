"""Dates and durations as numbers: days since 1970, or lengths in one unit."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

# What a column's numbers stand for, beside numbers of its own.
DATE, DURATIONS = "date", {"days": 86400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}
UNITS = (DATE, *DURATIONS)
# 9999-12-31, the last date that four digits of a year can write.
LAST_DAY = 2932896

# A date, perhaps with a time of day, fractions of a second and an offset from UTC (ISO 8601).
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)\d*(?:Z|[+-]\d\d(?::?\d\d)?)?)?"
)

# How a missing date may be written among others.
_NO_DATE = {"", "na", "n/a", "nan", "nat", "none", "null", "<na>", "-", "?", "unknown", "missing"}


def read_date(text: str) -> float | None:
    """Days since 1970 of one date in ISO 8601, NaN for a missing one, None for anything else.

    Examples
    --------
    >>> read_date("1970-01-03T12:00"), read_date("NA"), read_date("spring")
    (2.5, nan, None)
    """
    if text.strip().lower() in _NO_DATE:
        return np.nan
    found = _ISO.fullmatch(text)
    if found is None:
        return None
    day, time = found.groups()
    try:
        return float(as_days(np.datetime64(f"{day}T{time or '00:00'}")))
    except ValueError:  # there is no such day
        return None


def read_dates(texts: list[str]) -> np.ndarray | None:
    """Days since 1970 of dates in ISO 8601, as the clock showed them; None unless all texts are.

    Words such as ``"NA"`` among them are missing dates, NaN.

    Examples
    --------
    >>> read_dates(["1970-01-02", "1970-01-03T12:00", "1970-01-01 06:00:00+02:00"]).tolist()
    [1.0, 2.5, 0.25]
    >>> read_dates(["1970-01-02", "NA"]).tolist()
    [1.0, nan]
    >>> read_dates(["1970-01-02", "spring"]), read_dates(["2023-02-31"]), read_dates(["NA"])
    (None, None, None)
    """
    days = np.full(len(texts), np.nan)
    for i, text in enumerate(texts):
        day = read_date(text)
        if day is None:
            return None
        days[i] = day
    return None if np.isnan(days).all() else days


def as_days(times: Any) -> np.ndarray:
    """Days since 1970 of times of numpy, NaN for missing ones.

    Examples
    --------
    >>> as_days(np.array(["1970-01-03", "NaT"], dtype="datetime64[D]"))
    array([ 2., nan])
    """
    exact = np.asarray(times, dtype="datetime64[us]")
    return np.where(np.isnat(exact), np.nan, exact.astype(np.int64) / 86400e6)


def check_days(days: np.ndarray, name: Any) -> None:
    """Refuse numbers after the year 9999: seconds since 1970, say, or 20240531."""
    with np.errstate(invalid="ignore"):
        wrong = np.abs(days) > LAST_DAY
    if wrong.any():
        raise ValueError(
            f"column {name!r} of X holds {days[wrong][0]:.15g}, but it held dates in the fit; give "
            "dates, or days since 1970"
        )


def as_durations(times: Any, unit: str | None = None) -> tuple[np.ndarray, str]:
    """Durations of numpy in a unit; by default in the largest of which half of them have one.

    Examples
    --------
    >>> as_durations(np.array([90, 30, 120], dtype="timedelta64[m]"))
    (array([1.5, 0.5, 2. ]), 'hours')
    """
    exact = np.asarray(times, dtype="timedelta64[us]")
    seconds = np.where(np.isnat(exact), np.nan, exact.astype(np.int64) / 1e6)
    if unit is None:
        known = np.abs(seconds[~np.isnan(seconds)])
        middle = float(np.median(known)) if len(known) else 0.0
        unit = next((name for name, size in DURATIONS.items() if middle >= size), "seconds")
    return seconds / DURATIONS[unit], unit


def date_text(value: float, day_only: bool) -> str:
    """A number of days since 1970 as a date, with the time of day or without.

    Examples
    --------
    >>> date_text(1.5, True), date_text(1.5, False)
    ('1970-01-02', '1970-01-02 12:00')
    """
    if day_only:
        return str(np.datetime64(int(np.floor(value)), "D"))
    return str(np.datetime64(round(value * 1440), "m")).replace("T", " ")


class InUnit:
    """What the numbers of a date or a duration stand for, asked as categories are for their codes.

    Examples
    --------
    >>> InUnit("date").get(2.0, "2"), InUnit("date").get(2.25, "2.25"), InUnit("hours").get(2, "2")
    ('1970-01-03', '1970-01-03 06:00', '2 hours')
    """

    def __init__(self, unit: str) -> None:
        self.unit = unit

    def get(self, value: float, plain: str) -> str:
        """A number in words; ``plain`` is how it is written without its unit."""
        if self.unit != DATE:
            return f"{plain} {self.unit}"
        try:
            return date_text(value, day_only=value == np.floor(value))
        except (OverflowError, ValueError):  # a calendar has fewer days than there are numbers
            return plain
