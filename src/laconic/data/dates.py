"""Dates and durations as numbers: days since a date, or lengths in one unit.

A fit counts the days of a column from the first date of its training rows. A linear model would
learn little from days since 1970, because all days of one year are close to one constant, about
20,000.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

# The unit "days since 1970". Numbers that users give in a date column have it, and so have files
# of earlier versions.
DATE = "date"
DURATIONS = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}
# 0001-01-01 and 9999-12-31, the dates that four digits of a year can write.
FIRST_DAY, LAST_DAY = -719162, 2932896
# Number of numpy's time units in a day (TICKS) and in a second (PARTS).
TICKS = {"h": 24, "m": 1440, "s": 86400, "ms": 86400 * 10**3, "us": 86400 * 10**6}
TICKS |= {"ns": 86400 * 10**9}
PARTS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9, "ps": 1e12, "fs": 1e15, "as": 1e18}
# Precisions for writing a time of day. A finer one is used when the coarser ones would write two
# different times alike.
STEPS = ("m", "s", "ms", "us", "ns")

_SINCE = re.compile(r"days since (\d{4}-\d\d-\d\d)")

# A date in ISO 8601. A time of day, fractions of a second and an offset from UTC are optional.
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)\d*(?:Z|[+-]\d\d(?::?\d\d)?)?)?"
)

# A date in another order, with the same separator between its parts. A time of day is optional.
_OTHER_ORDER = re.compile(
    r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?))?"
)

# Words that stand for a missing date.
_NO_DATE = {"", "na", "n/a", "nan", "nat", "none", "null", "<na>", "-", "?", "unknown", "missing"}


def unit_since_first(days: np.ndarray) -> str:
    """Return the unit that counts days from the earliest date; ``days`` are days since 1970.

    Examples
    --------
    >>> unit_since_first(np.array([np.nan, 2.5, 1.75])), unit_since_first(np.array([np.nan]))
    ('days since 1970-01-02', 'days since 1970-01-01')
    """
    known = days[~np.isnan(days)]
    first = np.clip(known.min(), FIRST_DAY, LAST_DAY) if len(known) else 0.0
    return f"days since {date_text(first, day_only=True)}"


def is_date(unit: str | None) -> bool:
    """Return whether numbers in a unit are dates."""
    return unit is not None and (unit == DATE or unit.startswith("days since "))


def is_unit(unit: str) -> bool:
    """Return whether a text is a valid unit. It may come from an untrusted file.

    Examples
    --------
    >>> [is_unit(u) for u in ("hours", "date", "days since 2024-02-29", "days since 2023-02-29")]
    [True, True, True, False]
    """
    since = _SINCE.fullmatch(unit)
    dated = since is not None and read_date(since[1]) is not None
    return unit == DATE or unit in DURATIONS or dated


def origin(unit: str | None) -> float:
    """Return the days from 1970 to the date that a unit counts from; 0 if it is not a date unit.

    Examples
    --------
    >>> origin("days since 1970-01-11"), origin("date"), origin("hours")
    (10.0, 0.0, 0.0)
    """
    since = None if unit is None else _SINCE.fullmatch(unit)
    return 0.0 if since is None else float(read_date(since[1]) or 0.0)


def in_words(unit: str) -> str:
    """Return a unit as people read it.

    Examples
    --------
    >>> in_words("date"), in_words("days since 2024-01-31"), in_words("hours")
    ('days since 1970-01-01', 'days since 2024-01-31', 'hours')
    """
    return "days since 1970-01-01" if unit == DATE else unit


def read_date(text: str, since: float = 0.0) -> float | None:
    """Read one date in ISO 8601 as days since 1970.

    Return NaN for a missing date and None for anything else. With ``since``, count from that day
    instead; ``since`` is itself in days since 1970.

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
        # Read day and time separately: nanoseconds in 64 bits do not reach all years of 4 digits.
        whole, part = np.datetime64(day, "D"), np.datetime64(f"1970-01-01T{time or '00:00'}")
    except ValueError:  # there is no such day
        return None
    return float(as_days(whole, since) + as_days(part))


def is_other_order(text: str) -> bool:
    """Return whether a text may be a date that begins with the day or the month."""
    return _OTHER_ORDER.fullmatch(text.strip()) is not None


def as_iso(text: str, order: str) -> str | None:
    """Convert a date in the order ``"dmy"`` or ``"mdy"`` to ISO 8601; None if it is not a date.

    A date in ISO 8601 and a word for a missing date stay as they are.

    Examples
    --------
    >>> as_iso("11.10.2023", "dmy"), as_iso("11/10/2023 08:30", "mdy"), as_iso("2023-10-11", "dmy")
    ('2023-10-11', '2023-11-10T08:30', '2023-10-11')
    >>> as_iso("13.10.2023", "mdy"), as_iso("1.2.23", "dmy"), as_iso("spring", "dmy")
    (None, None, None)
    """
    if read_date(text) is not None:
        return text
    found = _OTHER_ORDER.fullmatch(text.strip())
    if found is None:
        return None
    one, _, two, year, time = found.groups()
    day, month = (one, two) if order == "dmy" else (two, one)
    out = f"{year}-{month:0>2}-{day:0>2}" + (f"T{time}" if time else "")
    return None if read_date(out) is None else out


def read_dates(texts: list[str]) -> np.ndarray | None:
    """Read dates in ISO 8601 as days since 1970; None if any text is not a date.

    Words such as ``"NA"`` are missing dates and become NaN. If all dates are missing, return None.
    Times are those of the local clock: an offset from UTC is ignored.

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


def as_days(times: Any, since: float = 0.0) -> np.ndarray:
    """Convert numpy's times to days since 1970, with NaN for missing ones.

    With ``since``, count from that day instead; ``since`` is itself in days since 1970. A small
    number of days leaves enough digits for nanoseconds.

    Examples
    --------
    >>> as_days(np.array(["1970-01-03", "NaT"], dtype="datetime64[D]"))
    array([ 2., nan])
    """
    times = np.asarray(times)
    unit = np.datetime_data(times.dtype)[0]
    unit = "ns" if unit in ("ps", "fs", "as") else unit if unit in TICKS else "D"
    exact, ticks = times.astype(f"datetime64[{unit}]"), TICKS.get(unit, 1)
    days, rest = np.divmod(exact.astype(np.int64), ticks)
    return np.where(np.isnat(exact), np.nan, days - since + rest / ticks)


def check_days(days: np.ndarray, name: Any) -> None:
    """Refuse days beyond the year 9999, for example seconds since 1970, or 20240531."""
    with np.errstate(invalid="ignore"):
        wrong = np.abs(days) > LAST_DAY
    if wrong.any():
        raise ValueError(
            f"column {name!r} of X holds {days[wrong][0]:.15g}, but it held dates in the fit; use "
            "dates or days since 1970"
        )


def as_durations(
    times: Any, unit: str | None = None, weight: np.ndarray | None = None
) -> tuple[np.ndarray, str]:
    """Convert numpy's durations to numbers in a unit, and return both.

    By default, choose the largest unit such that at least half of the durations, by ``weight``, are
    one unit long or longer.

    Examples
    --------
    >>> as_durations(np.array([90, 30, 120], dtype="timedelta64[m]"))
    (array([1.5, 0.5, 2. ]), 'hours')
    """
    seconds = _in_seconds(times)
    if unit is None:
        unit = unit_of_reaches(_reaches(np.abs(seconds), weight))
    return seconds / DURATIONS[unit], unit


def _in_seconds(times: Any) -> np.ndarray:
    """Return numpy's durations in seconds, with NaN for missing ones."""
    times = np.asarray(times)
    fine = np.datetime_data(times.dtype)[0]
    fine = fine if fine in PARTS else "s"
    exact = times.astype(f"timedelta64[{fine}]")
    ticks = exact.astype(np.int64) / PARTS[fine]
    return np.where(np.isnat(exact), np.nan, ticks)


def reaches(times: Any, weight: np.ndarray | None = None) -> np.ndarray:
    """Return the weight of the durations that are known, and of those that reach each unit.

    The units are those of `DURATIONS`, in order. The weights of several parts can be added.

    Examples
    --------
    >>> reaches(np.array([90, 30, 120], dtype="timedelta64[m]"))
    array([3., 0., 2., 3., 3.])
    """
    return _reaches(np.abs(_in_seconds(times)), weight)


def _reaches(seconds: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    known = ~np.isnan(seconds)
    weights = np.where(known, 1.0 if weight is None else weight, 0.0)
    far = [weights[known & (seconds >= size)].sum() for size in DURATIONS.values()]
    return np.array([weights.sum(), *far])


def unit_of_reaches(weights: np.ndarray) -> str:
    """Return the largest unit that at least half of the durations, by weight, reach."""
    half = 0.5 * weights[0] * (1.0 - 1e-9)  # allow for rounding, as in sums of thirds
    if half > 0:
        for name, far in zip(DURATIONS, weights[1:], strict=True):
            if far >= half:
                return name
    return "seconds"


def date_text(value: float, day_only: bool, since: float = 0.0, step: str = "m") -> str:
    """Write a number of days since 1970 as a date, with or without the time of day.

    With ``since``, the days count from that day instead; ``since`` is itself in days since 1970.
    The time of day is rounded to ``step``, a time unit of numpy such as ``"m"`` for minutes.

    Examples
    --------
    >>> date_text(1.5, True), date_text(1.5, False), date_text(1.5, False, 10.0, "ms")
    ('1970-01-02', '1970-01-02 12:00', '1970-01-12 12:00:00.000')
    """
    day = int(np.floor(value))
    if day_only:
        return str(np.datetime64(day + int(since), "D"))
    more, ticks = divmod(round((value - day) * TICKS[step]), TICKS[step])
    time = str(np.array(ticks).astype(f"datetime64[{step}]"))[len("1970-01-01T") :]
    return f"{np.datetime64(day + int(since) + more, 'D')} {time}"


class InUnit:
    """Write numbers of a date or duration feature as text.

    Its `get` has the signature of ``dict.get``, so callers use it like a dict of categories.

    Examples
    --------
    >>> InUnit("date").get(2.25, "2.25"), InUnit("hours").get(2, "2")
    ('1970-01-03 06:00', '2 hours')
    >>> InUnit("days since 2024-05-30").get(2.0, "2")
    '2024-06-01'
    """

    def __init__(self, unit: str, step: str = "m") -> None:
        self.unit, self.step = unit, step

    def finer(self, digits: int) -> InUnit:
        """Return a copy that writes finer times of day for more than six digits.

        The finest precision is nanoseconds.
        """
        return InUnit(self.unit, STEPS[min(max(digits - 6, 0), len(STEPS) - 1)])

    def get(self, value: float, plain: str) -> str:
        """Return a number as text; ``plain`` is the same number without its unit."""
        if not is_date(self.unit):
            return f"{plain} {self.unit}"
        try:
            return date_text(value, value == np.floor(value), origin(self.unit), self.step)
        except (OverflowError, ValueError):  # the number is outside the calendar
            return plain
