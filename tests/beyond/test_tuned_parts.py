"""Atoms are tuned on Dask collections and on rows in files as on rows in memory."""

import os

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

from laconic import ShareBoostClassifier, TotalQBoostClassifier
from laconic.beyond import to_tune
from laconic.beyond.scratch import is_mapped
from laconic.pools import Bumps, Hinges, Pieces
from laconic.tune import Tuning
from laconic.tune.descent import Descent

CUTS = (50, 51, 100, 150)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return np.ascontiguousarray(X[:200, 20:40], dtype=np.float32), y[:200] % 3


def booster(epochs=2, **settings):
    own = {"pool": Hinges(10, 3), "random_state": 0, "alpha": 1e-3, "n_jobs": 1}
    tuning = Tuning(epochs=epochs, batch_size=40)
    return ShareBoostClassifier(3, tune=tuning, **{**own, **settings})


@pytest.fixture(scope="module")
def near(digits):
    return booster().fit(*digits)


def assert_close(model, near):
    assert any(map(near.path_.is_tuned, near.path_.sizes))
    assert any(map(model.path_.is_tuned, model.path_.sizes))
    assert model.path_[3].loss == pytest.approx(near.path_[3].loss, rel=1e-4)
    np.testing.assert_allclose(model.atom_coef_, near.atom_coef_, rtol=1e-2, atol=1e-4)


@pytest.mark.long
def test_workers_never_change_a_bit(digits, near):
    dask_rows = pytest.importorskip("dask_rows")
    X, y = (dask_rows.array_of(array, CUTS) for array in digits)
    here = booster().fit(X, y)
    assert_close(here, near)
    for number in (1, 2, 3):
        with dask_rows.workers(number) as client, client.as_current():
            there = booster().fit(X, y)
        assert there.atoms_ == here.atoms_
        assert there.atom_coef_.tobytes() == here.atom_coef_.tobytes()
        assert there.path_[3].loss == here.path_[3].loss


def test_partitions_may_be_empty_or_of_unknown_length(digits, near, anywhere):
    dask_rows = pytest.importorskip("dask_rows")
    X, y = digits
    frame = pd.DataFrame(X, columns=[f"f{n}" for n in range(20)]).assign(label=y)
    there = dask_rows.frame_of(frame, (0, *CUTS, 200))
    assert_close(booster().fit(there, "label"), near)


def test_files(digits, near, npy_files):
    X, y = digits
    paths = npy_files(np.split(X, CUTS))
    assert_close(booster().fit(paths, y), near)


def test_large_maps(digits, near, map_of):
    X, y = digits
    assert_close(booster().fit(map_of(X), y), near)


def test_parquet_files(digits, near, parquet_file):
    X, y = digits
    frame = pd.DataFrame(X, columns=[f"f{n}" for n in range(20)]).assign(label=y)
    assert_close(booster().fit(str(parquet_file(frame)), "label"), near)


def test_weights_of_zero_leave_rows_out(digits, npy_files):
    X, y = digits
    weight = np.arange(200) % 4 > 0
    near = booster().fit(X, y, sample_weight=1.0 * weight)
    far = booster().fit(npy_files(np.split(X, CUTS)), y, sample_weight=1.0 * weight)
    assert_close(far, near)


def test_files_that_change_while_atoms_are_tuned_are_refused(digits, npy_files, monkeypatch):
    X, y = digits
    paths, step = npy_files(np.split(X, CUTS)), Descent.step

    def changed(self, batch):
        os.utime(paths[1], ns=(1, 1))
        step(self, batch)

    monkeypatch.setattr(Descent, "step", changed)
    with pytest.raises(ValueError, match=r"x1.npy was changed while its rows were in use"):
        booster().fit(paths, y)


@pytest.mark.parametrize("pool", [Hinges(10, 3), Bumps(10, 3), Pieces(10, 3, soft=True)], ids=str)
def test_rows_of_files_stay_on_the_disk(pool, digits, npy_files, monkeypatch):
    X, y = digits
    seen, plain = [], to_tune.TrainingInParts.rows

    def rows(self, asked):
        seen.extend(part[0] for part in self.parts.items)
        return plain(self, asked)

    near = booster(pool=pool).fit(X, y)
    monkeypatch.setattr(to_tune.TrainingInParts, "rows", rows)
    assert_close(booster(pool=pool).fit(npy_files(np.split(X, CUTS)), y), near)
    assert len(seen) > 2 * 5
    assert all(map(is_mapped, seen))


@pytest.mark.parametrize("where", ["files", "dask"])
def test_a_checkpoint_of_tuning_is_used_again(where, digits, npy_files, tmp_path, monkeypatch):
    X, y = digits
    if where == "files":
        X = npy_files(np.split(X, CUTS))
    else:
        dask_rows = pytest.importorskip("dask_rows")
        X, y = dask_rows.array_of(X, CUTS), dask_rows.array_of(y, CUTS)
    expected = booster().fit(X, y)
    sums, asked, kept = to_tune.RowsInParts.sums, [], {"checkpoint": tmp_path / "fit.checkpoint"}

    def failing(self, *given):
        asked.append(given)
        if len(asked) == 8:  # in the second of two epochs
            raise OSError("the disk is gone")
        return sums(self, *given)

    monkeypatch.setattr(to_tune.RowsInParts, "sums", failing)
    with pytest.raises(OSError, match="the disk is gone"):
        booster(**kept).fit(X, y)
    resumed = booster(**kept).fit(X, y)
    assert any(map(resumed.path_.is_tuned, resumed.path_.sizes))
    assert resumed.atom_coef_.tobytes() == expected.atom_coef_.tobytes()
    assert len(asked) == 8 + 4 + 1


def test_totalqboost_is_tuned_on_parts(npy_files):
    X, y = load_digits(return_X_y=True)
    X, y = X[:300].astype(np.float32), y[:300] % 3 > 0
    tuning, settings = Tuning(epochs=10), {"random_state": 0, "n_jobs": 1}
    model = TotalQBoostClassifier(3, pool=Hinges(10, 3), price=1e-3, tune=tuning, **settings)
    near = clone(model).fit(X, y)
    far = clone(model).fit(npy_files(np.split(X, CUTS)), y)
    assert_close(far, near)
