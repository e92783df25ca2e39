"""The experiment on a small set of images: what it writes, and which rows it reads."""

import json
import sys

import numpy as np
import pytest
import share_mnist_pieces as experiment


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
    for name in ("POOL", "GRID"):
        monkeypatch.setattr(experiment, name, dict(getattr(experiment, name)))
    experiment.POOL.update(n_centres=10, n_radii=3)
    experiment.GRID.update(strengths=(2.0, 5.0), gammas=(0.03,))
    monkeypatch.setattr(experiment, "DIMENSIONS", 6)
    monkeypatch.setattr(experiment, "SHOWN", (1, 2, 3))
    return tmp_path


def test_results_and_figure_lie_beside_each_other(small, monkeypatch, capsys):
    file = small / "results" / "pieces.json"
    command = ["share_mnist_pieces.py", "--balls", "3", "--data", small, "--json", file]
    monkeypatch.setattr(sys, "argv", [str(word) for word in command])
    experiment.main()
    results = json.loads(file.read_text())["results"]
    ours, svm = results["pieces"], results["svm"]
    assert ours["sizes"] == [1, 2, 3]
    assert 0 <= ours["test"][-1] < 0.2
    assert (svm["C"], svm["gamma"]) in {(t["C"], t["gamma"]) for t in svm["tried"]}
    assert len(svm["tried"]) == 2
    assert file.with_suffix(".png").stat().st_size > 1000
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith(("pieces", "SVM"))] == [
        "pieces",
        "SVM",
    ]


def test_settings_are_chosen_on_training_rows_and_compared_on_others(monkeypatch):
    monkeypatch.setattr(experiment, "HELD", 30)
    monkeypatch.setattr(experiment, "TUNED_ON", 50)
    number = np.arange(200)
    X, y = number[:, None].astype(float), number % 7
    fit, y_fit, held, y_held = experiment.parts(X, y, seed=0)
    assert (len(fit), len(held)) == (50, 30)
    assert len(np.unique(fit)) == 50
    np.testing.assert_array_equal(held[:, 0], number[-30:])
    assert not np.isin(fit, held).any()
    np.testing.assert_array_equal(y_fit, fit[:, 0] % 7)
    np.testing.assert_array_equal(y_held, held[:, 0] % 7)
    again, other = (experiment.parts(X, y, seed)[0] for seed in (0, 1))
    np.testing.assert_array_equal(again, fit)
    assert not np.array_equal(other, fit)
    # Few rows leave some to fit: a fifth is held.
    assert [len(part) for part in experiment.parts(X[:20], y[:20], 0)] == [16, 16, 4, 4]


def test_no_test_row_is_read_before_the_settings_are_known(monkeypatch):
    rng = np.random.default_rng(0)
    X, X_test = rng.standard_normal((60, 3)), 100 + rng.standard_normal((20, 3))
    y, y_test = np.arange(60) % 2, np.arange(20) % 2
    seen = []

    def spy(*rows, **grid):
        seen.append((rows, grid))
        return experiment_chooser(*rows, **grid)

    experiment_chooser = experiment.choose_svm
    monkeypatch.setattr(experiment, "choose_svm", spy)
    svm = experiment.support_vectors(X, y, X_test, y_test, seed=0)
    [((fit, _, held, _), grid)] = seen
    assert max(fit.max(), held.max()) < 50
    assert grid == experiment.GRID
    best = min(svm["tried"], key=lambda t: t["error"])
    assert (svm["C"], svm["gamma"]) == (best["C"], best["gamma"])
