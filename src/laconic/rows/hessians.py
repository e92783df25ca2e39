"""Hessians of the loss in the weights of a shard's columns, at the last evaluated weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from laconic.losses import Loss
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
from laconic.rows.sums import total


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
