"""Dates and durations of a table as numbers, and back as people write them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from laconic.look.numbers import number

# What a column's numbers stand for, beside numbers of its own.
DATE, DURATIONS = "date", {"days": 86400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}
# Days of a column's range above which sentences leave out the time of day.
LONG = 7.0

# A date, perhaps with a time of day, fractions of a second and an offset from UTC (ISO 8601).
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)\d*(?:Z|[+-]\d\d(?::?\d\d)?)?)?"
)


# How a missing date may be written among others.
_NO_DATE = {"", "na", "n/a", "nan", "nat", "none", "null", "<na>", "-", "?", "unknown", "missing"}


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
        if text.strip().lower() in _NO_DATE:
            continue
        found = _ISO.fullmatch(text)
        if found is None:
            return None
        day, time = found.groups()
        try:
            days[i] = as_days(np.datetime64(f"{day}T{time or '00:00'}"))
        except ValueError:  # there is no such day
            return None
    return None if np.isnan(days).all() else days


def as_days(times: Any) -> np.ndarray:
    """Days since 1970 of times of numpy or pandas, as the clock showed them, NaN for missing ones.

    Examples
    --------
    >>> as_days(np.array(["1970-01-03", "NaT"], dtype="datetime64[D]"))
    array([ 2., nan])
    """
    if getattr(times.dtype, "tz", None) is not None:
        times = times.dt.tz_localize(None)
    exact = np.asarray(times, dtype="datetime64[us]")
    return np.where(np.isnat(exact), np.nan, exact.astype(np.int64) / 86400e6)


def as_durations(times: Any) -> tuple[np.ndarray, str]:
    """Durations of numpy or pandas in the largest unit of which half of them have one.

    Examples
    --------
    >>> as_durations(np.array([90, 30, 120], dtype="timedelta64[m]"))
    (array([1.5, 0.5, 2. ]), 'hours')
    """
    exact = np.asarray(times, dtype="timedelta64[us]")
    seconds = np.where(np.isnat(exact), np.nan, exact.astype(np.int64) / 1e6)
    known = np.abs(seconds[~np.isnan(seconds)])
    middle = float(np.median(known)) if len(known) else 0.0
    unit = next((name for name, size in DURATIONS.items() if middle >= size), "seconds")
    return seconds / DURATIONS[unit], unit


def spelled(value: float, unit: str | None, long: bool) -> str:
    """A number in its column's unit; dates without the time of day where the column is long.

    Examples
    --------
    >>> spelled(1.5, "date", True), spelled(1.5, "date", False), spelled(1.5, "hours", True)
    ('1970-01-02', '1970-01-02 12:00', '1.5 hours')
    """
    if unit is None:
        return number(value)
    if unit != DATE:
        return f"{number(value)} {unit}"
    if long:
        return str(np.datetime64(int(np.floor(value)), "D"))
    return str(np.datetime64(round(value * 1440), "m")).replace("T", " ")
