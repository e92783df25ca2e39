"""Say how the columns of two parts of the rows differ."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

SHOWN = 4
"""Most names that are told on each side of a difference."""


def difference(name: str, names: Sequence[Any], first: str, known: Sequence[Any]) -> str:
    """Return how the columns ``names`` of a part differ from those of the first one."""
    lacks = [column for column in known if column not in names]
    more = [column for column in names if column not in known]
    told = []
    if lacks:
        told.append(f"{name} lacks {_told(lacks)}, which {first} has")
    if more:
        told.append(f"{name} has {_told(more)}, which {first} lacks")
    if not told:
        pairs = zip(names, known, strict=False)
        at = next((n for n, (own, other) in enumerate(pairs) if own != other), len(known))
        told.append(
            f"{name} has the columns of {first} in another order: column {at} is "
            f"{_at(names, at)}, and not {_at(known, at)}"
        )
    return "; ".join(told) + "; give all parts the same columns in the same order"


def not_a_column(what: str, name: str, place: str, names: Sequence[str]) -> str:
    """Return that a name is no column, with the names that are most like it."""
    known = {own.lower(): own for own in map(str, names)}
    alike = [known[own] for own in get_close_matches(name.lower(), known, 3, 0.6)]
    hint = f"did you mean {' or '.join(map(repr, alike))}? " if alike else ""
    return f"{what}={name!r} is not a column of {place}; {hint}it has {_told(names, 6)}"


def _told(names: Sequence[Any], most: int = SHOWN) -> str:
    """Return the first names, and the last ones."""
    if len(names) <= most:
        return ", ".join(map(repr, names))
    first, last = names[: most // 2], names[-(most // 2) :]
    left_out = f"… ({len(names) - 2 * (most // 2)} more) …"
    return ", ".join([*map(repr, first), left_out, *map(repr, last)])


def _at(names: Sequence[Any], at: int) -> str:
    return repr(names[at]) if at < len(names) else "missing"
