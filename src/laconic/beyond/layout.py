"""Rows whose layout does not depend on whether they were moved between workers.

Arrays that arrive over a network may begin at any address. NumPy multiplies misaligned arrays in
another way, with other rounding. Arrays that are views may arrive in another order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse


def laid_out(X: Any) -> Any:
    """Return rows as they were given, in a layout that they also have after a move."""
    if sparse.issparse(X):
        out = X.copy() if not X.data.flags.aligned else X
    elif isinstance(X, np.ndarray):
        contiguous = X.flags.c_contiguous or X.flags.f_contiguous
        out = np.require(X if contiguous else X.copy(order="C"), requirements="A")
    else:
        out = X
    return out


def laid_out_numbers(numbers: Any) -> Any:
    """Return the numbers of a frame in a layout that they also have after the frame was moved.

    Frames keep one column after the other. A view of some rows of them is moved in this order.
    """
    if isinstance(numbers, np.ndarray):
        contiguous = numbers.flags.c_contiguous or numbers.flags.f_contiguous
        return np.require(numbers if contiguous else numbers.copy(order="K"), requirements="A")
    return laid_out(numbers)
