"""Columns on a device have the atoms, scales, sums and columns of those on the host."""

import numpy as np
import pytest
from on_devices import Both, close

from laconic.device import block_sums
from laconic.pools import Columns


def table(n, dtype=np.float32, seed=0):
    """Columns of several sizes, one constant and one of zeros."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 7)) * 10.0 ** rng.integers(-3, 4, 7)
    X[:, 2], X[:, 5] = 3.0, 0.0
    return X.astype(dtype)


def residual_of(n, k=3, dtype=np.float32, seed=1):
    return (np.random.default_rng(seed).standard_normal((n, k)) / n).astype(dtype)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("scale", ["max", "std", None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_everything_is_as_on_the_host(device, dtype, scale, order):
    X = np.asarray(table(3000, dtype), order=order)
    weight = np.random.default_rng(2).random(3000) + 0.1
    both = Both(Columns(scale), X, weight, device)
    assert both.same_facts()
    R = residual_of(3000, dtype=dtype)
    sums, there = both.gradients(R)
    scaled = np.abs(X * both.host.scales(range(7)))
    assert close(there, sums, scaled.T @ np.abs(R), dtype)
    np.testing.assert_allclose(*both.squares(), rtol=1e-9)
    columns, found = both.columns([6, 2, 0])
    # Deviations are sums of many rows in float64.
    rounding = 0 if scale != "std" else max(1e-12, 2 * np.finfo(dtype).eps)
    np.testing.assert_allclose(found, columns, rtol=rounding)


@pytest.mark.parametrize("n", [1, 2, 1023, 1024, 1025, 2048])
def test_blocks_of_rows_leave_no_row_out(device, n):
    X, R = table(n, np.float64), residual_of(n, dtype=np.float64)
    sums, there = Both(Columns(None), X, device=device).gradients(R)
    np.testing.assert_allclose(there, X.T @ R, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(there, sums, rtol=1e-9, atol=1e-12)


def test_few_blocks_are_multiplied_at_a_time(device, monkeypatch):
    both = Both(Columns(), table(5000, np.float64), device=device)
    R = residual_of(5000, dtype=np.float64)
    at_once = both.on_device(R)
    monkeypatch.setattr(block_sums, "BYTES", 1)
    np.testing.assert_allclose(both.on_device(R), at_once, rtol=1e-12)


@pytest.mark.parametrize("groups", [[1, 0, 1, 2, 2, 0, 0], [[3, 1], [0, 2, 4, 5, 6]]])
def test_groups_have_the_columns_of_their_features(device, groups):
    both = Both(Columns(groups=groups), table(200), device=device)
    assert both.same_facts()
    np.testing.assert_array_equal(*both.columns([1, 0]))
    sums, there = both.gradients(residual_of(200))
    np.testing.assert_allclose(there, sums, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("size", [1e-30, 1e-12, 1e15, 1e30])
def test_columns_of_any_size_are_scaled(device, size):
    """Their sums would overflow or vanish in single precision."""
    X = (table(2000)[:, :2] * np.float64(size) / 1e3).astype(np.float32)
    R = residual_of(2000)
    sums, there = Both(Columns(), X, device=device).gradients(R)
    scaled = np.abs(X).astype(float) / np.abs(X).max(axis=0)
    assert close(there, sums, scaled.T @ np.abs(R), np.float32)
    assert np.abs(there).min() > 0


def test_the_same_residual_gives_the_same_bits(device):
    both, R = Both(Columns(), table(4000), device=device), residual_of(4000)
    np.testing.assert_array_equal(both.on_device(R), both.on_device(R))


def test_the_order_of_outputs_does_not_matter(device):
    both, R = Both(Columns(), table(4000, np.float64), device=device), residual_of(4000, 5)
    R = R.astype(np.float64)
    turned = both.on_device(R[:, ::-1].copy())
    np.testing.assert_allclose(turned[:, ::-1], both.on_device(R), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(("pool", "size"), [(Columns("mean"), 1.0), (Columns(None), 1e30)])
def test_bad_input_gets_the_message_of_the_host(device, pool, size):
    X = table(50) * np.float32(size)
    with pytest.raises(ValueError) as here:
        pool.bind(X, np.full(50, 0.02), None)
    import torch

    from laconic.device.columns import bind

    with pytest.raises(ValueError) as there:
        bind(pool, torch.as_tensor(X, device=device), torch.full((50,), 0.02).double(), None)
    assert str(there.value) == str(here.value)
