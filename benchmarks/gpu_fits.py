"""How fast are whole fits on a GPU?

* mnist: 60,000 digits and five deformed copies of each, 16,000 patches, 305 rounds. The clock also
  starts anew when the features are made.
* stumps: 10 million x 50, drawn on the device, 3 classes, 200 rounds.
* isolet: 190,036 products of two of 617 columns, 26 classes, 100 rounds.
* correction: 200 pixels of MNIST, 10 classes, from zero to a gradient of norm 1e-6. The peer is
  L-BFGS of torch on the same device, in float32 and float64, with several histories. One function
  computes the gradient of every solution in float64. A run of the peer counts if it reaches 1e-6;
  float32 may count as solved at the gradient that our float32 solution reaches.

Every fit runs once on small rows first, so that kernels are compiled before the clock starts. This
time is reported as the start-up. Two fits must have the same bits.

With ``--device none`` the same fits run on the processor, with ``--rounds`` rounds at most.

Run: python benchmarks/gpu_fits.py [--device cuda] [--parts mnist stumps isolet correction]
         [--rounds N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from _common import arguments, load, progress, provenance, save, table, timed, verdict
from corrector import objective

from laconic import ShareBoostClassifier
from laconic.correct import Newton
from laconic.correct.objective import Solution
from laconic.deform import Deform
from laconic.losses import LogLoss
from laconic.numeric.threads import Threads
from laconic.penalties import L2
from laconic.pools import Columns, Patches
from laconic.rows.rows import Rows, rows_in_memory

ALPHA, GRADIENT, COLUMNS = 1e-3, 1e-6, 200
HISTORIES = (10, 50, 100)
LIMITS = {"mnist": 8.0, "stumps": 30.0, "isolet": 4.0}
FASTER = 5.0


class Clock:
    """Notes the time of every entry of a path."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.times: list[float] = []

    def __call__(self, state: Any) -> None:
        """Note the time of an entry."""
        self.times.append(time.perf_counter() - self.start)


def fitted(model: Any, X: Any, y: Any, args: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """Fit a model. Return it with its times."""
    clock = Clock()
    model.set_params(callbacks=[clock], device=None if args.device == "none" else args.device)
    model.fit(X, y)
    synchronise(args)
    whole = time.perf_counter() - clock.start
    n_rounds = len(clock.times) - 1
    told = {
        "seconds": whole,
        "before the rounds": clock.times[0],
        "of the rounds": whole - clock.times[0],
        "rounds": n_rounds,
        "a round": (clock.times[-1] - clock.times[0]) / n_rounds,
        "loss": model.path_[model.n_atoms_].loss,
    }
    return model, told


def synchronise(args: argparse.Namespace) -> None:
    if args.device.startswith("cuda"):
        torch.cuda.synchronize()


def twice(
    make: Callable[[], Any], X: Any, y: Any, few: int, args: argparse.Namespace
) -> tuple[Any, dict[str, Any]]:
    """Fit small rows, then all of them, twice on a device. Return the last model and its times."""
    start = timed(fitted, make().set_params(max_atoms=3), X[:few], y[:few], args)[0]
    model, told = fitted(make(), X, y, args)
    told["start-up"] = start
    if args.device != "none":
        other, again = fitted(make(), X, y, args)
        told["seconds of all runs"] = [told["seconds"], again["seconds"]]
        told["same bits"] = bool(
            np.array_equal(model.predictor_.weights, other.predictor_.weights)
            and model.path_[model.n_atoms_].loss == other.path_[other.n_atoms_].loss
        )
    return model, told


def rounds_of(most: int, args: argparse.Namespace) -> int:
    return most if args.rounds is None else min(most, args.rounds)


def mnist(args: argparse.Namespace) -> dict[str, Any]:
    data = load(args.data, "mnist")
    X, y = (data["X_train"].reshape(60_000, -1) / np.float32(255)), data["y_train"]
    copied, (X, y) = timed(Deform(copies=5, random_state=args.seed).enlarge, X, y)
    progress(f"{len(X)} digits in {copied:.0f} s")
    pool = Patches(
        n_templates=250, template_size=(5, 7), mask_sigma=(6.0, 9.0), random_state=args.seed
    )

    def make() -> ShareBoostClassifier:
        return ShareBoostClassifier(rounds_of(305, args), pool=pool, alpha=1e-6, tol=1e-4)

    model, told = twice(make, X, y, 6000, args)
    X_test = data["X_test"].reshape(10_000, -1) / np.float32(255)
    told["test error"] = float(np.mean(model.predict(X_test) != data["y_test"]))
    return told


def drawn(n_rows: int, args: argparse.Namespace) -> tuple[Any, Any]:
    """Draw rows of 50 features in float32 on the device. 15 matter, and there are 3 classes."""
    device = "cpu" if args.device == "none" else args.device
    rng = np.random.default_rng(args.seed)
    slope, step = (torch.tensor(rng.normal(0.0, s, (3, 15)), device=device) for s in (0.4, 0.6))
    place = torch.tensor(rng.normal(0.0, 1.0, (3, 15)), device=device)
    draw = torch.Generator(device=device).manual_seed(args.seed)
    X = torch.empty((n_rows, 50), device=device)
    y = torch.empty(n_rows, dtype=torch.int64, device=device)
    for first in range(0, n_rows, 1 << 20):
        part = X[first : first + (1 << 20)]
        part.normal_(generator=draw)
        some = part[:, :15, None]
        of_class = slope.T * some + step.T * (some > place.T) + 0.4 * torch.sin(2 * some)
        noise = torch.rand((len(part), 3), generator=draw, device=device).log().neg().log().neg()
        y[first : first + (1 << 20)] = (of_class.sum(dim=1) + noise).argmax(dim=1)
    return (X.numpy(), y.numpy()) if args.device == "none" else (X, y)


def stumps(args: argparse.Namespace) -> dict[str, Any]:
    X, y = drawn(10_200_000, args)
    n = 10_000_000

    def make() -> ShareBoostClassifier:
        return ShareBoostClassifier(rounds_of(200, args), pool="stumps")

    model, told = twice(make, X[:n], y[:n], 300_000, args)
    wrong = model.predict(X[n:]) != y[n:]
    told["test error"] = float(wrong.sum()) / len(wrong)
    return told


def isolet(args: argparse.Namespace) -> dict[str, Any]:
    data = load(args.data, "isolet")
    X, y = data["X_train"].astype(np.float32), data["y_train"]

    def make() -> ShareBoostClassifier:
        return ShareBoostClassifier(rounds_of(100, args), pool="products")

    model, told = twice(make, X, y, 1000, args)
    wrong = model.predict(data["X_test"].astype(np.float32)) != data["y_test"]
    told["test error"] = float(np.mean(wrong))
    return told


def correction(args: argparse.Namespace) -> dict[str, Any]:
    data = load(args.data, "mnist")
    pixels = data["X_train"].reshape(60_000, -1)
    top = np.sort(np.argsort(pixels.var(axis=0))[-COLUMNS:])
    X, y = pixels[:, top] / 255.0, data["y_train"].astype(np.int64)
    found = {}
    for dtype in (np.float32, np.float64):
        with Threads() as threads:
            rows = rows_of(X.astype(dtype), y, threads, args)
            for _ in range(1 if args.device == "none" else 3):  # the first two compile and warm up
                seconds, solution = timed(solved, rows, args)
        found[f"Laconic, {np.dtype(dtype)}"] = {
            "seconds": seconds,
            **reached(X, y, solution.weights, rows.means),
            "evaluations": solution.certificate.evaluations,
            "products": solution.certificate.products,
        }
    if args.device != "none":
        for kind in (torch.float32, torch.float64):
            for history in HISTORIES:
                name = f"L-BFGS of torch, {str(kind)[6:]}, history {history}"
                found[name] = lbfgs(X, y, kind, history, args)
    table(
        f"60,000 x 200, 10 classes, alpha {ALPHA:g}, on {args.device}",
        ["solver", "seconds", "objective", "gradient"],
        [[name, one["seconds"], one["objective"], one["gradient"]] for name, one in found.items()],
    )
    return found


def rows_of(X: np.ndarray, y: np.ndarray, threads: Threads, args: argparse.Namespace) -> Rows:
    """Return the rows with all columns in."""
    weight, pool = np.full(len(y), 1.0 / len(y)), Columns(scale=None)
    if args.device == "none":
        bound = pool.bind(X, weight, threads)
        rows = rows_in_memory([bound], LogLoss(), y, weight, 10, threads)
    else:
        from laconic.device.pool import device_pool
        from laconic.device.shard import on_device

        there = [torch.tensor(given, device=args.device) for given in (X, y, weight)]
        own = device_pool(pool, there[0], there[2], threads)
        rows = Rows(on_device(own, LogLoss(), there[1], there[2], 10))
    rows.reset(range(COLUMNS))
    return rows


def solved(rows: Rows, args: argparse.Namespace) -> Solution:
    """Correct from zero."""
    start = np.zeros((rows.n_columns, 10))
    solution = Newton(gradient_tol=GRADIENT).solve(rows, L2(ALPHA), start)
    synchronise(args)
    return solution


def reached(X: np.ndarray, y: np.ndarray, W: np.ndarray, means: np.ndarray) -> dict[str, float]:
    """Return the objective and the norm of its gradient, in float64."""
    value, gradient = objective(X, y, W[1:], W[0] - means[1:] @ W[1:], ALPHA)
    return {"objective": value, "gradient": gradient}


def lbfgs(
    X: np.ndarray, y: np.ndarray, kind: torch.dtype, history: int, args: argparse.Namespace
) -> dict[str, Any]:
    """Minimise the same objective with torch's L-BFGS and its line search."""
    given = torch.tensor(X, dtype=kind, device=args.device)
    labels = torch.tensor(y, device=args.device)
    means = given.mean(dim=0)
    columns = given - means

    def run(most: int) -> torch.Tensor:
        W = torch.zeros((COLUMNS + 1, 10), dtype=kind, device=args.device, requires_grad=True)
        solver = torch.optim.LBFGS(
            [W], max_iter=most, history_size=history, tolerance_grad=1e-8, tolerance_change=0.0,
            line_search_fn="strong_wolfe",
        )  # fmt: skip
        norms = []

        def closure() -> torch.Tensor:
            solver.zero_grad()
            scores = torch.addmm(W[0], columns, W[1:])
            loss = torch.nn.functional.cross_entropy(scores, labels)
            loss = loss + 0.5 * ALPHA * W[1:].square().sum()
            loss.backward()
            norms.append(W.grad.norm())
            return loss

        solver.step(closure)
        W.norms = torch.stack(norms).tolist()
        return W.detach(), W.norms

    run(5)
    synchronise(args)
    norms = run(3000)[1]
    steps = next((at for at, norm in enumerate(norms, 1) if norm <= GRADIENT), len(norms))
    # A second run of as many iterations is timed, because norms are known only afterwards.
    iterations = 3000 if steps == len(norms) else max(int(steps * 0.97), 1)
    seconds, (W, _) = timed(run, iterations)
    synchronise(args)
    there = reached(X, y, W.double().cpu().numpy(), np.r_[0.0, means.double().cpu().numpy()])
    return {"seconds": seconds, "iterations": iterations, **there}


PARTS = {"mnist": mnist, "stumps": stumps, "isolet": isolet, "correction": correction}


def judge(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare with what is asked for on one H200."""
    verdicts = []
    for name, limit in LIMITS.items():
        if name in results:
            key = "of the rounds" if name == "mnist" else "seconds"
            verdicts.append(verdict(f"{name}, seconds", results[name]["found"][key], limit, False))
    if "correction" in results:
        found = results["correction"]["found"]
        ours = {name: one["seconds"] for name, one in found.items() if "Laconic" in name}
        peers = [
            one["seconds"]
            for name, one in found.items()
            if "L-BFGS" in name and one["gradient"] <= 2 * GRADIENT
        ]
        if peers:
            faster = min(peers) / min(ours.values())
            verdicts.append(verdict("correction, times faster than L-BFGS", faster, FASTER, True))
    return verdicts


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--device", default="cuda", help='"cuda", "cpu" or "none" (%(default)s)')
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rounds", type=int, help="most rounds of a fit")
    args = parser.parse_args()
    results: dict[str, Any] = {}
    if args.json is not None and args.json.exists():
        results = json.loads(args.json.read_text())["results"]
    where = torch.cuda.get_device_name(0) if args.device == "cuda" else "processor"
    for name in args.parts:
        progress(name)
        found = PARTS[name](args)
        keys = ("command", "commit", "seed", "cores")
        origin = {key: value for key, value in provenance(args, ["torch"]).items() if key in keys}
        key = name if args.device != "none" else f"{name}, processor"
        results[key] = {**origin, "device": where, "found": found}
        if name != "correction":
            table(name, list(found), [list(found.values())])
        save(args.json, args, ["torch"], results)
    if args.device != "none":
        results["verdicts"] = judge(results)
    save(args.json, args, ["torch"], results)


if __name__ == "__main__":
    main()
