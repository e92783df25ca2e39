"""Products of small matrices inside kernels, by the BLAS of NumPy or SciPy.

Numba can also compile `np.dot`, which calls the same BLAS. But that takes seconds, most of them for
its error messages. These intrinsics only make the call. They do not check shapes. Arrays must be in
C order and all of one dtype. A kernel gets the `address` of BLAS with every call, so that the
compiled kernel can be cached on disk.

This module imports Numba, so import it only at first use.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import get_cython_function_address, intrinsic

# BLAS gets the addresses of its sizes. If it reads 32 bits there, it finds the lower half, which is
# first in memory on all machines that Numba compiles for.
_INT, _CHAR = ir.IntType(64), ir.IntType(8)


@cache
def address(dtype: np.dtype[Any]) -> np.uintp:
    """Return the address of the matrix product of a dtype, float32 or float64.

    NumPy's own BLAS is often newer than SciPy's, and faster. It is used if NumPy brings OpenBLAS.
    """
    name = {np.dtype(np.float32): "sgemm", np.dtype(np.float64): "dgemm"}[np.dtype(dtype)]
    try:
        library = ctypes.CDLL(np.linalg._umath_linalg.__file__)
        own = ctypes.cast(getattr(library, f"scipy_{name}_64_"), ctypes.c_void_p).value
    except (AttributeError, OSError):
        own = None
    return np.uintp(own or get_cython_function_address("scipy.linalg.cython_blas", name))


@intrinsic
def copy(context, source, row, target, place):  # type: ignore[no-untyped-def]
    """Do ``target[place] = source[row]``, for as many columns as the target has."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, row, target, place = arguments
        given, (_, step) = _open(context, builder, signature.args[0], source)
        taken, (_, width) = _open(context, builder, signature.args[2], target)
        given = builder.gep(given, [builder.mul(row, step)])
        taken = builder.gep(taken, [builder.mul(place, width)])
        item = context.get_abi_sizeof(given.type.pointee)
        cgutils.raw_memcpy(builder, taken, given, width, item)
        return context.get_dummy_value()

    return types.void(source, types.intp, target, types.intp), generate


@intrinsic
def cross(context, gemm, X, Y, first, last, out):  # type: ignore[no-untyped-def]
    """Do ``out[:] = X[first:last].T @ Y[first:last]``; ``out`` may be flat."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        gemm, X, Y, first, last, out = arguments
        _, x_type, y_type, _, _, out_type = signature.args
        x, (_, p) = _open(context, builder, x_type, X)
        y, (_, q) = _open(context, builder, y_type, Y)
        target, _ = _open(context, builder, out_type, out)
        x = builder.gep(x, [builder.mul(first, p)])
        y = builder.gep(y, [builder.mul(first, q)])
        # BLAS reads an array in C order as its transpose, so compute outᵀ = Yᵀ X.
        _call(builder, gemm, "T", (q, p, builder.sub(last, first)), (y, q), (x, p), (target, q))
        return context.get_dummy_value()

    return types.void(types.uintp, X, Y, types.intp, types.intp, out), generate


@intrinsic
def times(context, gemm, X, n, Y, j, out):  # type: ignore[no-untyped-def]
    """Do ``out[:n] = X[:n] @ Y[j]``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        gemm, X, n, Y, j, out = arguments
        _, x_type, _, y_type, _, out_type = signature.args
        x, _ = _open(context, builder, x_type, X)
        y, (_, p, q) = _open(context, builder, y_type, Y)
        target, _ = _open(context, builder, out_type, out)
        y = builder.gep(y, [builder.mul(j, builder.mul(p, q))])
        _call(builder, gemm, "N", (q, n, p), (y, q), (x, p), (target, q))
        return context.get_dummy_value()

    return types.void(types.uintp, X, types.intp, Y, types.intp, out), generate


def _open(context: Any, builder: Any, kind: Any, value: Any) -> tuple[Any, list[Any]]:
    """Return the address of the numbers of an array, and its shape."""
    array = context.make_array(kind)(context, builder, value)
    return array.data, cgutils.unpack_tuple(builder, array.shape, kind.ndim)


def _call(builder: Any, gemm: Any, flip: str, sizes: Any, A: Any, B: Any, C: Any) -> None:
    """Compute C = A B or A Bᵀ for matrices in column order.

    Each matrix is a pointer and the distance between two columns. BLAS comes from Fortran, so it
    takes every argument by reference.
    """

    def kept(value: Any) -> Any:
        place = cgutils.alloca_once(builder, value.type)
        builder.store(value, place)
        return place

    number = A[0].type.pointee
    sizes = [kept(size) for size in sizes]
    steps = [kept(step) for _, step in (A, B, C)]
    letters = [kept(_CHAR(ord(letter))) for letter in ("N", flip)]
    one, zero = (kept(ir.Constant(number, value)) for value in (1.0, 0.0))
    passed = [*letters, *sizes, one, A[0], steps[0], B[0], steps[1], zero, C[0], steps[2]]
    kind = ir.FunctionType(ir.VoidType(), [each.type for each in passed])
    builder.call(builder.inttoptr(gemm, kind.as_pointer()), passed)
