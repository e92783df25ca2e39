"""Triton's kernels against their twins: in its interpreter, and compiled if there is a GPU.

The twins are compared with NumPy here, and in the tests of the pools.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("triton")

import torch
from kernel_checks import CHECKS, residual, stored

from laconic.device import code_sums, value_sums
from laconic.device.fixed_point import sums_by_code, whole_numbers
from laconic.device.split import digits, halves, parts_of


@pytest.fixture(scope="module")
def interpreted():
    """The output of all checks in the interpreter."""
    script = Path(__file__).with_name("kernel_checks.py")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.mark.parametrize("check", CHECKS)
def test_a_kernel_agrees_with_its_twin_in_the_interpreter(interpreted, check):
    assert f"{check}: passed" in interpreted, interpreted


@pytest.mark.gpu
@pytest.mark.parametrize("check", CHECKS)
def test_a_compiled_kernel_agrees_with_its_twin(check):
    CHECKS[check]("cuda")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("together", [False, True])
def test_halves_hold_the_digits_of_a_residual(dtype, together):
    """Whatever its size, and without overflow."""
    R = residual(9, 50, dtype)
    parts = parts_of(R)
    split = halves(R, parts, 32, 64, together)
    assert split.lines.shape == (32, 64)
    assert split.lines.isfinite().all()
    assert not split.lines[parts * 9 :].any()
    assert not split.lines[:, 50:].any()
    assert (split.lines[:9].abs().amax(dim=1) < 2.0**15).all()
    back = split.whole(split.lines.T[:50]).T
    error = (back - R.double()).abs()
    digits = 2.0 ** -(22 if parts == 2 else 33)
    floor = R.double().abs().amax(dim=1, keepdim=True) * digits * 2.0**-10
    assert (error <= digits * R.double().abs() + floor).all()


@pytest.mark.parametrize("parts", [2, 3, 4])
def test_digits_hold_the_digits_of_the_largest_number(parts):
    R = residual(9, 50, np.float64)
    split = digits(R, parts, 40, 64)
    assert not split.lines[parts * 9 :].any()
    assert not split.lines[:, 50:].any()
    error = (split.whole(split.lines.T[:50]).T - R).abs()
    assert (error <= 2.0 ** (2 - 8 * parts) * R.abs().amax(dim=1, keepdim=True)).all()


def test_halves_of_tiny_numbers_do_not_overflow():
    R = torch.full((2, 3), 1e-44)
    R[1] = 0.0
    split = halves(R, 2, 16, 256)
    assert split.lines.isfinite().all()
    assert split.whole(split.lines.T).isfinite().all()


@pytest.mark.parametrize("n", [1, 7, 1000])
def test_whole_numbers_are_summed_exactly(n):
    """In any order, and without overflow where all rows have one code and one sign."""
    R = torch.ones(2, n) * torch.tensor([[1.0], [-3e-9]])
    numbers = whole_numbers(R)
    sums = sums_by_code(torch.zeros(n, dtype=torch.uint8), 2, numbers)
    exact = torch.stack([R.double().sum(dim=1), torch.zeros(2)])
    np.testing.assert_allclose(sums.double() * numbers.units, exact, rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_twin_of_sums_by_code_is_a_histogram(dtype):
    rng = np.random.default_rng(0)
    codes, R = rng.integers(0, 256, (3, 512), dtype=np.uint8), residual(5, 500, dtype)
    found = code_sums.code_sums(torch.as_tensor(codes), R).numpy()
    for line, sums in zip(codes, found, strict=True):
        exact = [np.bincount(line[:500], r, 256) for r in R.double().numpy()]
        error = np.abs(sums.T - exact)
        assert (error <= 1e-12 * R.double().abs().sum(dim=1).numpy()[:, None]).all()


@pytest.mark.parametrize("dtype", [torch.int8, torch.float16, torch.float32])
def test_the_twin_of_sums_of_values_is_a_product(dtype, monkeypatch):
    monkeypatch.setattr(value_sums, "TWIN_ROWS", 64)
    monkeypatch.setattr(value_sums, "TWIN_VALUES", 640)
    values, R = stored(dtype, 33, 500), residual(5, 500)
    found = value_sums.value_sums(values, R)
    held = values[:, :500].double() + value_sums.shift_of(values)
    error = (found - held @ R.double().T).abs()
    assert (error <= 1e-6 * (held @ R.double().abs().T)).all()
