"""Hinges on a device have the directions, knots, sums and columns of those on the host."""

import numpy as np
import pytest
import torch
from on_devices import Both, close

from laconic.device import hinge_sums, hinges
from laconic.numeric.threads import Threads
from laconic.pools import Hinges


def table(n=400, d=5, dtype=np.float32, seed=0):
    """Features in unlike units and places, one of them constant, and their classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-2, 3, d) + rng.integers(-3, 4, d)
    X[:, 1] = 2.0
    return X.astype(dtype), rng.integers(0, 3, n)


def residual_of(n, k=3, dtype=np.float32, seed=1):
    return (np.random.default_rng(seed).standard_normal((n, k)) / n).astype(dtype)


def both_of(pool, X, y=None, weight=None, device="cpu"):
    return Both(pool, X, weight, device, y=y)


def size_of_terms(both, R):
    """Return the size of what is added up for every hinge: Σ (|u| + |b|) |R|."""
    host = both.host
    u, b = np.abs(host._heights[host.direction]).astype(float), np.abs(host._knot)[:, None]
    return ((u + b) * host.factors[:, None]) @ np.abs(R)


@pytest.mark.parametrize("scale", ["max", "std", None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_inputs", [None, 2])
def test_everything_is_as_on_the_host(device, dtype, scale, n_inputs):
    X, y = table(dtype=dtype)
    weight = np.random.default_rng(2).random(len(X)) + 0.1
    both = both_of(Hinges(9, 6, n_inputs=n_inputs, scale=scale), X, y, weight, device)
    assert both.same_facts()
    atoms = range(both.host.n_atoms)
    # Projections are sums in double precision, of features far from zero.
    rounding = max(8 * np.finfo(dtype).eps, 1e-12)
    np.testing.assert_allclose(both.there.facts.scales(atoms), both.host.scales(atoms), rounding)
    R = residual_of(len(X), dtype=dtype)
    sums, there = both.gradients(R)
    assert close(there, sums, size_of_terms(both, R), dtype, rounding / np.finfo(dtype).eps)
    np.testing.assert_allclose(*both.squares(), rtol=1e-5 if dtype == np.float32 else 1e-11)
    columns, found = both.columns(atoms)
    largest = np.abs(both.host._heights).max() * both.host.factors.max()
    np.testing.assert_allclose(found, columns, atol=rounding * largest)


def test_sums_are_those_of_the_columns(device):
    X, y = table(dtype=np.float64)
    both, R = both_of(Hinges(5, 4), X, y, device=device), residual_of(400, dtype=np.float64)
    columns = both.columns(range(both.host.n_atoms))[1]
    np.testing.assert_allclose(both.on_device(R), columns.T @ R, atol=1e-12)
    there = both.squares()[1]
    np.testing.assert_allclose(there, both.weight @ columns**2, rtol=1e-9, atol=1e-12)


def test_columns_in_another_order_have_the_same_sums(device):
    """Hinges of single features come in the order of the features."""
    X, R = table(dtype=np.float64)[0], residual_of(400, dtype=np.float64)
    order = [3, 0, 4, 1, 2]
    pool = Hinges(1, 4, n_inputs=1)
    one, other = (both_of(pool, rows, device=device) for rows in (X, X[:, order]))
    sums, permuted = (dict(named(both, R)) for both in (one, other))
    shared = 0
    for (features, knot), found in permuted.items():
        own = sums.get(((order[features[0]],), knot))
        if own is not None:
            shared += 1
            np.testing.assert_allclose(found, own, atol=1e-12)
    assert shared >= 4 * 3  # the draw of pairs and principal directions may add others


def named(both, R):
    """Return what each hinge reads, and its sums."""
    facts = both.there.facts
    atoms = [facts.atom(number) for number in range(facts.n_atoms)]
    keys = [(atom.features, atom.knot) for atom in atoms]
    return zip(keys, both.on_device(R), strict=True)


def test_weight_2_is_the_same_row_twice(device):
    X, y = table(200, dtype=np.float64)
    weight = np.where(np.arange(200) < 50, 2.0, 1.0)
    twice = np.repeat(np.arange(200), weight.astype(int))
    pool = Hinges(4, 5, scale="std")
    one = both_of(pool, X, y, weight, device).there
    other = both_of(pool, X[twice], y[twice], None, device).there
    np.testing.assert_allclose(one.facts.knots, other.facts.knots, rtol=1e-9)
    heavy, light = (torch.as_tensor(w / 250, device=device) for w in (weight, np.ones(250)))
    np.testing.assert_allclose(one.squares(heavy).cpu(), other.squares(light).cpu(), rtol=1e-9)


def test_blocks_leave_nothing_out(device, monkeypatch):
    X, y = table(500, dtype=np.float64)
    R, pool = residual_of(500, dtype=np.float64), Hinges(7, 5)
    whole = both_of(pool, X, y, device=device)
    monkeypatch.setattr(hinges, "NUMBERS", 70)
    monkeypatch.setattr(hinges, "ENTRIES", 300)
    monkeypatch.setattr(hinge_sums, "TWIN_ROWS", 64)
    monkeypatch.setattr(hinge_sums, "TWIN_VALUES", 600)
    cut = both_of(pool, X, y, device=device)
    np.testing.assert_allclose(cut.on_device(R), whole.on_device(R), atol=1e-12)
    np.testing.assert_allclose(cut.squares()[1], whole.squares()[1], rtol=1e-9)


def test_a_far_row_does_not_blur_the_others(device):
    """Sums to both sides are exact to the size of what a hinge adds up."""
    X, y = table(400)
    X[7, 0] = -1e5
    both, R = both_of(Hinges(5, 6), X, y, device=device), residual_of(400)
    R[7] = 0.0
    sums, there = both.gradients(R)
    assert close(there, sums, size_of_terms(both, R), np.float32)


def test_rows_without_directions_have_no_sums(device):
    both = both_of(Hinges(), np.ones((20, 3)), np.arange(20) % 2, device=device)
    assert both.there.facts.n_atoms == 0
    assert both.on_device(np.ones((20, 2))).shape == (0, 2)
    assert both.there.squares(both.to(both.weight)).shape == (0,)


def test_the_same_residual_gives_the_same_bits(device):
    X, y = table(9000)
    both, R = both_of(Hinges(20), X, y, device=device), residual_of(9000)
    np.testing.assert_array_equal(both.on_device(R), both.on_device(R))


def test_directions_come_from_a_sample(device, monkeypatch):
    from laconic.pools import hinges as on_host

    monkeypatch.setattr(on_host, "SAMPLED", 90)
    X, y = table(1000)
    assert both_of(Hinges(6), X, y, device=device).same_facts()


@pytest.mark.parametrize(
    ("pool", "size"),
    [(Hinges(0), 1.0), (Hinges(n_knots=255), 1.0), (Hinges(scale="mean"), 1.0), (Hinges(), 1e303)],
)
def test_bad_input_gets_the_message_of_the_host(device, pool, size):
    X, weight = table(60, dtype=np.float64)[0] * size, np.full(60, 1 / 60)
    with pytest.raises(ValueError) as here:
        pool.bind(X, weight, Threads(1))
    there = torch.as_tensor(X, device=device), torch.as_tensor(weight, device=device)
    with pytest.raises(ValueError) as found:
        hinges.bind(pool, *there, Threads(1))
    assert str(found.value) == str(here.value)
