"""A property that is computed once and kept, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class once(Generic[T]):
    """`functools.cached_property` as it is since Python 3.12.

    Before, it held one lock for all objects of a class. A child that is forked while another thread
    holds that lock would wait for it forever. Without the lock, two threads may both compute the
    value.

    Examples
    --------
    >>> class Circle:
    ...     @once
    ...     def area(self):
    ...         print("found")
    ...         return 3.14
    >>> circle = Circle()
    >>> circle.area, circle.area
    found
    (3.14, 3.14)
    """

    def __init__(self, find: Callable[[Any], T]) -> None:
        self.find = find
        self.__doc__ = find.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        if instance is None:
            return self  # type: ignore[return-value]
        value = self.find(instance)
        instance.__dict__[self.name] = value  # from now on, Python finds this value first
        return value
