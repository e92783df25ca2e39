"""Sums in a fixed tree over the parts of a whole, wherever the parts are.

Floating-point sums depend on the order. So the order is fixed: the first `FAN` parts are added in
order, then the next, and so on, and then these sums in the same way. Whoever adds up a group gets
the same bits. So neither the number of workers nor their order matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")

# Number of parts, or of sums of parts, that are added together.
FAN = 8


class OfRows(NamedTuple):
    """Arrays with an entry for each row, one for every part. They are joined and not added."""

    parts: tuple[np.ndarray, ...]

    def joined(self) -> np.ndarray:
        """Return one array for all rows."""
        return np.concatenate(self.parts)


def groups(items: Sequence[T]) -> list[Sequence[T]]:
    """Cut a list into the groups that are added together."""
    return [items[first : first + FAN] for first in range(0, len(items), FAN)]


def added(answers: Sequence[Any]) -> Any:
    """Return the sum of one group of answers, in order."""
    return reduce(_add, answers)


def tree_sum(answers: Iterable[Any]) -> Any:
    """Return the sum of the answers of all parts. If they come one by one, few of them are held."""
    levels: list[
        tuple[int, Any]
    ] = []  # number of items in the open group of a level, and their sum
    for answer in answers:
        _enter(levels, 0, answer)
    rest: list[Any] = []
    for n_items, group in levels:
        if n_items:
            rest = [added([group, *rest])]
    return rest[0]


def _enter(levels: list[tuple[int, Any]], level: int, item: Any) -> None:
    """Add an item to the open group of a level. A group that is full enters the next level."""
    if level == len(levels):
        levels.append((0, None))
    n_items, group = levels[level]
    group = item if n_items == 0 else _add(group, item)
    if n_items + 1 < FAN:
        levels[level] = n_items + 1, group
    else:
        levels[level] = 0, None
        _enter(levels, level + 1, group)


def size_of(answer: Any) -> int:
    """Return the bytes of the numbers in an answer."""
    if isinstance(answer, np.ndarray):
        return answer.nbytes
    if isinstance(answer, tuple | list):
        return sum(map(size_of, answer))
    return 0 if answer is None else 8


def _add(a: Any, b: Any) -> Any:
    """Add two answers of the same form: numbers, arrays, None, or tuples and lists of these."""
    if a is None or b is None:  # a part that has no answer leaves none for the whole
        return None
    if isinstance(a, OfRows):
        return OfRows(a.parts + b.parts)
    if isinstance(a, tuple | list):
        return type(a)(_add(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, np.ndarray) and a.dtype.kind == "f":
        return a.astype(np.float64, copy=False) + b
    return a + b
