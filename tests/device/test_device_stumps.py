"""Stumps on a device have the codes, atoms, sums and columns of those on the host."""

import numpy as np
import pytest
import torch
from on_devices import Both, close

from laconic.device import stumps
from laconic.device.stump_codes import find_codings
from laconic.numeric.threads import Threads
from laconic.pools import Stumps
from laconic.pools.stump_limits import StumpLimits


class FewSampled(Stumps):
    """Cuts of a few rows."""

    _limits = StumpLimits(sample=25)


def both_of(pool, X, weight=None, device="cpu"):
    return Both(pool, X, weight, device, stumps.bind)


def random_table(rng, dtype):
    """A few features of few or many values, some missing, some constant."""
    m, d = int(rng.integers(2, 700)), int(rng.integers(1, 6))
    X = rng.standard_normal((m, d))
    for f in range(d):
        if rng.random() < 0.5:
            X[:, f] = rng.integers(0, rng.integers(1, 12), m)
        if rng.random() < 0.5:
            X[rng.random(m) < rng.choice([0.1, 0.7, 1.0]), f] = np.nan
    return X.astype(dtype), rng.random(m) + 0.1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(15))
def test_everything_is_as_on_the_host(device, seed, dtype):
    rng = np.random.default_rng(seed)
    X, weight = random_table(rng, dtype)
    categorical = np.flatnonzero(rng.random(X.shape[1]) < 0.3)
    R = (rng.standard_normal((len(X), 3)) / len(X)).astype(dtype)
    pools = Stumps(), Stumps(4, categorical), Stumps(None, categorical), FewSampled(9, categorical)
    for pool in pools:
        both = both_of(pool, X, weight, device)
        assert both.same_facts()
        columns, there = both.columns(range(both.host.n_atoms))
        np.testing.assert_array_equal(there, columns)
        if both.host.n_atoms:
            sums, found = both.gradients(R)
            assert close(found, sums, columns.T @ np.abs(R), np.float32)
            np.testing.assert_allclose(*both.squares(), rtol=1e-6)


def test_of_many_rows_a_sample_is_cut(device):
    """Even if a feature has few values at first, and missing ones."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 3))
    X[:2000, 1] = 1.0
    X[::3, 2] = np.nan
    for pool in (FewSampled(), Stumps(), Stumps(None), Stumps(2)):
        assert both_of(pool, X, rng.random(5000), device).same_facts()


def test_a_feature_of_many_codes_has_every_threshold(device):
    """Features with one byte and with four are mixed."""
    rng = np.random.default_rng(1)
    X = np.column_stack(
        [rng.integers(0, 5, 3000), rng.random((3000, 2)), rng.integers(0, 900, (3000, 2))]
    )
    X[::7, 2] = np.nan
    both = both_of(Stumps(None, categorical=[4]), X, rng.random(3000) + 0.1, device)
    assert both.same_facts()
    R = rng.standard_normal((3000, 2)) / 3000
    sums, there = both.gradients(R)
    np.testing.assert_allclose(there, sums, rtol=1e-6, atol=1e-9)
    some = np.r_[0:10, 2990:3010, both.host.n_atoms - 300 : both.host.n_atoms].tolist()
    np.testing.assert_array_equal(*both.columns(some))


def test_all_codes_of_a_byte_are_used(device):
    """With 255 bins and missing values there are 256 codes."""
    rng = np.random.default_rng(2)
    X = rng.random((4000, 2)).astype(np.float32)
    X[rng.random(4000) < 0.1, 0] = np.nan
    both = both_of(Stumps(), X, device=device)
    assert both.same_facts()
    assert both.host.n_atoms == 255 + 254
    R = rng.standard_normal((4000, 1)).astype(np.float32) / 4000
    sums, there = both.gradients(R)
    assert close(there, sums, np.abs(R).sum() * np.ones(1), np.float32)
    np.testing.assert_array_equal(*both.columns([0, 253, 254, 255, 508]))


@pytest.mark.parametrize("n", [2, 255, 256, 257])
def test_padded_rows_count_for_nothing(device, n):
    X = np.arange(n, dtype=np.float32)[:, None] % 3
    R = np.ones((n, 1), dtype=np.float32)
    sums, there = both_of(Stumps(), X, device=device).gradients(R)
    np.testing.assert_allclose(there, sums, rtol=1e-6)


def test_a_table_without_stumps_has_no_sums(device):
    both = both_of(Stumps(), np.ones((20, 3)), device=device)
    assert both.there.facts.n_atoms == 0
    assert both.on_device(np.ones((20, 2))).shape == (0, 2)
    assert both.there.squares(both.to(both.weight)).shape == (0,)


def test_the_same_residual_gives_the_same_bits(device):
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.random((9000, 3)), rng.integers(0, 500, 9000)])
    both = both_of(Stumps(categorical=[3]), X, device=device)
    R = rng.standard_normal((9000, 3))
    np.testing.assert_array_equal(both.on_device(R), both.on_device(R))


@pytest.mark.parametrize("pool", [Stumps(1), Stumps(bins=2.5), Stumps(categorical=[9])])
def test_bad_settings_get_the_message_of_the_host(device, pool):
    X, weight = np.random.default_rng(0).random((300, 2)), np.full(300, 1 / 300)
    with pytest.raises((TypeError, ValueError)) as here:
        pool.bind(X, weight, Threads(1))
    there = torch.as_tensor(X, device=device), torch.as_tensor(weight, device=device)
    with pytest.raises(type(here.value)) as found:
        find_codings(pool, *there, Threads(1))
    assert str(found.value) == str(here.value)
