"""The Triton kernel of `laconic.device.code_sums`. It is imported at first use."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["first_chunk"])
def sum_codes(  # type: ignore[no-untyped-def]
    codes,
    lines,
    sums,
    first_chunk,
    n_rows,
    WIDTH: tl.constexpr,
    HIGH: tl.constexpr,
    LOW: tl.constexpr,
    ROWS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Write the sums of halves by code over one chunk of rows, for one feature.

    ``codes`` is (features, n_rows), ``lines`` is (n_rows, WIDTH), and ``sums`` is (chunks,
    features, HIGH x LOW, WIDTH). ``n_rows`` is a multiple of ROWS. Programs of one chunk are
    neighbours, so that its halves stay in cache.
    """
    feature = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1).to(tl.int64)
    start = (first_chunk + chunk) * CHUNK
    stop = tl.minimum(start + CHUNK, n_rows)
    rows = tl.arange(0, ROWS)
    digits = tl.arange(0, HIGH)
    columns = tl.arange(0, LOW * WIDTH)
    at = codes + feature * n_rows + start + rows
    beside = lines + (start + rows)[:, None] * WIDTH + (columns % WIDTH)[None, :]
    total = tl.zeros((HIGH, LOW * WIDTH), dtype=tl.float32)
    for _ in range(start, stop, ROWS):
        code = tl.load(at).to(tl.int32)
        # The same few lines are read again and again, so they are kept in the nearest cache.
        half = tl.load(beside, cache_modifier=".ca")
        marks = ((code // LOW)[None, :] == digits[:, None]).to(tl.float16)
        own = tl.where((code % LOW)[:, None] == (columns // WIDTH)[None, :], half, 0.0)
        total = tl.dot(marks, own, total)
        at += ROWS
        beside += ROWS * WIDTH
    block = chunk * tl.num_programs(0) + feature
    out = sums + (block * HIGH + digits)[:, None] * (LOW * WIDTH) + columns[None, :]
    tl.store(out, total)
