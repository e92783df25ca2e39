"""Inputs of an integer model: what the device hands over, and the codes that the model reads.

A code is a small integer. Raw integers are their own codes. Floats are scaled by powers of two: the
code of x is ``low + fixed(x) − base``, where ``fixed`` rounds x · 2^shift to a whole number. A chip
does that by shifting the digits of x, and needs no arithmetic on floats. Inputs beyond the range of
a feature saturate: they get its lowest or highest code.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

GIVEN = ("float", "uint8", "int8", "int16")
"""What a device may hand over."""

F32 = np.float32
# Fixed-point numbers saturate at this size.
LARGEST_FIXED = 2**30


def given_type(X: Any) -> str:
    """Return the type of all columns if a device can hand it over as it is, or else ``"float"``.

    Examples
    --------
    >>> given_type(np.zeros((2, 3), dtype=np.uint8)), given_type([[1.0]])
    ('uint8', 'float')
    """
    kinds = X.dtypes if hasattr(X, "dtypes") else [getattr(X, "dtype", None)]
    found = {str(kind).lower() for kind in kinds}  # polars writes UInt8
    raw = len(found) == 1 and found.issubset(GIVEN[1:])
    return found.pop() if raw else "float"


class Inputs(NamedTuple):
    """The codes of the features that a model reads.

    Attributes
    ----------
    given : str
        One of `GIVEN`.
    bits : int
        Bits of a code.
    features : ndarray of shape (n_read,)
        The features that are read. Everything else numbers features by their place here.
    low, high : ndarray of shape (n_read,)
        Smallest and largest code of each feature.
    base : ndarray of shape (n_read,)
        Fixed-point number that has the lowest code.
    shift : ndarray of shape (n_read,)
        One step of codes is 2^-shift. It is 0 for raw integers.
    missing : int or None
        Code of a missing value. None if there is none, and then missing values are refused.
    asked : dict of int to ndarray
        For each feature that holds categories, by its place, the codes that the model asks about.
    other : int
        Code of every other category.
    """

    given: str
    bits: int
    features: np.ndarray
    low: np.ndarray
    high: np.ndarray
    base: np.ndarray
    shift: np.ndarray
    missing: int | None
    asked: dict[int, np.ndarray]
    other: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a code."""
        return np.dtype(self.given if self.given != "float" else f"int{self.bits}")

    @property
    def scale(self) -> np.ndarray:
        """Steps of codes for one unit of each feature."""
        return np.ldexp(1.0, self.shift)

    @property
    def zero(self) -> np.ndarray:
        """Code of the number 0 of each feature. It need not be between ``low`` and ``high``."""
        return self.low - self.base

    @property
    def clamped(self) -> bool:
        """Whether raw integers must be limited to the range of their feature."""
        least, most = code_range(self.dtype, self.missing is not None)
        inside = bool((self.low == least).all() and (self.high == most).all())
        return self.given != "float" and not inside

    @property
    def direct(self) -> bool:
        """Whether the model reads the device's numbers as they are."""
        return self.given != "float" and not self.clamped

    def handed_over(self, X: Any) -> np.ndarray:
        """Return the features that are read as the device hands them over, (n_rows, n_read).

        Floats are float32. Raw integers have the type of ``given``. A missing value is NaN among
        floats, and the reserved code among integers. Numbers beyond the type saturate.
        """
        read = X[:, self.features]
        rows = np.asarray(read.toarray() if sparse.issparse(read) else read)
        if rows.dtype.kind != "f":
            rows = rows.astype(np.float64)
        missing = np.isnan(rows)
        if self.missing is None and missing.any():
            raise ValueError(
                "X holds missing values, but this integer model has no code for them; give rows "
                "with missing values to quantise"
            )
        if self.given == "float":
            with np.errstate(over="ignore"):
                return rows.astype(F32)
        rows = np.where(missing, 0.0, rows)
        for place, asked in self.asked.items():
            rows[~np.isin(rows[:, place], asked), place] = self.other
        broken = rows != np.rint(rows)
        if broken.any():
            row, place = np.argwhere(broken)[0]
            raise ValueError(
                f"X must hold whole numbers, because the device hands over {self.given}, but row "
                f"{row} has {rows[row, place]:g} in column {self.features[place]}; use "
                'inputs="float" for other numbers'
            )
        least, most = code_range(self.dtype, self.missing is not None)
        rows = np.clip(rows, least, most)
        if self.missing is not None:
            rows[missing] = self.missing
        return rows.astype(self.dtype)

    def codes(self, X: Any) -> np.ndarray:
        """Return the codes of the features that are read, (n_rows, n_read), in int64."""
        return self.codes_of(self.handed_over(X))

    def codes_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the codes of what the device hands over, (n_rows, n_read)."""
        whole = fixed(rows, self.shift) if self.given == "float" else rows.astype(np.int64)
        codes = np.clip(whole - self.base + self.low, self.low, self.high)
        if self.missing is not None:
            lost = np.isnan(rows) if self.given == "float" else rows == self.missing
            codes[lost] = self.missing
        return codes


def code_range(dtype: np.dtype[Any], missing: bool) -> tuple[int, int]:
    """Return the smallest and the largest code. The largest of all is reserved for missing."""
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max) - int(missing)


def fixed(x: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Return float32 numbers times 2^shift as whole numbers, rounded half away from zero.

    Numbers that are too large saturate at 2^30, with their sign. Infinity counts as 2^128, and NaN
    as a number beyond it. Subnormal numbers count as 0. The C code does the same with the bits of a
    number.
    """
    bits = np.ascontiguousarray(x, dtype=F32).view(np.uint32).astype(np.int64)
    exponent = (bits >> 23) & 255
    digits = (bits & 0x7FFFFF) | 0x800000
    places = exponent - 150 + np.asarray(shift, dtype=np.int64)
    down = np.clip(-places, 1, 30)
    size = np.where(
        places < 0, (digits + (1 << (down - 1))) >> down, digits << np.clip(places, 0, 6)
    )
    size = np.where(places > 6, LARGEST_FIXED, size)
    size = np.where(exponent == 0, 0, size)
    return np.where(bits >> 31 == 1, -size, size)
