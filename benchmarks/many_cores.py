"""How much faster is the work on many cores, and what share of the memory bandwidth is reached?

Every pool is measured at its three stages: making features (``bind``), scoring (``best``), and
correcting (writing columns down, then one solve). Then come whole fits of the other benchmarks,
with their rows but fewer rounds, and prediction. ``_core_groups.py`` has the problems. A task runs
on 1 core and on all, and a few tasks run on every number between. Each run is bound to its cores.

The table has the shortest of a few runs, the number of busy cores (processor time by time on the
clock), and the share of the read bandwidth where the bytes of a pass are known. The bandwidth is
measured first, by a sum over ``--gigabytes``, for every number of cores. A task that takes a second
or more on 1 core should be 6 times faster on 16, or reach 70 % of the bandwidth. All numbers of
threads must give the same bits. A task that starts after ``--budget`` seconds is left out.

``--profile NAME`` shows where the time of one task goes: the functions of the main thread, and the
share of the time in which `Threads.map` has work for the other threads.

Run: python benchmarks/many_cores.py [--groups NAME ...] [--profile NAME] [--json FILE]
"""

from __future__ import annotations

import cProfile
import hashlib
import os
import pickle
import pstats
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from _common import CORES, arguments, progress, save, show, table, verdict
from _core_groups import GROUPS
from _core_tasks import Task
from roofline import READ_BYTES, add_up
from threadpoolctl import threadpool_limits

from laconic.numeric.threads import Threads, row_blocks

FASTER, OF_BANDWIDTH, LONG = 6.0, 0.7, 1.0
# A task runs again until it has taken this many seconds, but at most so many times.
ENOUGH, MOST = 0.8, 7
SHOWN = 45


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--groups", nargs="+", default=list(GROUPS), choices=list(GROUPS))
    parser.add_argument("--cores", type=int, default=CORES, help="the largest number of threads")
    parser.add_argument("--gigabytes", type=float, default=2.0, help="read for the bandwidth")
    parser.add_argument(
        "--budget", type=float, default=440.0, help="seconds; then tasks are skipped"
    )
    parser.add_argument("--profile", help="profile the tasks whose names hold this text")
    args = parser.parse_args()
    end = time.perf_counter() + args.budget
    series = [n for n in (1, 2, 4, 8) if n < args.cores] + [args.cores]
    print(f"{args.cores} of {CORES} cores; threads per physical core: {siblings()}")
    bandwidth = {} if args.profile else read_rates(series, args.gigabytes)
    rows: list[dict[str, Any]] = []
    skipped: list[str] = []
    for group in args.groups:
        if time.perf_counter() > end:
            skipped.append(group)
            continue
        for task in GROUPS[group](args.data, args.cores):
            name = f"{group}: {task.name}"
            if args.profile:
                if args.profile in name:
                    profile(name, task, args.cores)
            elif time.perf_counter() > end:
                skipped.append(name)
            else:
                rows.append(measured(name, task, series, bandwidth))
        save(args.json, args, [], {"bandwidth": bandwidth, "tasks": rows, "skipped": skipped})
    if not args.profile:
        verdicts = report(rows, skipped, args.cores)
        results = {"bandwidth": bandwidth, "tasks": rows, "skipped": skipped, "verdicts": verdicts}
        save(args.json, args, [], results)


def siblings() -> str:
    """Return the processors that share a physical core with the first one."""
    try:
        with open("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list") as file:
            return file.read().strip()
    except OSError:
        return "unknown"


@contextmanager
def on_cores(n: int) -> Iterator[None]:
    """Bind this thread, and all that it starts, to the first n cores. BLAS gets n threads, too."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:n])
    try:
        with threadpool_limits(n, user_api="blas"):
            yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def threads_of(task: Task, n: int) -> Iterator[Threads]:
    """Return n threads on n cores. They are started, unless the task starts threads by itself."""
    with on_cores(n):
        threads = Threads(n)
        if task.starts_threads:
            yield threads
        else:
            with threads:
                yield threads


def read_rates(series: list[int], gigabytes: float) -> dict[int, float]:
    """Return the bytes that each number of threads reads per second."""
    values = np.ones(int(gigabytes * 1e9) // 8)
    pieces = [values[s] for s in row_blocks(len(values), READ_BYTES // 8)]
    add_up(pieces[0])  # compiles
    rates = {}
    for n in series:
        with on_cores(n), Threads(n) as threads:
            times = []
            for _ in range(4):
                start = time.perf_counter()
                list(threads.map(add_up, pieces))
                times.append(time.perf_counter() - start)
        rates[n] = values.nbytes / min(times)
    lines = [[n, rate / 1e9, rate / rates[1]] for n, rate in rates.items()]
    table("Read bandwidth", ["threads", "GB/s", "times one"], lines)
    return rates


def measured(
    name: str, task: Task, series: list[int], bandwidth: dict[int, float]
) -> dict[str, Any]:
    """Return the seconds and busy cores of a task for 1 thread, all threads, and perhaps others."""
    counts = series if task.series else [series[0], series[-1]]
    with threads_of(task, counts[-1]) as threads:
        expected = digest(task.run(threads))  # compiles
    seconds, busy, same = {}, {}, True
    for n in dict.fromkeys(counts):
        seconds[n], busy[n], found = best_run(task, n)
        same = same and found == expected
    last = counts[-1]
    share = task.n_bytes / seconds[last] / bandwidth[last] if task.n_bytes else None
    faster = seconds[1] / seconds[last]
    times = " ".join(f"{n}: {show(s)} s ({busy[n]:.1f})" for n, s in seconds.items())
    bits = "" if same else " NOT THE SAME BITS"
    of = "" if share is None else f", {100 * share:.0f} % of the bandwidth"
    progress(f"{name}: {times}; {faster:.1f} times faster{of}{bits}")
    return {
        "task": name, "from": task.source, "seconds": seconds, "busy": busy, "faster": faster,
        "bytes": task.n_bytes, "of bandwidth": share, "same bits": same,
    }  # fmt: skip


def best_run(task: Task, n: int) -> tuple[float, float, str]:
    """Return the shortest of a few runs, its number of busy cores, and a digest of its answer."""
    runs, spent = [], 0.0
    with threads_of(task, n) as threads:
        while not runs or (spent < ENOUGH and len(runs) < MOST):
            start = time.perf_counter(), time.process_time()
            answer = task.run(threads)
            seconds = time.perf_counter() - start[0]
            runs.append((seconds, (time.process_time() - start[1]) / seconds))
            spent += seconds
    return *min(runs), digest(answer)


def digest(answer: Any) -> str:
    """Return a digest of all bits of an answer."""
    return hashlib.sha256(pickle.dumps(answer)).hexdigest()[:16]


def profile(name: str, task: Task, n: int) -> None:
    """Print where the main thread spends the time of one run, and how busy the others are."""
    with threads_of(task, n) as threads:
        task.run(threads)
        start = time.perf_counter(), time.process_time()
        task.run(threads)
        seconds = time.perf_counter() - start[0]
        busy = (time.process_time() - start[1]) / seconds
        main_thread = cProfile.Profile()
        main_thread.runcall(task.run, threads)
    print(f"\n{name}: {seconds:.3f} s on {n} cores, {busy:.1f} busy")
    stats = pstats.Stats(main_thread)
    stats.sort_stats("tottime").print_stats(SHOWN)
    stats.sort_stats("cumtime").print_stats(SHOWN)


def report(rows: list[dict[str, Any]], skipped: list[str], last: int) -> list[dict[str, Any]]:
    """Print the table and the verdicts."""
    header = ["task", "1 core", f"{last} cores", "times faster", "busy cores", "of bandwidth"]
    lines = [
        [r["task"], r["seconds"][1], r["seconds"][last], r["faster"], r["busy"][last],
         r["of bandwidth"]]
        for r in rows
    ]  # fmt: skip
    table(f"Seconds on 1 core and on {last}", header, lines)
    for r in rows:
        if len(r["seconds"]) > 2:
            times = [r["seconds"][1] / s for s in r["seconds"].values()]
            table(f"{r['task']}: times faster", list(map(str, r["seconds"])), [times])
    print(f"left out: {', '.join(skipped) or 'none'}")
    long = [r for r in rows if r["seconds"][1] >= LONG]
    short_of = [r for r in long if r["faster"] < FASTER and (r["of bandwidth"] or 0) < OF_BANDWIDTH]
    for r in short_of:
        print(f"  {r['task']}: {r['faster']:.1f} times")
    text = f"tasks of {show(LONG)} s or more that are {show(FASTER)} times faster or at the roof"
    met = len(long) - len(short_of)
    return [
        verdict("tasks with the same bits", sum(r["same bits"] for r in rows), len(rows), True),
        verdict(text, met, len(long), True),
    ]


if __name__ == "__main__":
    main()
