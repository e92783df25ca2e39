"""What does a Dask cluster cost beside one memory, and what happens when a worker dies?

Rows are drawn in float32: 50 features, of which 15 matter, and 3 classes. ShareBoost chooses 20
columns or 20 stumps. A fit in one memory with 1 and 2 threads is compared with clusters of 1, 2 and
4 worker processes of one thread each on this machine. Workers made their rows before the clock
starts, and a small fit has loaded all kernels. The overhead is the time of the cluster with 2
processes divided by the time of 2 threads in one memory.

An exchange without work is timed for several numbers of partitions: a fit of 100 rows a partition.
Exchanges and bytes are counted for 20,000 rows x 1,000 features and 5 classes, in 8 partitions.

Peers are xgboost.dask with trees of depth 1 and LightGBM's Dask interface with trees of two leaves.
Their learning rate is the faster one of 0.3 and 1.0. The target is the test error of `ROUNDS`
stumps of Laconic. A first fit tells how many rounds a peer needs for it, and a second fit of so
many rounds is timed. Then a worker is killed in the middle of a fit of every library.

Every fit runs in a process of its own with two processes as workers.

With --json, every part is written when it ends. Parts that are in the file and are not asked for
again stay there. Each has its own command and commit.

Run: python benchmarks/dask_scaling.py [--parts exchange counted overhead peers killed]
         [--rows 1000000 ...] [--pools columns ...] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _common import arguments, progress, provenance, save, show, table, verdict

ATOMS, ROUNDS, MOST = 20, 40, 400
RATES = (0.3, 1.0)
PARTS = ["exchange", "counted", "overhead", "peers", "killed"]
PEERS = ("dask", "distributed", "xgboost", "lightgbm")
LIMIT = 600
"""Seconds after which a run counts as hanging."""


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--parts", nargs="+", default=PARTS)
    parser.add_argument("--rows", nargs="+", type=int, default=[1_000_000, 10_000_000, 30_000_000])
    parser.add_argument("--pools", nargs="+", default=["columns", "stumps"])
    parser.add_argument("--peer-rows", type=int, default=1_000_000)
    args = parser.parse_args()
    results: dict[str, Any] = {}
    if args.json is not None and args.json.exists():
        results = json.loads(args.json.read_text())["results"]
    measures: dict[str, Any] = {
        "exchange": partial(exchanges, args.seed),
        "counted": partial(counted, args.seed),
    } | {
        f"{pool}, {rows} rows": partial(overhead, args.seed, pool, rows)
        for rows in args.rows
        for pool in args.pools
    }
    measures["peers"] = partial(peers, args.seed, args.peer_rows)
    measures["killed"] = partial(killed, args.seed, args.peer_rows)
    for name, measure in measures.items():
        if ("overhead" if " rows" in name else name) in args.parts:
            results[name] = {**origin(args), "found": measure()}
            save(args.json, args, PEERS, results)
    results["verdicts"] = judge(results)
    save(args.json, args, PEERS, results)


def origin(args: argparse.Namespace) -> dict[str, Any]:
    """Return where the results of a part come from."""
    whole = provenance(args, PEERS)
    return {key: whole[key] for key in ("command", "commit", "seed", "cores")}


def run(limit: float = 3600, **options: Any) -> dict[str, Any]:
    """Run one measure in a process of its own. Return what it tells."""
    script = Path(__file__).with_name("_dask_runs.py")
    command = [sys.executable, str(script), json.dumps(options)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"outcome": f"no end after {limit:.0f} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return {"outcome": f"failed: {done.stderr.strip()[-300:]}"}
    told: dict[str, Any] = json.loads(lines[-1])
    return told


def exchanges(seed: int) -> dict[str, Any]:
    """Return the time of an exchange without work, as a + b times the number of partitions."""
    numbers = (2, 8, 32, 128)
    found = {p: run(run="exchange", seed=seed, processes=2, partitions=p) for p in numbers}
    each = [found[p]["each"] for p in numbers]
    slope, start = np.polyfit(numbers, each, 1)
    table(
        f"An exchange takes {1e3 * start:.1f} ms + {1e3 * slope:.2f} ms a partition",
        ["partitions", "ms"],
        [[p, 1e3 * one["each"]] for p, one in found.items()],
    )
    return {"fits": found, "start": start, "a_partition": slope}


def counted(seed: int) -> dict[str, Any]:
    """Return the exchanges and bytes of fits of `ROUNDS` rounds."""
    found = run(run="counted", seed=seed, atoms=ROUNDS)
    table(
        f"Exchanges of {ROUNDS} rounds, 20,000 x 1,000, 5 classes (TotalQBoost: 2 classes)",
        ["fit", "exchanges a round", "MB sent", "MB received"],
        [[name, one["exchanges_a_round"], one["sent"] / 1e6, one["received"] / 1e6]
         for name, one in found.items()],
    )  # fmt: skip
    return found


def overhead(seed: int, pool: str, rows: int) -> dict[str, Any]:
    """Return the times of one pool and number of rows, in one memory and on clusters."""
    common = {"seed": seed, "pool": pool, "rows": rows, "size": rows // 8, "atoms": ATOMS}
    large = rows > 20_000_000  # takes so long that only two processes are compared
    found = {}
    for threads in (2,) if large else (1, 2):
        found[f"memory, {threads}"] = run(run="memory", threads=threads, **common)
        progress(f"{pool}, {rows} rows, memory, {threads}: {_seconds(found, threads, 'memory')}")
    for processes in (2,) if large else (1, 2, 4):
        found[f"cluster, {processes}"] = run(run="cluster", processes=processes, **common)
        progress(f"{pool}, {rows} rows, cluster, {processes}: {_seconds(found, processes)}")
    table(
        f"{pool}, {rows} x 50: {ATOMS} atoms",
        ["where", "seconds", "exchanges a round", "MB sent", "MB received", "peak MB"],
        [
            [name, one.get("seconds", one.get("outcome")), one.get("exchanges_a_round"),
             *(one[key] / 1e6 if key in one else None for key in ("sent", "received")),
             one.get("workers_peak_mb", one.get("peak_mb"))]
            for name, one in found.items()
        ],
    )  # fmt: skip
    atoms = {json.dumps(one.get("atoms")) for one in found.values()}
    print("the same atoms everywhere" if len(atoms) == 1 else "OTHER ATOMS")
    return found


def _seconds(found: dict[str, Any], number: int, where: str = "cluster") -> str:
    one = found[f"{where}, {number}"]
    return show(one.get("seconds", one.get("outcome")))


def judge(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare the overheads with what is asked for at 10 million rows."""
    verdicts = []
    for name, one in results.get("counted", {"found": {}})["found"].items():
        each = one["exchanges_a_round"]
        verdicts.append(verdict(f"{name}, 20,000 x 1,000: exchanges a round", each, 6, False))
    for name, part in results.items():
        if not name.endswith(" rows"):
            continue
        near, far = (part["found"][f"{where}, 2"] for where in ("memory", "cluster"))
        if "seconds" in near and "seconds" in far:
            ratio = far["seconds"] / near["seconds"]
            verdicts.append(verdict(f"{name}: cluster of 2 / 2 threads here", ratio, 1.5, False))
        if "exchanges_a_round" in far:
            each = far["exchanges_a_round"]
            verdicts.append(verdict(f"{name}: exchanges a round", each, 6, False))
    return verdicts


def peers(seed: int, rows: int) -> dict[str, Any]:
    """Return the time of every library to the test error of Laconic."""
    common = {"run": "peer", "seed": seed, "rows": rows, "size": rows // 8, "processes": 2}
    ours = run(peer="Laconic", rounds=ROUNDS, tested=200_000, **common)
    target = ours["errors"][-1]
    found: dict[str, Any] = {
        "Laconic": {"seconds": ours["seconds"], "rounds": ROUNDS, "error": target}
    }
    for peer in ("xgboost.dask", "LightGBM (Dask)"):
        tries = [_needed(peer, rate, target, common) for rate in RATES]
        found[peer] = min(tries, key=lambda one: one.get("seconds", float("inf")))
        found[peer]["tries"] = [dict(one) for one in tries]
        progress(f"{peer}: {show(found[peer].get('seconds', 'target not reached'))}")
    table(
        f"Time to a test error of {100 * target:.2f} %, {rows} x 50, 2 processes",
        ["library", "seconds", "rounds", "learning rate", "test error, %"],
        [[name, one.get("seconds"), one.get("rounds"), one.get("rate"), 100 * one["error"]]
         for name, one in found.items()],
    )  # fmt: skip
    return found


def _needed(peer: str, rate: float, target: float, common: dict[str, Any]) -> dict[str, Any]:
    """Find how many rounds a peer needs for the target, and time them."""
    found = run(peer=peer, rate=rate, rounds=MOST, tested=200_000, **common)
    if "errors" not in found:
        return {"rate": rate, "error": float("nan"), **found}
    reached = [number for number, error in enumerate(found["errors"], 1) if error <= target]
    if not reached:
        return {"rate": rate, "error": min(found["errors"])}
    timed = run(peer=peer, rate=rate, rounds=reached[0], tested=1000, **common)
    seconds = timed.get("seconds", found["seconds"])
    return {"rate": rate, "rounds": reached[0], "seconds": seconds, "error": target}


def killed(seed: int, rows: int) -> dict[str, Any]:
    """Return what comes of a fit of every library when a worker is killed in its middle."""
    common = {"run": "killed", "seed": seed, "rows": rows, "size": rows // 8, "processes": 2}
    found = {}
    for peer, rounds in (("Laconic", ROUNDS), ("xgboost.dask", MOST), ("LightGBM (Dask)", MOST)):
        found[peer] = run(LIMIT, peer=peer, rate=RATES[0], rounds=rounds, **common)
        progress(f"{peer}: {found[peer]['outcome']}")
    table(
        "A worker is killed in the middle of a fit",
        ["library", "seconds", "seconds without", "what happens"],
        [[name, one.get("seconds"), one.get("usual"), one["outcome"]]
         for name, one in found.items()],
    )  # fmt: skip
    return found


if __name__ == "__main__":
    main()
