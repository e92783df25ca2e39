"""Parts of a frame agree on what its columns hold, in any order of the parts."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from laconic.data.kinds import frame_kinds, kinds_of, part_facts

PARTS = {
    "text": pd.Series(["u", "v", "u"]),
    "dates": pd.Series(pd.to_datetime(["2024-01-01", "2024-03-01", None])),
    "durations": pd.Series(pd.to_timedelta([1, 2, 3], unit="h")),
    "floats": pd.Series([0.5, 1.0, np.nan]),
    "ints": pd.Series([1, 2, 3]),
    "truth values": pd.Series([True, False, True]),
    "numbers as objects": pd.Series([True, None, 3], dtype=object),
    "nullable": pd.Series([1, None, 3], dtype="Int64"),
    "categories": pd.Series(["u", "v", "u"], dtype="category"),
}
ALIKE = (
    {"floats", "ints", "truth values", "numbers as objects", "nullable"},
    {"text", "categories", "numbers as objects"},
)
MISSING = {
    "NaN": pd.Series([np.nan] * 3),
    "None": pd.Series([None] * 3, dtype=object),
    "no categories": pd.Series([None] * 3, dtype="category"),
}


def kinds_in_parts(*columns):
    frames = [pd.DataFrame({"x": column, "y": np.arange(3.0)}) for column in columns]
    return kinds_of([part_facts(frame, np.ones(3)) for frame in frames])


@pytest.mark.parametrize("one", PARTS)
@pytest.mark.parametrize("other", PARTS)
def test_the_order_of_the_parts_does_not_matter(one, other):
    def told(*names):
        try:
            return kinds_in_parts(*(PARTS[name] for name in names))
        except ValueError as error:
            return str(error)

    found = told(one, other)
    assert found == told(other, one)
    alike = one == other or any({one, other} <= kinds for kinds in ALIKE)
    assert isinstance(found, tuple) == alike
    if not alike:
        assert "column 'x' of X holds " in found
    elif one != other:
        whole = pd.concat([PARTS[one], PARTS[other]], ignore_index=True)
        assert found == frame_kinds(pd.DataFrame({"x": whole, "y": 0.0}))


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("missing", MISSING)
def test_a_part_without_values_fits_any_kind(name, missing):
    alone = kinds_in_parts(PARTS[name])
    for parts in permutations([PARTS[name], MISSING[missing], PARTS[name]]):
        assert kinds_in_parts(*parts) == alone
    assert kinds_in_parts(MISSING[missing], MISSING[missing]) == ({}, {})


def test_sparse_columns_are_numbers():
    sparse = pd.Series(pd.arrays.SparseArray([0.0, 1.0, 0.0]))
    assert kinds_in_parts(sparse, PARTS["floats"]) == ({}, {})
    with pytest.raises(ValueError, match="numbers and text"):
        kinds_in_parts(sparse, PARTS["text"])


@pytest.mark.parametrize("name", MISSING)
def test_arrow_tables_without_values(name):
    pa = pytest.importorskip("pyarrow")
    table = pa.Table.from_pandas(pd.DataFrame({"x": MISSING[name]}))
    text = pa.table({"x": ["u", "v", "u"]})
    found = kinds_of([part_facts(rows, np.ones(3)) for rows in (table, text)])
    assert found == kinds_of([part_facts(text, np.ones(3))])
