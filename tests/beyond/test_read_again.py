"""Parts are read again: what stays in memory, scratch files, checkpoints, interrupts."""

import errno
import tempfile
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone

from laconic import ShareBoostClassifier
from laconic.beyond.read_again import ReadAgain
from laconic.beyond.scratch import is_mapped, on_disk
from laconic.numeric.threads import Threads
from laconic.pools import Bumps, Columns, Hinges, Mixed, Patches, Pieces, Products, Rules, Stumps
from rows.test_shards import images, table

CODED = [Stumps(3), Stumps(None), Rules(2), Hinges(3, 2), Mixed([Stumps(2), Rules(2)])]
OTHERS = [
    Columns(),
    Products(),
    Pieces(3, 2),
    Bumps(3, 2),
    Patches((6, 5), 2, 3, (2, 1), 1.0),
    Mixed([Columns(), Stumps(3)]),
]


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """The folder of scratch files."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def bound(monkeypatch):
    """Whether the rows that each pool was bound to are a memory map."""
    seen = {}

    def watch(pool):
        for own in getattr(pool, "pools", [pool]):
            bind, kind = type(own).bind, type(own)

            def noted(self, X, *rest, bind=bind, kind=kind):
                if X.shape[0] > 1:  # not the pattern
                    seen.setdefault(kind, []).append(is_mapped(X))
                return bind(self, X, *rest)

            monkeypatch.setattr(kind, "bind", noted)
        return seen

    return watch


def rows_of(pool):
    X, y = images() if isinstance(pool, Patches) else table()
    return X[:, 2:5] if isinstance(pool, Pieces | Bumps) else X, y


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
@pytest.mark.parametrize("pool", OTHERS, ids=lambda pool: type(pool).__name__)
def test_rows_of_pools_without_codes_are_on_disk(pool, dtype, map_of, scratch, bound):
    """Numbers in single precision are read where they are. Whole numbers go to scratch files."""
    X, y = rows_of(pool)
    seen = bound(pool)
    ShareBoostClassifier(2, pool=pool).fit(map_of((9 * X).astype(dtype)), y)
    assert all(len(maps) == 3 and all(maps) for maps in seen.values())
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("pool", CODED, ids=lambda pool: type(pool).__name__)
def test_pools_of_codes_need_no_scratch_files(pool, map_of, monkeypatch):
    X, y = table()
    monkeypatch.setattr(tempfile, "TemporaryFile", None)
    ShareBoostClassifier(2, pool=pool).fit(map_of(np.round(9 * X).astype(np.int16)), y)


def test_patches_keep_bytes_in_memory_and_images_on_disk(map_of):
    X, y = images()
    pool = Patches((6, 5), 2, 3, (2, 1), 1.0)
    kept = []
    bind = Patches.bind

    class Seen(Patches):
        def bind(self, *rows):
            kept.append(bind(self, *rows))
            return kept[-1]

    ShareBoostClassifier(2, pool=Seen(**pool.get_params())).fit(map_of(X.astype("f")), y)
    for each in kept[:3]:
        assert each._stored.dtype == np.uint8
        assert is_mapped(each._X)


@pytest.mark.parametrize("order", ["C", "F"])
def test_scratch_files_have_the_same_numbers_in_the_same_order(order, scratch):
    X = np.asarray(np.random.default_rng(0).random((7, 3)), order=order)
    for given in (X, X[1:5], X[::2, ::2]):
        copy = on_disk(given)
        assert is_mapped(copy)
        assert is_mapped(copy[1:])
        np.testing.assert_array_equal(copy, given)
        assert copy.flags.c_contiguous or given.flags.f_contiguous
        assert on_disk(copy) is copy
    assert list(scratch.iterdir()) == []
    empty = np.zeros((0, 3))
    assert on_disk(empty) is empty


def test_a_full_disk_says_how_to_use_another(map_of, full_disk, scratch):
    X, y = table()
    rows = map_of((9 * X).astype(np.int16))
    with full_disk(1000), pytest.raises(OSError, match=r"(?s)2\.4 MB|0\.0 MB") as caught:
        ShareBoostClassifier(2).fit(rows, y)
    assert caught.value.errno == errno.EFBIG
    assert f"cannot be written to {scratch}" in str(caught.value)
    assert "set the environment variable TMPDIR to a folder with more room" in str(caught.value)
    assert list(scratch.iterdir()) == []


def press(state):
    if state.last.size == 2:
        raise KeyboardInterrupt


@pytest.mark.parametrize("pool", ["stumps", "columns"])
def test_checkpoints(pool, map_of, npy_files, tmp_path, scratch, assert_identical):
    """An interrupted fit goes on, and ends with the same bits. Other rows are refused."""
    X, y = table()
    rows = map_of(np.round(9 * X).astype(np.int16))
    model = ShareBoostClassifier(5, pool=pool, checkpoint=tmp_path / "fit")
    with pytest.warns(UserWarning, match="interrupted"):
        clone(model).set_params(callbacks=[press]).fit(rows, y)
    assert list(scratch.iterdir()) == []
    whole = ShareBoostClassifier(5, pool=pool).fit(rows, y)
    assert_identical(model.fit(rows, y), whole)
    other = np.array(rows)
    other[100, 2] += 1
    for changed, labels in ((other, y), (np.array(rows), np.where(np.arange(120) == 70, 1, y))):
        with pytest.raises(ValueError, match="checkpoint"):
            clone(model).fit(npy_files([changed]), labels)
    assert_identical(clone(model).fit(npy_files([rows]), y), whole)  # the same rows elsewhere


def test_an_error_of_a_later_part_leaves_nothing(map_of, scratch):
    X, y = table()
    gaps = X.copy()
    gaps[110] = np.nan
    with pytest.raises(ValueError, match=r"NaN.*\(in X from row 100\)"):
        ShareBoostClassifier(2).fit(map_of(gaps), y)
    assert list(scratch.iterdir()) == []


class Counted:
    """A part that counts how often it is read."""

    read: ClassVar[int] = 0

    def __call__(self):
        type(self).read += 1
        return np.arange(3)


def test_parts_are_read_each_time_and_one_after_the_other():
    with Threads(1) as threads:
        parts = ReadAgain([Counted()] * 4, threads)
        seen = parts.seen_as(lambda part, _, more: part + more, (2,))
        assert Counted.read == 0
        assert seen.ask(lambda part, _, own: part.sum() + own, (), [0, 1, 2, 3]) == [9, 10, 11, 12]
        assert Counted.read == 4
        kept = seen.chosen([1, 2]).become(lambda part, _: part)
        assert Counted.read == 6
        kept.ask(lambda part, _: part)
        assert Counted.read == 6
        assert kept.n_parts == 2
