"""The pool of hinges on a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from laconic.device.hinge_sums import ALIGNED, Projections, hinge_sums, square_sums
from laconic.device.pool import on_a_row
from laconic.device.surveys import ENTRIES, first_row, peaks_of_columns
from laconic.device.triton_or_twin import padded
from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.base import BoundPool
from laconic.pools.directions import HingeGrid
from laconic.pools.hinges import Hinges, HingeSurvey, sampled
from laconic.pools.parts import Place

# Most sums that are on the device at once: 512 MB in float64.
NUMBERS = 1 << 26


def bind(
    pool: Hinges, X: Tensor, weight: Tensor, threads: Threads, codes: Tensor | None = None
) -> DeviceHinges:
    """Find directions and knots from a sample of the rows, and project all rows. X is not kept."""
    return DeviceHinges(pool, X, weight, threads, codes)


class DeviceHinges:
    """`Hinges` over rows on a device, with one number for every row and direction.

    Let u be the projection of a row, and R its residual. A pass makes the sums of u R, and of
    max(0, u − b) R for all knots b of a direction. The hinges to the other side follow from them:

        Σ max(0, b − u) R = Σ max(0, u − b) R − Σ u R + b Σ R.

    A pass reads each projection once from memory, 4 bytes in float32. The host codes rows by the
    knots that they reach, and adds up codes. Here hinges are made and multiplied on the way, so
    there are no codes.
    """

    def __init__(
        self, pool: Hinges, X: Tensor, weight: Tensor, threads: Threads, codes: Tensor | None
    ) -> None:
        grid = _find_grid(pool, X, weight, threads, codes)
        facts: Any = on_a_row(pool, first_row(X), grid, threads)
        self.facts: BoundPool = facts
        self.dtype = facts.dtype
        self._where = facts.direction, facts.side, facts.place
        self._n_rows, device = len(X), X.device
        heights = _projected(grid, X)
        low, high = (end(heights[:, : len(X)], dim=1) for end in (torch.amin, torch.amax))
        knots = torch.as_tensor(facts.knots[:, :-1], dtype=X.dtype, device=device)
        self._given = Projections(heights, knots, torch.maximum(-low, high))
        self._n_knots = knots.shape[1]
        # Where each hinge is among all hinges of all directions, (directions, sides, knots).
        at = (2 * facts.direction + facts.side) * self._n_knots + facts.place
        self._at = torch.as_tensor(at, device=device)
        self._factors = torch.ones(facts.n_atoms, dtype=torch.float64, device=device)
        if pool.scale is not None:
            if pool.scale == "max":
                late = facts.reach(low.cpu().numpy(), high.cpu().numpy())[None]
            else:
                late = self._moments(weight).cpu().numpy()
            facts.settle([late])
            self._factors = torch.as_tensor(facts.factors, device=device)

    def _moments(self, weight: Tensor) -> Tensor:
        """Return the sum of the weights, and those of every column and of its squares."""
        sums = torch.cat([sums[:, 0] for _, sums in self.gradients(weight[None])])
        return torch.stack([weight.sum().expand_as(sums), sums, self.squares(weight)])

    def gradients(self, residual: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Yield the residual sums of every hinge, in blocks of directions."""
        whole = residual.sum(dim=1, dtype=torch.float64)
        for some, atoms in self._blocks(len(residual)):
            given = self._given.some(some)
            sums = hinge_sums(given, residual)
            line, above = sums[:, :1], sums[:, 1:]
            below = above - line + given.knots.double()[:, :, None] * whole
            own = self._of_hinges(torch.stack([above, below], dim=1), some, atoms)
            yield atoms.start, own * self._factors[atoms, None]

    def squares(self, weight: Tensor) -> Tensor:
        """Return the weighted squared norm of every hinge."""
        out = torch.empty_like(self._factors)
        for some, atoms in self._blocks(1):
            sums = square_sums(self._given.some(some), weight)
            out[atoms] = self._of_hinges(sums[..., None], some, atoms)[:, 0]
        return out * self._factors.square()

    def _blocks(self, n_outputs: int) -> Iterator[tuple[slice, slice]]:
        """Yield blocks of directions, and their hinges."""
        together = max(1, NUMBERS // (2 * self._n_knots * n_outputs))
        for some in row_blocks(len(self._given.knots), together) or [slice(0, 0)]:
            first, stop = np.searchsorted(self._where[0], [some.start, some.stop]).tolist()
            yield some, slice(first, stop)

    def _of_hinges(self, sums: Tensor, some: slice, atoms: slice) -> Tensor:
        """Return the sums of the hinges of some directions, from (directions, sides, knots, k)."""
        return sums.flatten(0, 2)[self._at[atoms] - 2 * self._n_knots * some.start]

    def columns(self, atoms: Sequence[int]) -> Tensor:
        """Return the scaled training columns."""
        heights, knots, _ = self._given
        out = heights.new_empty(len(atoms), self._n_rows)
        for column, atom in zip(out, atoms, strict=True):
            direction, side, place = (int(part[atom]) for part in self._where)
            above = heights[direction, : self._n_rows] - knots[direction, place]
            torch.clamp(-above if side else above, min=0.0, out=column)
            column *= self._factors[atom]
        return out


def _find_grid(
    pool: Hinges, X: Tensor, weight: Tensor, threads: Threads, codes: Tensor | None
) -> HingeGrid:
    """Find the directions and knots on the host, from a sample of the rows."""
    pool.check()
    at = sampled(tuple(X.shape), Place(0, len(X)))
    there = torch.from_numpy(at).to(X.device)
    rows, mass = X[there].cpu().numpy(), weight[there].cpu().numpy()
    labels = None if codes is None else codes[there].long().cpu().numpy()
    peaks = peaks_of_columns(X).cpu().numpy()
    return pool.merge([HingeSurvey(peaks, rows, mass, labels, None)], threads)


def _projected(grid: HingeGrid, X: Tensor) -> Tensor:
    """Return the standardised projections of all rows, (n_directions, padded rows)."""
    C = torch.as_tensor(grid.directions.toarray(), device=X.device)
    centre, unit = (torch.as_tensor(part, device=X.device) for part in (grid.centre, grid.unit))
    heights = X.new_zeros(len(C), padded(len(X), ALIGNED))
    for rows in row_blocks(len(X), max(1, ENTRIES // max(C.shape))):
        heights[:, rows] = ((X[rows].double() @ C.T - centre) * unit).T
    return heights
