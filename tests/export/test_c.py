"""C headers: the same answers as Python, bit for bit, for every kind of model."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris

from export.random_models import COMPILERS, KINDS, cases, differences, random_problem, run_all
from laconic import (
    ErrorClumpingClassifier,
    HolePunchingClassifier,
    Predictor,
    ShareBoostClassifier,
    TotalQBoostClassifier,
)
from laconic.export.compiled import CompiledModel
from laconic.model.program import program_of
from laconic.model.single import rounded_down, single, single_scores
from laconic.pools import Patches

needs_compiler = pytest.mark.skipif(not COMPILERS, reason="needs a C compiler")


@needs_compiler
@pytest.mark.parametrize("compiler", COMPILERS)
def test_random_models_of_all_kinds_give_the_same_bits(compiler):
    found = list(cases(1, 40))
    assert differences(found, run_all(found, compiler)) == []


@pytest.mark.skipif(not shutil.which("g++"), reason="needs a C++ compiler")
def test_headers_are_valid_cpp(tmp_path):
    lines = []
    for case in cases(2, 24):
        case.header.save(tmp_path / f"{case.header.name}.h")
        lines.append(f'#include "{case.header.name}.h"')
    (tmp_path / "all.cpp").write_text("\n".join([*lines, "int main() { return 0; }\n"]))
    flags = ["-std=c++11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    done = subprocess.run(
        ["g++", *flags, str(tmp_path / "all.cpp")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def fitted():
    """Return fitted classifiers of every kind, with their rows."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:600], y[:600]
    for pool in ("columns", "stumps", "products", "pieces", Patches(None, 40, 3, 3, 1.5)):
        yield ShareBoostClassifier(6, pool=pool).fit(X, y), X
    groups = np.arange(64) // 4
    yield ShareBoostClassifier(4, groups=groups).fit(X, y), X
    yield TotalQBoostClassifier(max_rounds=12).fit(X, y), X
    Xb, yb = load_breast_cancer(return_X_y=True)
    yield TotalQBoostClassifier(max_rounds=12).fit(Xb, yb), Xb
    yield ShareBoostClassifier(4).fit(Xb, yb), Xb
    Xi, yi = load_iris(return_X_y=True)
    yield ErrorClumpingClassifier().fit(Xi, yi), Xi
    outside = ShareBoostClassifier(2)
    yield HolePunchingClassifier(outside, min_rows=10).fit(Xi, yi), Xi


@needs_compiler
def test_every_estimator_gives_the_same_bits():
    kinds = set()
    for model, X in fitted():
        predictor = model.predictor_
        assert isinstance(predictor, Predictor)
        kinds.add(predictor.map.kind)
        reference = single_scores(single(program_of(predictor)), predictor.device_rows(X))
        assert np.array_equal(predictor.to_c("a").compile().scores(X), reference)
        quantised = predictor.quantise(X, bits=16)
        compiled = quantised.to_c("b").compile()
        assert np.array_equal(compiled.scores(X), quantised.scores(X))
        assert np.array_equal(compiled.predict(X), quantised.predict(X))
        assert quantised.change.labels <= 0.01
    assert kinds >= {"columns", "stumps", "products", "pieces", "patches", "regions"}


def test_float32_is_near_the_prediction_by_blas():
    for model, X in fitted():
        predictor = model.predictor_
        own = single_scores(single(program_of(predictor)), predictor.device_rows(X))
        full = predictor.scores(X)
        if own.shape[1] == 1 and full.shape[1] == 2:
            full = np.diff(full, axis=1)
        seen = full > -1e29
        scale = np.abs(full[seen]).max()
        assert np.abs(own - full)[seen].max() <= 1e-4 * scale


def test_a_float32_number_is_at_most_v_if_it_is_at_most_v_rounded_down():
    rng = np.random.default_rng(0)
    v = np.concatenate([rng.standard_normal(1000), 10.0 ** rng.uniform(-40, 40, 1000), [0.0, -0.0]])
    with np.errstate(over="ignore"):
        near = v.astype(np.float32)
    tried = [near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]
    for x in tried:
        assert np.array_equal(x.astype(np.float64) <= v, x <= rounded_down(v))


@pytest.mark.long
@needs_compiler
def test_code_does_not_grow_with_the_model():
    """Thousands of patches compile in seconds, and only tables grow."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 255, (40, 400)).astype(np.uint8)
    from laconic.model.patches import PatchesMap

    def header(n):
        map = PatchesMap(
            np.array([20, 20]), np.arange(30), np.full(30, 5), rng.standard_normal(30 * 25),
            rng.integers(0, 30, n), rng.uniform(3, 16, (n, 2)), np.full(n, 2.0),
        )  # fmt: skip
        weights = rng.standard_normal((n, 10))
        predictor = Predictor(map, weights, np.zeros(10), np.arange(10), "log", [1] * n, 400)
        return predictor.quantise(X, inputs="uint8").to_c()

    def functions(text):
        return [line for line in str(text).splitlines() if line.startswith("    for (k = 0; k <")]

    small, large = header(20), header(2000)
    assert len(functions(small)) == len(functions(large)) == 1
    # Everything but the numbers of the tables: the same functions, and a few longer numbers.
    code = [re.sub(r"\{[\s\d,-]*\}|/\*.*?\*/", "", str(h), flags=re.S) for h in (small, large)]
    assert "MODEL_APART" in code[0]
    assert len(code[1]) <= len(code[0]) + 100
    compiled = large.compile()
    assert np.array_equal(compiled.scores(X), large.predictor.scores(X))


@needs_compiler
@pytest.mark.parametrize("loss", ["margin", "log", "exponential", "logistic", "squared_hinge"])
@pytest.mark.parametrize("quantised", [False, True])
def test_probabilities_are_those_of_python(loss, quantised, tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    if loss in ("margin", "log"):
        X, y = load_iris(return_X_y=True)
    predictor = ShareBoostClassifier(3, loss=loss).fit(X, y).predictor_
    predictor = predictor.quantise(X, bits=16) if quantised else predictor
    assert_probabilities(predictor, X, tmp_path)


@needs_compiler
@pytest.mark.parametrize("loss", ["margin", "log"])
def test_probabilities_of_two_classes_with_two_scores(loss, tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    assert_probabilities(ShareBoostClassifier(3, loss=loss).fit(X, y).predictor_, X, tmp_path)


def assert_probabilities(predictor, X, tmp_path):
    header = predictor.to_c("p", probabilities=True)
    header.save(tmp_path / "p.h")
    k, rows = len(predictor.classes), predictor.device_rows(X)
    (tmp_path / "run.c").write_text(
        f"""#include <stdio.h>
#include "p.h"
int main(void) {{
    static p_input x[P_N_FEATURES];
    float p[{k}];
    while (fread(x, sizeof x, 1, stdin) == 1) {{
        p_probabilities(x, p);
        fwrite(p, sizeof p, 1, stdout);
    }}
    return 0;
}}
"""
    )
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-o", str(tmp_path / "run")]
    subprocess.run([COMPILERS[0], *flags, str(tmp_path / "run.c"), "-lm"], check=True)
    done = subprocess.run([tmp_path / "run"], input=rows.tobytes(), capture_output=True, check=True)
    found = np.frombuffer(done.stdout, np.float32).reshape(-1, k)
    assert np.allclose(found, predictor.predict_proba(X), atol=2e-4)


def test_a_header_says_what_the_model_is():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versi/*color", "vir*/ginica"])[y]
    predictor = ShareBoostClassifier(2).fit(X, names).predictor_
    text = str(predictor.quantise(X).to_c("iris"))
    for words in ("petal width (cm)", "always in", "IRIS_LABEL_SETOSA = 0", "iris_predict",
                  "#define IRIS_N_FEATURES 4", "at most", "static const int8_t"):  # fmt: skip
        assert words in text
    assert "malloc" not in text
    assert "math.h" not in text
    assert all(ord(letter) < 128 for letter in text)


HOSTILE = ["gain *\\ int evil; /*", "???/", "a\\", "*/ int y; /*", "??/\n#error", "/", "*", "/*"]


@needs_compiler
@pytest.mark.parametrize("strict", [(), ("-trigraphs",)])
def test_no_name_can_leave_its_comment(strict):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((90, len(HOSTILE))), np.repeat(HOSTILE[:3], 30)
    X[:, 0] += np.repeat([0.0, 3.0, 6.0], 30)
    model = ShareBoostClassifier(len(HOSTILE)).fit(X, y)
    predictor = model.name_features(HOSTILE).predictor_
    quantised = predictor.quantise(X)
    compiled = CompiledModel(quantised.to_c(), flags=("-Werror", *strict))
    assert np.array_equal(compiled.predict(X), quantised.predict(X))


def test_labels_that_are_small_whole_numbers_stand_for_themselves():
    X, y = load_iris(return_X_y=True)
    for labels, last in (([1, 5, 7], 7), ([0, 40_000, 70_000], 2), ([1.0, 2.0, 3.0], 2)):
        predictor = ShareBoostClassifier(2).fit(X, np.array(labels)[y]).predictor_
        name = str(labels[2]).replace(".", "_")
        assert f'MODEL_LABEL_{name} = {last} /* "{labels[2]}" */' in str(predictor.to_c())


def test_signs_in_labels_become_words():
    X, y = load_iris(return_X_y=True)
    predictor = ShareBoostClassifier(2).fit(X, np.array(["<=50K", ">50K", ">=90K"])[y]).predictor_
    text = str(predictor.to_c())
    for name, label in (("UP_TO_50K", "<=50K"), ("ABOVE_50K", ">50K"), ("AT_LEAST_90K", ">=90K")):
        assert re.search(rf'MODEL_LABEL_{name} = \d,? /\* "{label}" \*/', text)


def test_labels_beyond_ascii_are_told_apart():
    X, y = load_iris(return_X_y=True)
    predictor = ShareBoostClassifier(2).fit(X, np.array(["é", "ü", "日"])[y]).predictor_
    assert '= 2 /* "<U+65E5>" */' in str(predictor.to_c())


def test_a_category_called_other_does_not_take_the_name_of_all_others():
    pd = pytest.importorskip("pandas")
    colours = np.repeat(["red", "OTHER", "blue", "green"], 30)
    frame = pd.DataFrame({"colour": colours})
    model = ShareBoostClassifier(3, pool="stumps").fit(frame, colours == "OTHER")
    text = str(model.predictor_.to_c())
    assert 'MODEL_COLOUR_IS_OTHER = -1, /* any other value of "colour" */' in text
    assert 'MODEL_COLOUR_IS_OTHER_2 = 0, /* "OTHER" */' in text


@needs_compiler
def test_categories_and_missing_values_of_a_frame():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame({
        "colour": rng.choice(["red", "green", "blue", None], n),
        "size": np.where(rng.random(n) < 0.1, np.nan, rng.standard_normal(n)),
    })  # fmt: skip
    y = (frame["colour"] == "red") ^ (frame["size"] > 0) ^ frame["size"].isna()
    predictor = ShareBoostClassifier(6, pool="stumps").fit(frame, y).predictor_
    other = frame.assign(colour=frame["colour"].replace("blue", "violet"))
    for made in (predictor, predictor.quantise(frame), predictor.quantise(frame, bits=16)):
        compiled = made.to_c().compile()
        for rows in (frame, other):
            assert np.array_equal(compiled.predict(rows), made.predict(rows))
            assert np.mean(made.predict(rows) == predictor.predict(rows)) > 0.99
    assert "MODEL_COLOUR_IS_RED" in str(predictor.to_c())
    assert "MODEL_COLOUR_IS_OTHER = -1" in str(predictor.to_c())


@pytest.mark.parametrize("name", ["", "9lives", "a b", "int", "a__b", "é", None, 3])
def test_a_name_that_is_not_one_in_c_is_refused(name):
    predictor = random_problem(np.random.default_rng(0), KINDS[0]).predictor
    with pytest.raises(ValueError, match="must be a C name"):
        predictor.to_c(name)


def test_what_cannot_be_exported_says_why():
    X, y = load_breast_cancer(return_X_y=True)
    from sklearn.tree import DecisionTreeClassifier

    trees = TotalQBoostClassifier(pool=DecisionTreeClassifier(max_depth=1), max_rounds=3)
    with pytest.raises(TypeError, match="scikit-learn classifiers cannot be exported"):
        trees.fit(X, y).predictor_.to_c()
    clumping = ErrorClumpingClassifier().fit(X, y).predictor_
    with pytest.raises(ValueError, match="no probabilities"):
        clumping.to_c(probabilities=True)


def test_a_missing_compiler_is_named():
    predictor = random_problem(np.random.default_rng(0), KINDS[0]).predictor
    with pytest.raises(FileNotFoundError, match="no C compiler 'no-such-cc'"):
        predictor.to_c().compile("no-such-cc")
