"""Integer predictors in files: the same model comes back, and the bounds are proven again."""

from contextlib import suppress
from io import StringIO

import numpy as np
import pandas as pd
import pytest

from export.random_models import COMPILERS, Case, ListMap, differences, run_all
from fuzz import parts_of, sealed, use_integers
from laconic import HolePunchingClassifier, Predictor, ShareBoostClassifier
from laconic.model.atoms import ColumnsMap, FilledMap
from laconic.model.integer_predictor import IntegerPredictor
from laconic.model.mixed import MixedMap
from laconic.model.primitives import Gather
from laconic.pools import Patches, Pieces
from problems import blobs, random_problem

INPUTS = ("float", "uint8", "int8", "int16")
KINDS = (
    "columns", "groups", "products", "stumps", "balls", "soft balls", "patches", "holes", "nested",
    "filled",
)  # fmt: skip


def whole(X):
    """Return rows as whole numbers from 0 to 100, which fit every type of inputs."""
    low, high = X.min(axis=0), X.max(axis=0)
    return np.rint(100.0 * (X - low) / (high - low))


@pytest.fixture(scope="module")
def models():
    """Return predictors of all kinds of maps that can be saved, and their rows."""
    X, y = random_problem(m=120, d=4)
    X = whole(X)
    frame = pd.DataFrame(X.copy(), columns=list("abcd"))  # older pandas shares memory
    frame.loc[::7, "a"] = np.nan
    frame["e"] = np.where(X[:, 1] > 60, "high", np.where(X[:, 2] > 70, None, "low"))
    named = np.where(frame["a"].isna(), "lost", frame["e"].fillna("none"))
    images = whole(np.random.default_rng(0).random((60, 36)))
    patches = Patches(n_templates=10, template_size=3, mask_grid=2, mask_sigma=1.5)
    Z, z = blobs(300, classes=3)
    holes = {"max_holes": 2, "min_rows": 10}
    inner = HolePunchingClassifier(ShareBoostClassifier(1, pool="stumps"), **holes)
    fits = {
        "columns": (ShareBoostClassifier(3), X, y),
        "groups": (ShareBoostClassifier(1, groups=[0, 0, 1, 1]), X, y),
        "products": (ShareBoostClassifier(3, pool="products"), X, y),
        "stumps": (ShareBoostClassifier(6, pool="stumps"), frame, named),
        "balls": (ShareBoostClassifier(2, pool="pieces"), X, y),
        "soft balls": (ShareBoostClassifier(2, pool=Pieces(soft=True)), X, y),
        "patches": (ShareBoostClassifier(2, pool=patches), images, images[:, 0] > images[:, 35]),
        "holes": (HolePunchingClassifier(ShareBoostClassifier(2), **holes), whole(Z), z),
        "nested": (HolePunchingClassifier(inner, **holes), whole(Z), z),
    }  # fmt: skip
    made = {name: (model.fit(X, y).predictor_, X, y) for name, (model, X, y) in fits.items()}
    gaps = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    gaps[:, 0] = X[:, 0]
    map = MixedMap([FilledMap([1, 3], [40.0, 150.0]), ColumnsMap([0])])
    filled = Predictor(map, np.eye(3), np.zeros(3), np.arange(3), "log", [1] * 3, 4)
    return made | {"filled": (filled, gaps, filled.predict(gaps))}


@pytest.fixture(scope="module")
def quantised(models):
    """Return a function that quantises a model, each way once."""
    done = {}

    def make(kind, inputs="float", bits=8):
        if (kind, inputs, bits) not in done:
            predictor, X, y = models[kind]
            done[kind, inputs, bits] = predictor.quantise(X, bits=bits, inputs=inputs, y=y)
        return done[kind, inputs, bits]

    return make


def test_models_have_every_kind_of_atom(quantised):
    programs = [quantised(kind).integers.program for kind in KINDS]
    found = {segment.kind for program in programs for segment in program.segments}
    assert found == {
        "gather", "filled", "multiply", "at_most", "equals", "balls", "soft_balls", "windows",
    }  # fmt: skip
    assert quantised("stumps").integers.inputs.missing == 127
    assert quantised("nested").integers.program.routing.nested


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_model_comes_back(models, quantised, tmp_path, kind, inputs, bits):
    X, made = models[kind][1], quantised(kind, inputs, bits)
    made.save(tmp_path / "model")
    back = Predictor.load(tmp_path / "model")
    assert isinstance(back, IntegerPredictor)
    assert np.array_equal(back.scores(X), made.scores(X))
    assert np.array_equal(back.predict(X), made.predict(X))
    assert str(back.to_c()) == str(made.to_c())
    assert (back.change, back.unit, back.bounds()) == (made.change, made.unit, made.bounds())
    assert repr(back) == repr(made)
    texts = StringIO(), StringIO()
    back.describe(texts[0])
    made.describe(texts[1])
    assert texts[0].getvalue() == texts[1].getvalue()
    back.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_a_file_without_integers_is_an_ordinary_predictor(models, tmp_path):
    models["columns"][0].save(tmp_path / "model")
    assert not isinstance(Predictor.load(tmp_path / "model"), IntegerPredictor)


def test_a_map_of_your_own_cannot_be_saved(tmp_path):
    predictor = Predictor(
        ListMap([Gather([0])]), np.ones((1, 2)), np.zeros(2), np.arange(2), "scores", [1], 1
    )
    with pytest.raises(TypeError, match="feature map of your own"):
        predictor.quantise(np.arange(3.0)[:, None]).save(tmp_path / "model")


# -- damage ------------------------------------------------------------------------------------


def test_damaged_files_are_refused(quantised, tmp_path):
    quantised("columns").save(tmp_path / "model")
    contents = (tmp_path / "model").read_bytes()
    for broken in (contents[:-7], contents[: len(contents) // 2], b"", b"PK" + contents[2:-30]):
        (tmp_path / "model").write_bytes(broken)
        with pytest.raises(ValueError, match="model is not a readable Laconic file"):
            Predictor.load(tmp_path / "model")
    for name in (b"integer_bias", b"integer_low", b"integer_0_weights"):
        place = contents.index(name) + 170  # in the numbers of the array
        flipped = bytes([*contents[:place], contents[place] ^ 1, *contents[place + 1 :]])
        (tmp_path / "model").write_bytes(flipped)
        with pytest.raises(ValueError, match="model is not a readable Laconic file"):
            Predictor.load(tmp_path / "model")


# -- strangers ---------------------------------------------------------------------------------


def refused(path, header, arrays, words=""):
    path.write_bytes(sealed(header, arrays)[0])
    with pytest.raises(ValueError, match=f"{path.name} is not a (sound|readable) .*{words}"):
        Predictor.load(path)


def integer_arrays(arrays):
    found = [name for name in arrays if name.startswith("integer_")]
    assert len(found) >= 7
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_another_type_shape_or_size_are_refused(quantised, tmp_path, kind):
    header, arrays = parts_of(quantised(kind), tmp_path)
    for name in integer_arrays(arrays):
        array = arrays[name]
        for wrong in (
            array.astype(np.float64), array.astype(complex), array.astype(str), array > 0,
            array[None], array[..., None], array.ravel()[:-1], np.concatenate([array, array]),
            np.full_like(array, 2**62), np.full_like(array, -(2**62)),
            np.full(array.shape, 2**64 - 1, dtype=np.uint64), np.empty((0, 10**9)),
        ):  # fmt: skip
            refused(tmp_path / "mutant", header, {**arrays, name: wrong})
        left = {other: a for other, a in arrays.items() if other != name}
        refused(tmp_path / "mutant", header, left)
    refused(tmp_path / "mutant", header, {**arrays, "integer_more": np.zeros(1, int)}, "'more'")


# Numbers that each are allowed in some array. All of an array or one entry gets them.
ALLOWED = [0, 1, -1, 15, 30, 31, 62, 127, -128, 255, 2**15 - 1, -(2**15), 2**16, 2**20, -(2**20),
           2**29, 2**30, 2**31 - 1, 2**31, -(2**31), 2**53, -(2**53)]  # fmt: skip


def tampered(arrays, rng):
    """Yield arrays in which one has other whole numbers."""
    for name in integer_arrays(arrays):
        for value in ALLOWED:
            changed = np.full_like(arrays[name], value)
            yield {**arrays, name: changed}
            if rng.random() < 0.3:
                changed = arrays[name].copy()
                changed.reshape(-1)[rng.integers(changed.size)] = value
                yield {**arrays, name: changed}


@pytest.mark.parametrize("kind", KINDS)
def test_whole_numbers_of_any_size_are_refused_or_keep_to_their_bounds(quantised, tmp_path, kind):
    """Sound models are compared with loops that check every number."""
    rng, path, found = np.random.default_rng(0), tmp_path / "mutant", []
    settings = (("float", 16), ("uint8", 8), ("int16", 8))[KINDS.index(kind) % 3]
    header, arrays = parts_of(quantised(kind, *settings), tmp_path)
    for changed in tampered(arrays, rng):
        path.write_bytes(sealed(header, changed)[0])
        try:
            predictor = Predictor.load(path)
        except ValueError:
            found.append("refused")
        else:
            use_integers(predictor)
            found.append("sound")
    assert found.count("refused") > 60
    assert found.count("sound") > 20


@pytest.mark.long
@pytest.mark.skipif(not COMPILERS, reason="needs a C compiler")
def test_c_code_of_tampered_files_computes_the_same_and_never_overflows(quantised, tmp_path):
    """The sanitizers stop at the first undefined operation."""
    rng, path, found = np.random.default_rng(1), tmp_path / "mutant", []
    for kind in KINDS:
        settings = (("int16", 8), ("float", 16))[len(kind) % 2]
        header, arrays = parts_of(quantised(kind, *settings), tmp_path)
        for changed in tampered(arrays, rng):
            if rng.random() < 0.1:
                path.write_bytes(sealed(header, changed)[0])
                with suppress(ValueError):
                    found.append(Predictor.load(path))
    assert len(found) > 30
    cases = []
    for number, predictor in enumerate(found):
        inputs, d = predictor.integers.inputs, predictor.n_features
        ends = np.array([-np.inf, 0, 50, np.inf], np.float32)
        if inputs.given != "float":
            ends = np.array([-(2**15), 0, 50, 2**15 - 1], np.int16)
        rows = np.array([*rng.choice(ends, (6, d)), *(np.full(d, end) for end in ends)])
        scores = predictor.integers.code_scores(inputs.codes_of(rows[:, inputs.features]))
        cases.append(Case(predictor.to_c(f"m{number}"), rows, scores))
    assert differences(cases, run_all(cases, COMPILERS[0])) == []


HEADERS = {
    "bits": [7, 8.0, True, "8", None, [8]],
    "given": ["uint4", None, 8, ["float"], {}],
    "accumulator": [16, 32.0, True, "32", None],
    "unit": [0, 0.0, -1.0, float("inf"), float("nan"), "1", None, True, 1e305],
    "missing": [0, 1, None, "no"],
    "change": [[], [1], [1, 2.0], [1, float("nan")], [-1, 0.5], [0.5, 0.5], [1, 0.5, 0.5], "x", 1,
               [1, 0.1, 0.1, 0.1, 0.1], [1, "a"]],
}  # fmt: skip


@pytest.mark.parametrize("name", HEADERS)
def test_headers_are_checked(quantised, tmp_path, name):
    header, arrays = parts_of(quantised("products"), tmp_path)
    for wrong in HEADERS[name]:
        changed = {**header, "integers": {**header["integers"], name: wrong}}
        refused(tmp_path / "mutant", changed, arrays)
    left = {other: value for other, value in header["integers"].items() if other != name}
    refused(tmp_path / "mutant", {**header, "integers": left}, arrays)
    for wrong in (None, [], "x", 7, {}):
        refused(tmp_path / "mutant", {**header, "integers": wrong}, arrays)


def test_fewer_bits_than_the_scores_need_are_refused(quantised, tmp_path):
    header, arrays = parts_of(quantised("products", "float", 16), tmp_path)
    assert header["integers"]["accumulator"] == 32
    arrays["integer_bias"] = np.full_like(arrays["integer_bias"], 2**31 - 5)
    refused(tmp_path / "mutant", header, arrays, "do not fit: score: at most .*, in 32 bits")
    header["integers"]["accumulator"] = 64
    (tmp_path / "wider").write_bytes(sealed(header, arrays)[0])
    assert Predictor.load(tmp_path / "wider").bounds()[0].bits == 64


def test_integers_of_another_model_are_refused(quantised, tmp_path):
    one = parts_of(quantised("columns"), tmp_path)
    other = parts_of(quantised("products"), tmp_path)
    arrays = {name: a for name, a in one[1].items() if not name.startswith("integer_")}
    arrays |= {name: a for name, a in other[1].items() if name.startswith("integer_")}
    refused(tmp_path / "mutant", {**one[0], "integers": other[0]["integers"]}, arrays)


def test_narrow_arrays_of_a_stranger_are_widened_before_they_are_added(quantised, tmp_path):
    """The size of int8's -128 is 128, not -128."""
    made = quantised("columns")
    header, arrays = parts_of(made, tmp_path)
    arrays["integer_bias"] = np.full(arrays["integer_bias"].shape, -128, dtype=np.int8)
    (tmp_path / "narrow").write_bytes(sealed(header, arrays)[0])
    found = Predictor.load(tmp_path / "narrow")
    weights = found.integers.program.segments[0].weights
    assert found.bounds()[0].largest >= 128 + np.abs(weights).max()


def test_images_larger_than_the_file_are_refused_at_once(quantised, tmp_path):
    header, arrays = parts_of(quantised("patches"), tmp_path)
    arrays["map_shape"] = np.array([2000, 2000])
    refused(tmp_path / "mutant", {**header, "n_features": 4_000_000}, arrays, "pixels")
