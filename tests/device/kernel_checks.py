"""Every Triton kernel against its twin in plain torch. `test_kernels` runs this in the interpreter.

The interpreter must be chosen before Triton is imported, so it has a process of its own:
``TRITON_INTERPRET=1 python kernel_checks.py`` prints a line for every check. On a GPU the same
checks run compiled.
"""

import sys
import traceback

import numpy as np
import torch

from laconic.device import code_sums, hinge_sums, patch_values, row_passes, value_sums
from laconic.device.code_sums import CodeTile
from laconic.device.hinge_sums import Projections
from laconic.device.patch_values import PatchValues
from laconic.device.row_passes import ALIGNED, RowPass, RowTile
from laconic.device.triton_or_twin import padded
from laconic.device.value_sums import Tile
from laconic.model.windows import WindowMaximum

# Small chunks, so that a few rows are cut into several.
SMALL_TILES = (Tile(64, 64, 256, 4, 2), Tile(64, 128, 512, 4, 3), Tile(128, 64, 1024, 8, 3))
SMALL_CODES = (
    CodeTile(64, 64, 256, 4, 2),
    CodeTile(64, 128, 512, 4, 3),
    CodeTile(128, 64, 8192, 4, 1),
    CodeTile(32, 64, 512, 2, 3),
)


def stored(dtype, atoms, n, seed=0):
    """Draw stored values, with rows padded by zeros."""
    rng = np.random.default_rng(seed)
    values = torch.zeros(atoms, value_sums.padded(n, value_sums.ALIGNED), dtype=dtype)
    drawn = rng.integers(-128, 128, (atoms, n)) if dtype == torch.int8 else rng.random((atoms, n))
    values[:, :n] = torch.as_tensor(drawn).to(dtype)
    return values


def residual(k, n, dtype=np.float32, seed=1):
    """Draw outputs of very different sizes, and one that is zero."""
    rng = np.random.default_rng(seed)
    drawn = rng.standard_normal((k, n)) * 10.0 ** np.linspace(-30, 30, k)[:, None]
    drawn[k // 2] *= k == 1
    return torch.as_tensor(drawn.astype(dtype))


def agree(found, exact, terms, rounding):
    """Whether sums differ by rounding from exact sums of terms of this size."""
    return bool(((found - exact).abs() <= rounding * terms + 1e-300).all())


def check_values(device):
    """Sums of stored values, for atoms and rows that fill no whole tile."""
    for dtype in (torch.int8, torch.float16):
        for atoms, n, k in ((1, 1, 1), (70, 300, 3), (130, 1000, 10), (64, 512, 40)):
            values, R = stored(dtype, atoms, n).to(device), residual(k, n).to(device)
            held = values[:, :n].double() + value_sums.shift_of(values)
            exact, terms = held @ R.double().T, held @ R.double().abs().T
            assert agree(value_sums.twin(values, R), exact, terms, 1e-6)
            for tile in SMALL_TILES:
                found = value_sums.value_sums(values, R, tile)
                assert found.dtype == torch.float64
                assert agree(found, exact, terms, 1e-6), (dtype, atoms, n, k, tile)
            assert torch.equal(found, value_sums.value_sums(values, R, tile))


def check_codes(device):
    """Sums by code, in either precision, for rows that fill no whole tile."""
    rng = np.random.default_rng(0)
    for features, n, k in ((1, 1, 1), (3, 300, 3), (2, 1000, 20)):
        padded = code_sums.padded(n, code_sums.ALIGNED)
        codes = torch.as_tensor(rng.integers(0, 256, (features, padded), dtype=np.uint8))
        codes = codes.to(device)
        for dtype in (np.float32, np.float64):
            R = residual(k, n, dtype).to(device)
            exact = code_sums.twin(codes, R)
            terms = code_sums.twin(codes, R.abs())
            for tile in SMALL_CODES:
                found = code_sums.code_sums(codes, R, tile)
                assert found.shape == (features, 256, k)
                assert agree(found, exact, terms, 1e-6), (features, n, k, dtype, tile)
            assert torch.equal(found, code_sums.code_sums(codes, R, tile))


def projections(directions, knots, n, seed=0):
    """Draw projections around zero and around 50, and knots among them."""
    rng = np.random.default_rng(seed)
    heights = torch.zeros(directions, padded(n, hinge_sums.ALIGNED))
    heights[:, :n] = torch.as_tensor(rng.standard_normal((directions, n)))
    heights[::3, :n] += 50.0
    drawn = rng.integers(0, n, (directions, knots))
    chosen = heights.gather(1, torch.as_tensor(drawn)).sort(dim=1).values
    return Projections(heights, chosen, heights.abs().amax(dim=1))


def check_hinges(device):
    """Sums of hinges, for knots and rows that fill no whole tile."""
    tiles = (*SMALL_TILES[:2], Tile(16, 128, 512, 4, 2))
    for directions, knots, n, k in ((1, 1, 1, 1), (5, 7, 300, 3), (3, 40, 700, 20)):
        given = Projections(*(part.to(device) for part in projections(directions, knots, n)))
        R = residual(k, n).to(device)
        u = given.heights[:, None, :n].double()
        above = (u - given.knots[:, :, None]).clamp(min=0.0)
        values = torch.cat([u, above], dim=1)
        exact, terms = values @ R.double().T, values.abs() @ R.double().abs().T
        assert agree(hinge_sums.twin(given, R), exact, terms, 1e-6)
        for tile in tiles:
            found = hinge_sums.hinge_sums(given, R, tile)
            assert found.dtype == torch.float64
            assert agree(found, exact, terms, 1e-6), (directions, knots, n, k, tile)
        assert torch.equal(found, hinge_sums.hinge_sums(given, R, tile))


def check_waiting(device):
    """A few chunks of rows at a time give the same bits as all at once."""
    rng = np.random.default_rng(0)
    codes = torch.as_tensor(rng.integers(0, 256, (2, 1024), dtype=np.uint8)).to(device)
    R, tile = residual(3, 1024).to(device), SMALL_CODES[0]
    usual, at_once = code_sums.WAITING, code_sums.code_sums(codes, R, tile)
    code_sums.WAITING = 2 * 4 * 2 * 256 * 8
    try:
        assert agree(code_sums.code_sums(codes, R, tile), at_once, at_once.abs(), 1e-15)
    finally:
        code_sums.WAITING = usual


def check_passes_over_rows(device):
    """Products, sums and bent scores of stored columns, for rows that fill no whole tile."""
    rng = np.random.default_rng(3)
    for n, n_rows, k in ((1, 5, 1), (40, 300, 3), (33, 700, 10), (7, 256, 20)):
        room = torch.zeros(n + 2, padded(n_rows, ALIGNED))
        codes = room.to(torch.uint8)
        room[:, :n_rows] = torch.as_tensor(rng.standard_normal((n + 2, n_rows)))
        codes[:, :n_rows] = torch.as_tensor(rng.integers(0, 2, (n + 2, n_rows)))
        shifts = torch.as_tensor(rng.random(n + 2))
        weights = torch.as_tensor(rng.standard_normal((k, n)).astype(np.float32))
        bend = torch.as_tensor(rng.dirichlet(np.ones(k), n_rows).T.astype(np.float32).copy())
        weight = torch.as_tensor((rng.random(n_rows) / n_rows).astype(np.float32))
        room, codes, shifts, weights, bend, weight = (
            given.to(device) for given in (room, codes, shifts, weights, bend, weight)
        )
        for tile in (RowTile(128, 32, 4, 3), RowTile(256, 16, 4, 2)):
            for read, X in (
                (RowPass(room, n, n_rows, None, tile), room[:n, :n_rows].double()),
                (RowPass(codes, n, n_rows, shifts, tile),
                 codes[:n, :n_rows].double() - shifts[:n, None]),
            ):  # fmt: skip
                assert_passes(read, X, weights, bend, weight)


def assert_passes(read, X, weights, bend, weight):
    """The passes agree with double precision, and two of them have the same bits."""
    V, rho, w = weights.double(), bend.double(), weight.double()
    scores = V @ X
    assert agree(read.product(weights), scores, V.abs() @ X.abs() + V.abs().sum(), 2e-6)
    sums = read.sums(bend)
    assert sums.dtype == torch.float64
    assert agree(sums, X @ rho.T, X.abs() @ rho.T + rho.sum(1), 2e-6)
    for centres in (False, True):
        middle = (rho * scores).sum(0) if centres else 0.0
        bent = rho * (scores - middle) * w
        found = read.bent(weights, bend, weight, centres)
        size = (X.abs().amax() + 1.0) * (rho * scores.abs().amax() * w).sum(1).amax()
        assert agree(found, X @ bent.T, size, 1e-5)
        assert torch.equal(found, read.bent(weights, bend, weight, centres))


def few_windows():
    """Templates of two sizes with some of three masks. The last column is one of the others."""
    rng = np.random.default_rng(0)
    size = np.array([3, 3, 3, 3, 3, 2])
    template = np.array([0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5, 1])
    places = np.array([[2.0, 2.0], [4.0, 3.0], [3.0, 1.0]])
    mask = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 1])
    sigma = np.array([1.0, 1.5, np.inf])[mask]
    drawn = rng.standard_normal(int((size**2).sum()))
    return WindowMaximum((7, 6), size, drawn, template, places[mask], sigma)


def check_maxima(device):
    """Largest masked responses, of all atoms together and of each by itself."""
    windows = few_windows()
    images = np.random.default_rng(1).standard_normal((150, 42)).astype(np.float32)
    exact = torch.as_tensor(windows.columns(images).T)
    every = PatchValues(windows, device)
    pixels = torch.as_tensor(images.T.copy()).to(device)
    usual = patch_values.MANY
    try:
        for many in (0, 1000):  # with few atoms for a template, each is computed by itself
            patch_values.MANY = many
            found = every.compute(pixels[:, 9:]).cpu()
            assert agree(found, exact[:, 9:], exact.abs().max(), 1e-6), many
    finally:
        patch_values.MANY = usual


def check_stumps(device):
    """The pool of stumps is the same with kernels as on the host."""
    from on_devices import Both

    from laconic.pools import Stumps

    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 3)).astype(np.float32)
    X[::5, 1] = np.nan
    both = Both(Stumps(), X, rng.random(700) + 0.1, device)
    sums, there = both.gradients((rng.standard_normal((700, 3)) / 700).astype(np.float32))
    np.testing.assert_allclose(there, sums, rtol=0, atol=1e-6 * np.abs(sums).max())
    here, there = both.squares()
    np.testing.assert_allclose(there, here, rtol=1e-6)


def check_pool_of_hinges(device):
    """The pool of hinges is the same with kernels as on the host."""
    from on_devices import Both

    from laconic.pools import Hinges

    rng = np.random.default_rng(0)
    X = rng.normal([0, 9, -9], 1, (300, 3)).astype(np.float32)
    both = Both(Hinges(4, 5), X, rng.random(300) + 0.1, device, y=(X[:, 0] > 0).astype(np.int64))
    sums, there = both.gradients((rng.standard_normal((300, 3)) / 300).astype(np.float32))
    np.testing.assert_allclose(there, sums, rtol=0, atol=1e-6 * np.abs(sums).max())


def check_patches(device):
    """The pool of patches is the same with kernels as on the host."""
    from on_devices import Both
    from sklearn.datasets import load_digits

    from laconic.pools import Patches

    X = load_digits(return_X_y=True)[0][:150].astype(np.float32)
    for storage in ("uint8", "float16"):
        pool = Patches(n_templates=4, template_size=3, mask_grid=3, mask_sigma=1.5, storage=storage)
        both = Both(pool, X, device=device)
        R = np.random.default_rng(0).standard_normal((150, 10)).astype(np.float32) / 150
        sums, there = both.gradients(R)
        np.testing.assert_allclose(there, sums, rtol=0, atol=1e-3 * np.abs(sums).max())
        columns, there = both.columns([5, 0])
        np.testing.assert_allclose(there, columns, rtol=0, atol=1e-5)


def check_places(device):
    """Every kernel is launched on the device of its tensors, whatever the current one is."""
    from unittest import mock

    checks = {
        value_sums: check_values,
        code_sums: check_waiting,
        hinge_sums: check_hinges,
        patch_values: check_maxima,
        row_passes: check_passes_over_rows,
    }
    for module, check in checks.items():
        with mock.patch.object(module, "launched_at", side_effect=module.launched_at) as asked:
            check(device)
        places = {given.args[0].device for given in asked.call_args_list}
        assert {place.type for place in places} == {torch.device(device).type}, module


CHECKS = {name[6:]: check for name, check in globals().items() if name.startswith("check_")}


if __name__ == "__main__":
    for name, check in CHECKS.items():
        try:
            check("cpu")
            print(f"{name}: passed", flush=True)
        except Exception:
            print(f"{name}: {traceback.format_exc()}", file=sys.stdout, flush=True)
