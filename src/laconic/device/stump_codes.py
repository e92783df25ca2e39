"""Codings of features whose values are on a device; see `laconic.pools.codings`.

Only short lists of values come to the host: distinct values, or the sample that cuts are found
from. The codings are the same as for rows on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from laconic.device.surveys import blocks_of_rows
from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.quantiles import weighted
from laconic.pools.stumps import Stumps

if TYPE_CHECKING:
    from laconic.pools.codings import Coding

# Features whose samples are on the host at a time: 100 MB.
TOGETHER = 32


def find_codings(pool: Stumps, X: Tensor, weight: Tensor, threads: Threads) -> list[Coding]:
    """Return the coding of every feature."""
    categorical = pool.categories(X.shape[1])
    gaps = _with_gaps(X)
    found: list[Coding] = []
    for features in row_blocks(X.shape[1], TOGETHER):
        # Values are read here, one feature after the other. Threads sort what was read.
        makers = [
            _maker(pool, X[:, f], weight, bool(gaps[f]), bool(categorical[f]))
            for f in range(features.start, features.stop)
        ]
        found += threads.map(lambda make: make(), makers)
    return found


def encode(column: Tensor, coding: Coding) -> Tensor:
    """Return the codes of the values of one feature, in int32."""
    values = column.double().contiguous()
    cuts = torch.as_tensor(coding.cuts, dtype=torch.float64, device=column.device)
    codes = torch.bucketize(values, cuts, out_int32=True)
    if coding.missing:
        codes.masked_fill_(values.isnan(), coding.n_codes - 1)
    return codes


def _with_gaps(X: Tensor) -> Tensor:
    """Return which features have missing values."""
    found = torch.zeros(X.shape[1], dtype=torch.bool, device=X.device)
    for rows in blocks_of_rows(X):
        found |= X[rows].isnan().any(dim=0)
    return found.cpu()


def _maker(
    pool: Stumps, column: Tensor, weight: Tensor, gaps: bool, categorical: bool
) -> Callable[[], Coding]:
    """Read what the coding of a feature depends on, and return the function that makes it."""
    from laconic.pools import codings as coder  # it imports Numba

    bins = pool.checked_bins()
    most = coder.most_listed(bins)
    present = column[~column.isnan()] if gaps else column
    # Many features have more values than are listed among their first rows.
    distinct = present[: 4 * most].unique()
    if len(distinct) <= most or bins is None or categorical:
        distinct = present.unique()
    if len(distinct) <= most or bins is None or categorical:
        values = distinct.double().cpu().numpy()
        return lambda: coder.exact_coding(values, gaps, categorical)
    step = max(-(-len(present) // pool._limits.sample), 1)
    values = present[::step].double().cpu().numpy()
    mass = (weight[~column.isnan()] if gaps else weight)[::step].cpu().numpy()
    return lambda: coder.binned_coding(weighted(values, mass), gaps, bins)
