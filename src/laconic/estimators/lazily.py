"""Methods that answer Dask collections lazily."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from laconic.data.elsewhere import is_dask

F = TypeVar("F", bound=Callable[..., Any])


def lazily(method: F) -> F:
    """Let a method of an estimator, with one number or more for every row, take Dask collections.

    The answer is then a Dask array, which is computed when Dask is asked to.
    """

    @wraps(method)
    def answer(self: Any, X: Any) -> Any:
        if not is_dask(X):
            return method(self, X)
        from sklearn.utils.validation import check_is_fitted

        from laconic.beyond.lazily import answers

        check_is_fitted(self, self._fitted)
        return answers(self, method.__name__, X)

    return answer  # type: ignore[return-value]
