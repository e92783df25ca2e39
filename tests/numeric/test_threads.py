"""Worker threads: order, nesting, and BLAS left as it was found."""

import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from laconic import ShareBoostClassifier
from laconic.numeric import threads as threads_module
from laconic.numeric.threads import Threads, row_blocks


def blas_threads():
    """Threads of every BLAS that can have more than one."""
    found = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
    return [lib["num_threads"] for lib in found if lib.get("threading_layer") != "disabled"]


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("n", [0, 1, 2, 100])
def test_answers_come_in_the_order_of_the_items(n_jobs, n):
    with Threads(n_jobs) as threads:
        assert list(threads.map(lambda i: i * i, range(n))) == [i * i for i in range(n)]


def test_a_worker_may_map_too():
    with Threads(2) as threads:
        nested = threads.map(lambda i: sum(threads.map(lambda j: i * j, range(5))), range(8))
        assert list(nested) == [10 * i for i in range(8)]


def test_an_error_in_a_worker_reaches_the_caller():
    with Threads(2) as threads, pytest.raises(ZeroDivisionError):
        list(threads.map(lambda i: 1 / i, [1, 0]))


def test_overlapping_uses_leave_blas_as_it_was():
    before = blas_threads()
    first, second = Threads(2), Threads(2)
    first.__enter__()
    second.__enter__()
    assert set(blas_threads()) <= {1}
    first.__exit__()
    assert set(blas_threads()) <= {1}
    second.__exit__()
    assert blas_threads() == before


def test_any_thread_can_limit_blas_and_restore_it():
    """Also while the first thread that did so lives on."""
    one, other = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
    first, second = Threads(1), Threads(1)
    steps = [
        (one, first.__enter__, 1),
        (other, second.__enter__, 1),
        (one, first.__exit__, 1),
        (other, second.__exit__, 2),
        (other, first.__enter__, 1),
        (one, first.__exit__, 2),
    ]
    with one, other, threadpool_limits(2, user_api="blas"):
        for thread, step, expected in steps:
            thread.submit(step).result()
            assert set(blas_threads()) == {expected}


def test_libraries_are_searched_again_only_after_an_import(monkeypatch):
    searches = []

    def search():
        searches.append(1)
        return ThreadpoolController()

    monkeypatch.setattr(threads_module, "ThreadpoolController", search)
    for n_modules in range(1, 4):
        monkeypatch.setitem(sys.modules, f"module {n_modules}", ModuleType("new"))
        for _ in range(3):
            with Threads(1):
                assert set(blas_threads()) <= {1}
        assert len(searches) == n_modules


def test_concurrent_fits_are_each_as_alone():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 12))
    y = (X[:, :3] @ [1.0, -1.0, 0.5] + rng.standard_normal(6000) > 0).astype(int)
    alone = ShareBoostClassifier(5).fit(X, y).atom_coef_
    found = {}

    def fit(key):
        found[key] = ShareBoostClassifier(5).fit(X, y).atom_coef_

    workers = [threading.Thread(target=fit, args=(i,)) for i in range(3)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert all(np.array_equal(found[i], alone) for i in range(3))


def test_row_blocks_cover_every_row_once():
    for n, block in [(0, 4), (1, 4), (8, 4), (9, 4)]:
        rows = [i for s in row_blocks(n, block) for i in range(n)[s]]
        assert rows == list(range(n))


def test_a_copy_that_was_pickled_is_outside_of_the_context():
    """Otherwise it would enter a context that nobody leaves."""
    with threadpool_limits(2, user_api="blas"):
        with Threads(2) as threads:
            copy = pickle.loads(pickle.dumps(threads))
        assert copy.n_jobs == 2
        assert list(copy.map(abs, range(-3, 3))) == [3, 2, 1, 0, 1, 2]
        assert set(blas_threads()) == {2}
