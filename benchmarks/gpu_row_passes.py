"""How close do passes over the chosen columns on a device come to its memory bandwidth?

A product with the Hessian is what a correction asks for most. It is computed by a kernel that
reads the columns once, and by a product, the steps of the loss, and sums. ``question`` is a product
with the way to the device and back.

For each there is the time (median), the bytes of the columns, and their rate as a share of the rate
of a large copy (bytes read plus bytes written). The last column is the largest difference between
the kernel and the steps, relative to the largest sum.

Run: python benchmarks/gpu_row_passes.py [--device cuda] [--only 60000x200x10] [--json FILE]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from _common import arguments, progress, save, table
from gpu_kernels import COPIED, Device, describe

from laconic.device.row_passes import OTHERS, TILES, RowPass
from laconic.device.store import CodedStore, DeviceStore
from laconic.device.triton_or_twin import has_triton
from laconic.losses import LogLoss

# Rows, columns, outputs, and whether columns are 0 and 1.
SHAPES = {
    "60000x200x10": (60_000, 200, 10, False),
    "360000x305x10": (360_000, 305, 10, False),
    "10000000x200x3": (10_000_000, 200, 3, True),
}
SMALL = {"1000x20x3": (1_000, 20, 3, False), "1000x20x3 of 0 and 1": (1_000, 20, 3, True)}


def ways(device: Device, shape: tuple[int, int, int, bool]) -> dict[str, Callable[[], Any]]:
    """Return the ways to compute a product, and the other passes of a fit."""
    n_rows, n, k, binary = shape
    weight = torch.full((n_rows,), 1.0 / n_rows, device=device.name)
    kernels = has_triton(weight)
    store: DeviceStore = CodedStore(weight) if binary and kernels else DeviceStore(weight)
    for first in range(n):
        column = device.uniform(1, n_rows)
        column = (column > 0.5).float() if binary else column
        store.put(first, column, torch.full((1,), 0.5, dtype=torch.float64, device=device.name))
    loss, weights = LogLoss(), device.uniform(k, n) - 0.5
    target = loss.targets((k * device.uniform(n_rows)).long(), k)
    state = torch.empty(k, n_rows, device=device.name)
    loss.evaluate(store.product(weights), target, weight, state)

    def plain() -> torch.Tensor:
        return store.sums(loss.curve(weight, state, store.product(weights)), n)

    def evaluate() -> torch.Tensor:
        loss.evaluate(store.product(weights), target, weight, state)
        return store.sums(loss.residual(target, weight, state), n)

    def question() -> np.ndarray:
        given = torch.from_numpy(weights_here).to(device.name)
        return store.curve(loss, weight, state, given).cpu().numpy()

    weights_here = weights.cpu().numpy()
    found: dict[str, Callable[[], Any]] = {
        "product, sums": plain,
        "product": lambda: store.product(weights),
        "sums": lambda: store.sums(state, n),
        "evaluate": evaluate,
        "question": question,
    }
    if kernels:
        read = store._read(n)
        for tile in (TILES[read.room.element_size()], *OTHERS[read.room.element_size()]):
            own: RowPass = read._replace(tile=tile)
            name = "/".join(map(str, tile))
            found[f"kernel, {name}"] = lambda own=own: own.bent(weights, state, weight, True)
            found[f"kernel's product, {name}"] = lambda own=own: own.product(weights)
            found[f"kernel's sums, {name}"] = lambda own=own: own.sums(state)
    return found


def main() -> None:
    """Measure every way for every shape."""
    parser = arguments(__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", nargs="*", help="some of the shapes")
    parser.add_argument("--small", action="store_true", help="tiny shapes")
    parser.add_argument("--repeats", type=int, default=20)
    args = parser.parse_args()
    device = Device(args.device, args.seed)
    speed = device.bandwidth(1 << 20 if args.small else COPIED, args.repeats)
    results: dict[str, Any] = {"device": describe(device), "copy": speed}
    for name, shape in (SMALL if args.small else SHAPES).items():
        if args.only and name not in args.only:
            continue
        progress(name)
        made = ways(device, shape)
        exact = made["product, sums"]().double()
        for way, compute in made.items():
            times = [device.seconds(compute) for _ in range(args.repeats + 1)]
            found = torch.as_tensor(compute()).to(exact.device)
            error = None
            if found.shape == exact.shape and way.split(",")[0] in ("kernel", "question"):
                error = float((found - exact).abs().max() / exact.abs().max())
            n_bytes = shape[0] * shape[1] * (1 if shape[3] else 4)
            results[f"{name}, {way}"] = {
                "seconds": float(np.median(times[1:])), "bytes": n_bytes, "error": error,
            }  # fmt: skip
    table(
        f"passes over columns on {results['device']}; a copy moves {speed / 1e12:.3f} TB/s",
        ["pass", "ms", "GB", "share of copy, read once", "against two products"],
        [
            [
                name,
                1e3 * r["seconds"],
                r["bytes"] / 1e9,
                r["bytes"] / r["seconds"] / speed,
                "" if r["error"] is None else f"{r['error']:.1e}",
            ]
            for name, r in results.items()
            if isinstance(r, dict)
        ],
    )
    save(args.json, args, ["torch"], results)


if __name__ == "__main__":
    main()
