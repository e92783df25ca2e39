"""The same code for arrays of NumPy and tensors of torch. Torch is not imported for this.

Code that takes both asks for the namespace of what it was given, and uses functions that have the
same name, arguments and meaning in both: ``exp``, ``log``, ``amax``, ``asarray``, …
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
