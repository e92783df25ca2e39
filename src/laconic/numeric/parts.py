"""Something in parts, wherever the parts are: in this process, in files, or on a cluster.

Work on parts is written once, as functions of one part. `Parts` brings them to where the parts are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Protocol

from laconic.numeric.threads import Threads

Question = Callable[..., Any]
"""A function ``question(part, threads, *shared, *own)`` of one part."""

Step = Callable[[], object]
"""Called when a part has answered."""
Watch = Callable[[str, int], AbstractContextManager[Step]]
"""Shows how far the parts are. It is given the name of the question and the number of parts."""

_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watched(watch: Watch | None) -> Iterator[None]:
    """Show with ``watch`` how far parts are when they are asked inside this context."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


def steps(question: Question, n_parts: int) -> AbstractContextManager[Step]:
    """Give a function to be called for each part that has answered. One part is not shown."""
    watch = _watch.get()
    if watch is None or n_parts < 2:
        return nullcontext(_nothing)
    return watch(question.__name__.strip("_"), n_parts)


def _nothing() -> None:
    pass


class Parts(Protocol):
    """Parts that are asked questions, and that can be turned into other parts in place."""

    threads: Threads
    """Threads for the work that is done here."""
    lengths: list[int] | None
    """Number of rows of every part, if they are known."""

    @property
    def n_parts(self) -> int:
        """Number of parts."""

    def ask(
        self, question: Question, shared: Sequence[Any] = (), each: Sequence[Any] | None = None
    ) -> list[Any]:
        """Return the answers of all parts, in order.

        ``shared`` are arguments for all parts. ``each`` has one more argument for every part.
        """

    def become(
        self, make: Question, shared: Sequence[Any] = (), each: Sequence[Any] | None = None
    ) -> Parts:
        """Return what ``make`` makes of every part. It stays where the part is."""

    def seen_as(
        self, make: Question, shared: Sequence[Any] = (), each: Sequence[Any] | None = None
    ) -> Parts:
        """Return the same as `become`, but what is made need not be kept.

        It may be made again each time that it is asked.
        """

    def chosen(self, numbers: Sequence[int]) -> Parts:
        """Return only some of the parts."""


class Here:
    """Parts in this process, as a list.

    Parameters
    ----------
    items : sequence
        The parts.
    threads : Threads, optional
        Threads that the functions may use. The parts are taken one after the other.
    """

    def __init__(self, items: Sequence[Any], threads: Threads | None = None) -> None:
        self.items = list(items)
        self.threads = threads or Threads(1)
        self.lengths: list[int] | None = None

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.items)

    def ask(
        self, question: Question, shared: Sequence[Any] = (), each: Sequence[Any] | None = None
    ) -> list[Any]:
        """Return the answers of all parts."""
        return [
            question(item, self.threads, *shared, *own)
            for item, own in zip(self.items, one_by_one(each, self.n_parts), strict=True)
        ]

    def become(
        self, make: Question, shared: Sequence[Any] = (), each: Sequence[Any] | None = None
    ) -> Here:
        """Return what ``make`` makes of every part."""
        return Here(self.ask(make, shared, each), self.threads)

    seen_as = become

    def chosen(self, numbers: Sequence[int]) -> Here:
        """Return only some of the parts."""
        return Here([self.items[number] for number in numbers], self.threads)


def one_by_one(each: Sequence[Any] | None, n_parts: int) -> Sequence[tuple[Any, ...]]:
    """Return the own arguments of every part as tuples of at most one."""
    return [()] * n_parts if each is None else [(own,) for own in each]
