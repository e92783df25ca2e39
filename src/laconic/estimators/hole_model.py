"""`HolesModel`: what a fitted piecewise classifier does, however its holes were punched."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from laconic.data.elsewhere import is_dask, is_on_device
from laconic.estimators.base import LaconicClassifier
from laconic.estimators.lazily import lazily
from laconic.holes.routed import RoutedPredictor
from laconic.holes.state import Hole
from laconic.model.predictor import Predictor
from laconic.notebook import MOST_ROWS
from laconic.numeric.namespaces import is_tensor

Self = TypeVar("Self", bound="HolesModel")


class HolesModel(LaconicClassifier):
    """A fitted classifier outside and one in every hole: predict, explain, use fewer holes.

    The ``fit`` of a subclass sets the attributes below and calls ``_use`` with a number of holes.
    """

    estimator_: Any
    errors_: np.ndarray
    status_: str
    _every_hole: list[Hole]
    _shares: np.ndarray
    _fitted = "holes_"

    # -- numbers of holes ----------------------------------------------------------------------

    def _use(self, n_holes: int) -> None:
        self.n_holes_ = n_holes
        self.holes_: list[Hole] = self._every_hole[:n_holes]
        self._routed = RoutedPredictor(
            self.estimator_,
            self.holes_,
            self.classes_,
            self._shares[n_holes][: n_holes + 1],
            self.n_features_in_,
            getattr(self, "feature_names_in_", None),
            self._units,
        )

    def at(self: Self, n_holes: int) -> Self:
        """Return the model with the first ``n_holes`` holes, as a fitted classifier."""
        check_is_fitted(self, "holes_")
        if n_holes not in range(len(self._every_hole) + 1):
            most = len(self._every_hole)
            raise ValueError(f"no model has {n_holes!r} holes; give a number from 0 to {most}")
        other = copy.copy(self)
        other._use(int(n_holes))
        return other

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the predicted labels with 0, 1, 2, … holes."""
        if is_dask(X) or is_tensor(X) or is_on_device(X):
            yield from (self.at(n).predict(X) for n in range(len(self._every_hole) + 1))
            return
        rows = self._new_rows(X)
        yield from self.at(len(self._every_hole))._routed.staged_labels(rows)

    # -- predicting ----------------------------------------------------------------------------

    @property
    def _predictor(self) -> RoutedPredictor:
        return self._routed

    @property
    def predictor_(self) -> Predictor:
        """Flat arrays that predict the same. The class says which models have them."""
        check_is_fitted(self, "holes_")
        return self._routed.flat()

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the class scores of every row.

        Their shape is (n_rows, n_classes). For two classes it is (n_rows,): the score of the second
        class minus the score of the first. Each row is scored by the model that decides it. Models
        of different kinds score on different scales, so scores of rows in different regions need
        not compare.
        """
        return super().decision_function(X)

    def _has_probabilities(self) -> bool:
        check_is_fitted(self, "holes_")
        return self._routed.has_probabilities

    @lazily
    def apply(self, X: Any) -> np.ndarray:
        """Return the region of every row: 0 outside all holes, j in the j-th hole of ``holes_``."""
        rows = self._new_rows(X)
        return self._routed.region(rows)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__().copy()
        state.pop("_routed", None)  # _use makes it again from the others
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "holes_" in state:
            self._use(self.n_holes_)

    # -- explaining ----------------------------------------------------------------------------

    def _card(self) -> str:
        from laconic.look.holes import holes_card

        return holes_card(self)

    def _html(self, most: int = MOST_ROWS) -> list[str]:
        from laconic.look.holes import html_holes

        return html_holes(self, most)

    def plot(self, X: Any = None, y: Any = None, ax: Any = None) -> Any:
        """Plot the training error, and the error on (X, y) if given, against the number of holes.

        Returns the matplotlib axes. Needs the ``plot`` extra.
        """
        from laconic.look.holes import plot_holes

        check_is_fitted(self, "holes_")
        return plot_holes(self, X, y, ax)
