"""Parquet files give the same model as the same table in memory."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest

from laconic import ShareBoostClassifier
from laconic.beyond.parquet import ParquetRows
from laconic.rows.limits import Limits
from rows.test_shards import table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

CUTS = (50, 100)


def frame(n=120):
    """A table of numbers, text, categories, dates, truth values and gaps, with labels."""
    rng = np.random.default_rng(1)
    X, y = table()
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, n), unit="D")
    rows = pd.DataFrame({
        "number": np.where(rng.random(n) < 0.2, np.nan, X[:n, 0]),
        "whole": rng.integers(0, 9, n),
        "text": np.where(X[:n, 1] > 0, "warm", rng.choice(["cold", "mild"], n)),
        "colour": pd.Categorical(rng.choice(["red", "green", "blue"], n)),
        "day": days,
        "flag": X[:n, 2] > 0,
        "late": np.arange(n) > 60,
        "label": np.array(["a", "b", "c"])[y[:n]],
    })  # fmt: skip
    rows.loc[60:, "text"] = rows.loc[60:, "text"].replace("cold", "mild")  # a part lacks it
    return rows


def in_memory(rows, cuts=CUTS, y="label", **settings):
    model = ShareBoostClassifier(5, pool="stumps", **settings)
    model._limits = Limits(cuts=cuts)
    return model.fit(rows.drop(columns=y), rows[y])


def from_files(path, y="label", weight=None, **settings):
    return ShareBoostClassifier(5, pool="stumps", **settings).fit(path, y, sample_weight=weight)


def test_a_table_of_all_kinds(parquet_file, assert_identical):
    rows = frame()
    model = from_files(str(parquet_file(rows)))
    assert_identical(in_memory(rows), model)
    assert list(model.feature_names_in_) == list(rows.columns[:-1])
    X = rows.drop(columns="label")
    assert np.array_equal(model.predict(X), in_memory(rows).predict(X))


def test_files_folders_and_patterns_are_the_same_rows(parquet_file, assert_identical, tmp_path):
    rows = frame()
    for number, first in enumerate((0, 50, 100)):
        parquet_file(rows[first : first + 50], f"rows/part{number}.parquet")
    (tmp_path / "rows" / "_SUCCESS").touch()
    files = [tmp_path / "rows" / f"part{number}.parquet" for number in range(3)]
    one = in_memory(rows)
    for given in (tmp_path / "rows", str(tmp_path / "rows" / "part*.parquet"), files):
        assert_identical(one, from_files(given))


def test_a_part_may_lack_a_class_and_an_empty_file_changes_nothing(parquet_file, assert_identical):
    rows = frame().sort_values("label", ignore_index=True)
    ends = [(0, 30), (30, 30), (30, 70), (70, 120)]
    files = [parquet_file(rows[a:b], f"{a} to {b}.parquet") for a, b in ends]
    assert_identical(in_memory(rows, (30, 70)), from_files(files))


def test_empty_row_groups(tmp_path, assert_identical):
    rows = frame()
    whole = pa.Table.from_pandas(rows)
    with pq.ParquetWriter(tmp_path / "a.parquet", whole.schema) as writer:
        for first, last in ((0, 0), (0, 50), (50, 50), (50, 100), (100, 120), (120, 120)):
            writer.write_table(whole[first:last])
    assert_identical(in_memory(rows), from_files(tmp_path / "a.parquet"))


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_weights(weight, class_weight, parquet_file):
    rows = frame()
    path = parquet_file(rows.assign(weight=np.arange(120) % 3))
    settings = {"class_weight": class_weight}
    if weight is None:
        rows["weight"] = np.arange(120) % 3  # without weights, the column is a feature
    one = ShareBoostClassifier(5, pool="stumps", **settings)
    own = None if weight is None else np.arange(120) % 3
    one.fit(rows.drop(columns="label"), rows["label"], sample_weight=own)
    other = from_files(path, weight=weight, **settings)
    assert one.atoms_ == other.atoms_
    np.testing.assert_allclose(one.atom_coef_, other.atom_coef_, rtol=1e-5, atol=1e-8)


N = 120
TYPES = {
    "int8": pa.array(np.arange(N) % 7, pa.int8()),
    "uint64": pa.array(np.arange(N) % 7, pa.uint64()),
    "int with gaps": pa.array([None if i % 9 == 0 else i % 7 for i in range(N)], pa.int32()),
    "float16": pa.array((np.arange(N) % 50).astype(np.float16), pa.float16()),
    "float32": pa.array(np.arange(N) % 50, pa.float32()),
    "bool": pa.array(np.arange(N) % 3 == 0),
    "bool with gaps": pa.array([None, True, False] * (N // 3)),
    "decimal": pa.array([decimal.Decimal(i % 11) / 4 for i in range(N)], pa.decimal128(9, 2)),
    "date": pa.array([datetime.date(2024, 1, 1 + i % 28) for i in range(N)]),
    "timestamp": pa.array(np.arange(N) * 10**6, pa.timestamp("ms")),
    "timestamp with zone": pa.array(np.arange(N) * 10**6, pa.timestamp("us", "UTC")),
    "duration": pa.array(np.arange(N) * 10**6, pa.duration("ms")),
    "large string": pa.array(["x", "y", None] * (N // 3), pa.large_string()),
    "string": pa.array(["x", "y", None] * (N // 3)),
    "dictionary": pa.array(["x", "y", "z"] * (N // 3)).dictionary_encode(),
    "dictionary of large strings": pa.array(
        ["x", "y", None] * (N // 3), pa.large_string()
    ).dictionary_encode(),
    "all missing": pa.nulls(N, pa.float64()),
    "null": pa.nulls(N),
}
VIEWS = hasattr(pa, "string_view")  # older versions of Arrow have none
if VIEWS:
    TYPES["string view"] = pa.array(["x", "y", None] * (N // 3), pa.string_view())


@pytest.mark.parametrize("kind", TYPES)
def test_arrow_types(kind, parquet_file, assert_identical):
    X, y = table()
    rows = pa.table({"value": TYPES[kind], "other": X[:, 0], "label": y})
    one = ShareBoostClassifier(5, pool="stumps")
    one._limits = Limits(cuts=CUTS)
    one.fit(rows.drop_columns("label"), y)
    other = from_files(parquet_file(rows))
    assert_identical(one, other)


@pytest.mark.parametrize("kind", [name for name in ("string_view", "large_string") if VIEWS])
def test_text_of_every_type_gives_the_same_model(kind, parquet_file, assert_identical):
    rows, weight = pa.Table.from_pandas(frame(), preserve_index=False), np.arange(120) % 3
    rows = rows.append_column("weight", pa.array(weight))
    one = from_files(parquet_file(rows), weight="weight")
    for name in ("text", "label"):
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, name, rows.column(name).cast(getattr(pa, kind)()))
    assert_identical(one, from_files(parquet_file(rows, "b.parquet"), weight="weight"))
    rows = ParquetRows([parquet_file(rows)], categories=["text"])
    assert_identical(one, from_files(rows, weight="weight"))


@pytest.mark.parametrize("kind", ["binary", "large_binary", *["binary_view"][: int(VIEWS)]])
def test_bytes_are_refused_as_in_memory(kind, parquet_file):
    values = pa.array([b"x", None, b"y"] * 40, getattr(pa, kind)())
    rows = pa.table({"value": values, "other": np.arange(120.0), "label": np.arange(120) % 2})
    with pytest.raises(ValueError, match="column 'value' of X holds objects of type bytes; turn"):
        ShareBoostClassifier(2, pool="stumps").fit(rows.drop_columns("label"), np.arange(120) % 2)
    told = r"column 'value' of X holds objects of type bytes; turn .* \(in .*\.parquet"
    with pytest.raises(ValueError, match=told):
        from_files(parquet_file(rows))


@pytest.mark.parametrize("labels", [
    pa.array(["a", "b"] * 60).dictionary_encode(), pa.array(["a", "b"] * 60, pa.large_string()),
    pa.array([True, False] * 60), pa.array([3, 4] * 60, pa.int8()),
])  # fmt: skip
def test_types_of_labels(labels, parquet_file):
    rows = pa.table({"value": np.arange(120.0), "label": labels})
    model = from_files(parquet_file(rows))
    assert set(model.classes_) == set(labels.to_pylist())


def test_single_precision_stays(parquet_file, assert_identical):
    X, y = table()
    rows = pd.DataFrame(X.astype(np.float32), columns=list("abcdef")).assign(label=y)
    model = from_files(parquet_file(rows))
    assert_identical(in_memory(rows), model)
    assert list(model.feature_names_in_) == list("abcdef")
    assert model.predict(rows.drop(columns="label")).shape == (120,)


def test_a_first_look_does_not_read_numbers(parquet_file, monkeypatch):
    from laconic.beyond import parquet

    read, asked = parquet.read, []
    monkeypatch.setattr(parquet, "read", lambda *own: asked.append(own[1]) or read(*own))
    rows = parquet.ParquetRows([parquet_file(frame())])
    first = rows.glances("label", None).ask(lambda part, _: part[0])
    assert asked == 3 * [["text", "colour", "day", "flag", "late"]]
    whole = rows.parts("label", None).ask(lambda part, _: part[0])
    for one, other in zip(first, whole, strict=True):
        assert one.schema.names == other.schema.names
        assert one.schema.types == other.schema.types
        assert one.column("text") == other.column("text")


WRONG = {
    "no such label": (
        {"y": "lable"},
        ValueError,
        "y='lable' is not a column of .*did you mean 'label'.*'number'",
    ),
    "labels as array": ({"y": np.zeros(120)}, TypeError, "y must be the name of a column"),
    "no such weight": ({"weight": "w"}, ValueError, "sample_weight='w' is not a column"),
    "labels as weights": ({"weight": "label"}, ValueError, "cannot be both y and sample_weight"),
    "text as weights": ({"weight": "text"}, ValueError, "sample_weight must hold numbers"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name, parquet_file):
    given, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        from_files(parquet_file(frame()), **given)


def test_other_columns_are_refused(parquet_file):
    rows = frame()
    files = [parquet_file(rows), parquet_file(rows.rename(columns={"flag": "flags"}), "b.parquet")]
    told = (
        r"b\.parquet lacks 'flag', which .*rows\.parquet has; .* has 'flags', which .* lacks; give"
    )
    with pytest.raises(ValueError, match=told):
        from_files(files)
    files[1] = parquet_file(rows[list(rows)[::-1]], "b.parquet")
    told = f"in another order: column 0 is {list(rows)[-1]!r}, and not {next(iter(rows))!r}; give"
    with pytest.raises(ValueError, match=told):
        from_files(files)


def test_names_of_many_columns_are_told_in_part(parquet_file):
    rows = pd.DataFrame(np.zeros((4, 40))).rename(columns="x{}".format)
    with pytest.raises(ValueError, match=r"did you mean 'x7'.*'x0', .* more\) .*, 'x39'$"):
        from_files(parquet_file(rows), y="X7")


def test_other_kinds_are_refused(parquet_file):
    rows = frame()
    files = [parquet_file(rows), parquet_file(rows.assign(day="monday"), "b.parquet")]
    with pytest.raises(
        ValueError, match=r"holds dates in .*rows\.parquet.* text in .*b\.parquet.*; give"
    ):
        from_files(files)


@pytest.mark.parametrize("name", ["text", "colour", "day", "flag", "number"])
def test_a_file_in_which_all_values_of_a_column_are_missing(name, parquet_file, assert_identical):
    rows, at = frame(), list(frame()).index(name)
    table = pa.Table.from_pandas(rows[:50], preserve_index=False)
    for none in (pa.nulls(50), pa.nulls(50, table.schema.field(at).type)):
        files = [parquet_file(table.set_column(at, name, none), "a.parquet")]
        files += [parquet_file(rows[50:], "b.parquet")]
        gaps = rows[name].astype(object if name in ("text", "flag") else rows[name].dtype)
        gaps[:50] = None
        assert_identical(from_files(files), in_memory(rows.assign(**{name: gaps}), cuts=(50, 100)))


def test_two_columns_of_one_name(parquet_file):
    rows = frame().rename(columns={"whole": "flag"})
    fields = [pa.array(rows.iloc[:, at]) for at in range(rows.shape[1])]
    with pytest.raises(ValueError, match=r"rows\.parquet has 2 columns 'flag'; give each its own"):
        from_files(parquet_file(pa.table(fields, names=list(rows))))


def test_hidden_files_and_folders_are_no_rows(parquet_file, assert_identical, tmp_path):
    rows = frame()
    one = from_files(parquet_file(rows, "here/a.parquet"))
    for name in (".b.parquet", "_b.parquet", ".old/b.parquet", "_delta_log/b.parquet"):
        parquet_file(rows, f"here/{name}")
    assert_identical(from_files(tmp_path / "here"), one)


def test_missing_labels_are_refused(parquet_file):
    rows = frame()
    rows.loc[70, "label"] = None
    with pytest.raises(ValueError, match="y"):
        from_files(parquet_file(rows))


def test_text_for_columns_names_its_place(parquet_file):
    with pytest.raises(ValueError, match=r"holds text .*\(in .*rows\.parquet from row group 0\)"):
        ShareBoostClassifier(2).fit(parquet_file(frame().drop(columns=["number"])), "label")


def test_a_table_without_features(parquet_file):
    with pytest.raises(ValueError, match="has no column besides y and sample_weight"):
        from_files(parquet_file(frame()[["label"]]))


@pytest.mark.parametrize("number", [1, 2])
def test_an_index_is_no_feature(number, parquet_file, assert_identical):
    """It would tell the model the order of the rows."""
    rows = frame()
    mixed = rows.sample(frac=1.0, random_state=0)
    halves = np.array_split(np.arange(120), number)
    files = [parquet_file(mixed.iloc[at], f"{at[0]}.parquet") for at in halves]
    assert "__index_level_0__" in pq.read_schema(files[0]).names
    model = from_files(files)
    assert list(model.feature_names_in_) == list(rows.columns[:-1])
    cuts = CUTS if number == 1 else (50, 60, 110)
    assert_identical(in_memory(mixed.reset_index(drop=True), cuts), model)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("other", ["text", "day", "colour"])
def test_numbers_beside_other_kinds_are_refused(order, other, parquet_file):
    rows = frame()
    files = [parquet_file(rows), parquet_file(rows.assign(**{other: 0.5}), "b.parquet")]
    with pytest.raises(
        ValueError, match=f"column '{other}' of X holds .*numbers in .*; give it one type"
    ):
        from_files(files[::order])


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("gaps", [np.nan, None])
@pytest.mark.parametrize("column", ["number", "text", "colour", "flag"])
def test_a_column_without_values_fits_any_kind(order, gaps, column, parquet_file):
    rows, empty = frame(), frame().assign(**{column: gaps})
    files = [parquet_file(rows), parquet_file(empty, "b.parquet")]
    model = from_files(files[::order])
    whole = pd.concat([rows, empty.astype({column: rows[column].dtype}, errors="ignore")])
    one = in_memory(whole.astype({column: rows[column].dtype}, errors="ignore"), (60,))
    assert sorted(one.atoms_) == sorted(model.atoms_)
    assert one._categories == model._categories


ZONES = ["UTC", "Europe/Oslo", None]


def zoned(zone, unit="us"):
    """Times of a zone as a column of Arrow."""
    return pa.array(np.arange(60) * 10**9, pa.timestamp("us")).cast(pa.timestamp(unit, zone))


@pytest.mark.parametrize("one", ZONES)
@pytest.mark.parametrize("other", ZONES)
def test_a_column_of_dates_has_one_time_zone(one, other, parquet_file):
    """In memory, such tables cannot be joined."""
    tables = [pa.table({"when": zoned(z), "label": np.arange(60) % 2}) for z in (one, other)]
    files = [parquet_file(table, f"{at}.parquet") for at, table in enumerate(tables)]
    if one == other:
        assert from_files(files).n_atoms_ == 5
        return
    with pytest.raises(pa.ArrowInvalid):
        pa.concat_tables(tables)
    names = " and ".join(sorted(zone or "no time zone" for zone in (one, other)))
    with pytest.raises(ValueError, match=f"column 'when' of X has {names} in different parts of"):
        from_files(files)


def test_zones_of_parts_without_dates_and_other_names_of_a_zone_do_not_matter(parquet_file):
    label = np.arange(60) % 2
    empty = pa.nulls(60, pa.timestamp("us", "Europe/Oslo"))
    columns = [zoned("UTC"), empty, zoned("Etc/UTC"), zoned("+00:00", "ms")]
    files = [
        parquet_file(pa.table({"when": column, "label": label}), f"{at}.parquet")
        for at, column in enumerate(columns)
    ]
    model = from_files(files)
    assert model._units == {0: "days since 1970-01-01"}
    whole = pa.concat_arrays([column.cast(pa.timestamp("us")) for column in columns])
    one = ShareBoostClassifier(5, pool="stumps")
    one._limits = Limits(cuts=[50, 60, 110, 120, 170, 180, 230])
    one.fit(pa.table({"when": whole}), np.tile(label, 4))
    assert one.atoms_ == model.atoms_
