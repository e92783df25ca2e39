"""Files of format version 1, written before there was another, keep their answers."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from laconic import Predictor

FOLDER = Path(__file__).parent / "version_1"
NAMES = sorted(path.stem for path in FOLDER.glob("*.laconic"))
TABLE = pd.DataFrame({"size": [1.0] * 6, "colour": ["red", "green", "blue", "mauve", None, ""]})


@pytest.fixture(scope="module")
def answers():
    with np.load(FOLDER / "answers.npz") as file:
        return dict(file)


def rows(name, answers):
    if name == "categories":
        return TABLE
    return answers["images" if name == "patches" else "rows"]


def test_every_kind_of_map_is_there():
    kinds = {Predictor.load(FOLDER / f"{name}.laconic").map.kind for name in NAMES}
    assert kinds == {"columns", "stumps", "products", "pieces", "patches", "regions"}


@pytest.mark.parametrize("name", NAMES)
def test_a_file_keeps_its_answers_to_the_last_bit(name, answers, tmp_path):
    loaded = Predictor.load(FOLDER / f"{name}.laconic")
    X = rows(name, answers)
    assert np.array_equal(loaded.scores(X), answers[name])
    loaded.save(tmp_path / "again")
    assert np.array_equal(Predictor.load(tmp_path / "again").scores(X), answers[name])


def test_an_unseen_category_was_missing_then(answers, tmp_path):
    loaded = Predictor.load(FOLDER / "categories.laconic")
    said = ["stop", "go", "go", "none", "none", "none"]
    assert loaded.predict(TABLE).tolist() == said
    loaded.save(tmp_path / "again")
    again = Predictor.load(tmp_path / "again")
    assert again.predict(TABLE).tolist() == said
    assert again.names() == loaded.names()
