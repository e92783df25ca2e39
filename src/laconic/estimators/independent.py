"""Independent fits, such as those of folds: one after the other, or at the same time.

They run at the same time through joblib, if its context says so: inside
``joblib.parallel_config(backend="dask")`` on the workers of a cluster. The answers have the same
bits either way.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from typing import Any, NamedTuple, TypeVar

import joblib
from joblib.parallel import get_active_backend

from laconic.data.doubts import told_already

T = TypeVar("T")
Fitted = TypeVar("Fitted")

Work = Callable[..., T]
"""A function ``work(n_jobs, *task, *shared)``. Its models use ``n_jobs`` threads."""


def at_the_same_time(n_jobs: int | None, n_tasks: int) -> bool:
    """Return whether so many tasks run at the same time. ``None`` means what joblib's context says.

    Examples
    --------
    >>> at_the_same_time(None, 5), at_the_same_time(2, 5), at_the_same_time(2, 1)
    (False, True, False)
    """
    return n_tasks > 1 and int(joblib.effective_n_jobs(n_jobs)) > 1


def independent(
    work: Work[T],
    tasks: Sequence[tuple[Any, ...]],
    shared: Sequence[Any],
    n_jobs: int | None = None,
    threads: int | None = None,
) -> Generator[T, None, None]:
    """Yield what ``work`` returns for each task, in order. Warnings of parts of rows are left out.

    If tasks run at the same time, as ``n_jobs`` or joblib's context says, each has one thread.
    Otherwise each has ``threads``. Large arrays in ``shared`` are sent to workers only once.
    """
    if not at_the_same_time(n_jobs, len(tasks)):
        for task in tasks:
            with quiet_fits():
                answer = work(threads, *task, *shared)
            yield answer
        return
    generates = get_active_backend()[0].supports_return_generator
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator" if generates else "list")
    job = joblib.delayed(_job)
    with quiet_fits():
        for done in ("which", "have been successfully executed"):  # that were not needed
            warnings.filterwarnings("ignore", message=rf"\d+ tasks {done}")
        jobs = parallel(job(work, os.getpid(), *task, *shared) for task in tasks)
        with closing(jobs) if generates else nullcontext():
            for done in jobs:
                if done.interrupted:
                    raise KeyboardInterrupt
                yield done.answer


HARMLESS = (
    "fit was interrupted",
    "no atom is worth its price",
    "no atom helps",
    "the path has no model of",  # fewer rows may not reach all sizes that are to be tuned
)
"""Warnings that do not matter for fits of parts of the rows."""


class _Done(NamedTuple):
    answer: Any
    interrupted: bool = False


def _job(work: Work[T], caller: int, *given: Any) -> _Done:
    """Run a task. Its Ctrl-C is an answer, because it would end a worker, and the fit would wait.

    Filters of warnings belong to a process. So threads of the caller leave them to the caller.
    """
    with nullcontext() if os.getpid() == caller else quiet_fits():
        try:
            return _Done(work(1, *given))
        except KeyboardInterrupt:
            return _Done(None, interrupted=True)


@contextmanager
def quiet_fits() -> Iterator[None]:
    """Suppress warnings that do not matter for fits of parts of the rows."""
    with told_already(), warnings.catch_warnings():
        for message in HARMLESS:
            warnings.filterwarnings("ignore", message=message)
        yield


def whole(model: Fitted) -> Fitted:
    """Return a fitted model. If its fit was interrupted, raise KeyboardInterrupt.

    Otherwise a part of a path would count as a whole path.
    """
    if model.status_ == "interrupted":  # type: ignore[attr-defined]
        raise KeyboardInterrupt
    return model
