"""Answers of a fitted model for Dask collections. Nothing is computed until Dask is asked to."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score

from laconic.beyond.collections import check_rows, dask_parts, is_array, partitions
from laconic.beyond.look import check_lengths, labels_of, named, weights_of
from laconic.data.labels import check_labels
from laconic.numeric.threads import Threads


def answers(model: Any, method: str, X: Any) -> Any:
    """Return a Dask array of what a method of a model answers for every row.

    The method is tried on a made-up row first. So a wrong number of features or wrong names are
    refused now, and not when the result is computed.
    """
    check_rows(X)
    small = _only_predicting(model)
    example = getattr(small, method)(_example(X))
    if not isinstance(example, np.ndarray):
        raise ValueError(
            f"{method} answers Dask collections with Dask arrays, and not with data frames; call "
            'set_output(transform="default") first'
        )
    if not is_array(X):
        return _of_each_partition(X, small, method, example[:0])
    X = X.rechunk({1: -1})
    columns: dict[str, Any] = {"drop_axis": 1}
    if example.ndim == 2:
        columns = {"chunks": (X.chunks[0], (example.shape[1],))}
    return X.map_blocks(_ask, small, method, dtype=example.dtype, meta=example[:0], **columns)


def _of_each_partition(X: Any, model: Any, method: str, meta: np.ndarray) -> Any:
    """Return an array with a chunk for every partition of a frame, of unknown length."""
    import dask
    import dask.array as da

    ask, shape = dask.delayed(_ask, pure=True), (np.nan, *meta.shape[1:])
    shared = dask.delayed(model, pure=True)
    chunks = [ask(part, shared, method) for part in partitions(X)]
    return da.concatenate([da.from_delayed(chunk, shape, meta=meta) for chunk in chunks])


def _ask(X: Any, model: Any, method: str) -> Any:
    """Ask a model for one partition. Models refuse inputs without rows."""
    if X.shape[0]:
        return getattr(model, method)(X)
    return getattr(model, method)(_example(X))[:0]


def _example(X: Any) -> Any:
    """Return one made-up row of a collection, or of a partition without rows."""
    nonempty = getattr(X, "_meta_nonempty", None)
    if nonempty is not None:
        return nonempty.iloc[:1]
    if hasattr(X, "iloc"):
        from dask.dataframe.utils import meta_nonempty

        return meta_nonempty(X).iloc[:1]
    return np.zeros((1, X.shape[1]), dtype=X.dtype)


def _only_predicting(model: Any) -> Any:
    """Return a model that predicts the same, without what workers do not need.

    Some settings of a fit may hold what cannot be pickled.
    """
    small = copy.copy(model)
    for name in ("path_", "rounds_", "generated_"):
        small.__dict__.pop(name, None)
    settings = {"callbacks", "search", "search_options", "cv", "scoring"} & set(vars(small))
    small.__dict__.update(dict.fromkeys(settings))
    return small


def score(model: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """Return the accuracy of a model on a Dask collection. Only sums of each partition travel."""
    given = dask_parts(X, y, sample_weight)
    sums = np.sum(given.parts.ask(_score, (_only_predicting(model),), given.names), axis=0)
    if not sums[1] > 0:
        raise ValueError("X has no row of positive weight to score")
    return float(sums[0] / sums[1])


def _score(part: Any, threads: Threads, model: Any, name: str) -> np.ndarray:
    X, y, weight = part
    labels = labels_of(y)
    check_lengths(X.shape[0], labels, weight, name)
    if X.shape[0] == 0:
        return np.zeros(2)
    with named(name):
        check_labels(labels)
        weights = weights_of(weight, X.shape[0])
        true = model._as_predicted(labels)
        found = model.predict(X)
        accuracy_score(true, found)  # refuses labels that cannot be compared with the answers
    return np.array([weights[found == true].sum(), weights.sum()])
