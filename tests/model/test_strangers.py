"""Files made to exhaust memory, to hang or to answer wrongly: one `ValueError` each, at once."""

import json
import tracemalloc
import zipfile
from io import BytesIO, StringIO

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fuzz import parts_of, sealed
from laconic import ErrorClumpingClassifier, HolePunchingClassifier, Predictor, ShareBoostClassifier
from laconic.files.layout import MOST, Array, check_arrays, list_of, real_number, whole_number
from laconic.model import masks
from laconic.model.atoms import Column, ColumnsMap, Product
from laconic.model.card import shorten
from laconic.model.regions import DEEPEST, RegionsMap
from laconic.pools import Patches
from problems import blobs, random_problem


@pytest.fixture(scope="module")
def models():
    X, y = random_problem(m=80, d=4)
    Z, z = blobs(120)
    images = np.random.default_rng(0).random((60, 36))
    pool = Patches(n_templates=10, template_size=3, mask_grid=2, mask_sigma=1.5)
    return {
        "columns": ShareBoostClassifier(2).fit(X, y).predictor_,
        "stumps": ShareBoostClassifier(2, pool="stumps").fit(X, y).predictor_,
        "rules": ShareBoostClassifier(2, pool="rules").fit(X, y).predictor_,
        "pieces": ShareBoostClassifier(2, pool="pieces").fit(X, y).predictor_,
        "bumps": ShareBoostClassifier(2, pool="bumps").fit(X, y).predictor_,
        "hinges": ShareBoostClassifier(2, pool="hinges").fit(X, y).predictor_,
        "mixed": ShareBoostClassifier(
            3, pool=["columns", "products"], include=[Column(0), Product(0, 1), Column(2)]
        )
        .fit(X, y)
        .predictor_,
        "patches": ShareBoostClassifier(2, pool=pool).fit(images, images[:, 0] > 0.5).predictor_,
        "regions": HolePunchingClassifier(LogisticRegression(), max_holes=2, min_rows=4)
        .fit(Z, z)
        .predictor_,
    }


def refused(path, contents, words=""):
    """Loading is refused in words that name the file, and takes next to no memory."""
    path.write_bytes(contents)
    tracemalloc.start()
    with pytest.raises(ValueError, match=rf"{path.name} .*{words}"):
        Predictor.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6 + 10 * len(contents)


CHANGES = {
    "a part as wide as a billion": ("regions", {"map_part0_n_features": np.array(10**9)}, {}),
    "all as wide as a billion": (
        "regions",
        {"map_part0_n_features": np.array(10**9), "map_centre": np.empty((0, 10**9))},
        {"n_features": 10**9},
    ),
    "large images": (
        "patches",
        {"map_shape": np.array([20_000, 20_000])},
        {"n_features": 4 * 10**8},
    ),
    "images of 16,384 pixels a side": (
        "patches",
        {"map_shape": np.array([1 << 14] * 2)},
        {"n_features": 1 << 28},
    ),
    "images of another size": ("patches", {"map_shape": np.array([4, 9])}, {"n_features": 40}),
    "no width": ("patches", {"map_sigma": np.array([1e-200, 1.5])}, {}),
    "far away": ("patches", {"map_centre": np.full((2, 2), 1e5)}, {}),
    "negative features": ("columns", {"map_feature": np.array([-1, 2])}, {}),
    "huge features": ("columns", {"map_feature": np.array([2**63, 2], dtype=np.uint64)}, {}),
    "two dimensions": ("columns", {"map_feature": np.zeros((2, 1), dtype=int)}, {}),
    "complex weights": ("columns", {"weights": np.zeros((2, 3), dtype=complex)}, {}),
    "complex features": ("columns", {"map_feature": np.zeros(2, dtype=complex)}, {}),
    "long doubles": ("columns", {"weights": np.zeros((2, 3), dtype=np.longdouble)}, {}),
    "whole weights": ("columns", {"weights": np.zeros((2, 3), dtype=int)}, {}),
    "infinite intercept": ("columns", {"intercept": np.array([0, np.inf, 0])}, {}),
    "NaN threshold": ("stumps", {"map_value": np.full(2, np.nan)}, {}),
    "unknown question": ("stumps", {"map_test": np.full(2, 3, dtype=np.uint8)}, {}),
    "NaN radius": ("regions", {"map_radius": np.full(2, np.nan)}, {}),
    "negative radius": ("regions", {"map_radius": np.full(2, -1.0)}, {}),
    "NaN share": ("regions", {"map_share": np.full(3, np.nan)}, {}),
    "a column of no part": ("mixed", {"map_part": np.array([0, 0, 2])}, {}),
    "a column of another part": ("mixed", {"map_part": np.array([0, 0, 0])}, {}),
    "a part too many": ("mixed", {"map_part9_feature": np.zeros(1, dtype=int)}, {}),
    "a part of unknown kind": ("mixed", {"map_kinds": np.array(["columns", "x"])}, {}),
    "a billion columns of a part": (
        "mixed",
        {"map_kinds": np.array(["all", "products"]), "map_part0_n_features": np.array(10**9)},
        {"n_features": 10**9},
    ),
    "unknown part": ("regions", {"map_part7_feature": np.zeros(1, dtype=int)}, {}),
    "a billion balls of nothing": (
        "pieces",
        {"map_centre": np.empty((10**9, 0)), "map_origin": np.empty((10**9, 0))},
        {},
    ),
    "a class twice": ("columns", {"classes": np.array([1, 1, 2])}, {}),
    "classes in a square": ("columns", {"classes": np.array([[1, 2, 3]])}, {}),
    "one class": ("columns", {"classes": np.array([1])}, {}),
    "widths of nothing": ("columns", {}, {"widths": [1, 0, 1]}),
    "widths that are text": ("columns", {}, {"widths": "11"}),
    "a name that is no text": ("columns", {}, {"feature_names": ["a", "b", "c", 4]}),
    "half a character": ("columns", {}, {"feature_names": ["a", "b", "c", "\ud800"]}),
    "categories that are no text": ("stumps", {}, {"categories": {"0": {"1": 7}}}),
    "categories of no feature": ("stumps", {}, {"categories": {"99": {"1": "x"}}}),
    "no features": ("columns", {}, {"n_features": 0}),
    "true features": ("columns", {}, {"n_features": True}),
    "too many features": ("columns", {}, {"n_features": 2**40}),
    "another loss": ("columns", {}, {"loss": ["margin"]}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_arrays_and_header_are_checked_before_anything_is_built(models, tmp_path, name):
    kind, arrays, header = CHANGES[name]
    old_header, old_arrays = parts_of(models[kind], tmp_path)
    contents, _ = sealed({**old_header, **header}, {**old_arrays, **arrays})
    refused(tmp_path / "mutant", contents)


def test_text_that_is_no_text(models, tmp_path):
    header, arrays = parts_of(models["columns"], tmp_path)
    arrays["classes"] = np.array([2**31, 5, 6], dtype=np.uint32).view("<U1")
    refused(tmp_path / "mutant", sealed(header, arrays)[0], "invalid characters")


def nested(depth):
    """Arrays of regions within regions."""
    own = {
        "centre": np.empty((0, 4)), "radius": np.empty(0), "share": np.ones(1),
        "nearest": np.empty(0, dtype=np.int64), "kinds": np.array(["regions"]),
    }  # fmt: skip
    arrays = {
        f"{level * 'part0_'}{name}": array for level in range(depth) for name, array in own.items()
    }
    innermost = (depth - 1) * "part0_"
    arrays[f"{innermost}kinds"] = np.array(["columns"])
    arrays[f"{innermost}part0_feature"] = np.zeros(0, dtype=np.int64)
    return arrays


@pytest.mark.parametrize("depth", [1, DEEPEST, DEEPEST + 1, 700])
def test_nesting_is_bounded(tmp_path, depth):
    arrays = {f"map_{name}": array for name, array in nested(depth).items()}
    arrays |= {"weights": np.zeros((depth, 2)), "intercept": np.zeros(2), "classes": np.arange(2)}
    header = {
        "format": "laconic predictor", "version": 2, "atoms": "regions", "loss": "log",
        "widths": [depth], "n_features": 4, "feature_names": None, "categories": {}, "other": -1.0,
    }  # fmt: skip
    contents, _ = sealed(header, arrays)
    path = tmp_path / "nested"
    if depth <= DEEPEST:
        path.write_bytes(contents)
        assert Predictor.load(path).scores(np.ones((3, 4))).shape == (3, 2)
    else:
        refused(path, contents, "deep")


def test_what_is_too_deep_to_be_loaded_cannot_be_made():
    part = ColumnsMap([])
    nothing = np.empty((0, 4)), np.empty(0), np.ones(1), np.empty(0, dtype=int)
    for _ in range(DEEPEST):
        part = RegionsMap([part], *nothing)
    with pytest.raises(ValueError, match="deep"):
        RegionsMap([part], *nothing)


# -- sound, and still made to hurt -----------------------------------------------------------------


def read_and_described(path, header, arrays):
    """Loading, describing and costing take next to no memory; the predictor comes back."""
    path.write_bytes(sealed(header, arrays)[0])
    tracemalloc.start()
    found = Predictor.load(path)
    found.describe(StringIO())
    found.cost(), repr(found), found.names()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6
    return found


NOTHING = {
    "pieces": {
        "map_centre": np.empty((0, MOST)), "map_origin": np.empty((0, MOST)),
        "map_radius": np.empty(0), "map_share": np.empty(0),
        "map_nearest": np.empty(0, dtype=int), "map_soft": np.array(True),
    },
    "regions": {
        "map_kinds": np.array(["columns"]), "map_centre": np.empty((0, MOST)),
        "map_radius": np.empty(0), "map_share": np.ones(1),
        "map_nearest": np.empty(0, dtype=int), "map_part0_feature": np.array([5]),
    },
}  # fmt: skip
NOTHING["pieces in regions"] = {
    **{n: a for n, a in NOTHING["regions"].items() if not n.startswith("map_part0")},
    **{n.replace("map_", "map_part0_"): a for n, a in NOTHING["pieces"].items()},
    "map_kinds": np.array(["pieces"]),
}


@pytest.mark.parametrize("name", NOTHING)
def test_no_ball_over_two_billion_features_takes_nothing(models, tmp_path, name):
    """An array of no rows takes no bytes, however long its rows are."""
    width = {"pieces": 0, "regions": 2, "pieces in regions": 1}[name]
    header, _ = parts_of(models["regions"], tmp_path)
    header |= {"atoms": name.split()[-1], "n_features": MOST, "widths": [width] * (width > 0)}
    flat = {"weights": np.ones((width, 2)), "intercept": np.zeros(2), "classes": np.arange(2)}
    read_and_described(tmp_path / "mutant", header, {**NOTHING[name], **flat})


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("radius", [0.0, 5e-324, 1e-200, 1e-170, 1e-3])
def test_balls_of_hardly_any_radius_hold_their_centre_or_nothing(models, tmp_path, radius, soft):
    header, _ = parts_of(models["pieces"], tmp_path)
    header |= {"n_features": 1, "widths": [2]}
    arrays = {
        "weights": np.array([[0.0] * 3, [1.0, 2.0, 3.0]]), "intercept": np.zeros(3),
        "classes": np.arange(3), "map_centre": np.ones((1, 1)), "map_radius": np.array([radius]),
        "map_origin": np.zeros((1, 1)), "map_soft": np.array(soft), "map_share": np.zeros(1),
        "map_nearest": np.zeros(1, dtype=int),
    }  # fmt: skip
    found = read_and_described(tmp_path / "ball", header, arrays)
    inside = [1.0, 2.0, 3.0] if radius > 0 else [0.0] * 3
    for rows in ([[1.0], [2.0]], [[1.0], [2.0]] * 10):
        assert found.scores(np.array(rows)).tolist() == [inside, [0.0] * 3] * (len(rows) // 2)
        assert np.array_equal(found.map.columns(np.array(rows))[0], [radius > 0, radius > 0])


@pytest.mark.parametrize("large", [1e306, 1.7e308])
@pytest.mark.parametrize("kind", ["columns", "pieces", "bumps", "hinges", "regions"])
def test_numbers_near_the_largest_float_are_an_error_or_an_answer(models, tmp_path, kind, large):
    """Sums overflow: of weights and rows, of constants, of the intercept, and in descriptions."""
    header, arrays = parts_of(models[kind], tmp_path)
    signs = np.where(np.arange(len(arrays["intercept"])) % 2, -1.0, 1.0)
    for wide in ({"weights"}, {"intercept"}, {"weights", "intercept"}):
        changed = {n: np.full_like(arrays[n], large) * signs for n in wide}
        contents, _ = sealed(header, {**arrays, **changed})
        (tmp_path / "large").write_bytes(contents)
        try:
            found = Predictor.load(tmp_path / "large")
        except ValueError:
            assert large == 1.7e308
            continue
        found.describe(StringIO())
        for rows in (np.ones((3, found.n_features)), np.full((3, found.n_features), 100.0)):
            try:
                answers = [found.scores(rows), found.predict_proba(rows)]
            except ValueError as error:
                if "overflow" not in str(error):
                    raise
            else:
                assert all(np.isfinite(answer).all() for answer in answers)


def test_many_masks_of_large_images_are_made_once(models, tmp_path, monkeypatch):
    header, arrays = parts_of(models["patches"], tmp_path)
    n = 200
    arrays |= {
        "map_shape": np.array([300, 300]), "map_template": np.zeros(n, dtype=int),
        "map_centre": np.full((n, 2), 150.0), "map_sigma": np.full(n, 9.0),
        "weights": np.ones((n, arrays["weights"].shape[1])),
    }  # fmt: skip
    made, remembered = [], masks._remembered_mask
    real = remembered.__wrapped__
    monkeypatch.setattr(remembered, "__wrapped__", lambda *a: made.append(a) or real(*a))
    found = read_and_described(
        tmp_path / "masks", {**header, "n_features": 90_000, "widths": [1] * n}, arrays
    )
    assert 0 < len(made) < 20
    one = found.map.take([0])
    positions = int((one.atoms()[0].mask() > 0).sum())
    assert found.map.operations() == n * positions + positions * int(found.map.size[0]) ** 2


def test_long_names_are_cut_before_they_are_looked_at():
    class Counted(str):
        looked = 0

        def __iter__(self):
            Counted.looked += len(self)
            return super().__iter__()

    text = Counted("A" * 10**6)
    assert shorten(text, 9) == "AAAA…AAAA"
    assert Counted.looked < 1000


# -- archives --------------------------------------------------------------------------------------


def rezipped(contents, compression=zipfile.ZIP_STORED, extra=()):
    """The same members in another archive."""
    out = BytesIO()
    with (
        zipfile.ZipFile(BytesIO(contents)) as old,
        zipfile.ZipFile(out, "w", compression) as new,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name))
        for name, data in extra:
            new.writestr(name, data)
    return out.getvalue()


def test_compressed_members_are_refused_before_they_are_inflated(models, tmp_path):
    header, arrays = parts_of(models["columns"], tmp_path)
    bomb = np.zeros(8_000_000)
    contents, _ = sealed(header, {**arrays, "bomb": bomb})
    small = rezipped(contents, zipfile.ZIP_DEFLATED)
    assert len(small) < 1_000_000
    refused(tmp_path / "bomb", small, "compressed")


def test_a_sound_model_that_is_compressed_is_refused_too(models, tmp_path):
    contents, _ = sealed(*parts_of(models["columns"], tmp_path))
    refused(tmp_path / "small", rezipped(contents, zipfile.ZIP_DEFLATED), "compressed")


def test_members_that_overlap_are_refused(models, tmp_path):
    """Many entries of the directory may point to the same bytes."""
    contents, _ = sealed(*parts_of(models["columns"], tmp_path))
    with zipfile.ZipFile(BytesIO(contents)) as archive:
        listed = archive.infolist()
    biggest = max(listed, key=lambda member: member.file_size)
    out = BytesIO(contents)
    with zipfile.ZipFile(out, "a") as archive:
        archive.filelist += [biggest] * 1000
        archive._didModify = True
    refused(tmp_path / "overlap", out.getvalue(), "larger than the file|occurs twice")


def test_members_of_one_name_are_refused(models, tmp_path):
    contents, _ = sealed(*parts_of(models["columns"], tmp_path))
    with zipfile.ZipFile(BytesIO(contents)) as archive:
        again = ("weights.npy", archive.read("weights.npy"))
    with pytest.warns(UserWarning, match="Duplicate name"):
        doubled = rezipped(contents, extra=[again])
    refused(tmp_path / "twice", doubled, "twice")


def test_an_array_without_bytes_cannot_be_a_billion_long(models, tmp_path):
    contents, _ = sealed(*parts_of(models["columns"], tmp_path))
    described = b"{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000,), }"
    member = b"\x93NUMPY\x01\x00v\x00" + described.ljust(117) + b"\n"
    refused(tmp_path / "empty", rezipped(contents, extra=[("empty.npy", member)]), "size is wrong")


def test_a_header_of_deep_brackets_is_refused(tmp_path):
    stream = BytesIO()
    np.savez(stream, header=np.array("[" * 100_000))
    refused(tmp_path / "deep", stream.getvalue())


def test_an_old_model_of_sound_contents_is_not_refused(models, tmp_path):
    """What the checks above would refuse if they were too strict."""
    for name, model in models.items():
        contents, _ = sealed(*parts_of(model, tmp_path))
        path = tmp_path / name
        path.write_bytes(contents)
        assert Predictor.load(path).names() == model.names()


def test_big_endian_arrays_are_read(models, tmp_path):
    header, arrays = parts_of(models["columns"], tmp_path)
    turned = {n: a.astype(a.dtype.newbyteorder(">")) for n, a in arrays.items()}
    path = tmp_path / "turned"
    path.write_bytes(sealed(header, turned)[0])
    X, _ = random_problem(m=80, d=4)
    loaded = Predictor.load(path)
    assert np.array_equal(loaded.scores(X), models["columns"].scores(X))
    assert loaded.weights.dtype.isnative


# -- layouts ---------------------------------------------------------------------------------------


def test_arrays_agree_on_their_dimensions():
    layout = {"a": Array("f", ("n", "d")), "b": Array("i", ("n",), 0, below="d")}
    dimensions = {"d": 3}
    sound = {"a": np.zeros((2, 3)), "b": np.array([0, 2])}
    assert set(check_arrays(sound, layout, dimensions)) == {"a", "b"}
    assert dimensions == {"d": 3, "n": 2}
    for wrong in (
        {"a": np.zeros((2, 4))},
        {"b": np.array([0, 1, 2])},
        {"b": np.array([0, 3])},
        {"b": np.array([0.0, 1.0])},
        {"c": np.zeros(1)},
    ):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))!r}"):
            check_arrays({**sound, **wrong}, layout, {"d": 3})
    with pytest.raises(ValueError, match="no array 'b'"):
        check_arrays({"a": np.zeros((2, 3))}, layout, {"d": 3})


def test_infinity_may_be_allowed_and_nan_never_is():
    layout = {"r": Array("f", ("n",), 0.0, finite=False)}
    check_arrays({"r": np.array([0.0, np.inf])}, layout, {})
    for wrong in (np.nan, -np.inf, -1.0):
        with pytest.raises(ValueError, match="'r' has values outside"):
            check_arrays({"r": np.array([0.0, wrong])}, layout, {})


@pytest.mark.parametrize("value", [None, "1", 1.0, True, -1, 2**31, 10**400, [1]])
def test_numbers_of_headers(value):
    with pytest.raises(ValueError, match="size must be a whole number from 0 to"):
        whole_number(value, "size")


@pytest.mark.parametrize("value", [None, "1", True, 10**400, float("nan"), float("inf")])
def test_real_numbers_of_headers(value):
    with pytest.raises(ValueError, match="loss must be"):
        real_number(value, "loss")
    assert real_number(2, "loss") == 2.0


@pytest.mark.parametrize("value", [None, "ab", ["a", 1], ["a"], ("a", "b")])
def test_lists_of_headers(value):
    with pytest.raises(ValueError, match="names must"):
        list_of(str, value, "names", 2)


def test_every_error_of_a_checkpoint_names_its_file(tmp_path):
    X, y = random_problem(m=60, d=4)
    path = tmp_path / "fit"
    for model in (ShareBoostClassifier(2), ErrorClumpingClassifier()):
        for contents in (b"PK" + bytes(99), b"laconic predictor\n", json.dumps([1]).encode()):
            path.write_bytes(contents)
            with pytest.raises(ValueError, match=f"{path.name} "):
                model.set_params(checkpoint=path).fit(X, y)
