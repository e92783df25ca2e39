"""ONNX models: the same decisions as Python, and the same integers, for every kind of model."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.tree import DecisionTreeClassifier

from export.random_models import (
    KINDS,
    ListMap,
    Problem,
    all_settings,
    integer_case,
    one_primitive,
    random_problem,
    some_windows,
)
from export.test_c import fitted
from laconic import (
    ErrorClumpingClassifier,
    Predictor,
    ShareBoostClassifier,
    TotalQBoostClassifier,
)
from laconic.export.onnx_graph import IR_VERSION, OPSET
from laconic.losses import decide
from laconic.model.balls import Balls
from laconic.model.lowering import LoweredMap
from laconic.model.primitives import Compare, Gather
from laconic.model.route import Route

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

# Python computes responses of patches in single precision, and ONNX models in double precision.
SINGLE, DOUBLE = 1e-6, 1e-11


def near(found, own, most=DOUBLE):
    """Whether scores are equal up to rounding. Scores of classes that never win do not count."""
    seen = own > -1e29
    return np.abs(found - own)[seen].max() <= most * np.abs(own[seen]).max()


def problems(seed, n, **settings):
    for number in range(n):
        rng = np.random.default_rng([seed, number])
        kind = KINDS[number % len(KINDS)]
        yield kind, random_problem(rng, kind, **settings), rng


# -- decisions and scores --------------------------------------------------------------------------


def test_random_float_models_decide_as_python():
    for kind, (predictor, rows), _ in problems(1, 42):
        made = predictor.to_onnx()
        assert np.array_equal(made.predict(rows), predictor.predict(rows)), kind
        assert near(made.scores(rows), predictor.scores(rows), SINGLE if "win" in kind else DOUBLE)


def test_random_integer_models_give_the_same_integers_whatever_the_device_hands_over():
    for kind, problem, rng in problems(2, 56):
        case = integer_case(problem, "m", rng)
        made = case.header.predictor.to_onnx()
        found = made.run("scores", case.rows)
        assert found.dtype == np.int64
        assert np.array_equal(found, case.scores), kind
        labels = problem.predictor.classes[decide(case.scores)]
        assert np.array_equal(made.run("label", case.rows), labels), kind


def test_large_models_answer_as_python():
    for kind, problem, rng in problems(3, len(KINDS), size="large"):
        predictor, rows = problem
        assert np.array_equal(predictor.to_onnx().predict(rows), predictor.predict(rows)), kind
        case = integer_case(problem, "m", rng)
        found = case.header.predictor.to_onnx().run("scores", case.rows)
        assert np.array_equal(found, case.scores), kind


def test_atoms_of_every_kind_inside_holes():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 9, (300, 36)).astype(float)
    kinds = ("gather", "multiply", "at_most", "categories", "hinge", "look_up", "balls", "soft")
    parts = [[one_primitive(rng, kind, rows)] for kind in kinds]
    parts += [[some_windows(rng, (6, 6))], [some_windows(rng, (6, 6)), *parts[0]]]
    centre = rows[: len(parts) - 1]
    far = np.sqrt(np.square(rows[:, None] - centre).sum(axis=2))
    map = ListMap([Route(centre, np.quantile(far, 0.2, axis=0), parts)])
    weights = rng.standard_normal((map.n_columns, 3))
    predictor = Predictor(map, weights, np.zeros(3), np.arange(3), "log", [1] * len(weights), 36)
    leaves = map.lower()[0].region(rows)
    assert len(np.unique(leaves)) == len(parts)
    made = predictor.to_onnx()
    assert near(made.scores(rows), predictor.scores(rows), SINGLE)
    assert np.array_equal(made.predict(rows), predictor.predict(rows))
    for settings in all_settings(Problem(predictor, rows)):
        quantised = predictor.quantise(rows, **settings)
        assert np.array_equal(quantised.to_onnx().scores(rows), quantised.scores(rows))


def test_every_estimator_decides_as_python():
    kinds = set()
    for model, X in fitted():
        predictor = model.predictor_
        kinds.add(predictor.map.kind)
        made = predictor.to_onnx()
        most = SINGLE if predictor.map.kind == "patches" else DOUBLE
        assert near(made.scores(X), predictor.scores(X), most)
        assert np.array_equal(made.predict(X), predictor.predict(X))
        for bits in (8, 16):
            quantised = predictor.quantise(X, bits=bits)
            made = quantised.to_onnx()
            assert np.array_equal(made.scores(X), quantised.scores(X))
            assert np.array_equal(made.predict(X), quantised.predict(X))
    assert kinds >= {"columns", "stumps", "products", "pieces", "patches", "regions"}


def test_float32_rows_are_computed_in_double_precision():
    X, y = load_breast_cancer(return_X_y=True)
    predictor = ShareBoostClassifier(4).fit(X, y).predictor_
    made = predictor.to_onnx(inputs="float32")
    assert made.proto.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    rows = X.astype(np.float32)
    assert near(made.scores(rows), predictor.scores(rows.astype(np.float64)))
    assert np.array_equal(made.predict(rows), predictor.predict(rows))


def test_missing_values_and_categories_of_a_frame():
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
        exported = made.to_onnx()
        for rows in (frame, other):
            assert np.array_equal(exported.predict(rows), made.predict(rows))
            assert np.allclose(exported.scores(rows), made.scores(rows), rtol=1e-12)


def test_sparse_rows_and_no_rows_at_all():
    X, y = load_iris(return_X_y=True)
    predictor = ShareBoostClassifier(3).fit(X, y).predictor_
    made = predictor.to_onnx()
    assert np.array_equal(made.predict(sparse.csr_matrix(X)), predictor.predict(X))
    for kind, (model, rows), _ in problems(4, len(KINDS)):
        none = model.to_onnx().scores(rows[:0])
        assert none.shape == (0, len(model.intercept)), kind


def test_of_equal_scores_the_first_class_wins():
    def answers(weights, classes, loss, X):
        weights = np.asarray(weights, dtype=float)
        k = weights.shape[1]
        predictor = Predictor(ListMap([Gather([0])]), weights, np.zeros(k), classes, loss, [1], 1)
        X = np.asarray(X, dtype=float)
        found = predictor.to_onnx().predict(X)
        assert np.array_equal(found, predictor.predict(X))
        quantised = predictor.quantise(X)
        assert np.array_equal(quantised.to_onnx().predict(X), quantised.predict(X))
        return found.tolist()

    rows = [[0.0], [1.0], [-1.0]]
    assert answers([[1, 2, 2]], np.array([7, 5, 3]), "log", rows) == [7, 5, 7]
    assert answers([[1, 2]], np.array(["a", "b"]), "log", rows) == ["a", "b", "a"]
    assert answers([[1]], np.array([4, 9]), "exponential", rows) == [4, 9, 4]


def test_the_graph_does_not_grow_with_the_model():
    def nodes(n):
        rng = np.random.default_rng(0)
        map = ListMap([
            Gather(rng.integers(0, 9, n)), Compare(rng.integers(0, 9, n), rng.random(n), [0] * n),
            Balls(rng.random((n, 9)), rng.random(n), rng.random((n, 9)), True),
        ])  # fmt: skip
        width = map.n_columns
        made = Predictor(
            map, rng.random((width, 3)), np.zeros(3), np.arange(3), "log", [1] * width, 9
        )
        return len(made.to_onnx().proto.graph.node)

    assert nodes(3) == nodes(300)


# -- outputs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["margin", "log", "exponential", "logistic", "squared_hinge"])
@pytest.mark.parametrize("quantised", [False, True])
def test_probabilities_are_those_of_python(loss, quantised):
    X, y = load_breast_cancer(return_X_y=True)
    several = [y, load_iris(return_X_y=True)[1]] if loss in ("margin", "log") else [y]
    for labels in several:
        rows = X[: len(labels)]
        predictor = ShareBoostClassifier(3, loss=loss).fit(rows, labels).predictor_
        predictor = predictor.quantise(rows, bits=16) if quantised else predictor
        made = predictor.to_onnx(probabilities=True)
        assert np.allclose(made.predict_proba(rows), predictor.predict_proba(rows), atol=1e-12)


def test_probabilities_of_one_problem_for_each_class():
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((1, 4))
    predictor = Predictor(
        ListMap([Gather([0])]), weights, np.zeros(4), np.arange(4), "one_vs_rest", [1], 1
    )
    X = np.append(rng.standard_normal(50), 9.0)[:, None]
    X[0] = -9.0
    made = predictor.to_onnx(probabilities=True)
    assert np.allclose(made.predict_proba(X), predictor.predict_proba(X), atol=1e-15)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (["no", "yes", "é*/"], "STRING"),
        ([3, 1, -2**40], "INT64"),
        (np.array([1, 5, 7], dtype=np.uint8), "INT64"),
        ([1.0, 2.0, 3.0], "INT64"),
        ([False, True, True], "INT64"),
    ],
    ids=["text", "whole numbers", "bytes", "floats", "booleans"],
)  # fmt: skip
def test_labels_of_all_types(labels, kind):
    X, y = load_iris(return_X_y=True)
    y = np.array(labels)[y]
    predictor = ShareBoostClassifier(2).fit(X, y).predictor_
    made = predictor.to_onnx()
    found = made.predict(X)
    assert np.array_equal(found, predictor.predict(X))
    assert found.dtype == predictor.predict(X).dtype
    output = made.proto.graph.output[0]
    assert output.name == "label"
    assert output.type.tensor_type.elem_type == getattr(onnx.TensorProto, kind)
    if isinstance(labels[0], float | bool):  # counted from 0
        numbers = np.searchsorted(predictor.classes, predictor.predict(X))
        assert np.array_equal(made.run("label", X), numbers)


def test_a_saved_model_runs_without_laconic(tmp_path):
    X, y = load_iris(return_X_y=True)
    predictor = ShareBoostClassifier(3).fit(X, np.array(["a", "b", "c"])[y]).predictor_
    predictor.to_onnx("iris", probabilities=True).save(tmp_path / "iris.onnx")
    session = runtime.InferenceSession(
        str(tmp_path / "iris.onnx"), providers=["CPUExecutionProvider"]
    )
    label, scores, probabilities = session.run(None, {"X": X})
    assert label.tolist() == predictor.predict(X).tolist()
    assert near(scores, predictor.scores(X))
    assert np.allclose(probabilities, predictor.predict_proba(X))


def test_a_file_says_what_the_model_is():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"colour": rng.choice(["red", "blue"], 90), "size": rng.integers(0, 9, 90)}
    )
    predictor = ShareBoostClassifier(3, pool="stumps").fit(frame, frame["colour"] == "red")
    predictor = predictor.predictor_
    made = predictor.to_onnx("paint").proto
    facts = {prop.key: prop.value for prop in made.metadata_props}
    assert made.graph.name == "paint"
    assert made.producer_name == "laconic"
    assert "colour" in facts["card"]
    assert facts["card"] in made.doc_string
    assert json.loads(facts["feature_names"]) == ["colour", "size"]
    assert json.loads(facts["classes"]) == ["False", "True"]
    words = {word: code for code, word in predictor.categories[0].items()}
    assert json.loads(facts["categories"]) == {"colour": words}
    assert json.loads(facts["other_categories"]) == -1
    assert [opset.version for opset in made.opset_import] == [OPSET]
    assert {opset.domain for opset in made.opset_import} == {""}
    assert {node.domain for node in made.graph.node} == {""}
    assert made.ir_version == IR_VERSION
    onnx.checker.check_model(made, full_check=True)
    whole = predictor.quantise(frame, inputs="uint8").to_onnx()
    facts = {prop.key: prop.value for prop in whole.proto.metadata_props}
    assert float(facts["score_unit"]) == whole.predictor.unit
    assert "uint8" in repr(whole)


# -- errors ----------------------------------------------------------------------------------------


class Opaque(LoweredMap):
    """A map that does not say what it computes."""

    def columns(self, X):
        return X[:, :1]

    def names(self, feature_names=None, categories=None):
        return ["c"]

    def features(self):
        return np.array([0])


def test_what_cannot_be_exported_says_why():
    X, y = load_breast_cancer(return_X_y=True)
    trees = TotalQBoostClassifier(pool=DecisionTreeClassifier(max_depth=1), max_rounds=3)
    with pytest.raises(TypeError, match="scikit-learn classifiers cannot be exported"):
        trees.fit(X, y).predictor_.to_onnx()
    opaque = Predictor(Opaque(), np.ones((1, 1)), np.zeros(1), np.arange(2), "logistic", [1], 1)
    with pytest.raises(TypeError, match="Opaque has no method lower"):
        opaque.to_onnx()
    clumping = ErrorClumpingClassifier().fit(X, y).predictor_
    with pytest.raises(ValueError, match="no probabilities in ONNX"):
        clumping.to_onnx(probabilities=True)
    with pytest.raises(AttributeError, match="probabilities=True"):
        clumping.to_onnx().predict_proba(X)
    huge = Balls(np.zeros((1, 1)), [1e200], np.zeros((1, 1)), False)
    far = Predictor(ListMap([huge]), np.ones((2, 1)), np.zeros(1), np.arange(2), "logistic", [2], 1)
    with pytest.raises(ValueError, match="squared radius of a ball overflows"):
        far.to_onnx()


def test_wrong_settings_are_named():
    predictor, rows = random_problem(np.random.default_rng(0), "gather")
    with pytest.raises(ValueError, match="inputs must be one of 'float64', 'float32', not 'int8'"):
        predictor.to_onnx(inputs="int8")
    with pytest.raises(ValueError, match="takes what its device hands over"):
        predictor.quantise(rows).to_onnx(inputs="float32")
    for name in ("", None, 3):
        with pytest.raises(ValueError, match="name must be a text"):
            predictor.to_onnx(name)


@pytest.mark.parametrize("module", ["onnx", "onnxruntime"])
def test_a_missing_package_is_named(module, monkeypatch):
    predictor, rows = random_problem(np.random.default_rng(0), "gather")
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf'needs {module}: pip install "\.\[onnx\]"'):
        predictor.to_onnx().scores(rows)


def test_importing_laconic_imports_no_onnx():
    code = "import sys, laconic, laconic.cli.main; laconic.Predictor; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"onnx", "onnxruntime"} & set(done.stdout.split())
