"""The kernels beside their plain twins."""

import numpy as np
import pytest

from laconic.clumping.neighbour_kernels import add_lists, near_bits, set_bits, transpose_bits


def test_sums_over_lists():
    values = np.random.default_rng(0).standard_normal((2, 5))
    out = np.empty((2, 3))
    add_lists(np.array([1, 3, 3, 6]), np.array([4, 0, 1, 2, 3, 4], dtype=np.int32), values, out)
    wanted = [values[:, [0, 1]].sum(axis=1), [0, 0], values[:, [2, 3, 4]].sum(axis=1)]
    assert out == pytest.approx(np.transpose(wanted))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(8, 16), (13, 21), (1, 1)])
def test_bits_of_large_inner_products(dtype, shape):
    rng = np.random.default_rng(1)
    inner = rng.standard_normal(shape).astype(dtype)
    row, column = (rng.standard_normal(n).astype(dtype) / 2 for n in shape)
    out = np.zeros((-(-shape[0] // 8), shape[1]), dtype=np.uint8)
    near_bits(inner, row, column, out)
    plain = inner >= row[:, None] + column
    assert np.array_equal(out, np.packbits(plain, axis=0, bitorder="little"))


def test_bits_exchanged():
    bits = np.random.default_rng(2).random((24, 40)) < 0.4
    out = np.zeros((5, 24), dtype=np.uint8)
    transpose_bits(np.packbits(bits, axis=0, bitorder="little"), out)
    assert np.array_equal(out, np.packbits(bits.T, axis=0, bitorder="little"))


def test_bits_set_one_by_one():
    rng = np.random.default_rng(3)
    near = rng.random((21, 21)) < 0.3
    codes = np.zeros((3, 3, 8), dtype=np.uint8)  # runs of eight rows
    set_bits(codes, *(at.astype(np.int32) for at in np.nonzero(near)))
    wanted = np.packbits(np.pad(near, (0, 3)), axis=1, bitorder="little")  # (rows, bytes)
    assert np.array_equal(codes.transpose(0, 2, 1).reshape(24, 3), wanted)
