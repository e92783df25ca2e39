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


class Call(NamedTuple):
    """A question to a shard: a method of `laconic.rows.keeper.Answers`, and its arguments."""

    method: str
    arguments: tuple[Any, ...] = ()
