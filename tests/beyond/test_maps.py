"""Files of memory maps that are overwritten, replaced or deleted while a fit reads them."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

from laconic import ShareBoostClassifier, TotalQBoostClassifier
from laconic.beyond.maps import file_of_map
from laconic.beyond.read_again import ReadAgain
from problems import saving_always
from rows.test_shards import table

X, Y = table()
REFUSED = "was changed while its rows were in use; start again"


def overwrite(path):
    """Write a number in place, as another program may do. The size stays."""
    with Path(path).open("r+b") as file:
        file.seek(-8, 2)
        file.write(np.float64(7.0).tobytes())


def write_through_a_map(path):
    np.load(path, mmap_mode="r+")[-1, -1] = 7.0


def replace(path):
    """Put another file of the same size in its place. A map keeps the old one."""
    new = Path(path).with_suffix(".new")
    np.save(new.open("wb"), np.full_like(np.load(path), 7.0))
    new.replace(path)


def delete(path):
    Path(path).unlink()


def after(size, do, path):
    """Return a callback that does something to a file once a model has so many atoms."""
    return [lambda state: do(path) if state.last.size == size else None]


@pytest.fixture
def old_map(map_of):
    """Write an array to a .npy file of long ago, as clocks of files are coarse. Return a map."""

    def write(*array_and_name):
        rows = map_of(*array_and_name)
        os.utime(rows.filename, ns=(0, 0))
        return rows

    return write


@pytest.fixture
def during_a_question(monkeypatch):
    """Do something at the n-th question to all parts, when the first was answered."""

    def at(number, do, path):
        asked, read = [], ReadAgain._read

        def reading(self, part):
            asked.append(part)
            if asked.count(1) == number and part == 1:
                do(path)
            return read(self, part)

        monkeypatch.setattr(ReadAgain, "_read", reading)

    return at


@pytest.mark.parametrize("pool", ["stumps", "columns"])
@pytest.mark.parametrize("number", [1, 2])
def test_a_map_that_is_overwritten_before_the_first_round(pool, number, old_map, during_a_question):
    rows = old_map(X)
    during_a_question(number, overwrite, rows.filename)
    with pytest.raises(ValueError, match=f"map.npy {REFUSED}"):
        ShareBoostClassifier(2, pool=pool).fit(rows, Y)


@pytest.mark.parametrize("change", [overwrite, write_through_a_map])
@pytest.mark.parametrize("given", ["map", "view", "files"])
def test_rows_that_are_overwritten_between_two_rounds(given, change, old_map):
    rows = old_map(X)
    path = rows.filename
    settings = {"pool": "columns", "callbacks": after(1, change, path)}
    given = {"map": rows, "view": np.asarray(rows), "files": [path]}[given]
    for model in (ShareBoostClassifier(4, **settings), TotalQBoostClassifier(4, **settings)):
        with pytest.raises(ValueError, match=f"map.npy {REFUSED}"):
            model.fit(given, Y > 0)
    with pytest.raises(ValueError, match=f"map.npy {REFUSED}"):
        model.fit_path(given, Y > 0, price=[0.01, 0.0])


def test_a_checkpoint_has_no_round_that_read_changed_rows(old_map, tmp_path, assert_identical):
    """The file is restored later, so that the checkpoint belongs to its rows."""
    rows = old_map(X)
    whole = ShareBoostClassifier(4, pool="columns").fit(rows, Y)

    def change(path):
        np.load(path, mmap_mode="r+")[:] = -3 * X

    settings = {"pool": "columns", "checkpoint": tmp_path / "checkpoint"}
    broken = ShareBoostClassifier(4, callbacks=after(1, change, rows.filename), **settings)
    with pytest.raises(ValueError, match=REFUSED):
        saving_always(broken).fit(rows, Y)
    assert_identical(whole, ShareBoostClassifier(4, **settings).fit(old_map(X), Y))


@pytest.mark.parametrize("what", ["labels", "weights"])
def test_labels_and_weights_of_a_map(what, old_map, during_a_question):
    rows, labels, weight = old_map(X), old_map(Y, "y.npy"), old_map(np.ones(120), "w.npy")
    changed = labels if what == "labels" else weight
    during_a_question(2, overwrite, changed.filename)
    with pytest.raises(ValueError, match=f"{Path(changed.filename).name} {REFUSED}"):
        ShareBoostClassifier(2, pool="stumps").fit(rows, labels, sample_weight=weight)


@pytest.mark.parametrize("change", [replace, delete])
@pytest.mark.parametrize("pool", ["stumps", "columns"])
def test_a_map_keeps_the_rows_of_a_file_that_is_replaced_or_deleted(
    pool, change, old_map, during_a_question, assert_identical
):
    one, other, third = (ShareBoostClassifier(3, pool=pool) for _ in range(3))
    one.fit(old_map(X), Y)
    rows = old_map(X)
    third.set_params(callbacks=after(1, change, rows.filename))
    assert_identical(one, third.fit(rows, Y))
    rows = old_map(X)
    during_a_question(2, change, rows.filename)
    assert_identical(one, other.fit(rows, Y))


@pytest.mark.parametrize(("pool", "dtype"), [("stumps", float), ("columns", np.int64)])
def test_rows_that_are_no_longer_read_may_be_overwritten(pool, dtype, old_map, assert_identical):
    """Stumps keep codes, and whole numbers are in a scratch file."""
    whole = np.round(9 * X).astype(dtype)
    one, other = (ShareBoostClassifier(3, pool=pool) for _ in range(2))
    one.fit(old_map(whole), Y)
    rows = old_map(whole)
    other.set_params(callbacks=after(1, overwrite, rows.filename))
    assert_identical(one, other.fit(rows, Y))
    assert rows[-1, -1] != whole[-1, -1]


def test_what_was_written_before_a_fit_changes_nothing(tmp_path, assert_identical):
    rows = np.lib.format.open_memmap(tmp_path / "a.npy", "w+", X.dtype, X.shape)
    rows[:] = X
    one, other = (ShareBoostClassifier(3, pool="columns") for _ in range(2))
    one.fit(rows.copy(), Y)
    rows.flush()
    rows[0] = X[0]
    other.fit(rows, Y)
    assert one.atoms_ == other.atoms_
    np.testing.assert_allclose(one.atom_coef_, other.atom_coef_, rtol=1e-5)
    rows[0, 0] += 1.0
    other.set_params(callbacks=[lambda state: rows.__setitem__((5, 0), 9.0)])
    with pytest.raises(ValueError, match=f"a.npy {REFUSED}"):
        other.fit(rows, Y)


def test_a_map_without_a_name_is_read(assert_identical, old_map):
    with tempfile.TemporaryFile() as file:
        rows = np.memmap(file, X.dtype, "w+", shape=X.shape)
        rows[:] = X
        assert file_of_map(rows) is None
        one, other = (ShareBoostClassifier(3, pool="columns") for _ in range(2))
        assert_identical(one.fit(old_map(X), Y), other.fit(rows, Y))
