"""Rules: conjunctions of a few conditions on columns, in words and as filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from laconic.data.dates import DATE, DURATIONS, STEPS, TICKS, date_text
from laconic.report.columns import TableColumn

# Dates are days since 1970, so they are rounded by less than this (in days).
DAYS_ROUNDED = 1e-11


@dataclass(frozen=True)
class RuleCondition:
    """One condition on one column: a category, an interval of numbers, or a missing value."""

    column: TableColumn
    low: float | None = None
    """The number must be above it."""
    high: float | None = None
    """The number must not be above it."""
    category: int | None = None
    """Code of the category."""

    @property
    def missing(self) -> bool:
        """Whether the condition is that the value is missing."""
        return self.low is None and self.high is None and self.category is None

    @property
    def known(self) -> bool:
        """Whether the condition is that a number is not missing."""
        return self.low == -np.inf and self.high is None

    @property
    def only(self) -> float | None:
        """The number, if the interval holds just one of the column's numbers."""
        if self.missing or self.known or self.category is not None:
            return None
        inside = np.unique(self.column.values[self.holds()])
        return float(inside[0]) if len(inside) == 1 else None

    def holds(self) -> np.ndarray:
        """Return which rows of the table meet the condition."""
        values = self.column.values
        if self.category is not None:
            return values == self.category
        if self.missing:
            return values < 0 if self.column.names is not None else np.isnan(values)
        met = ~np.isnan(values)
        if self.low is not None:
            met &= values > self.low
        if self.high is not None:
            met &= values <= self.high
        return met

    def __str__(self) -> str:
        name = self.column.name
        if self.missing:
            return f"{name} is missing"
        if self.known:
            return f"{name} is known"
        if self.category is not None:
            return f"{name} is {(self.column.names or [])[self.category]}"
        if (only := self.only) is not None:
            return f"{name} is {self._spelled(only)}"
        if self.low is None:
            return f"{name} ≤ {self._spelled(self.high)}"
        if self.high is None:
            return f"{name} > {self._spelled(self.low)}"
        return f"{self._spelled(self.low)} < {name} ≤ {self._spelled(self.high)}"

    def pandas(self) -> str:
        """Return the condition on a pandas frame ``df``."""
        cell = f"df[{self.column.name if self.column.key is None else self.column.key!r}]"
        if self.missing:
            return f"{cell}.isna()"
        unit = self.column.unit
        if not self.column.as_written and unit == DATE:
            cell = f"pd.to_datetime({cell}, format='ISO8601', errors='coerce')"
        elif not self.column.as_written:
            cell = f"{cell}.astype(str)" if self._text else f"pd.to_numeric({cell})"
        if self.known:
            return f"{cell}.notna()"
        length = DURATIONS.get(unit or "")
        tests = [
            (sign, repr(value) if length is None else _duration(float(value) * length))
            for sign, value in self._tests("==")
        ]
        return " & ".join(f"({cell} {sign} {value})" for sign, value in tests)

    def sql(self) -> str:
        """Return the condition in standard SQL."""
        cell = '"' + self.column.name.replace('"', '""') + '"'
        if self.missing:
            return f"{cell} IS NULL"
        if self.known:
            return f"{cell} IS NOT NULL"
        if not self.column.as_written:
            cell = f"CAST({cell} AS {'TEXT' if self._text else 'REAL'})"
        return " AND ".join(f"{cell} {sign} {_literal(v)}" for sign, v in self._tests("="))

    @property
    def _text(self) -> bool:
        return self.column.names is not None

    def _tests(self, equal: str) -> list[tuple[str, float | int | str]]:
        """Return signs and values, as a filter compares them."""
        if self.category is not None:
            return [(equal, (self.column.names or [])[self.category])]
        if (only := self.only) is not None:
            return [(equal, self._value(only))]
        ends = [(">", self.low), ("<=", self.high)]
        return [(sign, self._value(end)) for sign, end in ends if end is not None]

    def _value(self, number: float) -> float | int | str:
        """Return a number as a filter writes it."""
        if self.column.unit == DATE:
            return date_text(number, number == np.floor(number), step=_step(number))
        return int(number) if number == np.floor(number) and abs(number) < 2**53 else float(number)

    def _spelled(self, number: float | None) -> str:
        """Return a number as a sentence writes it."""
        value = self._value(float(number or 0.0))
        unit = self.column.unit
        return str(value) if unit in (None, DATE) else f"{value} {unit}"


@dataclass(frozen=True, repr=False)
class ErrorRule:
    """Rows that meet all of a few conditions."""

    conditions: Sequence[RuleCondition]

    def holds(self) -> np.ndarray:
        """Return which rows of the table meet all conditions."""
        return np.logical_and.reduce([condition.holds() for condition in self.conditions])

    def __repr__(self) -> str:
        return f"ErrorRule({self})"

    def __str__(self) -> str:
        return " and ".join(str(condition) for condition in self.conditions)

    @property
    def pandas(self) -> str:
        """The rows of a pandas frame ``df`` that the rule holds for."""
        return "df[" + " & ".join(condition.pandas() for condition in self.conditions) + "]"

    @property
    def sql(self) -> str:
        """What to write after WHERE to select these rows in SQL."""
        return " AND ".join(condition.sql() for condition in self.conditions)


def _duration(seconds: float) -> str:
    """Return seconds as pandas writes them, without what multiplying rounded."""
    return f"pd.Timedelta({round(seconds, 6):.12g}, 'seconds')"


def _step(days: float) -> str:
    """Return the coarsest unit that writes a time exactly, up to the rounding of days."""
    for step in STEPS[:-1]:
        ticks = (days - np.floor(days)) * TICKS[step]
        if abs(ticks - round(ticks)) <= DAYS_ROUNDED * TICKS[step]:
            return step
    return STEPS[-1]


def _literal(value: float | int | str) -> str:
    """Return a value as SQL writes it."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)
