"""Arrays for numbers that nobody needs for long, kept by each thread and written again.

A new array of more than some kilobytes is memory that the system fetches page by page when it is
first written. If it gets the memory back at once, as from Dask's workers, this takes up to a third
of a pass over the rows.
"""

from __future__ import annotations

import threading
from math import prod
from typing import Any

import numpy as np

# Most bytes of an array that a thread keeps.
KEPT = 1 << 22


class _Rooms(threading.local):
    """The arrays of this thread, by name."""

    def __init__(self) -> None:
        self.held: dict[str, np.ndarray] = {}


_here = _Rooms()


def kept(name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return an array with any numbers, which is this thread's until it asks for the same name.

    Give it to nobody who keeps it. A large array is not kept.
    """
    n_bytes = prod(shape) * np.dtype(dtype).itemsize
    if n_bytes > KEPT:
        return np.empty(shape, dtype=dtype)
    held = _here.held.get(name)
    if held is None or len(held) < n_bytes:
        held = _here.held[name] = np.empty(n_bytes, dtype=np.uint8)
    return held[:n_bytes].view(dtype).reshape(shape)
