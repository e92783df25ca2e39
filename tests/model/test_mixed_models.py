"""Models of several kinds of atoms: saved, drawn, described and in C."""

import numpy as np
import pandas as pd
import pytest

from export.random_models import COMPILERS
from laconic import Predictor, ShareBoostClassifier, TotalQBoostClassifier
from laconic.model.atoms import Column, ColumnsMap, ProductsMap, Stump
from laconic.model.card import card
from laconic.model.mixed import MixedMap
from laconic.model.program import program_of
from laconic.model.single import single, single_scores
from laconic.numeric.threads import Threads
from laconic.pools import Columns, Mixed, Patches, Pieces, Stumps
from problems import of_every_kind

X, y = of_every_kind()
PIECES = Pieces(4, 2, slope=0.2)
PATCHES = Patches((2, 2), 3, 2, 1, 1.0)
NAMES = ["narrow", "wide", "patches", "two"]


@pytest.fixture(scope="module")
def models():
    two, narrow = (y > 0).astype(int), ["columns", "products", Stumps(8)]
    wide, rule = [Columns(), PIECES, Stumps(2)], {"rule": "projection"}
    mix = Mixed(wide).bind(X, np.full(len(y), 1 / len(y)), Threads(1))
    always = [mix.atom(number) for number in (2, 6, 13, 8, 0)]
    return {
        "narrow": ShareBoostClassifier(7, pool=narrow, **rule).fit(X, y),
        "wide": ShareBoostClassifier(7, pool=wide, include=always).fit(X, y),
        "patches": ShareBoostClassifier(5, pool=["columns", PATCHES], **rule).fit(X, y),
        "two": TotalQBoostClassifier(6, pool=narrow).fit(X, two),
    }


@pytest.mark.parametrize("name", NAMES)
def test_saved_models_answer_alike(models, name, tmp_path):
    predictor = models[name].predictor_
    assert isinstance(predictor.map, MixedMap)
    predictor.save(tmp_path / "m")
    loaded = Predictor.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.scores(X), predictor.scores(X))
    assert loaded.names() == predictor.names()
    assert loaded.cost() == predictor.cost()
    predictor.quantise(X).save(tmp_path / "q")
    np.testing.assert_array_equal(
        Predictor.load(tmp_path / "q").scores(X), predictor.quantise(X).scores(X)
    )


@pytest.mark.skipif(not COMPILERS, reason="needs a C compiler")
@pytest.mark.parametrize("name", NAMES)
def test_c_code_gives_the_same_bits(models, name):
    predictor = models[name].predictor_
    reference = single_scores(single(program_of(predictor)), predictor.device_rows(X))
    np.testing.assert_array_equal(predictor.to_c().compile().scores(X), reference)
    for bits in (8, 16):
        integer = predictor.quantise(X, bits)
        compiled = integer.to_c().compile()
        np.testing.assert_array_equal(compiled.scores(X), integer.scores(X))
        np.testing.assert_array_equal(compiled.predict(X), integer.predict(X))


def test_the_cost_is_the_sum_over_the_kinds(models):
    predictor = models["narrow"].predictor_
    parts = predictor.map.parts
    cost = predictor.cost()
    assert cost.operations == sum(p.operations() for p in parts) + predictor.weights.size
    own = sum(a.nbytes for p in parts for a in p.arrays().values())
    assert cost.bytes == predictor.weights.nbytes + predictor.intercept.nbytes + own


def test_cards_tell_what_each_kind_is(models):
    narrow, wide, two = (card(models[name], width=300) for name in ("narrow", "wide", "two"))
    assert " + " in narrow.splitlines()[0]
    assert "A stump is 1 if its condition holds" in narrow
    assert "Weights of columns and products are per unit" in narrow
    assert "radius" in wide
    assert "plot_balls" in wide
    assert len([line for line in wide.splitlines() if " % " in line]) >= 5
    assert "An atom gives its points times its value. A stump gives its points if" in two
    saved = card(models["wide"].predictor_, width=300)
    assert "share" not in saved


def test_dates_have_units_in_columns_and_words_in_stumps():
    days = pd.date_range("2024-01-01", periods=len(y), freq="D")
    frame = pd.DataFrame({"day": days, "a": X[:, 0], "b": X[:, 1]})
    always = [Column(0), Stump(0, 74.5)]
    model = ShareBoostClassifier(3, pool=[Columns(), Stumps(2)], include=always)
    model.fit(frame, np.arange(len(y)) > 80)
    text = card(model, width=300)
    assert "day (days since 2024-01-01)" in text
    assert "day <= 2024-03-15" in text


def test_names_that_two_kinds_share_are_told_apart():
    map = MixedMap([ColumnsMap([2]), ProductsMap([0], [1])])
    assert map.names(["a", "b", "a * b"]) == ["a * b (columns)", "a * b (products)"]
    assert map.names(["a", "b", "c"]) == ["c", "a * b"]


def test_pictures_show_the_atoms_that_can_be_drawn(models):
    pytest.importorskip("matplotlib")
    from laconic.look.balls import ball_facts
    from laconic.look.mosaic import plot_patches

    model = models["patches"]
    n_patches = sum(type(atom).__name__ == "Patch" for atom in model.atoms_)
    drawn = [text.get_text() for text in plot_patches(model).texts]
    places = [int(text.split(" ")[0]) - 1 for text in drawn]
    assert len(places) == n_patches > 0
    assert all(type(model.atoms_[place]).__name__ == "Patch" for place in places)
    balls = [atom for atom in models["wide"].atoms_ if type(atom).__name__ == "Piece"]
    assert [ball.radius for ball in ball_facts(models["wide"], X, y)] == [b.radius for b in balls]
    with pytest.raises(ValueError, match="only patches can be drawn so, but the model has mixed"):
        plot_patches(models["narrow"])
    with pytest.raises(ValueError, match=r"only models of pieces have balls\. This one has mixed"):
        ball_facts(models["narrow"], X)


def test_maps_are_checked():
    parts = [ColumnsMap([0, 1]), ProductsMap([0], [1])]
    np.testing.assert_array_equal(
        MixedMap(parts, [0, 1, 0]).columns(X), np.stack([X[:, 0], X[:, 0] * X[:, 1], X[:, 1]], 1)
    )
    assert MixedMap(parts).part.tolist() == [0, 0, 1]
    for wrong in ([0, 0], [0, 0, 0], [0, 1, 2], [[0, 0, 1]]):
        with pytest.raises(ValueError, match="do not fit their maps"):
            MixedMap(parts, wrong)
