"""Models as C headers: what they take on a chip, and what their code answers on this machine.

A header of any library will do, if it has ``model_input``, ``MODEL_N_FEATURES`` and
``model_predict``; :func:`peer_header` writes them. All headers are compiled with the flags of
:mod:`laconic.export.chips`.
"""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from laconic.export.chips import BARE, FLAGS, Chip, build, sizes, write_model

CALLER = """\
#include "model.h"
void answer(const model_input *x, long n, int32_t *out)
{
    long i;
    for (i = 0; i < n; i++) {
        out[i] = model_predict(x + i * MODEL_N_FEATURES);
    }
}
"""


# The second part is left out of the file with the scores, because it may define global functions.
PEER = """\
#include <stdint.h>
#define MODEL_N_FEATURES {n}
#define MODEL_N_SCORES 1
typedef {ctype} model_input;
typedef int32_t model_score;
static inline void model_scores(const model_input *x, model_score *s) {{ (void)x; s[0] = 0; }}
#ifndef MODEL_ONLY_SCORES
{code}
static inline int model_predict(const model_input *x) {{ {body} }}
#endif
"""


class Model(NamedTuple):
    """A model that was fitted on all training rows.

    ``rows`` are the test rows. The chip gets them in the NumPy type ``inputs``. ``validation`` is
    the error on validation rows of the same settings, fitted on the other training rows.
    ``expected`` are Python's labels of the test rows.
    """

    library: str
    title: str
    header: str
    inputs: str
    validation: float
    rows: np.ndarray
    expected: np.ndarray


def peer_header(code: str, ctype: str, n_features: int, body: str) -> str:
    """Return C code of another library as the header of a model. ``body`` calls it on ``x``."""
    return PEER.format(code=code, ctype=ctype, n=n_features, body=body)


def taken(header: str, chip: Chip) -> tuple[int, int] | tuple[None, None]:
    """Return the bytes of flash and of RAM that a program grows by when it calls the model.

    This is :func:`laconic.export.chips.measure`, with the mathematical library at hand. If the
    compiler or the linker finds it too large, for example because the code exceeds 64 kB on an
    ATmega328, the sizes are None.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = [BARE / "probe.c", write_model(header, folder), *mathematics(chip)]
        try:
            program = build(chip, sources, folder, ["-DWITH_MODEL"])
        except ValueError as reason:
            if not any(why in str(reason) for why in ("ld returned", "too large")):
                raise
            return None, None
        flash, ram = sizes(chip, program)
    return flash - _alone(chip)[0], ram - _alone(chip)[1]


def answers(header: str, rows: np.ndarray) -> np.ndarray:
    """Return the labels that the compiled header gives rows of the header's input type."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "caller.c", Path(folder) / "model.so"
        (Path(folder) / "model.h").write_text(header)
        source.write_text(CALLER)
        command = ["cc", *FLAGS, "-fPIC", "-shared", str(source), "-o", str(library), "-lm"]
        subprocess.run(command, check=True, capture_output=True, text=True)
        answer = ctypes.CDLL(str(library)).answer
    out = np.empty(len(rows), np.int32)
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (rows, out)]
    answer(pointers[0], ctypes.c_long(len(rows)), pointers[1])
    return out


@functools.cache
def _alone(chip: Chip) -> tuple[int, int]:
    with tempfile.TemporaryDirectory() as folder:
        return sizes(chip, build(chip, [BARE / "probe.c"], Path(folder)))


@functools.cache
def mathematics(chip: Chip) -> list[Path]:
    """Return the chip's libm.a, if there is one. Functions that are not called cost nothing."""
    command = [chip.compiler, *chip.flags, "-print-file-name=libm.a"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = Path(done.stdout.strip())
    return [found] if found.is_file() else []
