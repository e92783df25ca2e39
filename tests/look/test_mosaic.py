import re

import matplotlib as mpl
import numpy as np
import pytest

from laconic import Predictor, ShareBoostClassifier
from laconic.look.mosaic import plot_patches
from laconic.model.card import card
from laconic.model.pieces import PLOT_BALLS
from laconic.pools import Patches, Pieces

mpl.use("Agg")

GAP, HEAD = 1, 3  # pixels beside and above a patch that is 10 pixels wide


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 8 * 10)), np.arange(60) % 3
    X[y == 0, 20:26] += 2
    X[y == 1, 50:57] += 2
    pool = Patches((8, 10), 6, 3, (2, 2), 1.5)
    return ShareBoostClassifier(12, pool=pool).fit(X, y)


def test_a_frame_for_every_patch(model):
    ax = model.plot_atoms()
    picture = np.asarray(ax.images[0].get_array())
    assert picture.shape == (2 * (8 + GAP + HEAD), 10 * (10 + GAP), 3)
    assert ((picture >= 0) & (picture <= 1)).all()
    assert len(ax.texts) == 12
    assert ax.texts[0].get_text().startswith("1 · ")
    mpl.pyplot.close("all")


def test_the_template_stands_in_the_middle_of_its_mask(model):
    atom, map = model.atoms_[0], model.predictor_.map
    picture = np.asarray(model.plot_atoms(1).images[0].get_array())[HEAD : HEAD + 8, :10]
    template = map.templates()[map.template[0]]
    top, left = round(atom.row - 1), round(atom.column - 1)
    drawn = picture[top : top + 3, left : left + 3]
    redness = drawn[:, :, 0] - drawn[:, :, 2]
    largest = np.unravel_index(np.abs(template).argmax(), (3, 3))
    assert np.sign(redness[largest]) == np.sign(template[largest])
    mpl.pyplot.close("all")


def test_predictors_and_sizes(model, tmp_path):
    model.predictor_.save(tmp_path / "model")
    _, ax = mpl.pyplot.subplots()
    assert plot_patches(Predictor.load(tmp_path / "model"), 4, ax) is ax
    assert len(ax.texts) == 4
    assert len(model.at(0).plot_atoms().texts) == 0
    mpl.pyplot.close("all")


def test_other_atoms_are_refused():
    X = np.random.default_rng(0).random((20, 3))
    y = np.arange(20) % 2
    with pytest.raises(
        ValueError, match=r"only patches can be drawn so, but the model has columns$"
    ):
        ShareBoostClassifier(1).fit(X, y).plot_atoms()
    balls = ShareBoostClassifier(1, pool=Pieces(4, 2)).fit(X, y)
    with pytest.raises(ValueError, match=re.escape(PLOT_BALLS)):
        balls.plot_atoms()


def test_the_card_says_how_to_see_them(model):
    how = "To see every patch with its mask: "
    assert card(model, 100).splitlines()[-1] == how + "model.plot_atoms()"
    saved = card(model.predictor_, 100).splitlines()[-1]
    assert saved == how + "laconic.look.mosaic.plot_patches(model)"
