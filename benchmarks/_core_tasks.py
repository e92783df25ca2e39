"""The tasks of ``many_cores.py``: the stages of a pool, and whole fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from laconic import ShareBoostClassifier
from laconic.correct import Newton
from laconic.losses import MarginLoss
from laconic.numeric.threads import Threads
from laconic.penalties import L2
from laconic.rows.rows import Rows, rows_in_memory


class Task(NamedTuple):
    """Work that is measured."""

    name: str
    run: Callable[[Threads], Any]
    """Does the work on some threads, and returns an answer that must not depend on them."""
    source: str = ""
    """The benchmark whose rows these are."""
    n_bytes: float = 0.0
    """Bytes that one run reads from memory, if reading them is most of the work."""
    series: bool = False
    """Whether to measure the numbers of threads between one and all."""
    starts_threads: bool = False
    """Whether the work starts its threads by itself, as fits and predictions do."""


Tasks = Iterator[Task]


class Switch:
    """Threads that can be changed, so that a pool need not be bound again for other threads."""

    def __init__(self, threads: Threads) -> None:
        self.now = threads

    @property
    def n_jobs(self) -> int:
        """Number of threads."""
        return self.now.n_jobs

    def map(self, *args: Any, **kwargs: Any) -> Any:
        """Apply a function to items on the threads in use."""
        return self.now.map(*args, **kwargs)


class Problem(NamedTuple):
    """A pool, its rows and their classes."""

    pool: Any
    X: Any
    y: np.ndarray
    source: str

    def bind(self, threads: Any) -> Any:
        """Return the bound pool."""
        m = self.X.shape[0]
        return self.pool.bind(self.X, np.full(m, 1.0 / m), threads)

    def features(self) -> Task:
        """Return the task to bind the pool."""

        def run(threads: Threads) -> Any:
            bound = self.bind(threads)
            some = spread(bound.n_atoms, 3)
            return bound.n_atoms, bound.scales(some), bound.columns(some)

        return Task("features", run, self.source)

    def stages(self, every: int, atoms: int, n_bytes: float = 0.0, series: bool = False) -> Tasks:
        """Yield the tasks to score all atoms, to write some down, and to correct their weights."""
        with Threads(every) as threads:
            switch: Any = Switch(threads)
            bound = self.bind(switch)
        k = int(self.y.max()) + 1
        residual = np.random.default_rng(1).standard_normal((len(self.y), k)).astype(bound.dtype)

        def scored(threads: Threads) -> Any:
            switch.now = threads
            return tuple(bound.best(residual))

        yield Task("scoring", scored, self.source, n_bytes, series)
        yield from corrections(bound, switch, self.y, every, atoms, self.source, series)


def corrections(
    bound: Any, switch: Any, y: np.ndarray, every: int, atoms: int, source: str, series: bool
) -> Tasks:
    """Yield the tasks to write columns of atoms down, and to correct their weights."""
    k, weight = int(y.max()) + 1, np.full(len(y), 1.0 / len(y))
    chosen = spread(bound.n_atoms, atoms)

    def rows_with(threads: Threads) -> Rows:
        rows = rows_in_memory([bound], MarginLoss(), y, weight, k, switch)
        switch.now = threads
        rows.reset(chosen)
        return rows

    with Threads(every) as threads:
        shared = rows_with(threads)

    def corrected(threads: Threads) -> Any:
        switch.now = threads
        return Newton().solve(shared, L2(1e-5), np.zeros((shared.n_columns, k))).weights

    yield Task("columns written", lambda t: rows_with(t).gram, source)
    yield Task("correction", corrected, source, 0.0, series)


def spread(n: int, few: int) -> list[int]:
    """Return a few numbers below n, at even distances."""
    return sorted({n * i // few for i in range(few)})


def share_boost(X: Any, y: np.ndarray, source: str, name: str, atoms: int, **settings: Any) -> Task:
    """Return the task of a whole fit."""

    def run(threads: Threads) -> Any:
        model = ShareBoostClassifier(atoms, n_jobs=threads.n_jobs, **settings).fit(X, y)
        return model.path_.losses, model.atom_coef_

    return Task(f"fit, {name}", run, source, starts_threads=True)


def predicted(of: Any, X: Any, source: str, name: str) -> Task:
    """Return the task to compute the features of a map, or to predict."""
    return Task(f"predict, {name}", lambda threads: of(X), source, starts_threads=True)
