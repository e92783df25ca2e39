"""Dates and durations as numbers: days since a date, or lengths in one unit.

A fit counts the days of a column from the first date of its training rows. A linear model would
learn little from days since 1970: those of one year are nearly one constant, about 20,000.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

# The unit of days since 1970: of numbers that users give, and of files of earlier versions.
DATE = "date"
DURATIONS = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}
# 0001-01-01 and 9999-12-31, the dates that four digits of a year can write.
FIRST_DAY, LAST_DAY = -719162, 2932896
# How often a day has, and a second has, what numpy counts times in.
TICKS = {"h": 24, "m": 1440, "s": 86400, "ms": 86400 * 10**3, "us": 86400 * 10**6}
TICKS |= {"ns": 86400 * 10**9}
PARTS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9, "ps": 1e12, "fs": 1e15, "as": 1e18}
# Steps that times of day are written in, each where those before do not tell two of them apart.
STEPS = ("m", "s", "ms", "us", "ns")

_SINCE = re.compile(r"days since (\d{4}-\d\d-\d\d)")

# A date, perhaps with a time of day, fractions of a second and an offset from UTC (ISO 8601).
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)\d*(?:Z|[+-]\d\d(?::?\d\d)?)?)?"
)

# A date in another order, with signs of one kind between its parts, and perhaps a time of day.
_OTHER_ORDER = re.compile(
    r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?))?"
)

# How a missing date may be written among others.
_NO_DATE = {"", "na", "n/a", "nan", "nat", "none", "null", "<na>", "-", "?", "unknown", "missing"}


def unit_since_first(days: np.ndarray) -> str:
    """The unit that counts days from the first of some days since 1970.

    Examples
    --------
    >>> unit_since_first(np.array([np.nan, 2.5, 1.75])), unit_since_first(np.array([np.nan]))
    ('days since 1970-01-02', 'days since 1970-01-01')
    """
    known = days[~np.isnan(days)]
    first = np.clip(known.min(), FIRST_DAY, LAST_DAY) if len(known) else 0.0
    return f"days since {date_text(first, day_only=True)}"


def is_date(unit: str | None) -> bool:
    """Whether numbers in a unit are dates."""
    return unit is not None and (unit == DATE or unit.startswith("days since "))


def is_unit(unit: str) -> bool:
    """Whether a unit is one, as it may come from a stranger's file.

    Examples
    --------
    >>> [is_unit(u) for u in ("hours", "date", "days since 2024-02-29", "days since 2023-02-29")]
    [True, True, True, False]
    """
    since = _SINCE.fullmatch(unit)
    dated = since is not None and read_date(since[1]) is not None
    return unit == DATE or unit in DURATIONS or dated


def origin(unit: str | None) -> float:
    """Days from 1970 to the date that a unit counts from; 0 for numbers that are no dates.

    Examples
    --------
    >>> origin("days since 1970-01-11"), origin("date"), origin("hours")
    (10.0, 0.0, 0.0)
    """
    since = None if unit is None else _SINCE.fullmatch(unit)
    return 0.0 if since is None else float(read_date(since[1]) or 0.0)


def in_words(unit: str) -> str:
    """A unit as people read it.

    Examples
    --------
    >>> in_words("date"), in_words("days since 2024-01-31"), in_words("hours")
    ('days since 1970-01-01', 'days since 2024-01-31', 'hours')
    """
    return "days since 1970-01-01" if unit == DATE else unit


def read_date(text: str, since: float = 0.0) -> float | None:
    """Days since 1970 of one date in ISO 8601, NaN for a missing one, None for anything else.

    Or days since another day, which is given by its number since 1970.

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
        # Apart, since a year of four digits is out of reach where nanoseconds are counted.
        whole, part = np.datetime64(day, "D"), np.datetime64(f"1970-01-01T{time or '00:00'}")
    except ValueError:  # there is no such day
        return None
    return float(as_days(whole, since) + as_days(part))


def is_other_order(text: str) -> bool:
    """Whether a text may be a date that begins with the day or the month."""
    return _OTHER_ORDER.fullmatch(text.strip()) is not None


def as_iso(text: str, order: str) -> str | None:
    """A date in an order, ``"dmy"`` or ``"mdy"``, as ISO 8601 has it; None if it is none.

    A date in ISO 8601 stays as it is, and so does a word for a missing one.

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


def as_days(times: Any, since: float = 0.0) -> np.ndarray:
    """Days since 1970 of times of numpy, NaN for missing ones.

    Or days since another day, which is given by its number since 1970: days that are few leave room
    for nanoseconds.

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
    """Refuse numbers after the year 9999: seconds since 1970, say, or 20240531."""
    with np.errstate(invalid="ignore"):
        wrong = np.abs(days) > LAST_DAY
    if wrong.any():
        raise ValueError(
            f"column {name!r} of X holds {days[wrong][0]:.15g}, but it held dates in the fit; give "
            "dates, or days since 1970"
        )


def as_durations(
    times: Any, unit: str | None = None, weight: np.ndarray | None = None
) -> tuple[np.ndarray, str]:
    """Durations of numpy in a unit; by default in the largest of which half of them have one.

    Half of them by ``weight``, where rows have some.

    Examples
    --------
    >>> as_durations(np.array([90, 30, 120], dtype="timedelta64[m]"))
    (array([1.5, 0.5, 2. ]), 'hours')
    """
    times = np.asarray(times)
    fine = np.datetime_data(times.dtype)[0]
    fine = fine if fine in PARTS else "s"
    exact = times.astype(f"timedelta64[{fine}]")
    ticks = exact.astype(np.int64) / PARTS[fine]
    seconds = np.where(np.isnat(exact), np.nan, ticks)
    if unit is None:
        unit = _unit_of_half(np.abs(seconds), weight)
    return seconds / DURATIONS[unit], unit


def _unit_of_half(seconds: np.ndarray, weight: np.ndarray | None) -> str:
    """The largest unit of which half of the durations, by weight, have one."""
    known = ~np.isnan(seconds)
    weights = np.where(known, 1.0 if weight is None else weight, 0.0)
    half = 0.5 * weights.sum() * (1.0 - 1e-9)  # sums of thirds, say, are rounded
    if half > 0:
        for name, size in DURATIONS.items():
            if weights[known & (seconds >= size)].sum() >= half:
                return name
    return "seconds"


def date_text(value: float, day_only: bool, since: float = 0.0, step: str = "m") -> str:
    """A number of days since 1970 as a date, with the time of day or without.

    Or days since another day, which is given by its number since 1970. The time of day is rounded
    to a ``step`` of numpy, such as ``"m"`` for minutes.

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
    """What the numbers of a date or a duration stand for, asked as categories are for their codes.

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
        """The same, but with finer times of day for more digits than six, down to nanoseconds."""
        return InUnit(self.unit, STEPS[min(max(digits - 6, 0), len(STEPS) - 1)])

    def get(self, value: float, plain: str) -> str:
        """A number in words; ``plain`` is how it is written without its unit."""
        if not is_date(self.unit):
            return f"{plain} {self.unit}"
        try:
            return date_text(value, value == np.floor(value), origin(self.unit), self.step)
        except (OverflowError, ValueError):  # a calendar has fewer days than there are numbers
            return plain
