"""Worker threads that never change a result.

Work is cut into fixed pieces (by shape alone), each piece is computed by one thread with one BLAS
thread, and the pieces are put together in a fixed order. How many threads run is then a matter of
speed only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import joblib
from threadpoolctl import threadpool_limits

# Tasks that `Threads.map` makes per thread: enough to even out uneven items.
TASKS_PER_THREAD = 8

T = TypeVar("T")
S = TypeVar("S")


_worker = threading.local()


class _SingleThreadedBlas:
    """Holds BLAS at one thread while any fit of the process runs; the last to leave restores it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._limits = threadpool_limits(1, user_api="blas")
            self._users += 1

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limits.restore_original_limits()


_single_threaded_blas = _SingleThreadedBlas()


class Threads:
    """A context in which BLAS runs on one thread and `map` runs on ``n_jobs``.

    Parameters
    ----------
    n_jobs : int or None
        Number of worker threads; ``None`` and ``-1`` take every core joblib grants here (one inside
        a joblib worker). The number never changes a result.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = joblib.effective_n_jobs(-1 if n_jobs is None else n_jobs)
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Threads:
        _single_threaded_blas.__enter__()
        if self.n_jobs > 1:
            self._pool = ThreadPoolExecutor(self.n_jobs, thread_name_prefix="laconic")
        return self

    def __exit__(self, *exc: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        _single_threaded_blas.__exit__()

    def map(self, function: Callable[[T], S], items: Iterable[T]) -> Iterator[S]:
        """Apply ``function`` to each item; answers come in the order of the items."""
        items = list(items)
        # A worker that waited for other workers could wait for ever.
        if self._pool is None or len(items) < 2 or getattr(_worker, "busy", False):
            return map(function, items)
        # Handing an item to a thread costs some 10 µs: many small items go in runs.
        run = max(1, len(items) // (TASKS_PER_THREAD * self.n_jobs))
        runs = [items[at : at + run] for at in range(0, len(items), run)]

        def work(part: list[T]) -> list[S]:
            _worker.busy = True
            try:
                return [function(item) for item in part]
            finally:
                _worker.busy = False

        answers = self._pool.map(work, runs)
        return (answer for part in answers for answer in part)


def row_blocks(n_rows: int, block: int) -> list[slice]:
    """Cut ``n_rows`` into consecutive slices of ``block`` rows (the last may be shorter)."""
    return [slice(start, min(start + block, n_rows)) for start in range(0, n_rows, block)]
