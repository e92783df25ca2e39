"""Make forks safe while other threads import or compile.

A forked child has only one thread, the one that forked. Locks that another thread held stay locked
in the child, and half-finished work stays half-finished. The child could wait for such a lock
forever. A fit imports packages at first use and compiles kernels. Both can take seconds, and both
hold locks: Python has one for every module that is being imported, and Numba has one for its
compiler. So a fork waits until no other thread imports or compiles.

Importing this module is enough. The locks of `laconic.numeric.threads` are handled in that module.
"""

from __future__ import annotations

# Functions that run before a fork do so in the reverse order of registration. Those of these two
# modules take locks that imports and compilations need, so they must be registered before ours.
import concurrent.futures.thread  # noqa: F401
import logging  # noqa: F401
import os
import sys
import threading
import time
from importlib import _bootstrap
from typing import Any

# Packages that a fit may import while it runs.
PACKAGES = frozenset(
    ("joblib", "laconic", "llvmlite", "numba", "numpy", "rich", "scipy", "sklearn", "threadpoolctl")
)

# Most seconds that a fork waits, and seconds between two checks. Other packages may hold locks
# during a fork, too. If one of them keeps an import from ending, the fork must not hang.
PATIENCE, PAUSE = 300.0, 0.005

_fork = threading.local()


def _before() -> None:
    """Wait until no other thread imports or compiles, and stop new compilations until the fork.

    There is no lock that stops imports and is safe to hold here. But Python lets a thread run for
    some milliseconds before another one runs. That is enough to fork after a check that finds no
    imports.
    """
    _fork.lock = None
    pause, end = 0.0, time.monotonic() + PATIENCE
    while time.monotonic() < end:
        time.sleep(pause)  # even a sleep of 0 s starts a new time slice
        lock = _compiler_lock()
        if lock is None or lock.acquire(blocking=False):
            if not _others_import():
                _fork.lock = lock
                return
            if lock is not None:
                lock.release()  # the importing thread may have to compile before it can finish
        pause = PAUSE


def _after() -> None:
    lock, _fork.lock = getattr(_fork, "lock", None), None
    if lock is not None:
        lock.release()


def _others_import() -> bool:
    """Return whether another thread is importing a module of `PACKAGES`."""
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
    """Return the lock of Numba's compiler, or None if Numba is not imported."""
    compiler = sys.modules.get("numba.core.compiler_lock")
    return getattr(getattr(compiler, "global_compiler_lock", None), "_lock", None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
