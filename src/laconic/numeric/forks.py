"""Forks while other threads import or compile: no child waits for a lock that nobody can release.

Of all threads, a forked child has only the one that forked. What another thread had locked stays
locked there, and what it had half done stays half done. A fit imports packages at first use and
compiles kernels. Both take up to seconds, and both hold locks: Python one for every module that is
being imported, Numba one for its compiler. So a fork waits until no other thread does either.

Importing this module sees to that. The locks of `laconic.numeric.threads` are looked after there.
"""

from __future__ import annotations

# What is to be done before a fork is done in the reverse order of registration. These two take
# locks then that imports and compilations need, so they must be registered before us.
import concurrent.futures.thread  # noqa: F401
import logging  # noqa: F401
import os
import sys
import threading
import time
from importlib import _bootstrap
from typing import Any

# What a fit may import as it goes.
PACKAGES = frozenset(
    ("joblib", "laconic", "llvmlite", "numba", "numpy", "rich", "scipy", "sklearn", "threadpoolctl")
)

# Seconds that a fork waits at most, and between two looks. Other packages may hold locks over a
# fork, too. Should one of them keep an import from ending, the fork must not hang.
PATIENCE, PAUSE = 300.0, 0.005

_fork = threading.local()


def _before() -> None:
    """Wait until no other thread imports or compiles; keep all from compiling until the fork.

    Nothing can keep threads from importing that is safe to hold here. But Python lets a thread run
    for some milliseconds before another gets its turn: enough to fork after a look that finds none.
    """
    _fork.lock = None
    pause, end = 0.0, time.monotonic() + PATIENCE
    while time.monotonic() < end:
        time.sleep(pause)  # even of nothing: it starts a new turn
        lock = _compiler_lock()
        if lock is None or lock.acquire(blocking=False):
            if not _others_import():
                _fork.lock = lock
                return
            if lock is not None:
                lock.release()  # who imports may have to compile before it is done
        pause = PAUSE


def _after() -> None:
    lock, _fork.lock = getattr(_fork, "lock", None), None
    if lock is not None:
        lock.release()


def _others_import() -> bool:
    """Whether another thread is importing a module of the packages."""
    locks = [
        (name, lock()) for name, lock in list(getattr(_bootstrap, "_module_locks", {}).items())
    ]
    if not locks:
        return False
    others = sys._current_frames().keys() - {threading.get_ident()}
    return any(
        lock is not None and lock.owner in others and name.partition(".")[0] in PACKAGES
        for name, lock in locks
    )


def _compiler_lock() -> Any:
    """Numba's lock, once Numba is there."""
    compiler = sys.modules.get("numba.core.compiler_lock")
    return getattr(getattr(compiler, "global_compiler_lock", None), "_lock", None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
