"""Data frames of pandas and polars: every kind of column, in every estimator, answers alike."""

import datetime as dt
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone

from laconic import (
    ErrorClumpingClassifier,
    HolePunchingClassifier,
    Predictor,
    ShareBoostClassifier,
    TotalQBoostClassifier,
    report_holes,
)
from laconic.data.cells import Cells, read_column
from laconic.data.dates import as_days, as_durations
from laconic.data.frames import numbers_of
from laconic.files.store import read_archive, write_archive

M = 240
START = dt.date(2023, 1, 1)


def values(seed=0):
    """Plain lists for the columns of a frame, with gaps and without."""
    rng = np.random.default_rng(seed)

    def gaps(column):
        return [None if i % 11 == 3 else v for i, v in enumerate(column)]

    days = rng.integers(0, 700, M)
    member = (rng.uniform(size=M) < 0.5).tolist()
    towns = rng.choice(["Rome", "Oslo", "Bern"], M).tolist()
    return {
        "age": rng.uniform(20, 70, M).tolist(),
        "visits": rng.integers(0, 9, M).tolist(),
        "member": member,
        "day": [START + dt.timedelta(days=int(d)) for d in days],
        "moment": [
            dt.datetime(2023, 1, 1) + dt.timedelta(hours=int(h)) for h in rng.integers(0, 9999, M)
        ],
        "stay": [dt.timedelta(minutes=int(n)) for n in rng.integers(10, 600, M)],
        "spelled": [(START + dt.timedelta(days=int(d))).isoformat() for d in days[::-1]],
        "town": gaps(towns),
        "kind": rng.choice(["a", "b", "c"], M).tolist(),
        "maybe": gaps(member[::-1]),
        "count": gaps(rng.integers(0, 5, M).tolist()),
    }


WHOLE = ["age", "visits", "member", "day", "moment", "stay", "spelled"]


def in_pandas(data):
    frame = pd.DataFrame(data)
    for name in {"day", "moment"} & set(data):
        frame[name] = pd.to_datetime(frame[name])
    kinds = {"kind": "category", "maybe": "boolean", "count": "Int64"}
    return frame.astype({name: kind for name, kind in kinds.items() if name in data})


def in_polars(data):
    kinds = {"kind": pl.Categorical} if "kind" in data else {}
    return pl.DataFrame(data, schema_overrides=kinds)


def target(data):
    late = np.array([d > dt.date(2024, 3, 1) for d in data["day"]])
    return late ^ (np.array(data["age"]) > 60) ^ (np.array(data["town"], dtype=object) == "Oslo")


def some(data, names):
    return {name: data[name] for name in names}


MODELS = {
    "share": (ShareBoostClassifier(6), WHOLE),
    "share stumps": (ShareBoostClassifier(8, pool="stumps"), None),
    "totalq": (TotalQBoostClassifier(12, price=1e-3), None),
    "clumping": (ErrorClumpingClassifier(1e-2, radius=30.0), WHOLE),
    "holes": (
        HolePunchingClassifier(ErrorClumpingClassifier(1e-2, radius=30.0), max_holes=2),
        WHOLE,
    ),
}
every_model = pytest.mark.parametrize(("model", "names"), MODELS.values(), ids=MODELS)


@every_model
def test_pandas_and_polars_give_the_same_model(model, names, tmp_path):
    data = values()
    y, data = target(data), some(data, names or list(data))
    one, two = in_pandas(data), in_polars(data)
    first = pickle.loads(pickle.dumps(model)).fit(one, y)
    second = pickle.loads(pickle.dumps(model)).fit(two, pl.Series(y.tolist()))
    assert list(second.feature_names_in_) == list(data)
    scores = first.decision_function(one)
    for frame in (one, two):
        assert np.array_equal(second.decision_function(frame), scores)
        assert np.array_equal(first.predict(frame), first.classes_[(scores > 0).astype(int)])
    first.predictor_.save(tmp_path / "model")
    for predictor in (second.predictor_, Predictor.load(tmp_path / "model")):
        assert predictor.units == {p: u for p, u in units(list(data)).items()}
        wanted = first.predictor_.scores(one)
        assert np.array_equal(predictor.scores(two), wanted)
        assert np.array_equal(predictor.scores(two.reverse()[list(data)[::-1]])[::-1], wanted)


def units(names):
    data = values()
    first = {name: str(min(data[name]))[:10] for name in ("day", "moment", "spelled")}
    known = {name: f"days since {day}" for name, day in first.items()} | {"stay": "hours"}
    return {p: known[name] for p, name in enumerate(names) if name in known}


def test_a_date_is_its_days_however_it_is_kept():
    day = dt.datetime(2024, 5, 31, 12)
    kept = [
        pd.DataFrame({"d": [day, None]}),
        pd.DataFrame({"d": pd.Series([day, None]).dt.tz_localize("Europe/Oslo")}),
        pl.DataFrame({"d": [day, None]}),
        pl.DataFrame({"d": pl.Series([day, None]).dt.replace_time_zone("Asia/Tokyo")}),
    ]
    for frame in kept:
        days = as_days(read_column(frame, 0).values)
        assert days[0] == 19874.5
        assert np.isnan(days[1])


def test_units_of_a_file_are_checked(tmp_path):
    model = ShareBoostClassifier(2).fit(in_polars(some(values(), WHOLE)), target(values()))
    model.predictor_.save(tmp_path / "model")
    header, arrays = read_archive(tmp_path / "model", "predictor")
    header = {name: v for name, v in header.items() if name not in ("format", "version")}
    since = "days since 2023-02-"
    wrong_units = ({"0": u} for u in ("years", 7, f"{since}29", f"{since}01 ", "days since "))
    for wrong in (*wrong_units, {"99": "date"}, {"x": "date"}, ["date"], None):
        write_archive(tmp_path / "wrong", "predictor", {**header, "units": wrong}, arrays)
        with pytest.raises(ValueError, match="not a sound predictor"):
            Predictor.load(tmp_path / "wrong")
    header.pop("units")  # as files were before there were any
    write_archive(tmp_path / "old", "predictor", header, arrays)
    assert Predictor.load(tmp_path / "old").units == {}


def test_a_fit_learns_from_dates_and_says_them():
    rng = np.random.default_rng(1)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 200), "D")
    y = days > pd.Timestamp("2024-06-01")
    models = [
        ShareBoostClassifier(1, pool="stumps").fit(pd.DataFrame({"when": when}), y)
        for when in (days, days.strftime("%Y-%m-%d"), days.strftime("%Y-%m-%d").to_list())
    ]
    for model in models:
        assert model.score(pd.DataFrame({"when": days}), y) == 1.0
        [name] = model.get_feature_names_out()
        assert name.startswith("when <= 2024-06-0")
        assert np.array_equal(
            model.predict(days.to_numpy().astype("M8[D]").astype(float)[:, None]), y
        )


LINEAR = {
    "share": ShareBoostClassifier(3),
    "clumping": ErrorClumpingClassifier(),
    "holes": HolePunchingClassifier(ShareBoostClassifier(3), max_holes=1),
}
every_linear_model = pytest.mark.parametrize("model", LINEAR.values(), ids=LINEAR)


def recent(seed=0, rows=600):
    """Dates of one year, whose days since 1970 are nearly constant, and which of them are late."""
    rng = np.random.default_rng(seed)
    days = np.datetime64("2024-01-01") + rng.integers(0, 366, rows)
    return days, days > np.datetime64("2024-06-01")


@every_linear_model
def test_linear_models_learn_from_dates(model, tmp_path):
    days, y = recent()
    kept = {
        "pandas": pd.DataFrame({"when": days}),
        "text": pd.DataFrame({"when": days.astype(str)}),
        "polars": pl.DataFrame({"when": days}),
        "days": pd.DataFrame({"when": days.astype("M8[D]").astype(int)}),
    }
    for name in ("pandas", "text", "polars"):
        fitted = clone(model).fit(kept[name], y)
        assert fitted.score(kept[name], y) > 0.97
        fitted.predictor_.save(tmp_path / "model")
        loaded = Predictor.load(tmp_path / "model")
        assert loaded.units == {0: "days since 2024-01-01"}
        wanted = fitted.predictor_.scores(kept["pandas"])
        array = kept["days"].to_numpy()
        for same in (*kept.values(), array, array.astype(np.uint32), days[:, None]):
            assert np.array_equal(loaded.scores(same), wanted)
            if not isinstance(same, np.ndarray) or same.dtype.kind != "M":
                by_name = same if hasattr(same, "columns") else kept["days"]
                assert np.array_equal(fitted.predict(by_name), fitted.predict(kept["pandas"]))
        sums = loaded.scores(sparse.csr_matrix(array.astype(float)))
        assert sums == pytest.approx(wanted, rel=1e-9)
        before = array.copy()
        fitted.predictor_.predict(array)
        assert np.array_equal(array, before)


@every_linear_model
def test_weights_of_rows_decide_where_days_begin(model):
    days, y = recent(1, 80)
    # Rows of weight zero are the first by far; a date that is there twice is the first as before.
    early = np.array(["1900-01-01", "1950-01-01"], dtype="M8[D]")
    X = pd.DataFrame({"when": np.r_[days, early]})
    labels, weight = np.r_[y, [True, True]], np.r_[np.arange(80) % 3, 0, 0]
    rows = np.repeat(np.arange(82), weight)
    weighted = clone(model).fit(X, labels, sample_weight=weight)
    repeated = clone(model).fit(X.iloc[rows], labels[rows])
    assert weighted.predictor_.units == repeated.predictor_.units
    assert weighted.decision_function(X[:80]) == pytest.approx(
        repeated.decision_function(X[:80]), rel=1e-4, abs=1e-6
    )


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda X: X["long"][:, None]])
def test_weights_of_rows_decide_the_unit_of_durations(make):
    minutes = np.array([10, 300, 400, 500])
    X, y = {"long": minutes.astype("m8[m]").astype("m8[us]")}, np.array([0, 1, 0, 1])
    weight = np.array([4, 1, 1, 0])
    rows = np.repeat(np.arange(4), weight)
    repeated = {"long": X["long"][rows]}
    model = ShareBoostClassifier(1)
    units = [
        clone(model).fit(make(X), y, sample_weight=weight).predictor_.units,
        clone(model).fit(make(repeated), y[rows]).predictor_.units,
        clone(model).fit(make(X), y).predictor_.units,
    ]
    assert units == [{0: "minutes"}, {0: "minutes"}, {0: "hours"}]


def test_half_of_the_weight_decides_the_unit():
    hours = np.array([0.25, 3.0, 3.0]) * 3600
    times = hours.astype("m8[s]")
    assert as_durations(times[:2])[1] == "hours"
    assert as_durations(times[:2], weight=np.array([1.1, 1.0]))[1] == "minutes"
    assert as_durations(times, weight=np.array([0.2, 0.1, 0.1]))[1] == "hours"
    assert as_durations(times[:0])[1] == "seconds"


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda X: X["t"][:, None]])
@pytest.mark.parametrize("start", [None, "2024-05-31T12:00"])
def test_nanoseconds_count(make, start):
    y = np.arange(40) % 3 == 0
    t = np.where(y, 100, 900).astype("m8[ns]")
    t = t if start is None else np.datetime64(start, "ns") + t
    X = make({"t": t})
    model = ShareBoostClassifier(1, pool="stumps").fit(X, y)
    assert model.score(X, y) == 1.0
    assert np.array_equal(model.predictor_.predict(X), y)


def test_text_is_the_same_date_to_the_nanosecond():
    times = np.datetime64("2024-05-31T12:34:56", "ns") + np.array([1, 500, 900]).astype("m8[ns]")
    unit = "days since 2024-05-31"
    numbers = numbers_of(Cells("t", times), unit)
    assert len(np.unique(numbers)) == 3
    text = np.array([f"{t}+02:00" for t in times], dtype=object)
    assert np.array_equal(numbers_of(Cells("t", text), unit), numbers)
    for resolution in ("s", "ms", "us", "ns"):
        noon = np.array(["2024-06-01T12:00"], dtype=f"M8[{resolution}]")
        assert numbers_of(Cells("t", noon), unit).tolist() == [1.5]
    early = np.array([np.iinfo(np.int64).min + 1]).astype("M8[ns]")  # the first that there is
    assert as_days(early) == pytest.approx(-106751.99, abs=0.01)


def test_files_without_the_first_date_count_days_since_1970(tmp_path):
    days, y = recent()
    numbers = days.astype("M8[D]").astype(float)[:, None]
    old = ShareBoostClassifier(1, pool="stumps").fit(numbers, y).predictor_
    parts = old.map, old.weights, old.intercept, old.classes, old.loss, old.widths, 1
    Predictor(*parts, ["when"], units={0: "date"}).save(tmp_path / "old")
    loaded = Predictor.load(tmp_path / "old")
    assert loaded.names()[0].startswith("when <= 2024-06-0")
    for same in (pd.DataFrame({"when": days}), numbers):
        assert np.array_equal(loaded.predict(same), y)


def test_times_that_do_not_fit_are_refused_by_the_name_of_their_column():
    data = some(values(), WHOLE)
    y = target(values())
    model = ShareBoostClassifier(len(WHOLE)).fit(in_polars(data), y)  # reads every column
    bad = {**data, "age": data["moment"]}
    for frame in (in_pandas(data).assign(age=data["moment"]), in_polars(bad)):
        with pytest.raises(ValueError, match="column 'age' of X holds dates, but it held numbers"):
            model.predict(frame)
    text = {**data, "day": ["spring"] * M}
    for predicts in (model, model.predictor_):
        with pytest.raises(
            ValueError, match=r"column 'day' of X holds text \('spring' in row 0\).*dates"
        ):
            predicts.predict(pl.DataFrame(text))
    text = {**data, "stay": ["long"] * M}
    for predicts in (model, model.predictor_):
        with pytest.raises(
            ValueError, match=r"'stay' of X holds text \('long'.*durations, or .*ho"
        ):
            predicts.predict(pl.DataFrame(text))


def test_complex_numbers_are_called_so():
    frame = pd.DataFrame({"age": np.arange(M) + 1j})
    for model in (ShareBoostClassifier(1), ShareBoostClassifier(1, pool="stumps")):
        with pytest.raises(ValueError, match=r"'age' of X holds complex numbers \(1j in row 0\)"):
            model.fit(frame, target(values()))
    fitted = ShareBoostClassifier(1).fit(frame.assign(age=np.arange(M)), target(values()))
    with pytest.raises(ValueError, match=r"'age' of X holds complex numbers \(1j in row 0\)"):
        fitted.predictor_.predict(frame)


@every_model
def test_names_of_a_polars_frame_are_checked_as_those_of_pandas_are(model, names):
    y, data = target(values()), some(values(), names or list(values()))
    fitted = pickle.loads(pickle.dumps(model)).fit(in_polars(data), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # "X does not have valid feature names"
        fitted.predict(in_polars(data))
    for other, told in (
        ({"size": data["age"], **some(data, list(data)[1:])}, "unseen at fit time:\n- size"),
        (some(data, list(data)[::-1]), "must be in the same order as they were in fit"),
    ):
        with pytest.raises(ValueError, match=told):
            fitted.predict(in_polars(other))


def test_a_frame_with_too_few_columns_is_refused_by_their_number():
    data = values()
    frame = in_pandas(some(data, ["age", "visits", "town"]))
    named = ShareBoostClassifier(8, pool="stumps").fit(frame, target(data)).predictor_
    parts = named.map, named.weights, named.intercept, named.classes, named.loss, named.widths, 3
    nameless = Predictor(*parts, categories=named.categories)
    assert np.array_equal(nameless.scores(frame), named.scores(frame))
    for few in (frame[["age", "visits"]], in_polars(some(data, ["age", "visits"]))):
        with pytest.raises(ValueError, match=r"X must have 3 columns, not shape \(240, 2\)"):
            nameless.predict(few)


ONLY_NUMBERS = {name: case[0] for name, case in MODELS.items() if case[1] is not None}


@pytest.mark.parametrize("model", ONLY_NUMBERS.values(), ids=ONLY_NUMBERS)
def test_text_is_refused_by_the_name_of_its_column_where_only_numbers_do(model):
    for make in (in_pandas, in_polars):
        frame = make(some(values(), ["age", "town"]))
        with pytest.raises(ValueError, match=r"column 'town' of X holds text \('\w+' in row 0\)"):
            pickle.loads(pickle.dumps(model)).fit(frame, target(values()))


NO_VALUES = {
    "time": [dt.time(i % 24) for i in range(M)],
    "bytes": [b"%d" % i for i in range(M)],
    "object": [object() for _ in range(M)],
    "dict": [{"a": i} for i in range(M)],
}


@pytest.mark.parametrize(("kind", "cells"), NO_VALUES.items(), ids=NO_VALUES)
@pytest.mark.parametrize("pool", ["stumps", "columns"])
def test_cells_of_types_that_are_no_values_are_refused_by_column(kind, cells, pool):
    told = f"column 'odd' of X holds objects of type {kind}; turn them into numbers or text"
    series = pl.Series("odd", cells, dtype=pl.Object if kind == "object" else None)
    frames = [pl.DataFrame({"age": values()["age"]}).with_columns(series)]
    frames.append(pd.DataFrame({"age": values()["age"], "odd": cells}))
    for frame in frames:
        with pytest.raises(ValueError, match=told):
            ShareBoostClassifier(2, pool=pool).fit(frame, target(values()))


def test_cells_that_are_no_values_are_refused_in_words():
    frame = pl.DataFrame({"pair": [[1, 2]] * M})
    with pytest.raises(ValueError, match="column 'pair' of X holds objects of type"):
        ShareBoostClassifier(2, pool="stumps").fit(frame, target(values()))
    with pytest.raises(TypeError, match=r"LazyFrame, not .* in memory; call its collect\(\) first"):
        ShareBoostClassifier(2).fit(in_polars(some(values(), ["age"])).lazy(), target(values()))


def test_columns_of_one_name_are_refused_where_it_matters():
    data = values()
    frame = in_pandas(some(data, ["age", "town", "visits"]))
    model = ShareBoostClassifier(4, pool="stumps").fit(frame, target(data))
    twice = pd.concat([frame, frame[["visits"]]], axis=1)
    with pytest.raises(ValueError, match="X has 2 columns 'visits'; give each its own name"):
        ShareBoostClassifier(4, pool="stumps").fit(twice, target(data))
    smaller = model.at(1).predictor_
    assert "visits" not in smaller.names()[0]
    assert np.array_equal(smaller.predict(twice), smaller.predict(frame))


def test_an_arrow_dictionary_is_categories():
    towns = ["Rome", None, "Oslo", "Oslo"] * 10
    y = np.array([town == "Rome" for town in towns])
    kept = pa.array(towns).dictionary_encode()
    frames = [
        pd.DataFrame({"town": pd.array(towns, dtype=pd.ArrowDtype(kept.type))}),
        pd.DataFrame({"town": pd.Categorical(towns)}),
        pa.table({"town": kept}),
        pl.DataFrame({"town": pl.Series(towns, dtype=pl.Categorical)}),
    ]
    model = ShareBoostClassifier(1, pool="stumps").fit(frames[0], y)
    assert model.get_feature_names_out().tolist() in (["town = Rome"], ["town = Oslo"])
    wanted = model.predictor_.scores(frames[1])
    for frame in frames:
        fitted = ShareBoostClassifier(1, pool="stumps").fit(frame, y)
        assert np.array_equal(fitted.predictor_.scores(frames[0]), wanted)
        assert np.array_equal(model.predictor_.scores(frame), wanted)


@pytest.mark.skipif(not hasattr(pl, "Int128"), reason="this polars has no such type")
def test_whole_numbers_of_128_bits_are_numbers():
    numbers = [-(10**20), 3, None, 10**20] * 10
    y = np.array([number is None or number < 0 for number in numbers])
    frame = pl.DataFrame({"n": pl.Series(numbers, dtype=pl.Int128), "x": np.arange(40.0) % 3})
    model = ShareBoostClassifier(2, pool="stumps").fit(frame, y)
    assert model.score(frame, y) == 1.0
    assert np.array_equal(model.predictor_.predict(frame), y)
    alone = frame.select("n")
    assert ShareBoostClassifier(2, pool="stumps").fit(alone, y).score(alone, y) == 1.0


def test_categories_that_no_row_has_are_other():
    y = np.arange(60) % 2 == 0
    kind = pl.Enum(["z", "b", "a"])
    frame = pl.DataFrame({"k": pl.Series(np.where(y, "a", "b"), dtype=kind)})
    model = ShareBoostClassifier(1, pool="stumps").fit(frame, y)
    assert np.array_equal(model.predict(frame), y)
    unseen = pl.DataFrame({"k": pl.Series(["z", None, "a"], dtype=kind)})
    for wanted, predicts in ((True, "a"), (False, "b")):
        seen = pl.DataFrame({"k": pl.Series([predicts], dtype=kind)})
        assert model.predict(seen).tolist() == [wanted]
    [name] = model.get_feature_names_out()
    assert name in ("k = a", "k = b")
    # Neither a category that no row has nor a missing one is the category that is asked about.
    assert model.transform(unseen)[:, 0].tolist() == [0.0, 0.0, float(name == "k = a")]


def test_a_column_without_any_value_is_missing_whatever_it_is_of():
    data = values()
    data = some(data, ["age", "town", "maybe", "day", "count"])
    model = ShareBoostClassifier(8, pool="stumps").fit(in_polars(data), target(values()))
    gone = in_polars(data).with_columns(town=pl.lit(None, dtype=pl.String))
    wanted = model.decision_function(gone)
    theirs = in_pandas(data)
    for empty in (
        pd.Categorical([None] * M, categories=["Oslo"]),
        pd.array([None] * M, dtype="string"),
        np.full(M, None),
        np.full(M, np.nan),
    ):
        assert np.array_equal(model.decision_function(theirs.assign(town=empty)), wanted)
    for kind in (pl.Null, pl.Categorical, pl.Enum(["Oslo"]), pl.Float64, pl.Boolean):
        frame = gone.with_columns(town=pl.lit(None, dtype=kind))
        assert np.array_equal(model.decision_function(frame), wanted)
        assert np.array_equal(model.predictor_.scores(frame), model.predictor_.scores(gone))


# Types of two columns in pandas and in polars, and whether numpy would hold both in float32.
PRECISIONS = {
    "float32": ("float32", pl.Float32, True),
    "bool": ("bool", pl.Boolean, True),
    "boolean": ("boolean", pl.Boolean, True),
    "int8": ("int8", pl.Int8, True),
    "Int16": ("Int16", pl.Int16, True),
    "Float32": ("Float32", pl.Float32, True),
    "int32": ("int32", pl.Int32, False),
    "float64": ("float64", pl.Float64, False),
    "Int64": ("Int64", pl.Int64, False),
}


@pytest.mark.parametrize(("theirs", "kind", "single"), PRECISIONS.values(), ids=PRECISIONS)
def test_single_precision_stays_and_checkpoints_know_the_same_rows(theirs, kind, single, tmp_path):
    a, b = np.linspace(0, 1, 50, dtype=np.float32), np.arange(50) % 2
    one = pd.DataFrame({"a": a, "b": pd.Series(b).astype(theirs)})
    two = pl.DataFrame({"a": a, "b": pl.Series(b).cast(kind)})
    y = np.arange(50) > 20
    wanted = np.float32 if single else np.float64
    for first, second in ((one, two), (two, one)):
        model = ShareBoostClassifier(2, pool="products", checkpoint=tmp_path / "state")
        scores = model.fit(first, y).decision_function(first)
        for frame in (first, second):
            assert model._validated(frame).dtype == wanted
            flat = model.predictor_.scores(frame)
            assert np.array_equal(flat[:, 1] - flat[:, 0], scores)
        assert model.fit(second, y).status_ == model.status_  # resumed: the rows are the same
    with pytest.raises(ValueError, match="other data or settings"):
        model.fit(two.with_columns(pl.col("a") * 2), y)


def test_checkpoints_know_the_same_dates_and_categories(tmp_path):
    data = values()
    for model in (ShareBoostClassifier(3, pool="stumps"), TotalQBoostClassifier(3)):
        model.set_params(checkpoint=tmp_path / type(model).__name__)
        for frame in (in_pandas(data), in_polars(data)):
            model.fit(frame, target(data))
        moved = {**data, "day": [day + dt.timedelta(days=1) for day in data["day"]]}
        with pytest.raises(ValueError, match="other data or settings"):
            model.fit(in_polars(moved), target(data))


@pytest.mark.parametrize("unit", ["D", "us", "ns"])
def test_arrays_of_times_are_days_whatever_their_unit(unit):
    days = np.datetime64("2024-01-01") + np.random.default_rng(0).integers(0, 300, 60)
    X, y = days[:, None].astype(f"M8[{unit}]"), days > np.datetime64("2024-06-01")
    model = ShareBoostClassifier(1, pool="stumps").fit(X, y)
    assert model.get_feature_names_out()[0].startswith("x0 <= 2024-0")
    for other in (X, X.astype("M8[h]"), days.astype("M8[D]").astype(float)[:, None]):
        for predicts in (model, model.predictor_):
            assert np.array_equal(predicts.predict(other), y)
    lengths = (X - X.min()).astype("m8[h]")
    stays = ShareBoostClassifier(1, pool="stumps").fit(lengths, y)
    assert stays.predictor_.units == {0: "days"}
    assert np.array_equal(stays.predictor_.predict(lengths.astype("m8[s]")), y)
    for predicts in (stays, stays.predictor_):
        with pytest.raises(ValueError, match="column 'x0' of X holds dates, but it held durations"):
            predicts.predict(X)


def test_numbers_that_are_no_days_are_refused_where_dates_were_fitted():
    data = values()
    frame = in_polars(some(data, ["age", "moment", "stay"]))
    model = ShareBoostClassifier(2, pool="stumps").fit(frame, target(data))
    days = as_days(frame["moment"].to_numpy())
    right = frame.with_columns(moment=pl.Series(days))
    assert np.array_equal(model.predict(right), model.predict(frame))
    smaller = ShareBoostClassifier(2).fit(frame.select("moment"), target(data))
    for factor in (86400.0, 1e3):  # seconds since 1970, or a number such as 20240531
        wrong = right.with_columns(pl.col("moment") * factor)
        for predicts, given in (
            (model, wrong),
            (model, wrong.select(pl.all().exclude("stay"), pl.lit(1.0).alias("stay")).to_numpy()),
            (smaller, wrong.select("moment")),
            (smaller.predictor_, wrong),
            (smaller.predictor_, wrong.select("moment").to_numpy()),
        ):
            with pytest.raises(ValueError, match=r"'moment' of X.*days since 1970"):
                predicts.predict(given)


@every_model
def test_missing_labels_are_told_in_words(model, names):
    data = values()
    frame = in_polars(some(data, names or list(data)))
    labels = np.where(target(data), "yes", "no").tolist()
    labels[3] = None
    for y in (pl.Series(labels), pd.Series(labels), pl.Series(labels, dtype=pl.Categorical)):
        with pytest.raises(ValueError, match="y has no label in 1 of 240 rows"):
            pickle.loads(pickle.dumps(model)).fit(frame, y)


def test_the_report_reads_both_alike():
    data = values()
    y = target(data)
    predicted = np.where(np.array(data["age"]) > 62, ~y, y)
    said = [
        report_holes(predicted, frame, y, ignore=["visits"]).text()
        for frame in (in_pandas(data), in_polars(data))
    ]
    assert said[0] == said[1]
    assert "age" in said[0]
    model = ShareBoostClassifier(3, pool="stumps").fit(in_polars(data), y)
    reports = [
        report_holes(model, f, y, ignore=["visits"]).text()
        for f in (in_pandas(data), in_polars(data))
    ]
    assert reports[0] == reports[1]


def test_frames_load_narwhals_and_nothing_else_does(python, tmp_path):
    model = ShareBoostClassifier(2).fit(in_polars(some(values(), WHOLE)), target(values()))
    model.predictor_.save(tmp_path / "model")
    use = (
        "import sys, numpy; from laconic import Predictor;"
        f"p = Predictor.load({str(tmp_path / 'model')!r}); p.predict(numpy.ones((2, 7)));"
        "assert 'narwhals' not in sys.modules; import polars, datetime;"
        "p.predict(polars.DataFrame({**{n: [1.0] for n in "
        f"{WHOLE}"
        "}, 'day': [datetime.date(2024, 1, 1)]}));"
        "assert 'narwhals' in sys.modules;"
        "assert not {'sklearn', 'pandas', 'joblib'} & set(sys.modules)"
    )
    process = python(use)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
