"""Compiled kernels for XᵀR with a skinny R, where BLAS spends its time packing X.

Each kernel walks X once, in tiles whose sums stay in vector registers: a tile reads a stretch of
rows, multiplies it with up to `Registers.sums` columns of R, and adds its sums to float64 ones.
The tiles are written as LLVM vector instructions, because a compiler left to itself moves the sums
through the cache at every row. The loops around them are Numba's.

Nothing here is imported before it is used (Numba takes a while to load), and a kernel is compiled
once per machine for each (dtype, order, classes at a time).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# Rows a C-ordered tile sums in the data's dtype: few enough that the pages they lie on stay in the
# first-level TLB (64 entries or more), enough that adding to float64 costs little.
PANEL_ROWS = 64
# How far ahead along a row to prefetch: rows are pages apart, so the hardware does not. Less comes
# too late, more gains nothing. The hint asks for level 2, so that level 1 keeps the panel of R.
AHEAD_BYTES = 1024
# Rows an F-ordered tile sums in the data's dtype: the panel of R for 13 classes must stay in level 1.
import os

PANEL_STEPS = int(os.environ.get("PS", 32))
LEAD = int(os.environ.get("LEAD", 16))

_INT8, _INT32, _INT64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_DOUBLE = ir.DoubleType()


class Registers(NamedTuple):
    """Vector registers of this machine."""

    width: int
    """Bytes in one register."""
    sums: int
    """How many may hold running sums; the others hold what is being multiplied."""


@lru_cache(maxsize=1)
def registers() -> Registers:
    """Vector registers of this machine: AVX-512, AVX2, or 16 bytes elsewhere."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return Registers(64, 28)
    if features.get("avx2"):
        return Registers(32, 12)
    return Registers(16, 28 if llvm.get_default_triple().startswith(("aarch64", "arm64")) else 12)


def _load(builder: Any, address: Any, kind: Any, align: int) -> Any:
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=align)


def _multiply_add(builder: Any, x: Any, y: Any, total: Any) -> Any:
    # "contract" lets LLVM fuse the two wherever the machine can, and nothing else.
    product = builder.fmul(x, y, flags=("contract",))
    return builder.fadd(product, total, flags=("contract",))


def _prefetch(builder: Any, address: Any) -> None:
    pointer = _INT8.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, _INT32, _INT32, _INT32])
    function = builder.module.declare_intrinsic("llvm.prefetch", (pointer,), kind)
    read, level_2, data = _INT32(0), _INT32(2), _INT32(1)
    builder.call(function, [builder.inttoptr(address, pointer), read, level_2, data])


def _splat(builder: Any, value: Any, vector: Any) -> Any:
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, _INT32(0))
    mask = ir.Constant(ir.VectorType(_INT32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, undefined, mask)


def _transpose_sum(builder: Any, vectors: list[Any]) -> Any:
    """One vector whose lane q is the sum over the lanes of ``vectors[q]``."""
    lanes = vectors[0].type.count
    segment = lanes
    while len(vectors) > 1:
        half = segment // 2
        starts = range(0, 2 * lanes, segment)
        low = [start + lane for start in starts for lane in range(half)]
        masks = [
            ir.Constant(ir.VectorType(_INT32, lanes), [lane + shift for lane in low])
            for shift in (0, half)
        ]
        vectors = [
            builder.fadd(*[builder.shuffle_vector(a, b, mask) for mask in masks])
            for a, b in zip(vectors[::2], vectors[1::2], strict=True)
        ]
        segment = half
    return vectors[0]


def _add_to(builder: Any, address: Any, vectors: list[Any]) -> None:
    """Add vectors to consecutive float64 ones in memory."""
    for place, vector in enumerate(vectors):
        wide = ir.VectorType(_DOUBLE, vector.type.count)
        if vector.type.element != _DOUBLE:
            vector = builder.fpext(vector, wide)
        offset = _INT64(place * 8 * vector.type.count)
        pointer = builder.inttoptr(builder.add(address, offset), wide.as_pointer())
        total = builder.fadd(builder.load(pointer, align=8), vector)
        builder.store(total, pointer, align=8)


def _loop(
    builder: Any,
    count: Any,
    walks: list[tuple[Any, Any]],
    vector: Any,
    n_sums: int,
    body: Callable[[list[Any], list[Any]], list[Any]],
) -> list[Any]:
    """Run ``body(addresses, sums) -> sums`` ``count`` (at least one) times; return the sums.

    ``walks`` has the first address and the step of every address; the sums begin at zero.
    """
    before, loop = builder.block, builder.append_basic_block("tile")
    builder.branch(loop)
    builder.position_at_end(loop)
    left = builder.phi(_INT64)
    addresses = [builder.phi(_INT64) for _ in walks]
    sums = [builder.phi(vector) for _ in range(n_sums)]
    after = body(addresses, sums)
    next_left = builder.sub(left, _INT64(1))
    left.add_incoming(count, before)
    left.add_incoming(next_left, loop)
    for address, (start, step) in zip(addresses, walks, strict=True):
        address.add_incoming(start, before)
        address.add_incoming(builder.add(address, step), loop)
    for total, new in zip(sums, after, strict=True):
        total.add_incoming(ir.Constant(vector, None), before)
        total.add_incoming(new, loop)
    done = builder.append_basic_block("done")
    builder.cbranch(builder.icmp_signed(">", next_left, _INT64(0)), loop, done)
    builder.position_at_end(done)
    return after


def _vector(item: int) -> Any:
    return ir.VectorType(_DOUBLE if item == 8 else ir.FloatType(), registers().width // item)


@intrinsic(prefer_literal=True)
def _row_tile(context, x, x_step, r, r_step, rows, out, ahead, item, k):  # type: ignore[no-untyped-def]
    """Sums over rows of one register of columns times ``k`` classes; all but the last two are addresses, steps in bytes."""
    size, classes = item.literal_value, k.literal_value
    signature = types.void(*[types.intp] * 7, item, k)

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        x, x_step, r, r_step, rows, out, ahead = arguments[:7]
        vector = _vector(size)

        def body(addresses: list[Any], sums: list[Any]) -> list[Any]:
            column, weight, later = addresses
            _prefetch(builder, later)
            values = _load(builder, column, vector, size)
            new = []
            for c, total in enumerate(sums):
                scalar = _load(builder, builder.add(weight, _INT64(c * size)), vector.element, size)
                new.append(_multiply_add(builder, values, _splat(builder, scalar, vector), total))
            return new

        walks = [(x, x_step), (r, r_step), (ahead, x_step)]
        _add_to(builder, out, _loop(builder, rows, walks, vector, classes, body))
        return context.get_dummy_value()

    return signature, generate


@intrinsic(prefer_literal=True)
def _column_tile(context, x, x_step, r, steps, out, ahead, item, columns, k):  # type: ignore[no-untyped-def]
    """Sums over ``steps`` registers of rows of ``columns`` columns times ``k`` classes."""
    size, width, classes = item.literal_value, columns.literal_value, k.literal_value
    signature = types.void(*[types.intp] * 6, item, columns, k)

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        x, x_step, r, steps, out, ahead = arguments[:6]
        vector = _vector(size)
        step = registers().width

        def body(addresses: list[Any], sums: list[Any]) -> list[Any]:
            weight, heads, later = addresses[0], addresses[1 : 1 + width], addresses[1 + width :]
            for address in later:
                if not os.environ.get("NOPF"):
                    _prefetch(builder, address)
            values = [_load(builder, head, vector, size) for head in heads]
            new = []
            for c in range(classes):
                factor = _load(builder, builder.add(weight, _INT64(c * step)), vector, size)
                for j in range(width):
                    new.append(_multiply_add(builder, values[j], factor, sums[c * width + j]))
            return new

        walks = [(r, _INT64(classes * step))]
        for start in (x, ahead):
            for j in range(width):
                offset = builder.mul(x_step, _INT64(j))
                walks.append((builder.add(start, offset), _INT64(step)))
        sums = _loop(builder, steps, walks, vector, width * classes, body)
        sums += [ir.Constant(vector, None)] * (-len(sums) % vector.count)
        groups = [sums[q : q + vector.count] for q in range(0, len(sums), vector.count)]
        _add_to(builder, out, [_transpose_sum(builder, group) for group in groups])
        return context.get_dummy_value()

    return signature, generate


def _signature(dtype: str, layout: str) -> Any:
    # Read-only and of any strides: one compilation serves slices and memory maps too.
    scalar = types.float32 if dtype == "float32" else types.float64
    source = types.Array(scalar, 2, layout, readonly=True)
    return types.void(source, source, types.Array(types.float64, 3, "C"))


@lru_cache(maxsize=None)
def row_kernel(dtype: str, k: int) -> Callable[[np.ndarray, np.ndarray, np.ndarray], None]:
    """Kernel for rows that lie contiguous in memory, ``k`` classes at a time.

    Returns
    -------
    kernel : callable
        ``kernel(X, R, out)`` adds the sums of tile t and pass p to ``out[t, p]``, class by class.
        Tiles are one register wide; the last tile and the last pass end at the last column and
        class, and so may overlap the ones before.
    """
    item = np.dtype(dtype).itemsize
    width = registers().width
    lanes = width // item
    lead = AHEAD_BYTES // width

    @njit(_signature(dtype, "A"), nogil=True, cache=True)
    def kernel(X, R, out):  # type: ignore[no-untyped-def]
        rows, columns = X.shape
        tiles, passes = out.shape[:2]
        x_step, r_step = X.strides[0], R.strides[0]
        for i in range(0, rows, PANEL_ROWS):
            panel = X.ctypes.data + i * x_step
            n = min(PANEL_ROWS, rows - i)
            for p in range(passes):
                r = R.ctypes.data + i * r_step + min(p * k, R.shape[1] - k) * item
                for t in range(tiles):
                    x = panel + min(t * lanes, columns - lanes) * item
                    sums = out.ctypes.data + (t * passes + p) * k * lanes * 8
                    down, along = divmod(t + lead, tiles)
                    ahead = panel + down * PANEL_ROWS * x_step + along * width
                    _row_tile(x, x_step, r, r_step, n, sums, ahead, item, k)

    return kernel


@lru_cache(maxsize=None)
def column_kernel(
    dtype: str, columns: int, k: int
) -> Callable[[np.ndarray, np.ndarray, np.ndarray], None]:
    """Kernel for columns that lie contiguous in memory, ``columns`` by ``k`` classes at a time.

    Returns
    -------
    kernel : callable
        ``kernel(X, R, out)`` adds the sums of tile t and pass p to ``out[t, p]``, the columns of a
        class side by side. The number of rows must be a multiple of `lanes`; tiles and passes
        overlap at the end as those of `row_kernel` do.
    """
    item = np.dtype(dtype).itemsize
    width = registers().width
    lanes = width // item
    panel = PANEL_STEPS * lanes

    @njit(_signature(dtype, "A"), nogil=True, cache=True)
    def kernel(X, R, out):  # type: ignore[no-untyped-def]
        rows, n_columns = X.shape
        tiles, passes, slots = out.shape
        x_step = X.strides[1]
        scratch = np.empty(passes * panel * k + lanes, X.dtype)
        shift = (-scratch.ctypes.data % width) // item
        packed = scratch[shift : shift + passes * panel * k].reshape(
            (passes, PANEL_STEPS, k, lanes)
        )
        for i in range(0, rows, panel):
            steps = min(panel, rows - i) // lanes
            for p in range(passes):
                first = min(p * k, R.shape[1] - k)
                for s in range(steps):
                    for lane in range(lanes):
                        for c in range(k):
                            packed[p, s, c, lane] = R[i + s * lanes + lane, first + c]
            for t in range(tiles):
                x = X.ctypes.data + i * item + min(t * columns, n_columns - columns) * x_step
                down, along = divmod(t + LEAD, tiles)
                ahead = X.ctypes.data + (i + down * panel) * item + along * columns * x_step
                for p in range(passes):
                    r = packed.ctypes.data + p * panel * k * item
                    sums = out.ctypes.data + (t * passes + p) * slots * 8
                    _column_tile(x, x_step, r, steps, sums, ahead, item, columns, k)

    return kernel
