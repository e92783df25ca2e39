"""The twin on a GPU against the library's own fit, on a processor."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from laconic import ShareBoostClassifier
from laconic.pools import Patches


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600].astype(np.float32) / 16, y[:600]


def pool():
    return Patches(
        n_templates=20,
        template_size=(3, 4),
        mask_grid=2,
        mask_sigma=(1.5, 3.0),
        storage="float32",
    )


@pytest.mark.parametrize("costs", [None, "operations"])
def test_twin_chooses_the_same_patches_with_the_same_weights(digits, costs):
    pytest.importorskip("torch")
    import patches_gpu

    entries = patches_gpu.fit(*digits, pool(), 6, 1e-3, "cpu", costs, steps=150)
    path = (
        ShareBoostClassifier(6, pool=pool(), alpha=1e-3, tol=1e-8, costs=costs).fit(*digits).path_
    )
    assert [e.numbers for e in entries] == [e.numbers for e in path]
    assert [e.map.operations() for e in entries] == [e.map.operations() for e in path]
    np.testing.assert_allclose([e.loss for e in entries], path.losses, atol=1e-4)
    last = path.entries[-1]
    assert entries[-1].loss == pytest.approx(last.loss, abs=1e-6)
    np.testing.assert_allclose(entries[-1].weights, last.input_weights(), atol=1e-4)


def test_few_steps_a_round_cost_little_of_the_loss(digits):
    """The steps that the experiment takes: other patches by and by, nearly as good."""
    pytest.importorskip("torch")
    import patches_gpu

    entries = patches_gpu.fit(*digits, pool(), 12, 1e-3, "cpu")
    path = ShareBoostClassifier(12, pool=pool(), alpha=1e-3, tol=1e-6).fit(*digits).path_
    assert entries[-1].loss <= 1.1 * path.losses[-1]


def test_weights_for_given_patches_are_the_optimum(digits):
    pytest.importorskip("torch")
    import patches_gpu

    path = ShareBoostClassifier(6, pool=pool(), alpha=1e-3, tol=1e-8).fit(*digits).path_
    last = path.entries[-1]
    small, whole = patches_gpu.reweigh(*digits, last.map, [3, 6], 1e-3, "cpu")
    assert (small.size, whole.size) == (3, 6)
    assert whole.loss == pytest.approx(last.loss, abs=1e-5)
    assert small.loss == pytest.approx(path[3].loss, abs=1e-5)
