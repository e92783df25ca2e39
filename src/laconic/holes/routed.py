"""`RoutedPredictor`: every row is predicted by the model of its region, eq. (6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from laconic.holes.local_models import predicted_labels
from laconic.holes.model_scores import class_probabilities, class_scores, flat_parts, link_of
from laconic.holes.state import Hole
from laconic.model.predictor import Predictor
from laconic.model.regions import RegionsMap, newest_hole
from laconic.numeric.magnitudes import check_squares
from laconic.numeric.once import once


class RoutedPredictor:
    """One predictor made of a classifier outside and one in every hole, of any class.

    It has the methods of `Predictor` for rows of numbers: ``encoded_scores``, ``encoded_labels``,
    ``encoded_probabilities`` and ``has_probabilities``. If all models can be written as flat
    arrays, `flat` predicts. Otherwise every row goes to the model that decides it.

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
        if isinstance(self._written, Predictor):
            return self._written.encoded_labels(X)
        out = np.empty(X.shape[0], dtype=self.classes.dtype)
        for model, rows in self._routes(X):
            out[rows] = predicted_labels(model, X[rows], out.dtype)
        return out

    def encoded_scores(self, X: Any) -> np.ndarray:
        """Return the scores of all classes. The model that decides a row gives its scores."""
        if isinstance(self._written, Predictor):
            return self._written.encoded_scores(X)
        out, link = np.empty((X.shape[0], len(self.classes))), link_of(self.models)
        for model, rows in self._routes(X):
            out[rows] = class_scores(model, X[rows], self.classes, link)
        return out

    def encoded_probabilities(self, X: Any) -> np.ndarray:
        """Return class probabilities by the model that decides each row.

        Models of different kinds turn scores into probabilities in different ways. Flat arrays do
        not hold these ways. Each model then computes its own probabilities.
        """
        if isinstance(self._written, Predictor) and self._written.has_probabilities:
            return self._written.encoded_probabilities(X)
        out = np.empty((X.shape[0], len(self.classes)))
        for model, rows in self._routes(X):
            out[rows] = class_probabilities(model, X[rows], self.classes)
        return out

    @property
    def has_probabilities(self) -> bool:
        """Whether every model has probabilities."""
        return all(hasattr(model, "predict_proba") for model in self.models)

    def region(self, X: Any) -> np.ndarray:
        """Return the region of every row; see `newest_hole`."""
        check_squares(X, np.dtype(np.float64))
        return newest_hole(X, self.centre, self.radius)

    def _routes(self, X: Any) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield every model that decides any rows, with the numbers of these rows."""
        region = self.region(X)
        for number, model in enumerate(self.models):
            rows = np.flatnonzero(region == number)
            if len(rows):
                yield model, rows

    # -- flat arrays ---------------------------------------------------------------------------

    def flat(self) -> Predictor:
        """Return flat arrays that predict the same.

        It raises an `AttributeError` if a model cannot be written as flat arrays.
        """
        if isinstance(self._written, str):
            raise AttributeError(f"there is no predictor_: {self._written}")
        return self._written

    @once
    def _written(self) -> Predictor | str:
        """The models as flat arrays, or a text that says why that is not possible."""
        link = link_of(self.models)
        shape = self.classes, self.n_features
        try:
            parts = [flat_parts(model, *shape, link) for model in self.models]
            rows = np.array([hole.row for hole in self.holes], dtype=np.int64)
            maps = [part for part, _, _ in parts]
            map = RegionsMap(maps, self.centre, self.radius, self.share, rows)
            return Predictor(
                map,
                np.vstack([np.vstack([w, b]) for _, w, b in parts]),
                np.zeros(len(self.classes)),
                self.classes,
                link,
                map.widths,
                self.n_features,
                self.feature_names,
                units=self.units,
            )
        except (TypeError, ValueError) as error:
            return str(error)
