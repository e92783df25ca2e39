"""``laconic export``, and what the other commands do with models of integers."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from cli.shell import error_of, run
from export.random_models import COMPILERS
from laconic import ErrorClumpingClassifier, Predictor, ShareBoostClassifier
from laconic.cli import headers
from laconic.export.chips import CHIPS, is_installed
from laconic.export.footprint import CHIP_NAMES
from laconic.model.input_codes import GIVEN
from laconic.model.integer_predictor import IntegerPredictor


@pytest.fixture(scope="module")
def frame():
    iris = load_iris(as_frame=True)
    frame = iris.data.rename(columns=lambda name: name.removesuffix(" (cm)").replace(" ", "_"))
    return frame.assign(species=iris.target_names[iris.target])


@pytest.fixture
def table(frame, tmp_path):
    frame.to_csv(tmp_path / "iris.csv", index=False)
    return tmp_path / "iris.csv"


@pytest.fixture
def saved(frame, tmp_path):
    model = ShareBoostClassifier(2).fit(frame.drop(columns="species"), frame.species)
    model.predictor_.save(tmp_path / "saved.laconic")
    return tmp_path / "saved.laconic"


@pytest.fixture
def integers(frame, tmp_path):
    model = ShareBoostClassifier(2).fit(frame.drop(columns="species"), frame.species)
    model.predictor_.quantise(frame).save(tmp_path / "integers.laconic")
    return tmp_path / "integers.laconic"


def test_choices_are_those_of_the_library():
    assert headers.CHIPS == CHIP_NAMES == tuple(CHIPS)
    assert headers.INPUTS == GIVEN


# -- headers -----------------------------------------------------------------------------------


def test_a_header_of_floats(saved, tmp_path, capsys):
    assert run("export", saved, "--c", tmp_path / "iris.h") == 0
    out = capsys.readouterr().out
    text = (tmp_path / "iris.h").read_text()
    assert text == str(Predictor.load(saved).to_c("iris"))
    assert "typedef float iris_input;" in text
    tables = Predictor.load(saved).to_c("iris").table_bytes
    assert f"saved  {tmp_path / 'iris.h'}" in out
    assert f"{tables} bytes of tables" in out
    assert "Integers" not in out
    assert run("export", saved, "--c", tmp_path / "same.h", "--bits", 32, "--name", "iris") == 0
    assert (tmp_path / "same.h").read_text() == text


@pytest.mark.parametrize("bits", [8, 16])
def test_a_header_of_integers(saved, frame, table, tmp_path, capsys, bits):
    wanted = Predictor.load(saved).quantise(frame, bits=bits)
    options = ["--bits", bits] if bits != 8 else []
    assert run("export", saved, "--c", tmp_path / "m.h", "--rows", table, *options) == 0
    assert (tmp_path / "m.h").read_text() == str(wanted.to_c("m"))
    assert "typedef int32_t m_score;" in (tmp_path / "m.h").read_text()
    assert str(wanted.change) in " ".join(capsys.readouterr().out.split())


def test_raw_inputs_and_a_saved_model(frame, tmp_path, capsys):
    whole = frame.assign(**{c: (10 * frame[c]).round() for c in frame.columns[:4]})
    whole.to_csv(tmp_path / "whole.csv", index=False)
    model = ShareBoostClassifier(2).fit(whole.drop(columns="species"), whole.species)
    model.predictor_.save(tmp_path / "model")
    files = ["--c", tmp_path / "m.h", "--out", tmp_path / "small", "--rows", tmp_path / "whole.csv"]
    assert run("export", tmp_path / "model", *files, "--inputs", "uint8") == 0
    assert "the model with integers" in capsys.readouterr().out
    loaded = Predictor.load(tmp_path / "small")
    assert isinstance(loaded, IntegerPredictor)
    assert loaded.integers.inputs.given == "uint8"
    assert (tmp_path / "m.h").read_text() == str(loaded.to_c("m"))
    assert np.mean(loaded.predict(whole) == model.predict(whole.drop(columns="species"))) > 0.97


def test_a_model_of_integers_is_exported_as_it_is(integers, tmp_path, capsys):
    assert run("export", integers, "--c", tmp_path / "m.h", "--out", tmp_path / "copy") == 0
    assert (tmp_path / "m.h").read_text() == str(Predictor.load(integers).to_c("m"))
    assert (tmp_path / "copy").read_bytes() == integers.read_bytes()
    assert "of the labels" not in capsys.readouterr().out


def test_names(saved, tmp_path):
    def defined(file, *options):
        assert run("export", saved, "--c", tmp_path / file, *options) == 0
        return re.search(r"static inline int (\w+)_predict", (tmp_path / file).read_text())[1]

    assert defined("sensor.h") == "sensor"
    assert defined("my-model.2.HPP") == "my_model_2"
    assert defined("x.h", "--name", "other") == "other"
    assert defined("7up.h", "--name", "seven") == "seven"


@pytest.mark.skipif(not COMPILERS, reason="needs a C compiler")
def test_probabilities(saved, tmp_path):
    header = tmp_path / "m.h"
    assert run("export", saved, "--c", header, "--probabilities") == 0
    assert "m_probabilities(const m_input *x, float *probabilities)" in header.read_text()
    (tmp_path / "m.c").write_text(f'#include "{header}"\nint main(void) {{ return 0; }}\n')
    command = [COMPILERS[0], "-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    subprocess.run([*command, str(tmp_path / "m.c")], check=True)


@pytest.mark.skipif(not is_installed(CHIPS["c99"]), reason="needs a C compiler")
def test_a_chip_that_is_here_is_measured(saved, table, tmp_path, capsys):
    files = ["--c", tmp_path / "m.h", "--rows", table]
    assert run("export", saved, *files, "--chip", "c99") == 0
    assert re.search(r"[\d,]+ bytes of flash on c99 \(.+\), \d+ bytes of tables",
                     capsys.readouterr().out)  # fmt: skip


def test_a_chip_that_is_not_here_names_its_packages(saved, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("laconic.export.chips.is_installed", lambda chip: False)
    assert run("export", saved, "--c", tmp_path / "m.h", "--chip", "avr") == 0
    assert "install gcc-avr and avr-libc to measure it on avr" in capsys.readouterr().out


# -- errors ------------------------------------------------------------------------------------


def test_files_that_cannot_be_written_or_are_no_headers(saved, table, tmp_path, capsys):
    def wrong(*options):
        return error_of(capsys, "export", saved, *options)

    assert "--c" in wrong()
    assert "a C header is a .h file. Rename it." in wrong("--c", tmp_path / "m.c")
    assert "there is no folder" in wrong("--c", tmp_path / "no" / "m.h")
    assert "would overwrite the model" in wrong("--c", saved)
    assert "would overwrite the rows" in wrong("--c", table, "--rows", table)
    both = ["--c", tmp_path / "m.h", "--out", tmp_path / "m.h", "--rows", table]
    assert "--c and --out are both" in wrong(*both)
    assert not (tmp_path / "m.h").exists()


def test_names_that_are_none_in_c(saved, tmp_path, capsys):
    for file in ("7up.h", "int.h", "é.h", "___.h", "a__b.h"):
        words = error_of(capsys, "export", saved, "--c", tmp_path / file)
        assert f"{file} makes no name in C. Give one with --name." in words
    for name in ("7up", "int", "a b", ""):
        words = error_of(capsys, "export", saved, "--c", tmp_path / "m.h", "--name", name)
        assert "name must be a C name" in words
    assert not list(tmp_path.glob("*.h"))


def test_integers_need_rows(saved, table, tmp_path, capsys):
    def wrong(*options):
        return error_of(capsys, "export", saved, "--c", tmp_path / "m.h", *options)

    needs = "integers need training rows, which set their scales. Give --rows TABLE."
    for options in (["--bits", 8], ["--bits", 16], ["--inputs", "uint8"]):
        assert needs in wrong(*options)
    assert "--out saves a model with integers" in wrong("--out", tmp_path / "small")
    assert "--out saves" in wrong("--out", tmp_path / "small", "--rows", table, "--bits", 32)
    floats = ["--rows", table, "--bits", 32, "--inputs", "int8"]
    assert "--bits 32 computes with floats. Leave out --inputs int8." in wrong(*floats)
    assert "invalid choice" in wrong("--bits", 7)
    assert "invalid choice" in wrong("--inputs", "uint4")
    assert "invalid choice" in wrong("--chip", "z80")
    assert "No such file" in wrong("--rows", tmp_path / "none.csv")
    assert "X must hold whole numbers" in wrong("--rows", table, "--inputs", "uint8")
    assert not (tmp_path / "m.h").exists()


def test_rows_without_a_column_that_the_model_reads(saved, frame, tmp_path, capsys):
    frame[["sepal_length"]].to_csv(tmp_path / "narrow.csv", index=False)
    files = ["--c", tmp_path / "m.h", "--rows", tmp_path / "narrow.csv"]
    assert "narrow.csv has no column" in error_of(capsys, "export", saved, *files)


def test_a_model_of_integers_takes_no_other_numbers(integers, table, tmp_path, capsys):
    for options in (["--rows", table], ["--bits", 16], ["--bits", 32], ["--inputs", "float"]):
        words = error_of(capsys, "export", integers, "--c", tmp_path / "m.h", *options)
        assert "has integers. Leave out --rows, --bits and --inputs." in words


def test_what_has_no_probabilities(frame, tmp_path, capsys):
    model = ErrorClumpingClassifier().fit(frame.drop(columns="species"), frame.species)
    model.predictor_.save(tmp_path / "model")
    files = ["--c", tmp_path / "m.h", "--probabilities"]
    assert "no probabilities in C" in error_of(capsys, "export", tmp_path / "model", *files)
    assert not (tmp_path / "m.h").exists()


def test_what_is_no_model(table, tmp_path, capsys):
    words = error_of(capsys, "export", table, "--c", tmp_path / "m.h")
    assert "is not a readable Laconic file" in words


# -- other commands ----------------------------------------------------------------------------


def test_predict_with_integers(integers, frame, table, tmp_path, capsys):
    loaded = Predictor.load(integers)
    assert run("predict", integers, table, "--proba", "--out", tmp_path / "out.csv") == 0
    found = pd.read_csv(tmp_path / "out.csv")
    assert found["prediction"].tolist() == loaded.predict(frame).tolist()
    probabilities = found.drop(columns="prediction").to_numpy()
    assert np.allclose(probabilities, loaded.predict_proba(frame), atol=1e-6)


def test_describe_integers(integers, capsys):
    assert run("describe", integers) == 0
    out = capsys.readouterr().out
    for words in ("petal_length", "Weights are integers of 8 bits", "score: at most", "in 32 bits",
                  "Integers change", "Ranges of the inputs:", "in steps of"):  # fmt: skip
        assert words in out


def test_fit_writes_a_header_too(frame, table, tmp_path, capsys):
    files = ["--out", tmp_path / "m.laconic", "--export", tmp_path / "m.h"]
    assert run("fit", table, "--target", "species", "--max-atoms", 2, *files) == 0
    X, y = frame.drop(columns="species"), frame.species
    wanted = Predictor.load(tmp_path / "m.laconic").quantise(X, y=y)
    assert (tmp_path / "m.h").read_text() == str(wanted.to_c("m"))
    out = " ".join(capsys.readouterr().out.split())
    assert str(wanted.change) in out
    assert "Their error goes from" in out
    assert run("fit", table, "--target", "species", "--max-atoms", 2, *files, "--bits", 32) == 0
    floats = Predictor.load(tmp_path / "m.laconic").to_c("m")
    assert (tmp_path / "m.h").read_text() == str(floats)


def test_wrong_headers_are_refused_before_the_fit(table, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(ShareBoostClassifier, "fit", lambda *_: pytest.fail("fitted"))

    def wrong(*options):
        files = ["--target", "species", "--max-atoms", 2, "--out", tmp_path / "m.laconic"]
        return error_of(capsys, "fit", table, *files, *options)

    assert "a C header is a .h file" in wrong("--export", tmp_path / "m.txt")
    assert "makes no name in C" in wrong("--export", tmp_path / "9.h")
    assert "--out and --export are both" in wrong("--export", tmp_path / "m.laconic")
    assert "would overwrite the table" in wrong("--export", table)


# -- ONNX --------------------------------------------------------------------------------------


def onnx_proto(file):
    return pytest.importorskip("onnx").load(file)


def onnx_labels(file, X):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    return session.run(["label"], {"X": X})[0]


def test_an_onnx_model_of_floats(saved, frame, tmp_path, capsys):
    assert run("export", saved, "--onnx", tmp_path / "iris.onnx", "--probabilities") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"saved {tmp_path / 'iris.onnx'}" in out
    assert "float64 rows, opset 18" in out
    X = frame.drop(columns="species").to_numpy()
    found = onnx_labels(tmp_path / "iris.onnx", X)
    assert np.array_equal(found, Predictor.load(saved).predict(X))
    made = onnx_proto(tmp_path / "iris.onnx")
    assert made.graph.name == "iris"
    assert [output.name for output in made.graph.output] == ["label", "scores", "probabilities"]


def test_an_onnx_model_of_integers_beside_a_header(saved, frame, table, tmp_path):
    files = ["--onnx", tmp_path / "m.onnx", "--c", tmp_path / "m.h", "--rows", table]
    assert run("export", saved, *files, "--name", "flower") == 0
    wanted = Predictor.load(saved).quantise(frame)
    assert (tmp_path / "m.h").read_text() == str(wanted.to_c("flower"))
    assert onnx_proto(tmp_path / "m.onnx") == wanted.to_onnx("flower").proto


def test_a_model_of_integers_as_it_is(integers, tmp_path):
    assert run("export", integers, "--onnx", tmp_path / "m.onnx") == 0
    assert onnx_proto(tmp_path / "m.onnx") == Predictor.load(integers).to_onnx("m").proto


def test_fit_writes_onnx_by_the_name_of_the_file(frame, table, tmp_path, capsys):
    files = ["--out", tmp_path / "m.laconic", "--export", tmp_path / "m.onnx"]
    fit = ["fit", table, "--target", "species", "--max-atoms", 2, *files]
    assert run(*fit) == 0
    assert "opset 18" in capsys.readouterr().out
    floats = Predictor.load(tmp_path / "m.laconic")
    assert onnx_proto(tmp_path / "m.onnx") == floats.to_onnx("m").proto
    assert run(*fit, "--bits", 16) == 0
    whole = floats.quantise(frame.drop(columns="species"), bits=16, y=frame.species)
    assert onnx_proto(tmp_path / "m.onnx") == whole.to_onnx("m").proto
    assert str(whole.change) in " ".join(capsys.readouterr().out.split())


def test_wrong_options_of_onnx_models_are_named(saved, tmp_path, capsys, monkeypatch):
    def wrong(*options):
        return error_of(capsys, "export", saved, *options)

    assert "Give --c FILE or --onnx FILE." in wrong()
    assert "an ONNX model is a .onnx file. Rename it." in wrong("--onnx", tmp_path / "m.pb")
    both = ["--onnx", tmp_path / "m.onnx", "--c", tmp_path / "m.onnx"]
    assert "--c and --onnx are both" in wrong(*both)
    file = ["--onnx", tmp_path / "m.onnx"]
    assert "--chip measures a C header" in wrong(*file, "--chip", "avr")
    assert "--name must not be empty" in wrong(*file, "--name", "")
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert 'this needs onnx: pip install ".[onnx]"' in wrong(*file)
    assert not (tmp_path / "m.onnx").exists()
