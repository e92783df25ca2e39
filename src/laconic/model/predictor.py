"""The deployable result: flat arrays, no trainer inside."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from laconic.losses import LINKS, Link, decide, find_link
from laconic.model.atoms import FeatureMap, feature_map, is_known, map_scores
from laconic.model.cost import Cost
from laconic.model.frames import frame_matrix
from laconic.model.store import read_archive, write_archive


class Predictor:
    """Scores = columns of the atoms times weights, plus the intercept; eq. (1) picks the class.

    Parameters
    ----------
    map : FeatureMap
        Computes the columns of the atoms.
    weights : ndarray of shape (n_columns, n_outputs)
        In the units of the input. One score for every class, or one alone that is above zero for
        the second of two classes: the loss says which.
    intercept : ndarray of shape (n_outputs,)
    classes : ndarray of shape (n_classes,)
        Class labels.
    loss : str or Loss
        The loss the weights were fitted with, by name or a loss of your own: it says what scores
        mean as probabilities.
    widths : sequence of int
        Columns of every atom: 1, or the size of its group.
    n_features : int
        Columns an input row has.
    feature_names : sequence of str, optional
    categories : mapping of int to sequence of str, optional
        What the codes of a categorical feature stand for.
    """

    def __init__(
        self,
        map: FeatureMap,
        weights: np.ndarray,
        intercept: np.ndarray,
        classes: np.ndarray,
        loss: str | Link,
        widths: Sequence[int],
        n_features: int,
        feature_names: Sequence[str] | None = None,
        categories: Mapping[int, Sequence[str]] | None = None,
    ) -> None:
        self.map = map
        self.weights = weights
        self.intercept = intercept
        self.classes = classes
        self._link = find_link(loss)
        self.loss = self._link.name
        self._meant: Callable[[np.ndarray], np.ndarray] | None
        self._meant = getattr(self._link, "probabilities", None)
        self.widths = [int(w) for w in widths]
        self.n_features = n_features
        self.feature_names = None if feature_names is None else [str(n) for n in feature_names]
        self.categories = {int(f): list(labels) for f, labels in (categories or {}).items()}
        self._check()

    def _check(self) -> None:
        """Parts that do not fit together give an error here, not a wrong answer later."""
        n_columns, n_outputs = sum(self.widths), self._link.n_outputs(len(self.classes))
        sound = (
            self.weights.shape == (n_columns, n_outputs)
            and self.intercept.shape == (n_outputs,)
            and len(self.map.names()) == n_columns
            and all(0 <= f < self.n_features for f in self.map.features())
            and (self.feature_names is None or len(self.feature_names) == self.n_features)
            and bool(np.isfinite(self.weights).all() and np.isfinite(self.intercept).all())
        )
        if not sound:
            raise ValueError("the parts of the predictor do not fit together")

    def __repr__(self) -> str:
        cost = self.cost()
        return (
            f"Predictor({cost.atoms} atoms ({self.map.kind}), {cost.features} of "
            f"{self.n_features} features, {len(self.classes)} classes, loss {self.loss!r})"
        )

    def scores(self, X: Any) -> np.ndarray:
        """Scores (n_rows, n_outputs) of an array, a sparse matrix or a data frame.

        A frame's columns are found by name where the predictor knows names (those that it does
        not read may be left out), and its categories are encoded. In an array a categorical
        feature holds the positions in ``categories``. Missing values are for stumps only, which
        answer no to them (and yes to "is missing").
        """
        X = self._matrix(X)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            images = X.ndim > 1 and X.shape[1] != self.n_features and X.size % self.n_features == 0
            hint = f"; give images as rows of pixels, X.reshape(-1, {self.n_features})" * images
            raise ValueError(f"X must have {self.n_features} columns, not shape {X.shape}{hint}")
        out = map_scores(self.map, X, self.weights)
        out += self.intercept
        return out

    def _matrix(self, X: Any) -> Any:
        if sparse.issparse(X):
            return X
        if hasattr(X, "columns") and self.feature_names is not None:
            reads = self.map.features().tolist()
            return frame_matrix(X, self.feature_names, reads, self.categories)
        matrix = np.asarray(X)
        if matrix.dtype.kind not in "biuf":
            try:
                return matrix.astype(np.float64)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    "X must hold numbers; give a data frame where columns hold text"
                ) from error
        return matrix

    def predict(self, X: Any) -> np.ndarray:
        """Label of the largest score of every row, or of the sign of its one score."""
        return self.classes[decide(self.scores(X))]

    @property
    def predict_proba(self) -> Callable[[Any], np.ndarray]:
        """``predict_proba(X)``: class probabilities (n_rows, n_classes), by the link of the loss.

        There is none, as with the classifier it comes from, where scores stand for no probability:
        those of error clumping, and of regions whose models have none or not of one kind.
        """
        if self._meant is None:
            raise AttributeError(
                "this predictor has no predict_proba: its scores are no probabilities; "
                "use predict, or scores"
            )
        return self._probabilities

    def _probabilities(self, X: Any) -> np.ndarray:
        assert self._meant is not None
        return self._meant(self.scores(X))

    def names(self) -> list[str]:
        """One readable name per column."""
        return self.map.names(self.feature_names, self.categories)

    def describe(self, file: Any = None) -> None:
        """Print the model for people: every atom or region, and its weights per class."""
        from laconic.look.card import card

        print(card(self), file=file)

    def cost(self) -> Cost:
        """What predicting one row costs."""
        numbers = self.weights.size + self.intercept.size
        arrays = sum(a.size for a in self.map.arrays().values())
        operations = self.weights.size + self.map.operations()
        if hasattr(self.map, "score_operations"):  # not every column counts for every row
            operations = self.map.score_operations(len(self.intercept))
        return Cost(
            atoms=len(self.widths),
            features=len(self.map.features()),
            operations=operations,
            bytes=4 * (numbers + arrays),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the predictor to a file that is safe to load from a stranger."""
        if self.map.kind == "classifiers":
            raise TypeError(
                "an ensemble of scikit-learn classifiers cannot be saved as a Laconic file; "
                "write the fitted estimator with joblib.dump instead"
            )
        if not is_known(self.map):
            raise TypeError(
                f"a predictor with a feature map of your own ({type(self.map).__name__}) cannot be "
                "saved: a file holds arrays, not code"
            )
        if LINKS.get(self.loss) is not type(self._link):
            raise TypeError(
                f"a predictor with a loss of your own ({type(self._link).__name__}) cannot be "
                "saved: a file holds arrays, not code"
            )
        classes = np.asarray(self.classes)
        if classes.dtype.hasobject:
            if not all(isinstance(label, str) for label in classes):
                raise TypeError("class labels must be numbers, booleans or strings to be saved")
            classes = classes.astype(np.str_)
        header = {
            "atoms": self.map.kind,
            "loss": self.loss,
            "widths": self.widths,
            "n_features": self.n_features,
            "feature_names": self.feature_names,
            "categories": {str(f): labels for f, labels in self.categories.items()},
        }
        arrays = {"weights": self.weights, "intercept": self.intercept, "classes": classes}
        mapped = {f"map_{name}": array for name, array in self.map.arrays().items()}
        write_archive(path, "predictor", header, {**arrays, **mapped})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Predictor:
        """Read a predictor that `save` wrote."""
        header, arrays = read_archive(path, "predictor")
        mapped = {n.removeprefix("map_"): a for n, a in arrays.items() if n.startswith("map_")}
        try:
            return cls._from(header, arrays, mapped)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ValueError(f"{path} is not a sound predictor: {error}") from error

    @classmethod
    def _from(
        cls, header: dict[str, Any], arrays: dict[str, np.ndarray], mapped: dict[str, np.ndarray]
    ) -> Predictor:
        return cls(
            feature_map(header["atoms"], mapped),
            arrays["weights"],
            arrays["intercept"],
            arrays["classes"],
            header["loss"],
            header["widths"],
            header["n_features"],
            header["feature_names"],
            header["categories"],
        )
