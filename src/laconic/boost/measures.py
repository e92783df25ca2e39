"""Quantities of a model that cost something: atoms, features or sensors, operations, bytes.

A measure knows the quantity of any set of atoms, and how much each atom of the pool adds to it. No
quantity ever falls if an atom is added.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from laconic.export.footprint import Target, footprint
from laconic.model.cost import model_operations
from laconic.pools.base import BoundPool

# If a pool does not say which atoms are alike, each atom is measured in pools of at most this size.
FEW_ATOMS = 256
# Number of sets of atoms whose quantities are kept. Searches ask for the same sets again.
KEPT = 4096

Numbers = Sequence[int]


class Measure(ABC):
    """A quantity of the models of a pool's atoms.

    Attributes
    ----------
    least : float
        The least amount above 0 by which an atom can raise the quantity.
    largest : float
        The largest amount that an atom added when all atoms were last measured.
    """

    least = 1.0
    largest = np.inf

    def __init__(self, pool: BoundPool) -> None:
        self._pool = pool
        self._known: dict[tuple[int, ...], float] = {}

    def of(self, numbers: Numbers) -> float:
        """Return the quantity of a model of these atoms."""
        key = tuple(numbers)
        if key not in self._known:
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[key] = self._measured(key)
        return self._known[key]

    @abstractmethod
    def _measured(self, numbers: tuple[int, ...]) -> float:
        """Return the quantity of a model of these atoms."""

    def added(self, chosen: Numbers) -> np.ndarray | None:
        """Return what each atom of the pool adds to a model of the atoms ``chosen``.

        Entries of the chosen atoms themselves mean nothing. One atom of every kind is measured (see
        `BoundPool.alike`). The result is None if the pool is large and knows no kinds.
        """
        kinds = self._pool.alike(chosen)
        if kinds is None:
            if self._pool.n_atoms > FEW_ATOMS:
                return None
            kinds = np.arange(self._pool.n_atoms)
        kinds = kinds + 1
        kinds[list(chosen)] = 0
        before, each = self.of(chosen), np.zeros(kinds.max(initial=0) + 1)
        for kind in np.flatnonzero(np.bincount(kinds)):
            if kind > 0:
                one = int(np.argmax(kinds == kind))
                each[kind] = self.of([*chosen, one]) - before
        return np.asarray(each[kinds])


class AtomCount(Measure):
    """The number of atoms."""

    def _measured(self, numbers: tuple[int, ...]) -> float:
        return float(len(numbers))

    def added(self, chosen: Numbers) -> np.ndarray:
        """Return 1 for every atom."""
        return np.ones(self._pool.n_atoms)


class SensorPrices(Measure):
    """The price of the sensors that a model reads, each paid once.

    A sensor brings one feature or several. It is paid when the first of them is read. With prices
    of 1 and a sensor for every feature, this is the number of distinct features.

    Parameters
    ----------
    pool : BoundPool
    prices : ndarray of shape (n_sensors,)
        Positive prices.
    sensor : ndarray of shape (n_features,)
        The sensor of every feature.
    """

    def __init__(self, pool: BoundPool, prices: np.ndarray, sensor: np.ndarray) -> None:
        super().__init__(pool)
        self._prices = prices
        self._sensor = sensor
        self.least = float(prices.min())
        # An atom may read several features of one sensor. The pool only sums over features, so it
        # is asked about such sensors one by one.
        self._wide = np.bincount(sensor, minlength=len(prices)) > 1
        if self._wide.any() and pool.costs(np.ones(len(sensor))).max(initial=0.0) <= 1:
            self._wide[:] = False
        self._readers: dict[int, np.ndarray] = {}

    def _measured(self, numbers: tuple[int, ...]) -> float:
        # An exact sum does not depend on the order of the sensors.
        return math.fsum(self._prices[self._sensors(numbers)])

    def added(self, chosen: Numbers) -> np.ndarray:
        """Return the price of the sensors that each atom reads and no chosen atom reads."""
        left = self._prices.copy()
        left[self._sensors(chosen)] = 0.0
        added = self._pool.costs(np.where(self._wide, 0.0, left)[self._sensor])
        for number in np.flatnonzero(self._wide & (left > 0)).tolist():
            added = added + left[number] * self._reads(number)
        return added

    def _sensors(self, numbers: Numbers) -> np.ndarray:
        """Return the sensors that a model of these atoms reads."""
        return np.unique(self._sensor[self._pool.extract(numbers).features()])

    def _reads(self, number: int) -> np.ndarray:
        """Return which atoms read a sensor."""
        if number not in self._readers:
            own = (self._sensor == number).astype(np.float64)
            self._readers[number] = self._pool.costs(own) > 0
        return self._readers[number]


class Operations(Measure):
    """Number of operations per row. An operation that several atoms share counts once.

    Parameters
    ----------
    pool : BoundPool
    n_outputs : int, default=0
        Number of scores. With 0, only the operations of the columns count, not those of weights.
    """

    def __init__(self, pool: BoundPool, n_outputs: int = 0) -> None:
        super().__init__(pool)
        self._n_outputs = n_outputs

    def _measured(self, numbers: tuple[int, ...]) -> float:
        map = self._pool.extract(numbers)
        if self._n_outputs == 0:
            return float(map.operations())
        n_columns = sum(self._pool.width(number) for number in numbers)
        return float(model_operations(map, n_columns, self._n_outputs))

    def added(self, chosen: Numbers) -> np.ndarray | None:
        """Return the operations that each atom adds."""
        known = self._pool.operations(chosen, self._n_outputs)
        return super().added(chosen) if known is None else known


class TargetBytes(Measure):
    """Bytes of the exported model on a target.

    Parameters
    ----------
    pool : BoundPool
    n_outputs : int
        Number of scores in C.
    target : Target
    n_features : int
        Number of columns of an input row.
    n_classes : int
    """

    def __init__(
        self, pool: BoundPool, n_outputs: int, target: Target, n_features: int, n_classes: int
    ) -> None:
        super().__init__(pool)
        self.target = target
        self._given = n_outputs, target, n_features, n_classes

    def _measured(self, numbers: tuple[int, ...]) -> float:
        return float(footprint(self._pool.extract(numbers), *self._given))
