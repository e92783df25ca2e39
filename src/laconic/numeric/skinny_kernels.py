"""Compiled kernels for XᵀR with a skinny R, where BLAS spends its time packing X.

A kernel reads X once, in tiles whose sums stay in vector registers. A tile takes a few columns of X
over a panel of rows, multiplies them with a few classes (columns of R) in the data's dtype, and
adds its sums to float64 sums. The tiles are written as LLVM vector instructions, because a compiler
on its own would move the sums through the cache at every row. Numba compiles the loops.

Import this module only where a kernel is needed, because Numba takes a while to load. A kernel is
compiled once per machine for each dtype, order and number of classes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from laconic.numeric.compiled import compiled

# Rows of a panel of contiguous rows. They are few enough that their pages stay in the first-level
# TLB (64 entries or more), and enough that adding to float64 costs little.
PANEL_ROWS = 64
# Bytes along the rows between the current tile and the prefetched ones. Rows are pages apart, so
# the hardware sees no pattern to prefetch. Each tile is prefetched twice, because prefetches are
# dropped while too many are under way. It is not done a whole panel ahead, because rows that are a
# power of two apart share a few places in the cache.
AHEAD_BYTES = 768, 256
# Registers of rows in a panel of contiguous columns. Hardware prefetching runs on past the end of
# each stretch. Long stretches keep it from wasting bandwidth. The panel of R stays in level 2.
PANEL_STEPS = 128

_INT8, _INT32, _INT64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_DOUBLE = ir.DoubleType()
_COMPACT = {1: _INT8, 2: ir.HalfType()}

# kernel(X, R, sums) adds to sums[t, p] the sums for tile t of X and pass p over R: those of all
# columns of the tile in the first class, then in the second, and so on. The last tile ends at the
# last column and the last pass at the last class, so they may overlap those before them.
Kernel = Callable[[np.ndarray, np.ndarray, np.ndarray], None]


class Registers(NamedTuple):
    """Vector registers of this machine: bytes per register and their number."""

    width: int
    number: int


@cache
def registers() -> Registers:
    """Return the vector registers of this machine: AVX-512, AVX2, or else of 16 bytes."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return Registers(64, 32)
    if features.get("avx2"):
        return Registers(32, 16)
    return Registers(16, 32 if llvm.get_default_triple().startswith(("aarch64", "arm64")) else 16)


@cache
def row_kernel(stored: str, dtype: str, k: int) -> Kernel:
    """Return the kernel for an X with contiguous rows; tiles are one register of columns by ``k``.

    X is multiplied in the ``dtype`` of R, but may be ``stored`` more compactly: as uint8, or as
    uint16 that holds the bits of float16 (Numba has no arrays of float16). A tile is one register
    wide. Wider tiles would request several cache lines at a time, and prefetches in bursts are
    dropped.
    """
    short, item = np.dtype(stored).itemsize, np.dtype(dtype).itemsize
    lanes = registers().width // item
    width = lanes * short
    far, near = (n // width for n in AHEAD_BYTES)

    @compiled(signature=_signature(stored, dtype))
    def kernel(X: Any, R: Any, sums: Any) -> None:
        rows, columns = X.shape
        tiles, passes, length = sums.shape
        x_step, r_step = X.strides[0], R.strides[0]
        for i in range(0, rows, PANEL_ROWS):
            panel, down = X.ctypes.data + i * x_step, PANEL_ROWS * x_step
            n = min(PANEL_ROWS, rows - i)
            for p in range(passes):
                r = R.ctypes.data + i * r_step + min(p * k, R.shape[1] - k) * item
                for t in range(tiles):
                    x = panel + min(t * lanes, columns - lanes) * short
                    out = sums.ctypes.data + (t * passes + p) * length * 8
                    later = panel + (t + far) // tiles * down + (t + far) % tiles * width
                    soon = panel + (t + near) // tiles * down + (t + near) % tiles * width
                    _row_tile(x, x_step, r, r_step, n, later, soon, out, short, item, k)

    return kernel


@cache
def column_kernel(dtype: str, columns: int, k: int) -> Kernel:
    """Return the kernel for an X with contiguous columns; tiles are ``columns`` by ``k``.

    The number of rows must be a multiple of the number of values in a register.
    """
    item, width = np.dtype(dtype).itemsize, registers().width
    lanes = width // item
    panel = PANEL_STEPS * lanes

    @compiled(signature=_signature(dtype, dtype), _nrt=True)  # it makes an array
    def kernel(X: Any, R: Any, sums: Any) -> None:
        rows, n_columns = X.shape
        tiles, passes, length = sums.shape
        x_step = X.strides[1]
        # Pack R register by register, so that a tile reads it in one stream of aligned loads.
        size = passes * panel * k
        scratch = np.empty(size + lanes, X.dtype)
        shift = (-scratch.ctypes.data % width) // item
        packed = scratch[shift : shift + size].reshape((passes, PANEL_STEPS, k, lanes))
        for i in range(0, rows, panel):
            steps = min(panel, rows - i) // lanes
            for p in range(passes):
                first = min(p * k, R.shape[1] - k)
                for s in range(steps):
                    for lane in range(lanes):
                        for c in range(k):
                            packed[p, s, c, lane] = R[i + s * lanes + lane, first + c]
            here = X.ctypes.data + i * item
            for t in range(tiles):
                x = here + min(t * columns, n_columns - columns) * x_step
                ahead = x + columns * x_step if t + 1 < tiles else here + panel * item
                for p in range(passes):
                    r = packed.ctypes.data + p * panel * k * item
                    out = sums.ctypes.data + (t * passes + p) * length * 8
                    _column_tile(x, x_step, r, steps, ahead, out, item, columns, k)

    return kernel


def _signature(stored: str, dtype: str) -> Any:
    # Arrays are read-only and of any strides, so that one kernel serves slices and memory maps too.
    X, R = (types.Array(getattr(types, name), 2, "A", readonly=True) for name in (stored, dtype))
    return types.void(X, R, types.Array(types.float64, 3, "C"))


@intrinsic(prefer_literal=True)
def _row_tile(context, x, x_step, r, r_step, rows, later, soon, out, short, item, k):  # type: ignore[no-untyped-def]
    """Sum one register of columns by ``k`` classes over ``rows``. Steps are in bytes."""
    stored, size, classes = short.literal_value, item.literal_value, k.literal_value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, x_step, r, r_step, rows, later, soon, out = arguments[:8]
        vector = _vector(size)

        def body(addresses: list[Any], sums: list[Any]) -> list[Any]:
            column, weight, *ahead = addresses
            for address in ahead:
                _prefetch(builder, address)
            values = _load_wide(builder, column, stored, vector)
            for c in range(classes):
                factor = _splat(builder, _load(builder, weight, c * size, vector.element), vector)
                sums[c] = _multiply_add(builder, values, factor, sums[c])
            return sums

        walks = [(x, x_step), (r, r_step), (later, x_step), (soon, x_step)]
        _add_to(builder, out, _loop(builder, rows, walks, vector, classes, body))
        return context.get_dummy_value()

    return types.void(*[types.intp] * 8, short, item, k), generate


@intrinsic(prefer_literal=True)
def _column_tile(context, x, x_step, r, steps, ahead, out, item, columns, k):  # type: ignore[no-untyped-def]
    """Sum ``columns`` by ``k`` classes over ``steps`` registers of rows. Steps are in bytes."""
    size, across, classes = item.literal_value, columns.literal_value, k.literal_value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, x_step, r, steps, ahead, out = arguments[:6]
        vector, step = _vector(size), registers().width

        def body(addresses: list[Any], sums: list[Any]) -> list[Any]:
            weight, *heads = addresses
            for later in heads[across:]:
                _prefetch(builder, later)
            values = [_load(builder, head, 0, vector) for head in heads[:across]]
            for c in range(classes):
                factor = _load(builder, weight, c * step, vector)
                for j in range(across):
                    q = c * across + j
                    sums[q] = _multiply_add(builder, values[j], factor, sums[q])
            return sums

        walks = [(r, _INT64(classes * step))]
        for first in (x, ahead):
            offsets = [builder.mul(x_step, _INT64(j)) for j in range(across)]
            walks += [(builder.add(first, offset), _INT64(step)) for offset in offsets]
        sums = _loop(builder, steps, walks, vector, across * classes, body)
        sums += [ir.Constant(vector, None)] * (-len(sums) % vector.count)
        groups = [sums[q : q + vector.count] for q in range(0, len(sums), vector.count)]
        _add_to(builder, out, [_lane_sums(builder, group) for group in groups])
        return context.get_dummy_value()

    return types.void(*[types.intp] * 6, item, columns, k), generate


def _loop(
    builder: Any,
    count: Any,
    walks: list[tuple[Any, Any]],
    vector: Any,
    n_sums: int,
    body: Callable[[list[Any], list[Any]], list[Any]],
) -> list[Any]:
    """Run ``body(addresses, sums) -> sums`` ``count`` times, at least once; return the sums.

    ``walks`` has the first value and the step of every address. The sums start at zero.
    """
    before, loop = builder.block, builder.append_basic_block("tile")
    builder.branch(loop)
    builder.position_at_end(loop)
    left = builder.phi(_INT64)
    addresses = [builder.phi(_INT64) for _ in walks]
    sums = [builder.phi(vector) for _ in range(n_sums)]
    new = body(addresses, list(sums))
    less, zero = builder.sub(left, _INT64(1)), ir.Constant(vector, None)
    values = [(left, count, less)]
    for address, (first, step) in zip(addresses, walks, strict=True):
        values.append((address, first, builder.add(address, step)))
    values += [(old, zero, following) for old, following in zip(sums, new, strict=True)]
    for value, start, following in values:
        value.add_incoming(start, before)
        value.add_incoming(following, loop)
    done = builder.append_basic_block("done")
    branch = builder.cbranch(builder.icmp_signed(">", less, _INT64(0)), loop, done)
    branch.set_metadata("llvm.loop", _never_unrolled(builder.module))
    builder.position_at_end(done)
    return new


def _never_unrolled(module: Any) -> Any:
    # In an unrolled loop, prefetches would come in bursts. LLVM wants a node whose first operand is
    # the node itself.
    node = module.add_metadata([module.add_metadata(["llvm.loop.unroll.disable"])])
    if node.operands[0] is not node:
        node.operands = (node, *node.operands)
    return node


def _vector(item: int) -> Any:
    return ir.VectorType(_DOUBLE if item == 8 else ir.FloatType(), registers().width // item)


def _load(builder: Any, address: Any, offset: int, kind: Any) -> Any:
    pointer = builder.inttoptr(builder.add(address, _INT64(offset)), kind.as_pointer())
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    return builder.load(pointer, align=8 if element == _DOUBLE else 4)


def _load_wide(builder: Any, address: Any, stored: int, vector: Any) -> Any:
    """Load a register of numbers that take ``stored`` bytes each; single bytes are unsigned."""
    if stored not in _COMPACT:
        return _load(builder, address, 0, vector)
    compact = ir.VectorType(_COMPACT[stored], vector.count)
    pointer = builder.inttoptr(address, compact.as_pointer())
    values = builder.load(pointer, align=stored)
    widen = builder.uitofp if stored == 1 else builder.fpext
    return widen(values, vector)


def _multiply_add(builder: Any, x: Any, y: Any, total: Any) -> Any:
    # "contract" lets LLVM fuse the two operations if the machine can, and nothing else.
    product = builder.fmul(x, y, flags=("contract",))
    return builder.fadd(product, total, flags=("contract",))


def _prefetch(builder: Any, address: Any) -> None:
    pointer = _INT8.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, _INT32, _INT32, _INT32])
    function = builder.module.declare_intrinsic("llvm.prefetch", (pointer,), kind)
    # Prefetch into level 2, because level 1 is too small for data requested this early.
    read, level_2, data = _INT32(0), _INT32(2), _INT32(1)
    builder.call(function, [builder.inttoptr(address, pointer), read, level_2, data])


def _splat(builder: Any, value: Any, vector: Any) -> Any:
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, _INT32(0))
    return builder.shuffle_vector(first, undefined, _mask([0] * vector.count))


def _mask(lanes: list[int]) -> Any:
    return ir.Constant(ir.VectorType(_INT32, len(lanes)), lanes)


def _lane_sums(builder: Any, vectors: list[Any]) -> Any:
    """Sum the lanes of ``vectors[q]`` into lane q of one vector; halve their number each round."""
    lanes = segment = len(vectors)
    while segment > 1:
        half = segment // 2
        low = [start + lane for start in range(0, 2 * lanes, segment) for lane in range(half)]
        masks = [_mask(low), _mask([lane + half for lane in low])]
        vectors = [
            builder.fadd(*[builder.shuffle_vector(a, b, mask) for mask in masks])
            for a, b in zip(vectors[::2], vectors[1::2], strict=True)
        ]
        segment = half
    return vectors[0]


def _add_to(builder: Any, address: Any, vectors: list[Any]) -> None:
    """Add vectors to consecutive float64 vectors in memory."""
    wide = ir.VectorType(_DOUBLE, vectors[0].type.count)
    for place, vector in enumerate(vectors):
        value = vector if vector.type == wide else builder.fpext(vector, wide)
        offset = builder.add(address, _INT64(place * wide.count * 8))
        pointer = builder.inttoptr(offset, wide.as_pointer())
        builder.store(builder.fadd(builder.load(pointer, align=8), value), pointer, align=8)
