"""Turn the values of features into codes, for `laconic.pools.stumps`.

Every feature is coded once. The code of a value is the number of *cuts* below it. A missing value
has the last code. This module imports Numba, so it is imported at first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.quantiles import Weighted, midpoints, quantile_cuts, run_starts, weighted
from laconic.pools.ranks import encode, is_new
from laconic.pools.stump_limits import StumpLimits

_CODED = 1 << 17  # rows that a worker codes together, and numbers that it looks at together
_SURVEY = 255  # distinct values that are listed without sorting if there are no bins


class Coding(NamedTuple):
    """How the values of one feature become codes, and which stumps it has."""

    cuts: np.ndarray
    """Thresholds, or the categories themselves. The code of v is the number of cuts below v."""
    values: np.ndarray
    """Thresholds or categories of the stumps. Stump j is about code j."""
    categorical: bool
    missing: bool
    """Whether there is a stump for missing values. It is the feature's last atom, and is about its
    last code."""
    order: np.ndarray | None = None
    """Rows sorted by value, with missing values last. Only features with too many codes to write
    down have it."""
    starts: np.ndarray | None = None
    """Where the rows of each code start in ``order``, and at the end the number of rows."""

    @property
    def n_codes(self) -> int:
        """Number of codes, including the code of missing values."""
        return len(self.cuts) + (not self.categorical) + self.missing

    @property
    def n_atoms(self) -> int:
        """Number of stumps."""
        return len(self.values) + self.missing

    def question(self, j: int) -> tuple[str, float, int]:
        """Return the kind and value of the feature's stump ``j``, and the code it is about."""
        if j == len(self.values):
            return "missing", 0.0, self.n_codes - 1
        return "eq" if self.categorical else "le", float(self.values[j]), j

    def sums(self, by_code: np.ndarray, out: np.ndarray) -> None:
        """Turn residual sums of every code into sums of every stump, (n_atoms, k)."""
        n = len(self.values)
        if self.categorical:
            out[:n] = by_code[:n]
        else:
            np.cumsum(by_code[:n], axis=0, out=out[:n])
        if self.missing:
            out[n] = by_code[-1]


def _read(X: Any, rows: slice, features: slice) -> np.ndarray:
    """Return a block of X, one feature after another.

    It is always a new float64 array, so that kernels are compiled for one type only.
    """
    taken = X[rows, features]
    return np.array((taken.toarray() if sparse.issparse(taken) else taken).T, np.float64, order="C")


def runs_of_rows(X: Any) -> list[slice]:
    """Return the rows that workers code, run by run. A sparse matrix is read as a whole."""
    return row_blocks(X.shape[0], X.shape[0] if sparse.issparse(X) else _CODED)


def _chunks(
    X: Any, features: slice, read: int, run: slice | None = None
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield blocks of rows of some features. A sparse matrix is one dense block of all rows.

    With ``run``, only these rows are read.
    """
    first, last = (0, X.shape[0]) if run is None else (run.start, run.stop)
    for s in row_blocks(last - first, X.shape[0] if sparse.issparse(X) else read):
        rows = slice(first + s.start, first + s.stop)
        yield rows, _read(X, rows, features)


def exact_coding(distinct: np.ndarray, missing: bool, categorical: bool) -> Coding:
    """Return the coding that keeps every distinct value apart."""
    if not categorical:
        cuts = midpoints(distinct[:-1], distinct[1:])
        return Coding(cuts, cuts, False, missing and len(distinct) > 0)
    # With two categories, or one category and missing values, each is the complement of the other.
    keep = len(distinct) if len(distinct) + missing > 2 else len(distinct) - 1
    return Coding(distinct, distinct[: max(keep, 0)], True, missing and len(distinct) > 0)


def _sorted_coding(X: Any, feature: int, missing: bool, categorical: bool, narrow: int) -> Coding:
    """Return the exact coding of a feature with many distinct values, from one sort."""
    column = _read(X, slice(None), slice(feature, feature + 1))[0]
    order = np.argsort(column, kind="stable")
    column = column[order]
    present = len(column) - int(np.isnan(column).sum()) if missing else len(column)
    starts = run_starts(column[:present])
    coding = exact_coding(column[starts], missing, categorical)
    if coding.n_codes <= narrow:
        return coding
    ends = [present, len(column)] if missing else [present]
    return _ordered(coding, order, np.append(starts, ends))


def _ordered(coding: Coding, order: np.ndarray, starts: np.ndarray) -> Coding:
    """Return the coding with its rows in sorted order."""
    small = np.uint32 if len(order) < 2**32 else np.int64
    return coding._replace(order=order.astype(small), starts=starts.astype(small))


def placed(X: Any, feature: int, coding: Coding, narrow: int) -> Coding:
    """Return a coding that was found for all parts. Sort this part's rows if it has many codes."""
    if coding.n_codes <= narrow:
        return coding
    column = _read(X, slice(None), slice(feature, feature + 1))[0]
    codes = np.empty(len(column), dtype=np.uint32)
    encode(column, coding.cuts, coding.n_codes - 1, codes)
    order = np.argsort(codes, kind="stable")
    return _ordered(coding, order, np.searchsorted(codes[order], np.arange(coding.n_codes + 1)))


def distinct_values(X: Any, feature: int) -> np.ndarray:
    """Return all distinct values of a feature in ascending order."""
    column = _read(X, slice(None), slice(feature, feature + 1))[0]
    return np.unique(column[~np.isnan(column)])


def n_present(X: Any, blocks: list[slice], threads: Threads) -> np.ndarray:
    """Return the number of rows that have a value, for each feature.

    A dense X is read once, in runs of whole rows. A sparse matrix is read in blocks of features.
    """
    if sparse.issparse(X):
        found = threads.map(lambda b: _n_missing(_read(X, slice(None), b).T), blocks)
        missing = np.concatenate(list(found))
    else:
        runs = row_blocks(X.shape[0], max(_CODED // max(X.shape[1], 1), 1))
        missing = np.sum(list(threads.map(lambda run: _n_missing(X[run]), runs)), axis=0)
    return np.asarray(X.shape[0] - missing, dtype=np.int64)


def _n_missing(X: np.ndarray) -> np.ndarray:
    gaps = np.isnan(X)
    return gaps.sum(axis=0) if gaps.any() else np.zeros(X.shape[1], dtype=np.int64)


def sampled(
    X: Any,
    feature: int,
    weight: np.ndarray,
    missing: bool,
    most: int,
    among: tuple[int, int] | None = None,
) -> Weighted:
    """Return the values and their masses in an even-stride sample of at most ``most`` rows.

    ``missing`` says that some rows have no value. The stride is then over the rows that have one,
    because a sample of all rows might hold few values. If the rows are a part, ``among`` says how
    many rows (with a value) come before them, and how many there are in all parts.
    """
    only = slice(feature, feature + 1)
    if missing:
        column = _read(X, slice(None), only)[0]
        present = np.flatnonzero(~np.isnan(column))
        rows = present[_stride(most, *(among or (0, len(present))))]
        return weighted(column[rows], weight[rows])
    stride = _stride(most, *(among or (0, X.shape[0])))
    return weighted(_read(X, stride, only)[0], weight[stride])


def _stride(most: int, first: int, total: int) -> slice:
    """Return which rows of a part are sampled. Its first row has number ``first`` of ``total``.

    Unlike `Place.sample`, this is a slice, so dense rows are read without a list of their numbers.
    Of more than ``most`` rows, it takes between half of ``most`` and ``most``.
    """
    step = max(-(-total // most), 1)
    return slice(-first % step, None, step)


def binned_coding(sample: Weighted, missing: bool, bins: int) -> Coding:
    """Return the coding with cuts at weighted quantiles."""
    return coding_at(quantile_cuts(*sample, bins), missing)


def coding_at(cuts: np.ndarray, missing: bool) -> Coding:
    """Return the coding with given thresholds."""
    return Coding(cuts, cuts, False, missing)


def listed(
    X: Any,
    features: slice,
    most: int,
    read: int,
    run: slice | None = None,
    complete: bool = False,
) -> list[tuple[np.ndarray, bool]]:
    """Return the distinct values of a few neighbouring features, and whether any is missing.

    If a feature has more than ``most`` values, ``most + 1`` are listed. With ``run``, only these
    rows are read. If the features are ``complete``, no value is missing. Then no row is read after
    the lists are full.
    """
    n = features.stop - features.start
    distinct = np.empty((n, most + 1))
    counts, missing = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    for _, block in _chunks(X, features, read, run):
        survey(block, distinct, counts, missing)
        if complete and (counts > most).all():
            break
    return [(distinct[j, : counts[j]].copy(), bool(missing[j])) for j in range(n)]


def listed_in_runs(
    X: Any, blocks: list[slice], most: int, read: int, threads: Threads
) -> list[tuple[np.ndarray, bool]]:
    """Return the same for every feature. Threads share the features and the rows."""
    runs = runs_of_rows(X)
    jobs = [(features, run) for features in blocks for run in runs]
    found = iter(list(threads.map(lambda job: listed(X, job[0], most, read, job[1]), jobs)))
    out = []
    for _ in blocks:
        parts = zip(*(next(found) for _ in runs), strict=True)
        out += [_listed_together(of_feature, most) for of_feature in parts]
    return out


def _listed_together(
    parts: Sequence[tuple[np.ndarray, bool]], most: int
) -> tuple[np.ndarray, bool]:
    """Return what is listed of a feature, from what is listed of runs of rows."""
    if len(parts) == 1:
        return parts[0]
    values = np.unique(np.concatenate([values for values, _ in parts]))
    return values[: most + 1], any(missing for _, missing in parts)


def most_listed(bins: int | None) -> int:
    """Return how many distinct values of a feature are listed without sorting."""
    return bins or _SURVEY


def coding_of(
    X: Any,
    feature: int,
    values: tuple[np.ndarray, bool],
    weight: np.ndarray,
    bins: int | None,
    categorical: bool,
    limits: StumpLimits,
) -> Coding:
    """Return the coding of a feature. ``values`` is what `listed` says about it."""
    distinct, missing = values
    if len(distinct) <= most_listed(bins):
        return exact_coding(distinct, missing, categorical)
    if bins is None or categorical:
        return _sorted_coding(X, feature, missing, categorical, limits.narrow)
    return binned_coding(sampled(X, feature, weight, missing, limits.sample), missing, bins)


def write_codes(
    X: Any, run: slice, features: slice, how: list[tuple[int, Coding, np.ndarray]], read: int
) -> None:
    """Write the codes of some features for a run of rows.

    ``how`` has the place in the block of features, the coding, and the target for all rows.
    """
    for rows, block in _chunks(X, features, read, run):
        for place, coding, target in how:
            encode(block[place], coding.cuts, coding.n_codes - 1, target[rows])


def survey(block: np.ndarray, listed: np.ndarray, counts: np.ndarray, missing: np.ndarray) -> None:
    """Add the distinct values of a block (features, rows) to sorted lists until they are full."""
    most = listed.shape[1]
    missing |= np.isnan(block).any(axis=1)
    for f, values in enumerate(block):
        low, step = 0, 2 * most  # many lists are full after a few rows
        while low < len(values) and counts[f] < most:
            part, known = values[low : low + step], listed[f, : counts[f]]
            fresh = part[is_new(part, known)] if len(known) else part
            fresh = fresh[~np.isnan(fresh)]
            if len(fresh):
                merged = np.unique(np.append(known, fresh))[:most]
                counts[f] = len(merged)
                listed[f, : len(merged)] = merged
            low, step = low + step, len(values)
