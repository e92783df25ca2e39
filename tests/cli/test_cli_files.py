"""What the commands write: tried first, kept apart from what they read, whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from test_cli import error_of, run

from laconic import Predictor, ShareBoostClassifier

# Big enough that a model of one column and a line of text are written, and a page is not.
SMALL = 4000

MAIN = "from laconic.cli.main import main; import sys; sys.exit(main(sys.argv[1:]))"


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(0, 1, (900, 3)), columns=["a", "b", "c"])
    return X.assign(label=np.where((X.a > 0.5) ^ ((X.b > 0.7) & (X.c > 0.5)), "yes", "no"))


@pytest.fixture
def folder(rows, tmp_path, monkeypatch):
    """The working folder: a table, and a model of it."""
    rows.to_csv(tmp_path / "rows.csv", index=False)
    model = ShareBoostClassifier(1).fit(rows[["a", "b", "c"]], rows.label)
    model.predictor_.save(tmp_path / "old.laconic")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_reading(monkeypatch):
    """Whatever is refused, is refused before anything is read."""

    def read(*arguments, **settings):
        raise AssertionError("a file was read")

    monkeypatch.setattr("laconic.cli.tables.read_table", read)
    monkeypatch.setattr("laconic.cli.predict.load_predictor", read)
    monkeypatch.setattr("laconic.cli.holes.load_model", read)


FIT = ("fit", "rows.csv", "--target", "label", "--max-atoms", "1")
PREDICT = ("predict", "old.laconic", "rows.csv")
HOLES = ("holes", "old.laconic", "rows.csv", "--target", "label")


# -- before anything is read -----------------------------------------------------------------------


def test_a_folder_is_tried_first(unprivileged, open_folder):
    """By a user whom permissions bind; there is no table, and nothing is said of it."""
    (open_folder / "locked").mkdir(mode=0o555)
    commands = [
        (*FIT, "--out", "locked/m.laconic"),
        (*FIT, "--out", "m.laconic", "--plot", "locked/p.png"),
        (*FIT, "--out", "m.laconic", "--checkpoint", "locked/c.npz"),
        (*PREDICT, "--out", "locked/p.csv"),
        (*HOLES, "--html", "locked/page.html"),
        ("demo", "--out", "locked"),
        ("demo", "--out", "locked/demo"),
    ]
    imports = "import os, sys; import laconic.cli.main, laconic.report.report, rich.table"
    imports += "; import laconic.estimators.share"
    imports += "; import configparser, getpass, sklearn.datasets"
    code = "os.chdir(sys.argv[1]); sys.stderr = sys.stdout"
    tries = "\n".join(f"print(laconic.cli.main.main({list(c)}))" for c in commands)
    said = unprivileged(imports, f"{code}\n{tries}", open_folder).splitlines()
    for command, line, status in zip(commands, said[::2], said[1::2], strict=True):
        name = "locked/model.laconic" if command[-1] == "locked" else command[-1]
        reasons = "Permission denied", f"no files can be made in {open_folder / 'locked'}"
        assert line in [f"laconic: error: {name}: {reason}" for reason in reasons]
        assert status == "2"
    assert os.listdir(open_folder) == ["locked"]


@pytest.mark.parametrize("other", ["m", "./m", "{folder}/m", "{folder}/link/m", "soft"])
def test_outputs_are_files_of_their_own(other, folder, capsys, no_reading):
    (folder / "link").symlink_to(".")
    (folder / "soft").symlink_to("m")
    other = other.format(folder=folder)
    for first, second in [
        ("--out", "--checkpoint"),
        ("--out", "--plot"),
        ("--plot", "--checkpoint"),
    ]:
        said = error_of(capsys, *FIT, first, "m", second, other)
        assert f"{first} and {second} are both m" in said


def test_no_output_replaces_an_input(folder, capsys, no_reading):
    os.link("rows.csv", "hard")
    (folder / "soft").symlink_to("old.laconic")
    for option in ("--out", "--plot", "--checkpoint"):
        for file in ("rows.csv", "./rows.csv", "hard"):
            said = error_of(capsys, *FIT, option, file)
            assert f"{option} {file} would overwrite the table" in said
    for command, option in ((PREDICT, "--out"), (HOLES, "--html")):
        for name, what in (("hard", "table"), ("soft", "model")):
            said = error_of(capsys, *command, option, name)
            assert f"{option} {name} would overwrite the {what}" in said


def test_an_output_needs_a_name(folder, capsys, no_reading):
    assert "--out needs the name of a file" in error_of(capsys, *FIT, "--out", "")
    assert "it is a folder" in error_of(capsys, *PREDICT, "--out", folder)


def test_pipes_may_be_named_twice(folder, capsys, monkeypatch):
    os.mkfifo("pipe")
    monkeypatch.setattr("laconic.cli.tables.read_table", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(*FIT, "--out", "pipe", "--plot", "pipe", "--checkpoint", "pipe")


# -- full disks ------------------------------------------------------------------------------------


def test_predictions_are_written_whole_or_not_at_all(folder, capsys, full_disk):
    for old in (None, "precious"):
        if old is not None:
            (folder / "p.csv").write_text(old)
        with full_disk(100):
            said = error_of(capsys, *PREDICT, "--out", "p.csv")
        assert said == "laconic: error: p.csv: File too large\n"
        assert sorted(os.listdir()) == ["old.laconic", *(["p.csv"] if old else []), "rows.csv"]
    assert (folder / "p.csv").read_text() == "precious"


def test_a_page_is_written_whole_or_not_at_all(folder, capsys, full_disk):
    with full_disk(SMALL):
        status = run(*HOLES, "--html", "page.html")
    shown = capsys.readouterr()
    assert status == 2
    assert shown.err == "laconic: error: page.html is not saved: File too large\n"
    assert "Clump 1" in shown.out
    assert "saved" not in shown.out
    assert sorted(os.listdir()) == ["old.laconic", "rows.csv"]


@pytest.mark.parametrize("kind", ["png", "svg", "pdf", "jpg", "tif"])
def test_a_picture_is_written_whole_or_not_at_all(kind, folder, capsys, full_disk):
    with full_disk(SMALL):
        status = run(*FIT, "--out", "m.laconic", "--plot", f"p.{kind}")
    shown = capsys.readouterr()
    assert status == 2
    assert shown.err == f"laconic: error: p.{kind} is not saved: File too large\n"
    assert sorted(os.listdir()) == ["m.laconic", "old.laconic", "rows.csv"]
    assert run(*FIT, "--out", "m.laconic", "--plot", f"p.{kind}") == 0
    assert os.path.getsize(f"p.{kind}") > SMALL


def test_a_model_that_cannot_be_saved_is_shown(folder, capsys, full_disk):
    with full_disk(100):
        status = run(*FIT, "--out", "m.laconic", "--plot", "p.png")
    shown = capsys.readouterr()
    assert status == 2
    assert shown.err == (
        "laconic: error: m.laconic is not saved: File too large; "
        "p.png is not saved: File too large\n"
    )
    for said in ("training", "in use", "always in"):
        assert said in shown.out
    assert "saved" not in shown.out
    assert sorted(os.listdir()) == ["old.laconic", "rows.csv"]


def test_a_demonstration_names_the_file(few_digits, folder, capsys, full_disk):
    with full_disk(100):
        assert run("demo", "--max-atoms", 1) == 2
    shown = capsys.readouterr()
    assert shown.err == "laconic: error: demo/model.laconic is not saved: File too large\n"
    assert "test error" in shown.out
    assert os.listdir("demo") == []


def test_a_full_device_is_named(folder, capsys, full_device):
    said = error_of(capsys, *PREDICT, "--out", full_device)
    assert said == f"laconic: error: {full_device}: No space left on device\n"


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.bz2", "csv.xz", "csv.zip", "tar.gz"])
def test_predictions_are_compressed_as_their_name_says(ending, folder, rows):
    file = f"p.{ending}"
    assert run(*PREDICT, "--out", file) == 0
    model = Predictor.load("old.laconic")
    assert pd.read_csv(file).prediction.tolist() == model.predict(rows).tolist()
    assert file.endswith("csv") == (folder / file).read_bytes().startswith(b"pred")


# -- standard output -------------------------------------------------------------------------------

full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")


def program(*command, buffered=True, **how):
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    return subprocess.run(
        [sys.executable, *([] if buffered else ["-u"]), "-c", MAIN, *map(str, command)],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        **how,
    )


@full
@pytest.mark.parametrize(
    ("command", "buffered"),
    [(PREDICT, True), (FIT, True), (FIT, False), (("--help",), True), (("--help",), False)],
)
def test_standard_output_may_be_full(command, buffered, folder):
    with open("/dev/full", "w") as stream:
        done = program(*command, buffered=buffered, stdout=stream)
    assert done.returncode == 2
    assert done.stderr == "laconic: error: standard output: No space left on device\n"
    if command[0] == "fit":
        assert Predictor.load("model.laconic").cost().atoms == 1


@pytest.mark.parametrize(("command", "buffered"), [(PREDICT, True), (FIT, False)])
def test_the_reader_may_go_away(command, buffered, folder):
    out, into = os.pipe()
    os.close(out)
    done = program(*command, buffered=buffered, stdout=into)
    os.close(into)
    assert done.returncode == 1
    assert done.stderr == ""
    if command[0] == "fit":
        assert Predictor.load("model.laconic").cost().atoms == 1


def test_standard_output_may_be_closed(folder):
    closed = {"preexec_fn": lambda: os.close(1)}
    done = program(*PREDICT, **closed)
    assert done.returncode == 2
    assert "standard output is closed. Name a file with --out" in done.stderr
    assert program(*PREDICT, "--out", "p.csv", **closed).returncode == 0


@full
def test_nobody_need_read_the_errors(folder):
    with open("/dev/full", "w") as stream:
        done = subprocess.run([sys.executable, "-c", MAIN, "describe", "none"], stderr=stream)
    assert done.returncode == 2
