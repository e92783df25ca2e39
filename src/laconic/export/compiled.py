"""Run an exported header from Python: compile it on this machine, and call it row by row."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from laconic.export.labels import label_values

if TYPE_CHECKING:
    from laconic.export.header import CHeader

FLAGS = ("-std=c99", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-fPIC", "-shared")

_CALLER = """\
#include "{name}.h"
void laconic_scores(const {name}_input *x, long n, {name}_score *out)
{{
    long i;
    for (i = 0; i < n; i++) {{
        {name}_scores(x + i * {NAME}_N_FEATURES, out + i * {NAME}_N_SCORES);
    }}
}}
void laconic_predict(const {name}_input *x, long n, int32_t *out)
{{
    long i;
    for (i = 0; i < n; i++) {{
        out[i] = {name}_predict(x + i * {NAME}_N_FEATURES);
    }}
}}
"""


def find_compiler(compiler: str | None = None) -> str:
    """Return the path of a C compiler, or raise an error that says how to get one."""
    wanted = compiler or os.environ.get("CC") or "cc"
    found = shutil.which(wanted)
    if found is None:
        raise FileNotFoundError(
            f"there is no C compiler {wanted!r}; install one (on Debian: apt-get install gcc), or "
            "name it with compiler="
        )
    return found


class CompiledModel:
    """The compiled code of a header. `scores` and `predict` run it on rows of any kind.

    Rows are given as to the predictor: arrays, sparse matrices or data frames.
    """

    def __init__(self, header: CHeader, compiler: str | None = None, flags: Any = ()) -> None:
        self.header = header
        folder = tempfile.mkdtemp(prefix="laconic-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        name = header.name
        (Path(folder) / f"{name}.h").write_text(str(header))
        source, library = Path(folder) / "caller.c", Path(folder) / "model.so"
        source.write_text(_CALLER.format(name=name, NAME=name.upper()))
        command = [find_compiler(compiler), *FLAGS, *flags, str(source), "-o", str(library), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the C compiler failed: {done.stderr.strip()}")
        self._library = ctypes.CDLL(str(library))
        self._given = np.dtype(np.float32)
        self._score = np.dtype(np.float32)
        if header.integers is not None:
            inputs = header.integers.inputs
            self._given = np.dtype(np.float32) if inputs.given == "float" else inputs.dtype
            self._score = np.dtype(f"int{header.integers.accumulator}")

    def rows(self, X: Any) -> np.ndarray:
        """Return rows as the device gets them, (n_rows, n_features). What is not read is 0."""
        return self.header.predictor.device_rows(X)

    def scores(self, X: Any) -> np.ndarray:
        """Return the scores that the compiled code computes."""
        return self.device_scores(self.rows(X))

    def device_scores(self, rows: np.ndarray) -> np.ndarray:
        """Return the scores of rows of the device's own numbers."""
        out = np.empty((len(rows), self.header.program.n_outputs), dtype=self._score)
        self._call("laconic_scores", rows, out)
        return out

    def predict(self, X: Any) -> np.ndarray:
        """Return the labels that the compiled code computes."""
        out = np.empty(X.shape[0], dtype=np.int32)
        self._call("laconic_predict", self.rows(X), out)
        values = label_values(self.header.predictor.classes)
        order = np.argsort(values)
        classes: np.ndarray = self.header.predictor.classes
        return classes[order[np.searchsorted(values, out, sorter=order)]]

    def _call(self, function: str, rows: np.ndarray, out: np.ndarray) -> None:
        rows = np.ascontiguousarray(rows, dtype=self._given)
        pointers = rows.ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p)
        getattr(self._library, function)(pointers[0], ctypes.c_long(len(rows)), pointers[1])
