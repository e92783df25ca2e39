"""Tests of devices run on torch's processor device, and those marked ``gpu`` on a GPU."""

from importlib.util import find_spec

import pytest

collect_ignore_glob = ["*conftest.py"] if find_spec("torch") else ["*.py"]


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    """The processor as a device, and a GPU."""
    return request.param


@pytest.fixture(autouse=True)
def needs_gpu(request):
    """Skip a test marked ``gpu`` if there is none."""
    import torch

    if request.node.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("there is no GPU")


@pytest.fixture(params=["pools", "twins"])
def pools_there(request, monkeypatch):
    """The pools on a device, and naive ones in their place, which ask those of the processor."""
    from laconic.device.pool import DEVICE_POOLS

    if request.param == "twins":
        for name in DEVICE_POOLS:
            monkeypatch.setitem(DEVICE_POOLS, name, "stand_in:bind")


@pytest.fixture
def there(monkeypatch):
    """Tensors in the memory of the processor count as tensors on a GPU."""
    from laconic.data import elsewhere

    monkeypatch.setattr(elsewhere, "PROCESSOR", ())
