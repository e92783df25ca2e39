"""Shared code of benchmarks and experiments: arguments, data, clocks, tables and results."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with the arguments that every benchmark and experiment has."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the .npz data sets")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random draws")
    return parser


def load(folder: Path, name: str) -> dict[str, np.ndarray]:
    """Load the arrays of one data set. If the file is missing, exit with a message."""
    file = folder / f"{name}.npz"
    if not file.exists():
        sys.exit(f"{name}.npz is not in {folder}; set its folder with --data DIR")
    with np.load(file, allow_pickle=False) as stored:
        return {key: stored[key] for key in stored.files}


@contextmanager
def affinity_kept() -> Iterator[None]:
    """Restore the cores of this thread at the end, because OpenMP may bind it to one for good."""
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    try:
        yield
    finally:
        if before is not None:
            os.sched_setaffinity(0, before)


def timed(function: Callable[..., T], *args: Any, **kwargs: Any) -> tuple[float, T]:
    """Return the seconds of one call, and its result."""
    start = time.perf_counter()
    answer = function(*args, **kwargs)
    return time.perf_counter() - start, answer


def median_time(function: Callable[[], Any], repeats: int) -> float:
    """Return the median seconds of several calls."""
    return float(np.median([timed(function)[0] for _ in range(repeats)]))


def start_up(fit: Callable[[], Any]) -> float:
    """Return how many seconds longer the first small fit of a process takes than the second.

    This is the time to load the kernels, and to compile them if no cache on this machine has them.
    ``fit`` must use the same types as the fit to come, and no fit may have run before.
    """
    first, second = timed(fit)[0], timed(fit)[0]
    return max(first - second, 0.0)


def error(predicted: np.ndarray, y: np.ndarray) -> float:
    """Return the share of wrong predictions."""
    return float(np.mean(np.asarray(predicted) != y))


class TimedPool:
    """A pool that adds up the seconds spent on scoring, the ``best`` method of the bound pool."""

    allows_missing = True

    def __init__(self, pool: Any) -> None:
        self.pool = pool
        self.scoring = 0.0

    def bind(self, X: Any, weight: np.ndarray, threads: Any) -> Any:
        """Bind the pool, with a clock on its ``best``."""
        bound = self.pool.bind(X, weight, threads)
        best = bound.best

        def clocked(*args: Any, **kwargs: Any) -> Any:
            seconds, choice = timed(best, *args, **kwargs)
            self.scoring += seconds
            return choice

        bound.best = clocked
        return bound


def progress(text: str) -> None:
    """Report the progress of a long benchmark on the error stream."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def show(value: Any) -> str:
    """Format a number with four digits, and anything else as text."""
    if value is None:
        return "-"
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    return str(value)


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table. The first column is aligned to the left, the others to the right."""
    cells = [list(header), *([show(v) for v in row] for row in rows)]
    widths = [max(len(line[c]) for line in cells) for c in range(len(header))]
    print(f"\n{title}")
    for number, line in enumerate(cells):
        first, *rest = [
            cell.ljust(w) if c == 0 else cell.rjust(w)
            for c, (cell, w) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join([first, *rest]).rstrip())
        if number == 0:
            print("  ".join("-" * w for w in widths))
    sys.stdout.flush()


def verdict(name: str, value: float, limit: float, at_least: bool) -> dict[str, Any]:
    """Print a measured ratio next to the required one, and return both."""
    met = value >= limit if at_least else value <= limit
    sign = "at least" if at_least else "at most"
    print(f"{name}: {show(value)} ({sign} {show(limit)} required: {'met' if met else 'NOT MET'})")
    return {"name": name, "value": value, "limit": limit, "at_least": at_least, "met": bool(met)}


def short_of(excess: Mapping[str, float | None], close: float) -> list[str]:
    """Return the names of the solvers that ended more than ``close`` above the lowest value of all.

    ``excess`` is relative to one value for all solvers, which need not be the lowest. None stands
    for a run that was cut off. Its time is a lower bound, so it is never listed.
    """
    ended = {name: e for name, e in excess.items() if e is not None}
    lowest = np.nanmin([*ended.values(), np.inf])
    return [name for name, e in ended.items() if not e - lowest <= close]


def save(
    file: Path | None, arguments: argparse.Namespace, peers: Sequence[str], results: dict[str, Any]
) -> None:
    """Write the results and their provenance, if a file is given."""
    if file is None:
        return
    record = {"provenance": provenance(arguments, peers), "results": results}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(record, indent=1, default=_plain) + "\n")


def provenance(arguments: argparse.Namespace, peers: Sequence[str]) -> dict[str, Any]:
    """Return command line, commit, seed, cores and versions."""
    settings = {
        name: value.name if isinstance(value, Path) else value  # results name no folders
        for name, value in vars(arguments).items()
        if name not in ("data", "json")
    }
    return {
        "command": " ".join([_script(), *_without_folders()]),
        "settings": settings,
        "commit": commit(),
        "seed": arguments.seed,
        "cores": CORES,
        "machine": platform.machine(),
        "processor": _processor(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in (*LIBRARIES, *peers)},
    }


def commit() -> str:
    """Return the commit of the source, marked if the tree differs from it."""

    def git(*command: str) -> str:
        done = subprocess.run(["git", "-C", str(ROOT), *command], capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    known = git("rev-parse", "HEAD")
    if not known:
        return "unknown"
    code = ("src", "benchmarks", "experiments", ":(exclude)*/results/*")
    changed = git("status", "--porcelain", "--", *code)
    return known + (" with changes" if changed else "")


def _script() -> str:
    script = Path(sys.argv[0]).resolve()
    return f"{script.parent.name}/{script.name}"


def _without_folders() -> list[str]:
    return [Path(a).name if Path(a).is_absolute() else a for a in sys.argv[1:]]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _plain(value: Any) -> Any:
    """Convert a value that json cannot write by itself."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    return str(value)
