"""Worker threads that never change a result.

Work is cut into fixed pieces, which depend only on shapes. Each piece is computed by one thread
with one BLAS thread. The pieces are combined in a fixed order. So the number of threads changes
only the speed.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import joblib
import threadpoolctl
from threadpoolctl import ThreadpoolController

from laconic.numeric import workers
from laconic.numeric.workers import Workers

# Number of tasks that `Threads.map` makes per thread, enough to balance uneven items.
TASKS_PER_THREAD = 8

T = TypeVar("T")
S = TypeVar("S")


class _SingleThreadedBlas:
    """Limits BLAS to one thread while any fit of the process runs.

    The last fit to end restores the number. A fork waits until no thread is changing the number of
    BLAS threads. The child starts without users, and with the number of BLAS threads before any
    fit.
    """

    def __init__(self) -> None:
        # The lock is reentrant, because a signal handler may fork while its own thread holds it.
        self._lock = threading.RLock()
        self._users = 0
        self._limits: Any = None
        self._blas: Any = None  # the BLAS libraries of the process
        self._n_modules = 0  # loaded modules when they were found

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                # A search of all loaded libraries takes longer than some fits. Libraries are
                # loaded by modules, so a search finds what the last one found until one is loaded.
                n_modules = len(sys.modules)
                if self._n_modules != n_modules:
                    self._blas = ThreadpoolController().select(user_api="blas")
                    self._n_modules = n_modules
                _obey_this_thread()
                self._limits = self._blas.limit(limits=1)
            self._users += 1

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._restore()

    def _restore(self) -> None:
        limits, self._limits = self._limits, None
        if limits is not None:
            _obey_this_thread()
            limits.restore_original_limits()
            _obey_this_thread()

    def before_fork(self) -> None:
        """Keep other threads out."""
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        """Let other threads in again."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Start again in the child, with no users.

        This cannot wait until the child calls Laconic, because the child may use only BLAS. Setting
        the number of threads is safe this early. OpenBLAS ends its threads before a fork, and
        starts new ones when their number is set. The lock that it takes for this is free. Only a
        thread that sets the number, or shares a product among threads, takes that lock. The former
        are kept out during the fork. There were no products to share, because the number was one.
        """
        self._lock = threading.RLock()
        self._users = 0
        self._restore()


def _obey_this_thread() -> None:
    """Let this thread, and any later one, set the number of OpenBLAS threads.

    Since release 3.8, threadpoolctl obeys the first thread that sets the number. It silently
    ignores all other threads while that one lives. Here the number belongs to the process: fits of
    several threads share it, and the last fit to end restores it.
    """
    openblas: Any = getattr(threadpoolctl, "OpenBLASController", None)
    if hasattr(openblas, "clear_controlling_thread"):
        openblas.clear_controlling_thread(force=True)


_single_threaded_blas = _SingleThreadedBlas()


def _allowed(n_jobs: int) -> int:
    """Return how many threads a fit may use on this machine.

    Inside joblib's Dask backend, joblib counts the threads of the whole cluster. A task of Dask has
    one thread, because other tasks use the others.
    """
    if n_jobs < 0 and _in_dask_task():
        return 1
    allowed = int(joblib.effective_n_jobs(n_jobs))
    return min(allowed, n_jobs if n_jobs > 0 else joblib.cpu_count())


def _in_dask_task() -> bool:
    worker = sys.modules.get("distributed.worker")
    return worker is not None and hasattr(worker.thread_state, "execution_state")


class Threads:
    """A context in which BLAS runs on one thread and `map` runs on ``n_jobs``.

    A child that is forked inside the context is outside of it, until it calls `map` itself.

    Parameters
    ----------
    n_jobs : int or None
        Number of worker threads. ``None`` and ``-1`` use every core that joblib allows (one inside
        a joblib worker or a Dask task). The number never changes a result.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = _allowed(-1 if n_jobs is None else n_jobs)
        self._pool: Workers | None = None
        self._process: object = None  # the process that entered the context

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a copy that has entered no context, for example in another process."""
        return Threads, (self.n_jobs,)

    def __enter__(self) -> Threads:
        _single_threaded_blas.__enter__()
        self._process = _process
        if self.n_jobs > 1:
            self._pool = Workers(self.n_jobs - 1)
        return self

    def __exit__(self, *exc: object) -> None:
        pool, self._pool = self._pool, None
        entered_by, self._process = self._process, None
        if entered_by is not _process:
            return  # the parent process entered, and its threads do not exist here
        try:
            if pool is not None:
                pool.end()
        finally:
            _single_threaded_blas.__exit__()

    def map(
        self, function: Callable[[T], S], items: Iterable[T], most: int | None = None
    ) -> Iterator[S]:
        """Apply ``function`` to each item. The results are in the order of the items.

        ``most`` is the largest number of threads for which the work is long enough.
        """
        items, n = list(items), self.n_jobs if most is None else min(most, self.n_jobs)
        if self._process not in (None, _process):
            self.__enter__()
        # A worker that waits for other workers could wait forever.
        if self._pool is None or n < 2 or len(items) < 2 or workers.is_worker():
            return map(function, items)
        # Taking an item costs some microseconds, so many small items go in runs.
        run = max(1, len(items) // (TASKS_PER_THREAD * n))
        if run == 1:
            return self._pool.map(function, items, n - 1)
        runs = [items[at : at + run] for at in range(0, len(items), run)]
        answers = self._pool.map(lambda part: [function(item) for item in part], runs, n - 1)
        return (answer for part in answers for answer in part)


def row_blocks(n_rows: int, block: int) -> list[slice]:
    """Cut ``n_rows`` into consecutive slices of ``block`` rows (the last may be shorter)."""
    return [slice(start, min(start + block, n_rows)) for start in range(0, n_rows, block)]


# Identifies this process. A forked child creates another object.
_process = object()


def _forget_the_parent() -> None:
    """Reset everything in a forked child that needs the threads of its parent."""
    global _process
    _process = object()
    workers.forget()
    _single_threaded_blas.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_single_threaded_blas.before_fork,
        after_in_parent=_single_threaded_blas.after_fork_in_parent,
        after_in_child=_forget_the_parent,
    )
