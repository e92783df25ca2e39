"""How close do the selection passes on a device come to its memory bandwidth?

Five passes are measured: stored patches, codes of stumps, projections of hinges, products of two
columns, and columns. For each there is the time (median of several passes with new residuals), the
bytes that it must read, and their rate as a share of the rate of a large copy (bytes read plus
bytes written). The largest error of some sums is relative to the largest sum, against float64 on
the same rows. Two passes over the same numbers must give the same bits. The naive rows show what a
few lines of torch take.

The values of patches are measured apart: all patches on some images, and one patch on all.

``--small`` runs tiny shapes, on any device. Triton's interpreter runs the kernels on the processor
if TRITON_INTERPRET=1 is set.

Run: python benchmarks/gpu_kernels.py [--device cuda] [--only patches stumps] [--json FILE]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from _common import arguments, progress, save, table

from laconic.device import code_sums, hinge_sums, value_sums
from laconic.device.block_sums import block_sums
from laconic.device.patch_values import PatchValues
from laconic.device.products import DeviceProducts
from laconic.model.windows import WindowMaximum
from laconic.pools.templates import mask_centres

SIZES = {
    "patches": {"rows": 360_000, "atoms": 16_000, "outputs": 10},
    "stumps": {"rows": 10_000_000, "features": 50, "outputs": 3},
    "hinges": {"rows": 1_000_000, "directions": 250, "knots": 15, "outputs": 10},
    "products": {"rows": 6_238, "features": 617, "outputs": 26},
    "columns": {"rows": 10_000_000, "features": 50, "outputs": 3},
    "features": {"rows": 360_000, "some": 4_096, "templates": 1_000},
}
SMALL = {
    "patches": {"rows": 1_000, "atoms": 70, "outputs": 10},
    "stumps": {"rows": 1_000, "features": 3, "outputs": 3},
    "hinges": {"rows": 1_000, "directions": 5, "knots": 15, "outputs": 3},
    "products": {"rows": 500, "features": 20, "outputs": 4},
    "columns": {"rows": 3_000, "features": 7, "outputs": 3},
    "features": {"rows": 300, "some": 200, "templates": 5},
}
COPIED = 1 << 32
# Number of atoms whose sums are compared with float64.
COMPARED = 64


class Pass(NamedTuple):
    """One way to make a selection pass."""

    name: str
    sums: Callable[[torch.Tensor], torch.Tensor]
    n_bytes: float
    exact: Callable[[torch.Tensor], torch.Tensor]
    """The first sums of a residual in float64."""
    naive: bool = False


class Device:
    """Clocks and random numbers of a device."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.cuda = name.startswith("cuda")
        self.random = torch.Generator(name).manual_seed(seed)

    def seconds(self, action: Callable[[], Any]) -> float:
        """Return the seconds of one call."""
        if not self.cuda:
            start = time.perf_counter()
            action()
            return time.perf_counter() - start
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        action()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3

    def uniform(self, *shape: int) -> torch.Tensor:
        """Return random numbers from 0 to 1 in float32."""
        return torch.rand(shape, generator=self.random, device=self.name)

    def residual(self, k: int, n: int) -> torch.Tensor:
        """Return a residual of n rows of equal weight."""
        return (self.uniform(k, n) - 0.5) / n

    def bandwidth(self, n_bytes: int, repeats: int) -> float:
        """Return the bytes read and written per second by a copy."""
        source = torch.zeros(n_bytes, dtype=torch.uint8, device=self.name)
        target = torch.empty_like(source)
        times = [self.seconds(lambda: target.copy_(source)) for _ in range(repeats + 1)]
        return 2 * n_bytes / float(np.median(times[1:]))


def patches(device: Device, rows: int, atoms: int, outputs: int) -> Iterator[Pass]:
    """Yield passes over stored patches."""
    n_padded = value_sums.padded(rows, value_sums.ALIGNED)
    for size, dtype in ((2, torch.float16), (1, torch.int8)):
        values = torch.zeros(atoms, n_padded, dtype=dtype, device=device.name)
        for some in values.split(500):
            drawn = device.uniform(len(some), rows)
            some[:, :rows] = drawn if size == 2 else (255 * drawn).round_() - 128
        n_bytes = atoms * rows * size

        def exact(R: torch.Tensor, values: torch.Tensor = values) -> torch.Tensor:
            held = values[:COMPARED, :rows].double() + value_sums.shift_of(values)
            return held @ R.double().T

        def naive(R: torch.Tensor, values: torch.Tensor = values) -> torch.Tensor:
            total = torch.zeros(atoms, outputs, device=device.name)
            for start in range(0, rows, 8192):
                some = slice(start, min(start + 8192, rows))
                half = (R[:, some] * rows).half()
                held = values[:, some].half() + value_sums.shift_of(values)
                total += (held @ half.T).float()
            return total.double() / rows

        tiles = (value_sums.TILES[size], *value_sums.OTHERS[size])
        for tile in tiles if value_sums.has_triton(values) else tiles[:1]:
            name = f"patches, {_name(dtype)}, {'/'.join(map(str, tile))}"
            yield Pass(
                name,
                lambda R, values=values, tile=tile: value_sums.value_sums(values, R, tile),
                n_bytes,
                exact,
            )
        yield Pass(f"patches, {_name(dtype)}, half products", naive, n_bytes, exact, True)
        del values, exact, naive


def stumps(device: Device, rows: int, features: int, outputs: int) -> Iterator[Pass]:
    """Yield passes over codes of stumps."""
    n_padded = code_sums.padded(rows, code_sums.ALIGNED)
    codes = torch.zeros(features, n_padded, dtype=torch.uint8, device=device.name)
    for line in codes:
        line[:rows] = (255 * device.uniform(rows)).to(torch.uint8)
    n_bytes = features * rows + 4 * rows * outputs

    def exact(R: torch.Tensor) -> torch.Tensor:
        by_code = codes[0, :rows].int() == torch.arange(256, device=device.name)[:COMPARED, None]
        return torch.stack([line.double() @ R.double().T for line in by_code])

    def naive(R: torch.Tensor) -> torch.Tensor:
        sums = torch.zeros(features, 256, outputs, device=device.name)
        for line, out in zip(codes, sums, strict=True):
            out.index_add_(0, line[:rows].int(), R.T)
        return sums.double().view(-1, outputs)

    tiles = (code_sums.TILE, *code_sums.OTHERS)
    for tile in tiles if code_sums.has_triton(codes) else tiles[:1]:
        yield Pass(
            f"stumps, {'/'.join(map(str, tile))}",
            lambda R, tile=tile: code_sums.code_sums(codes, R, tile).view(-1, outputs),
            n_bytes,
            exact,
        )
    yield Pass("stumps, index_add_", naive, n_bytes, exact, True)


def hinges(device: Device, rows: int, directions: int, knots: int, outputs: int) -> Iterator[Pass]:
    """Yield passes over projections of hinges."""
    n_padded = hinge_sums.padded(rows, hinge_sums.ALIGNED)
    heights = torch.zeros(directions, n_padded, device=device.name)
    for line in heights:
        line[:rows] = 6.0 * device.uniform(rows) - 3.0
    some = torch.linspace(-3, 3, knots + 1, device=device.name)[:-1]
    given = hinge_sums.Projections(heights, some.repeat(directions, 1), heights.abs().amax(dim=1))
    n_bytes = 4 * directions * rows + 4 * rows * outputs

    def exact(R: torch.Tensor) -> torch.Tensor:
        u = heights[0, :rows].double()
        above = [(u - knot.double()).clamp(min=0.0) for knot in some]
        return torch.stack([u, *above]) @ R.double().T

    tiles = (hinge_sums.TILE, *hinge_sums.OTHERS)
    for tile in tiles if hinge_sums.has_triton(heights) else tiles[:1]:
        yield Pass(
            f"hinges, {'/'.join(map(str, tile))}",
            lambda R, tile=tile: hinge_sums.hinge_sums(given, R, tile).view(-1, outputs),
            n_bytes,
            exact,
        )
    yield Pass(
        "hinges, written down",
        lambda R: hinge_sums.twin(given, R).view(-1, outputs),
        n_bytes,
        exact,
        True,
    )


def products(device: Device, rows: int, features: int, outputs: int) -> Iterator[Pass]:
    """Yield passes over products of two columns."""
    from laconic.numeric.threads import Threads
    from laconic.pools import Products

    X = device.uniform(rows, features) - 0.5
    weight = torch.full((rows,), 1.0 / rows, dtype=torch.float64, device=device.name)
    bound = DeviceProducts(Products(None), X, weight, Threads(1))

    def sums(R: torch.Tensor) -> torch.Tensor:
        return torch.cat([block for _, block in bound.gradients(R)])

    def exact(R: torch.Tensor) -> torch.Tensor:
        first, others = X[:, :1].double(), X[:, 1 : COMPARED + 1].double()
        return (first * others).T @ R.double().T

    def naive(R: torch.Tensor) -> torch.Tensor:
        i, j = torch.triu_indices(features, features, 1, device=device.name)
        return torch.stack([((X.T * r) @ X)[i, j] for r in R], dim=1).double()

    n_bytes = 4 * rows * features + 4 * rows * outputs + 8 * outputs * bound.facts.n_atoms
    yield Pass("products", sums, n_bytes, exact)
    yield Pass("products, one output at a time", naive, n_bytes, exact, True)


def columns(device: Device, rows: int, features: int, outputs: int) -> Iterator[Pass]:
    """Yield passes over columns, with rows or columns contiguous in memory."""
    for order in "CF":
        X = device.uniform(rows, features) if order == "C" else device.uniform(features, rows).T
        n_bytes = 4 * rows * (features + outputs)

        def exact(R: torch.Tensor, X: torch.Tensor = X) -> torch.Tensor:
            return X[:, :COMPARED].double().T @ R.double().T

        yield Pass(f"columns, {order}", lambda R, X=X: block_sums(X, R), n_bytes, exact)
        yield Pass(
            f"columns, {order}, one product",
            lambda R, X=X: (R @ X).T.double(),
            n_bytes,
            exact,
            True,
        )


def features(device: Device, rows: int, some: int, templates: int) -> dict[str, Any]:
    """Return the seconds of the values of all patches on some images, and of one patch on all."""
    shape, size = (28, 28), 7
    centres = mask_centres(shape, size, (4, 4))
    drawn = np.random.default_rng(0).standard_normal((templates, size * size))
    windows = WindowMaximum(
        shape,
        np.full(templates, size),
        drawn.ravel(),
        np.repeat(np.arange(templates), len(centres)),
        np.tile(centres, (templates, 1)),
        np.full(templates * len(centres), 4.5),
    )
    pixels = device.uniform(shape[0] * shape[1], rows)
    every = PatchValues(windows, device.name)
    only = WindowMaximum(shape, [size], drawn[0], [0], centres[5:6], [4.5])
    one = PatchValues(only, device.name)
    few = pixels[:, :some].contiguous()
    exact = windows.columns(few[:, :64].T.cpu().numpy())
    found = every.compute(few)[:, :64].T.cpu().numpy()
    column = only.columns(pixels[:, :64].T.cpu().numpy())[:, 0]
    of_one = one.compute(pixels)[0, :64].cpu().numpy()
    actions = {
        f"{windows.n_columns} patches of {some} images": (lambda: every.compute(few), exact, found),
        f"one patch of {rows} images": (lambda: one.compute(pixels), column, of_one),
    }
    return {
        name: {
            "seconds": float(np.median([device.seconds(action) for _ in range(3)])),
            "error": float(np.abs(there - here).max() / np.abs(here).max()),
        }
        for name, (action, here, there) in actions.items()
    }


def measure(device: Device, one: Pass, k: int, n: int, repeats: int) -> dict[str, Any]:
    """Return what is measured of one pass."""
    R = device.residual(k, n)
    found = one.sums(R)  # compiles
    again = one.sums(R)
    exact = one.exact(R)
    error = float((found[: len(exact)] - exact).abs().max() / exact.abs().max())
    times = []
    for _ in range(repeats):
        other = device.residual(k, n)
        times.append(device.seconds(lambda other=other: one.sums(other)))
    return {
        "seconds": float(np.median(times)),
        "bytes": one.n_bytes,
        "error": error,
        "same bits": bool(torch.equal(found, again)),
        "naive": one.naive,
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="tiny shapes, to try the benchmark")
    parser.add_argument("--only", nargs="*", choices=SIZES, default=list(SIZES))
    parser.add_argument("--repeats", type=int, default=9)
    args = parser.parse_args()
    device = Device(args.device, args.seed)
    speed = device.bandwidth(1 << 24 if args.small else COPIED, args.repeats)
    results: dict[str, Any] = {"device": describe(device), "copy": speed}
    for name in args.only:
        shape = (SMALL if args.small else SIZES)[name]
        if name == "features":
            results[name] = features(device, **shape)
            continue
        for one in globals()[name](device, **shape):
            try:
                results[one.name] = measure(
                    device, one, shape["outputs"], shape["rows"], args.repeats
                )
            except Exception as reason:  # another tile may fit where this one does not
                results[one.name] = {"failed": f"{type(reason).__name__}: {reason}"[:300]}
                progress(f"{one.name}: {results[one.name]['failed']}")
                continue
            progress(f"{one.name}: {1e3 * results[one.name]['seconds']:.3f} ms")
        if device.cuda:
            torch.cuda.empty_cache()
    table(
        f"selection passes on {results['device']}; a copy moves {speed / 1e12:.3f} TB/s",
        ["pass", "ms", "GB", "share of copy", "error", "same bits"],
        [
            [
                name,
                1e3 * r["seconds"],
                r["bytes"] / 1e9,
                r["bytes"] / r["seconds"] / speed,
                f"{r['error']:.1e}",
                "yes" if r["same bits"] else "NO",
            ]
            for name, r in results.items()
            if isinstance(r, dict) and "seconds" in r
        ],
    )
    table(
        "values of patches",
        ["values", "ms", "error"],
        [
            [name, 1e3 * r["seconds"], f"{r['error']:.1e}"]
            for name, r in results.get("features", {}).items()
        ],
    )
    save(args.json, args, ["torch"], results)


def describe(device: Device) -> str:
    """Return the name of the device."""
    return torch.cuda.get_device_name() if device.cuda else "processor"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


if __name__ == "__main__":
    main()
