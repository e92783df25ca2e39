"""Forks while other threads fit: the child can do all that its parent can, with all its threads."""

import multiprocessing
import os
import pickle
import select
import signal
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy.linalg
from numba.core.compiler_lock import global_compiler_lock
from threadpoolctl import threadpool_info, threadpool_limits

import laconic
from laconic import HolePunchingClassifier, ShareBoostClassifier
from laconic.clumping import ties
from laconic.numeric.compiled import compiled
from laconic.numeric.threads import Threads
from laconic.subset import SubsetProblem

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

# Seconds after which a child is taken to hang: far more than it needs, however busy the machine.
GENEROUS = 60

# More BLAS threads than one, whatever the machine has.
MANY = 2

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 6))
Y = (X[:, 0] + 0.3 * RNG.standard_normal(300) > 0).astype(int)
SQUARE = np.eye(200) + RNG.random((200, 200))


def blas_threads():
    """Threads of every BLAS that can have more than one."""
    found = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
    return {lib["num_threads"] for lib in found if lib.get("threading_layer") != "disabled"}


def model(pool="columns", **settings):
    return ShareBoostClassifier(3, pool=pool, n_jobs=2, **settings).fit(X, Y)


def everything():
    """BLAS threads that a child finds, during a fit, and after it; and what it learns."""
    before = blas_threads()
    scipy.linalg.lu_factor(SQUARE @ SQUARE)
    with Threads(2) as threads:
        inside = blas_threads()
        squares = list(threads.map(lambda i: i * i, range(10)))
    fitted = [model(pool).predictor_.scores(X) for pool in ("columns", "stumps")]
    return before, inside, blas_threads(), squares, fitted


def in_child(work):
    """What ``work`` returns in a forked child; a child that does not answer is killed."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(out)
            with os.fdopen(into, "wb") as stream:
                pickle.dump(work(), stream)
        finally:
            os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as stream:
        answered = select.select([stream], [], [], GENEROUS)[0]
        if not answered:
            os.kill(child, signal.SIGKILL)
        content = stream.read()
    os.waitpid(child, 0)
    assert answered, "the child hangs"
    assert content, "the child failed"
    return pickle.loads(content)


@pytest.fixture(autouse=True)
def many_blas_threads():
    with threadpool_limits(MANY, user_api="blas"):
        yield


@pytest.fixture
def expected():
    """What `everything` returns where nothing else goes on."""
    before, inside, after, squares, fitted = everything()
    assert (before, inside, after) == ({MANY}, {1}, {MANY})
    return before, inside, after, squares, fitted


def assert_same(found, expected):
    assert found[:4] == expected[:4]
    for one, other in zip(found[4], expected[4], strict=True):
        np.testing.assert_array_equal(one, other)


@contextmanager
def another_thread(work):
    """A thread that does its work again and again; there must be no error in it."""
    stop, errors = threading.Event(), []

    def repeat():
        try:
            while not stop.is_set():
                work()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert errors == []


def test_a_child_can_do_all_while_another_thread_fits(expected):
    alone = model().atom_coef_

    def fit():
        assert np.array_equal(model().atom_coef_, alone)

    with another_thread(fit):
        for _ in range(6):
            assert_same(in_child(everything), expected)
    assert blas_threads() == {MANY}


def test_a_child_can_enter_while_another_thread_enters():
    """Entering and leaving is when the lock is held."""

    def enter():
        with Threads(1):
            pass

    with another_thread(enter):
        for _ in range(8):
            assert in_child(blas_threads) == {MANY}
            in_child(enter)


def test_a_fork_waits_for_compilations():
    compiling, done = threading.Event(), threading.Event()

    def compile_for_long():
        with global_compiler_lock:
            compiling.set()
            done.wait(0.3)

    thread = threading.Thread(target=compile_for_long)
    thread.start()
    compiling.wait()
    assert in_child(lambda: compiled(lambda x: 2 * x)(2)) == 4
    thread.join()


def test_a_fork_waits_for_imports(tmp_path, monkeypatch):
    (tmp_path / "slow_for_a_test.py").write_text("import time\ntime.sleep(0.3)\ndone = True\n")
    monkeypatch.setattr(laconic, "__path__", [*laconic.__path__, str(tmp_path)])
    name = "laconic.slow_for_a_test"
    thread = threading.Thread(target=__import__, args=(name,))
    thread.start()
    while name not in sys.modules:
        time.sleep(0.001)

    def again():
        __import__(name)
        return sys.modules[name].done

    assert in_child(again)
    thread.join()
    del sys.modules[name]


def test_a_module_may_fork_while_it_is_imported(tmp_path, monkeypatch):
    """It would wait for itself."""
    (tmp_path / "forking_for_a_test.py").write_text("import test_forks\ntest_forks.in_child(int)\n")
    monkeypatch.setattr(laconic, "__path__", [*laconic.__path__, str(tmp_path)])
    monkeypatch.setattr("laconic.numeric.forks.PATIENCE", 1e6)
    with another_thread(lambda: time.sleep(0.001)):
        __import__("laconic.forking_for_a_test")
    del sys.modules["laconic.forking_for_a_test"]


def test_problems_share_no_lock(monkeypatch):
    """A child solves its problem while another thread of its parent is at another one."""
    started, done = threading.Event(), threading.Event()

    def find(nested):
        started.set()
        done.wait()

    y = np.array([1, -1, 1, -1])
    problems = [SubsetProblem(np.ones((4, 2)), y, np.full(4, 0.25)) for _ in range(2)]
    monkeypatch.setattr("laconic.subset.problem.find_chains", find)
    thread = threading.Thread(target=lambda: problems[0].chains, daemon=True)
    thread.start()
    started.wait()
    monkeypatch.setattr("laconic.subset.problem.find_chains", len)
    assert in_child(lambda: problems[1].chains) == 2
    done.set()
    thread.join()


# -- forks inside a context ------------------------------------------------------------------------


def test_a_child_of_a_context_is_outside_of_it(expected):
    with Threads(2) as threads:
        list(threads.map(float, range(4)))
        assert_same(in_child(everything), expected)
        assert blas_threads() == {1}
        assert list(threads.map(float, range(4))) == [0.0, 1.0, 2.0, 3.0]
    assert blas_threads() == {MANY}


def test_a_child_may_go_on_with_the_contexts_of_its_parent():
    def use():
        found = [blas_threads()]
        for threads in (inner, outer):
            squares = list(threads.map(lambda i: i * i, range(20)))
            assert squares == [i * i for i in range(20)]
            found.append(blas_threads())
        inner.__exit__()
        found.append(blas_threads())
        outer.__exit__()
        return [*found, blas_threads()]

    def leave():
        inner.__exit__()
        outer.__exit__()
        with Threads(2):
            inside = blas_threads()
        return [inside, blas_threads()]

    with Threads(2) as outer, Threads(2) as inner:
        list(outer.map(float, range(8)))
        assert in_child(use) == [{MANY}, {1}, {1}, {1}, {MANY}]
        assert in_child(leave) == [{1}, {MANY}]
        assert in_child(lambda: in_child(use)) == [{MANY}, {1}, {1}, {1}, {MANY}]
        assert blas_threads() == {1}
    assert blas_threads() == {MANY}


def test_a_callback_may_fork(expected):
    found = []

    def fork(state):
        found.append(in_child(everything))
        found.append(blas_threads())

    forked = model("stumps", callbacks=[fork])
    for child, parent in zip(found[::2], found[1::2], strict=True):
        assert_same(child, expected)
        assert parent == {1}
    assert np.array_equal(forked.atom_coef_, model("stumps").atom_coef_)
    assert blas_threads() == {MANY}


def test_a_fit_may_go_on_in_parent_and_child():
    """Both return from the callback, and from the fit."""
    out, into = os.pipe()
    children = []

    def fork(state):
        if state.last.size == 1:
            children.append(os.fork())

    forked = model("stumps", callbacks=[fork])
    if children == [0]:
        os.write(into, pickle.dumps((forked.predictor_.scores(X), blas_threads())))
        os._exit(0)
    os.close(into)
    answered = select.select([out], [], [], GENEROUS)[0]
    if not answered:
        os.kill(children[0], signal.SIGKILL)
    os.waitpid(children[0], 0)
    with os.fdopen(out, "rb") as stream:
        scores, threads = pickle.loads(stream.read())
    np.testing.assert_allclose(scores, forked.predictor_.scores(X), rtol=1e-9)
    assert threads == {MANY}


# -- other ways to fork ----------------------------------------------------------------------------


def assert_all():
    assert everything()[:3] == ({MANY}, {1}, {MANY})


def exit_code(_):
    """How a process of `multiprocessing` ends, which leaves by another door than `os._exit`."""
    process = multiprocessing.get_context("fork").Process(target=assert_all)
    process.start()
    process.join(GENEROUS)
    if process.exitcode is None:
        process.kill()
    return process.exitcode


def test_processes_may_be_started_while_another_thread_fits():
    with another_thread(model):
        assert [exit_code(i) for i in range(3)] == [0, 0, 0]


def test_workers_may_fork():
    with Threads(2) as threads:
        assert list(threads.map(exit_code, range(2))) == [0, 0]
    assert blas_threads() == {MANY}


def test_joblib_may_fork_while_another_thread_fits():
    alone = model().atom_coef_
    with another_thread(model):
        jobs = joblib.Parallel(n_jobs=2, backend="multiprocessing", timeout=GENEROUS)
        found = jobs(joblib.delayed(model)() for _ in range(4))
    assert all(np.array_equal(one.atom_coef_, alone) for one in found)


def test_a_child_may_punch_holes_while_another_thread_finds_digests(monkeypatch):
    entered, go = threading.Event(), threading.Event()
    mixed = ties._mixed

    def slowly(values):
        if threading.current_thread().name == "slow":
            entered.set()
            go.wait(GENEROUS)
        return mixed(values)

    monkeypatch.setattr(ties, "_mixed", slowly)
    held = threading.Thread(target=lambda: ties.Digests(X).values, name="slow")
    held.start()
    try:
        assert entered.wait(GENEROUS)
        punched = HolePunchingClassifier(max_holes=2, min_rows=4)
        assert in_child(lambda: punched.fit(X, Y).n_holes_) == punched.fit(X, Y).n_holes_
    finally:
        go.set()
        held.join()


def test_no_property_has_a_lock_for_all_objects():
    """`functools.cached_property` has one before Python 3.12; `laconic.numeric.once` has none."""
    sources = Path(laconic.__file__).parent.rglob("*.py")
    assert not [p for p in sources if "import cached_property" in p.read_text()]
