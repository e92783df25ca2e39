"""Models of scikit-learn that emlearn writes as C: trees, forests and networks.

* emlearn cuts the thresholds of trees down to integers, and asks x < t where scikit-learn asks
  x ≤ t. So 1 is added to all thresholds here. Then both ask the same.
* Forests vote in C: by majority (``leaf_bits=0``), or with class shares of 3 to 8 bits.
* Trees are written as code (``inline``) and as tables (``loadable``). On AVR, emlearn keeps tables
  in RAM.
* Networks need scaled inputs. The scales are part of the first layer's weights here, so the chip
  does not compute them. emlearn computes networks in floats, and only ``loadable`` ones work:
  version 0.23.2 fails to write inline ones, and its C code for fixed-point numbers is empty.
"""

from __future__ import annotations

import copy
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from _c_models import Model, peer_header
from _common import error, progress
from _forests import Forests, Rows, Vote, shift_thresholds, voted
from _networks import Networks, best_of_sizes

LEAF_BITS = (0, 4, 8)
# A leaf takes 8 bytes or more, as code and in a table. So this many leaves take 256 kB.
MOST_LEAVES = 32_768
# emlearn compares each leaf with all unlike ones, which takes hours for more leaves of 8 bits.
MOST_OF_8_BITS = 4096
# Tables have no room for the numbers of more columns.
MOST_COLUMNS = 127
CALL = "return peer_predict(x, MODEL_N_FEATURES);"


def imported() -> Any:
    """Return the module emlearn. Its import makes NumPy raise at every underflow: undo that."""
    with np.errstate():
        import emlearn

    return emlearn


def emlearn_models(forests: Forests, networks: Networks) -> Iterator[Model]:
    """Return trees, forests and networks as C, fitted on all training rows."""
    yield from _forest_models(forests)
    yield from _network_models(networks)


def _forest_models(forests: Forests) -> Iterator[Model]:
    emlearn, rows = imported(), forests.rows
    small, tables = rows.X.dtype == np.uint8, rows.X.shape[1] <= MOST_COLUMNS
    for bits in LEAF_BITS:
        found = forests.frontier(_vote(bits), MOST_OF_8_BITS if bits == 8 else MOST_LEAVES)
        progress(f"{rows.title}: emlearn, {len(found)} forests with {bits}-bit leaves")
        for grown in found:
            model = forests.fitted(grown)
            expected = voted(model, rows.X_test, _vote(bits))
            model = shift_thresholds(model, 1)
            forms = [("inline", "uint8_t" if small else "int16_t")]
            if tables:
                forms.append(("loadable", "int16_t"))
            for method, ctype in forms:
                converted = emlearn.convert(model, method=method, dtype=ctype, leaf_bits=bits)
                code = converted.save(name="peer", include_proba=False)
                vote = f"{bits}-bit shares" if bits else "majority"
                title = f"{grown.title}, {vote}, {method} {ctype}{_of(rows)}"
                yield Model("emlearn", title, header(code, ctype, rows.X.shape[1]),
                            ctype.removesuffix("_t"), grown.validation, rows.X_test,
                            expected)  # fmt: skip


def _vote(bits: int) -> Vote:
    """Return emlearn's vote: by majority, or with class shares of some bits."""
    from emlearn.trees import quantize_probabilities_into_byte

    if bits:
        return lambda p: quantize_probabilities_into_byte(p, bits).astype(np.int32)
    return lambda p: np.eye(p.shape[1], dtype=np.int32)[p.argmax(axis=1)]


def _network_models(networks: Networks) -> Iterator[Model]:
    emlearn, rows = imported(), networks.rows
    held = rows.X[rows.held], rows.y[rows.held]
    found = [(error(n.model.predict(n.scales(held[0])), held[1]), n) for n in networks.tried]
    for validation, tried in best_of_sizes(found):
        network = networks.fitted(tried)
        plain = copy.deepcopy(network.model)  # for rows as they are
        plain.coefs_[0] = plain.coefs_[0] / network.scales.scale[:, None]
        plain.intercepts_[0] = plain.intercepts_[0] - network.scales.mean @ plain.coefs_[0]
        with _inside_temporary_folder():  # emlearn compiles in the current folder
            code = emlearn.convert(plain, method="loadable").save(name="peer")
        title = f"network, {tried.hidden} hidden units, loadable float{_of(rows)}"
        yield Model("emlearn", title, header(code, "float", rows.X.shape[1]), "float32",
                    validation, rows.X_test, plain.predict(rows.X_test))  # fmt: skip


def _of(rows: Rows) -> str:
    return f", {rows.title}" if "codes" in rows.title or "one-hot" in rows.title else ""


def header(code: str, ctype: str, n_features: int) -> str:
    """Return emlearn's code, with the files that it includes, as the header of a model."""
    return peer_header(_whole(code, set()), ctype, n_features, CALL)


def _whole(code: str, known: set[str]) -> str:
    """Replace each first ``#include`` of a file of emlearn by its text."""
    emlearn = imported()

    def text(match: re.Match[str]) -> str:
        if match[1] in known:
            return ""
        known.add(match[1])
        return _whole((Path(emlearn.includedir) / match[1]).read_text(), known)

    return re.sub(r'#include [<"](eml_\w+\.h)[>"]', text, code)


@contextmanager
def _inside_temporary_folder() -> Iterator[None]:
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)
