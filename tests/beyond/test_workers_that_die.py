"""Workers die, come and go while a fit runs, and it ends with the same bits.

Every cluster here is of processes of its own, because they are killed.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest
from sklearn.base import clone

from laconic import ShareBoostClassifier, TotalQBoostClassifier
from laconic.beyond.to_tune import RowsInParts
from laconic.pools import Hinges
from laconic.tune import Tuning
from problems import random_problem

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

MODELS = {
    "columns": ShareBoostClassifier(6),
    "stumps": ShareBoostClassifier(5, pool="stumps"),
    "subsets": TotalQBoostClassifier(max_rounds=5, price=0.002, loss="log"),
}
DASK = [sys.executable, "-m", "dask"]


def rows(n_parts=6):
    X, y = random_problem(m=1200, d=8)
    size = len(y) // n_parts
    return da.from_array(X, chunks=(size, -1)), da.from_array(y, chunks=size)


@contextmanager
def local_cluster(**settings):
    settings = {"n_workers": 3, "threads_per_worker": 1, "dashboard_address": None, **settings}
    with (
        distributed.LocalCluster(processes=True, silence_logs=50, **settings) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield cluster, client


@pytest.fixture(scope="module")
def client():
    """A cluster of three processes, whose nannies start a worker again when it dies."""
    with local_cluster() as (_, client):
        yield client


@pytest.fixture(scope="module")
def alone():
    """A cluster of one process. It gives a task up when its worker died twice."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        local_cluster(n_workers=1) as (_, client),
    ):
        yield client


@contextmanager
def commanded(tmp_path, n_workers):
    """A scheduler and workers without nannies, started by commands, and a client."""
    address = str(tmp_path / "scheduler.json")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

    def start(*command):
        process = subprocess.Popen([*DASK, *command, "--scheduler-file", address], **quiet)
        stack.callback(process.wait)
        stack.callback(process.kill)
        return process

    def worker():
        return start("worker", "--nthreads", "1", "--no-nanny", "--no-dashboard")

    with ExitStack() as stack:
        at = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        scheduler = start("scheduler", *at)
        workers = [worker() for _ in range(n_workers)]
        client = distributed.Client(scheduler_file=address)
        stack.callback(client.close, timeout=1)
        stack.enter_context(client.as_current())
        client.wait_for_workers(n_workers)
        yield client, scheduler, workers, worker


class At:
    """A callback that does something once, after a given round."""

    def __init__(self, round_, do):
        self.round, self.do, self.done = round_, do, False

    def __call__(self, state):
        if not self.done and len(state.entries) > self.round:
            self.done = True
            self.do()


def kill_one(client, seed=0):
    pids = list(client.run(os.getpid).values())
    os.kill(random.Random(seed).choice(pids), signal.SIGKILL)


def fit(model, *callbacks, **settings):
    X, y = rows()
    return clone(model).set_params(callbacks=list(callbacks), **settings).fit(X, y)


def assert_same_bits(one, other):
    assert one.path_.sizes.tolist() == other.path_.sizes.tolist()
    for a, b in zip(one.path_, other.path_, strict=True):
        assert a.atoms == b.atoms
        assert np.array_equal(a.weights, b.weights)
        assert np.array_equal(a.intercept, b.intercept)
        assert (a.loss, a.objective) == (b.loss, b.objective)


@pytest.mark.parametrize(("name", "seed"), [(name, seed) for seed, name in enumerate(MODELS)])
def test_a_worker_that_is_killed_changes_no_bit(name, seed, client):
    killer = At(random.Random(seed).randrange(4), lambda: kill_one(client, seed))
    assert_same_bits(fit(MODELS[name]), fit(MODELS[name], killer))
    assert killer.done


def test_a_worker_that_dies_in_the_middle_of_an_exchange_changes_no_bit(client):
    expected = fit(MODELS["columns"])
    stop = threading.Event()

    def kill_again_and_again():
        while not stop.wait(0.7):
            kill_one(client, time.monotonic_ns())

    killer = threading.Thread(target=kill_again_and_again)
    start = At(1, killer.start)
    wait = At(3, lambda: time.sleep(0.8))
    try:
        assert_same_bits(expected, fit(MODELS["columns"], start, wait))
    finally:
        stop.set()
        killer.join()


def test_a_worker_that_is_killed_while_atoms_are_tuned_changes_no_bit(client, monkeypatch):
    tuning = Tuning(epochs=2, batch_size=200)
    model = ShareBoostClassifier(3, pool=Hinges(10, 3), tune=tuning, random_state=0)
    expected, sums, asked = fit(model), RowsInParts.sums, []

    def killing(self, *given):
        asked.append(given)
        if len(asked) == 4:
            kill_one(client)
        return sums(self, *given)

    monkeypatch.setattr(RowsInParts, "sums", killing)
    assert_same_bits(expected, fit(model))
    assert any(map(expected.path_.is_tuned, expected.path_.sizes))
    assert len(asked) == 2 * 6


@pytest.mark.long
def test_workers_that_are_restarted_change_no_bit(client):
    def restart_one():
        alive = list(client.run(os.getpid))  # the scheduler may still list one that was killed
        client.restart_workers(alive[:1])

    assert_same_bits(fit(MODELS["stumps"]), fit(MODELS["stumps"], At(2, restart_one)))


@pytest.mark.long
def test_a_restart_of_the_whole_cluster_says_so_and_keeps_the_checkpoint(tmp_path, alone):
    kept = tmp_path / "fit.checkpoint"
    with alone.as_current():
        expected = fit(MODELS["stumps"])
        restart = At(2, alone.restart)
        with pytest.raises(
            RuntimeError, match=r"the cluster was restarted.*client.restart_workers"
        ):
            fit(MODELS["stumps"], restart, checkpoint=kept)
        assert_same_bits(expected, fit(MODELS["stumps"], checkpoint=kept))


@pytest.mark.long
def test_workers_come_and_go_for_good(tmp_path):
    """They have no nannies. One joins, and the others are killed after rounds drawn at random."""
    draw = random.Random(0)
    with commanded(tmp_path, 2) as (_, _, workers, worker):
        expected = fit(MODELS["columns"])
        more = At(1, worker)
        less = At(draw.randrange(1, 5), workers[0].kill)
        assert_same_bits(expected, fit(MODELS["columns"], more, less))
        none = At(draw.randrange(1, 5), workers[1].kill)
        assert_same_bits(expected, fit(MODELS["columns"], none))
        assert less.done
        assert none.done


@pytest.mark.long
def test_a_fit_waits_for_workers_if_there_are_none(tmp_path, monkeypatch):
    monkeypatch.setattr("laconic.beyond.cluster.PATIENCE", 0.5)
    with commanded(tmp_path, 1) as (_, _, workers, worker):
        expected = fit(MODELS["columns"])
        late = threading.Timer(2.0, worker)

        def replace():
            workers[0].kill()
            late.start()

        with pytest.warns(UserWarning, match="the cluster has no workers"):
            found = fit(MODELS["columns"], At(2, replace))
        late.join()
        assert_same_bits(expected, found)


@pytest.mark.long
def test_a_worker_that_runs_out_of_memory_changes_no_bit():
    hogs = []
    with local_cluster(n_workers=2, memory_limit="600MB") as (_, client):
        expected = fit(MODELS["columns"])
        before = set(client.run(os.getpid).values())

        def fill():
            first = next(iter(client.scheduler_info()["workers"]))
            hogs.append(client.submit(hog, workers=[first], pure=False))
            time.sleep(1.5)

        found = fit(MODELS["columns"], At(2, fill))
        assert_same_bits(expected, found)
        for _ in range(100):
            if set(client.run(os.getpid).values()) != before:
                break
            time.sleep(0.1)
        assert set(client.run(os.getpid).values()) != before  # the nanny killed it


def hog():
    """Take more memory than the worker has, a little at a time."""
    taken = []
    while True:
        taken.append(np.ones(4_000_000))
        time.sleep(0.02)


def test_a_fit_inside_a_task_does_not_wait_for_its_own_thread(alone):
    with alone.as_current():
        expected = fit(MODELS["columns"])
        found = alone.submit(fit, MODELS["columns"], pure=False).result(timeout=60)
    assert_same_bits(expected, found)


@pytest.mark.long
def test_workers_that_always_die_give_a_clear_error(alone):
    X, y = rows(n_parts=1)
    deadly = X.map_blocks(end_the_process, dtype=X.dtype, meta=np.empty((0, 0)))
    with (
        alone.as_current(),
        pytest.raises(RuntimeError, match="use smaller partitions, or workers with more memory"),
    ):
        ShareBoostClassifier(2).fit(deadly, y)


def end_the_process(X):
    os._exit(1)


@pytest.mark.long
def test_a_scheduler_that_goes_away_gives_a_clear_error_and_keeps_the_checkpoint(tmp_path, client):
    kept = tmp_path / "fit.checkpoint"
    expected = fit(MODELS["columns"])
    with (
        commanded(tmp_path, 1) as (_, scheduler, _, _),
        pytest.raises(ConnectionError, match="a fit with a checkpoint goes on") as raised,
    ):
        fit(MODELS["columns"], At(3, scheduler.kill), checkpoint=kept)
    assert "\n" not in str(raised.value)
    with client.as_current():
        resumed = fit(MODELS["columns"], checkpoint=kept)
    assert_same_bits(expected, resumed)
