"""Wrong Dask collections are refused with words that name the partition and say what to do."""

import warnings

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask_rows import array_of, frame_of, workers
from sklearn.tree import DecisionTreeClassifier

from laconic import (
    CompactClassifier,
    ErrorClumpingClassifier,
    HolePunchingClassifier,
    ShareBoostClassifier,
    TotalQBoostClassifier,
    report_holes,
)
from rows.test_shards import table

X, Y = table()


def fit(rows=None, y=None, pool="columns", **more):
    rows = array_of(X) if rows is None else rows
    return ShareBoostClassifier(2, pool=pool).fit(rows, array_of(Y) if y is None else y, **more)


def changed(row, column, value):
    rows = X.copy()
    rows[row, column] = value
    return array_of(rows)


def weights(row, value):
    weight = np.ones(120)
    weight[row] = value
    return array_of(weight)


@pytest.mark.parametrize(("value", "what"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_values_that_no_column_takes(value, what, anywhere):
    with pytest.raises(ValueError, match=rf"(?s){what}.*\(in part 2 of X\)"):
        fit(changed(70, 3, value))


def test_text(anywhere):
    rows = frame_of(pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "x", "y")}))
    with pytest.raises(ValueError, match=r"text.*stumps.*\(in part \d of X\)"):
        fit(rows, frame_of(pd.Series(Y)))


@pytest.mark.parametrize(("value", "what"), [
    (-1.0, "negative"), (np.nan, "NaN or infinity"), (np.inf, "NaN or infinity"),
])  # fmt: skip
def test_wrong_weights(value, what, anywhere):
    with pytest.raises(ValueError, match=rf"sample_weight holds {what}.*\(in part 2 of X\)"):
        fit(sample_weight=weights(70, value))


def test_weights_that_are_all_zero(anywhere):
    with pytest.raises(ValueError, match="X has no row of positive weight"):
        fit(sample_weight=array_of(np.zeros(120)))


def test_one_class(anywhere):
    with pytest.raises(ValueError, match=r"y must hold at least two classes .* one class, 1"):
        fit(y=array_of(np.ones(120, int)))
    with pytest.raises(ValueError, match="y must hold at least two classes"):
        fit(sample_weight=array_of((Y == 1).astype(float)))


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_missing_labels(anywhere):
    labels = Y.astype(float)
    labels[70] = np.nan
    told = r"y has no label in 1 of 49 rows; leave those rows out \(in part 2 of X\)"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=told):
            fit(y=array_of(labels))


def test_labels_of_two_columns(anywhere):
    two = np.c_[Y, Y]
    for given in (two, array_of(two), frame_of(pd.DataFrame(two))):
        with pytest.raises(ValueError, match="y must be a single column; it has 2"):
            fit(y=given)
    for given in (two, array_of(two)):
        with pytest.raises(ValueError, match="sample_weight must have one dimension, not 2"):
            fit(sample_weight=given)


def test_labels_that_are_missing():
    for ask in (ShareBoostClassifier(2).fit, fit().score):
        with pytest.raises(ValueError, match="y is None; give the labels as a Dask collection"):
            ask(array_of(X), None)


def test_kinds_of_labels_that_differ(anywhere):
    def text_at_the_end(y, block_info=None):
        late = block_info[0]["chunk-location"][0] == 3
        return y.astype(str) if late else y

    labels = array_of(Y).map_blocks(text_at_the_end, dtype=int)
    told = "y holds numbers in part 0 of X and text in part 3 of X; make all labels text, or all"
    with pytest.raises(ValueError, match=told):
        fit(y=labels)


def test_lengths_that_differ(anywhere):
    with pytest.raises(ValueError, match="X has 120 rows, but y has 119"):
        fit(y=array_of(Y[:119]))
    with pytest.raises(ValueError, match="X has 120 rows, but sample_weight has 119"):
        fit(sample_weight=np.ones(119))
    with pytest.raises(ValueError, match="X has 120 rows, but y has no rows"):
        fit(y=2.0)
    unknown = array_of(Y)[array_of(np.arange(120) != 70)]
    with pytest.raises(ValueError, match=r"part 2 of X has 49 rows, but .* part of y has 48; give"):
        fit(y=unknown)


def test_numbers_of_partitions_that_differ(anywhere):
    rows = frame_of(pd.DataFrame(X).rename(columns=str))
    with pytest.raises(ValueError, match="X has 4 partitions, but y has 2; give them the same"):
        fit(rows, frame_of(pd.Series(Y), (60,)))


def test_arrays_for_partitions_of_unknown_lengths():
    rows = frame_of(pd.DataFrame(X).rename(columns=str))
    told = "no Dask collection, and Dask does not know .* as a column of the same frame has"
    with pytest.raises(TypeError, match=f"y is {told}$"):
        fit(rows, Y)
    with pytest.raises(TypeError, match=f"sample_weight is {told}$"):
        fit(rows, frame_of(pd.Series(Y)), sample_weight=np.ones(120))
    some = array_of(X)[array_of(X)[:, 0] > 0]
    with pytest.raises(TypeError, match=rf"{told}, or call X\.compute_chunk_sizes\(\) first"):
        fit(some, Y[X[:, 0] > 0])


def test_columns_that_differ(anywhere):
    parts = [pd.DataFrame({"a": X[:60, 0], "b": X[:60, 1]}), pd.DataFrame({"b": X[60:, 1]})]
    rows = dd.from_delayed([dask.delayed(p) for p in parts], meta=parts[0][:0], verify_meta=False)
    with pytest.raises(ValueError, match=r"part 1 of X lacks 'a', which part 0 of X has; give"):
        fit(rows, frame_of(pd.Series(Y), (60,)))


def test_frames_without_columns(anywhere):
    frame = pd.DataFrame(index=range(len(Y)))
    with pytest.raises(ValueError, match="X has no columns"):
        ShareBoostClassifier(2).fit(frame, Y)
    with pytest.raises(ValueError, match="X has no columns"):
        fit(frame_of(frame), frame_of(pd.Series(Y)))


@pytest.mark.parametrize(("dimensions", "rows"), [
    (1, array_of(X[:, 0])),
    (3, da.zeros((120, 2, 3), chunks=(60, 2, 3))),
    (1, frame_of(pd.Series(X[:, 0]))),
])  # fmt: skip
def test_dimensions(dimensions, rows):
    model = fit()
    for ask in (lambda: fit(rows), lambda: model.predict(rows), lambda: model.score(rows, Y)):
        with pytest.raises(
            ValueError, match=f"two dimensions, rows and features, not {dimensions}"
        ):
            ask()


@pytest.mark.parametrize("make", [
    lambda: dask.delayed(X), lambda: bag(),
], ids=["delayed", "bag"])  # fmt: skip
def test_other_collections(make):
    rows, model = make(), fit()
    for ask in (lambda: fit(rows), lambda: model.predict(rows), lambda: model.score(rows, Y)):
        with pytest.raises(TypeError, match=f"X is a {type(rows).__name__}; give a Dask array or"):
            ask()
    with pytest.raises(TypeError, match=f"X is a {type(rows).__name__}; give a Dask array or"):
        fit(rows, "label")
    with pytest.raises(TypeError, match=f"y is a {type(rows).__name__}; give a Dask array or"):
        fit(y=rows)


def bag():
    return pytest.importorskip("dask.bag").from_sequence(X.tolist(), npartitions=2)


def fails(x):
    if x.size and x[0, 0] == X[51, 0]:
        raise RuntimeError("the disk is on fire")
    return x


def test_partitions_that_cannot_be_computed(anywhere):
    rows = array_of(X).map_blocks(fails, meta=X[:0])
    message = "part 2 of X cannot be computed: RuntimeError: the disk is on fire"
    with pytest.raises(RuntimeError, match=message):
        fit(rows)
    model = fit()
    with pytest.raises(RuntimeError, match=message):
        model.score(rows, array_of(Y))


@pytest.mark.parametrize("settings", [{"early_stopping": True}, {"cv": 3}])
@pytest.mark.parametrize("booster", [ShareBoostClassifier, TotalQBoostClassifier])
def test_choosing_a_size_needs_one_memory(booster, settings):
    model = booster(2, pool="stumps", **settings)
    with pytest.raises(ValueError, match=r"leave .* out, fit the path, and compare its sizes"):
        model.fit(array_of(X), array_of(Y))


def test_weak_learners_need_one_memory():
    model = TotalQBoostClassifier(3, pool=DecisionTreeClassifier(max_depth=1))
    with pytest.raises(TypeError, match=r"^DecisionTreeClassifier cannot be .* in parts: .*; keep"):
        model.fit(array_of(X), array_of(Y > 0))


@pytest.mark.parametrize(
    "model", [ErrorClumpingClassifier(), HolePunchingClassifier(), CompactClassifier()]
)
def test_estimators_that_need_one_memory_say_so(model):
    message = "learns from rows in one memory, and X is a Dask collection; fit it on a sample"
    with pytest.raises(TypeError, match=message):
        model.fit(array_of(X), array_of(Y))


def test_the_report_needs_one_memory():
    rows = array_of(X)
    with pytest.raises(TypeError, match="X is a Dask collection; give it a sample of the rows"):
        report_holes(fit(), rows, array_of(Y))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "transform"])
def test_new_rows_of_other_columns_are_refused_at_once(method, cluster):
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = fit(frame_of(frame), frame_of(pd.Series(Y)))
    ask = getattr(model, method)
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        ask(frame_of(frame[list("fedcba")]))
    with pytest.raises(ValueError, match="unseen at fit time"):
        ask(frame_of(frame.rename(columns={"a": "z"})))
    with pytest.raises(ValueError, match=r"5 features.*expecting 6"):
        ask(array_of(X[:, :5]))


def test_wrong_rows_of_a_score_name_their_partition(anywhere):
    model = fit()
    with pytest.raises(ValueError, match=r"(?s)NaN.*\(in part 2 of X\)"):
        model.score(changed(70, 3, np.nan), array_of(Y))
    with pytest.raises(ValueError, match=r"negative.*\(in part 2 of X\)"):
        model.score(array_of(X), array_of(Y), weights(70, -1.0))
    unknown = array_of(Y)[array_of(np.arange(120) != 70)]
    with pytest.raises(ValueError, match=r"part 2 of X has 49 rows, but .* y has 48"):
        model.score(array_of(X), unknown)
    with pytest.raises(ValueError, match="no row of positive weight to score"):
        model.score(array_of(X), array_of(Y), array_of(np.zeros(120)))
    with pytest.raises(ValueError, match="X has 120 rows, but y has 119"):
        model.score(array_of(X), Y[:119])


def test_models_that_are_not_fitted():
    from sklearn.exceptions import NotFittedError

    for ask in ("predict", "transform", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(ShareBoostClassifier(2), ask)(array_of(X))
    with pytest.raises(NotFittedError):
        ShareBoostClassifier(2).score(array_of(X), array_of(Y))


def test_one_weight_for_all_rows(anywhere):
    with_one = TotalQBoostClassifier(2).fit(array_of(X), array_of(Y > 0), sample_weight=2.0)
    twos = array_of(np.full(120, 2.0))
    with_twos = TotalQBoostClassifier(2).fit(array_of(X), array_of(Y > 0), sample_weight=twos)
    assert np.array_equal(with_one.decision_function(X), with_twos.decision_function(X))


def test_weights_have_one_dimension(anywhere):
    with pytest.raises(ValueError, match="sample_weight must have one dimension, not 2"):
        fit(sample_weight=array_of(np.ones((120, 1))))
    with pytest.raises(ValueError, match=r"sample_weight must hold numbers \(in part \d of X\)"):
        fit(sample_weight=array_of(np.full(120, "a")))


def test_numbers_beside_text(anywhere):
    """The order of the partitions does not matter."""
    numbers = pd.DataFrame({"a": [0.5, 1.0, 2.0], "y": [0, 1, 0]})
    text = numbers.assign(a=["u", "v", "u"])
    for parts in ((numbers, text), (text, numbers)):
        tasks = [dask.delayed(part) for part in parts]
        rows = dd.from_delayed(tasks, meta=parts[0].iloc[:0], verify_meta=False)
        with pytest.raises(
            ValueError, match=r"column 'a' of X holds numbers in part . of X and text in part . of"
        ):
            fit(rows[["a"]], rows["y"], pool="stumps")


def masked(values, mask):
    """Return a masked array and the same as a Dask array."""
    lazy = da.ma.masked_array(array_of(values), mask=array_of(mask))
    return np.ma.masked_array(values, mask=mask), lazy


def test_masked_values_are_refused_here_and_in_memory(anywhere):
    """NumPy reads what is behind a mask."""
    model, at = ShareBoostClassifier(2, pool="stumps"), np.arange(120) == 70
    here, there = masked(X, np.tile(at[:, None], (1, 6)))
    message = r"X holds masked values, which count as missing; use \.filled\(np\.nan\)"
    with pytest.raises(ValueError, match=message):
        model.fit(here, Y)
    with pytest.raises(ValueError, match=rf"{message} \(in part 2 of X\)"):
        fit(there)
    with pytest.raises(ValueError, match=rf"{message} \(in part 2 of X\)"):
        fit(da.flip(there, axis=1))  # in another layout
    labels, weight = masked(Y, at), masked(np.ones(120), at)
    for own, (one, other) in (("y", labels), ("sample_weight", weight)):
        given = {"y": (one, None), "sample_weight": (Y, one)}[own]
        with pytest.raises(ValueError, match=f"{own} holds masked values.*leave those rows out"):
            model.fit(X, *given)
        with pytest.raises(ValueError, match=f"{own} holds masked values.*leave those rows out"):
            fit(**{own: other})
    nothing, lazily = masked(X, np.zeros(X.shape, bool))
    assert np.array_equal(model.fit(nothing, Y).predict(X), fit(lazily, pool="stumps").predict(X))


def test_dates_of_several_time_zones(anywhere):
    times = pd.Series(pd.date_range("2024", periods=60, freq="h", tz="UTC"))
    parts = [
        pd.DataFrame({"when": times.dt.tz_convert(zone), "y": np.arange(60) % 2})
        for zone in ("UTC", "Europe/Oslo")
    ]
    tasks = [dask.delayed(part) for part in parts]
    rows = dd.from_delayed(tasks, meta=parts[0].iloc[:0], verify_meta=False)
    with pytest.raises(ValueError, match="'when' of X has Europe/Oslo and UTC in different parts"):
        fit(rows[["when"]], rows["y"], pool="stumps")
    same = dd.from_delayed([tasks[0], tasks[0]], meta=parts[0].iloc[:0])
    assert fit(same[["when"]], same["y"], pool="stumps").n_atoms_ == 2


def test_what_only_looks_like_dask_is_an_array():
    """Arrays of other libraries know Dask's protocol, and may hold NumPy's arrays."""

    class Labelled:
        shape = X.shape

        def __array__(self, dtype=None, copy=None):
            return np.asarray(X, dtype)

        def __len__(self):
            return len(X)

        def __dask_graph__(self):
            return None

    model = ShareBoostClassifier(2).fit(Labelled(), Y)
    assert np.array_equal(model.predict(Labelled()), ShareBoostClassifier(2).fit(X, Y).predict(X))


def test_a_broken_installation_is_no_missing_cluster(monkeypatch):
    from laconic.beyond import collections

    class Broken:
        def get_client(self):
            raise ImportError("distributed cannot be imported")

    monkeypatch.setitem(collections.sys.modules, "distributed", Broken())
    with pytest.raises(ImportError, match="cannot be imported"):
        fit()
    monkeypatch.delitem(collections.sys.modules, "distributed")
    assert fit().n_atoms_ == 2


def test_methods_that_take_no_dask_say_what_does():
    model = ShareBoostClassifier(2).fit(X, Y)
    with pytest.raises(TypeError, match=r"to each partition, with X\.map_blocks or X\.map_p"):
        model._new_rows(array_of(X))


def test_labels_and_weights_may_be_names_of_columns(anywhere):
    rows = pd.DataFrame(X).rename(columns=str).assign(label=Y, w=1.0 + (Y == 0))
    given, features = frame_of(rows), [str(at) for at in range(X.shape[1])]
    one = fit(given[features], given["label"], sample_weight=given["w"])
    other = fit(given, "label", sample_weight="w")
    assert other.feature_names_in_.tolist() == features
    assert np.array_equal(one.atom_coef_, other.atom_coef_)
    score = one.score(given[features], given["label"], sample_weight=given["w"])
    assert other.score(given, "label", sample_weight="w") == score
    mixed = fit(given.drop(columns="w"), "label", sample_weight=given["w"])
    assert np.array_equal(one.atom_coef_, mixed.atom_coef_)
    with pytest.raises(ValueError, match="y='lable' is not a column of X; did you mean 'label'"):
        fit(given, "lable")
    with pytest.raises(ValueError, match="column 'w' cannot be both y and sample_weight"):
        fit(given, "w", sample_weight="w")
    with pytest.raises(TypeError, match="y='label' names a column, but X is no data frame"):
        fit(array_of(X), "label")


def test_rows_of_a_cluster_that_is_gone():
    with workers(1) as client, client.as_current():
        rows, labels = array_of(X).persist(), array_of(Y).persist()
    told = "persisted on a cluster that is gone, or that was restarted; make the collection again"
    with pytest.raises(RuntimeError, match=told):
        fit(rows, labels)
    with workers(1) as client, client.as_current(), pytest.raises(RuntimeError, match=told):
        fit(rows, labels)
