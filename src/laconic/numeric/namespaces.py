"""The same code for arrays of NumPy and tensors of torch. Torch is not imported for this.

Code that takes both asks for the namespace of what it was given, and uses functions that have the
same name, arguments and meaning in both: ``exp``, ``log``, ``amax``, ``where``, … Functions that
make arrays are not among them, because those of torch may make them on another device.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def is_tensor(array: Any) -> bool:
    """Return whether an object is a tensor of torch."""
    torch = sys.modules.get("torch")  # without torch there are no tensors
    return torch is not None and isinstance(array, torch.Tensor)


def namespace(array: Any) -> Any:
    """Return the module with the functions for an array: NumPy, or torch for its tensors."""
    return sys.modules["torch"] if is_tensor(array) else np


def number(value: Any) -> Any:
    """Return a number of NumPy as a float. A tensor stays on its device, as it is."""
    return value if is_tensor(value) else float(value)


def as_type(array: Any, dtype: Any) -> Any:
    """Return an array in a type of its library, or in one that both call by the same name."""
    if is_tensor(array):
        return array.to(getattr(namespace(array), dtype) if isinstance(dtype, str) else dtype)
    return np.asarray(array, dtype=dtype)


def contiguous(array: Any, dtype: str) -> Any:
    """Return an array row by row, in a type that NumPy and torch call by the same name."""
    if is_tensor(array):
        return as_type(array, dtype).contiguous()
    return np.ascontiguousarray(array, dtype=dtype)


def numbers_like(values: Any, array: Any) -> Any:
    """Return numbers as an array for calculations with another one, which is on some device."""
    return array.new_tensor(values) if is_tensor(array) else np.asarray(values)


def check_tensor(X: Any) -> None:
    """Refuse a tensor of rows that cannot be read. Anything else is not looked at."""
    if not is_tensor(X):
        return
    if str(X.layout) != "torch.strided":
        raise TypeError("X is a sparse tensor, and tensors must be dense; give X.to_dense()")
    if X.is_meta:
        raise ValueError('X has no data, because it is a tensor on the device "meta"')
    if X.is_quantized or (X.is_floating_point() and X.element_size() == 1):
        remedy = "X.dequantize()" if X.is_quantized else "X.float()"
        raise TypeError(f"X is a tensor of {X.dtype}, which is not read; give {remedy}")


def to_host(values: Any) -> Any:
    """Return a tensor as an array of NumPy. Anything else comes back as it is.

    A tensor in the memory of the processor shares it with the array.
    """
    if not is_tensor(values):
        return values
    given = values.detach().cpu()
    # NumPy has no short floats of this kind. Single precision holds them exactly.
    return (given.float() if str(given.dtype) == "torch.bfloat16" else given).numpy()
