"""The state of a shard as a short recipe, by which a lost shard is made again.

The state of a shard is what the loop did to it: which columns are in, with which means, and the
weights at which it was last evaluated. A `Recipe` says this in a few numbers, whatever the number
of rows. `laconic.rows.keeper` brings a shard to the state of a recipe.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class In(NamedTuple):
    """An atom whose columns are in."""

    atom: int
    """Number of the atom, or -1 for the constant column."""
    means: tuple[float, ...] | None
    """What is subtracted from its columns, or None for a local atom."""


class Recipe(NamedTuple):
    """The state of a shard."""

    columns: tuple[In, ...] = ()
    """The atoms that are in, in the order in which they were added."""
    weights: np.ndarray | None = None
    """Weights of the last evaluation, or None if there was none."""
    at: tuple[In, ...] = ()
    """The atoms that were in at the last evaluation."""
    trial: tuple[int, bool] | None = None
    """Number of a trial and whether it keeps the columns that are in; None outside of trials."""
    origin: Recipe | None = None
    """The state from which the trial began."""

    def same_evaluation(self, other: Recipe) -> bool:
        """Return whether both were last evaluated at the same weights of the same columns."""
        if self.weights is None or other.weights is None:
            return self.weights is other.weights
        return self.at == other.at and np.array_equal(self.weights, other.weights)

    @property
    def all_written(self) -> bool:
        """Whether the columns of all atoms are written down, so that none is local."""
        return all(each.means is not None for each in self.columns)

    def weights_here(self, n_outputs: int) -> np.ndarray | None:
        """Return the weights of the columns that are in, if they were evaluated."""
        here = self
        if here.weights is None and here.trial is not None:
            if not here.columns:
                return np.empty((0, n_outputs))
            assert here.origin is not None
            here = here.origin
        return here.weights if here.at == here.columns else None

    def cut(self, n_written: int, n_local: int) -> Recipe:
        """Return the state with the first columns that are written down, and first local atoms."""
        kept: list[In] = []
        for each in self.columns:
            if each.means is None:
                n_local -= 1
            else:
                n_written -= len(each.means)
            if n_local < 0 or n_written < 0:
                break
            kept.append(each)
        return self._replace(columns=tuple(kept))


class Call(NamedTuple):
    """A question to a shard: a method of `laconic.rows.keeper.Answers`, and its arguments."""

    method: str
    arguments: tuple[Any, ...] = ()
