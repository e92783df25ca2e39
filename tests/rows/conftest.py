"""Fits whose shards are far away."""

import pytest
from far_rows import FarTraining
from sklearn.base import clone

from laconic.rows.limits import Limits
from rows.test_shards import CUTS

FITS = "laconic.estimators.booster.TrainingInMemory"


@pytest.fixture
def fit_far(monkeypatch):
    """Fit a model as if its shards were far away, and lost with the given probability."""

    def fit(model, X, y, share=0.0, cuts=CUTS[3], **limits):
        training = type("Training", (FarTraining,), {"share": share})
        with monkeypatch.context() as patch:
            patch.setattr(FITS, training)
            model = clone(model)
            model._limits = Limits(cuts=cuts, **limits)
            model.fit(X, y)
        return model, training.carrier

    return fit
