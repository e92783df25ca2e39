"""`Predictor`: what is saved is what was fitted, and nothing else is needed to use it."""

import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

from laconic import HolePunchingClassifier, Predictor, ShareBoostClassifier
from laconic.model.atoms import ColumnsMap
from laconic.model.cost import Cost
from laconic.pools import Patches
from problems import blobs, random_problem

POOLS = ["columns", "stumps", "products", "rules"]


def round_trip(predictor, folder):
    path = folder / "model.laconic"
    predictor.save(path)
    return Predictor.load(path)


def assert_same(one, other, X):
    assert np.array_equal(one.scores(X), other.scores(X))
    assert np.array_equal(one.predict(X), other.predict(X))
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))
    assert one.names() == other.names()
    assert one.cost() == other.cost()
    for name in ("loss", "widths", "n_features", "feature_names", "categories"):
        assert getattr(one, name) == getattr(other, name)
    for name in ("weights", "intercept", "classes"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
        assert getattr(one, name).dtype.kind in (getattr(other, name).dtype.kind, "O")


@pytest.mark.parametrize("pool", [*POOLS, "pieces", "bumps", "hinges"])
def test_sparse_matrices_of_every_format_have_scores(pool):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) * (rng.random((60, 4)) < 0.5)
    model = ShareBoostClassifier(2, pool=pool).fit(X, X[:, 0] > 0)
    for format in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia"):
        given = sparse.csr_matrix(X).asformat(format)
        assert model.predictor_.scores(given) == pytest.approx(model.predictor_.scores(X))
        assert np.array_equal(model.predict(given), model.predict(X))


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("loss", ["margin", "log"])
@pytest.mark.parametrize("n_atoms", [0, 3])
def test_what_is_loaded_is_what_was_saved(three_classes, tmp_path, pool, loss, n_atoms):
    X, y = three_classes
    model = ShareBoostClassifier(n_atoms, pool=pool, loss=loss).fit(X, y)
    loaded = round_trip(model.predictor_, tmp_path)
    assert_same(model.predictor_, loaded, X)
    assert_same(loaded, round_trip(loaded, tmp_path), X)


@pytest.mark.parametrize(
    "labels",
    [
        ["ant", "bee", "hornet"],
        [3, -1, 2**40],
        [1.0, 2.0, 4.0],
        np.array(["α", "β", "γ"], dtype=object),
    ],
    ids=str,
)
def test_every_kind_of_label_survives(three_classes, tmp_path, labels):
    X, y = three_classes
    model = ShareBoostClassifier(3).fit(X, np.asarray(labels)[y])
    loaded = round_trip(model.predictor_, tmp_path)
    assert loaded.classes.tolist() == model.classes_.tolist()
    assert loaded.predict(X).tolist() == model.predict(X).tolist()


def test_booleans_survive_as_booleans(three_classes, tmp_path):
    X, y = three_classes
    model = ShareBoostClassifier(3).fit(X, y == 1)
    loaded = round_trip(model.predictor_, tmp_path)
    assert loaded.classes.dtype == bool
    assert np.array_equal(loaded.predict(X), model.predict(X))


def test_groups_survive(three_classes, tmp_path):
    X, y = three_classes
    model = ShareBoostClassifier(2, groups=[[0, 5, 6], [1, 2], [3], [4, 7]]).fit(X, y)
    loaded = round_trip(model.predictor_, tmp_path)
    assert_same(model.predictor_, loaded, X)
    assert loaded.cost().atoms == 2


def test_names_and_categories_survive(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"größe": rng.standard_normal(90), "colour": pd.Categorical(rng.choice(list("rgb"), 90))}
    )
    frame.loc[::9, "colour"] = None
    y = np.where(frame["colour"].isna(), "none", np.where(frame["colour"] == "r", "stop", "go"))
    model = ShareBoostClassifier(3, pool="stumps").fit(frame, y)
    loaded = round_trip(model.predictor_, tmp_path)
    assert loaded.feature_names == ["größe", "colour"]
    assert loaded.categories == {1: {0: "b", 2: "r"}}  # g is not asked about
    assert loaded.names() == model.get_feature_names_out().tolist()
    assert {"colour = r", "colour is missing"} <= set(loaded.names())
    codes = frame["colour"].cat.codes.astype(float).replace(-1, np.nan)
    coded = np.column_stack([frame["größe"], codes])
    assert np.array_equal(loaded.predict(coded), model.predict(frame))


@pytest.mark.parametrize("pool", POOLS)
def test_the_predictor_scores_like_the_estimator(three_classes, pool):
    X, y = three_classes
    model = ShareBoostClassifier(4, pool=pool).fit(X, y)
    predictor = model.predictor_
    assert np.array_equal(predictor.scores(X), model.decision_function(X))
    assert np.array_equal(predictor.predict(X), model.predict(X))
    assert np.array_equal(predictor.predict_proba(X), model.predict_proba(X))
    for make in (sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array):
        assert np.array_equal(predictor.scores(make(X)), predictor.scores(X))
    single = predictor.scores(X.astype(np.float32))
    np.testing.assert_allclose(
        single, predictor.scores(X.astype(np.float32).astype(float)), rtol=1e-5
    )


def test_nested_lists_and_frames_are_rows_too(three_classes):
    X, y = three_classes
    predictor = ShareBoostClassifier(2).fit(X, y).predictor_
    for rows in (X.tolist(), pd.DataFrame(X)):
        assert np.array_equal(predictor.predict(rows), predictor.predict(X))


def test_rows_that_are_elsewhere_are_refused(three_classes):
    X, y = three_classes
    predictor = ShareBoostClassifier(2).fit(X, y).predictor_
    for ask in (predictor.scores, predictor.predict, predictor.predict_proba):
        with pytest.raises(TypeError, match=r"X is the path of a file; give the rows, such as np"):
            ask("rows/*.parquet")


@pytest.mark.parametrize("shape", [(5, 7), (5, 9), (8,), (2, 5, 8), (5, 0)])
def test_rows_of_another_width_are_refused(three_classes, shape):
    X, y = three_classes
    predictor = ShareBoostClassifier(2).fit(X, y).predictor_
    for method in (predictor.scores, predictor.predict, predictor.predict_proba):
        with pytest.raises(ValueError, match="X must have 8 columns"):
            method(np.ones(shape))


def test_no_rows_have_no_scores(three_classes):
    X, y = three_classes
    predictor = ShareBoostClassifier(2).fit(X, y).predictor_
    assert predictor.scores(X[:0]).shape == (0, 3)
    assert predictor.predict_proba(X[:0]).shape == (0, 3)


# -- costs -----------------------------------------------------------------------------------------


def test_a_column_costs_its_weights(three_classes):
    X, y = three_classes
    cost = ShareBoostClassifier(4).fit(X, y).predictor_.cost()
    # 4 x 3 weights, 3 intercepts and 4 feature numbers, 8 bytes each
    assert cost == Cost(atoms=4, features=4, operations=12, bytes=8 * (12 + 3 + 4))


def test_a_stump_costs_a_comparison_and_its_question(three_classes):
    X, y = three_classes
    model = ShareBoostClassifier(5, pool="stumps").fit(X, y)
    cost = model.predictor_.cost()
    assert cost.atoms == 5
    assert cost.features == len({a.feature for a in model.atoms_})
    assert cost.operations == 5 * 3 + 5
    assert cost.bytes == 8 * (15 + 3 + 2 * 5) + 5  # the kind of a question takes one byte


def test_a_product_costs_a_multiplication_and_two_features(three_classes):
    X, y = three_classes
    model = ShareBoostClassifier(5, pool="products").fit(X, y)
    cost = model.predictor_.cost()
    assert cost.features == len({f for a in model.atoms_ for f in a})
    assert cost.operations == 5 * 3 + 5
    assert cost.bytes == 8 * (15 + 3 + 2 * 5)


def test_a_group_is_one_atom_of_several_columns(three_classes):
    X, y = three_classes
    cost = ShareBoostClassifier(1, groups=[0] * 5 + [1] * 3).fit(X, y).predictor_.cost()
    assert cost.atoms == 1
    assert cost.features in (3, 5)
    assert cost.operations == 3 * cost.features


def test_an_intercept_alone_costs_nothing_to_compute(three_classes):
    X, y = three_classes
    cost = ShareBoostClassifier(0).fit(X, y).predictor_.cost()
    assert cost == Cost(atoms=0, features=0, operations=0, bytes=24)


def predictors_that_describe_themselves():
    """Predictors with arrays that only describe them, and the names of these arrays."""
    X, y = blobs(m=120)
    pieces = ShareBoostClassifier(2, pool="pieces").fit(X, y)
    yield pieces.predictor_, {"share", "nearest"}
    holes = HolePunchingClassifier(pieces.set_params(max_atoms=1), max_holes=2, min_rows=4)
    punched = holes.fit(X, y).predictor_
    assert len(punched.map.parts) > 1
    yield punched, {"share", "nearest", "kinds", "features"}
    images = np.random.default_rng(0).random((60, 36))
    pool = Patches(n_templates=10, template_size=3, mask_grid=2, mask_sigma=1.5)
    yield (
        ShareBoostClassifier(3, pool=pool).fit(images, images[:, 0] > 0.5).predictor_,
        {"number"},
    )


def test_bytes_are_those_of_the_arrays_that_prediction_reads():
    for predictor, remarks in predictors_that_describe_themselves():
        read = {
            name: array
            for name, array in predictor.map.arrays().items()
            if name.rpartition("_")[2] not in remarks
        }
        expected = sum(array.nbytes for array in read.values())
        expected += predictor.weights.nbytes + predictor.intercept.nbytes
        assert predictor.cost().bytes == expected


# -- the file --------------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", POOLS)
def test_there_is_no_pickle_in_the_file(three_classes, tmp_path, pool):
    X, y = three_classes
    path = tmp_path / "model.laconic"
    ShareBoostClassifier(3, pool=pool).fit(X, np.array(["a", "b", "c"])[y]).predictor_.save(path)
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    assert all(not array.dtype.hasobject for array in arrays.values())
    header = json.loads(str(arrays["header"]))["header"]
    assert header["format"] == "laconic predictor"
    assert header["version"] == 2
    assert {"weights", "intercept", "classes"} <= arrays.keys()
    with zipfile.ZipFile(path) as archive:
        assert all(name.endswith(".npy") for name in archive.namelist())


def test_saving_leaves_one_file_and_replaces_the_old_one(three_classes, tmp_path):
    X, y = three_classes
    model = ShareBoostClassifier(3).fit(X, y)
    path = tmp_path / "model.laconic"
    model.predictor_.save(path)
    model.at(1).predictor_.save(str(path))
    assert [p.name for p in tmp_path.iterdir()] == ["model.laconic"]
    assert Predictor.load(str(path)).cost().atoms == 1


def test_a_failed_save_leaves_the_old_file(three_classes, tmp_path, monkeypatch):
    X, y = three_classes
    model = ShareBoostClassifier(3).fit(X, y)
    path = tmp_path / "model.laconic"
    model.predictor_.save(path)

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr("laconic.files.store.os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        model.at(1).predictor_.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["model.laconic"]
    assert Predictor.load(path).cost().atoms == 3


def test_the_same_model_makes_the_same_contents(three_classes, tmp_path):
    X, y = three_classes
    sealed = []
    for name in ("one", "two"):
        ShareBoostClassifier(3).fit(X, y).predictor_.save(tmp_path / name)
        with np.load(tmp_path / name) as file:
            sealed.append(str(file["header"]))
    assert sealed[0] == sealed[1]


# -- what is imported ------------------------------------------------------------------------------

IMPORTED = "import sys; {}; print(*sorted(m for m in sys.modules))"
HEAVY = {"numba", "llvmlite", "matplotlib", "pandas", "dask", "torch", "dimod", "rich"}


def modules_after(python, *statements):
    """The modules that each statement leaves loaded in an interpreter of its own."""
    started = [python(IMPORTED.format(statement)) for statement in statements]
    loaded = []
    for process in started:
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        loaded.append(set(out.split()))
    return loaded


def test_importing_the_package_imports_next_to_nothing(python):
    [found] = modules_after(python, "import laconic; dir(laconic)")
    assert not found & (HEAVY | {"numpy", "scipy", "sklearn"})


def test_importing_the_classifier_loads_nothing_heavy_but_scikit_learn(python):
    found, theirs = modules_after(
        python,
        "from laconic import ShareBoostClassifier",
        "import sklearn.base, sklearn.model_selection",
    )
    assert found & HEAVY <= theirs
    assert not found & {"numba", "llvmlite", "matplotlib"}
    assert "laconic.estimators.share" in found


def test_a_predictor_needs_no_trainer(python, three_classes, tmp_path):
    X, y = three_classes
    model = ShareBoostClassifier(3).fit(X, y)
    path = tmp_path / "model.laconic"
    model.predictor_.save(path)
    use = (
        "import numpy; from laconic import Predictor; "
        f"p = Predictor.load({str(path)!r}); p.predict_proba(numpy.ones((2, 8)))"
    )
    [found] = modules_after(python, use)
    [own] = modules_after(python, "import scipy.sparse")  # loads scipy.linalg in old versions
    assert not (found - own) & (HEAVY | {"sklearn", "joblib", "scipy.optimize", "scipy.linalg"})
    assert not any(m == "laconic.estimators.share" or m.startswith("laconic.boost") for m in found)
    assert not any(m.startswith("laconic.pools") for m in found)


def test_a_predictor_finds_a_frames_columns_by_name_and_encodes_them(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.uniform(20, 70, 200), "city": rng.choice(["Rome", "Oslo", "Bern"], 200)}
    )
    y = (frame["city"] == "Oslo") | (frame["age"] > 60)
    model = ShareBoostClassifier(3, pool="stumps").fit(frame, y)
    model.predictor_.save(tmp_path / "m")
    loaded = Predictor.load(tmp_path / "m")
    assert np.array_equal(
        loaded.predict(frame[["city", "age"]].assign(more=1)), model.predict(frame)
    )
    with pytest.raises(ValueError, match="no column 'city'"):
        loaded.predict(frame[["age"]])


def test_labels_read_again_as_numbers_are_the_same_categories():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"code": rng.choice(["1", "2", "x"], 200)})
    model = ShareBoostClassifier(1, pool="stumps").fit(frame, frame["code"] == "1")
    assert model.predict(pd.DataFrame({"code": [1, 2, 1]})).tolist() == [True, False, True]


def test_missing_values_are_refused_where_the_model_reads_them():
    X, y = random_problem()
    predictor = ShareBoostClassifier(2).fit(X, y).predictor_
    with pytest.raises(ValueError, match="missing or infinite"):
        predictor.predict(np.full((2, X.shape[1]), np.nan))


def test_a_map_of_ones_own_is_not_saved_as_another(tmp_path):
    class Squares(ColumnsMap):
        def columns(self, X):
            return super().columns(X) ** 2

    own = Predictor(Squares([0]), np.ones((1, 2)), np.zeros(2), np.arange(2), "log", [1], 1)
    with pytest.raises(TypeError, match="cannot be saved"):
        own.save(tmp_path / "m")


# -- data frames -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fitted", "given"),
    [
        ([1, 2, 3], [1.0, 2.0, 3.0]),
        ([1.0, 2.0, 3.0], [1, 2, 3]),
        (["1", "2", "3"], [1.0, 2.0, 3.0]),
        (["1", "2", "3"], ["1.0", "2.0", "3.0"]),
        ([True, False, "x"], ["True", "False", "x"]),
    ],
    ids=str,
)
def test_categories_are_known_however_a_table_spells_them(fitted, given):
    frame = pd.DataFrame({"v": pd.Categorical(fitted * 20)})
    y = np.array(list("xyz") * 20)
    model = ShareBoostClassifier(3, pool="stumps").fit(frame, y)
    new = pd.DataFrame({"v": pd.Series([*given, np.nan, "other"], dtype=object)})
    for predicts in (model, model.predictor_):
        assert predicts.predict(new)[:3].tolist() == ["x", "y", "z"]
    assert np.array_equal(model.predict(new), model.predictor_.predict(new))


def test_truth_is_not_the_number_one():
    frame = pd.DataFrame({"v": pd.Categorical([1, 2, 3] * 20)})
    model = ShareBoostClassifier(3, pool="stumps").fit(frame, list("xyz") * 20)
    unknown, truth = pd.DataFrame({"v": ["?"]}), pd.DataFrame({"v": [True]})
    for predicts in (model, model.predictor_):
        assert predicts.predict(truth) == predicts.predict(unknown)


def test_only_the_columns_that_are_read_are_needed():
    data = load_iris(as_frame=True)
    X = data.data.astype("Float64")
    model = ShareBoostClassifier(2).fit(data.data, data.target)
    read = [X.columns[f] for f in model.predictor_.map.features()]
    expected = model.predict(data.data)
    assert np.array_equal(model.predictor_.predict(X[read[::-1]]), expected)
    with pytest.raises(ValueError, match=f"no column '{re.escape(read[0])}'.*reads"):
        model.predictor_.predict(X[read[1:]])
    with pytest.raises(ValueError, match=f"2 columns '{re.escape(read[0])}'"):
        model.predictor_.predict(X[[*read, read[0]]])


def test_arrays_hold_no_categories():
    frame = pd.DataFrame({"v": list("abc") * 20})
    model = ShareBoostClassifier(3, pool="stumps").fit(frame, list("xyz") * 20)
    with pytest.raises(ValueError, match="give a data frame here too"):
        model.predict(frame.to_numpy())
    with pytest.raises(ValueError, match="if some columns hold text, give a data frame"):
        model.predictor_.predict(frame.to_numpy())


def test_a_model_may_be_written_to_a_device(three_classes):
    X, y = three_classes
    ShareBoostClassifier(8).fit(X, y).predictor_.save("/dev/null")
    assert Path("/dev/null").is_char_device()


def test_a_file_that_cannot_be_opened_is_no_damaged_one(tmp_path):
    with pytest.raises(IsADirectoryError):
        Predictor.load(tmp_path)
