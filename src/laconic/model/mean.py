"""The mean of several predictors: one predictor, in which atoms that are alike are one atom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from laconic.model.feature_maps import FeatureMap, map_width
from laconic.model.mixed import MixedMap
from laconic.model.predictor import Predictor


def mean_predictor(predictors: Sequence[Predictor]) -> Predictor:
    """Return the predictor whose scores are the mean of the scores of all predictors.

    The predictors have the same classes, features and loss. Their atoms are columns, products,
    stumps or rules, alone or mixed. An atom that several of them have is written once, with the
    mean of its weights.
    """
    first, n = predictors[0], len(predictors)
    kinds: dict[str, _Kind] = {}
    for predictor in predictors:
        for map, columns in _flat(predictor.map):
            kinds.setdefault(map.kind, _Kind(map)).add(map, predictor.weights[columns] / n)
    maps = [kind.map() for kind in kinds.values()]
    weights = [np.reshape(kind.weights, (-1, first.weights.shape[1])) for kind in kinds.values()]
    joined = np.concatenate(weights)
    return Predictor(
        maps[0] if len(maps) == 1 else MixedMap(maps),
        joined,
        np.mean([predictor.intercept for predictor in predictors], axis=0),
        first.classes,
        first.link,
        [1] * len(joined),
        first.n_features,
        first.feature_names,
        _all_categories(predictors),
        first.other,
        first.units,
        _class_factors(predictors),
    )


class _Kind:
    """Different atoms of one kind in the order in which they are met, with their weights."""

    def __init__(self, map: FeatureMap) -> None:
        layout = getattr(map, "layout", {})
        if not layout or any(array.shape != ("columns",) for array in layout.values()):
            raise TypeError(
                f"models of {map.kind} have no mean; columns, products, stumps and rules have one"
            )
        self.type, self.names = type(map), list(layout)
        self.places: dict[bytes, int] = {}
        self.atoms: list[tuple[Any, ...]] = []
        self.weights: list[np.ndarray] = []

    def add(self, map: Any, weights: np.ndarray) -> None:
        """Add the atoms of a map. An atom that is known already gets more weight."""
        arrays = map.arrays()
        lines = zip(*(arrays[name] for name in self.names), strict=True)
        # Zero is added, so that thresholds 0.0 and -0.0 have the same bytes.
        keys = np.column_stack([arrays[name].astype(np.float64) for name in self.names]) + 0.0
        for key, atom, weight in zip(keys, lines, weights, strict=True):
            place = self.places.setdefault(key.tobytes(), len(self.atoms))
            if place == len(self.atoms):
                self.atoms.append(atom)
                self.weights.append(weight)
            else:
                self.weights[place] = self.weights[place] + weight

    def map(self) -> Any:
        """Return the map of all atoms."""
        columns = list(zip(*self.atoms, strict=True)) or [()] * len(self.names)
        return self.type(*(np.array(column) for column in columns))


def _flat(map: Any) -> list[tuple[Any, np.ndarray]]:
    """Return the maps of a model, with the numbers of their columns."""
    if not isinstance(map, MixedMap):
        return [(map, np.arange(map_width(map)))]
    return [(part, map.of_part(number)) for number, part in enumerate(map.parts)]


def _all_categories(predictors: Sequence[Predictor]) -> dict[int, dict[int, str]]:
    """Return the categories that any of the predictors asks about."""
    found: dict[int, dict[int, str]] = {}
    for predictor in predictors:
        for feature, words in predictor.categories.items():
            found.setdefault(feature, {}).update(words)
    return found


def _class_factors(predictors: Sequence[Predictor]) -> list[float] | None:
    """Return the factors of the classes. Scores are averaged, so factors have a geometric mean."""
    factors = [p.class_factors for p in predictors if p.class_factors is not None]
    if len(factors) < len(predictors):
        return None
    mean = np.exp(np.mean(np.log(factors), axis=0))
    return (mean / mean.max()).tolist()
