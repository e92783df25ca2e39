"""Sums keep all digits, whatever users and other threads switch on."""

import threading

import pytest
import torch

from laconic.device import pool as pools
from laconic.device.pool import device_pool
from laconic.device.precision import full_precision
from laconic.device.shard import on_device
from laconic.losses import LogLoss
from laconic.numeric.threads import Threads
from laconic.pools import Columns

MATMULS = [torch.backends.cuda.matmul]
NAME = "fp32_precision" if hasattr(MATMULS[0], "fp32_precision") else "allow_tf32"
if NAME == "fp32_precision":
    MATMULS.append(torch.backends.mkldnn.matmul)


def settings():
    return [getattr(matmul, NAME) for matmul in MATMULS]


def exact():
    return all(setting in (False, "ieee") for setting in settings())


@pytest.fixture(params=["high", "medium"])
def short(request):
    """Settings of a user who trains networks."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(request.param)
    yield settings()
    torch.set_float32_matmul_precision(before)


def test_short_floats_are_off_inside_and_as_before_outside(short):
    with full_precision():
        assert exact()
        with full_precision():
            assert exact()
        assert exact()
    assert settings() == short


def test_the_last_of_several_threads_restores_the_settings(short):
    begun, ended, found = threading.Event(), threading.Event(), []

    def other():
        with full_precision():
            begun.set()
            ended.wait(10)
            found.append(exact())

    thread = threading.Thread(target=other)
    with full_precision():
        thread.start()
        begun.wait(10)
    ended.set()
    thread.join()
    assert found == [True]
    assert settings() == short


def test_pools_are_bound_and_classes_summed_with_all_digits(short, monkeypatch):
    from laconic.device import columns, shard

    found = []

    def spied(function):
        def spy(*given):
            found.append(exact())
            return function(*given)

        return spy

    monkeypatch.setitem(pools.DEVICE_POOLS, "Columns", "laconic.device.columns:bind")
    monkeypatch.setattr(columns, "bind", spied(columns.bind))
    monkeypatch.setattr(shard, "sums_over_rows", spied(shard.sums_over_rows))
    X, weight = torch.rand(50, 3), torch.full((50,), 0.02, dtype=torch.float64)
    bound = device_pool(Columns(), X, weight, Threads(1))
    rows = on_device(bound, LogLoss(), torch.arange(50) % 2, weight, 2)
    assert rows.class_shares().tolist() == pytest.approx([0.5, 0.5])
    rows.put_constant()
    assert found
    assert all(found)
