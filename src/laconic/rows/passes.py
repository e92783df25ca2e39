"""Passes over a block: the loss with its gradient, and Hessian products."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from laconic.rows.blocks import Block
from laconic.rows.design import Design


class Passes(NamedTuple):
    """Passes over the columns that are in."""

    loss: Any
    """A `laconic.losses.Loss`."""
    design: Design
    compiled: bool
    """Whether the loss is compiled. If all columns of a block are then written down, a pass is one
    long call."""

    def scores(self, block: Block, weights: np.ndarray, inner: np.ndarray | None) -> np.ndarray:
        """Return the scores of a block, (n_outputs, n_rows); see `Design.product`."""
        out = self.design.product(block, weights, inner)
        if block.offset is not None:
            out += block.offset
        return out

    def evaluate(
        self, block: Block, weights: np.ndarray, inner: np.ndarray | None
    ) -> tuple[float, np.ndarray]:
        """Return the loss, and sums of its gradient. Leave the state for Hessian products."""
        if block.state is None:
            block.state = np.empty((len(weights), len(block.weight)), dtype=self.design.dtype)
        rest = (block.target, block.weight, block.state)
        if self._in_one_call(block, len(weights)):
            found = block.columns.evaluated(weights, self.loss.margin, *rest)
            return found[0], -found[1]
        value: float = self.loss.evaluate(self.scores(block, weights, inner), *rest)
        return value, -self.design.sums(block, self.loss.residual(*rest))

    def curve(self, block: Block, step: np.ndarray, inner: np.ndarray | None) -> np.ndarray:
        """Return sums of the Hessian applied to a step (n_outputs, n_columns)."""
        assert block.state is not None
        if self._in_one_call(block, len(step)):
            return block.columns.curved(step, block.weight, block.state)
        moved = self.design.product(block, step, inner)
        return self.design.sums(block, self.loss.curve(block.weight, block.state, moved))

    def _in_one_call(self, block: Block, k: int) -> bool:
        written = not self.design.locals and block.offset is None
        return self.compiled and written and block.columns.in_one_call(k)
