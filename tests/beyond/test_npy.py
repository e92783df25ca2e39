"""Memory maps and .npy files give the same model as the same rows in memory."""

import numpy as np
import pytest
from scipy import sparse

from laconic import (
    CompactClassifier,
    ErrorClumpingClassifier,
    HolePunchingClassifier,
    ShareBoostClassifier,
    TotalQBoostClassifier,
)
from laconic.data.elsewhere import CHUNK
from laconic.rows.limits import Limits
from rows.test_shards import POOLS, table

CUTS = (50, 100)


def in_memory(model, X, y, cuts=CUTS, **fit):
    """A fit of rows in memory, cut where parts of files are cut."""
    model._limits = Limits(cuts=cuts)
    return model.fit(X, y, **fit)


DENSE = [name for name, (_, (X, _)) in POOLS.items() if not sparse.issparse(X)]


@pytest.mark.parametrize("name", DENSE)
def test_every_pool_has_the_same_bits_as_in_memory(name, map_of, assert_identical):
    pool, (X, y) = POOLS[name]
    X = np.ascontiguousarray(X)  # as in the file, because sums over other orders round differently
    for booster, labels in ((ShareBoostClassifier, y), (TotalQBoostClassifier, y > 0)):
        model = [booster(2, pool=pool, n_jobs=1) for _ in range(2)]
        assert_identical(in_memory(model[0], X, labels), model[1].fit(map_of(X), labels))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.bool_])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("pool", ["stumps", "columns"])
def test_types_and_orders(dtype, order, pool, map_of, assert_identical):
    X, y = table()
    X = np.asarray(np.round(3 * X) if dtype != np.bool_ else X > 0, dtype=dtype, order=order)
    one, other = (ShareBoostClassifier(3, pool=pool) for _ in range(2))
    assert_identical(in_memory(one, X, y), other.fit(map_of(X), y))


def test_files_of_unequal_lengths_are_cut_one_by_one(npy_files, assert_identical):
    X, y = table()
    at = [70, 70, 75]  # the second file is empty
    files, labels = npy_files(np.split(X, at)), npy_files(np.split(y, at), "y")
    one = in_memory(ShareBoostClassifier(3, pool="stumps"), X, y, (50, 70, 75))
    for given in (y, labels):
        assert_identical(one, ShareBoostClassifier(3, pool="stumps").fit(files, given))


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1, 1: 2, 2: 0.5}])
@pytest.mark.parametrize("weighted", [False, True])
def test_weights(class_weight, weighted, npy_files):
    """Rows of weight zero are left out, so the parts are others. The model is the same."""
    X, y = table()
    weight = np.random.default_rng(0).integers(0, 3, 120).astype(float) if weighted else None
    model = [ShareBoostClassifier(3, pool="stumps", class_weight=class_weight) for _ in range(3)]
    one = model[0].fit(X, y, sample_weight=weight)
    parts = npy_files(np.split(X, [60]))
    files = None if weight is None else npy_files(np.split(weight, [60]), "w")
    for other, given in ((model[1], weight), (model[2], files)):
        other.fit(parts, y, sample_weight=given)
        assert other.atoms_ == one.atoms_
        np.testing.assert_allclose(other.atom_coef_, one.atom_coef_, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(other.class_prior_, one.class_prior_)


@pytest.mark.parametrize("scale", [1e307, 1e-300])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_huge_and_tiny_weights(scale, class_weight, npy_files):
    X, y = table()
    weight = np.random.default_rng(0).integers(1, 4, 120).astype(float)
    one, other = (
        ShareBoostClassifier(3, pool="stumps", class_weight=class_weight) for _ in range(2)
    )
    one.fit(X, y, sample_weight=scale * weight)
    other.fit(npy_files(np.split(X, [60])), y, sample_weight=scale * weight)
    assert other.atoms_ == one.atoms_
    np.testing.assert_allclose(other.atom_coef_, one.atom_coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(other.class_prior_, one.class_prior_)


def test_missing_values(map_of, assert_identical):
    X, y = table(missing=True)
    one, other = (ShareBoostClassifier(3, pool="stumps") for _ in range(2))
    assert_identical(in_memory(one, X, y), other.fit(map_of(X), y))


def test_samples_of_many_rows(map_of, assert_identical, monkeypatch):
    """Cuts come from a sample of the rows that have a value."""
    from laconic.pools import Stumps
    from laconic.pools.stump_limits import StumpLimits

    monkeypatch.setattr(Stumps, "_limits", StumpLimits(sample=30))
    for X, y in (table(), table(missing=True)):
        one, other = (ShareBoostClassifier(3, pool=Stumps(3)) for _ in range(2))
        assert_identical(in_memory(one, X, y), other.fit(map_of(X), y))


@pytest.mark.parametrize("pool", ["stumps", "columns"])
def test_threads_change_no_bit(pool, map_of, assert_identical):
    X, y = table()
    one, two = (ShareBoostClassifier(3, pool=pool, n_jobs=jobs) for jobs in (1, 2))
    for model in (one, two):
        model._limits = Limits(serial=0, block_rows=8)
    assert_identical(one.fit(map_of(X), y), two.fit(map_of(X), y))


def test_a_small_map_is_an_array(map_of, assert_identical):
    X, y = (values[:50] for values in table())
    one, other = (ShareBoostClassifier(2, pool="stumps") for _ in range(2))
    assert_identical(one.fit(X, y), other.fit(map_of(X), y))


@pytest.mark.filterwarnings("ignore:cross-validation chooses no atom")
def test_a_large_map_with_folds_is_an_array(map_of, assert_identical):
    X, y = table()
    one, other = (ShareBoostClassifier(2, pool="stumps", cv=3) for _ in range(2))
    assert_identical(one.fit(X, y), other.fit(map_of(X), y))


@pytest.mark.parametrize("settings", [{"early_stopping": True}, {"cv": 3}])
def test_choosing_a_size_needs_one_memory(settings, npy_files):
    X, y = table()
    model = ShareBoostClassifier(2, pool="stumps", **settings)
    with pytest.raises(ValueError, match=r"leave .* out, fit the path, and compare its sizes"):
        model.fit(npy_files([X]), y)


@pytest.mark.parametrize(
    "model", [ErrorClumpingClassifier(), HolePunchingClassifier(), CompactClassifier()]
)
def test_estimators_that_need_one_memory_say_so(model, npy_files):
    X, y = table()
    with pytest.raises(TypeError, match="learns from rows in one memory, and X is the path of a"):
        model.fit(npy_files([X]), y)


@pytest.mark.parametrize("model", [ErrorClumpingClassifier(), HolePunchingClassifier()])
def test_maps_of_very_many_rows_need_one_memory_too(model, tmp_path):
    rows = np.lib.format.open_memmap(tmp_path / "a.npy", "w+", np.uint8, (CHUNK + 1, 1))
    with pytest.raises(TypeError, match=r"X is a memory map of 1,048,577 rows; fit it on a sample"):
        model.fit(rows, np.zeros(len(rows)))


def test_methods_refuse_paths(npy_files):
    X, y = table()
    [path] = npy_files([X])
    model = ShareBoostClassifier(2, pool="stumps").fit(path, y)
    for ask in (model.predict, model.predict_proba, model.decision_function):
        with pytest.raises(TypeError, match=r"np\.load\(file, mmap_mode=.*read_parquet\(path\)"):
            ask(path)
    assert model.score(X, y) > 0.4


WRONG = {
    "one dimension": (np.zeros(120), r"b2.*must hold rows and features, two dimensions, not 1"),
    "three dimensions": (np.zeros((2, 3, 4)), "must hold rows and features, two dimensions, not 3"),
    "objects": (np.array([[None, 1]]), "cannot be read as a .npy file of numbers"),
    "text": (np.full((120, 6), "a"), r"array that holds text .*\(in .*b2\.npy from row 0\)"),
    "infinity": (np.full((120, 6), np.inf), r"infinity.*\(in .*b2\.npy from row 0\)"),
    "features": (
        np.zeros((120, 5)),
        r"b2\.npy from row 0 has 5 features, but .*b0\.npy from row 0 has 6",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arrays_are_named(name, npy_files):
    X, y = table()
    wrong, message = WRONG[name]
    files = npy_files([X, X, wrong], "b")
    with pytest.raises(ValueError, match=f"(?s){message}"):
        ShareBoostClassifier(2, pool="stumps").fit(files, np.resize(y, 240 + len(wrong)))


def test_missing_values_name_their_file(npy_files):
    X, y = table()
    gaps = X.copy()
    gaps[70, 2] = np.nan
    with pytest.raises(ValueError, match=r"(?s)NaN.*\(in .*x2\.npy from row 50\)"):
        ShareBoostClassifier(2, pool="columns").fit(npy_files([X, X, gaps]), np.tile(y, 3))


def test_labels_and_weights_of_wrong_length(npy_files, map_of):
    X, y = table()
    files, model = npy_files([X, X]), ShareBoostClassifier(2, pool="stumps")
    with pytest.raises(ValueError, match="X has 240 rows, but y has 120"):
        model.fit(files, y)
    with pytest.raises(ValueError, match="sample_weight has 7"):
        model.fit(files, np.tile(y, 2), sample_weight=np.ones(7))
    with pytest.raises(ValueError, match="y has 1 files, but X has 2"):
        model.fit(files, npy_files([y], "y"))
    with pytest.raises(ValueError, match=r"x1\.npy has 120 rows, but .*y1\.npy has 119"):
        model.fit(files, npy_files([y, y[1:]], "y"))
    with pytest.raises(ValueError, match="X has 120 rows, but y has 119"):
        model.fit(map_of(X), y[1:])


def test_one_weight_for_all_rows(npy_files, map_of, assert_identical):
    X, y = table()
    one, other, third = (TotalQBoostClassifier(3) for _ in range(3))
    in_memory(one, X, y > 0, (50, 60, 110), sample_weight=2.0)
    other.fit(npy_files(np.split(X, [60])), y > 0, sample_weight=2.0)
    assert_identical(one, other)
    assert_identical(other, third.fit(npy_files(np.split(X, [60])), y > 0, np.full(120, 2.0)))


@pytest.mark.parametrize(("weight", "message"), [
    (np.ones((120, 1)), "sample_weight must have one dimension, not 2"),
    (np.full(120, "a"), "sample_weight must hold numbers"),
    (None, "with rows in .npy files, y must be an array or files; 'label' is neither"),
    ("label", "sample_weight must be an array or files; 'label' is neither"),
    (-1.0, "sample_weight holds negative numbers"),
])  # fmt: skip
def test_wrong_labels_and_weights(weight, message, npy_files):
    X, y = table()
    model = ShareBoostClassifier(2, pool="stumps")
    with pytest.raises(ValueError, match=message):
        model.fit(npy_files([X]), "label" if weight is None else y, sample_weight=weight)


def test_labels_of_a_map_may_be_a_file(map_of, npy_files, assert_identical):
    X, y = table()
    one, other = (ShareBoostClassifier(3, pool="stumps") for _ in range(2))
    assert_identical(one.fit(map_of(X), y), other.fit(map_of(X), npy_files([y], "y")))


def test_a_list_of_text_is_labels_and_not_files(npy_files, assert_identical):
    X, y = table()
    files, text = npy_files([X]), [f"class {label}" for label in y]
    one, other = (ShareBoostClassifier(3, pool="stumps") for _ in range(2))
    assert_identical(one.fit(files, text), other.fit(files, np.asarray(text)))


def test_labels_are_needed(npy_files, map_of):
    X, _ = table()
    for rows in (npy_files([X]), map_of(X)):
        with pytest.raises(ValueError, match="y is None; give an array for all rows"):
            ShareBoostClassifier(2, pool="stumps").fit(rows, None)


def test_labels_of_one_class(npy_files):
    X, _ = table()
    with pytest.raises(ValueError, match="at least two classes"):
        ShareBoostClassifier(2, pool="stumps").fit(npy_files([X]), np.zeros(120))
