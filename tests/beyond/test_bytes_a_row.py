"""Bytes of a fit that grow with the number of rows."""

import tracemalloc

import numpy as np
import pytest

from laconic import ShareBoostClassifier
from laconic.beyond import npy
from laconic.pools import Stumps
from laconic.pools.stump_limits import StumpLimits


@pytest.fixture
def peak(tmp_path, monkeypatch):
    """Fit three stumps to some rows in single precision. Return the peak of the last two rounds.

    Kernels are compiled before anything is traced, because the compiler is slow while it is traced.
    """
    monkeypatch.setattr(npy, "CHUNK", 49_152)
    monkeypatch.setattr(Stumps, "_limits", StumpLimits(sample=10_000))
    paths = tmp_path / "X.npy", tmp_path / "y.npy"

    def fit(rows, traced=True):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((rows, 20), dtype=np.float32)
        y = X[:, :10].sum(axis=1) + rng.logistic(size=rows) > 0
        for path, values in zip(paths, (X, y), strict=True):
            np.save(path, values)
        del X, y, values

        def forget(state):
            if traced and state.last.size == 1:
                tracemalloc.reset_peak()

        model = ShareBoostClassifier(3, pool="stumps", n_jobs=1, callbacks=[forget])
        if not traced:
            return model.fit(*paths)
        tracemalloc.start()
        try:
            model.fit(*paths)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    return fit


def test_stumps_take_little_more_than_their_codes(peak):
    """20 bytes of codes, 8 of probabilities, 1 of labels, and 1 of the columns that are in."""
    few, many = 98_304, 196_608
    peak(few, traced=False)  # the kernels of so many rows
    peak(few)  # what is kept between fits
    assert (peak(many) - peak(few)) / (many - few) == pytest.approx(30, abs=1.5)
