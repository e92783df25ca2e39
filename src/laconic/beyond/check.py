"""Check parts of rows as scikit-learn checks rows in one memory, and turn them into numbers."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from laconic.beyond.look import Agreed, labels_of, named, weights_of
from laconic.beyond.tables import is_plain_table, matrix_of
from laconic.data.cells import is_frame
from laconic.data.frames import clearer
from laconic.data.labels import class_factors
from laconic.data.validation import validated
from laconic.numeric.threads import Threads


class CheckedPart(NamedTuple):
    """A part of the rows as numbers. Rows of weight zero are left out."""

    X: Any
    codes: np.ndarray
    """Class codes, in the smallest type that holds them."""
    weight: np.ndarray
    """Row weights. Those of all parts sum to one."""


class Known(BaseEstimator):
    """What an estimator knows of its input, for the workers that check it.

    Parameters
    ----------
    estimator : estimator
        It has looked at all parts.
    single : bool
        Whether all parts are in single precision.
    options : dict
        Options of the check; see `laconic.data.validation.validated`.
    mixed : bool
        Whether the pool is a list of pools.
    """

    def __init__(self, estimator: Any, single: bool, options: dict[str, Any], mixed: bool) -> None:
        self.n_features_in_ = estimator.n_features_in_
        if hasattr(estimator, "feature_names_in_"):
            self.feature_names_in_ = estimator.feature_names_in_
        self._categories, self._units = estimator._categories, estimator._units
        self._missing = options["categories"]
        self._options = {name: value for name, value in options.items() if name != "categories"}
        self._mixed = mixed
        self._dtype = [np.float32 if single else np.float64]
        self._name = type(estimator).__name__

    def numbers(self, X: Any) -> Any:
        """Return rows as numbers."""
        known, rows = self, X
        if not (self._categories or self._units) and is_plain_table(X):
            known, rows = copy(self), matrix_of(X)
            known.__dict__.pop("feature_names_in_", None)  # the look at all parts compared them
        try:
            return validated(known, rows, dtype=self._dtype, reset=False, **self._options)
        except ValueError as error:
            hint = clearer(error, self._missing, self._mixed, is_frame(X))
            raise ValueError(hint or str(error).replace(type(self).__name__, self._name)) from error

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags


class Weighing(NamedTuple):
    """How rows are weighed and their labels are coded."""

    classes: np.ndarray
    factors: np.ndarray
    """What ``class_weight`` multiplies the weights of each class by."""
    power: int
    """Weights are first divided by this power of two, so that no sum overflows."""
    total: float
    """Sum of all weights, divided and multiplied so."""

    @classmethod
    def of(cls, class_weight: Any, told: Agreed) -> Weighing:
        """Return how the rows of all parts are weighed."""
        power = int(np.frexp(told.largest)[1])
        weights = np.ldexp(told.class_weights, -power)
        codes = np.arange(len(told.classes))
        factors = class_factors(class_weight, told.classes, codes, weights)
        return cls(told.classes, factors, power, float((weights * factors).sum()))

    @property
    def sum_as_given(self) -> float:
        """Sum of all weights, multiplied by the factors of the classes."""
        with np.errstate(over="ignore"):
            return float(np.ldexp(self.total, self.power))

    def weights(self, weight: Any, codes: np.ndarray) -> np.ndarray:
        """Return the weights of rows. If all are the same, they take no memory."""
        if weight.strides == (0,) and (self.factors == self.factors[0]).all():
            one = np.ldexp(weight[0], -self.power) * (self.factors[0] / self.total)
            return np.broadcast_to(one, len(weight))
        scaled: np.ndarray = np.ldexp(weight, -self.power) * (self.factors / self.total)[codes]
        return scaled


def check(part: Any, threads: Threads, known: Known, how: Weighing, name: str) -> CheckedPart:
    """Check one part. An error says which part it was."""
    X, y, weight = part
    weights = weights_of(weight, X.shape[0])
    keep = np.flatnonzero(weights > 0) if weight is not None else slice(None)
    if not isinstance(keep, slice) and len(keep) == len(weights):
        keep = slice(None)
    labels = labels_of(y)[keep]
    codes = np.searchsorted(how.classes, labels).astype(np.min_scalar_type(len(how.classes)))
    with named(name):
        numbers = known.numbers(X)
    numbers = numbers if isinstance(keep, slice) else numbers[keep]
    own = weights if isinstance(keep, slice) else weights[keep]
    return CheckedPart(numbers, codes, how.weights(own, codes))
