"""The same answers with scikit-learn's array API dispatch and without."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

# SciPy reads the variable when it is imported, so this runs in a process of its own.
DISPATCHED = """
import numpy as np, torch
from sklearn import config_context
from laconic import ErrorClumpingClassifier, ShareBoostClassifier, TotalQBoostClassifier
from laconic.data import elsewhere
from problems import random_problem

X, y = random_problem(9)
given = [torch.from_numpy(a) for a in (X, y, np.ones(len(y)))]
for processor in (1, 3), ():
    elsewhere.PROCESSOR = processor
    for model in (
        ShareBoostClassifier(3),
        ShareBoostClassifier(3, device="cpu"),
        ShareBoostClassifier(3, early_stopping=True, random_state=0),
        TotalQBoostClassifier(3, loss="log"),
        *[ErrorClumpingClassifier(random_state=0)] * bool(processor),
    ):
        answers = []
        for dispatch in (False, True):
            with config_context(array_api_dispatch=dispatch):
                model.fit(*given)
                labels = model.predict(given[0])
                answers += [labels, model.decision_function(given[0])]
                assert isinstance(labels, torch.Tensor)
                assert model.score(*given) == model.score(X, y) > 0.4
        assert all(torch.equal(one, other) for one, other in zip(answers[:2], answers[2:]))
print("done")
"""


@pytest.mark.long
def test_with_array_api_dispatch_and_without():
    folders = [Path(__file__).parent, Path(__file__).parents[1], *sys.path]
    environment = {**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": ":".join(map(str, folders))}
    command = [sys.executable, "-c", DISPATCHED]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
