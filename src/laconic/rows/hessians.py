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
    even_steps,
    local_grams,
    placed,
)
from laconic.rows.design import Design
from laconic.rows.limits import Limits
from laconic.rows.stores import Which
from laconic.rows.sums import running_total, total


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

    def of_some_rows(self, few: int) -> np.ndarray:
        """Return the Hessian in all weights, from about ``few`` of the rows.

        The weights are in the order of ``W.ravel()``. Rows are taken at even steps of accumulated
        curvature, so that each represents the same part of it. If there are at most twice as many
        rows, all are taken, and the sums are exact.
        """
        n, k = self.design.n_written, self.n_outputs
        masses = [h.sum(axis=0, dtype=np.float64) for h in self._curvatures()]
        rows, mass = sum(map(len, masses)), sum(float(m.sum()) for m in masses)
        everything = rows <= 2 * few or not mass > 0
        step = 1.0 if everything else mass / few
        before = np.cumsum([0.0, *(float(m.sum()) for m in masses)])[:-1].tolist()
        dtype = np.dtype(np.float64) if everything else self.design.dtype

        def one(item: tuple[Block, np.ndarray, float]) -> np.ndarray:
            block, own, start = item
            assert block.state is not None
            out = np.zeros((n, k, n, k))
            at: Which = slice(None)
            weight = block.weight
            if not everything:
                at = even_steps(own, start, step)
                if len(at) == 0:
                    return out
                weight = (weight[at] * (step / own[at])).astype(weight.dtype)
            X = block.columns.take(at, slice(0, n)).astype(dtype)
            state = np.ascontiguousarray(block.state[:, at])
            for c in range(k):
                unit = np.zeros_like(state)
                unit[c] = 1.0
                bend = self.loss.curve(weight, state, unit).astype(dtype)
                for other in range(c, k):
                    gram = (X.T * bend[other]) @ X
                    out[:, other, :, c] = gram
                    out[:, c, :, other] = gram
            return out

        parts = self.run(one, zip(self.blocks, masses, before, strict=True))
        return running_total(parts).reshape(n * k, n * k)

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
