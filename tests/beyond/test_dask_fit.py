"""Dask collections give the same model as the same rows in memory."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

pytest.importorskip("dask")
pytest.importorskip("distributed")

from dask_rows import CUTS, array_of, frame_of, in_memory

from laconic import ShareBoostClassifier, TotalQBoostClassifier
from laconic.losses import BINARY_LOSSES, LOSSES
from laconic.penalties import PENALTIES
from laconic.pools import Stumps
from problems import random_problem
from rows.test_shards import POOLS, RULES, SETTINGS, assert_same_paths, in_shards, table

# -- the same model --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in POOLS if "csc" not in name])
def test_every_pool_has_the_same_path_as_in_memory(name):
    """Without a client, partitions are shards of this process. (Sparse chunks of rows are CSR.)"""
    pool, (X, y) = POOLS[name]
    if not sparse.issparse(X):
        X = np.ascontiguousarray(X)
    for booster, labels in ((ShareBoostClassifier, y), (TotalQBoostClassifier, y > 0)):
        model = [booster(2, pool=pool, n_jobs=1) for _ in range(2)]
        one = in_memory(model[0], X, labels)
        assert_same_paths([one, model[1].fit(array_of(X), array_of(labels))])


@pytest.mark.parametrize("name", [
    "columns csr", "groups", "products", "stumps named", "pieces", "rules named", "bumps",
    "hinges", "patches", "mixed", "mixed with hinges",
])  # fmt: skip
def test_pools_on_a_cluster(name, cluster):
    pool, (X, y) = POOLS[name]
    model = ShareBoostClassifier(2, pool=pool, n_jobs=1)
    [one] = in_shards(model, X, y, [CUTS])
    with cluster.as_current():
        assert_same_paths([one, clone(model).fit(array_of(X), array_of(y))])


@pytest.mark.parametrize("loss", [*LOSSES, *BINARY_LOSSES])
def test_losses_on_a_cluster(loss, cluster):
    X, y = table()
    booster = ShareBoostClassifier if loss in LOSSES else TotalQBoostClassifier
    y = y if loss in LOSSES else y > 0
    model = booster(2, pool=Stumps(3), loss=loss, n_jobs=1)
    [one] = in_shards(model, X, y, [CUTS])
    with cluster.as_current():
        assert_same_paths([one, clone(model).fit(array_of(X), array_of(y))])


@pytest.mark.parametrize("penalty", sorted(PENALTIES))
def test_penalties_on_a_cluster_take_few_exchanges(penalty, cluster):
    X, y = random_problem(m=2000, d=20, k=4, noise=3.0)
    model = ShareBoostClassifier(8, penalty=penalty, alpha=1e-3, n_jobs=1)
    one = clone(model).fit(X, y)
    with cluster.as_current():
        there = clone(model).fit(array_of(X, (500, 1300)), array_of(y, (500, 1300)))
    assert there.atoms_ == one.atoms_
    assert there.exchanges_.count <= 6 * 8
    for a, b in zip(one.path_, there.path_, strict=True):
        assert a.certificate.gap >= 0 <= b.certificate.gap
        assert b.loss == pytest.approx(a.loss, rel=1e-3)


@pytest.mark.parametrize("rule", RULES)
def test_rules_on_a_cluster(rule, cluster):
    X, y = table()
    model = ShareBoostClassifier(2, rule=rule, n_jobs=1)
    [one] = in_shards(model, X[:, :3], y, [(60,)])
    with cluster.as_current():
        there = clone(model).fit(array_of(X[:, :3], (60,)), array_of(y, (60,)))
    assert_same_paths([one, there])


MORE = [
    {"include": [1], "exclude": [0]},
    {"costs": [1, 2, 1, 1, 3, 1], "max_cost": 4},
    {"max_features": 2, "pool": "stumps"},
    {"max_operations": 9},
    {"max_bytes": 900, "pool": "stumps"},
    {"rule": "projection", "loss": "log", "alpha": 0.01},
]
WHERE = [(settings, "here") for settings in [*SETTINGS, *MORE]]
WHERE += [(settings, "cluster") for settings in (SETTINGS[0], *MORE[:2], MORE[4])]


@pytest.mark.parametrize(("settings", "anywhere"), WHERE, indirect=["anywhere"], ids=str)
def test_settings(settings, anywhere):
    X, y = table()
    model = ShareBoostClassifier(3, n_jobs=1, **settings)
    [one] = in_shards(model, X, y, [CUTS])
    assert_same_paths([one, clone(model).fit(array_of(X), array_of(y))])


SEARCHES = [
    {"search": "exact"},
    {"search": None},
    {"hot_start": 3},
    {"max_atoms": 2},
    {"loss": "log", "costs": [1, 2, 1, 1, 3, 1]},
]
SEARCHED = [(settings, "here") for settings in SEARCHES]
SEARCHED += [(settings, "cluster") for settings in (SEARCHES[0], SEARCHES[-1])]


@pytest.mark.parametrize(("settings", "anywhere"), SEARCHED, indirect=["anywhere"], ids=str)
def test_subset_searches(settings, anywhere):
    X, y = table()
    model = TotalQBoostClassifier(3, price=3e-3, n_jobs=1, pool=Stumps(3), **settings)
    [one] = in_shards(model, X, y > 0, [CUTS])
    assert_same_paths([one, clone(model).fit(array_of(X), array_of(y > 0))])


@pytest.mark.parametrize("of", [{"price": [0.02, 0.005]}, {"l1": [0.02, 0.005]}])
def test_paths_of_prices(of, anywhere):
    X, y = table()
    model = TotalQBoostClassifier(3, pool=Stumps(3), hot_start=2, n_jobs=1)
    one = model.fit_path(X, y > 0, **of)
    other = model.fit_path(array_of(X), array_of(y > 0), **of)
    for pair in zip(one, other, strict=True):
        assert_same_paths(pair)


@pytest.mark.parametrize("cuts", [(), (1, 20, 21, 45, 80, 100, 101, 119)])
@pytest.mark.parametrize("pool", ["columns", "stumps"])
def test_other_partitions_give_the_same_atoms_and_weights(pool, cuts, anywhere):
    X, y = table()
    model = [ShareBoostClassifier(4, pool=pool, tol=1e-14, alpha=1e-4) for _ in range(2)]
    one, other = model[0].fit(X, y), model[1].fit(array_of(X, cuts), array_of(y, cuts))
    assert other.atoms_ == one.atoms_
    np.testing.assert_allclose(other.atom_coef_, one.atom_coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(other.intercept_, one.intercept_, rtol=1e-6, atol=1e-9)


def test_single_precision_stays(anywhere):
    X, y = table()
    model = ShareBoostClassifier(3, n_jobs=1)
    [one] = in_shards(model, X.astype("f"), y, [CUTS])
    other = clone(model).fit(array_of(X.astype("f")), array_of(y))
    assert_same_paths([one, other])


DTYPES = [np.int16, np.uint8, np.bool_, np.float16, object, "datetime64[D]", "timedelta64[h]"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_of_every_type(dtype):
    X, y = table()
    X = np.abs(900 * X).astype(int).astype(dtype)
    one, other = (ShareBoostClassifier(3, pool="stumps") for _ in range(2))
    assert_same_paths([in_memory(one, X, y), other.fit(array_of(X), array_of(y))])
    assert np.array_equal(other.predict(array_of(X)).compute(), one.predict(X))


NULLABLE = {
    "whole": lambda X: pd.array((9 * X[:, 0]).astype(int), dtype="Int64"),
    "number": lambda X: pd.array(X[:, 1], dtype="Float64"),
    "flag": lambda X: pd.array(X[:, 2] > 0, dtype="boolean"),
    "text": lambda X: pd.array(np.where(X[:, 3] > 2, "a", "b"), dtype="string"),
    "zoned": lambda X: pd.Timestamp("2024", tz="UTC") + pd.to_timedelta(999 * X[:, 4], unit="h"),
    "wait": lambda X: pd.to_timedelta(999 * X[:, 5], unit="h"),
}


def test_frames_with_missing_cells_of_every_type(anywhere):
    X, y = table()
    rows = pd.DataFrame({name: make(X) for name, make in NULLABLE.items()})
    rows.loc[55:105] = pd.NA  # a whole partition lacks everything
    one, other = (ShareBoostClassifier(6, pool="stumps", n_jobs=1) for _ in range(2))
    in_memory(one, rows, y)
    other.fit(frame_of(rows), frame_of(pd.Series(y)))
    assert_same_paths([one, other])
    assert np.array_equal(other.predict(frame_of(rows)).compute(), one.predict(rows))


def test_dense_and_sparse_chunks_mix(assert_identical):
    """Stumps and columns of a chunk do not depend on how the chunk is stored, up to rounding."""
    X, y = table()
    X = np.where(X > 0.2, X, 0.0)
    dense = array_of(X)
    mixed = dense.map_blocks(
        lambda x, block_info=None: (
            sparse.csr_matrix(x) if block_info[0]["chunk-location"][0] % 2 else x
        ),
        meta=np.zeros((0, 6)),
    )
    for pool in ("columns", "stumps"):
        fits = [
            ShareBoostClassifier(3, pool=pool).fit(rows, array_of(y)) for rows in (dense, mixed)
        ]
        assert_same_paths(fits)


# -- weights ---------------------------------------------------------------------------------------


def same(one, other):
    assert other.atoms_ == one.atoms_
    np.testing.assert_allclose(other.atom_coef_, one.atom_coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(other.intercept_, one.intercept_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(other.class_prior_, one.class_prior_)


def precise(**settings):
    return ShareBoostClassifier(3, pool="stumps", tol=1e-14, **{"alpha": 1e-4, **settings})


@pytest.mark.parametrize(("class_weight", "anywhere"), [
    (None, "here"), ({0: 1, 1: 2, 2: 0.5}, "here"), ("balanced", "here"), ("balanced", "cluster"),
], indirect=["anywhere"])  # fmt: skip
def test_weights_are_those_of_memory(class_weight, anywhere):
    X, y = table()
    weight = np.random.default_rng(0).integers(0, 3, 120).astype(float)
    one = precise(class_weight=class_weight).fit(X, y, sample_weight=weight)
    other = precise(class_weight=class_weight)
    same(one, other.fit(array_of(X), array_of(y), sample_weight=array_of(weight)))


def test_a_row_of_weight_two_counts_twice_and_of_weight_zero_not_at_all():
    X, y = table()
    weight = np.random.default_rng(1).integers(0, 3, 120)
    weight[50] = 0  # the partition of one row
    again = np.repeat(np.arange(120), weight)
    one = precise().fit(array_of(X), array_of(y), sample_weight=array_of(weight))
    cuts = (40, 90)
    same(one, precise().fit(array_of(X[again], cuts), array_of(y[again], cuts)))


def test_a_partition_of_weight_zero_may_lack_everything():
    X, y = table()
    weight = np.ones(120)
    weight[51:100] = 0
    kept = weight > 0
    model = precise().fit(array_of(X), array_of(y), sample_weight=array_of(weight))
    same(precise().fit(X[kept], y[kept]), model)


def test_missing_values_and_samples(anywhere):
    X, y = table(missing=True)
    model = ShareBoostClassifier(3, pool="stumps", n_jobs=1)
    [one] = in_shards(model, X, y, [CUTS])
    assert_same_paths([one, clone(model).fit(array_of(X), array_of(y))])


# -- kinds of collections --------------------------------------------------------------------------


def shop(n=120):
    """A table of numbers, text, categories, dates, truth values and gaps, with labels."""
    rng = np.random.default_rng(1)
    X, y = table()
    rows = pd.DataFrame({
        "number": np.where(rng.random(n) < 0.2, np.nan, X[:n, 0]),
        "whole": rng.integers(0, 9, n),
        "text": np.where(X[:n, 1] > 0, "warm", rng.choice(["cold", "mild"], n)),
        "colour": pd.Categorical(rng.choice(["red", "green", "blue"], n)),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, n), unit="D"),
        "flag": X[:n, 2] > 0,
        "label": np.array(["a", "b", "c"])[y[:n]],
        "weight": rng.integers(1, 4, n),
    })  # fmt: skip
    rows.loc[60:, "text"] = rows.loc[60:, "text"].replace("cold", "mild")  # a part lacks it
    return rows


FEATURES = ["number", "whole", "text", "colour", "day", "flag"]


@pytest.mark.parametrize("known", [True, False])
def test_frames_of_all_kinds(known, anywhere):
    rows = shop()
    given = frame_of(rows)
    if not known:
        given["colour"] = given["colour"].cat.as_unknown()
    one, other = (ShareBoostClassifier(6, pool="stumps", n_jobs=1) for _ in range(2))
    in_memory(one, rows[FEATURES], rows.label, sample_weight=rows.weight)
    other.fit(given[FEATURES], given.label, sample_weight=given.weight)
    assert_same_paths([one, other])
    assert list(other.feature_names_in_) == FEATURES
    assert other.classes_.tolist() == ["a", "b", "c"]
    found = other.predict(given[FEATURES]).compute()
    assert np.array_equal(found, one.predict(rows[FEATURES]))


def test_categories_of_each_partition_may_differ(anywhere):
    rows = shop()
    pieces = [rows.iloc[:50].copy(), rows.iloc[50:].copy()]
    for piece in pieces:
        piece["colour"] = piece["colour"].astype(str).astype("category")
    pieces[1].loc[60:, "colour"] = "red"
    pieces[1]["colour"] = pieces[1]["colour"].cat.remove_unused_categories()
    whole = pd.concat([piece.astype({"colour": str}) for piece in pieces])
    whole["colour"] = whole["colour"].astype("category")
    import dask
    import dask.dataframe as dd

    given = dd.from_delayed([dask.delayed(p) for p in pieces], meta=pieces[0].iloc[:0],
                            verify_meta=False)  # fmt: skip
    one, other = (ShareBoostClassifier(5, pool="stumps", n_jobs=1) for _ in range(2))
    in_memory(one, whole[["colour", "whole"]], whole.label, (50,))
    other.fit(given[["colour", "whole"]], given.label)
    assert_same_paths([one, other])


def test_columns_of_a_frame_that_dask_reads_from_files(anywhere, tmp_path):
    """Dask joins more files when it reads fewer columns."""
    pytest.importorskip("pyarrow")
    import dask.dataframe as dd

    X, y = table()
    rows = pd.DataFrame(X, columns=list("abcdef")).assign(y=y, w=np.arange(120) % 3 + 1)
    for number, (first, last) in enumerate(pairwise([0, *CUTS, 120])):
        rows[first:last].to_parquet(tmp_path / f"{number}.parquet")
    given, names = dd.read_parquet(str(tmp_path)), list("abcdef")
    assert given["y"].optimize().npartitions < given[names].optimize().npartitions
    one, other = (ShareBoostClassifier(4, pool="stumps", n_jobs=1) for _ in range(2))
    in_memory(one, rows[names], y, sample_weight=rows.w)
    other.fit(given[names], given["y"], sample_weight=given["w"])
    assert_same_paths([one, other])
    assert other.score(given[names], given["y"]) == pytest.approx(one.score(rows[names], y))


def test_unknown_chunk_sizes(anywhere):
    rows = shop()
    given = frame_of(rows)
    numbers = ["whole", "flag", "weight"]
    X, y = given[numbers].astype(float).values, given.label.astype(object).values
    one, other = (ShareBoostClassifier(3, n_jobs=1) for _ in range(2))
    in_memory(one, rows[numbers].astype(float).to_numpy(), rows.label.to_numpy())
    assert_same_paths([one, other.fit(X, y)])


def test_masks_leave_empty_partitions(anywhere):
    X, y = table()
    keep = (np.arange(120) < 50) | (np.arange(120) >= 100)
    rows, labels, kept = array_of(X), array_of(y), array_of(keep)
    one, other = (ShareBoostClassifier(3, pool="stumps", n_jobs=1) for _ in range(2))
    in_memory(one, X[keep], y[keep], (50,))
    assert_same_paths([one, other.fit(rows[kept], labels[kept])])


@pytest.mark.parametrize("form", [
    lambda y: array_of(y),
    lambda y: array_of(y)[:, None],
    lambda y: array_of(y, (30,)),
    lambda y: y,
    lambda y: y.tolist(),
    lambda y: pd.Series(y, index=np.arange(120)[::-1]),
    lambda y: pd.DataFrame({"y": y}),
    lambda y: frame_of(pd.Series(y)),
    lambda y: frame_of(pd.DataFrame({"y": y})),
], ids=["array", "one column", "other chunks", "numpy", "list", "series", "frame", "dask series",
        "dask frame"])  # fmt: skip
def test_forms_of_labels(form, assert_identical):
    X, y = table()
    names = np.array(["x", "y", "z"])[y]
    one, other = (ShareBoostClassifier(2, pool="stumps") for _ in range(2))
    assert_identical(one.fit(array_of(X), array_of(names)), other.fit(array_of(X), form(names)))


LABELS = {
    "Int64": [3, 1], "UInt8": [3, 1], "Float64": [2.0, 1.0], "boolean": [True, False],
    "int32[pyarrow]": [3, 1], "bool[pyarrow]": [True, False], "string": ["y", "x"],
    "category": [3, 1],
}  # fmt: skip


@pytest.mark.parametrize("form", [pd.Series, pd.array, pd.DataFrame])
@pytest.mark.parametrize("dtype", LABELS)
@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
def test_labels_of_nullable_types_are_those_of_memory(dtype, form):
    """Whole numbers stay whole numbers, and truth values stay truth values."""
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    X, y = table()
    two = LABELS[dtype]
    plain, labels = np.array(two)[y % 2], form(pd.Series(np.array(two)[y % 2], dtype=dtype))
    plain = plain if dtype != "string" else plain.astype(object)
    one, other, third = (ShareBoostClassifier(2, pool="stumps") for _ in range(3))
    one.fit(X, labels)
    assert one.classes_.tolist() == sorted(two)
    assert list(map(type, one.classes_.tolist())) == list(map(type, sorted(two)))
    assert one.score(X, labels) == one.score(X, plain)
    rows = frame_of(pd.DataFrame(X).rename(columns=str))
    if form is not pd.array:
        other.fit(rows, frame_of(labels))
        third.fit(array_of(X), labels)
        for model in (other, third):
            assert model.classes_.tolist() == one.classes_.tolist()
            assert model.classes_.dtype == one.classes_.dtype
        assert other.score(rows, frame_of(labels)) == one.score(X, plain)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize("dtype", ["Int64", "boolean", "string"])
def test_missing_labels_of_nullable_types_are_refused(dtype):
    X, y = table()
    labels = pd.Series(y > 0).astype("string" if dtype == "string" else "boolean").astype(dtype)
    labels[70] = pd.NA
    rows = frame_of(pd.DataFrame(X).rename(columns=str))
    with pytest.raises(ValueError, match=r"y .*(no label|contains NaN).*\(in part 2 of X\)"):
        ShareBoostClassifier(2).fit(rows, frame_of(labels))
    with pytest.raises(ValueError, match=r"y .*(no label|contains NaN)"):
        ShareBoostClassifier(2).fit(X, labels)


def test_chunks_of_features_are_joined(assert_identical):
    X, y = table()
    one, other = (ShareBoostClassifier(2) for _ in range(2))
    one.fit(array_of(X), array_of(y))
    assert_identical(one, other.fit(array_of(X).rechunk({1: 2}), array_of(y)))
    cut = other.predict(array_of(X).rechunk({1: 2}))
    assert np.array_equal(cut.compute(), other.predict(X))


def test_a_pipeline_ends_with_a_fit_on_dask(anywhere):
    X, y = table()
    from sklearn.preprocessing import FunctionTransformer

    twice = FunctionTransformer(lambda X: 2 * X)
    model = make_pipeline(twice, ShareBoostClassifier(3, n_jobs=1))
    one, other = clone(model).fit(X, y), clone(model).fit(array_of(X), array_of(y))
    assert one[-1].atoms_ == other[-1].atoms_
    assert np.array_equal(other.predict(array_of(X)).compute(), one.predict(X))


def test_a_model_can_be_fitted_again(cluster, assert_identical):
    X, y = table()
    rows = array_of(X), array_of(y)
    model = ShareBoostClassifier(2, n_jobs=1)
    here = clone(model).fit(*rows)
    with cluster.as_current():
        assert model.fit(*rows).exchanges_.count > 0
    again = model.fit(*rows)
    assert not hasattr(again, "exchanges_")
    assert_identical(again, here)
    assert_identical(clone(model).fit(X, y), model.fit(X, y))
