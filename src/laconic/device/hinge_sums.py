"""Sums of hinges times a residual: one pass over the projections of a pool of hinges.

A program of the kernel makes max(0, u − b) for some knots b and some rows. It splits the values
into two halves, which tensor cores multiply by those of the residual, exactly. There are no atomic
additions, so the same residual gives the same bits. Sums over a chunk of rows are formed in
float32, and added in float64 in the order of the chunks.

With n rows and J directions of T knots, a pass reads 4·n·J bytes of projections, and n·J·T values
are made on the way. The twin in plain torch writes these values down, a few directions and rows at
a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from laconic.device.split import MOST, TOP, halves, parts_of, powers
from laconic.device.triton_or_twin import has_triton, launched_at, padded, power_of_two
from laconic.device.value_sums import MOST_LINES, Tile
from laconic.numeric.threads import row_blocks

# Rows are padded to a multiple of this number, so that a program has no incomplete read.
ALIGNED = 256
# Rows that the twin multiplies together, and most values that it holds at once.
TWIN_ROWS, TWIN_VALUES = 4096, 1 << 24
# Bytes of sums over chunks that wait to be added in float64.
WAITING = 1 << 29
# The atoms of a program are knots here.
TILE = Tile(64, 64, 8192, 4, 3)
# Other tiles, which a benchmark compares with it.
OTHERS = (Tile(64, 64, 8192, 4, 2), Tile(64, 32, 8192, 4, 3), Tile(128, 64, 8192, 8, 3))


class Projections(NamedTuple):
    """Projections on J directions, and T knots of each."""

    heights: Tensor
    """(J, padded rows): the projections u, in float32 or float64. Rows are padded to a multiple of
    `ALIGNED` with zeros."""
    knots: Tensor
    """(J, T): the knots b, in the same type. They lie among the projections."""
    reach: Tensor
    """(J,): the largest absolute value of the projections."""

    def some(self, directions: slice) -> Projections:
        """Return those of some directions."""
        return Projections(*(part[directions] for part in self))


def hinge_sums(given: Projections, residual: Tensor, tile: Tile | None = None) -> Tensor:
    """Return the sums of all directions and their hinges, (J, 1 + T, n_outputs) in float64.

    They are Σ_i u_ji R_ci, and then Σ_i max(0, u_ji − b_jt) R_ci for every knot t.

    Parameters
    ----------
    given : Projections
    residual : Tensor of shape (n_outputs, n_rows)
        Sums within a block of rows are formed in its type.
    tile : Tile, optional
        The tile to use, if the kernel runs.
    """
    heights = given.heights
    single = heights.dtype == residual.dtype == torch.float32
    if not (single and has_triton(heights) and len(heights)):
        return twin(given, residual)
    few = MOST_LINES // parts_of(residual)
    parts = [_compiled(given, some, tile or TILE) for some in residual.split(few)]
    return torch.cat(parts, dim=2)


def twin(given: Projections, residual: Tensor) -> Tensor:
    """Compute `hinge_sums` in plain torch."""
    n_directions, n_knots = given.knots.shape
    shape = n_directions, 1 + n_knots, len(residual)
    total = torch.zeros(shape, dtype=torch.float64, device=residual.device)
    for some, rows, u, above in _above(given, residual):
        total[some, 0] += u @ residual[:, rows].T
        total[some, 1:] += above.clamp_(min=0.0) @ residual[:, rows].T
    return total


def square_sums(given: Projections, weight: Tensor) -> Tensor:
    """Return Σ_i weight_i max(0, ±(u_ji − b_jt))² of both sides, (J, 2, T) in float64."""
    n_directions, n_knots = given.knots.shape
    shape = n_directions, 2, n_knots
    total = torch.zeros(shape, dtype=torch.float64, device=weight.device)
    for some, rows, _, above in _above(given, weight[None]):
        total[some, 0] += above.clamp(min=0.0).square_() @ weight[rows]
        total[some, 1] += above.clamp_(max=0.0).square_() @ weight[rows]
    return total


def _above(given: Projections, like: Tensor) -> Iterator[tuple[slice, slice, Tensor, Tensor]]:
    """Yield u (directions, rows) and u − b (directions, knots, rows) of some directions and rows.

    They are in the type of ``like``.
    """
    n_directions, n_knots = given.knots.shape
    knots = given.knots[:, :, None].to(like.dtype)
    together = max(1, TWIN_VALUES // (TWIN_ROWS * n_knots))
    for rows in row_blocks(like.shape[1], TWIN_ROWS):
        for some in row_blocks(n_directions, together):
            u = given.heights[some, rows].to(like.dtype)
            yield some, rows, u, u[:, None] - knots[some]


def _compiled(given: Projections, residual: Tensor, tile: Tile) -> Tensor:
    from laconic.device.hinge_kernel import sum_hinges  # it imports Triton

    heights = given.heights
    knots = torch.cat([torch.zeros_like(given.knots[:, :1]), given.knots], dim=1)
    parts = parts_of(residual)
    width = power_of_two(parts * len(residual), 16)
    n_rows, n_lines = heights.shape[1], knots.numel()
    split = halves(residual, parts, width, n_rows)
    # Values are scaled as those of a residual are. The largest is at most twice the reach.
    units = torch.clamp(powers(2.0 * given.reach[:, None]) * 2.0**-TOP, min=2.0**-MOST)
    n_chunks = padded(n_rows, tile.chunk) // tile.chunk
    step = max(1, WAITING // (4 * n_lines * width))
    total = torch.zeros(n_lines, width, dtype=torch.float64, device=heights.device)
    for first in range(0, n_chunks, step):
        n = min(step, n_chunks - first)
        sums = torch.empty(n, n_lines, width, dtype=torch.float32, device=heights.device)
        with launched_at(heights):
            sum_hinges[padded(n_lines, tile.atoms) // tile.atoms, n](
                heights,
                knots,
                (1.0 / units).float(),
                split.lines,
                sums,
                n_lines,
                knots.shape[1],
                n_rows,
                first,
                WIDTH=width,
                LINES=tile.atoms,
                ROWS=tile.rows,
                CHUNK=tile.chunk,
                num_warps=tile.warps,
                num_stages=tile.stages,
            )
        total += sums.sum(dim=0, dtype=torch.float64)
    return split.whole(total.view(*knots.shape, width)) * units[:, None, None]
