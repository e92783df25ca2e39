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
