"""Fixtures that more than one test file uses."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets

import laconic
from in_depth import mark_the_rest

REPOSITORY = Path(__file__).resolve().parents[1]
# Files of fixtures all have this name, so no two of them can be imported to look for doctests.
collect_ignore_glob = ["*conftest.py"]


def pytest_collection_modifyitems(items):
    """Mark every test that uses the real data sets as a ``data`` test. Slow tests come first.

    A slow test at the end would run alone, with the other workers idle.
    """
    for item in items:
        if "data_dir" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.data)
    mark_the_rest(items)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session")
def data_dir():
    """Folder of the real data sets, next to the repository."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data sets are not next to the repository")
    return folder


@pytest.fixture(scope="module")
def browser():
    """An installed Chromium without a window. ``make browser`` installs one."""
    playwright = pytest.importorskip("playwright.sync_api")
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("there is no Chromium on this machine")
    # Chromium's sandbox does not start as root. The tests open only pages that they wrote.
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
    with playwright.sync_playwright() as play:
        started = play.chromium.launch(executable_path=found, args=flags)
        yield started
        started.close()


@pytest.fixture
def three_classes():
    """150 noisy rows of 8 columns. Three classes of different sizes differ in the first four."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((150, 8)) * [1, 3, 0.2, 1, 1, 10, 1, 1]
    scores = (X / np.abs(X).max(axis=0))[:, :4] @ rng.standard_normal((4, 3)) + [0.3, 0, -0.3]
    y = (scores + 0.15 * rng.standard_normal(scores.shape)).argmax(axis=1)
    return X, y


@pytest.fixture
def few_digits(monkeypatch):
    """The demonstration has 300 of its digits."""
    X, y = sklearn.datasets.load_digits(return_X_y=True)
    few = X[:300], y[:300]
    monkeypatch.setattr(sklearn.datasets, "load_digits", lambda return_X_y: few)


# A process that imports the package once and forks a child for each case. The child runs `die`,
# which must kill it. The process prints the signals that ended the children.
FORKS = """
import json, os, signal, sys
import numpy as np
import sklearn.linear_model
import laconic, laconic.numeric.bits, laconic.pools.histograms
{code}
children = []
for case in json.loads(sys.argv[1]):
    child = os.fork()
    if child == 0:
        try:
            die(*case)
        finally:
            os._exit(1)
    children.append(child)
print(*(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


@pytest.fixture(scope="session")
def killed_fits(python):
    """Run ``die(*case)`` of the given code for each case, in a process that must die by SIGKILL."""

    def run(code, cases):
        if not hasattr(signal, "SIGKILL"):
            pytest.skip("needs SIGKILL")
        cases = [[str(part) if isinstance(part, Path) else part for part in c] for c in cases]
        out, errors = python(FORKS.format(code=code), json.dumps(cases)).communicate(timeout=120)
        assert out.split() == [str(-signal.SIGKILL)] * len(cases), errors

    return run


@pytest.fixture(scope="session")
def python():
    """Start a fresh interpreter that imports the package under test; return a `Popen`."""
    source = str(Path(laconic.__file__).resolve().parents[1])
    path = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])

    def start(code, *arguments):
        return subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.fixture(scope="session")
def unprivileged(python):
    """Run code without root's rights, and return what it printed.

    The modules in ``imports`` are loaded before the rights are given up, because other users may
    have no access to the interpreter itself.
    """
    change = "os.setgroups([]), os.setgid(65534), os.setuid(65534)"

    def run(imports, code, *arguments):
        give_up = f"import os\nif os.getuid() == 0: {change}"
        process = python(f"{imports}\n{give_up}\n{code}", *arguments)
        out, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        return out

    return run


@pytest.fixture
def open_folder():
    """A folder that every user can write to. Only their owner can use pytest's folders."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.fixture(scope="session")
def full_disk():
    """A context in which no file can grow beyond a number of bytes."""
    resource = pytest.importorskip("resource")

    @contextmanager
    def limit(size=0):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return limit


@pytest.fixture
def full_device(tmp_path):
    """A device without space. Root gets a copy, because a fault could replace the real device."""
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    if os.getuid() != 0:
        return Path("/dev/full")
    device = tmp_path / "full"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.stat("/dev/full").st_rdev)
        device.open("wb").close()
    except OSError as error:
        pytest.skip(f"no device can be made here: {error}")
    return device


@pytest.fixture
def assert_identical():
    """Check that two fits are identical to the last bit, at every size and in the chosen model."""

    def compare(one, other):
        assert one.n_atoms_ == other.n_atoms_
        assert one.atoms_ == other.atoms_
        assert np.array_equal(one.atom_coef_, other.atom_coef_)
        assert np.array_equal(one.intercept_, other.intercept_)
        assert np.array_equal(one.classes_, other.classes_)
        assert len(one.path_) == len(other.path_)
        for a, b in zip(one.path_, other.path_, strict=True):
            assert a.atoms == b.atoms
            assert np.array_equal(a.weights, b.weights)
            assert np.array_equal(a.intercept, b.intercept)
            assert np.array_equal(a.scales, b.scales)
            for name in ("loss", "objective", "gains", "inner", "cost", "certificate"):
                assert getattr(a, name) == getattr(b, name), name
            assert np.array_equal(a.steepest, b.steepest, equal_nan=True)

    return compare
