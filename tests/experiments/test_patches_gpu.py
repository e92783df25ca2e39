"""The twin on a GPU against the library's own fit, on a processor."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from laconic import ShareBoostClassifier
from laconic.pools import Patches


@pytest.mark.parametrize("costs", [None, "operations"])
def test_twin_chooses_the_same_patches_with_the_same_weights(costs):
    pytest.importorskip("torch")
    import patches_gpu

    X, y = load_digits(return_X_y=True)
    X, y = X[:600].astype(np.float32) / 16, y[:600]
    pool = Patches(
        n_templates=20,
        template_size=(3, 4),
        mask_grid=2,
        mask_sigma=(1.5, 3.0),
        storage="float32",
    )
    entries = patches_gpu.fit(X, y, pool, 12, 1e-3, "cpu", costs, steps=200)
    path = ShareBoostClassifier(12, pool=pool, alpha=1e-3, tol=1e-8, costs=costs).fit(X, y).path_
    assert [e.numbers for e in entries] == [e.numbers for e in path]
    assert [e.map.operations() for e in entries] == [e.map.operations() for e in path]
    np.testing.assert_allclose([e.loss for e in entries], path.losses, atol=1e-4)
    last = path.entries[-1]
    assert entries[-1].loss == pytest.approx(last.loss, abs=1e-6)
    np.testing.assert_allclose(entries[-1].weights, last.input_weights(), atol=1e-4)
