"""Codes of values are their ranks among cuts, found by NumPy's binary search."""

import numpy as np
import pytest

from laconic.numeric.threads import Threads
from laconic.pools import codings
from laconic.pools.codings import listed, listed_in_runs
from laconic.pools.ranks import _RANKED, encode, is_new


@pytest.mark.parametrize("n", [1, _RANKED - 1, 2 * _RANKED + 3])
@pytest.mark.parametrize("n_cuts", [0, 1, 200])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_codes_are_ranks_and_missing_values_have_the_last_code(n, n_cuts, dtype):
    rng = np.random.default_rng(n)
    values = rng.integers(-150, 150, n) / 2.0
    values[rng.random(n) < 0.1] = np.nan
    cuts = np.sort(rng.choice(np.arange(-150, 150), n_cuts, replace=False)) / 2.0
    out = np.empty(n, dtype=dtype)
    encode(values, cuts, n_cuts + 1, out)
    known = np.where(np.isnan(values), n_cuts + 1, np.searchsorted(cuts, values))
    np.testing.assert_array_equal(out, known)


def test_values_that_are_not_in_a_list_are_new():
    values = np.array([3.0, -1.0, 2.0, np.nan, 9.0, 0.0])
    np.testing.assert_array_equal(
        is_new(values, np.array([-1.0, 0.0, 3.0])), [False, False, True, True, True, False]
    )


@pytest.mark.parametrize("most", [3, 5, 100])
def test_values_listed_in_runs_of_rows_are_those_of_all_rows(monkeypatch, most):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, d, 500) for d in (2, 4, 5, 6, 90)]).astype(float)
    X[-1, 1] = np.nan  # a value is missing in the last run only
    blocks = [slice(0, 2), slice(2, 5)]
    whole = [of for block in blocks for of in listed(X, block, most, 64)]
    monkeypatch.setattr(codings, "_CODED", 60)
    with Threads(3) as threads:
        found = listed_in_runs(X, blocks, most, 64, threads)
    for (values, missing), (known, known_missing) in zip(found, whole, strict=True):
        assert missing == known_missing
        assert len(values) == len(known)
        if len(known) <= most:  # of more, any are listed
            np.testing.assert_array_equal(values, known)
