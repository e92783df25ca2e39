"""Kernels are compiled once per machine where a cache can be written, and run where none can."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import laconic
from laconic.numeric.compiled import compiled

PACKAGE = Path(laconic.__file__).resolve().parent

# A folder that nobody can make, not even root.
NOWHERE = "/dev/null/folder"

KERNEL = """
from laconic.numeric.compiled import compiled

@compiled
def twice(x):
    return 2 * x
"""

# Imports every module that defines kernels, and compiles some of each kind.
FITS = """
import numpy as np
import laconic.rows.local_products, laconic.pools.balls
import laconic.clumping.averaging, laconic.deform.warp
from laconic import ShareBoostClassifier, TotalQBoostClassifier
from laconic.pools import Patches
from laconic.numeric import skinny_kernels as kernels

rng = np.random.default_rng(0)
X = rng.random((40, 36))
y = (X[:, 0] > 0.5).astype(int)
assert ShareBoostClassifier(1, pool="stumps").fit(X, y).score(X, y) == 1.0
patches = Patches(n_templates=4, template_size=3, mask_grid=2, mask_sigma=1.5)
model = ShareBoostClassifier(2, pool=patches).fit(X, y)
assert np.array_equal(model.predictor_.predict(X[:1]), model.predict(X)[:1])
print("fitted")
"""


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """Define a kernel in a module of a folder of its own, as if in a new process."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", NOWHERE)
    file = tmp_path / "kernels.py"
    file.write_text(KERNEL)

    def define():
        spec = importlib.util.spec_from_file_location("kernels", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.twice

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return define


def hits(function):
    return sum(function.stats.cache_hits.values())


def test_fits_and_predictions_need_no_cache(tmp_path):
    """Where neither the package nor the home folder can be written, by root neither."""
    shutil.copytree(PACKAGE, tmp_path / "laconic", ignore=shutil.ignore_patterns("__pycache__"))
    for file in list(tmp_path.rglob("*.py")):
        (file.parent / "__pycache__").write_text("no folder can be made here")
    known = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    done = subprocess.run(
        [sys.executable, "-B", "-c", FITS],
        env={**known, "PYTHONPATH": str(tmp_path), "HOME": NOWHERE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "fitted\n", done.stderr


def test_a_kernel_is_compiled_once_per_machine(kernel, tmp_path):
    assert kernel()(2) == 4
    assert list(tmp_path.glob("__pycache__/*.nbi"))
    again = kernel()
    assert again(2) == 4
    assert hits(again) == 1


INNER = """
from laconic.numeric.compiled import compiled

@compiled
def times(x):
    return {factor} * x
"""
BETWEEN = """
import inner
from laconic.numeric.compiled import compiled

@compiled
def beyond(x):
    return inner.times(x) + 1
"""
OUTER = """
from between import beyond
from laconic.numeric.compiled import compiled

@compiled
def outer(x):
    return 10 * beyond(x)
"""


def test_a_kernel_is_compiled_again_when_one_that_it_calls_changes(tmp_path, monkeypatch):
    """In another module, called by a kernel of a third one."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in {"between": BETWEEN, "outer": OUTER}.items():
        (tmp_path / f"{name}.py").write_text(text)

    def define(factor):
        (tmp_path / "inner.py").write_text(INNER.format(factor=factor))
        for name in ("inner", "between", "outer"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()
        return importlib.import_module("outer").outer

    assert define(2)(5) == 110
    again = define(2)
    assert again(5) == 110
    assert hits(again) == 1
    changed = define(3)
    assert changed(5) == 160
    assert hits(changed) == 0


def test_a_kernel_works_where_no_cache_can_be_written(kernel, tmp_path):
    (tmp_path / "__pycache__").write_text("")
    assert kernel()(2) == 4


def test_a_cache_folder_that_cannot_be_made_is_passed_over(kernel, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", NOWHERE)
    assert kernel()(2) == 4
    again = kernel()
    assert again(2) == 4
    assert hits(again) == 1


def test_a_cache_folder_may_go_before_the_first_call(kernel, tmp_path):
    twice = kernel()
    (tmp_path / "__pycache__").rmdir()
    (tmp_path / "__pycache__").write_text("")
    assert twice(2) == 4


def test_a_disk_may_be_full_at_the_first_call(kernel, tmp_path, full_disk):
    twice = kernel()
    with full_disk():
        assert twice(2) == 4
    assert list(tmp_path.glob("__pycache__/*")) == []


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_damaged_cache_is_made_anew(kernel, tmp_path, full_disk, ending):
    assert kernel()(2) == 4
    [file] = tmp_path.glob(f"__pycache__/*.{ending}")
    file.write_bytes(file.read_bytes()[:-9])
    assert kernel()(2) == 4
    again = kernel()
    assert again(2) == 4
    assert hits(again) == 1
    file.write_bytes(b"nonsense")
    with full_disk():
        assert kernel()(2) == 4


def plus(x, y):
    return x + y


def test_numba_can_be_told_to_compile_nothing(monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    assert compiled(plus) is plus


def test_options_are_each_kernels_own():
    assert compiled(plus).targetoptions["nogil"] is True
    fast = compiled(nogil=False, fastmath={"contract"})(plus)
    assert fast.targetoptions["nogil"] is False
    assert fast.targetoptions["fastmath"] == {"contract"}
    whole = compiled(signature=numba.types.int64(numba.types.int64, numba.types.int64))(plus)
    assert whole(1, 2) == 3
    with pytest.raises(TypeError):
        whole("1", "2")


def test_kernels_make_no_arrays():
    """They would count references, which takes as long to compile as the rest of a kernel."""

    def make(n):
        return np.empty(n)

    with pytest.raises(numba.TypingError):
        compiled(make)(3)


def test_all_kernels_are_compiled_alike():
    others = [f for f in PACKAGE.rglob("*.py") if "njit" in f.read_text(encoding="utf-8")]
    assert others == [PACKAGE / "numeric" / "compiled.py"]
