"""The contract between subset searches and their problems."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from laconic.subset import solver

# Predicted relative gain below which a solve ends. Values are then accurate to about this.
TOLERANCE = 1e-10


class Fit(NamedTuple):
    """Optimised weights on one support."""

    support: tuple[int, ...]
    """Numbers of the columns, in ascending order."""
    weights: np.ndarray
    """Weights of the columns. The intercept, if there is one, is last."""
    value: float
    """Mean loss plus the l1 term, which is the objective without the price on columns."""
    promised: float = np.nan
    """Predicted gain of the last step of the solve, or NaN if it is not known."""

    @property
    def converged(self) -> bool:
        """Whether the solve converged: the last predicted gain is within the tolerance."""
        return bool(abs(self.promised) <= TOLERANCE * max(self.value, solver.SMALL))


class Found(Protocol):
    """What a search needs to know about a fit."""

    @property
    def support(self) -> tuple[int, ...]:
        """Numbers of the chosen columns, in ascending order."""

    @property
    def value(self) -> float:
        """The objective without the price on columns."""


F = TypeVar("F", bound=Found)


class Move(NamedTuple):
    """A column to drop, one to add, or both."""

    change: float
    """Predicted change of the value, or -inf if there is no prediction."""
    out: int
    """Place in the support of the column to drop, or -1 for none."""
    into: int
    """Number of the column to add, or -1 for none."""


class MovesFrom(Protocol[F]):
    """The moves from one fit. Each list may be computed while it is read."""

    fit: F

    def adds(self, count: int) -> Iterable[Move]:
        """Return columns to add, best first."""

    def drops(self, count: int) -> Iterable[Move]:
        """Return columns to drop, cheapest first."""

    def swaps(self, count: int) -> Iterable[Move]:
        """Return swaps, most promising first."""

    def make(self, move: Move, target: float = np.inf) -> F:
        """Return the fit after a move. The solve may stop early if it cannot reach ``target``."""


class Movable(Protocol[F]):
    """The methods of a problem that moves need."""

    def with_column(self, fit: F, column: int, target: float = np.inf) -> F:
        """Return the fit with one more column.

        It need not be optimal if the optimum is above ``target``.
        """

    def without(self, fit: F, column: int, target: float = np.inf) -> F:
        """Return the fit with one column less. ``target`` is as in `with_column`."""

    def losses_of_dropping(self, fit: F) -> np.ndarray:
        """Return the approximate increase if a column of the support is dropped, for each."""


class Searchable(Movable[F], Protocol[F]):
    """The methods of a problem that a search needs.

    A column may be an atom, which has several columns of its own.
    """

    @property
    def n_columns(self) -> int:
        """Number of columns to choose from."""

    def fit(self, support: tuple[int, ...], start: np.ndarray | None = None) -> F:
        """Optimise the weights of a support, from ``start`` if given."""

    def gains(self, fit: F) -> np.ndarray:
        """Return the decrease by a step along each column alone, -inf for columns in the fit."""

    def moves(self, fit: F) -> MovesFrom[F]:
        """Return the moves from a fit, with the best ranking that the problem has."""

    def openings(self, empty: F, count: int) -> list[int]:
        """Return up to ``count`` single columns, not alike, from which to grow small models.

        ``empty`` is the fit without columns. A problem may have no openings.
        """
