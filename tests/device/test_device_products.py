"""Products on a device have the atoms, scales, sums and columns of those on the host."""

import numpy as np
import pytest
from on_devices import Both, close

from laconic.device import products
from laconic.pools import Products


def table(n, d=7, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-2, 3, d)
    X[:, 1], X[:, d // 2] = 2.0, 0.0
    return X.astype(dtype)


def residual_of(n, k=3, dtype=np.float32, seed=1):
    return (np.random.default_rng(seed).standard_normal((n, k)) / n).astype(dtype)


def size_of_terms(both, X, R):
    """Return Σ_n |x_ni x_nj r_nc| of every atom."""
    pairs = np.array([both.host.atom(a) for a in range(both.host.n_atoms)])
    products = np.abs(X[:, pairs[:, 0]].astype(float) * X[:, pairs[:, 1]])
    return (products * both.host.scales(range(both.host.n_atoms))).T @ np.abs(R)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("scale", ["max", "std", None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_everything_is_as_on_the_host(device, dtype, scale, order):
    X = np.asarray(table(900, dtype=dtype), order=order)
    weight = np.random.default_rng(2).random(900) + 0.1
    both = Both(Products(scale), X, weight, device)
    assert both.same_facts()
    R = residual_of(900, dtype=dtype)
    sums, there = both.gradients(R)
    assert close(there, sums, size_of_terms(both, X, R), dtype)
    np.testing.assert_allclose(*both.squares(), rtol=1e-5 if dtype == np.float32 else 1e-9)
    columns, found = both.columns([20, 0, 7])
    # Deviations are sums of many rows in float64.
    rounding = 0 if scale != "std" else max(1e-12, 2 * np.finfo(dtype).eps)
    np.testing.assert_allclose(found, columns, rtol=rounding)


@pytest.mark.parametrize("d", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("tall", [1, 2, 3, 128])
def test_pieces_and_blocks_leave_nothing_out(device, d, tall, monkeypatch):
    monkeypatch.setattr(products, "TALL", tall)
    monkeypatch.setattr(products, "ROWS", 64)
    X, R = table(200, d, np.float64), residual_of(200, 4, np.float64)
    both = Both(Products(None), X, device=device)
    naive = [(X[:, i] * X[:, j]) @ R for i in range(d) for j in range(i + 1, d)]
    np.testing.assert_allclose(both.on_device(R), naive, rtol=1e-9, atol=1e-12)


def test_many_outputs_are_summed_in_small_pieces(device, monkeypatch):
    both = Both(Products(), table(300, 9, np.float64), device=device)
    R = residual_of(300, 26, np.float64)
    at_once = both.on_device(R)
    monkeypatch.setattr(products, "NUMBERS", 1)
    np.testing.assert_allclose(both.on_device(R), at_once, rtol=1e-9, atol=1e-15)


def test_tiny_features_are_summed_in_double_precision(device):
    X = table(300, 4) * np.float32(1e-25)
    both, R = Both(Products(), X, device=device), residual_of(300)
    sums, there = both.gradients(R)
    assert close(there, sums, size_of_terms(both, X.astype(float), R), np.float32)
    assert np.abs(there).max() > 0


def test_the_same_residual_gives_the_same_bits(device):
    both, R = Both(Products(), table(4000), device=device), residual_of(4000)
    np.testing.assert_array_equal(both.on_device(R), both.on_device(R))


@pytest.mark.parametrize("X", [np.ones((5, 1)), np.full((5, 3), 1e200)])
def test_bad_input_gets_the_message_of_the_host(device, X):
    import torch

    from laconic.device.products import bind

    with pytest.raises(ValueError) as here:
        Products(None).bind(X, np.full(5, 0.2), None)
    with pytest.raises(ValueError) as there:
        bind(Products(None), torch.as_tensor(X, device=device), torch.full((5,), 0.2), None)
    assert str(there.value) == str(here.value)
