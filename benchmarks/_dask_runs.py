"""One run of `dask_scaling.py` in a process of its own: rows, a cluster, a fit, and its measures.

The rows are made in chunks by number, so that they are the same on workers and in one memory.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
import time
import warnings
from contextlib import contextmanager
from typing import Any

import numpy as np

CLASSES, FEATURES, INFORMATIVE = 3, 50, 15
TEST_ROWS = 200_000


def chunk(seed: int, number: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw a chunk of rows in float32 and their labels. 15 of 50 features matter."""
    rng = np.random.default_rng(seed)
    shape = CLASSES, INFORMATIVE
    slope, step = rng.normal(0.0, 0.4, shape), rng.normal(0.0, 0.6, shape)
    place, size = rng.normal(0.0, 1.0, shape), rng.uniform(0.2, 0.6, shape)
    rng = np.random.default_rng([seed, number])
    X = rng.standard_normal((rows, FEATURES), dtype=np.float32)
    scores = -np.log(rng.standard_exponential((CLASSES, rows), dtype=np.float32))  # Gumbel noise
    for j in range(INFORMATIVE):
        v = np.ascontiguousarray(X[:, j])
        wave = np.sin(2 * v)
        for c, own in enumerate(scores):
            own += np.float32(slope[c, j]) * v + np.float32(size[c, j]) * wave
            own += np.float32(step[c, j]) * (v > place[c, j])
    return X, scores.argmax(axis=0)


def in_memory(seed: int, rows: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all rows in one memory."""
    X = np.empty((rows, FEATURES), dtype=np.float32)
    y = np.empty(rows, dtype=np.int64)
    for number, first in enumerate(range(0, rows, size)):
        length = min(size, rows - first)
        X[first : first + length], y[first : first + length] = chunk(seed, number, length)
    return X, y


def on_workers(seed: int, rows: int, size: int) -> tuple[Any, Any]:
    """Return all rows as Dask arrays, made on the workers."""
    import dask
    import dask.array as da
    from distributed import wait

    make = dask.delayed(chunk, nout=2)
    lengths = [min(size, rows - first) for first in range(0, rows, size)]
    made = [make(seed, number, length) for number, length in enumerate(lengths)]
    sized = list(zip(made, lengths, strict=True))
    X = da.concatenate([da.from_delayed(m[0], (n, FEATURES), np.float32) for m, n in sized])
    y = da.concatenate([da.from_delayed(m[1], (n,), np.int64) for m, n in sized])
    X, y = dask.persist(X, y)
    wait([X, y])
    return X, y


def test_rows(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows to test on. Their number is not the number of any chunk of training rows."""
    return chunk(seed, 1 << 30, TEST_ROWS)


@contextmanager
def cluster(processes: int) -> Any:
    """Start worker processes of one thread each. They never spill to disk."""
    from distributed import Client, LocalCluster

    settings = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    with (
        LocalCluster(n_workers=processes, processes=True, silence_logs=50, **settings) as local,
        Client(local) as client,
    ):
        yield client


def laconic_model(pool: str, atoms: int, jobs: int, **settings: Any) -> Any:
    from laconic import ShareBoostClassifier

    return ShareBoostClassifier(atoms, pool=pool, n_jobs=jobs, **settings)


def fit_in_memory(o: dict[str, Any]) -> dict[str, Any]:
    X, y = in_memory(o["seed"], o["rows"], o["size"])
    model = laconic_model(o["pool"], o["atoms"], o["threads"])
    small = laconic_model(o["pool"], 2, o["threads"])
    small.fit(X[:20000], y[:20000])  # kernels are compiled and loaded before the clock starts
    start = time.perf_counter()
    model.fit(X, y)
    return _told(model, time.perf_counter() - start, o)


def fit_on_cluster(o: dict[str, Any]) -> dict[str, Any]:
    with cluster(o["processes"]) as client:
        X, y = on_workers(o["seed"], o["rows"], o["size"])
        laconic_model(o["pool"], 2, 1).fit(X[:20000], y[:20000])
        start = time.perf_counter()
        model = laconic_model(o["pool"], o["atoms"], 1).fit(X, y)
        seconds = time.perf_counter() - start
        peaks = client.run(_peak)
        told = _told(model, seconds, o)
        exchanges = model.exchanges_
        told |= {
            "exchanges": exchanges.count, "sent": exchanges.sent, "received": exchanges.received,
            "exchanges_a_round": exchanges.count / model.n_atoms_,
            "workers_peak_mb": sum(peaks.values()),
        }  # fmt: skip
    return told


def exchange(o: dict[str, Any]) -> dict[str, Any]:
    """Return the mean seconds of an exchange with so few rows that the sums take no time."""
    with cluster(o["processes"]) as client:
        X, y = on_workers(o["seed"], 100 * o["partitions"], 100)
        laconic_model("columns", 2, 1).fit(X, y)
        start = time.perf_counter()
        count = laconic_model("columns", 10, 1).fit(X, y).exchanges_.count
        seconds = time.perf_counter() - start
        client.run(_peak)
    return {"seconds": seconds, "exchanges": count, "each": seconds / count}


def counted(o: dict[str, Any]) -> dict[str, Any]:
    """Count the exchanges of a fit with 1,000 features and 5 classes, and their bytes."""
    import dask.array as da

    from laconic import ShareBoostClassifier, TotalQBoostClassifier
    from laconic.pools import Stumps

    rng = np.random.default_rng(o["seed"])
    X = rng.standard_normal((20_000, 1_000), dtype=np.float32)
    truth = rng.normal(0.0, 1.0, (60, 5)) * (np.arange(60)[:, None] < 40)
    y = (X[:, :60] @ truth - np.log(rng.standard_exponential((20_000, 5)))).argmax(axis=1)
    models = {
        "ShareBoost, columns": ShareBoostClassifier(o["atoms"]),
        "ShareBoost, stumps": ShareBoostClassifier(o["atoms"], pool="stumps"),
        "ShareBoost, columns, l1": ShareBoostClassifier(o["atoms"], penalty="l1", alpha=1e-3),
        "TotalQBoost, stumps": TotalQBoostClassifier(o["atoms"], pool=Stumps(bins=255)),
    }
    with cluster(2):
        chunks = 2_500
        arrays = da.from_array(X, (chunks, 1_000)), da.from_array(y, chunks)
        found = {}
        for name, model in models.items():
            if "TotalQ" in name:  # two classes
                model.fit(arrays[0], arrays[1] == 0)
            else:
                model.fit(*arrays)
            told, rounds = model.exchanges_, o["atoms"]
            found[name] = {
                "rounds": rounds, "exchanges": told.count, "sent": told.sent,
                "received": told.received, "exchanges_a_round": told.count / rounds,
            }  # fmt: skip
    return found


def _told(model: Any, seconds: float, o: dict[str, Any]) -> dict[str, Any]:
    X, y = test_rows(o["seed"])
    return {
        "seconds": seconds,
        "test_error": float(np.mean(model.predict(X) != y)),
        "atoms": [str(atom) for atom in model.atoms_],
        "peak_mb": _peak(),
    }


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


# -- peers -----------------------------------------------------------------------------------------


class Laconic:
    """ShareBoost with stumps; one stump a round."""

    def fit(self, client: Any, X: Any, y: Any, rounds: int) -> None:
        self.model = laconic_model("stumps", rounds, 1).fit(X, y)

    def staged(self, X: np.ndarray) -> Any:
        stages = self.model.staged_predict(X)
        next(stages)
        return stages


class XGBoost:
    """xgboost.dask with trees of depth 1; a tree for every class a round."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def fit(self, client: Any, X: Any, y: Any, rounds: int) -> None:
        from xgboost import dask as dxgb

        settings = {
            "objective": "multi:softprob", "num_class": CLASSES, "max_depth": 1, "nthread": 1,
            "learning_rate": self.rate, "tree_method": "hist", "verbosity": 0,
        }  # fmt: skip
        data = dxgb.DaskQuantileDMatrix(client, X, y)
        self.model = dxgb.train(client, settings, data, num_boost_round=rounds)["booster"]

    def staged(self, X: np.ndarray) -> Any:
        import xgboost

        data = xgboost.DMatrix(X)
        for rounds in range(1, self.model.num_boosted_rounds() + 1):
            yield self.model.predict(data, iteration_range=(0, rounds)).argmax(axis=1)


class LightGBM:
    """LightGBM's Dask interface with trees of two leaves; a tree for every class a round."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def fit(self, client: Any, X: Any, y: Any, rounds: int) -> None:
        from lightgbm import DaskLGBMClassifier

        model = DaskLGBMClassifier(
            client=client, n_estimators=rounds, num_leaves=2, learning_rate=self.rate, verbose=-1,
            min_child_samples=1,
        )  # fmt: skip
        self.model = model.fit(X, y).to_local()
        self.rounds = rounds

    def staged(self, X: np.ndarray) -> Any:
        scores = np.zeros((len(X), CLASSES))
        for before in range(self.rounds):
            scores += self.model.predict(X, raw_score=True, start_iteration=before, num_iteration=1)
            yield self.model.classes_[scores.argmax(axis=1)]


PEERS = {
    "Laconic": lambda rate: Laconic(),
    "xgboost.dask": XGBoost,
    "LightGBM (Dask)": LightGBM,
}


def fit_peer(o: dict[str, Any]) -> dict[str, Any]:
    """Return the seconds of a fit, and how many rounds it needs for a test error."""
    with cluster(o["processes"]) as client:
        X, y = on_workers(o["seed"], o["rows"], o["size"])
        PEERS[o["peer"]](o.get("rate")).fit(client, X[:20000], y[:20000], 2)
        peer = PEERS[o["peer"]](o.get("rate"))
        start = time.perf_counter()
        peer.fit(client, X, y, o["rounds"])
        seconds = time.perf_counter() - start
    X_test, y_test = (part[: o["tested"]] for part in test_rows(o["seed"]))
    errors = [float(np.mean(predicted != y_test)) for predicted in peer.staged(X_test)]
    return {"seconds": seconds, "errors": errors}


def kill_a_worker(o: dict[str, Any]) -> dict[str, Any]:
    """Kill a worker in the middle of a fit, and tell what comes of it."""
    with cluster(o["processes"]) as client:
        X, y = on_workers(o["seed"], o["rows"], o["size"])
        X_test, _ = test_rows(o["seed"])
        whole, other = PEERS[o["peer"]](o.get("rate")), PEERS[o["peer"]](o.get("rate"))
        start = time.perf_counter()
        whole.fit(client, X, y, o["rounds"])
        usual = time.perf_counter() - start
        victim = next(iter(client.run(os.getpid).values()))
        killer = threading.Timer(usual / 2, os.kill, (victim, signal.SIGKILL))
        killer.start()
        start = time.perf_counter()
        try:
            other.fit(client, X, y, o["rounds"])
        except Exception as error:
            return {"outcome": f"{type(error).__name__}: {error}"[:300], "usual": usual,
                    "seconds": time.perf_counter() - start}  # fmt: skip
        seconds = time.perf_counter() - start
        *_, a = whole.staged(X_test)
        *_, b = other.staged(X_test)
    same = "the same predictions" if np.array_equal(a, b) else "other predictions"
    return {"outcome": f"ends with {same}", "usual": usual, "seconds": seconds}


RUNS = {
    "exchange": exchange, "counted": counted, "memory": fit_in_memory, "cluster": fit_on_cluster,
    "peer": fit_peer, "killed": kill_a_worker,
}  # fmt: skip

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    options = json.loads(sys.argv[1])
    print(json.dumps(RUNS[options["run"]](options)), flush=True)
    os._exit(0)  # peers may leave threads that never end
