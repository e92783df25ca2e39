"""Find the available memory, and warn before something that will not fit in it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import suppress
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np

# The folder of Linux's control groups, and the files with the limit and the use of a group. The
# keys are the names in /proc/self/cgroup: empty in version 2, the controller in version 1.
GROUPS = {
    "": ("sys/fs/cgroup", "memory.max", "memory.current"),
    "memory": ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
}


def warn_if_too_large(n_bytes: float, what: str, instead: str) -> None:
    """Warn if something takes more memory than is available.

    Parameters
    ----------
    n_bytes : float
        Approximate memory that it takes.
    what : str
        Its name, as the subject of a sentence.
    instead : str
        What the user can do, as an imperative.
    """
    there = available_bytes()
    if there is not None and n_bytes > there:
        warnings.warn(
            f"{what} takes about {n_bytes / 1e9:.3g} GB, but only {there / 1e9:.3g} GB of memory "
            f"are available; {instead}",
            stacklevel=3,
        )


def available_bytes(root: Path = Path("/")) -> int | None:
    """Return the memory that a process can still get, or None if the system does not say.

    On Linux this is the memory that is free or can be freed, within the limit of the container. On
    other systems it is all memory of the machine.
    """
    known = [*_of_machine(root), *_of_groups(root)]
    return min(known, default=None)


def _of_machine(root: Path) -> Iterator[int]:
    with suppress(OSError, ValueError, IndexError):
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                yield 1024 * int(line.split()[1])
                return
    with suppress(OSError, ValueError, AttributeError):  # Windows has no sysconf
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
        if pages > 0 and size > 0:
            yield pages * size


def _of_groups(root: Path) -> Iterator[int]:
    """Yield what is left within the limits of the process's control group and its parents."""
    paths = {"": {"/"}, "memory": {"/"}}  # a container sees its own group as the outermost
    with suppress(OSError, ValueError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controller, path = line.split(":", 2)
            if controller in paths:
                paths[controller] |= {path, *map(str, Path(path).parents)}
    for controller, (base, limit, used) in GROUPS.items():
        for path in sorted(paths[controller]):
            yield from _of_group(root / base / path.lstrip("/"), limit, used)


def _of_group(group: Path, limit: str, used: str) -> Iterator[int]:
    """Yield what is left within the limit of a control group. Cached files count as free."""
    with suppress(OSError, ValueError):  # no such group, or "max", which is no limit
        left = int((group / limit).read_text()) - int((group / used).read_text())
        cached = 0
        with suppress(OSError):
            for line in (group / "memory.stat").read_text().splitlines():
                name, _, value = line.partition(" ")
                if name in ("inactive_file", "total_inactive_file"):
                    cached = max(cached, int(value))
        yield max(left + cached, 0)


def bytes_of_arrays(thing: Any) -> int:
    """Return the bytes of all arrays that an object holds, also inside other objects of Laconic.

    Arrays that share memory count once. A memory map counts nothing, because it can be read again.
    """
    seen: dict[int, int] = {}
    todo = [thing]
    known: set[int] = set()
    while todo:
        item = todo.pop()
        if id(item) in known:
            continue
        known.add(id(item))
        if isinstance(item, np.ndarray):
            base = item
            while isinstance(base.base, np.ndarray):
                base = base.base
            if not isinstance(base.base, mmap):
                seen[id(base)] = base.nbytes
        elif isinstance(item, dict):
            todo += item.values()
        elif isinstance(item, list | tuple):
            todo += item
        elif type(item).__module__.split(".")[0] in ("laconic", "scipy"):
            todo += vars(item).values() if hasattr(item, "__dict__") else ()
    return sum(seen.values())
