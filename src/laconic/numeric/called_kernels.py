"""Which other kernels a compiled kernel calls. Their code becomes a part of its machine code."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any


def digest_of_called(function: Callable[..., Any]) -> str:
    """Return a digest of the other modules whose kernels a function calls, at any depth.

    It is empty if all of them are in the function's own module.
    """
    files = {called.__code__.co_filename for called in _called(function, set())}
    others = sorted(files - {function.__code__.co_filename})
    digests = [hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in others]
    return " ".join(digests)


def _called(function: Any, seen: set[Any]) -> Iterator[Any]:
    """Yield the functions of all kernels that a function calls, at any depth."""
    for value in _named(function):
        kernel = getattr(value, "py_func", None)
        if kernel is not None and kernel not in seen:
            seen.add(kernel)
            yield kernel
            yield from _called(kernel, seen)


def _named(function: Any) -> Iterator[Any]:
    """Yield what the code of a function names outside of itself, also in modules that it names."""
    names = function.__code__.co_names
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    for value in (*cells, *(function.__globals__.get(name) for name in names)):
        yield value
        if isinstance(value, ModuleType):
            yield from (vars(value).get(name) for name in names)
