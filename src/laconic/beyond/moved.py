"""Parts that may be moved between workers, and keep their bits.

Arrays that arrive over a network may begin at any address. NumPy multiplies misaligned arrays in
another way, with other rounding. So arrays of parts are brought into memory of their own.
"""

from __future__ import annotations

import pickle
from typing import Any

import cloudpickle
import numpy as np
from scipy import sparse

from laconic.numeric.memory import bytes_of_arrays


class Moved:
    """Something that was made on a worker. After a move, its arrays are in memory of their own.

    Parameters
    ----------
    item : object
    """

    def __init__(self, item: Any) -> None:
        self.item = item

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked, (packed(self.item),)

    def __sizeof__(self) -> int:
        """Return the bytes of the arrays, so that a cluster can tell what it would move."""
        return bytes_of_arrays(self.item)


def _unpacked(content: bytes) -> Moved:
    return Moved(pickle.loads(content))


def packed(item: Any) -> bytes:
    """Pickle something so that its arrays will be in memory of their own."""
    return cloudpickle.dumps(item, protocol=4)  # later protocols may leave arrays in the message


def in_own_memory(part: Any) -> Any:
    """Return a part (X, y, weight) as it was given, or what was made of it, in its own memory."""
    if isinstance(part, Moved):
        return part.item
    X, *rest = part
    return _laid_out(X), *rest


def _laid_out(X: Any) -> Any:
    """Return rows whose layout does not depend on whether they were moved."""
    if sparse.issparse(X):
        out = X.copy() if not X.data.flags.aligned else X
    elif isinstance(X, np.ndarray):
        contiguous = X.flags.c_contiguous or X.flags.f_contiguous
        out = np.require(X if contiguous else np.ascontiguousarray(X), requirements="A")
    else:
        out = X
    return out
