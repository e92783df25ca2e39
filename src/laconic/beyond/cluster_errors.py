"""Errors of a Dask cluster, in words that say what to do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager

from distributed import Future
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from laconic.beyond.collections import GONE, not_computed


class Restarted(RuntimeError):
    """The scheduler forgot all tasks."""


@contextmanager
def clear_errors(futures: Sequence[Future] = ()) -> Iterator[None]:
    """Say what to do about errors of the cluster. Errors of the tasks stay as they are."""
    try:
        yield
    except KilledWorker as error:
        raise RuntimeError(
            f"the cluster gave up a task, because the workers that ran it died ({error}); they "
            "probably ran out of memory: use smaller partitions, or workers with more memory"
        ) from error
    except (CommClosedError, CancelledError, asyncio.CancelledError, OSError) as error:
        if any(future.status == "error" for future in futures):
            raise
        if "lost dependencies" in str(error) or "scheduler-restart" in str(error):
            raise Restarted(
                "the cluster was restarted, and what its workers held is gone; fit again: a fit "
                "with a checkpoint goes on where it was. While a fit runs, restart single workers "
                "with client.restart_workers(...)"
            ) from error
        raise ConnectionError(
            f"the connection to the Dask scheduler was lost ({type(error).__name__}); start the "
            "cluster again and fit again: a fit with a checkpoint goes on where it was"
        ) from error


@contextmanager
def named_errors(parts: Sequence[Future], names: Sequence[str]) -> Iterator[None]:
    """Say which of the user's own partitions cannot be computed."""
    try:
        yield
    except Restarted as error:
        if not names:
            raise
        raise RuntimeError(f"X, y or sample_weight cannot be computed: {GONE}") from error
    except Exception as error:
        known = zip(parts, names, strict=False)  # without names if we made the parts
        failed = [name for future, name in known if future.status == "error"]
        if not failed:
            raise
        raise not_computed(failed[0], error) from error
