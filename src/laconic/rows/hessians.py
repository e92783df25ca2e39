"""Hessians of the loss in the weights of a shard's columns, at the last evaluated weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from laconic.losses import Loss
from laconic.losses.bounds import most_curvature
from laconic.numeric.threads import row_blocks
from laconic.pools.local_columns import LocalColumns
from laconic.rows.blocks import Block
from laconic.rows.chances import chances, numbers, rows_below
from laconic.rows.curvature import (
    Among,
    Bend,
    Map,
    Mass,
    column_grams,
    column_mass,
    local_grams,
    placed,
)
from laconic.rows.design import Design
from laconic.rows.limits import Limits
from laconic.rows.stores import Which
from laconic.rows.sums import running_total, total

TOGETHER = 4096
"""Rows of a sample that are multiplied together, and rows that are looked at together."""
ROUNDING = 1e-6
"""Relative rounding error of a row's curvature in single precision, and more."""


class Hessians(NamedTuple):
    """The Hessians of a shard. See `Shard.hessian`, `Shard.masses` and `Shard.hessian_blocks`."""

    loss: Loss
    n_outputs: int
    blocks: list[Block]
    design: Design
    limits: Limits
    run: Map
    compiled: bool
    """Whether the loss is compiled."""

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
        """Return the Hessian in all weights, and the curvature of all rows, from some of the rows.

        A row of curvature h is taken if its chance (`laconic.rows.chances`) is below h / step. It
        then counts step / h times, and at least once. So the rows that are taken do not depend on
        how the rows are cut into shards. The first row has the number ``first``. No row has more
        curvature than the loss allows, so only rows of low chance are looked at.
        """
        held = slice(0, self.design.n_written)
        firsts = first + np.cumsum([0, *(len(block.weight) for block in self.blocks)])[:-1]

        def one(item: tuple[Block, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
            block, start = item
            assert block.state is not None
            at, mass = self._taken(block, step, start)
            weight = block.weight[at] * np.maximum(step / mass, 1.0)
            sums = float(np.maximum(mass, step).sum())
            return block.columns.take(at, held), weight, block.state[:, at], sums

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
        """Return the sum of the curvature of all rows."""

        def one(block: Block) -> float:
            assert block.state is not None
            parts = row_blocks(len(block.weight), TOGETHER)  # because each needs little memory
            bends = (self.loss.curvature(block.weight[s], block.state[:, s]) for s in parts)
            return sum(float(h.sum(dtype=np.float64)) for h in bends)

        return sum(self.run(one, self.blocks))

    def _taken(self, block: Block, step: float, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of a block that are taken, and the curvature of each."""
        assert block.state is not None
        most = most_curvature(self.loss, block.state) * float(block.weight.max(initial=0.0))
        n_rows, part = len(block.weight), most / step * (1.0 + ROUNDING)
        if part < 1.0:
            low = rows_below(part, n_rows, first)
            at, mass = self._taken_of(block, low, low, step, first)
            return low[at], mass
        found = []
        for s in row_blocks(n_rows, TOGETHER):  # one by one, because each needs little memory
            at, mass = self._taken_of(block, s, numbers(s.stop - s.start), step, first + s.start)
            found.append((at + s.start, mass))
        rows, masses = zip(*found, strict=True)
        return np.concatenate(rows), np.concatenate(masses)

    def _taken_of(
        self, block: Block, some: Which, at: np.ndarray, step: float, first: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return which of some rows are taken, by their place among them, and their curvature.

        The rows have the places ``at`` after the row ``first``.
        """
        assert block.state is not None
        bends = self.loss.curvature(block.weight[some], block.state[:, some])
        mass = bends.sum(axis=0, dtype=np.float64)
        taken = np.flatnonzero(chances(at, first) * step < mass)
        return taken, mass[taken]

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
        return [bend.rows for bend in self.run(self._bend, self.blocks)]

    def _bends(self) -> list[Bend]:
        """Return the curvature of every block. Two classes have the same one, so give the first."""
        bends = list(self.run(self._bend, self.blocks))
        return [bend.first(1) for bend in bends] if self._alike else bends

    def _bend(self, block: Block) -> Bend:
        assert block.state is not None
        return Bend.of(self.loss.curvature(block.weight, block.state))

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
        grams = column_grams(takes, self._bends(), few, self.run, among, self.compiled)
        return np.repeat(grams, 2, axis=0) if self._alike else grams

    def _of_locals(self, places: Sequence[Among]) -> list[np.ndarray]:
        curvature = np.hstack(self._curvatures())
        mass = curvature.sum(axis=0, dtype=np.float64)
        few = self.limits.local_rows * len(self.design.locals[0].change)

        def one(item: tuple[LocalColumns, Among]) -> np.ndarray:
            return local_grams(*item, curvature, mass, few)

        return list(self.run(one, zip(self.design.locals, places, strict=True)))
