"""The Hessian in all weights of shards that are far away, as one answer of a few numbers.

With many rows it is an estimate from some of them. Which rows these are depends on their numbers
among all rows and on their curvature, and not on how the rows are cut into shards. It also depends
on the curvature of all rows together. Each estimate finds it for the next one. When the gradients
of the pool are asked for, it is found exactly. So a fit that goes on from a checkpoint takes the
same rows as a fit that was not disturbed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from laconic.rows.limits import Limits
from laconic.rows.recipe import Call

LEAST_MASS = 1e-12
"""Least curvature that is counted with. If there is more again, it must not take all rows."""


class Received(NamedTuple):
    """A Hessian that the shards sent."""

    matrix: np.ndarray
    exact: bool


class FarHessian:
    """What is known of the Hessian at the last evaluation, and how to ask for it.

    Parameters
    ----------
    n_rows : int
        Number of all rows.
    limits : Limits
    wanted : bool or None
        Whether the Hessian comes with every evaluation, and whether it is exact then. None means
        that it does not come.
    mass : float
        Sum of the curvature of all rows, as the last estimate found it. The weights of all rows sum
        to one, so one is a bound for most losses.
    """

    def __init__(
        self, n_rows: int, limits: Limits, wanted: bool | None = None, mass: float = 1.0
    ) -> None:
        self._n_rows, self._limits = n_rows, limits
        self._mass = mass
        self._step: float | None = None
        self.wanted = wanted
        self.known: Received | None = None

    def of_trial(self) -> FarHessian:
        """Return the same for shards in which an atom is tried. They have another Hessian."""
        return FarHessian(self._n_rows, self._limits, self.wanted, self._mass)

    def call(self, n_weights: int, exact: bool) -> Call:
        """Return the question for the Hessian in so many weights."""
        everything = exact or not self.is_estimated(n_weights)
        self._step = None if everything else self._mass / self._limits.rows_for_hessian(n_weights)
        return Call("whole_hessian", (self._step,))

    def is_estimated(self, n_weights: int) -> bool:
        """Return whether the Hessian in so many weights is estimated if it need not be exact."""
        return 2 * self._limits.rows_for_hessian(n_weights) < self._n_rows

    def weigh(self, mass: float) -> None:
        """Note the curvature of all rows."""
        self._mass = max(float(mass), LEAST_MASS)

    def receive(self, answer: tuple[np.ndarray, float], exact: bool) -> np.ndarray:
        """Keep an answer, and return the Hessian."""
        matrix, mass = answer
        if self._step is not None:  # if no row was taken, the curvature is hardly more than a step
            self.weigh(max(mass, self._step))
        self.known = Received(matrix, exact)
        return matrix
