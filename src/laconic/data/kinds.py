"""Find what the columns of a data frame hold: categories, dates, durations or numbers.

A frame may come in parts. Then each part states facts about its columns (`part_facts`), and these
are merged (`kinds_of`). A frame in one memory is a single part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from laconic.data.cells import Cells, column_names, is_frame, missing_columns, odd_columns
from laconic.data.dates import as_days, reaches, read_dates, unit_of_reaches, unit_since_first
from laconic.data.frames import Categories, Units, all_numbers, different_values, holds_times


class ColumnFacts(NamedTuple):
    """What a part of a frame says of a column that is not plain numbers."""

    name: Any
    kind: str
    """``"M"`` for dates, ``"m"`` for durations, ``"O"`` for objects, ``"labels"`` for a column that
    is declared as categorical, and other letters for numbers."""
    known: list[Any]
    """The different values of objects, or the declared categories."""
    counted: list[Any]
    """The different values of objects in rows that count."""
    first: float = np.nan
    """The first date, in days since 1970."""
    reach: np.ndarray = np.zeros(0)
    """For durations, the weights that `laconic.data.dates.reaches` returns."""
    zone: str | None = None
    """The time zone of dates, empty if they have none. None if there are no dates."""


_NUMBERS = set("biuf")
_PLAIN = ColumnFacts(None, "f", [], [])

Facts = Mapping[int, ColumnFacts]
"""Facts about the columns that are not plain numbers, by position."""


def frame_facts(X: Any, weight: np.ndarray | None = None) -> dict[int, ColumnFacts]:
    """Return what a frame, or a part of it, says of its columns. Rows count by their ``weight``."""
    counted = ... if weight is None else weight > 0
    return {at: _facts(cells, counted, weight) for at, cells in odd_columns(X)}


def facts_of(X: Any, weight: np.ndarray | None = None) -> dict[int, ColumnFacts]:
    """Return what rows of any kind say of their columns: a frame, or an array of times."""
    if is_frame(X):
        return frame_facts(X, weight)
    if not holds_times(X):
        return {}
    counted = ... if weight is None else weight > 0
    return {at: _facts(Cells(f"x{at}", X[:, at]), counted, weight) for at in range(X.shape[1])}


def part_facts(X: Any, weight: np.ndarray) -> dict[int, ColumnFacts]:
    """Return what a part says of its columns, and which plain numbers of a frame are all missing.

    A column that is text in other parts may have no values in this one. Then it looks like numbers.
    """
    found = facts_of(X, weight)
    if not is_frame(X):
        return found
    names = column_names(X)
    for at in missing_columns(X):
        found.setdefault(at, ColumnFacts(names[at], "O", [], []))
    return found


def _facts(cells: Cells, counted: Any, weight: np.ndarray | None) -> ColumnFacts:
    name, kind = cells.name, cells.kind
    if kind == "f" and np.isnan(cells.values).all():  # `_kind` lets this fit any kind
        return ColumnFacts(name, "O", [], [])
    if kind == "M":
        days = as_days(cells.values[counted])
        first = float(np.min(days[~np.isnan(days)], initial=np.inf))
        zone = None if np.isnat(cells.values).all() else cells.zone
        return ColumnFacts(name, kind, [], [], first if np.isfinite(first) else np.nan, zone=zone)
    if kind == "m":
        return ColumnFacts(name, kind, [], [], reach=reaches(cells.values, weight))
    if cells.labels is not None:
        return ColumnFacts(name, "labels", list(cells.labels), [])
    if kind == "O":
        known = different_values(cells)
        some = known if weight is None else different_values(Cells(name, cells.values[counted]))
        return ColumnFacts(name, kind, known, some)
    return ColumnFacts(name, kind, [], [])


def frame_kinds(X: Any, weight: np.ndarray | None = None) -> tuple[Categories, Units]:
    """Find the columns of categories, and those of dates or durations, by position.

    A text column of dates in ISO 8601 counts as dates unless it is declared as categorical. Units
    depend on the rows by their ``weight``.
    """
    return kinds_of([frame_facts(X, weight)])


def kinds_of(parts: Sequence[Facts], names: Sequence[str] = ()) -> tuple[Categories, Units]:
    """Return the columns of categories, and the units of dates and durations, of all parts.

    The order of the parts does not matter, except for the order of declared categories. ``names``
    are what messages call the parts.
    """
    categories: Categories = {}
    units: Units = {}
    for at in sorted({at for part in parts for at in part}):
        column = [part.get(at, _PLAIN) for part in parts]
        kind = _kind(column, next(part[at].name for part in parts if at in part), names)
        if kind == "M":
            _check_zones(column)
            first = np.array([facts.first for facts in column if facts.kind == "M"])
            units[at] = unit_since_first(first)
        elif kind == "m":
            units[at] = unit_of_reaches(np.sum([f.reach for f in column if f.kind == "m"], axis=0))
        elif kind == "labels":
            categories[at] = dict(enumerate(_labels(column)))
        elif kind == "O":
            known = _once(value for facts in column for value in facts.known)
            if read_dates([str(value) for value in known]) is not None:
                some = [str(v) for v in _once(v for facts in column for v in facts.counted)]
                days = read_dates(some)
                units[at] = unit_since_first(np.empty(0) if days is None else days)
            elif not all_numbers(known):
                categories[at] = dict(enumerate(sorted(known, key=str)))
    return categories, units


def _kind(column: Sequence[ColumnFacts], name: Any, parts: Sequence[str]) -> str:
    """Return the kind of a column. Parts in which all values are missing fit any kind."""
    kinds = {facts.kind for facts in column if facts.kind != "O" or facts.known} or {"O"}
    if kinds <= {"O", "labels"}:
        return "labels" if kinds == {"labels"} else "O"
    if "O" in kinds and all(all_numbers(facts.known) for facts in column if facts.kind == "O"):
        kinds = kinds - {"O"} | {"f"}  # objects that are numbers
    if len(kinds) > 1 and not kinds <= _NUMBERS:
        words = [_IN_WORDS.get(facts.kind, "numbers") for facts in column]
        if len(parts) > 1:
            told = {word: part for word, part in zip(words[::-1], parts[::-1], strict=True)}
            shown = " and ".join(f"{word} in {told[word]}" for word in sorted(told))
        else:
            shown = " and ".join(sorted(set(words))) + " in different parts of the rows"
        raise ValueError(f"column {name!r} of X holds {shown}; give it one type")
    return kinds.pop()


def _check_zones(column: Sequence[ColumnFacts]) -> None:
    """Refuse dates of several time zones. Their clocks cannot be compared."""
    known = {facts.zone: facts.name for facts in column if facts.zone is not None}
    if len(known) > 1:
        shown = " and ".join(sorted(zone or "no time zone" for zone in known))
        raise ValueError(
            f"column {known.popitem()[1]!r} of X has {shown} in different parts of the rows; a "
            "model reads the clock of the zone, so convert all parts to one zone"
        )


_IN_WORDS = {"M": "dates", "m": "durations", "O": "text", "labels": "categories"}


def _labels(column: Sequence[ColumnFacts]) -> list[Any]:
    """Return the declared categories, sorted as text if the parts declare different ones."""
    first = column[0].known
    if all(facts.known == first for facts in column):
        return first
    return sorted(_once(label for facts in column for label in facts.known), key=str)


def _once(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))
