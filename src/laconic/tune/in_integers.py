"""Held-out rows that judge models in integers, for fits with a budget in bytes.

A budget in bytes says the word length of the model that ships: the bits of its weights, templates
and directions, and the type of its inputs. Rounding changes a tuned model as it changes any other.
So tuned and chosen models are compared in the form that ships, by their loss on held-out rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from laconic.boost.held_out import HeldOut
from laconic.boost.path import PathEntry
from laconic.losses import Link
from laconic.model.choose_codes import TooWide
from laconic.model.predictor import Predictor
from laconic.model.quantise import integers_of
from laconic.numeric.namespaces import to_host


class Shipped(NamedTuple):
    """How a model ships, and the rows that set its scales."""

    bits: int
    inputs: str
    X: Any
    weight: np.ndarray
    n_classes: int
    link: str | Link

    def integers(self, entry: PathEntry) -> Any:
        """Return the integer program of an entry."""
        predictor = Predictor(
            entry.map,
            entry.input_weights(),
            entry.intercept,
            np.arange(self.n_classes),
            self.link,
            [atom.width for atom in entry.atoms],
            self.X.shape[1],
        )
        return integers_of(predictor, self.X, self.bits, self.inputs, self.weight)

    def scores(self, entry: PathEntry, X: Any) -> np.ndarray:
        """Return the scores of rows, (n_rows, n_outputs), as integers give them.

        Raises
        ------
        TooWide
            If the numbers of the entry do not fit the integers of C.
        """
        made = self.integers(entry)
        scores = made.scores(X) * made.unit
        if scores.shape[1] == len(entry.intercept):
            return scores
        return np.column_stack([np.zeros(len(scores)), scores])  # the difference of two scores


class HeldOutInIntegers:
    """Judges entries by the held-out loss of their integer models.

    Parameters
    ----------
    held : HeldOut
    shipped : Shipped
    """

    def __init__(self, held: HeldOut, shipped: Shipped) -> None:
        X, y, weight = (to_host(array) for array in (held.X, held.y, held.weight))
        self._held = HeldOut(X, y, weight, held.training_loss, held.patience)
        self._shipped = shipped

    def loss(self, entry: PathEntry) -> float:
        """Return the held-out loss. It is infinite if an entry does not fit the integers of C."""
        try:
            scores = self._shipped.scores(entry, self._held.X)
        except TooWide:
            return float("inf")
        return self._held.loss_of(scores)
