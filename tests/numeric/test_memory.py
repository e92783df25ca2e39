"""What will not fit in memory is told before it is made, with an estimate and what to change."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from laconic import HolePunchingClassifier
from laconic.clumping.neighbours import given_graph, nearest_graph, radius_graph
from laconic.numeric import memory
from laconic.numeric.threads import Threads
from laconic.pools import Patches, Pieces, Products, Stumps

RNG = np.random.default_rng(0)
X, y = RNG.standard_normal((64, 16)), np.arange(64) % 2
EVEN = np.full(64, 1 / 64)


def bound(pool):
    with Threads(1) as threads:
        return pool.bind(X, EVEN, threads)


PATCHES = Patches(n_templates=5, template_size=3, mask_grid=2, mask_sigma=1.0)
MADE = {
    "radius": (lambda: radius_graph(X, 20.0), "graph of the neighbours of 64 rows", "radius"),
    "small radius": (lambda: radius_graph(X, 3.5), "graph of the neighbours", "radius"),
    "metric": (lambda: radius_graph(X, 3.0, metric="manhattan"), "graph of", "sample of the rows"),
    "nearest": (lambda: nearest_graph(X, 5), "graph of the neighbours", "n_neighbors"),
    "given": (lambda: given_graph(sparse.eye(64, k=1), 64), "graph of", "neighbours"),
    "holes": (
        lambda: HolePunchingClassifier(LogisticRegression(), 1).fit(X, y),
        "finding the 64 rows around",
        "sample of the rows",
    ),
    "stumps": (lambda: bound(Stumps()), "coding 16 features of 64 rows", "pool='columns'"),
    "pieces": (lambda: bound(Pieces(5, 3)), "pool of pieces on 64 rows", "lower n_centres"),
    "patches": (lambda: bound(PATCHES), "patches on 64 images", "lower n_templates"),
    "products": (lambda: bound(Products()).squares(EVEN), "writing down 120 products", "fewer"),
}


@pytest.mark.parametrize("name", MADE)
def test_what_will_not_fit_is_told(name, monkeypatch):
    make, what, instead = MADE[name]
    monkeypatch.setattr(memory, "available_bytes", lambda: 1)
    message = (
        rf"{what}.* takes about \S+ GB, but only 1e-09 GB of memory are available; .*{instead}"
    )
    with pytest.warns(UserWarning, match=message):
        make()
    for enough in (1 << 40, None):
        monkeypatch.setattr(memory, "available_bytes", lambda enough=enough: enough)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            make()


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_the_estimate_of_a_graph_is_what_it_takes(metric, monkeypatch):
    """m²/8 bytes, or less where neighbours are few."""
    rows = RNG.standard_normal((4000, 2))
    for radius, fits in ((1.0, 1_999_000), (0.01, 200_000)):
        monkeypatch.setattr(memory, "available_bytes", lambda fits=fits: fits)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            graph = radius_graph(rows, radius, metric=metric)
        assert graph.nbytes < 2_100_000
        assert len(told) == (radius == 1.0)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_available_memory_is_what_linux_says(tmp_path):
    told = "MemTotal: 900 kB\nMemFree: 10 kB\nMemAvailable:   400 kB\n"
    write(tmp_path / "proc/meminfo", told)
    assert memory.available_bytes(tmp_path) == 400 * 1024


@pytest.mark.parametrize("group", ["", "memory/"])
def test_a_container_may_leave_less(tmp_path, group):
    limit, used = ("limit_in_bytes", "usage_in_bytes") if group else ("max", "current")
    write(tmp_path / "proc/meminfo", "MemAvailable: 400 kB\n")
    folder = tmp_path / "sys/fs/cgroup" / group
    write(folder / f"memory.{limit}", "5000\n")
    write(folder / f"memory.{used}", "3000\n")
    assert memory.available_bytes(tmp_path) == 2000
    write(folder / "memory.stat", "anon 5\ninactive_file 700\n")
    assert memory.available_bytes(tmp_path) == 2700
    write(folder / f"memory.{limit}", "max\n")
    assert memory.available_bytes(tmp_path) == 400 * 1024


@pytest.mark.parametrize("group", ["", "memory"])
def test_a_group_around_the_process_may_leave_less(tmp_path, group):
    """A job of a cluster, or a service, is in a group within others, each with a limit."""
    limit, used = ("limit_in_bytes", "usage_in_bytes") if group else ("max", "current")
    write(tmp_path / "proc/meminfo", "MemAvailable: 400 kB\n")
    write(tmp_path / "proc/self/cgroup", f"4:cpu:/other\n0:{group}:/jobs/one\n")
    for path, most in (("jobs/one", 9000), ("jobs", 7000), ("other", 10)):
        folder = tmp_path / "sys/fs/cgroup" / group / path
        write(folder / f"memory.{limit}", f"{most}\n")
        write(folder / f"memory.{used}", "3000\n")
    assert memory.available_bytes(tmp_path) == 4000


def test_other_systems_have_what_the_machine_has(tmp_path, monkeypatch):
    sizes = {"SC_PHYS_PAGES": 100, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(memory.os, "sysconf", sizes.__getitem__, raising=False)
    assert memory.available_bytes(tmp_path) == 409_600
    monkeypatch.delattr(memory.os, "sysconf")
    assert memory.available_bytes(tmp_path) is None


def test_this_machine_says_something():
    assert memory.available_bytes() > 1 << 20
