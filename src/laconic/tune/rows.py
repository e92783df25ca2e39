"""The rows that atoms are tuned on, wherever they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from laconic.model.feature_maps import FeatureMap
from laconic.numeric.namespaces import is_tensor
from laconic.numeric.threads import Threads
from laconic.registry import TENSOR_COLUMNS, find
from laconic.rows.asked import RowsAsked
from laconic.rows.rows import Rows
from laconic.tune.batches import Batches
from laconic.tune.contract import Tunable
from laconic.tune.descent import Frame, TunedModel, batch_sums
from laconic.tune.kinds import TunableKind
from laconic.tune.settings import Tuning


class AnyBatches(Protocol):
    """Batches, or how they are drawn."""

    n_batches: int
    """Number of batches of an epoch."""

    def epoch(self, number: int) -> Iterator[Any]:
        """Yield what `RowsToTune.sums` knows the batches of an epoch by."""


class Bindable(Protocol):
    """Rows that a pool can be bound to."""

    def rows(self, asked: RowsAsked) -> Rows:
        """Bind a pool to the rows, and return their shards."""


class RowsToTune(Bindable, Protocol):
    """Rows in one memory, on a device, or in parts."""

    def tunable(self, kind: TunableKind, given: FeatureMap, free: bool) -> Tunable:
        """Return the atoms of a map as functions of their parameters."""

    def batches(self, tuning: Tuning, seed: int) -> AnyBatches:
        """Return the batches that a descent goes through."""

    def sums(
        self, atoms: Tunable, model: TunedModel, frame: Frame, batch: Any
    ) -> tuple[Any, list[Any]]:
        """Return the sums over a batch; see `laconic.tune.descent.batch_sums`."""

    def of_epoch(self, batches: Any, number: int) -> RowsToTune:
        """Return these rows as they are in an epoch: the copies that it has, if there are any."""

    def written(self, made: FeatureMap, scales: np.ndarray) -> Bindable:
        """Return the scaled columns of a map in the place of the inputs."""


class RowsHere:
    """Rows in one memory or on a device; see `RowsToTune`.

    Parameters
    ----------
    training : object
        See `laconic.estimators.training.Training`. It has the attributes ``X``, ``codes`` and
        ``weight``, and ``device`` if the rows go to a device.
    threads : Threads
    """

    sums = staticmethod(batch_sums)

    def __init__(self, training: Any, threads: Threads) -> None:
        self._training, self._threads = training, threads
        self._device = getattr(training, "device", None)
        self._moved: Any = None

    @property
    def _X(self) -> Any:
        """The rows, on the device if there is one."""
        if self._moved is None:
            self._moved = _there(self._training.X, self._device)
        return self._moved

    def tunable(self, kind: TunableKind, given: FeatureMap, free: bool) -> Tunable:
        """Return the atoms of a map as functions of their parameters."""
        return kind.tunable(given, self._X, self._threads, self._device, free)

    def batches(self, tuning: Tuning, seed: int) -> Batches:
        """Return the batches that a descent goes through."""
        device = self._X.device if is_tensor(self._X) else None
        codes, weight = (
            _there(array, device) for array in (self._training.codes, self._training.weight)
        )
        size = tuning.rows_of_a_batch(len(codes))
        return Batches(self._X, codes, weight, size, seed, tuning.copies)

    def of_epoch(self, batches: Batches, number: int) -> RowsHere:
        """Return these rows as they are in an epoch."""
        X = batches.rows(number)
        return self if X is self._X else RowsHere(self._training._replace(X=X), self._threads)

    def written(self, made: FeatureMap, scales: np.ndarray) -> RowsHere:
        """Return the scaled columns of a map in the place of the inputs."""
        if is_tensor(self._X):
            values = find(TENSOR_COLUMNS)(made, self._X)
            values = values * values.new_tensor(scales)
        else:
            values = scaled_columns(made, self._X, scales)
        return RowsHere(self._training._replace(X=values), self._threads)

    def rows(self, asked: RowsAsked) -> Rows:
        """Bind a pool to the rows, and return their shards."""
        rows: Rows = self._training._replace(X=self._X).rows(asked)
        return rows


def scaled_columns(made: Any, X: Any, scales: np.ndarray) -> np.ndarray:
    """Return the columns of a map for some rows, multiplied by their factors."""
    columns: Callable[[Any], np.ndarray] = made.columns
    values = columns(X)
    return values * scales.astype(values.dtype)


def _there(array: Any, device: Any) -> Any:
    """Return an array or a tensor on a device, if there is one."""
    if device is None:
        return array
    from laconic.device.place import moved

    return moved(array, device)
