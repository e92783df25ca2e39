"""Methods that answer in kind: Dask collections lazily, and tensors with tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from laconic.data.elsewhere import is_dask, is_on_device
from laconic.numeric.namespaces import is_tensor

F = TypeVar("F", bound=Callable[..., Any])


def lazily(method: F) -> F:
    """Let a method of an estimator, with one number or more for every row, take other rows.

    Of a Dask collection, the answer is a Dask array, which is computed when Dask is asked to. Of a
    tensor, or an array on a GPU, the answer is of the same kind and in the same place.
    """

    @wraps(method)
    def answer(self: Any, X: Any) -> Any:
        if is_dask(X):
            from sklearn.utils.validation import check_is_fitted

            from laconic.beyond.lazily import answers

            check_is_fitted(self, self._fitted)
            return answers(self, method.__name__, X)
        if is_tensor(X) or is_on_device(X):
            from laconic.estimators.on_device import in_kind_of

            return in_kind_of(self, method, X)
        return method(self, X)

    return answer  # type: ignore[return-value]
