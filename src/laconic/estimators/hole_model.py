"""`HolesModel`: what a fitted piecewise classifier does, whoever punched its holes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from laconic.data.validation import validated
from laconic.holes.local_models import (
    class_probabilities,
    class_scores,
    flat_parts,
    link_of,
    predicted_labels,
)
from laconic.holes.punch import Hole
from laconic.holes.stages import staged_labels
from laconic.model.predictor import Predictor
from laconic.model.regions import RegionsMap, newest_hole
from laconic.numeric.magnitudes import check_squares

Self = TypeVar("Self", bound="HolesModel")


def _has_probabilities(self: HolesModel) -> bool:
    check_is_fitted(self, "holes_")
    return all(hasattr(model, "predict_proba") for model in self._models())


class HolesModel(ClassifierMixin, BaseEstimator):
    """A classifier outside and one in every hole: choosing a number, predicting, explaining.

    A subclass's ``fit`` sets the attributes below and calls ``_use`` with a number of holes.
    """

    classes_: np.ndarray
    n_features_in_: int
    estimator_: Any
    errors_: np.ndarray
    status_: str
    _every_hole: list[Hole]
    _shares: np.ndarray

    # -- numbers of holes ----------------------------------------------------------------------

    def _use(self, n_holes: int) -> None:
        self.n_holes_ = n_holes
        self.holes_: list[Hole] = self._every_hole[:n_holes]

    def at(self: Self, n_holes: int) -> Self:
        """The model of the first ``n_holes`` holes, as a fitted classifier of its own."""
        check_is_fitted(self, "holes_")
        if n_holes not in range(len(self._every_hole) + 1):
            most = len(self._every_hole)
            raise ValueError(f"no model of {n_holes!r} holes; there are those of 0 to {most}")
        other = copy.copy(self)
        other._use(int(n_holes))
        return other

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Predicted labels with 0, 1, 2, … holes."""
        X = self._rows(X)
        yield from staged_labels(self.estimator_, self._every_hole, X, self.classes_.dtype)

    # -- predicting ----------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """Label by the newest hole that contains a row, or by the classifier outside, eq. (6)."""
        X = self._rows(X)
        out = np.empty(X.shape[0], dtype=self.classes_.dtype)
        for model, rows in self._routes(X):
            out[rows] = predicted_labels(model, X[rows], out.dtype)
        return out

    def decision_function(self, X: Any) -> np.ndarray:
        """Class scores (n_rows, n_classes); for two classes the second less the first.

        Each row is scored by the model that decides it. Models of different kinds score on
        different scales, so scores of rows in different regions need not compare.
        """
        X = self._rows(X)
        out, link = np.empty((X.shape[0], len(self.classes_))), link_of(self._models())
        for model, rows in self._routes(X):
            out[rows] = class_scores(model, X[rows], self.classes_, link)
        return out[:, 1] - out[:, 0] if len(self.classes_) == 2 else out

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities by the model that decides each row, where every model has them."""
        X = self._rows(X)
        out = np.empty((X.shape[0], len(self.classes_)))
        for model, rows in self._routes(X):
            out[rows] = class_probabilities(model, X[rows], self.classes_)
        return out

    def apply(self, X: Any) -> np.ndarray:
        """The region of every row: 0 outside every hole, j in the j-th hole of ``holes_``."""
        X = self._rows(X)
        return newest_hole(X, *self._balls())

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self, "holes_")
        X = validated(self, X, accept_sparse="csr", reset=False)
        check_squares(X, np.dtype(np.float64))
        return X

    def _balls(self) -> tuple[np.ndarray, np.ndarray]:
        """Centres and radii of the holes in use."""
        centres = np.array([hole.centre for hole in self.holes_])
        radii = np.array([hole.radius for hole in self.holes_])
        return centres.reshape(len(self.holes_), self.n_features_in_), radii

    def _models(self) -> list[Any]:
        return [self.estimator_, *(hole.model for hole in self.holes_)]

    def _routes(self, X: Any) -> Iterator[tuple[Any, np.ndarray]]:
        """Every model that decides rows, and which."""
        region = newest_hole(X, *self._balls())
        for number, model in enumerate(self._models()):
            rows = np.flatnonzero(region == number)
            if len(rows):
                yield model, rows

    # -- explaining ----------------------------------------------------------------------------

    @property
    def predictor_(self) -> Predictor:
        """Flat arrays that predict the same; see the class for which models can be written so."""
        check_is_fitted(self, "holes_")
        models, shape = self._models(), (self.classes_, self.n_features_in_)
        link = link_of(models)
        try:
            flat = [flat_parts(model, *shape, link) for model in models]
        except TypeError as error:
            raise AttributeError(f"no predictor_: {error}") from error
        centre, radius = self._balls()
        rows = np.array([hole.row for hole in self.holes_], dtype=np.int64)
        share = self._shares[self.n_holes_][: self.n_holes_ + 1]
        map = RegionsMap([part for part, _, _ in flat], centre, radius, share, rows)
        weights = np.vstack([np.vstack([w, b]) for _, w, b in flat])
        return Predictor(
            map,
            weights,
            np.zeros(len(self.classes_)),
            self.classes_,
            link,
            map.widths,
            self.n_features_in_,
            getattr(self, "feature_names_in_", None),
            units=self._units,
        )

    def describe(self, file: Any = None) -> None:
        """Print the holes for people: rows, errors before and after, and the model in each."""
        from laconic.look.holes import holes_card

        check_is_fitted(self, "holes_")
        print(holes_card(self), file=file)

    def plot(self, X: Any = None, y: Any = None, ax: Any = None) -> Any:
        """Plot the training error, and the error on (X, y) where given, against the holes.

        Returns the matplotlib axes. Needs the ``plot`` extra.
        """
        from laconic.look.holes import plot_holes

        check_is_fitted(self, "holes_")
        return plot_holes(self, X, y, ax)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
