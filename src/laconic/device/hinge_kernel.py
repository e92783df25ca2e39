"""The Triton kernel of `laconic.device.hinge_sums`. It is imported at first use."""

from __future__ import annotations

import triton
import triton.language as tl

from laconic.device.split import STEP

# What a second half counts less than a first one.
HALF = tl.constexpr(2.0**STEP)


@triton.jit(do_not_specialize=["first_chunk", "n_knots"])
def sum_hinges(  # type: ignore[no-untyped-def]
    heights,
    knots,
    scales,
    lines,
    sums,
    n_lines,
    n_knots,
    n_rows,
    first_chunk,
    WIDTH: tl.constexpr,
    LINES: tl.constexpr,
    ROWS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Write the sums of hinges times halves over one chunk of rows, for some knots.

    ``heights`` is (directions, n_rows), ``knots`` is (directions, n_knots), and ``scales`` is
    (directions,), all in float32. The first knot of a direction is 0, and stands for the
    projections as they are. ``lines`` is (WIDTH, n_rows) in float16. ``sums`` is (chunks,
    directions x knots, WIDTH). ``n_rows`` is a multiple of ROWS. Programs of one chunk are
    neighbours, so that its halves stay in cache.
    """
    chunk = tl.program_id(1).to(tl.int64)
    start = (first_chunk + chunk) * CHUNK
    stop = tl.minimum(start + CHUNK, n_rows)
    own = tl.program_id(0) * LINES + tl.arange(0, LINES)
    # The last program reads its last knot again instead of knots that do not exist.
    read = tl.minimum(own, n_lines - 1)
    direction = read // n_knots
    knot = tl.load(knots + read)[:, None]
    least = tl.where(read % n_knots == 0, float("-inf"), 0.0)[:, None]
    scale = tl.load(scales + direction)[:, None]
    rows = tl.arange(0, ROWS)
    columns = tl.arange(0, WIDTH)
    at = heights + direction.to(tl.int64)[:, None] * n_rows + (start + rows)[None, :]
    beside = lines + columns[None, :].to(tl.int64) * n_rows + (start + rows)[:, None]
    first = tl.zeros((LINES, WIDTH), dtype=tl.float32)
    second = tl.zeros((LINES, WIDTH), dtype=tl.float32)
    for _ in range(start, stop, ROWS):
        # Knots of one direction read the same projections, so these are kept in the nearest cache.
        value = tl.maximum(tl.load(at, cache_modifier=".ca") - knot, least) * scale
        high = value.to(tl.float16)
        low = ((value - high.to(tl.float32)) * HALF).to(tl.float16)
        half = tl.load(beside)
        first = tl.dot(high, half, first)
        second = tl.dot(low, half, second)
        at += ROWS
        beside += ROWS
    out = sums + (chunk * n_lines + own.to(tl.int64))[:, None] * WIDTH + columns[None, :]
    tl.store(out, first + second * (1.0 / HALF), mask=(own < n_lines)[:, None])
