"""What a converted model adds up, and the predictor of it.

Terms about the same question are merged. That makes an ensemble of many stumps compact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from laconic.model.atoms import ColumnsMap, FilledMap, StumpsMap
from laconic.model.conditions import AT_MOST, EQUAL, MISSING
from laconic.model.feature_maps import FeatureMap
from laconic.model.mixed import MixedMap
from laconic.model.predictor import Predictor


class TermSums:
    """Sums of weighted columns, filled columns and questions, with ``n_outputs`` scores."""

    def __init__(self, n_outputs: int) -> None:
        self.constant = np.zeros(n_outputs)
        self._columns: dict[int, np.ndarray] = {}
        self._filled: dict[tuple[int, float], np.ndarray] = {}
        self._questions: dict[tuple[int, int, float], np.ndarray] = {}

    def _add(self, found: dict[Any, np.ndarray], key: Any, weights: np.ndarray) -> None:
        found[key] = found.get(key, np.zeros(len(self.constant))) + weights

    def column(self, feature: int, weights: np.ndarray, fill: float | None = None) -> None:
        """Add weights times a feature, or times ``fill`` if the feature is missing."""
        if fill is None:
            self._add(self._columns, feature, weights)
        else:
            self._add(self._filled, (feature, float(fill)), weights)

    def at_most(self, feature: int, value: float, weights: np.ndarray) -> None:
        """Add weights if a feature is at most a value. With infinity, unless it is missing."""
        if value == np.inf:
            self.constant = self.constant + weights
            self.missing(feature, -weights)
        elif value > -np.inf:
            self._add(self._questions, (feature, AT_MOST, float(value)), weights)

    def equal(self, feature: int, value: float, weights: np.ndarray) -> None:
        """Add weights if a feature equals a value."""
        self._add(self._questions, (feature, EQUAL, float(value)), weights)

    def missing(self, feature: int, weights: np.ndarray) -> None:
        """Add weights if a feature is missing."""
        self._add(self._questions, (feature, MISSING, 0.0), weights)

    def predictor(
        self,
        classes: Any,
        loss: str,
        n_features: int,
        names: Sequence[str] | None,
        words: dict[int, dict[str, int]],
        missing: bool,
    ) -> Predictor:
        """Return the predictor of all terms whose weights are not all zero.

        Without ``missing``, it does not know what to do with missing values.
        """
        if not missing:
            for (feature, _), own in self._filled.items():
                self._add(self._columns, feature, own)
            self._filled = {}
            self._questions = {k: own for k, own in self._questions.items() if k[1] != MISSING}
        columns, filled = _sorted(self._columns), _sorted(self._filled)
        questions = _sorted(self._questions)
        _check_words(words, columns, filled, questions, names)
        maps: list[FeatureMap] = []
        if columns:
            maps.append(ColumnsMap(np.array(list(columns), dtype=np.int64)))
        if filled:
            maps.append(FilledMap(*map(np.array, zip(*filled, strict=True))))
        if questions or not maps:
            feature, test, value = np.array(list(questions)).reshape(-1, 3).T
            maps.append(StumpsMap(feature, value, test))
        weights = [*columns.values(), *filled.values(), *questions.values()]
        return Predictor(
            maps[0] if len(maps) == 1 else MixedMap(maps),
            np.array(weights).reshape(-1, len(self.constant)),
            self.constant,
            _labels(classes),
            loss,
            [1] * len(weights),
            n_features,
            names,
            {f: {code: word for word, code in known.items()} for f, known in words.items()},
        )


def _sorted(found: dict[Any, np.ndarray]) -> dict[Any, np.ndarray]:
    return {key: found[key] for key in sorted(found) if found[key].any()}


def _labels(classes: Any) -> np.ndarray:
    labels = np.asarray(classes)
    if labels.dtype.hasobject and all(isinstance(label, str) for label in labels):
        return labels.astype(np.str_)
    return labels


def _check_words(words: Any, columns: Any, filled: Any, questions: Any, names: Any) -> None:
    """Refuse a model that reads the same feature as words and as numbers."""
    numeric = {*columns, *(f for f, _ in filled), *(f for f, t, _ in questions if t == AT_MOST)}
    for feature in numeric & set(words):
        name = feature if names is None else repr(names[feature])
        raise ValueError(
            f"the model reads column {name} both as categories and as numbers; give it two columns"
        )
