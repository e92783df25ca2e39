"""Arrays that each thread keeps and writes again."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np

from laconic.numeric import rooms
from laconic.numeric.rooms import KEPT, kept


def same_memory(a, b):
    return a.__array_interface__["data"][0] == b.__array_interface__["data"][0]


def test_an_array_has_the_shape_and_type_asked_for():
    for shape, dtype in (((3, 5), "f4"), ((7,), "f8"), ((0, 4), "f4"), ((2, 3, 4), "u2")):
        found = kept("a name", shape, dtype)
        assert found.shape == shape
        assert found.dtype == dtype
        assert found.flags.c_contiguous
        assert found.flags.writeable


def test_the_same_name_gets_the_same_memory_as_long_as_it_is_enough():
    first = kept("one", (100,), "f8")
    assert same_memory(kept("one", (3, 7), "f4"), first)
    assert not np.shares_memory(kept("two", (100,), "f8"), first)
    larger = kept("one", (200,), "f8")
    assert not np.shares_memory(larger, first)
    assert same_memory(kept("one", (100,), "f8"), larger)


def test_a_large_array_is_not_kept():
    large = kept("large", (KEPT + 1,), "u1")
    assert large.shape == (KEPT + 1,)
    assert "large" not in rooms._here.held


def test_threads_share_no_array():
    both = Barrier(2)

    def work(number):
        mine = kept("shared name", (50,), "f8")
        mine[:] = number
        both.wait()
        return mine.sum(), mine

    with ThreadPoolExecutor(2) as pool:
        (a, first), (b, second) = pool.map(work, (1, 2))
    assert (a, b) == (50.0, 100.0)
    assert not np.shares_memory(first, second)
