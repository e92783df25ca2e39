"""Between arrays of NumPy and tensors on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor


def tensor_type(dtype: np.dtype[Any]) -> torch.dtype:
    """Return torch's name of a type of NumPy."""
    found: torch.dtype = getattr(torch, np.dtype(dtype).name)
    return found


def can_hold(dtype: np.dtype[Any]) -> bool:
    """Return whether a tensor can hold labels of a type: numbers in the order of this machine."""
    return dtype.kind in "biuf" and dtype.isnative and dtype.itemsize <= 8


def on_host(tensor: Tensor) -> np.ndarray:
    """Return a tensor as an array. This waits for the device."""
    array: np.ndarray = tensor.cpu().numpy()
    return array


def as_floats(X: Tensor) -> Tensor:
    """Return rows as float32 or float64, as the check of an array does."""
    return X if X.dtype in (torch.float32, torch.float64) else X.double()


def like(array: np.ndarray, tensor: Tensor) -> Tensor:
    """Return an array as a tensor of the type of another one, on its device."""
    made = torch.from_numpy(np.ascontiguousarray(array, dtype=on_type(tensor)))
    return made.to(tensor.device)


def on_type(tensor: Tensor) -> np.dtype[Any]:
    """Return the type of a tensor as NumPy calls it."""
    return np.dtype(str(tensor.dtype).removeprefix("torch."))
