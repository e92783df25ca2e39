"""What is asked of streams and graphs, with stand-ins for those of CUDA."""

import gc
import threading
import time
import weakref
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from laconic.device import newton_steps, place, shard
from laconic.device.newton_steps import captured
from laconic.device.pool import device_pool
from laconic.device.shard import on_device
from laconic.losses import LogLoss
from laconic.numeric.threads import Threads
from laconic.pools import Columns

THERE = torch.device("cpu")


class Stream:
    """A stream that does nothing."""

    def __init__(self, device=None):
        self.device = device

    def wait_stream(self, other):
        pass


class Graph:
    """A graph that only one thread may record at a time."""

    recording = 0
    log: list = []  # noqa: RUF012

    def capture_begin(self, pool=None, capture_error_mode="global"):
        Graph.recording += 1
        Graph.log.append((Graph.recording, capture_error_mode))

    def capture_end(self):
        Graph.recording -= 1

    def pool(self):
        return "memory"


@pytest.fixture
def cuda(monkeypatch):
    """Stand-ins in the place of streams and graphs."""
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(newton_steps, "_stream", Stream)
    monkeypatch.setattr(Graph, "log", [])


def test_threads_record_one_after_the_other_and_do_not_disturb(cuda):
    def record():
        captured(lambda: time.sleep(0.02), THERE, None)

    threads = [threading.Thread(target=record) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Graph.log == [(1, "relaxed")] * 4


def test_a_failed_record_leaves_the_others_free(cuda):
    with pytest.raises(ZeroDivisionError):
        captured(lambda: 1 / 0, THERE, None)
    assert isinstance(captured(lambda: None, THERE, Graph()), Graph)
    assert Graph.recording == 0


@pytest.mark.gpu
def test_a_graph_that_is_thrown_away_does_not_disturb_a_record():
    x = torch.zeros(3, device="cuda")

    def add():
        x.add_(1.0)

    def throw_away_and_add():
        old.clear()
        add()

    add()
    old = [captured(add, x.device, None)]
    graph = captured(throw_away_and_add, x.device, None)
    graph.replay()
    assert x.tolist() == [2.0] * 3


@pytest.mark.usefixtures("no_collector")
def test_the_memory_of_a_shard_is_free_as_soon_as_nobody_holds_it():
    X, weight = torch.rand(50, 3), torch.full((50,), 0.02, dtype=torch.float64)
    own = on_device(
        device_pool(Columns(), X, weight, Threads(1)), LogLoss(), torch.arange(50) % 2, weight, 2
    )
    own.put_constant()
    own.take(own.offer([0, 1]) * 0.0)
    W = np.zeros((3, 2))
    own.evaluate(W)
    steps = own.steps()
    steps.renew(np.zeros((2, 2)), 1, 1e-16)
    steps.find(np.ones((2, 2)), np.ones((3, 2)), True, 0.5, 10)
    held = weakref.ref(own)
    del own
    assert held() is None


@pytest.fixture
def no_collector():
    """Without the collector of garbage, only what nobody holds is thrown away."""
    gc.disable()
    yield
    gc.enable()


def test_trials_record_no_graphs(monkeypatch):
    """Rules try atoms on several threads at a time."""
    asked = []
    monkeypatch.setattr(shard, "DeviceSteps", lambda *given: asked.append(given[-1]))
    X, weight = torch.rand(50, 3), torch.full((50,), 0.02, dtype=torch.float64)
    bound = device_pool(Columns(), X, weight, Threads(1))
    own = on_device(bound, LogLoss(), torch.arange(50) % 2, weight, 2)
    own.put_constant()
    own.evaluate(np.zeros((1, 2)))
    for each in (own, own.trial(True), own.trial(False)):
        each.take(each.offer([0]) * 0.0)
        each.steps()
    assert asked == [True, False, False]


def test_a_piece_is_free_when_the_stream_of_its_device_has_sent_it(cuda, monkeypatch):
    recorded = []

    class Event:
        def synchronize(self):
            pass

        def record(self, stream=None):
            recorded.append(stream.device)

    empty = torch.empty

    def unpinned(*shape, pin_memory=False, **given):
        return empty(*shape, **given)

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch, "empty", unpinned)
    monkeypatch.setattr(place, "MOVED", 1000)
    array = np.random.default_rng(0).random((100, 7))
    array.flags.writeable = False
    assert np.array_equal(place._moved_in_pieces(array, THERE).numpy(), array)
    assert len(recorded) > 2
    assert set(recorded) == {THERE}


def test_large_arrays_are_not_copied_before_they_are_moved(monkeypatch):
    found = []
    monkeypatch.setattr(place, "_moved_in_pieces", lambda array, device: found.append(array))
    monkeypatch.setattr(place, "MOVED", 1000)
    array = np.zeros((100, 7))
    array.flags.writeable = False
    place.moved(array, torch.device("cuda"))
    assert found[0] is array
