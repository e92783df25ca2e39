"""Choose between a Triton kernel and its twin in plain torch."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager

import torch
from torch import Tensor


def has_triton(tensor: Tensor) -> bool:
    """Return whether Triton's kernels run on a tensor: on CUDA, or anywhere in its interpreter."""
    return bool(tensor.is_cuda) or os.environ.get("TRITON_INTERPRET") == "1"


def launched_at(tensor: Tensor) -> AbstractContextManager[None]:
    """Return a context in which kernels are launched where a tensor is.

    Triton launches them on the current device. With several GPUs, that may be another one.
    """
    place: AbstractContextManager[None] = torch.cuda.device_of(tensor)
    return place


def padded(n: int, multiple: int) -> int:
    """Return the smallest multiple that is at least ``n``, and at least one multiple."""
    return max(-(-n // multiple), 1) * multiple


def power_of_two(n: int, least: int) -> int:
    """Return the smallest power of two that is at least ``n`` and ``least``."""
    return max(1 << (n - 1).bit_length(), least)
