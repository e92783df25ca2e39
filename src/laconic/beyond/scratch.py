"""Scratch files: numbers of rows on a disk, read through memory maps.

The files are in the folder that Python uses for temporary files. Set the environment variable
``TMPDIR`` to have them in another one. A folder that is kept in memory, as ``/tmp`` on some
machines, saves no memory. The files have no names, so the system removes them when the last array
of them is gone, also after an error or if the process is killed.
"""

from __future__ import annotations

import shutil
import tempfile
from mmap import mmap
from typing import Any

import numpy as np


def on_disk(X: Any) -> Any:
    """Return an array as a memory map of a scratch file.

    Memory maps stay where they are, and other things than arrays stay in memory.
    """
    if not isinstance(X, np.ndarray) or X.size == 0 or is_mapped(X):
        return X
    by_column = X.flags.f_contiguous and not X.flags.c_contiguous
    left = np.ascontiguousarray(X.T if by_column else X).reshape(-1).view(np.uint8).data
    with tempfile.TemporaryFile(prefix="laconic-", buffering=0) as file:
        try:
            while left:  # a system may write less than it is given
                left = left[file.write(left) :]
        except OSError as error:
            raise OSError(error.errno, _full(X.nbytes, error)) from error
        return np.memmap(file, X.dtype, "r", shape=X.shape, order="F" if by_column else "C")


def _full(size: int, error: OSError) -> str:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    return (
        f"a scratch file of {size / 1e6:.1f} MB cannot be written to {folder}, where "
        f"{free / 1e6:.1f} MB are free ({error.strerror}); set the environment variable TMPDIR to "
        'a folder with more room, or use pool="stumps", which needs no scratch files'
    )


def is_mapped(X: Any) -> bool:
    """Return whether an array is a memory map or a view of one."""
    while isinstance(X, np.ndarray):
        X = X.base
    return isinstance(X, mmap)
