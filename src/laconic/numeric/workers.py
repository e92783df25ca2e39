"""Worker threads for many small pieces of work.

A piece may take a tenth of a millisecond. So a job is given to all workers at once, and each takes
piece after piece until none is left. The thread that asks works too, whenever the result that it
needs is not there yet. So it hardly ever waits for a worker to wake up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar
from weakref import WeakSet

T = TypeVar("T")

_here = threading.local()


class _Result(NamedTuple):
    """The result of a piece, or the error that it raised."""

    value: Any
    error: BaseException | None = None


class _Shared:
    """A function and the pieces of work that it does, each on the first thread that is free."""

    def __init__(self, function: Callable[[Any], Any], items: Sequence[Any]) -> None:
        self._function, self._items = function, items
        self._results: list[_Result | None] = [None] * len(items)
        self._numbers = count()  # threads take numbers from it one at a time
        self._awaited = -1  # the piece that the thread that asks waits for
        self._done: SimpleQueue[None] = SimpleQueue()
        self._stopped = False

    def step(self) -> bool:
        """Do the next piece. Return False if there was none."""
        at = next(self._numbers)
        if self._stopped or at >= len(self._items):
            return False
        try:
            self._results[at] = _Result(self._function(self._items[at]))
        except BaseException as error:
            self._results[at] = _Result(None, error)
            if not isinstance(error, Exception):
                raise  # an interrupt of the thread that asks must not wait for its turn
        finally:
            if self._awaited == at:
                self._done.put(None)
        return True

    def work(self) -> None:
        """Do pieces of the work until none is left."""
        while self.step():
            pass

    def results(self) -> Iterator[Any]:
        """Yield the results in order. Do pieces of the work while the next one is not there."""
        try:
            for at in range(len(self._items)):
                while (result := self._results[at]) is None:
                    if not as_worker(self.step):
                        self._wait(at)
                if result.error is not None:
                    raise result.error
                self._results[at] = _Result(None)  # it may be large
                yield result.value
        finally:
            self.stop()

    def _wait(self, first: int) -> None:
        """Wait for the last piece from ``first`` on that is not done. None is left to begin.

        To wake up for each of them would take the interpreter's lock from those who work.
        """
        for at in range(len(self._results) - 1, first - 1, -1):
            if self._results[at] is None:
                self._awaited = at
                if self._results[at] is None:  # else its thread may not know that it is awaited
                    self._done.get()
                return

    def stop(self) -> None:
        """Leave out the pieces that nobody has begun."""
        self._stopped = True


def is_worker() -> bool:
    """Return whether this thread is at a piece of work."""
    return getattr(_here, "busy", False)


def as_worker(step: Callable[[], T]) -> T:
    """Do some work. Meanwhile `is_worker` is true on this thread."""
    before, _here.busy = is_worker(), True
    try:
        return step()
    finally:
        _here.busy = before


def forget() -> None:
    """Let this thread be no worker, because it is the only one of a forked child."""
    _here.busy = False


class Workers:
    """Threads that wait for jobs.

    Parameters
    ----------
    n : int
        Number of threads, the one that asks not counted.
    """

    def __init__(self, n: int) -> None:
        self._jobs: SimpleQueue[_Shared | None] = SimpleQueue()
        self._given: WeakSet[_Shared] = WeakSet()
        self._threads = [
            threading.Thread(target=_work, args=(self._jobs,), name=f"laconic_{i}", daemon=True)
            for i in range(n)
        ]
        for thread in self._threads:
            thread.start()

    def map(
        self, function: Callable[[Any], Any], items: Sequence[Any], helpers: int
    ) -> Iterator[Any]:
        """Start to apply the function to every item. The results come in the order of the items.

        At most so many ``helpers`` work, besides the thread that asks.
        """
        job = _Shared(function, items)
        self._given.add(job)
        for _ in self._threads[: min(helpers, len(items) - 1)]:
            self._jobs.put(job)
        return job.results()

    def end(self) -> None:
        """End all threads. Pieces that are begun are done, others are left out."""
        for job in self._given:
            job.stop()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()


def _work(jobs: SimpleQueue[_Shared | None]) -> None:
    """Do jobs until None comes."""
    while (job := jobs.get()) is not None:
        with suppress(BaseException):  # the thread that asks gets it
            as_worker(job.work)
        del job  # its results may be large
