"""Products of float32 tensors with all their digits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


class _ShortFloats:
    """Switches off what shortens the factors of products, while any fit of the process runs.

    The settings belong to the process. If each thread restored them by itself, it would shorten the
    products of the others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before: list[tuple[Any, str, Any]] = []

    def off(self) -> None:
        """Switch them off, unless another user did."""
        with self._lock:
            if self._users == 0:
                self._before = [setting for setting in _settings() if setting[2] not in EXACT]
                for matmul, name, before in self._before:
                    setattr(matmul, name, False if before is True else "ieee")
            self._users += 1

    def restore(self) -> None:
        """Restore the settings, if there is no other user."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                for setting in self._before:
                    setattr(*setting)


# Settings that keep all digits. "none" stands for "ieee".
EXACT = (False, "ieee", "none")


def _settings() -> list[tuple[Any, str, Any]]:
    """Return the settings for products on a GPU and on the processor, as they are."""
    backends: Any = torch.backends
    # Newer versions of torch have one setting by name, and complain about the old one beside it.
    if not hasattr(backends.cuda.matmul, "fp32_precision"):
        return [(backends.cuda.matmul, "allow_tf32", backends.cuda.matmul.allow_tf32)]
    matmuls = backends.cuda.matmul, backends.mkldnn.matmul
    return [(matmul, "fp32_precision", matmul.fp32_precision) for matmul in matmuls]


_short_floats = _ShortFloats()


@contextmanager
def full_precision() -> Iterator[None]:
    """Switch off TF32 and its like, and restore them afterwards.

    TF32 keeps 10 bits of the factors of a product. Users may have switched it on for networks. Sums
    over rows need more digits.
    """
    _short_floats.off()
    try:
        yield
    finally:
        _short_floats.restore()
