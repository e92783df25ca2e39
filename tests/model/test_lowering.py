"""What a map computes, reads and costs is what its primitives say."""

import copy
import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from naive_primitives import naive
from scipy import sparse
from sklearn.tree import DecisionTreeClassifier

from laconic import Predictor, TotalQBoostClassifier
from laconic.model.atoms import ColumnsMap, FilledMap, ProductsMap, StumpsMap
from laconic.model.feature_maps import map_scores
from laconic.model.hinges import Hinge
from laconic.model.lowering import LoweredMap, lowered
from laconic.model.mixed import MixedMap
from laconic.model.patches import PatchesMap
from laconic.model.pieces import PiecesMap
from laconic.model.primitives import Gather, Multiply
from laconic.model.regions import AllColumns, RegionsMap

D = 6


def rows(n=40, seed=0):
    return np.random.default_rng(seed).integers(-3, 4, (n, D)).astype(float)


def pieces(soft=False):
    rng = np.random.default_rng(1)
    centre = rng.integers(-2, 3, (2, D))[[0, 1, 0]].astype(float)
    return PiecesMap(centre, [3.0, 4.0, 5.0], centre + 1, soft, [0.2, 0.5, 0.9], [3, 1, 3])


def patches():
    values = np.random.default_rng(2).standard_normal(4 + 1)
    centre = [[0.5, 0.5], [1.0, 2.0], [0.0, 1.0], [0.0, 1.0], [0.5, 0.5]]
    sigma = [0.6, 0.5, np.inf, 2.0, 0.3]
    return PatchesMap([2, 3], [7, 3], [2, 1], values, [0, 1, 1, 0, 0], centre, sigma)


def regions(*parts):
    centre = np.random.default_rng(3).integers(-2, 3, (len(parts) - 1, D)).astype(float)
    share = np.arange(1, len(parts) + 1) / sum(range(len(parts) + 1))
    return RegionsMap(parts, centre, [5.0, 4.0][: len(centre)], share, np.arange(len(centre)))


MAPS = {
    "columns": ColumnsMap([4, 1, 1]),
    "no columns": ColumnsMap([]),
    "products": ProductsMap([0, 2, 2], [1, 5, 2]),
    "stumps": StumpsMap([3, 0, 3, 5], [1.0, 2.0, -1.0, 0.0], [0, 1, 1, 2]),
    "filled": FilledMap([2, 0], [1.5, -1.0]),
    "mixed": MixedMap([ColumnsMap([3]), StumpsMap([3], [0.0], [0]), FilledMap([1], [2.0])]),
    "mixed regions": MixedMap([ColumnsMap([1]), regions(ColumnsMap([3]), AllColumns(D))]),
    "pieces": pieces(),
    "soft pieces": pieces(soft=True),
    "no pieces": PiecesMap(np.empty((0, D)), [], np.zeros((1, D)), True, [], []),
    "patches": patches(),
    "all": AllColumns(D),
    "regions": regions(AllColumns(D), ColumnsMap([2]), StumpsMap([0, 1], [0.0, 1.0], [0, 1])),
    "no holes": regions(ColumnsMap([3, 2])),
    "regions in regions": regions(pieces(), regions(AllColumns(D), ProductsMap([0], [1]))),
}
STORAGES = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "CSR": sparse.csr_matrix,
}


# -- one list --------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("kind", MAPS)
def test_columns_and_scores_are_those_of_the_primitives(kind, storage):
    map, X = MAPS[kind], STORAGES[storage](rows())
    expected = naive(lowered(map), X)
    assert map.n_columns == len(map.names()) == expected.shape[1]
    np.testing.assert_allclose(map.columns(X), expected, rtol=1e-5, atol=1e-6)
    weights = np.random.default_rng(4).standard_normal((map.n_columns, 3))
    for some in (X, X[:1]):
        found = map_scores(map, some, weights)
        np.testing.assert_allclose(found, expected[: some.shape[0]] @ weights, rtol=1e-5, atol=1e-5)


def old_patch_operations(map):
    """The pixels of a template wherever a mask of it is not zero, and every mask."""
    total = sum(int((atom.mask() > 0).sum()) for atom in map.atoms())
    for t, size in enumerate(map.size):
        of = [atom for atom, own in zip(map.atoms(), map.template, strict=True) if own == t]
        total += int(np.any([atom.mask() > 0 for atom in of], axis=0).sum()) * int(size) ** 2
    return total


def old_features(map):
    if isinstance(map, MixedMap):
        return sorted({feature for part in map.parts for feature in old_features(part)})
    if isinstance(map, RegionsMap):
        return list(range(D)) if len(map.radius) else old_features(map.parts[0])
    if isinstance(map, ProductsMap):
        return sorted({*map.first.tolist(), *map.second.tolist()})
    if isinstance(map, PatchesMap):
        return sorted({pixel for atom in map.atoms() for pixel in atom.reads})
    if isinstance(map, PiecesMap):
        return list(range(D)) if len(map) else []
    return list(range(D)) if isinstance(map, AllColumns) else sorted(set(map.feature.tolist()))


def old_operations(map):
    if isinstance(map, MixedMap):
        return sum(old_operations(part) for part in map.parts)
    if isinstance(map, RegionsMap):
        inside = sum(s * old_operations(p) for s, p in zip(map.share, map.parts, strict=True))
        return map.centre.size + len(map.radius) + round(inside)
    if isinstance(map, PiecesMap):
        return len({tuple(c) for c in map.centre.tolist()}) * D + len(map)
    if isinstance(map, PatchesMap):
        return old_patch_operations(map)
    if isinstance(map, FilledMap | StumpsMap):
        return len(map.feature)
    counts = {ProductsMap: lambda: len(map.first)}
    return counts.get(type(map), lambda: 0)()


def old_score_operations(map, n_outputs):
    if isinstance(map, MixedMap):
        return sum(old_score_operations(part, n_outputs) for part in map.parts)
    if isinstance(map, RegionsMap):
        widths = [len(part.names()) for part in map.parts]
        inside = sum(s * w for s, w in zip(map.share, widths, strict=True)) * n_outputs
    elif isinstance(map, PiecesMap):
        inside = sum(map.share) * D * n_outputs
    else:
        inside = len(map.names()) * n_outputs
    return old_operations(map) + round(inside)


@pytest.mark.parametrize("kind", MAPS)
def test_features_and_operations_are_counted_as_ever(kind):
    map = MAPS[kind]
    assert map.features().tolist() == old_features(map)
    assert map.operations() == old_operations(map)
    for n_outputs in (1, 3, 10):
        assert map.score_operations(n_outputs) == old_score_operations(map, n_outputs)
    n = map.n_columns
    found = Predictor(map, np.ones((n, 3)), np.zeros(3), np.arange(3), "log", [n] * (n > 0), D)
    assert found.cost().operations == old_score_operations(map, 3)
    assert found.cost().features == len(old_features(map))


# -- maps do not change ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MAPS)
def test_primitives_are_made_once_and_share_the_arrays_of_the_map(kind):
    map = MAPS[kind]
    made = map.lower()
    assert all(one is other for one, other in zip(made, map.lower(), strict=True))
    for part in map.parts if isinstance(map, MixedMap) else [map]:
        [one] = part.lower()
        assert any(one is other for other in made)
        for name, array in part.arrays().items():
            if hasattr(one, name) and isinstance(array, np.ndarray) and array.ndim:
                assert getattr(one, name) is getattr(part, name)
    map.lower().clear()
    assert map.lower() == made


@pytest.mark.parametrize("kind", MAPS)
def test_copies_pickles_and_threads_give_the_same(kind):
    map, X = MAPS[kind], rows()
    expected = map.columns(X)
    for other in (copy.copy(map), copy.deepcopy(map), pickle.loads(pickle.dumps(map))):
        np.testing.assert_array_equal(other.columns(X), expected)
        assert other.operations() == map.operations()
    fresh = pickle.loads(pickle.dumps(map))
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: fresh.columns(X), range(8)):
            np.testing.assert_array_equal(found, expected)


def test_all_columns_of_two_billion_features_are_not_listed():
    tracemalloc.start()
    [gather] = AllColumns(2**31 - 1).lower()
    assert gather.n_columns == 2**31 - 1
    assert tracemalloc.get_traced_memory()[1] < 1e6
    tracemalloc.stop()


# -- maps of one's own -----------------------------------------------------------------------------


class Squares(ColumnsMap):
    def columns(self, X):
        return super().columns(X) ** 2


class Twice:
    def columns(self, X):
        return 2.0 * super().columns(X)


class TwiceColumns(Twice, ColumnsMap):
    """A mixin computes the columns."""


class Child(Squares):
    """Inherits columns that no primitive says."""


class FewerScores(ColumnsMap):
    def scores(self, X, weights):
        return np.zeros((len(X), weights.shape[1]))


class WithOwnList(Squares):
    """Now the primitives say what the columns are."""

    def lower(self):
        return [Multiply(self.feature, self.feature)]


class Shapes(LoweredMap):
    """Two hinges and two columns. Everything but the names comes from the primitives."""

    def lower(self):
        return [Hinge([1, 1], [0, 2], [1.0, -1.0], [1.0, 1.0]), Gather([5, 2])]

    def names(self, feature_names=None, categories=None):
        return ["a", "b", "c", "d"]


@pytest.mark.parametrize("kind", [Squares, TwiceColumns, Child])
def test_columns_of_a_subclass_are_its_own(kind):
    map, X = kind([4, 1]), rows()
    expected = 2.0 * X[:, [4, 1]] if kind is TwiceColumns else X[:, [4, 1]] ** 2
    np.testing.assert_array_equal(map.columns(X), expected)
    weights = np.array([[1.0, -1.0, 0.5], [3.0, 0.0, 2.0]])
    for some in (X, sparse.csr_matrix(X)):
        np.testing.assert_allclose(map_scores(map, some, weights), expected @ weights)
    assert map.features().tolist() == [1, 4]
    assert (map.operations(), map.score_operations(3), map.n_columns) == (0, 6, 2)


@pytest.mark.parametrize("kind", [Squares, TwiceColumns, Child, FewerScores])
def test_a_subclass_that_computes_its_own_is_not_lowered(kind):
    message = f"{kind.__name__} has no method lower.. .* give {kind.__name__} a lower"
    with pytest.raises(TypeError, match=message):
        lowered(kind([0]))
    with pytest.raises(TypeError, match=message):
        kind([0]).lower()
    inside = regions(AllColumns(D), regions(kind([0])))
    with pytest.raises(TypeError, match=message):
        lowered(inside)


def test_a_subclass_with_its_own_list_is_lowered():
    map = WithOwnList([4, 1])
    np.testing.assert_array_equal(naive(lowered(map), rows()), map.columns(rows()))
    assert map.operations() == 2
    weights = np.array([[1.0], [2.0]])
    np.testing.assert_array_equal(map.scores(rows(), weights), map.columns(rows()) @ weights)

    class Grandchild(WithOwnList):
        pass

    np.testing.assert_array_equal(Grandchild([4, 1]).columns(rows()), map.columns(rows()))


def test_a_class_does_not_say_twice_what_its_columns_are():
    with pytest.raises(TypeError, match=r"Both has lower\(\) and also columns\(\) or scores"):

        class Both(ColumnsMap):
            def lower(self):
                return [Multiply(self.feature, self.feature)]

            def columns(self, X):
                return super().columns(X) ** 2


def test_regions_of_maps_without_primitives_predict():
    X, own = rows(), Squares([4, 1])
    found, plain = (regions(ColumnsMap([0]), part) for part in (own, WithOwnList([4, 1])))
    np.testing.assert_array_equal(found.columns(X), plain.columns(X))
    weights = np.random.default_rng(5).standard_normal((5, 3))
    np.testing.assert_allclose(found.scores(X, weights), plain.scores(X, weights), rtol=1e-12)
    assert (found.features() == plain.features()).all()
    assert found.widths == plain.widths == [2, 3]


def test_a_map_of_primitives_alone_predicts_and_knows_its_cost():
    map, X = Shapes(), rows()
    expected = naive(lowered(map), X)
    np.testing.assert_array_equal(map.columns(X), expected)
    weights = np.random.default_rng(6).standard_normal((4, 3))
    made = Predictor(map, weights, np.zeros(3), np.arange(3), "log", [1] * 4, D)
    np.testing.assert_allclose(made.scores(X), expected @ weights, atol=1e-12)
    cost = made.cost()
    assert (cost.features, cost.operations) == (3, 2 * 2 + 4 * 3)
    assert cost.bytes == 8 * (4 * 3 + 3) + 8 * (2 * 4 + 2)
    assert "4 atoms" in repr(made)


def test_other_operations_of_a_subclass_count():
    class Dear(ColumnsMap):
        def operations(self):
            return 100

    assert lowered(Dear([0]))[0].operations() == 0
    assert Dear([0, 1]).score_operations(3) == 100 + 2 * 3


def test_a_map_without_lower_is_named():
    class Nothing(LoweredMap):
        def names(self, feature_names=None, categories=None):
            return ["x"]

    for ask in (Nothing().lower, lambda: Nothing().columns(rows()), lambda: lowered(Nothing())):
        with pytest.raises(TypeError, match="Nothing has no method lower"):
            ask()


def test_an_ensemble_of_classifiers_is_not_lowered():
    X, y = rows(80), rows(80)[:, 0] > 0
    model = TotalQBoostClassifier(2, pool=DecisionTreeClassifier(max_depth=1)).fit(X, y)
    with pytest.raises(TypeError, match="scikit-learn classifiers cannot be exported"):
        lowered(model.predictor_.map)
