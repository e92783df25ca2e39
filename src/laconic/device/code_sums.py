"""Sums of a residual by code: one pass over the features of a pool of stumps.

A code is written as a high and a low digit. Marks of the high digits, (digits, rows), times the
residual in the column of its low digit, (rows, digits x lines), is a product for tensor cores. It
has no atomic additions, so the same residual gives the same bits. Sums over a chunk of rows are
formed in float32, and added in float64 in the order of the chunks.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from laconic.device.fixed_point import sums_by_code, whole_numbers
from laconic.device.split import halves, parts_of
from laconic.device.triton_or_twin import has_triton, launched_at, padded, power_of_two

CODES = 256
# Rows are padded to a multiple of this number, so that a program has no incomplete read.
ALIGNED = 256
# Bytes of sums over chunks that wait to be added in float64.
WAITING = 1 << 29
# Most lines of halves in one pass: more take too many registers.
MOST_LINES = 32


class CodeTile(NamedTuple):
    """How one program of the kernel reads codes. It changes sums by rounding at most."""

    high: int
    """Number of high digits: lines of a tensor core. From 64 on, Hopper's own are used."""
    rows: int
    """Rows that are read together."""
    chunk: int
    """Rows of a program. Their sums are formed in float32."""
    warps: int
    stages: int
    """Reads under way at a time."""


TILE = CodeTile(64, 128, 8192, 4, 1)
# Other tiles, which a benchmark compares with it.
OTHERS = (CodeTile(64, 64, 8192, 4, 1), CodeTile(64, 128, 8192, 4, 3))


def code_sums(codes: Tensor, residual: Tensor, tile: CodeTile | None = None) -> Tensor:
    """Return the sums of the residual by code, (n_features, 256, n_outputs) in float64.

    Parameters
    ----------
    codes : Tensor of shape (n_features, padded rows), uint8
        Rows are padded to a multiple of `ALIGNED` with any codes.
    residual : Tensor of shape (n_outputs, n_rows)
        In float32 or float64.
    tile : CodeTile, optional
        The tile to use, if the kernel runs.
    """
    if not has_triton(codes):
        return twin(codes, residual)
    few = MOST_LINES // parts_of(residual)
    parts = [_compiled(codes, some, tile or TILE) for some in residual.split(few)]
    return torch.cat(parts, dim=2)


def twin(codes: Tensor, residual: Tensor) -> Tensor:
    """Compute `code_sums` in plain torch."""
    numbers, n_rows = whole_numbers(residual), residual.shape[1]
    sums = [sums_by_code(line[:n_rows], CODES, numbers) for line in codes]
    return torch.stack(sums).double() * numbers.units


def _compiled(codes: Tensor, residual: Tensor, tile: CodeTile) -> Tensor:
    from laconic.device.code_kernel import sum_codes  # it imports Triton

    parts = parts_of(residual)
    width = power_of_two(parts * len(residual), 2)
    low = max(CODES // tile.high, 16 // width)  # a tensor core has at least 16 columns
    n_features, n_rows = codes.shape
    split = halves(residual, parts, width, n_rows, together=True)
    n_chunks = padded(n_rows, tile.chunk) // tile.chunk
    each = n_features * tile.high * low * width
    step = max(1, WAITING // (4 * each))
    total = torch.zeros(each, dtype=torch.float64, device=codes.device)
    for first in range(0, n_chunks, step):
        n = min(step, n_chunks - first)
        sums = torch.empty(n, each, dtype=torch.float32, device=codes.device)
        with launched_at(codes):
            sum_codes[n_features, n](
                codes,
                split.lines,
                sums,
                first,
                n_rows,
                WIDTH=width,
                HIGH=tile.high,
                LOW=low,
                ROWS=tile.rows,
                CHUNK=tile.chunk,
                num_warps=tile.warps,
                num_stages=tile.stages,
            )
        total += sums.sum(dim=0, dtype=torch.float64)
    return split.whole(total.view(n_features, tile.high * low, width)[:, :CODES])
