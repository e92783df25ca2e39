"""Files that a stranger sealed: refused with a `ValueError`, or of use; never a crash or a hang."""

import pytest

import fuzz


@pytest.fixture(scope="module")
def predictors():
    return fuzz.predictors()


PREDICTORS = [
    "columns", "groups", "stumps", "products", "pieces", "patches", "clumping", "regions", "nested",
    "ensemble",
]  # fmt: skip


def test_every_kind_of_predictor_is_tried(predictors):
    assert list(predictors) == PREDICTORS
    kinds = {predictor.map.kind for predictor in predictors.values()}
    assert kinds == {"columns", "stumps", "products", "pieces", "patches", "regions"}
    assert {part.kind for part in predictors["nested"].map.parts} >= {"regions"}


@pytest.mark.parametrize("name", PREDICTORS)
def test_resealed_predictors(predictors, name):
    found = fuzz.try_predictors(predictors[name], 80)
    assert found["refused"] > found["sound"] > 0


@pytest.mark.parametrize("name", fuzz.fits())
def test_resealed_checkpoints(name):
    found = fuzz.try_checkpoints(fuzz.fits()[name], 40)
    assert found["refused"] > found["sound"] > 0
