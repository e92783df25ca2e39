"""Products of float32 tensors with all their digits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def full_precision() -> Iterator[None]:
    """Switch off TF32, which keeps 10 bits of the factors of a product, and restore it afterwards.

    Users may have switched it on for networks. Sums over rows need more digits.
    """
    matmul: Any = torch.backends.cuda.matmul
    # Newer versions of torch have one setting by name, and complain about the old one beside it.
    name, off = ("fp32_precision", "ieee") if hasattr(matmul, "fp32_precision") else (
        "allow_tf32", False)  # fmt: skip
    before = getattr(matmul, name)
    if before not in ("tf32", True):
        yield
        return
    setattr(matmul, name, off)
    try:
        yield
    finally:
        setattr(matmul, name, before)
