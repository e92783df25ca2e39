"""Models of scikit-learn that emlearn writes as C: trees, forests and networks.

* emlearn cuts the thresholds of trees down to integers, and asks x < t where scikit-learn asks
  x ≤ t. So trees learn from x + 1, and the C code gets x. Then both ask the same.
* Forests vote in C: by majority (``leaf_bits=0``), or with class shares of 3 to 8 bits. Errors in
  cross-validation are those of this vote.
* The first trees of a forest are a smaller forest, so one fit serves all numbers of trees.
* Networks need scaled inputs. The scales are part of the first layer's weights here, so the chip
  does not compute them. emlearn computes networks in floats, and only ``loadable`` ones work:
  version 0.23.2 fails to write inline ones.
"""

from __future__ import annotations

import copy
import os
import re
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _c_models import Model, answers
from _common import error, progress
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

Folds = Sequence[tuple[np.ndarray, np.ndarray]]

TREES = (2, 3, 5, 7, 10, 15, 20, 30, 50)
LEAVES = (8, 16, 32, 64, 128, 256, None)
LEAVES_OF_ONE = (8, 12, 16, 24, 28, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256, None)
SHARES = ("sqrt", 0.5, None)
LEAF_BITS = (0, 4, 8)
HIDDEN = (4, 8, 16, 32, 64, 128)
# A loadable node takes 8 bytes, and an inline one 9 to 10. So larger trees exceed all budgets.
MOST_NODES = 4096
# Integer types are compared up to this many nodes. Beyond, inline trees read uint8_t only.
ALL_TYPES = 1000
# A forest is not measured if one with at most this share of its nodes is as good in
# cross-validation.
MUCH_SMALLER = 0.8
HEADER = """\
{code}
#define MODEL_N_FEATURES {n}
typedef {ctype} model_input;
static inline int model_predict(const model_input *x) {{ return peer_predict(x, {n}); }}
"""


class Grown(NamedTuple):
    """A tree or forest, with its nodes that ask, the bits of its votes, and its errors."""

    title: str
    model: Any
    nodes: int
    bits: int
    cv_error: float


def emlearn_models(X: np.ndarray, y: np.ndarray, folds: Folds, X_test: np.ndarray, seed: int
                   ) -> Iterator[Model]:  # fmt: skip
    """Return trees, forests and networks as C, fitted on all rows."""
    yield from _tree_models(X.astype(np.int16) + 1, y, folds, X_test.astype(np.int16) + 1, seed)
    yield from _networks(X.astype(float), y, folds, X_test.astype(float), seed)


def _tree_models(X: np.ndarray, y: np.ndarray, folds: Folds, X_test: np.ndarray, seed: int
                 ) -> Iterator[Model]:  # fmt: skip
    import emlearn

    every = list(_all_trees(X, y, folds, seed))
    found = [grown for bits in LEAF_BITS
             for grown in _frontier([one for one in every if one.bits == bits])]  # fmt: skip
    progress(f"emlearn: {len(found)} trees and forests to measure")
    for grown in found:
        expected = _votes(grown.model, X_test, grown.bits)[-1].argmax(axis=1)
        for method, ctype in _forms(grown):
            converted = emlearn.convert(grown.model, method=method, dtype=ctype,
                                        leaf_bits=grown.bits)  # fmt: skip
            code = converted.save(name="peer", include_proba=False)
            vote = f"{grown.bits}-bit shares" if grown.bits else "majority"
            title = f"{grown.title}, {vote}, {method} {ctype}"
            inputs = ctype.removesuffix("_t")
            yield Model("emlearn", title, header(code, ctype, X.shape[1]), inputs,
                        grown.cv_error, expected)  # fmt: skip


def _forms(grown: Grown) -> list[tuple[str, str]]:
    """Return the methods and integer types that a forest is written with."""
    forms = [("inline", "uint8_t"), ("loadable", "int16_t")]
    if grown.bits == 0 and grown.nodes <= ALL_TYPES:
        forms += [("inline", "int8_t"), ("inline", "int16_t")]
    return forms


def _frontier(found: list[Grown]) -> list[Grown]:
    """Return the forests that are not much larger than one that is as good."""
    return [one for one in found if one.nodes <= MOST_NODES and not any(
        other.nodes <= MUCH_SMALLER * one.nodes and other.cv_error <= one.cv_error
        for other in found)]  # fmt: skip


def _all_trees(X: np.ndarray, y: np.ndarray, folds: Folds, seed: int) -> Iterator[Grown]:
    kinds = [("random forest", RandomForestClassifier), ("extra trees", ExtraTreesClassifier)]
    for leaves in LEAVES_OF_ONE:
        tree = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=seed)
        yield from _grow(f"tree, {leaves or 'all'} leaves", tree, (1,), X, y, folds)
    for leaves in LEAVES:
        for name, kind in kinds:
            for share in SHARES:
                forest = kind(max(TREES), max_leaf_nodes=leaves, max_features=share,
                              random_state=seed)  # fmt: skip
                title = f"{name}, {{}} trees, {leaves or 'all'} leaves, max_features={share!r}"
                yield from _grow(title, forest, TREES, X, y, folds)


def _grow(title: str, model: Any, numbers: Sequence[int], X: np.ndarray, y: np.ndarray,
          folds: Folds) -> Iterator[Grown]:  # fmt: skip
    """Fit once, and return the forests of the first trees, for each kind of vote."""
    wrong = {bits: np.zeros(max(numbers)) for bits in LEAF_BITS}
    for train, held in folds:
        model.fit(X[train], y[train])
        for bits in LEAF_BITS:
            labels = _votes(model, X[held], bits).argmax(axis=2)
            wrong[bits] += (labels != y[held]).sum(axis=1)
    model.fit(X, y)
    nodes = np.cumsum([tree.tree_.node_count // 2 for tree in _trees(model)])
    for number in numbers:
        part = copy.copy(model)
        if len(numbers) > 1:
            part.estimators_ = model.estimators_[:number]
        for bits in LEAF_BITS:
            cv_error = float(wrong[bits][number - 1] / len(y))
            yield Grown(title.format(number), part, int(nodes[number - 1]), bits, cv_error)


def _trees(model: Any) -> list[Any]:
    return getattr(model, "estimators_", [model])


def _votes(model: Any, X: np.ndarray, bits: int) -> np.ndarray:
    """Return the votes of the first 1, 2, … trees, of shape (n_trees, n_rows, n_classes)."""
    from emlearn.trees import quantize_probabilities_into_byte

    shares = [tree.predict_proba(X) for tree in _trees(model)]
    if bits:
        votes = [quantize_probabilities_into_byte(p, bits).astype(np.int32) for p in shares]
    else:
        votes = [np.eye(p.shape[1], dtype=np.int32)[p.argmax(axis=1)] for p in shares]
    return np.cumsum(votes, axis=0)


def _networks(X: np.ndarray, y: np.ndarray, folds: Folds, X_test: np.ndarray, seed: int
              ) -> Iterator[Model]:  # fmt: skip
    import emlearn

    for hidden in HIDDEN:
        progress(f"emlearn: network with {hidden} hidden units")
        wrong = [error(_network(X[train], y[train], hidden, seed).predict(X[held]), y[held])
                 for train, held in folds]  # fmt: skip
        network = _network(X, y, hidden, seed)
        with _inside_temporary_folder():  # emlearn compiles in the current folder
            code = emlearn.convert(network, method="loadable").save(name="peer")
        title = f"network, {hidden} hidden units, loadable float"
        yield Model("emlearn", title, header(code, "float", X.shape[1]), "float32",
                    float(np.mean(wrong)), network.predict(X_test))  # fmt: skip


def _network(X: np.ndarray, y: np.ndarray, hidden: int, seed: int) -> MLPClassifier:
    """Fit a network on scaled rows, and return the same network for rows as they are."""
    scaler = StandardScaler().fit(X)
    network = MLPClassifier(hidden, max_iter=300, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it may not have converged
        network.fit(scaler.transform(X), y)
    network.coefs_[0] = network.coefs_[0] / scaler.scale_[:, None]
    network.intercepts_[0] = network.intercepts_[0] - scaler.mean_ @ network.coefs_[0]
    return network


def without_shift(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, seed: int
                  ) -> dict[str, Any]:  # fmt: skip
    """Return the test errors of a forest in Python and in C, if it learns from x and gets x."""
    import emlearn

    forest = RandomForestClassifier(10, max_leaf_nodes=64, random_state=seed).fit(X, y)
    converted = emlearn.convert(forest, method="inline", dtype="uint8_t")
    code = converted.save(name="peer", include_proba=False)
    labels = answers(header(code, "uint8_t", X.shape[1]), np.ascontiguousarray(X_test))
    expected = _votes(forest, X_test, 0)[-1].argmax(axis=1)
    return {
        "test_error": error(labels, y_test),
        "test_error_in_python": error(expected, y_test),
        "not_pythons": int(np.sum(labels != expected)),
    }


def header(code: str, ctype: str, n_features: int) -> str:
    """Return emlearn's code, with the files that it includes, as the header of a model."""
    return HEADER.format(code=_whole(code, set()), ctype=ctype, n=n_features)


def _whole(code: str, known: set[str]) -> str:
    """Replace each first ``#include`` of a file of emlearn by its text."""
    import emlearn

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
