"""Answers of a fitted model for Dask collections. Nothing is computed until Dask is asked to."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from laconic.beyond.collections import dask_parts, is_array


def answers(model: Any, method: str, X: Any) -> Any:
    """Return a Dask array of what a method of a model answers for every row.

    The method is tried on a made-up row first. So a wrong number of features or wrong names are
    refused now, and not when the result is computed.
    """
    small = _without_path(model)
    ask = getattr(small, method)
    if not is_array(X):
        example = ask(_example(X))
        return X.map_partitions(_ask, small, method, meta=example[:0])
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and features, not {X.ndim}")
    X = X.rechunk({1: -1})
    example = ask(np.zeros((1, X.shape[1]), dtype=X.dtype))
    columns: dict[str, Any] = {"drop_axis": 1}
    if example.ndim == 2:
        columns = {"chunks": (X.chunks[0], (example.shape[1],))}
    return X.map_blocks(_ask, small, method, dtype=example.dtype, meta=example[:0], **columns)


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


def _without_path(model: Any) -> Any:
    """Return a model that predicts the same, without what workers do not need."""
    small = copy.copy(model)
    for name in ("path_", "rounds_", "generated_"):
        small.__dict__.pop(name, None)
    return small


def score(model: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """Return the accuracy of a model on a Dask collection. Only sums of each partition travel."""
    parts = dask_parts(X, y, sample_weight).parts
    sums = np.sum(parts.ask(_score, (_without_path(model),)), axis=0)
    if not sums[1] > 0:
        raise ValueError("X has no row of positive weight to score")
    return float(sums[0] / sums[1])


def _score(part: Any, threads: Any, model: Any) -> np.ndarray:
    from laconic.beyond.look import labels_of, weights_of

    X, y, weight = part
    if X.shape[0] == 0:
        return np.zeros(2)
    weights = weights_of(weight, X.shape[0])
    right = model.predict(X) == labels_of(y)
    return np.array([weights[right].sum(), weights.sum()])
