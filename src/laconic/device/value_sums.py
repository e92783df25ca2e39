"""Sums of stored values times a residual: one pass over the atoms of a pool of patches.

Values are stored as (n_atoms, rows) in one, two or four bytes. A byte holds a whole number from 0
to 255, minus 128: tensor cores read signed bytes. A pass reads all values once. Sums over a chunk
of rows are formed in float32, or exactly if values are bytes. Chunks are added in float64 in their
order.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from laconic.device.split import Split, digits, halves, parts_of
from laconic.device.triton_or_twin import has_triton, launched_at, padded, power_of_two

# Rows are padded to a multiple of this number, so that every line is aligned in memory.
ALIGNED = 256
# Rows that the twin multiplies together, and most values that it converts to float32 together.
TWIN_ROWS, TWIN_VALUES = 8192, 1 << 27
# Most lines of pieces in one pass: more take too many registers.
MOST_LINES = 64
# Digits of a residual, if values are bytes.
DIGITS = 4
# What is added to a stored byte.
SHIFT = 128


class Tile(NamedTuple):
    """How one program of the kernel reads values. It changes sums by rounding at most."""

    atoms: int
    """Atoms of a program: lines of a tensor core, a multiple of 64."""
    rows: int
    """Rows that are read together."""
    chunk: int
    """Rows of a program. Their sums are formed in float32."""
    warps: int
    stages: int
    """Reads under way at a time."""


# Tiles by the bytes of a value, and others that a benchmark compares them with.
TILES = {1: Tile(128, 256, 16384, 8, 3), 2: Tile(128, 128, 8192, 8, 4)}
OTHERS = {
    1: (
        Tile(128, 128, 16384, 8, 4),
        Tile(256, 128, 16384, 8, 3),
        Tile(256, 128, 32768, 8, 4),
        Tile(256, 256, 32768, 8, 2),
    ),
    2: (Tile(128, 128, 32768, 8, 4), Tile(128, 128, 16384, 8, 4), Tile(128, 128, 4096, 8, 4)),
}


def shift_of(values: Tensor) -> int:
    """Return what is added to stored numbers: `SHIFT` if they are bytes."""
    return SHIFT if values.dtype == torch.int8 else 0


def value_sums(values: Tensor, residual: Tensor, tile: Tile | None = None) -> Tensor:
    """Return the sums of every atom's values times the residual, (n_atoms, n_outputs) in float64.

    Parameters
    ----------
    values : Tensor of shape (n_atoms, padded rows)
        int8, float16 or float32. Rows are padded with any numbers to a multiple of `ALIGNED`.
    residual : Tensor of shape (n_outputs, n_rows)
        In float32.
    tile : Tile, optional
        The tile to use, if the kernel runs.
    """
    if values.element_size() == 4 or not has_triton(values):
        return twin(values, residual)
    parts = DIGITS if values.dtype == torch.int8 else parts_of(residual)
    tile = tile or TILES[values.element_size()]
    some = [_compiled(values, r, parts, tile) for r in residual.split(MOST_LINES // parts)]
    return torch.cat(some, dim=1)


def twin(values: Tensor, residual: Tensor) -> Tensor:
    """Compute `value_sums` in plain torch."""
    n_atoms, n_rows = len(values), residual.shape[1]
    total = torch.zeros(n_atoms, len(residual), dtype=torch.float64, device=values.device)
    together = max(1, TWIN_VALUES // TWIN_ROWS)
    for first in range(0, n_atoms, together):
        atoms = slice(first, first + together)
        for start in range(0, n_rows, TWIN_ROWS):
            rows = slice(start, min(start + TWIN_ROWS, n_rows))
            held = values[atoms, rows].float().add_(shift_of(values))
            total[atoms] += held @ residual[:, rows].float().T
    return total


def _compiled(values: Tensor, residual: Tensor, parts: int, tile: Tile) -> Tensor:
    import triton.language as tl

    from laconic.device.value_kernel import sum_values  # it imports Triton

    bytes_ = values.dtype == torch.int8
    width = power_of_two(parts * len(residual), 16)
    n_atoms, n_rows = values.shape
    split: Split = (digits if bytes_ else halves)(residual, parts, width, n_rows)
    n_chunks = padded(n_rows, tile.chunk) // tile.chunk
    dtype = torch.int32 if bytes_ else torch.float32
    sums = torch.empty(n_chunks, n_atoms, width, dtype=dtype, device=values.device)
    grid = (padded(n_atoms, tile.atoms) // tile.atoms, n_chunks)
    with launched_at(values):
        sum_values[grid](
            values,
            split.lines,
            sums,
            n_atoms,
            n_rows,
            WIDTH=width,
            ATOMS=tile.atoms,
            ROWS=tile.rows,
            CHUNK=tile.chunk,
            SUM=tl.int32 if bytes_ else tl.float32,
            num_warps=tile.warps,
            num_stages=tile.stages,
        )
    total = split.whole(sums.sum(dim=0, dtype=torch.float64))
    if bytes_:
        total += SHIFT * split.whole(split.lines.sum(dim=1, dtype=torch.int64))
    return total
