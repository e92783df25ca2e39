"""A pool of one's own, whose feature map is nothing but primitives."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse

from laconic import HolePunchingClassifier, ShareBoostClassifier, TotalQBoostClassifier
from laconic.model.hinges import Hinge
from laconic.model.lowering import LoweredMap, columns_of, lowered
from laconic.model.primitives import LookUp
from laconic.pools import BoundPool

KNOTS = np.array([-0.5, 0.0, 0.5])
TABLE = np.array([3.0, -1.0, 0.0, 2.0])


class Bend(NamedTuple):
    """A hinge of a feature."""

    feature: int
    knot: float
    sign: int
    width: int = 1

    @property
    def reads(self):
        return (self.feature,)

    def primitive(self):
        return Hinge([1], [self.feature], [self.sign], [self.sign * self.knot])


class Table(NamedTuple):
    """A number for each of the four categories of a feature."""

    feature: int
    width: int = 1

    @property
    def reads(self):
        return (self.feature,)

    def primitive(self):
        return LookUp([self.feature], [TABLE])


class ShapesMap(LoweredMap):
    kind = "shapes"

    def __init__(self, atoms):
        self.atoms = atoms

    def lower(self):
        return [atom.primitive() for atom in self.atoms]

    def names(self, feature_names=None, categories=None):
        return [str(tuple(atom)) for atom in self.atoms]


class BoundShapes(BoundPool):
    def __init__(self, X, atoms):
        self._atoms = atoms
        self._X = columns_of(ShapesMap(atoms).lower(), X)
        self.n_atoms = self.n_columns = len(atoms)
        self.dtype = self._X.dtype

    def gradients(self, residual):
        yield 0, (self._X.T @ residual).astype(np.float64)

    def squares(self, weight):
        return weight @ np.square(self._X)

    def columns(self, atoms):
        return self._X[:, list(atoms)]

    def scales(self, atoms):
        return np.ones(len(atoms))

    def atom(self, index):
        return self._atoms[index]

    def index(self, atom):
        return self._atoms.index(atom)

    def matching(self, item):
        return np.array([self.index(item)])

    def extract(self, atoms):
        return ShapesMap([self._atoms[a] for a in atoms])

    def costs(self, feature_costs):
        return np.array([feature_costs[atom.feature] for atom in self._atoms])


class Shapes:
    """Hinges of all features but the last, which holds categories."""

    def bind(self, X, weight, threads):
        last = X.shape[1] - 1
        bends = [Bend(f, k, s) for f in range(last) for k in KNOTS.tolist() for s in (-1, 1)]
        return BoundShapes(X, [*bends, Table(last)])


@pytest.fixture(scope="module")
def data():
    """The label depends on |x1| and on the category."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1, 1, (400, 3)), rng.integers(0, 4, 400)])
    return X, (2.0 * np.abs(X[:, 1]) + TABLE[X[:, 3].astype(int)] > 1.5).astype(int)


@pytest.mark.parametrize("kind", [ShareBoostClassifier, TotalQBoostClassifier])
def test_a_model_of_hinges_and_tables(kind, data):
    X, y = data
    model = kind(6, pool=Shapes()).fit(X, y)
    assert model.score(X, y) > 0.97
    assert Table(3) in model.atoms_
    assert {type(primitive) for primitive in lowered(model.predictor_.map)} == {Hinge, LookUp}
    columns = model.transform(X)
    for atom, column in zip(model.atoms_, columns.T, strict=True):
        by_hand = [
            TABLE[int(v)] if isinstance(atom, Table) else max(0.0, atom.sign * (v - atom.knot))
            for v in X[:, atom.feature]
        ]
        np.testing.assert_allclose(column, by_hand)
    expected = columns @ model.predictor_.weights + model.predictor_.intercept
    for rows in (X, sparse.csr_matrix(X)):
        np.testing.assert_allclose(model.predictor_.scores(rows), expected, atol=1e-9)
    bends = sum(isinstance(atom, Bend) for atom in model.atoms_)
    cost = model.predictor_.cost()
    assert cost.operations == 2 * bends + 1 + model.predictor_.weights.size
    assert cost.features == len({atom.feature for atom in model.atoms_})


def test_holes_of_such_models_lower_too(data):
    X, y = data
    base = ShareBoostClassifier(1, pool=Shapes())
    model = HolePunchingClassifier(base, max_holes=2, min_rows=10).fit(X, y)
    [route] = lowered(model.predictor_.map)
    assert {Hinge, LookUp} & {type(inner) for inner in route.every()}
    np.testing.assert_array_equal(model.predictor_.predict(X), model.predict(X))
