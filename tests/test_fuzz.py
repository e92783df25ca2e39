"""Files that a stranger sealed: refused with a `ValueError`, or of use; never a crash or a hang."""

import pytest

import fuzz


@pytest.fixture(scope="module")
def predictors():
    return fuzz.predictors()


PREDICTORS = [
    "columns", "groups", "stumps", "products", "rules", "pieces", "bumps", "hinges", "patches",
    "clumping", "regions", "nested", "mixed", "ensemble", "filled", "converted",
]  # fmt: skip
INTEGERS = [*PREDICTORS, "categories", "soft pieces"]


def test_every_kind_of_predictor_is_tried(predictors):
    assert list(predictors) == PREDICTORS
    kinds = {predictor.map.kind for predictor in predictors.values()}
    assert kinds == {
        "columns", "stumps", "products", "rules", "pieces", "bumps", "hinges", "patches",
        "regions", "filled", "mixed",
    }  # fmt: skip
    assert {part.kind for part in predictors["nested"].map.parts} >= {"regions"}


@pytest.mark.parametrize("name", PREDICTORS)
def test_resealed_predictors(predictors, name):
    found = fuzz.try_predictors(predictors[name], 25)
    assert found["refused"] > found["sound"] > 0


@pytest.fixture(scope="module")
def integers():
    return fuzz.integer_predictors()


def test_integer_predictors_of_every_kind_are_tried(integers):
    assert list(integers) == [f"integer {name}" for name in INTEGERS]
    used = {p.integers.inputs.given for p in integers.values()}
    assert used == {"float", "int16", "int8", "uint8"}
    segments = {s.kind for p in integers.values() for s in p.integers.program.segments}
    assert segments == {
        "gather", "filled", "multiply", "at_most", "equals", "rules", "balls", "soft_balls",
        "bumps", "hinge", "windows",
    }  # fmt: skip


@pytest.mark.parametrize("name", INTEGERS)
def test_resealed_integer_predictors(integers, name):
    found = fuzz.try_predictors(integers[f"integer {name}"], 50)
    assert found["refused"] > found["sound"] > 0


@pytest.mark.parametrize("name", fuzz.fits())
def test_resealed_checkpoints(name):
    found = fuzz.try_checkpoints(fuzz.fits()[name], 25)
    assert found["refused"] > found["sound"] > 0
