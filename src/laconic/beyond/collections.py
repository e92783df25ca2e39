"""Parts of Dask arrays and data frames: one for each partition."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import dask
import numpy as np

from laconic.beyond.carrier_here import joined_as_far
from laconic.beyond.given import GivenParts
from laconic.beyond.layout import laid_out
from laconic.beyond.read_again import ReadAgain
from laconic.beyond.same_columns import not_a_column
from laconic.data.elsewhere import is_dask

GONE = (
    "it was persisted on a cluster that is gone, or that was restarted; make the collection again "
    "from where its rows are stored"
)


def dask_parts(X: Any, y: Any, sample_weight: Any) -> GivenParts:
    """Return the partitions of a collection with their labels and weights.

    With a client of a cluster, the partitions stay on its workers. Without one, each partition is
    computed in this process when it is needed. Both give the same bits. Labels and weights may be
    names of columns of a data frame.
    """
    check_rows(X)
    tasks = _tasks(*_by_name(X, y, sample_weight))
    names = [f"part {number} of X" for number in range(len(tasks))]
    client = _client()
    if client is None:
        sources = [partial(_compute, *one) for one in zip(tasks, names, strict=True)]
        return GivenParts(ReadAgain(sources), names, joined_as_far)
    if client.asynchronous:
        raise TypeError(
            "the Dask client is asynchronous, and fit and score wait for its answers; call them in "
            "a thread of their own, or make a client without asynchronous=True"
        )
    from laconic.beyond.cluster import OnCluster, joined_far
    from laconic.beyond.cluster_errors import clear_errors

    with clear_errors():
        futures = client.compute(tasks)
    return GivenParts(OnCluster(client, futures, names=names), names, joined_far)


def _by_name(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return rows, labels and weights. Names of columns of a data frame stand for these columns."""
    given = {"y": y, "sample_weight": sample_weight}
    names = {what: name for what, name in given.items() if isinstance(name, str)}
    if not names:
        return X, y, sample_weight
    columns = list(getattr(X, "columns", ()))
    for what, name in names.items():
        if not columns:
            raise TypeError(f"{what}={name!r} names a column, but X is no data frame")
        if name not in columns:
            raise ValueError(not_a_column(what, name, "X", columns))
    if len(set(names.values())) < len(names):
        raise ValueError(f"column {y!r} cannot be both y and sample_weight")
    values = {what: X[name] for what, name in names.items()}
    rest = X.drop(columns=list(names.values()))
    return rest, values.get("y", y), values.get("sample_weight", sample_weight)


def _client() -> Any:
    """Return the client of the cluster that Dask uses, also inside of its tasks, or None."""
    loaded = sys.modules.get("distributed")
    if loaded is None:  # whoever has a client has loaded it
        return None
    try:
        return loaded.get_client()
    except ValueError:
        return None


def _compute(task: Any, name: str) -> Any:
    try:
        X, *rest = task.compute()
    except Exception as error:
        raise not_computed(name, error) from error
    return laid_out(X), *rest


def _tasks(X: Any, y: Any, sample_weight: Any) -> list[Any]:
    """Return a task for every part (X, y, weight)."""
    if y is None:
        raise ValueError(
            "y is None; give the labels as a Dask collection with the partitions of X, such as a "
            "column of the same frame"
        )
    rows = partitions(X)
    columns = [
        [None] * len(rows) if values is None else _cut(values, X, len(rows), name)
        for values, name in ((y, "y"), (sample_weight, "sample_weight"))
    ]
    part = dask.delayed(_part, pure=True)
    return [part(*one) for one in zip(rows, *columns, strict=True)]


def _part(X: Any, y: Any, weight: Any) -> tuple[Any, Any, Any]:
    return X, y, weight


def partitions(X: Any) -> list[Any]:
    """Return a task for every partition of the rows."""
    check_rows(X)
    if is_array(X):
        return list(X.rechunk({1: -1}).to_delayed()[:, 0])
    return _of_frame(X)


def _of_frame(X: Any) -> list[Any]:
    """Return a task for every partition of a data frame or a series.

    When Dask optimises a frame, it may join partitions of files, and joins more if fewer columns
    are read. Then rows and labels of one frame would no longer have the same partitions.
    """
    return list(X.to_delayed(optimize_graph=False))


def not_computed(name: str, error: Exception) -> RuntimeError:
    """Return an error that says which part the user's own tasks cannot compute."""
    if "Missing dependency" in str(error):  # what Dask says of results that a cluster held
        return RuntimeError(f"{name} cannot be computed: {GONE}")
    return RuntimeError(f"{name} cannot be computed: {type(error).__name__}: {error}")


def check_rows(X: Any) -> None:
    """Refuse collections that are not rows and features."""
    if (found := _dimensions(X, "X")) != 2:
        raise ValueError(f"X must have two dimensions, rows and features, not {found}")


def _dimensions(values: Any, name: str) -> int:
    """Return the number of dimensions of an array, a data frame or a series."""
    dimensions = getattr(values, "ndim", None)  # a Delayed has attributes of any name
    if not isinstance(dimensions, int) or not hasattr(values, "to_delayed"):
        raise TypeError(
            f"{name} is a {type(values).__name__}; give a Dask array or a Dask data frame"
        )
    return dimensions


def is_array(X: Any) -> bool:
    """Return whether a collection is an array, and not a data frame or a series."""
    return hasattr(X, "chunks") and hasattr(X, "rechunk")


def _cut(values: Any, X: Any, n_parts: int, name: str) -> Sequence[Any]:
    """Return a task for the labels or weights of every partition."""
    sizes: Any = X.chunks[0] if is_array(X) else None
    if not is_dask(values):
        if sizes is None or np.isnan(sizes).any():
            remedy = "" if sizes is None else ", or call X.compute_chunk_sizes() first"
            raise TypeError(
                f"{name} is no Dask collection, and Dask does not know how long each part of X is; "
                f"give {name} the partitions of X, as a column of the same frame has{remedy}"
            )
        whole = np.asarray(values)
        if name == "sample_weight" and whole.ndim == 0:  # one weight for all rows
            whole = np.broadcast_to(whole, sum(sizes))
        if whole.shape[:1] != (sum(sizes),):
            has = len(whole) if whole.ndim else "no rows"
            raise ValueError(f"X has {sum(sizes)} rows, but {name} has {has}")
        cut = np.split(whole, np.cumsum(sizes)[:-1])
        return [dask.delayed(part) for part in cut]
    dimensions = _dimensions(values, name)
    if dimensions > 1 and name == "sample_weight":
        raise ValueError(f"sample_weight must have one dimension, not {dimensions}")
    if dimensions > 1 and values.shape[1] != 1:
        raise ValueError(f"{name} must be a single column; it has {values.shape[1]}")
    if not is_array(values):
        parts = _of_frame(values)
    else:
        values = values[:, 0] if values.ndim > 1 else values
        known = sizes is not None and not np.isnan([*sizes, *values.chunks[0]]).any()
        if known and values.chunks[0] != sizes:
            if sum(sizes) != values.shape[0]:
                raise ValueError(f"X has {sum(sizes)} rows, but {name} has {values.shape[0]}")
            values = values.rechunk({0: sizes})
        parts = list(values.to_delayed())
    if len(parts) != n_parts:
        raise ValueError(
            f"X has {n_parts} partitions, but {name} has {len(parts)}; give them the same "
            "partitions, for example as columns of one frame"
        )
    return parts
