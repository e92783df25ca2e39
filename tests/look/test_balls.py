"""What is said about balls is what lies inside them."""

import matplotlib
import numpy as np
import pytest

from laconic import ShareBoostClassifier
from laconic.look.balls import ball_facts, plot_balls
from laconic.model.card import card
from laconic.pools import Pieces

matplotlib.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 4))
    y = np.where(np.linalg.norm(X, axis=1) < 1, "in", "out")
    return ShareBoostClassifier(3, pool=Pieces(20, 5), alpha=1e-3).fit(X, y), X, y


def test_facts_are_those_of_the_rows_inside(fitted):
    model, X, y = fitted
    facts = ball_facts(model, X, y, examples=2)
    assert len(facts) == 3
    balls = model.predictor_.map
    wrong = model.predict(X) != y
    for j, fact in enumerate(facts):
        distance = np.linalg.norm(X - balls.centre[j], axis=1)
        inside = distance < balls.radius[j]
        assert fact.rows == inside.sum() == round(300 * balls.share[j])
        assert fact.error == pytest.approx(wrong[inside].mean())
        np.testing.assert_array_equal(fact.nearest, np.argsort(distance)[:2])
        assert fact.nearest[0] == balls.nearest[j]
    assert np.isnan(ball_facts(model.predictor_, X)[0].error)


def test_pictures_are_those_of_the_nearest_rows(fitted):
    model, X, y = fitted
    images = X.reshape(300, 2, 2)
    sheet = plot_balls(model, X, images, y, balls=2, examples=3)
    shown = [ax.images[0].get_array() for ax in sheet.axes if ax.images]
    named = [row for fact in ball_facts(model, X, examples=3)[:2] for row in fact.nearest]
    np.testing.assert_array_equal(shown, images[named])
    assert "wrong" in sheet.axes[0].texts[0].get_text()
    plt.close(sheet)


def test_what_has_no_balls_is_refused(fitted):
    _, X, y = fitted
    columns = ShareBoostClassifier(1).fit(X, y)
    for look in (lambda: ball_facts(columns, X), lambda: plot_balls(columns, X, X[:, None])):
        with pytest.raises(
            ValueError, match=r"only models of pieces have balls\. This one has col"
        ):
            look()
    with pytest.raises(ValueError, match="one for each of the 300 rows"):
        plot_balls(fitted[0], X, np.zeros((3, 2, 2)))


def test_card_has_a_line_for_every_ball(fitted):
    model, *_ = fitted
    text = card(model, width=100)
    balls = model.predictor_.map
    for j in range(3):
        assert f"like row {balls.nearest[j]}" in text
    assert text.startswith("3 pieces")
    how = "laconic.look.balls.plot_balls(model, X, images, y)"
    assert text.splitlines()[-1] == f"To see every ball with its nearest rows: {how}"
    assert "To see" not in card(model.at(0), width=100)
    names, added = balls.summary(model.predictor_.weights)
    assert len(names) == 3
    for j, centre in enumerate(balls.centre):  # the only ball, at its centre
        weights = np.zeros_like(model.predictor_.weights)
        weights[5 * j : 5 * j + 5] = model.predictor_.weights[5 * j : 5 * j + 5]
        np.testing.assert_allclose(balls.scores(centre[None], weights)[0], added[j], atol=1e-9)
