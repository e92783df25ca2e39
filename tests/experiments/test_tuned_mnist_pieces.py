"""The experiment on a small set of images: what it writes, and how it makes copies."""

import json
import sys

import numpy as np
import pytest
import share_mnist_pieces
import tuned_mnist_pieces as experiment
from sklearn.decomposition import PCA

from laconic.deform import Deform


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A folder with a small set of images, for an experiment of the same size."""
    rng = np.random.default_rng(0)
    looks = rng.integers(0, 200, (3, 8, 8))
    y = rng.integers(0, 3, 360)
    images = np.clip(looks[y] + rng.integers(0, 120, (360, 8, 8)), 0, 255).astype(np.uint8)
    np.savez(
        tmp_path / "mnist.npz",
        X_train=images[:300], y_train=y[:300], X_test=images[300:], y_test=y[300:],
    )  # fmt: skip
    monkeypatch.setattr(share_mnist_pieces, "DIMENSIONS", 6)
    monkeypatch.setitem(experiment.POOL, "n_radii", 3)
    monkeypatch.setattr(experiment, "HELD_OUT", 60)
    return tmp_path


@pytest.mark.parametrize("kind", ["plain", "noisy", "deformed"])
def test_errors_of_both_forms_are_written(small, kind, monkeypatch):
    file = small / "pieces.json"
    command = ["tuned_mnist_pieces.py", "--kind", kind, "--sizes", 2, 3, "--epochs", 2]
    command += ["--centres", 10, "--data", small, "--json", file, "--choose", "--seeds", 2]
    monkeypatch.setattr(sys, "argv", [str(word) for word in command])
    experiment.main()
    results = json.loads(file.read_text())["results"]
    assert [run["seed"] for run in results["runs"]] == [0, 1]
    assert [told["atoms"] for told in results["means"]] == [2, 3]
    for told in results["means"]:
        assert 0 <= told["error chosen"] < 30
        assert 0 <= told["error tuned"] < 30


def test_copies_are_components_of_deformed_images():
    images = np.random.default_rng(1).uniform(0, 1, (90, 64)).astype(np.float32)
    pca = PCA(64, svd_solver="covariance_eigh").fit(images)
    deform = Deform(rotation=5.0, random_state=0)
    made = experiment.DeformedComponents(pca, deform)
    X = pca.transform(images)
    found = made.copies_of(X, 3)
    assert found.shape == X.shape
    np.testing.assert_allclose(found, pca.transform(deform.copies_of(images, 3)), atol=1e-3)
    assert np.abs(found - made.copies_of(X, 4)).max() > 0.01
