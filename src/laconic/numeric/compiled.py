"""How kernels are compiled: by Numba, without the interpreter's lock, once per machine.

Every kernel of the package is decorated with `compiled`. What Numba compiles, it keeps in a cache
on disk: beside the module, in the user's cache folder, or in ``NUMBA_CACHE_DIR``. A cache is there
for speed only. Where none can be written or read, each process compiles its kernels anew.

The first fit on a machine waits for the compiler, and so kernels are written for it: few and short,
loops over numbers in place of slices and whole-array expressions, one for each case rather than one
for all, and none that calls another. What NumPy, BLAS or LAPACK do as fast is left to them.
``benchmarks/cold_start.py`` measures the wait.

Importing this module does not import Numba; decorating a function does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

# All but the first save time to compile. Nobody calls a kernel by its address. Division by zero
# gives infinity, as in NumPy, and not an error, which would take checks. Kernels make no arrays but
# are given those that they need, so that no references are counted.
OPTIONS = {"nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy", "_nrt": False}


def compiled(
    function: Callable[..., Any] | None = None, *, signature: Any = None, **options: Any
) -> Any:
    """Compile a function of numbers and arrays; it then runs without the interpreter's lock.

    Parameters
    ----------
    function : callable
    signature : Numba signature, optional
        Compile for these types now, and for no others. Without it, the function is compiled for the
        types of each call.
    **options
        Other options of `numba.njit`, such as ``fastmath``.
    """
    if function is None:
        return partial(compiled, signature=signature, **options)
    from numba import config, njit

    dispatcher = njit(**{**OPTIONS, **options})(function)
    if config.DISABLE_JIT:  # it is the function itself
        return dispatcher
    with suppress(OSError, RuntimeError):  # Numba finds no folder that it can write to
        dispatcher.enable_caching()
        dispatcher._cache = _Cache(dispatcher._cache)
    if signature is not None:
        dispatcher.compile(signature)
        dispatcher.disable_compile()
    return dispatcher


class _Cache:
    """Numba's cache of one kernel; an error of it means that the kernel is compiled anew.

    Numba tries the folder when a kernel is defined, and writes to it when the kernel is compiled.
    In between the disk may have filled up, or the folder may have gone.
    """

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    @property
    def cache_path(self) -> str:
        """Folder of the cache."""
        return self._cache.cache_path

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The compiled kernel, or None if the cache does not have it."""
        try:
            return self._cache.load_overload(signature, target)
        except OSError:
            return None
        except Exception:  # whatever unpickling a damaged file raises
            self._clear()
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a compiled kernel."""
        with suppress(OSError):
            self._cache.save_overload(signature, result)

    def flush(self) -> None:
        """Forget the compiled kernels of this function."""
        with suppress(OSError):
            self._cache.flush()

    def _clear(self) -> None:
        """Forget a damaged cache, or use it no more."""
        try:
            self._cache.flush()
        except OSError:
            self._cache.disable()
