"""Fits and answers do not depend on torch's default device, on which users make new tensors."""

import numpy as np
import pytest
import torch

from laconic import ShareBoostClassifier, TotalQBoostClassifier
from laconic.pools import Patches
from problems import random_problem


@pytest.fixture
def no_memory():
    """Make new tensors of the user on a device without memory."""
    torch.set_default_device("meta")
    yield
    torch.set_default_device(None)


FITS = {
    "columns": (ShareBoostClassifier, {"scale": "std"}),
    "products": (ShareBoostClassifier, {"pool": "products", "early_stopping": True}),
    "stumps": (ShareBoostClassifier, {"pool": "stumps", "class_weight": "balanced"}),
    "patches": (ShareBoostClassifier, {"pool": Patches((2, 3), 2, 2, 1, 1.0)}),
    "linf_l1": (ShareBoostClassifier, {"penalty": "linf_l1", "loss": "log"}),
    "step": (ShareBoostClassifier, {"rule": "step"}),
    "boosted": (TotalQBoostClassifier, {}),
    "boosted by sums": (TotalQBoostClassifier, {"pool": "columns", "loss": "log"}),
}


@pytest.mark.parametrize("name", FITS)
def test_another_default_device(name, device, request):
    X, y = random_problem(2, k=2)
    make, settings = FITS[name]
    model = make(3, device=device, random_state=0, **settings)
    known = model.fit(X, y).atom_coef_
    rows = torch.from_numpy(X).to(device)
    answers = [model.predict(rows).cpu(), model.predict_proba(rows).cpu()]
    request.getfixturevalue("no_memory")
    np.testing.assert_array_equal(model.fit(X, y).atom_coef_, known)
    found = model.predict(rows).cpu(), model.predict_proba(rows).cpu()
    for own, other in zip(found, answers, strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.mark.usefixtures("there")
def test_tensors_with_another_default_device(device, request):
    X, y = random_problem(2, k=3)
    rows, labels = torch.from_numpy(X).to(device), torch.from_numpy(y).to(device)
    known = ShareBoostClassifier(3, random_state=0, early_stopping=True).fit(rows, labels)
    request.getfixturevalue("no_memory")
    found = ShareBoostClassifier(3, random_state=0, early_stopping=True).fit(rows, labels)
    np.testing.assert_array_equal(found.atom_coef_, known.atom_coef_)
