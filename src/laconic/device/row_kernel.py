"""The Triton kernel of `laconic.device.row_passes`. It is imported at first use."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def times_codes(left, right, total, PLAIN: tl.constexpr):  # type: ignore[no-untyped-def]
    """Add the product of two matrices of short floats to ``total``.

    With PLAIN, it is computed in single precision, as the interpreter cannot multiply short floats.
    """
    if PLAIN:
        out = tl.dot(left.to(tl.float32), right.to(tl.float32), total)
    else:
        out = tl.dot(left, right, total)
    return out


@triton.jit
def first_bits(number):  # type: ignore[no-untyped-def]
    """Return the first 8 bits of single precision, and what they leave."""
    high = number.to(tl.bfloat16)
    return high, number - high.to(tl.float32)


@triton.jit
def pass_over_rows(  # type: ignore[no-untyped-def]
    room,
    weights,
    state,
    row_weight,
    out,
    n,
    n_rows,
    stride,
    n_outputs,
    WIDTH: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    CODES: tl.constexpr,
    MOVES: tl.constexpr,
    BENDS: tl.constexpr,
    CENTRES: tl.constexpr,
    SUMS: tl.constexpr,
    PLAIN: tl.constexpr,
):
    """Read the columns of some rows once from memory, and write what is asked for to ``out``.

    ``room`` is (columns, stride), and its rows beyond ``n_rows`` are zero. CODES says that it holds
    0 and 1, which are exact in few bits, and numbers in single precision otherwise. With MOVES, the
    values of the rows are weights (n_outputs, n) times the columns. Otherwise they are ``state``,
    (n_outputs, n_rows). With BENDS, they are then multiplied by ``state``, with CENTRES after
    their mean under it was subtracted, and by ``row_weight``. With SUMS, ``out`` is
    (tiles, n + 1, n_outputs): the sums over the rows of a tile of every column times the values,
    and of the values. Otherwise it is (n_outputs, n_rows), the values.
    """
    tile = tl.program_id(0).to(tl.int64)
    rows = tile * ROWS + tl.arange(0, ROWS)
    outputs = tl.arange(0, WIDTH)
    inside = rows < n_rows
    known = (outputs < n_outputs)[:, None] & inside[None, :]
    places = outputs[:, None].to(tl.int64) * n_rows + rows[None, :]
    if MOVES:
        values = tl.zeros((WIDTH, ROWS), dtype=tl.float32)
        for first in range(0, n, COLUMNS):
            columns = first + tl.arange(0, COLUMNS)
            real = columns < n
            at = room + columns[:, None].to(tl.int64) * stride + rows[None, :]
            x = tl.load(at, mask=real[:, None], other=0)
            v = tl.load(
                weights + outputs[:, None] * n + columns[None, :],
                mask=(outputs < n_outputs)[:, None] & real[None, :],
                other=0.0,
            )
            if CODES:
                code = x.to(tl.float32).to(tl.bfloat16)
                high, rest = first_bits(v)
                middle, rest = first_bits(rest)
                values = times_codes(high, code, values, PLAIN)
                values = times_codes(middle, code, values, PLAIN)
                values = times_codes(rest.to(tl.bfloat16), code, values, PLAIN)
            else:
                values = tl.dot(v, x, values, input_precision="tf32x3")
        if CODES:  # line n has what the centring of the columns takes away
            shift = tl.load(weights + n_outputs * n + outputs, mask=outputs < n_outputs, other=0.0)
            values -= shift[:, None]
    else:
        values = tl.load(state + places, mask=known, other=0.0)
    if BENDS:
        bend = tl.load(state + places, mask=known, other=0.0)
        if CENTRES:
            values -= tl.sum(bend * values, axis=0)[None, :]
        weight = tl.load(row_weight + rows, mask=inside, other=0.0)
        values = bend * values * weight[None, :]
    if SUMS:
        turned = tl.trans(values)
        if CODES:
            high, rest = first_bits(turned)
            middle, rest = first_bits(rest)
            low = rest.to(tl.bfloat16)
        base = out + tile * (n + 1) * n_outputs + outputs
        for first in range(0, n, COLUMNS):
            columns = first + tl.arange(0, COLUMNS)
            real = columns < n
            at = room + columns[:, None].to(tl.int64) * stride + rows[None, :]
            x = tl.load(at, mask=real[:, None], other=0)
            if CODES:
                code = x.to(tl.float32).to(tl.bfloat16)
                sums = tl.zeros((COLUMNS, WIDTH), dtype=tl.float32)
                sums = times_codes(code, high, sums, PLAIN)
                sums = times_codes(code, middle, sums, PLAIN)
                sums = times_codes(code, low, sums, PLAIN)
            else:
                sums = tl.dot(x, turned, input_precision="tf32x3")
            tl.store(
                base[None, :] + columns[:, None] * n_outputs,
                sums,
                mask=real[:, None] & (outputs < n_outputs)[None, :],
            )
        tl.store(base + n * n_outputs, tl.sum(values, axis=1), mask=outputs < n_outputs)
    else:
        tl.store(out + places, values, mask=known)
