"""The groups of tasks of ``many_cores.py``: the rows and pools that are measured.

A group is a generator. It makes the rows of a task only when the task before it is done.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _common import load
from _core_tasks import Problem, Task, Tasks, predicted, share_boost
from growth import drawn
from path_vs_abess import products
from roofline import make_data
from scipy import sparse
from stumps import adult, synthetic
from totalq_classes import problem

from laconic import ShareBoostClassifier, TotalQBoostClassifier
from laconic.clumping.margins import Margins
from laconic.clumping.neighbours import auto_radius, radius_graph
from laconic.clumping.problem import ClumpingProblem
from laconic.clumping.solver import solve
from laconic.clumping.theta import Theta
from laconic.correct import Newton
from laconic.losses import LogLoss
from laconic.numeric.threads import Threads
from laconic.penalties import L2
from laconic.pools import Bumps, Columns, Mixed, Patches, Pieces, Products, Rules, Stumps
from laconic.rows.rows import rows_in_memory


def digits(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the training digits of MNIST, with pixels from 0 to 1 in single precision."""
    data = load(folder, "mnist")
    X = data["X_train"].reshape(len(data["X_train"]), -1) / np.float32(255)
    return X, data["y_train"].astype(np.int64)


def dense(folder: Path, every: int) -> Tasks:
    X = make_data(0.8e9, np.float32, "C")
    y = np.random.default_rng(0).integers(0, 10, len(X))
    given = Problem(Columns(), X, y, "roofline.py")
    yield given.features()
    yield next(given.stages(every, 2, X.nbytes, series=True))
    del X, given
    X, y = digits(folder)
    top = np.sort(np.argsort(X.var(axis=0))[-200:])
    for dtype in (np.float32, np.float64):
        yield newton(X[:, top].astype(dtype), y)
    X, y = drawn(320_000, 100, 5, 0)
    yield share_boost(X, y, "growth.py", "columns, 320,000 x 100, 10 atoms", 10)


def newton(X: np.ndarray, y: np.ndarray) -> Task:
    """Return the task of one whole correction of 200 columns, as in ``corrector.py``."""

    def run(threads: Threads) -> Any:
        weight = np.full(len(y), 1.0 / len(y))
        pool = Columns(scale=None).bind(X, weight, threads)
        rows = rows_in_memory([pool], LogLoss(), y, weight, 10, threads)
        rows.reset(range(X.shape[1]))
        start = np.zeros((rows.n_columns, 10))
        return Newton(gradient_tol=1e-6).solve(rows, L2(1e-6), start).weights

    return Task(f"200 columns, alpha 1e-6, {X.dtype}", run, "corrector.py", series=True)


def sparse_rows(folder: Path, every: int) -> Tasks:
    rng = np.random.default_rng(0)
    m, d, each = 200_000, 20_000, 100
    at = np.sort(rng.integers(0, d // each, (m, each), dtype=np.int32), axis=0)
    at += np.arange(each, dtype=np.int32) * (d // each)
    values = rng.random(m * each, dtype=np.float32)
    starts = np.arange(0, m * each + 1, each, dtype=np.int32)
    X = sparse.csr_matrix((values, at.ravel(), starts), shape=(m, d))
    y = rng.integers(0, 5, m)
    given = Problem(Columns(), X, y, "")
    yield given.features()
    yield from given.stages(every, 60, X.data.nbytes + X.indices.nbytes)
    yield share_boost(X, y, "", "sparse columns, 10 atoms", 10)


def stumps(folder: Path, every: int) -> Tasks:
    task = synthetic(1_000_000, 0)
    given = Problem(Stumps(), task.X, task.y, "stumps.py synthetic")
    yield given.features()
    yield from given.stages(every, 40, 1.0 * task.X.size, series=True)
    yield share_boost(task.X, task.y, "stumps.py synthetic", "stumps, 5 atoms", 5, pool="stumps")
    task = adult(load(folder, "adult"))
    pool = Stumps(categorical=np.flatnonzero(task.categorical).tolist())
    yield share_boost(task.X, task.y, "stumps.py adult", "stumps, adult, 100 atoms", 100, pool=pool)


def rules(folder: Path, every: int) -> Tasks:
    task = synthetic(200_000, 0)
    given = Problem(Rules(), task.X[:, :30], task.y, "stumps.py synthetic")
    yield given.features()
    yield from given.stages(every, 40)


def isolet(folder: Path, every: int) -> Tasks:
    data = load(folder, "isolet")
    X, y = data["X_train"].astype(np.float32), np.unique(data["y_train"], return_inverse=True)[1]
    given = Problem(Products(), X, y, "products_isolet.py")
    yield given.features()
    yield from given.stages(every, 60, series=True)
    yield share_boost(X, y, "products_isolet.py", "products, 8 atoms", 8, pool="products")


def patches(folder: Path, every: int) -> Tasks:
    X, y = digits(folder)
    yield Problem(Patches(n_templates=200), X[:6_000], y[:6_000], "patches.py").features()
    given = Problem(Patches(n_templates=300), X, y, "patches.py")
    yield from given.stages(every, 20, 4_800.0 * len(X), series=True)
    few = Patches(n_templates=100)
    yield share_boost(X[:10_000], y[:10_000], "patches.py", "patches, 20 atoms", 20, pool=few)
    model = ShareBoostClassifier(40, pool=few, n_jobs=every).fit(X[:4_000], y[:4_000])
    yield predicted(model.predict, X, "patches.py", "40 patches")


def components(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return 50 principal components of the training digits of MNIST."""
    from sklearn.decomposition import PCA

    X, y = digits(folder)
    return PCA(50, svd_solver="covariance_eigh").fit_transform(X), y


def pieces(folder: Path, every: int) -> Tasks:
    X, y = components(folder)
    soft: dict[str, Any] = {"slope": 20.0, "soft": True, "max_share": 0.4}
    given = Problem(Pieces(centres=X[:300], **soft), X, y, "pieces.py")
    yield given.features()
    given = given._replace(X=X[:20_000], y=y[:20_000])
    yield from given.stages(every, 6, series=True)
    few = Problem(Pieces(n_centres=200, **soft), X[:10_000], y[:10_000], "pieces.py")
    yield few.features()._replace(name="features, centres by clustering")
    how = {"pool": few.pool, "alpha": 5e-4, "tol": 0.1}
    yield share_boost(few.X, few.y, few.source, "clustered pieces, 4 atoms", 4, **how)
    model = ShareBoostClassifier(10, pool=given.pool, alpha=5e-4, tol=0.1, n_jobs=every)
    model.fit(few.X[:5_000], few.y[:5_000])
    yield predicted(model.predict, np.vstack([X] * 10), "pieces.py", "10 pieces")


def bumps(folder: Path, every: int) -> Tasks:
    X, y = components(folder)
    given = Problem(Bumps(centres=X[:300]), X, y, "")
    yield given.features()
    yield from given.stages(every, 40)


def mixed(folder: Path, every: int) -> Tasks:
    task = synthetic(200_000, 0)
    pool = Mixed((Columns(), Stumps(), Products()))
    given = Problem(pool, task.X, task.y, "stumps.py synthetic")
    yield given.features()
    yield from given.stages(every, 40)
    yield share_boost(task.X, task.y, "stumps.py synthetic", "mixed, 6 atoms", 6, pool=pool)


def small(folder: Path, every: int) -> Tasks:
    data = load(folder, "pendigits")
    X, y = products(data)[:2]
    yield share_boost(X, y, "path_vs_abess.py", "pendigits, 40 of 120 products", 40)
    one = (data["y_train"] == 3).astype(np.int64)

    def priced(threads: Threads) -> Any:
        model = TotalQBoostClassifier(40, n_jobs=threads.n_jobs)
        return model.fit(data["X_train"].astype(np.float32), one).objective_

    rows, labels, rounds = problem("pairs", 0)
    names = labels.astype(str)  # numbers would raise a warning that they may be amounts

    def pairs(threads: Threads) -> Any:
        model = TotalQBoostClassifier(rounds, loss="log", n_jobs=threads.n_jobs)
        return model.fit(rows, names).objective_

    yield Task("TotalQBoost, pendigits, 40 rounds", priced, "old_and_new.py", starts_threads=True)
    yield Task(
        "TotalQBoost, 50 classes of two rows", pairs, "totalq_classes.py", starts_threads=True
    )
    X, y = drawn(160_000, 100, 5, 0)
    yield share_boost(X, y, "growth.py", "stumps, 160,000 x 100, 10 atoms", 10, pool="stumps")


def clumping(folder: Path, every: int) -> Tasks:
    X, y = digits(folder)
    X, sign = X[:15_000], np.where(y[:15_000] < 5, -1, 1)
    radius = auto_radius(X, share=0.05)
    graph = radius_graph(X, radius, n_jobs=every)

    def graphed(threads: Threads) -> Any:
        return radius_graph(X, radius, n_jobs=threads.n_jobs).degrees

    def solved(threads: Threads) -> Any:
        theta = Theta(graph, 0.5, "degree", None, threads)
        return solve(ClumpingProblem(Margins(X, True, threads), sign, theta, 0.1), 1e-6).weights

    yield Task("radius graph, 15,000 digits", graphed, "radius_graph.py", 0.0, True, True)
    yield Task("clumping, 15,000 digits", solved, "clump_solver.py", series=True)


GROUPS: dict[str, Callable[[Path, Threads], Tasks]] = {
    "dense columns": dense,
    "sparse columns": sparse_rows,
    "stumps": stumps,
    "rules": rules,
    "products": isolet,
    "patches": patches,
    "pieces": pieces,
    "bumps": bumps,
    "mixed": mixed,
    "small rows": small,
    "clumping": clumping,
}
