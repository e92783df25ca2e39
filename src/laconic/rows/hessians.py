"""Hessians of the loss in the weights of a shard's columns, at the last evaluated weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from laconic.losses import Loss
from laconic.numeric.threads import row_blocks
from laconic.pools.local_columns import LocalColumns
from laconic.rows.blocks import Block
from laconic.rows.curvature import (
    Among,
    Map,
    Mass,
    column_grams,
    column_mass,
    local_grams,
    placed,
)
from laconic.rows.design import Design
from laconic.rows.limits import Limits
from laconic.rows.sums import running_total, total

TOGETHER = 4096
"""Rows of a sample that are multiplied together."""
GOLDEN = 2654435769
"""The golden ratio times 2³². Its multiples modulo 2³² are spread more evenly than others."""


class Hessians(NamedTuple):
    """The Hessians of a shard. See `Shard.hessian`, `Shard.masses` and `Shard.hessian_blocks`."""

    loss: Loss
    n_outputs: int
    blocks: list[Block]
    design: Design
    limits: Limits
    run: Map

    def whole(self, face: np.ndarray) -> np.ndarray | None:
        """Return the Hessian in the weights of a face, or None if there are too many weights."""
        if self.design.locals or np.count_nonzero(face) > self.limits.face:
            return None
        columns, outputs = np.nonzero(face)
        held = slice(0, self.design.n_written)

        def one(block: Block) -> np.ndarray:
            assert block.state is not None
            written = block.columns.take(slice(None), held).T[columns].astype(np.float64)
            out = np.empty((len(columns), len(columns)))
            for c in np.unique(outputs):
                unit = np.zeros_like(block.state)
                unit[c] = 1.0
                bend = self.loss.curve(block.weight, block.state, unit)
                own = outputs == c
                out[:, own] = (written * bend[outputs]) @ written[own].T
            return out

        return total(list(self.run(one, self.blocks)))

    def of_all(self) -> np.ndarray:
        """Return the Hessian in all weights, in the order of ``W.ravel()``."""
        held = slice(0, self.design.n_written)

        def one(block: Block) -> np.ndarray:
            assert block.state is not None
            columns = block.columns.take(slice(None), held).astype(np.float64)
            return self._in_all_weights(columns, block.weight, block.state)

        return running_total(self.run(one, self.blocks))

    def of_some_rows(self, step: float, first: int) -> tuple[np.ndarray, float]:
        """Return the Hessian in all weights, from some of the rows, and the curvature of all rows.

        A row of curvature h is taken with the chance p = h / step, at most 1, and counts 1 / p
        times. Chance is the fractional part of the row's number times the golden ratio, to 32 bits.
        These parts are spread evenly over any run of rows. So the rows that are taken do not depend
        on how the rows are cut into shards. The first row has the number ``first``.
        """
        held = slice(0, self.design.n_written)
        firsts = first + np.cumsum([0, *(len(block.weight) for block in self.blocks)])[:-1]

        def one(item: tuple[Block, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
            block, start = item
            assert block.state is not None
            mass = self._of_rows(block)
            chance = _multiples(len(mass)) + np.uint32(start * GOLDEN % 2**32)
            at = np.flatnonzero(chance * (step / 2**32) < mass)
            weight = block.weight[at] * np.maximum(step / mass[at], 1.0)
            return block.columns.take(at, held), weight, block.state[:, at], float(mass.sum())

        # Few rows of a block are taken, so the rows of many blocks are multiplied together.
        parts = list(self.run(one, zip(self.blocks, firsts.tolist(), strict=True)))
        columns, weights, states, masses = zip(*parts, strict=True)
        X = np.concatenate(columns).astype(self.design.dtype, copy=False)
        weight, state = np.concatenate(weights).astype(X.dtype), np.concatenate(states, axis=1)
        pieces = [
            self._in_all_weights(X[s], weight[s], np.ascontiguousarray(state[:, s]))
            for s in row_blocks(len(X), TOGETHER)
        ]
        n_weights = X.shape[1] * self.n_outputs
        return total(pieces) if pieces else np.zeros((n_weights, n_weights)), sum(masses)

    def curvature(self) -> float:
        """Return the sum of the curvature of all rows, with the bits of `of_some_rows`."""
        return sum(self.run(lambda block: float(self._of_rows(block).sum()), self.blocks))

    def _of_rows(self, block: Block) -> np.ndarray:
        """Return the curvature of every row of a block."""
        assert block.state is not None
        h = self.loss.curvature(block.weight, block.state)
        curvature: np.ndarray = h.sum(axis=0, dtype=np.float64)
        return curvature

    def _in_all_weights(
        self, columns: np.ndarray, weight: np.ndarray, state: np.ndarray
    ) -> np.ndarray:
        """Return the Hessian of some rows in all weights, in the type of the columns."""
        n, k = columns.shape[1], self.n_outputs
        out = np.zeros((n, k, n, k), dtype=columns.dtype)
        for c in range(k):
            unit = np.zeros_like(state)
            unit[c] = 1.0
            bend = self.loss.curve(weight, state, unit).astype(columns.dtype)
            for other in range(c, k):
                gram = (columns.T * bend[other]) @ columns
                out[:, other, :, c] = gram
                out[:, c, :, other] = gram
        return out.reshape(n * k, n * k)

    def masses(self) -> list[Mass]:
        """Return the curvature of the rows from which each diagonal block is made."""
        written = [column_mass(self._bends())] if self.design.n_written else []
        if not self.design.locals:
            return written
        mass = np.hstack(self._curvatures()).sum(axis=0, dtype=np.float64)
        inside = [mass[local.rows] for local in self.design.locals]
        return [*written, *(Mass(len(m), m.sum()) for m in inside)]

    def diagonal(self, among: Sequence[Among] | None) -> list[np.ndarray]:
        """Return one block for all columns that are written down, and one for every local atom."""
        places, n_written = list(among) if among is not None else [], self.design.n_written
        written = [self._of_written(places[0] if places else None)] if n_written else []
        if not self.design.locals:
            return written
        own = places[len(written) :] or [place for mass in self.masses()[len(written) :]
                                         for place in placed([mass])]  # fmt: skip
        return [*written, *self._of_locals(own)]

    def _curvatures(self) -> list[np.ndarray]:
        """Return the curvature of every block, (n_outputs, rows) each."""

        def one(block: Block) -> np.ndarray:
            assert block.state is not None
            return self.loss.curvature(block.weight, block.state)

        return list(self.run(one, self.blocks))

    def _bends(self) -> list[np.ndarray]:
        """Return the curvature of every block. Two classes have the same one, so give the first."""
        curvatures = self._curvatures()
        return [h[:1] for h in curvatures] if self._alike else curvatures

    @property
    def _alike(self) -> bool:
        return self.n_outputs == 2 and self.loss.shift_invariant

    def _of_written(self, among: Among | None) -> np.ndarray:
        """Return Σ_i h_ic x_i x_iᵀ of the columns that are written down, for every output.

        The sums serve as a preconditioner, and to rank atoms by the cost of dropping them. With
        many rows they are estimates.
        """
        n_written = self.design.n_written
        first = slice(0, n_written)
        takes = [partial(block.columns.take, columns=first) for block in self.blocks]
        few = self.limits.preconditioner_rows * max(n_written, 64)
        grams = column_grams(takes, self._bends(), few, self.run, among)
        return np.repeat(grams, 2, axis=0) if self._alike else grams

    def _of_locals(self, places: Sequence[Among]) -> list[np.ndarray]:
        curvature = np.hstack(self._curvatures())
        mass = curvature.sum(axis=0, dtype=np.float64)
        few = self.limits.local_rows * len(self.design.locals[0].change)

        def one(item: tuple[LocalColumns, Among]) -> np.ndarray:
            return local_grams(*item, curvature, mass, few)

        return list(self.run(one, zip(self.design.locals, places, strict=True)))


@lru_cache(maxsize=8)  # nearly all blocks have the same length
def _multiples(n_rows: int) -> np.ndarray:
    """Return the multiples of the golden ratio for the first rows, modulo 2³²."""
    return np.arange(n_rows, dtype=np.uint32) * np.uint32(GOLDEN)
