"""Check arrays and numbers from a file before anything is built from them.

A file may come from a stranger. The reader declares a layout. Names, types, shapes, ranges and
finiteness of the arrays are checked against it. Every problem is a `ValueError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

# Largest number of features, and largest dimension of any array.
MOST = 2**31 - 1

_KINDS = {"f": "f", "i": "iu", "b": "b", "U": "U"}
_WORDS = {"f": "real numbers", "i": "whole numbers", "b": "truth values", "U": "text"}


class Array(NamedTuple):
    """One array: its type, its shape and the range of its values.

    A dimension is a number or a name. A name stands for the same length in all arrays. A limit may
    also be the name of a dimension.
    """

    kind: str
    """``"f"`` for real numbers, ``"i"`` for whole ones, ``"b"`` for truth values, ``"U"`` for text.
    """
    shape: tuple[int | str, ...]
    low: float | str = -np.inf
    high: float | str = np.inf
    """Smallest and largest value."""
    below: str | None = None
    """Dimension that every value must be below. The values are positions along it."""
    finite: bool = True
    """Whether infinity is refused. NaN is always refused."""


class Number(NamedTuple):
    """One number of a header: its type and its range."""

    kind: type
    """``float`` (never NaN or infinite), ``int`` or ``bool``."""
    low: float = -np.inf
    high: float = np.inf

    def checked(self, value: Any, name: str) -> Any:
        """Return the value, or raise a `ValueError`."""
        if self.kind is bool:
            if type(value) is not bool:
                raise ValueError(f"{name} must be true or false")
            return value
        if self.kind is int:
            return whole_number(value, name, int(self.low), int(self.high))
        found = real_number(value, name)
        if not self.low <= found <= self.high:
            raise ValueError(f"{name} must be a number from {self.low:g} to {self.high:g}")
        return found


def check_arrays(
    arrays: Mapping[str, np.ndarray], layout: Mapping[str, Array], dimensions: dict[str, int]
) -> dict[str, np.ndarray]:
    """Return the arrays in the byte order of this machine.

    Raise a `ValueError` that names the first wrong array. ``dimensions`` holds the known
    dimensions. Those of the arrays are added to it.
    """
    for name in arrays:
        if name not in layout:
            raise ValueError(f"it has an array {name!r}, which does not belong there")
    for name, wanted in layout.items():
        if name not in arrays:
            raise ValueError(f"it has no array {name!r}")
        _check_shape(name, arrays[name], wanted, dimensions)
    return {name: _checked_values(name, arrays[name], layout[name], dimensions) for name in layout}


def _check_shape(name: str, array: np.ndarray, wanted: Array, dimensions: dict[str, int]) -> None:
    wide = wanted.kind != "U" and array.dtype.itemsize > 8
    if wide or array.dtype.kind not in _KINDS[wanted.kind]:
        raise ValueError(f"array {name!r} must hold {_WORDS[wanted.kind]}, not {array.dtype}")
    if array.ndim != len(wanted.shape):
        raise ValueError(f"array {name!r} must have {len(wanted.shape)} dimensions")
    for length, meant in zip(array.shape, wanted.shape, strict=True):
        right = dimensions.setdefault(meant, length) if isinstance(meant, str) else meant
        if length != right:
            raise ValueError(f"array {name!r} has shape {array.shape}, which does not fit the rest")


def _checked_values(
    name: str, array: np.ndarray, wanted: Array, dimensions: Mapping[str, int]
) -> np.ndarray:
    if wanted.kind == "U":
        check_text(array)
        return array
    if wanted.kind == "f" and wanted.finite and not np.isfinite(array).all():
        raise ValueError(f"array {name!r} holds NaN or infinity")
    low = dimensions[wanted.low] if isinstance(wanted.low, str) else wanted.low
    high = dimensions[wanted.high] if isinstance(wanted.high, str) else wanted.high
    if wanted.below is not None:
        high = min(high, dimensions[wanted.below] - 1)
    inside = array.size == 0 or wanted.kind == "b" or (array.min() >= low and array.max() <= high)
    if not inside:
        raise ValueError(f"array {name!r} has values outside {low:g} to {high:g}")
    return np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")


def check_text(array: np.ndarray) -> None:
    """Refuse text with invalid characters."""
    try:
        for text in array.reshape(-1).tolist():
            text.encode()
    except (ValueError, SystemError) as error:
        raise ValueError("it holds text with invalid characters") from error


def whole_number(value: Any, name: str, low: int = 0, high: int = MOST) -> int:
    """Return a whole number of a header, or raise a `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name} must be a whole number from {low} to {high}")
    return value


def real_number(value: Any, name: str, finite: bool = True) -> float:
    """Return a number of a header, or raise a `ValueError`."""
    sound = isinstance(value, float) or (type(value) is int and abs(value) <= 2**63)
    if not sound:
        raise ValueError(f"{name} must be a number")
    if finite and not np.isfinite(value):
        raise ValueError(f"{name} must be finite")
    return float(value)


def list_of(kind: type, value: Any, name: str, length: int | None = None) -> list[Any]:
    """Return a list of a header. A `ValueError` says that it has a wrong type or length."""
    if not isinstance(value, list) or not all(type(item) is kind for item in value):
        raise ValueError(f"{name} must be a list of {kind.__name__}")
    if length is not None and len(value) != length:
        raise ValueError(f"{name} must have {length} items, not {len(value)}")
    return value
