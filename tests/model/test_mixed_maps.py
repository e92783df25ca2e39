"""Maps of several maps: columns in order, bounded nesting, and checked files."""

import numpy as np
import pytest

from laconic import Predictor
from laconic.model.atoms import ColumnsMap, FilledMap, StumpsMap
from laconic.model.feature_maps import feature_map
from laconic.model.mixed import MixedMap
from laconic.model.nested import DEEPEST

X = np.array([[1.0, 2.0, np.nan], [3.0, 4.0, 5.0]])


def mixed():
    return MixedMap([ColumnsMap([1]), FilledMap([2], [7.0]), StumpsMap([0, 2], [2.0, 1.0], [0, 1])])


def test_columns_follow_each_other():
    assert mixed().columns(X).tolist() == [[2.0, 7.0, 1.0, 0.0], [4.0, 5.0, 0.0, 0.0]]
    assert mixed().names() == ["x1", "x2 (missing: 7)", "x0 <= 2", "x2 = 1"]
    assert mixed().asked() == {2: {1}}
    assert mixed().allows_missing
    assert not MixedMap(mixed().parts[:1]).allows_missing


def test_only_columns_without_a_fill_refuse_missing_values():
    predictor = Predictor(mixed(), np.eye(4)[:, :3], np.zeros(3), np.arange(3), "log", [1] * 4, 3)
    small = predictor.quantise(X, bits=16)
    lost = np.array([[np.nan, 2.0, np.nan], [1.0, np.nan, 1.0]])
    for model in (predictor, small):
        assert model.scores(lost[:1]).shape == (1, 3)
        with pytest.raises(ValueError, match="missing or infinite values in features that"):
            model.scores(lost)


def test_arrays_and_back():
    for map in (mixed(), MixedMap([mixed(), ColumnsMap([0])]), MixedMap([])):
        again = feature_map("mixed", map.arrays(), 3)
        assert np.array_equal(again.columns(X), map.columns(X), equal_nan=True)


def test_arrays_that_do_not_fit_are_refused():
    arrays = mixed().arrays()
    with pytest.raises(ValueError, match="arrays of mixed atoms that it does not list"):
        feature_map("mixed", arrays | {"part3_feature": np.zeros(1, int)}, 3)
    with pytest.raises(ValueError, match="outside 0 to 1"):
        feature_map("mixed", arrays, 2)
    with pytest.raises(ValueError, match="unknown kind"):
        feature_map("mixed", arrays | {"kinds": np.array(["columns", "filled", "spline"])}, 3)


def test_nesting_is_bounded():
    map = ColumnsMap([0])
    for _ in range(DEEPEST):
        map = MixedMap([map])
    assert map.columns(X).shape == (2, 1)
    with pytest.raises(ValueError, match="more than 8 deep"):
        MixedMap([map])
    arrays = {}
    for level in range(700):
        arrays |= {f"{level * 'part0_'}kinds": np.array(["mixed"])}
        arrays |= {f"{level * 'part0_'}part": np.zeros(1, int)}
    with pytest.raises(ValueError, match="more than 8 deep"):
        feature_map("mixed", arrays, 3)
