"""The Hessian in all weights of shards that are far away, as one answer of a few numbers.

With many rows it is an estimate from some of them. Which rows these are depends on their numbers
among all rows and on their curvature, and not on how the rows are cut into shards. It also depends
on the curvature of all rows together. That is known only after an evaluation, so the one before it
is used. Every evaluation brings it. So a fit that goes on from a checkpoint takes the same rows as
a fit that was not disturbed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from laconic.rows.limits import Limits
from laconic.rows.recipe import Call


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
        Sum of the curvature of all rows at the evaluation before. The weights of all rows sum to
        one, so one is a bound.
    """

    def __init__(
        self, n_rows: int, limits: Limits, wanted: bool | None = None, mass: float = 1.0
    ) -> None:
        self._n_rows, self._limits = n_rows, limits
        self._before = self._mass = mass
        self.wanted = wanted
        self.known: Received | None = None

    def of_trial(self) -> FarHessian:
        """Return the same for shards in which an atom is tried. They have another Hessian."""
        return FarHessian(self._n_rows, self._limits, self.wanted, self._mass)

    def moved(self) -> None:
        """Note that the next answers are those of another evaluation."""
        self.known, self._before = None, self._mass

    def call(self, n_weights: int, exact: bool) -> Call:
        """Return the question for the Hessian in so many weights."""
        few = max(self._limits.travelling_rows * n_weights, self._limits.least_rows)
        everything = exact or 2 * few >= self._n_rows
        return Call("whole_hessian", (None if everything else self._before / few,))

    def weigh(self, mass: float) -> None:
        """Note the curvature of all rows at this evaluation."""
        if mass > 0:
            self._mass = float(mass)

    def receive(self, answer: tuple[np.ndarray, float], exact: bool) -> np.ndarray:
        """Keep an answer, and return the Hessian."""
        matrix, mass = answer
        self.weigh(mass)
        self.known = Received(matrix, exact)
        return matrix
