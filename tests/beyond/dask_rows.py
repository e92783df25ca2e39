"""Dask collections and clients that several tests share."""

from itertools import pairwise

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
from distributed import Client
from scipy import sparse

from laconic.rows.limits import Limits

CUTS = (50, 51, 100)
"""Where the 120 rows of `rows.test_shards.table` are cut. One partition has a single row."""


def lengths(n_rows, cuts=CUTS):
    """Return the lengths of partitions that are cut at some rows."""
    return tuple(np.diff([0, *cuts, n_rows]).tolist())


def array_of(X, cuts=CUTS):
    """Return a Dask array of some rows, dense or sparse."""
    if sparse.issparse(X):
        numbers = da.from_array(np.arange(X.shape[0]), chunks=(lengths(X.shape[0], cuts),))
        width = (X.shape[1],)
        return numbers.map_blocks(
            lambda rows: X[rows], new_axis=1, chunks=(numbers.chunks[0], width), meta=X[:0]
        )
    chunks = (lengths(len(X), cuts), *((size,) for size in X.shape[1:]))
    return da.from_array(X, chunks=chunks)


def frame_of(rows, cuts=CUTS):
    """Return a Dask data frame of some rows, or a series."""
    ends = pairwise([0, *cuts, len(rows)])
    parts = [dask.delayed(rows.iloc[a:b]) for a, b in ends]
    return dd.from_delayed(parts, meta=rows.iloc[:0])


def in_memory(model, X, y, cuts=CUTS, **fit):
    """Fit rows in memory, cut where the partitions are cut."""
    model._limits = Limits(cuts=cuts)
    return model.fit(X, y, **fit)


def workers(number):
    """Start a cluster of workers that are threads of this process. Return its client."""
    settings = {"threads_per_worker": 1, "dashboard_address": ":0", "set_as_default": False}
    return Client(processes=False, n_workers=number, **settings)
