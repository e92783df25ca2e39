"""An asynchronous client of Dask is refused with a sentence that says what to do."""

import asyncio

import numpy as np
import pytest

from laconic import ShareBoostClassifier

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")


@pytest.mark.parametrize("method", ["fit", "score"])
def test_an_asynchronous_client_is_refused(method):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 2)), np.arange(20) % 2
    model = ShareBoostClassifier(1).fit(X, y)
    rows = da.from_array(X, chunks=(10, 2)), da.from_array(y, chunks=10)

    async def asked():
        settings = {"processes": False, "n_workers": 1, "dashboard_address": None}
        async with distributed.Client(asynchronous=True, **settings):
            with pytest.raises(TypeError, match="asynchronous, and fit and score wait"):
                getattr(model, method)(*rows)

    asyncio.run(asked())
