"""Workers: order, errors, pieces that are left out, and the part of the thread that asks."""

import threading
import time

import pytest

from laconic.numeric import workers
from laconic.numeric.workers import Workers


@pytest.fixture
def three():
    given = Workers(2)
    yield given
    given.end()


@pytest.mark.parametrize("n", [2, 3, 200])
def test_results_are_those_of_map_in_its_order(three, n):
    def slowly(i):
        time.sleep(0.001 * (i % 3))
        return i * i

    assert list(three.map(slowly, range(n), 2)) == [i * i for i in range(n)]


def test_the_last_piece_that_is_awaited_may_end_first():
    """The thread that asks waits for the last piece. Then it still needs those before it."""
    given, order = Workers(3), [0.03, 0.02, 0.0, 0.05, 0.0, 0.01]
    for _ in range(20):
        assert list(given.map(lambda s: time.sleep(s) or s, order, 3)) == order
    given.end()


def test_work_begins_before_anyone_asks_for_a_result(three):
    begun = threading.Event()
    results = three.map(lambda i: begun.set(), range(3), 2)
    assert begun.wait(60)
    assert list(results) == [None] * 3


def test_the_thread_that_asks_works_too():
    """Else it would wait for ever, because both workers wait for it."""
    given, go = Workers(2), threading.Event()

    def piece(i):
        if threading.current_thread() is threading.main_thread():
            go.set()
        else:
            assert go.wait(60)
        return i

    assert list(given.map(piece, range(5), 2)) == list(range(5))
    given.end()


def test_an_error_comes_where_its_result_would(three):
    results = three.map(lambda i: 1 / (2 - i), range(5), 2)
    assert [next(results), next(results)] == [0.5, 1.0]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_after_an_error_no_piece_begins(three):
    done = []

    def piece(i):
        if i == 0:
            raise KeyError
        time.sleep(0.01)
        done.append(i)

    with pytest.raises(KeyError):
        list(three.map(piece, range(1000), 2))
    time.sleep(0.05)
    before = len(done)
    time.sleep(0.05)
    assert len(done) == before < 20


def test_an_interrupt_stops_the_work(three):
    """The thread that asks gets the interrupt while it does a piece itself."""
    done = []

    def piece(i):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        time.sleep(0.01)
        done.append(i)

    with pytest.raises(KeyboardInterrupt):
        list(three.map(piece, range(1000), 2))
    assert len(done) < 20
    assert not workers.is_worker()


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, ZeroDivisionError])
def test_any_error_of_a_worker_reaches_the_thread_that_asks(three, error):
    """Otherwise that thread would wait forever for a piece that nobody does."""

    def piece(i):
        time.sleep(0.01)
        if threading.current_thread() is not threading.main_thread():
            raise error
        return i

    for _ in range(3):
        with pytest.raises(error):
            list(three.map(piece, range(20), 2))
    assert list(three.map(abs, range(20), 2)) == list(range(20))


def test_the_end_leaves_out_what_nobody_has_begun():
    given, done = Workers(2), []

    def piece(i):
        time.sleep(0.01)
        done.append(i)

    results = given.map(piece, range(1000), 2)
    given.end()
    assert len(done) < 20
    del results


def test_a_thread_is_a_worker_only_during_its_pieces(three):
    assert not workers.is_worker()
    assert all(three.map(lambda i: workers.is_worker(), range(10), 2))
    assert not workers.is_worker()
