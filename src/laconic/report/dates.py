"""Dates and durations as people write them."""

from __future__ import annotations

from laconic.data.dates import DATE, date_text
from laconic.look.numbers import number

# Days of a column's range above which sentences leave out the time of day.
LONG = 7.0


def spelled(value: float, unit: str | None, long: bool) -> str:
    """A number in its column's unit; dates without the time of day where the column is long.

    Examples
    --------
    >>> spelled(1.5, "date", True), spelled(1.5, "date", False), spelled(1.5, "hours", True)
    ('1970-01-02', '1970-01-02 12:00', '1.5 hours')
    """
    if unit == DATE:
        return date_text(value, long)
    return number(value) if unit is None else f"{number(value)} {unit}"
