"""Compile kernels with Numba, without the interpreter's lock, once per machine.

Every kernel of the package is decorated with `compiled`. Numba keeps compiled kernels in a cache on
disk: next to the module, in the user's cache folder, or in ``NUMBA_CACHE_DIR``. The cache only
saves time. If it cannot be written or read, each process compiles its kernels again.

The first fit on a machine waits for the compiler, so kernels are written to compile quickly. They
are few and short. They loop over numbers instead of using slices and whole-array expressions. There
is one kernel for each case rather than one for all. NumPy, BLAS and LAPACK do whatever they do as
fast. ``benchmarks/cold_start.py`` measures the wait.

Few kernels call others. Numba compiles a kernel anew when its own module changes, and here also
when the module of a kernel that it calls changes.

Importing this module does not import Numba; decorating a function does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from laconic.numeric.called_kernels import digest_of_called

# All options but the first save compile time. Nothing calls a kernel by its address. Division by
# zero gives infinity, as in NumPy, because an error would need checks. Kernels create no arrays but
# get all that they need as arguments, so that no references need counting.
OPTIONS = {"nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy", "_nrt": False}


def compiled(
    function: Callable[..., Any] | None = None, *, signature: Any = None, **options: Any
) -> Any:
    """Compile a function of numbers and arrays to run without the interpreter's lock.

    Parameters
    ----------
    function : callable
        The function.
    signature : Numba signature, optional
        Compile now, for these types only. Without it, the function is compiled for the types of
        each call.
    **options
        Other options of `numba.njit`, such as ``fastmath``.
    """
    if function is None:
        return partial(compiled, signature=signature, **options)
    from numba import config, njit

    dispatcher = njit(**{**OPTIONS, **options})(function)
    if config.DISABLE_JIT:  # njit then returned the function itself
        return dispatcher
    with suppress(OSError, RuntimeError):  # Numba finds no folder that it can write to
        dispatcher.enable_caching()
        dispatcher._cache = _Cache(dispatcher._cache, digest_of_called(function))
    if signature is not None:
        dispatcher.compile(signature)
        dispatcher.disable_compile()
    return dispatcher


class _Cache:
    """Numba's cache of one kernel. After an error of the cache, the kernel is compiled again.

    Numba checks the folder when a kernel is defined, and writes to it when the kernel is compiled.
    In between, the disk may have become full, or the folder may have been deleted.
    """

    def __init__(self, cache: Any, called: str) -> None:
        self._cache = cache
        if called:  # what was compiled with other code of the called kernels is not read
            file = cache._cache_file
            file._source_stamp = file._source_stamp, called

    @property
    def cache_path(self) -> str:
        """Folder of the cache."""
        return self._cache.cache_path

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the compiled kernel, or None if the cache does not have it."""
        try:
            return self._cache.load_overload(signature, target)
        except OSError:
            return None
        except Exception:  # unpickling a damaged file may raise any error
            self._clear()
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Store a compiled kernel."""
        with suppress(OSError):
            self._cache.save_overload(signature, result)

    def flush(self) -> None:
        """Delete the compiled kernels of this function."""
        with suppress(OSError):
            self._cache.flush()

    def _clear(self) -> None:
        """Delete a damaged cache, or stop using it if that fails."""
        try:
            self._cache.flush()
        except OSError:
            self._cache.disable()
