"""Which files a path means."""

import os
from pathlib import Path

import numpy as np
import pytest

from laconic import ShareBoostClassifier
from laconic.beyond.files import files_of
from laconic.beyond.read_again import ReadAgain
from laconic.data.elsewhere import is_path


def touched(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def names_of(files):
    return [file.name for file in files]


def test_folders_and_patterns_are_sorted_and_lists_are_not(tmp_path):
    touched(tmp_path, "b.npy", "a.npy", "c/a.npy", ".hidden.npy", "_meta.npy", "notes.txt")
    assert names_of(files_of(tmp_path)) == ["a.npy", "b.npy", "a.npy"]
    assert names_of(files_of(str(tmp_path / "?.npy"))) == ["a.npy", "b.npy"]
    assert names_of(files_of([tmp_path / "b.npy", str(tmp_path / "a.npy")])) == ["b.npy", "a.npy"]


def test_patterns_match_no_hidden_files(tmp_path):
    touched(tmp_path, "_run/b.pq", "_run/_old.pq", "_run/_log/a.pq", "_run/_SUCCESS", "_run/c/a.pq")
    assert names_of(files_of(str(tmp_path / "_run" / "*.pq"))) == ["b.pq"]
    assert names_of(files_of(str(tmp_path / "_run" / "**" / "*.pq"))) == ["b.pq", "a.pq"]
    assert names_of(files_of(str(tmp_path / "_run" / "[_b]*"))) == ["b.pq"]
    assert names_of(files_of(tmp_path / "_run" / "_old.pq")) == ["_old.pq"]
    with pytest.raises(FileNotFoundError, match="no file matches"):
        files_of(str(tmp_path / "_run" / "_*.pq"))


def test_a_name_with_brackets_is_a_name_if_it_exists(tmp_path):
    touched(tmp_path, "x[1].npy", "x1.npy")
    assert names_of(files_of(tmp_path / "x[1].npy")) == ["x[1].npy"]


def test_endings_in_capitals(tmp_path):
    touched(tmp_path, "A.NPY")
    assert names_of(files_of([tmp_path / "A.NPY"])) == ["A.NPY"]


@pytest.mark.parametrize(("given", "message"), [
    ("none.npy", "none.npy does not exist"),
    ("*.pq", "no file matches"),
    ("empty", "has no .npy or .parquet files"),
])  # fmt: skip
def test_nothing_found(given, message, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=message):
        files_of(str(tmp_path / given))


def test_an_empty_text_is_not_the_current_folder(tmp_path, monkeypatch):
    touched(tmp_path, "a.npy")
    monkeypatch.chdir(tmp_path)
    assert names_of(files_of(".")) == ["a.npy"]
    with pytest.raises(FileNotFoundError, match="an empty text names no file"):
        files_of("")


def test_any_list_of_paths_is_files():
    assert all(map(is_path, (["a.npy"], ["rows"], ["rows/*"], ["a.csv", Path("b")], "rows")))
    assert not any(map(is_path, ([], [[1.0]], [1], np.zeros(2), None)))


def test_other_kinds(tmp_path):
    touched(tmp_path, "a.npy", "b.parquet", "c.csv")
    with pytest.raises(ValueError, match=r"c\.csv must be a \.npy or a \.parquet file"):
        files_of(tmp_path / "c.csv")
    with pytest.raises(ValueError, match=r"files must be of one kind, not \.npy and Parquet"):
        files_of(tmp_path)


@pytest.mark.parametrize("name", ["a.npy", "a.parquet"])
@pytest.mark.parametrize("text", [b"", b"no rows", b"\x93NUMPY\x01\x00", b"PAR1 and no more"])
def test_damaged_files(name, text, tmp_path):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(text)
    with pytest.raises(ValueError, match=rf"{name} cannot be read as a"):
        ShareBoostClassifier(2, pool="stumps").fit(tmp_path / name, "y" * name.endswith("t"))


def test_a_file_that_was_cut_off(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((100, 3)))
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(whole[:-100])
    with pytest.raises(ValueError, match=r"a\.npy cannot be read as a \.npy file of numbers"):
        ShareBoostClassifier(2).fit(tmp_path / "a.npy", np.zeros(100))


@pytest.mark.parametrize("given", ["rows", "rows/*/*.parquet", "rows/**/a.parquet"])
def test_columns_in_names_of_folders_are_refused(given, tmp_path):
    """They would be missing without a word."""
    touched(tmp_path, "rows/town=Oslo/a.parquet", "rows/town=Rome/a.parquet")
    with pytest.raises(ValueError, match=r"names of its folders, such as 'town=Oslo'; write these"):
        files_of(str(tmp_path / given))


@pytest.mark.parametrize("given", ["", "a.parquet", "*.parquet", "?.parquet"])
def test_one_folder_of_any_name_may_be_given(given, tmp_path):
    touched(tmp_path, "run=3/rows/a.parquet")
    assert names_of(files_of(str(tmp_path / "run=3" / "rows" / given))) == ["a.parquet"]


@pytest.mark.parametrize("kind", ["rows", "labels", "parquet"])
def test_a_file_that_is_changed_during_a_fit_is_refused(kind, tmp_path, npy_files, monkeypatch):
    X, y = np.random.default_rng(0).standard_normal((100, 2)), np.arange(100) % 2
    files, labels = npy_files([X[:50], X[50:]]), npy_files([y[:50], y[50:]], "y")
    given, changed = (files, labels), {"rows": files[1], "labels": labels[1]}.get(kind)
    if kind == "parquet":
        pq = pytest.importorskip("pyarrow.parquet")
        table = pytest.importorskip("pyarrow").table({"a": X[:, 0], "label": y})
        changed = str(tmp_path / "rows.parquet")
        pq.write_table(table, changed, row_group_size=25)
        given = changed, "label"
    asked, ask = [], ReadAgain.ask

    def ask_and_change(self, question, *more):
        asked.append(question)
        if len(asked) == 3:
            os.utime(changed, ns=(0, 0))
        return ask(self, question, *more)

    monkeypatch.setattr(ReadAgain, "ask", ask_and_change)
    with pytest.raises(ValueError, match="was changed while its rows were in use; start again"):
        ShareBoostClassifier(2, pool="stumps").fit(*given)
