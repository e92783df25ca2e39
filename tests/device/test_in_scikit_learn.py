"""What the guide to GPUs says of scikit-learn's functions, for rows that NumPy cannot read."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn import __version__ as version
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from laconic import ShareBoostClassifier
from laconic.device.own_losses import NotOfNumPy
from problems import random_problem

pytestmark = pytest.mark.skipif(
    parse_version(version) < parse_version("1.9"), reason="the guide speaks of newer versions"
)
WITH_DISPATCH = """
import sys
import torch
sys.path.insert(0, {tests!r})
from sklearn import set_config
from laconic.data import elsewhere
from device import test_in_scikit_learn as own
elsewhere.PROCESSOR = ()
set_config(array_api_dispatch=True)
own.check_with_dispatch(*own.rows_on("{device}"))
print("checked")
"""


def rows_on(device):
    """Return rows and labels on a device. Those on the processor refuse NumPy as a GPU does."""
    X, y = random_problem(2, k=2)
    there = [torch.from_numpy(array).to(device) for array in (X, y)]
    return there if device == "cuda" else [tensor.as_subclass(NotOfNumPy) for tensor in there]


def are_tensors(arrays):
    return all(isinstance(array, torch.Tensor) for array in arrays)


@pytest.mark.usefixtures("there")
def test_without_dispatch(device):
    X, y = rows_on(device)
    model = ShareBoostClassifier(2)
    assert are_tensors(train_test_split(X, y, random_state=0))
    assert are_tensors(train_test_split(X, y, stratify=y.cpu(), random_state=0))
    assert np.mean(cross_val_score(model, X, y.cpu(), cv=3)) > 0.6
    assert GridSearchCV(model, {"alpha": [1e-3]}, cv=3).fit(X, y.cpu()).best_score_ > 0.6
    labels = model.fit(X, y).predict(X)
    assert accuracy_score(y.cpu(), labels.cpu()) == model.score(X, y)
    for ask in (
        lambda: train_test_split(X, y, stratify=y),
        lambda: cross_val_score(model, X, y, error_score="raise"),
        lambda: accuracy_score(y, labels),
        lambda: make_pipeline(StandardScaler(), model).fit(X, y),
    ):
        with pytest.raises(TypeError):
            ask()


def check_with_dispatch(X, y):
    model = ShareBoostClassifier(2)
    assert are_tensors(train_test_split(X, y, stratify=y, random_state=0))
    assert np.mean(cross_val_score(model, X, y, cv=3)) > 0.6
    assert GridSearchCV(model, {"alpha": [1e-3]}, cv=3).fit(X, y).best_score_ > 0.6
    labels = model.fit(X, y).predict(X)
    assert accuracy_score(y, labels) == pytest.approx(model.score(X, y))
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    assert are_tensors([pipeline.predict(X), pipeline[:-1].transform(X)])


def test_with_dispatch(device):
    """SciPy must know of it before Python starts."""
    tests = Path(__file__).resolve().parents[1]
    code = WITH_DISPATCH.format(tests=str(tests), device=device)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "checked\n", done.stderr
