"""`RoutedPredictor`: every row is predicted by the model of its region, eq. (6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from laconic.holes.local_models import predicted_labels
from laconic.holes.model_scores import class_probabilities, class_scores, flat_model, link_of
from laconic.holes.state import Hole
from laconic.model.distances import inside_balls
from laconic.model.predictor import Predictor
from laconic.model.regions import RegionsMap
from laconic.model.route import newest_hole
from laconic.numeric.magnitudes import check_squares
from laconic.numeric.once import once


class RoutedPredictor:
    """One predictor made of a classifier outside and one in every hole, of any class.

    It has the methods of `Predictor` for rows of numbers: ``encoded_scores``, ``encoded_labels``,
    ``encoded_probabilities`` and ``has_probabilities``. Every row goes to the model that decides
    it. A model that can be written as flat arrays answers through these arrays. If all models can,
    `flat` joins their arrays.

    Parameters
    ----------
    base : classifier
        The fitted classifier outside the holes.
    holes : sequence of Hole
        Oldest first.
    classes : ndarray of shape (n_classes,)
    share : ndarray of shape (n_holes + 1,)
        Part of the training rows that each region decides.
    n_features : int
    feature_names : sequence of str, optional
    units : mapping of int to str, optional
        As for `Predictor`.
    """

    def __init__(
        self,
        base: Any,
        holes: Sequence[Hole],
        classes: np.ndarray,
        share: np.ndarray,
        n_features: int,
        feature_names: Sequence[str] | None = None,
        units: Mapping[int, str] | None = None,
    ) -> None:
        self.models = [base, *(hole.model for hole in holes)]
        self.holes = list(holes)
        self.classes = classes
        self.share = share
        self.n_features = n_features
        self.feature_names = feature_names
        self.units = units
        centre = np.array([hole.centre for hole in holes])
        self.centre = centre.reshape(len(self.holes), n_features)
        self.radius = np.array([hole.radius for hole in holes])

    # -- answers -------------------------------------------------------------------------------

    def encoded_labels(self, X: Any) -> np.ndarray:
        """Return labels by the newest hole that contains a row, or by the classifier outside."""
        out = np.empty(X.shape[0], dtype=self.classes.dtype)
        for number, rows in self._routes(X):
            out[rows] = self._labels(number, X[rows])
        return out

    def staged_labels(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the labels with 0, 1, 2, … holes.

        A new hole changes only the labels of the rows inside it. So every model is asked once.
        """
        check_squares(X, np.dtype(np.float64))
        inside = inside_balls(X, self.centre, self.radius)
        out = self._labels(0, X)
        yield out.copy()
        for number, hole in enumerate(inside.T, start=1):
            rows = np.flatnonzero(hole)
            if len(rows):
                out[rows] = self._labels(number, X[rows])
            yield out.copy()

    def _labels(self, number: int, X: Any) -> np.ndarray:
        """Return the labels that a model gives to some rows."""
        flat = self._flat[number]
        if isinstance(flat, Predictor):
            return flat.encoded_labels(X)
        return predicted_labels(self.models[number], X, self.classes.dtype)

    def encoded_scores(self, X: Any) -> np.ndarray:
        """Return the scores of all classes. The model that decides a row gives its scores."""
        out = np.empty((X.shape[0], len(self.classes)))
        for number, rows in self._routes(X):
            flat, some = self._flat[number], X[rows]
            out[rows] = (
                flat.encoded_scores(some)
                if isinstance(flat, Predictor)
                else class_scores(self.models[number], some, self.classes)
            )
        return out

    def encoded_probabilities(self, X: Any) -> np.ndarray:
        """Return class probabilities by the model that decides each row.

        Models of different kinds turn scores into probabilities in different ways. Flat arrays do
        not hold these ways. Each model then computes its own probabilities.
        """
        if isinstance(self._written, Predictor) and self._written.has_probabilities:
            return self._written.encoded_probabilities(X)
        out = np.empty((X.shape[0], len(self.classes)))
        for number, rows in self._routes(X):
            out[rows] = class_probabilities(self.models[number], X[rows], self.classes)
        return out

    @property
    def has_probabilities(self) -> bool:
        """Whether every model has probabilities."""
        return all(hasattr(model, "predict_proba") for model in self.models)

    def region(self, X: Any) -> np.ndarray:
        """Return the region of every row; see `newest_hole`."""
        check_squares(X, np.dtype(np.float64))
        return newest_hole(X, self.centre, self.radius)

    def _routes(self, X: Any) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the number of every model that decides any rows, with the numbers of these rows."""
        region = self.region(X)
        for number in range(len(self.models)):
            rows = np.flatnonzero(region == number)
            if len(rows):
                yield number, rows

    # -- flat arrays ---------------------------------------------------------------------------

    def flat(self) -> Predictor:
        """Return flat arrays that predict the same.

        It raises an `AttributeError` if a model cannot be written as flat arrays.
        """
        if isinstance(self._written, str):
            raise AttributeError(f"there is no predictor_: {self._written}")
        return self._written

    @once
    def _flat(self) -> list[Predictor | str]:
        """Each model as flat arrays, or a text that says why that is not possible."""
        found: list[Predictor | str] = []
        link = link_of(self.models)
        for model in self.models:
            try:
                found.append(flat_model(model, self.classes, self.n_features, link))
            except (TypeError, ValueError) as error:
                found.append(str(error))
        return found

    @once
    def _written(self) -> Predictor | str:
        """All models as flat arrays, or a text that says why that is not possible."""
        parts = [part for part in self._flat if isinstance(part, Predictor)]
        if len(parts) < len(self._flat):
            return next(why for why in self._flat if isinstance(why, str))
        rows = np.array([hole.row for hole in self.holes], dtype=np.int64)
        try:
            map = RegionsMap([p.map for p in parts], self.centre, self.radius, self.share, rows)
            return Predictor(
                map,
                np.vstack([np.vstack([part.weights, part.intercept]) for part in parts]),
                np.zeros(len(self.classes)),
                self.classes,
                parts[0].loss,
                map.widths,
                self.n_features,
                self.feature_names,
                units=self.units,
            )
        except ValueError as error:
            return str(error)
