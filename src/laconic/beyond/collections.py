"""Parts of Dask arrays and data frames: one for each partition."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import dask
import numpy as np

from laconic.beyond.given import GivenParts
from laconic.beyond.read_again import ReadAgain
from laconic.beyond.training import joined_here
from laconic.data.elsewhere import is_dask


def dask_parts(X: Any, y: Any, sample_weight: Any) -> GivenParts:
    """Return the partitions of a collection with their labels and weights.

    With a client of a cluster, the partitions stay on its workers. Without one, each partition is
    computed in this process when it is needed.
    """
    tasks = _tasks(X, y, sample_weight)
    client = _client()
    if client is None:
        return GivenParts(ReadAgain([partial(_compute, task) for task in tasks]), joined_here)
    if client.asynchronous:
        raise TypeError(
            "the Dask client is asynchronous, and fit and score wait for its answers; call them in "
            "a thread of their own, or make a client without asynchronous=True"
        )
    from laconic.beyond.cluster import OnCluster, clear_errors, joined_far

    with clear_errors():
        futures = client.compute(tasks)
    return GivenParts(OnCluster(client, futures), joined_far)


def _client() -> Any:
    """Return the client of the cluster that Dask uses, or None."""
    try:
        from distributed import Client

        return Client.current()
    except (ImportError, ValueError):
        return None


def _compute(task: Any) -> Any:
    return task.compute()


def _tasks(X: Any, y: Any, sample_weight: Any) -> list[Any]:
    """Return a task for every part (X, y, weight)."""
    rows = partitions(X)
    columns = [
        [None] * len(rows) if values is None else _column(values, X, len(rows), name)
        for values, name in ((y, "y"), (sample_weight, "sample_weight"))
    ]
    part = dask.delayed(_part, pure=True)
    return [part(*one) for one in zip(rows, *columns, strict=True)]


def _part(X: Any, y: Any, weight: Any) -> tuple[Any, Any, Any]:
    return X, y, weight


def partitions(X: Any) -> list[Any]:
    """Return a task for every partition of the rows."""
    if not hasattr(X, "to_delayed"):
        raise TypeError(f"X is a {type(X).__name__}; give a Dask array or a Dask data frame")
    if is_array(X):
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, rows and features, not {X.ndim}")
        return list(X.rechunk({1: -1}).to_delayed()[:, 0])
    return list(X.to_delayed())


def is_array(X: Any) -> bool:
    """Return whether a collection is an array, and not a data frame or a series."""
    return hasattr(X, "chunks") and hasattr(X, "rechunk")


def _column(values: Any, X: Any, n_parts: int, name: str) -> Sequence[Any]:
    """Return a task for the labels or weights of every partition."""
    sizes: Any = X.chunks[0] if is_array(X) else None
    if not is_dask(values):
        if sizes is None or np.isnan(sizes).any():
            raise TypeError(
                f"{name} must be a Dask collection with the partitions of X, such as a column of "
                f"the same frame; it is a {type(values).__name__}"
            )
        whole = np.asarray(values)
        if len(whole) != sum(sizes):
            raise ValueError(f"X has {sum(sizes)} rows, but {name} has {len(whole)}")
        cut = np.split(whole, np.cumsum(sizes)[:-1])
        return [dask.delayed(part) for part in cut]
    if is_array(values):
        if values.ndim > 1:
            values = values.reshape(-1) if values.shape[1] != 1 else values[:, 0]
        known = sizes is not None and not np.isnan([*sizes, *values.chunks[0]]).any()
        if known and values.chunks[0] != sizes:
            if sum(sizes) != values.shape[0]:
                raise ValueError(f"X has {sum(sizes)} rows, but {name} has {values.shape[0]}")
            values = values.rechunk({0: sizes})
    parts = list(np.ravel(values.to_delayed()))
    if len(parts) != n_parts:
        raise ValueError(
            f"X has {n_parts} partitions, but {name} has {len(parts)}; give them the same "
            "partitions, for example as columns of one frame"
        )
    return parts
