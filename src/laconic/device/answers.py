"""Answers of a predictor for tensors, and for arrays of other libraries on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laconic.device.place import in_kind, tensor_of
from laconic.device.tensors import as_floats
from laconic.numeric.namespaces import to_host


def answer(predictor: Any, method: Callable[[Any], Any], X: Any) -> Any:
    """Return what a method of a predictor answers for rows, as X is and where X is.

    ``predictor`` is a `laconic.model.predictor.Predictor`.
    """
    given = tensor_of(X)
    if predictor.reads_tensors and not given.is_complex():
        return in_kind(method(as_floats(given)), X)
    return in_kind(method(predictor._matrix(to_host(given))), X)
