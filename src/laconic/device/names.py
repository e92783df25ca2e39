"""Names of devices. They are checked before torch is imported."""

from __future__ import annotations

from numbers import Integral
from typing import Any

# Types of devices that fits run on. GPUs of AMD have the type "cuda", too.
TYPES = ("cuda", "cpu")


def wrong_device(device: Any) -> ValueError:
    """Return the error for a setting that names no device of a known type."""
    return ValueError(
        f'device must be None, "cuda", "cuda:0" or "cpu", or such a device of torch, not {device!r}'
    )


def check_name(device: Any) -> None:
    """Refuse a device of a type that fits do not run on. A number is that of a GPU."""
    if str(device).partition(":")[0] not in TYPES and not isinstance(device, Integral):
        raise wrong_device(device)
