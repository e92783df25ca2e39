"""Patches on a device have the templates, atoms, sums and columns of those on the host."""

import numpy as np
import pytest
import torch
from on_devices import Both, close
from sklearn.datasets import load_digits

from laconic.device import patch_values, patches, value_sums
from laconic.device.patch_values import PatchValues
from laconic.model.windows import WindowMaximum
from laconic.numeric.threads import Threads
from laconic.pools import Patches

SMALL = {"n_templates": 8, "template_size": 3, "mask_grid": 3, "mask_sigma": 1.5}
STEP = {"uint8": 1.0, "float16": 2.0**-10, "float32": 2.0**-21}


def digits(n=300, dtype=np.float32):
    return load_digits(return_X_y=True)[0][:n].astype(dtype)


def residual_of(n, k=10, seed=1):
    return (np.random.default_rng(seed).standard_normal((n, k)) / n).astype(np.float32)


@pytest.mark.parametrize("storage", ["uint8", "float16", "float32"])
@pytest.mark.parametrize("scale", ["max", "std", None])
def test_everything_is_as_on_the_host(device, scale, storage):
    """A stored value may differ by one step of rounding."""
    X, weight = digits(), np.random.default_rng(0).random(300) + 0.1
    both = Both(Patches(**SMALL, scale=scale, storage=storage), X, weight, device)
    assert both.same_facts()
    here, there = both.host._stored.T.astype(float), both.there._stored[:, :300].cpu().double()
    apart = np.abs(here - there.numpy())
    assert apart.max() <= STEP[storage]
    assert (apart > (0 if storage != "float32" else STEP[storage])).mean() < 1e-3
    factors = both.host.scales(range(both.host.n_atoms))
    found = both.there.facts.scales(range(both.host.n_atoms))
    np.testing.assert_allclose(found, factors, rtol=1e-4 if scale == "std" else 1e-3)
    R = residual_of(300)
    sums, summed = both.gradients(R)
    values = both.host.columns(range(both.host.n_atoms))
    most = both.host._to_scaled()[:, None] * STEP[storage] * np.abs(R).max() * 3
    assert (np.abs(summed - sums) <= most + 1e-4 * (values.T @ np.abs(R))).all()
    np.testing.assert_allclose(*both.squares(), rtol=1e-3)
    columns, written = both.columns([5, 60, 0, 7])
    np.testing.assert_allclose(written, columns, rtol=1e-4, atol=1e-5 * columns.max())


def test_sums_are_those_of_the_stored_values(device):
    both = Both(Patches(**SMALL), digits(), device=device)
    R = residual_of(300)
    stored = both.there._stored[:, :300].cpu().double().numpy()
    steps = (both.there._to_values * both.there._factors).cpu().numpy()[:, None]
    terms = steps * (stored @ np.abs(R))
    assert close(both.on_device(R), steps * (stored @ R.astype(float)), terms, np.float32)


def test_several_sizes_and_masks_share_one_pool(device):
    pool = Patches(n_templates=6, template_size=(3, 5), mask_grid=(2, 3), mask_sigma=(1.0, np.inf))
    both = Both(pool, digits(200), device=device)
    assert both.same_facts()
    atoms = range(both.host.n_atoms)
    columns, written = both.columns(atoms)
    np.testing.assert_allclose(written, columns, rtol=1e-4, atol=1e-5)


def test_templates_of_float64_images_are_those_of_the_host(device):
    X = digits(200, np.float64) / 7 - 0.5
    both = Both(Patches(**SMALL), X, device=device)
    both.dtype = np.dtype(np.float32)  # features are computed in single precision
    assert both.same_facts()
    for here, there in zip(
        both.host._map.templates(), both.there.facts._map.templates(), strict=True
    ):
        np.testing.assert_array_equal(there, here)


def test_costs_are_those_of_the_host(device):
    both = Both(Patches(**SMALL), digits(100), device=device)
    for chosen in ([], [3, 4, 40]):
        there = both.there.facts.operations(chosen, 10)
        np.testing.assert_array_equal(there, both.host.operations(chosen, 10))


def test_blocks_of_images_leave_none_out(device, monkeypatch):
    X, R = digits(330), residual_of(330)
    whole = Both(Patches(**SMALL), X, device=device)
    monkeypatch.setattr(patches, "STORED", 100)
    monkeypatch.setattr(patches, "READ", 7)
    monkeypatch.setattr(patches, "SQUARED", (300, 50))
    monkeypatch.setattr(patch_values, "RESPONSES", 1)
    monkeypatch.setattr(value_sums, "TWIN_ROWS", 64)
    cut = Both(Patches(**SMALL), X, device=device)
    np.testing.assert_allclose(cut.on_device(R), whole.on_device(R), rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(cut.squares()[1], whole.squares()[1], rtol=1e-5)
    np.testing.assert_allclose(cut.columns([3, 0])[1], whole.columns([3, 0])[1], atol=1e-6)


@pytest.mark.parametrize("size", [1e-20, 1e20])
def test_images_of_any_size_give_the_same_sums(device, size):
    """Values are stored in units of their largest possible value."""
    R = residual_of(200)
    usual = Both(Patches(**SMALL), digits(200), device=device).on_device(R)
    other = Both(Patches(**SMALL), digits(200) * np.float32(size), device=device).on_device(R)
    np.testing.assert_allclose(other, usual, rtol=1e-2, atol=1e-2 * np.abs(usual).max())


def test_the_same_residual_gives_the_same_bits(device):
    both, R = Both(Patches(**SMALL), digits(), device=device), residual_of(300)
    np.testing.assert_array_equal(both.on_device(R), both.on_device(R))


@pytest.mark.parametrize(
    ("pool", "size"),
    [
        (Patches(**SMALL, scale="mean"), 1.0),
        (Patches(**SMALL, storage="int8"), 1.0),
        (Patches(n_templates=0), 1.0),
        (Patches(template_size=9), 1.0),
        (Patches(**SMALL), 1e35),
        (Patches(**SMALL), 1e-38),
    ],
)
def test_bad_input_gets_the_message_of_the_host(device, pool, size):
    X, weight = digits(60) * np.float32(size), np.full(60, 1 / 60)
    with pytest.raises(ValueError) as here:
        pool.bind(X, weight, Threads(1))
    there = torch.as_tensor(X, device=device), torch.as_tensor(weight, device=device)
    with pytest.raises(ValueError) as found:
        patches.bind(pool, *there, Threads(1))
    assert str(found.value) == str(here.value)


def test_values_are_those_of_the_definition(device):
    """The largest masked response, position by position, for templates with some of the masks."""
    rng = np.random.default_rng(0)
    centres = np.array([[2.0, 2.0], [4.0, 3.0], [2.0, 2.0]])
    drawn = rng.standard_normal((2, 9))
    windows = WindowMaximum((7, 6), [3, 3], drawn.ravel(), [0, 1, 1], centres, [1.0, 2.0, np.inf])
    images = rng.standard_normal((5, 7, 6))
    naive = np.zeros((3, 5))
    for column in range(3):
        mask, template = windows.mask(column), drawn[windows.template[column]].reshape(3, 3)
        for n, image in enumerate(images):
            values = [
                mask[y, x] * (image[y : y + 3, x : x + 3] * template).sum()
                for y in range(5)
                for x in range(4)
            ]
            naive[column, n] = max(0.0, *values)
    pixels = torch.as_tensor(images.reshape(5, -1).T.astype(np.float32), device=device)
    found = PatchValues(windows, device).compute(pixels).cpu().numpy()
    np.testing.assert_allclose(found, naive, rtol=1e-5, atol=1e-6)
