"""Rows in files, read in parts of `SIZE` rows."""

import numpy as np
import pytest

from laconic.beyond import npy, parquet
from laconic.data import elsewhere

SIZE = 50
"""Rows of a part."""


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Read a few rows at a time."""
    for module in (elsewhere, npy, parquet):
        monkeypatch.setattr(module, "CHUNK", SIZE)


@pytest.fixture
def map_of(tmp_path):
    """Write an array to a .npy file, and return it as a memory map."""

    def write(X, name="map.npy"):
        np.save(tmp_path / name, X)
        return np.load(tmp_path / name, mmap_mode="r")

    return write


@pytest.fixture
def npy_files(tmp_path):
    """Write arrays to a .npy file each, and return the paths."""

    def write(arrays, stem="x"):
        paths = [str(tmp_path / f"{stem}{number}.npy") for number in range(len(arrays))]
        for path, array in zip(paths, arrays, strict=True):
            np.save(path, array)
        return paths

    return write


@pytest.fixture
def parquet_file(tmp_path):
    """Write a frame or an Arrow table to a Parquet file of small row groups."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")

    def write(rows, name="rows.parquet", group=SIZE // 2):
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_pandas(rows)
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        pq.write_table(table, path, row_group_size=group)
        return path

    return write


@pytest.fixture(scope="module")
def cluster():
    """A cluster of two workers. A fit uses it inside ``with cluster.as_current()``."""
    dask_rows = pytest.importorskip("dask_rows")
    with dask_rows.workers(2) as client:
        yield client


@pytest.fixture(params=["here", "cluster"])
def anywhere(request):
    """Dask computes in this process, or on a cluster."""
    if request.param == "here":
        yield None
        return
    client = request.getfixturevalue("cluster")
    with client.as_current():
        yield client
