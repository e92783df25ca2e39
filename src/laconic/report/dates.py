"""Dates and durations as people write them."""

from __future__ import annotations

from laconic.data.dates import DATE, date_text
from laconic.look.numbers import number

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
