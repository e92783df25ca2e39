"""The picture of the path shows the path's own numbers."""

from __future__ import annotations

import sys

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import load_iris

from laconic import ShareBoostClassifier
from laconic.look.plots import plot_path

matplotlib.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def model(data):
    return ShareBoostClassifier(4).fit(*data)


def line(ax, label):
    return next(drawn for drawn in ax.get_lines() if drawn.get_label() == label)


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_loss_of_every_size(model):
    ax = plot_path(model)
    drawn = line(ax, "training")
    np.testing.assert_array_equal(drawn.get_xdata(), model.path_.sizes)
    np.testing.assert_array_equal(drawn.get_ydata(), model.path_.losses)
    assert ax.get_xlabel() == "atoms"
    assert ax.get_ylabel() == "margin loss"
    assert all(float(tick).is_integer() for tick in ax.get_xticks())


def test_error_of_every_size(model, data):
    X, y = data
    loss, error = plot_path(model, X, y, name="training rows")
    drawn = line(error, "training rows")
    expected = [100 * (1 - model.at(n).score(X, y)) for n in model.path_.sizes]
    np.testing.assert_allclose(drawn.get_ydata(), expected)
    assert "error (%)" in error.get_ylabel()
    assert error.get_xlabel() == "atoms"
    assert error.get_yscale() == "log"
    assert loss.get_yscale() == "linear"


def test_no_error_at_all_is_drawn_on_a_plain_scale(model, data):
    X, _ = data
    error = plot_path(model, X, model.predict(X))[1]
    assert error.get_yscale() == "linear"
    assert line(error, "given rows").get_ydata()[-1] == 0.0


def test_the_size_in_use_is_marked(model):
    ax = plot_path(model.at(1))
    expected = f"in use: 1 atom, loss {model.path_[1].loss:.3g}"
    assert expected in texts(ax)
    marks = [
        (d.get_xdata()[0], d.get_ydata()[0]) for d in ax.get_lines() if len(d.get_xdata()) == 1
    ]
    assert marks == [(1, model.path_[1].loss)]


def test_held_out_losses(data):
    model = ShareBoostClassifier(3, early_stopping=True, random_state=0).fit(*data)
    ax = plot_path(model)
    np.testing.assert_array_equal(line(ax, "held out").get_ydata(), model.validation_losses_)
    assert {"training", "held out"} <= set(texts(ax))


def test_cross_validated_error_has_a_band_of_one_standard_error(data):
    model = ShareBoostClassifier(3, cv=3).fit(*data)
    error = plot_path(model)[1]
    errors = 100 * (1 - model.cv_scores_)
    mean, spread = errors.mean(axis=0), errors.std(axis=0, ddof=1) / np.sqrt(3)
    np.testing.assert_allclose(line(error, "cross-validated ± 1 s.e.").get_ydata(), mean)
    corners = error.collections[0].get_paths()[0].vertices
    for size in range(4):
        heights = corners[corners[:, 0] == size, 1]
        assert heights.min() == pytest.approx((mean - spread)[size])
        assert heights.max() == pytest.approx((mean + spread)[size])


def test_labels_at_line_ends_stay_apart(data):
    model = ShareBoostClassifier(3, cv=3).fit(*data)
    error = plot_path(model, *data)[1]
    error.figure.canvas.draw()
    ends = [t for t in error.texts if not t.get_text().startswith(("in use", "always"))]
    boxes = [t.get_window_extent() for t in ends]
    assert len(boxes) == 2
    assert not boxes[0].overlaps(boxes[1])


def test_one_axes_makes_room_for_the_error(model, data):
    figure, ax = plt.subplots()
    panels = plot_path(model, *data, ax=ax)
    assert panels[0] is ax
    assert figure.axes == list(panels)
    assert panels[0].get_position().x1 < panels[1].get_position().x0


def test_given_axes_are_drawn_on(model, data):
    _, pair = plt.subplots(1, 2)
    assert list(plot_path(model, *data, ax=pair)) == list(pair)
    _, ax = plt.subplots()
    assert model.plot(ax=ax) is ax


def test_a_path_of_one_size(data):
    loss, error = plot_path(ShareBoostClassifier(0).fit(*data), *data)
    assert list(line(loss, "training").get_xdata()) == [0]
    low, high = error.get_xlim()
    assert [tick for tick in error.get_xticks() if low <= tick <= high] == [0]


def test_what_cannot_be_drawn(model, data):
    with pytest.raises(ValueError, match="both X and y"):
        plot_path(model, data[0])
    _, pair = plt.subplots(1, 2)
    with pytest.raises(ValueError, match="one axes"):
        plot_path(model, ax=pair)
    free = plt.figure().add_axes((0.1, 0.1, 0.8, 0.8))
    with pytest.raises(ValueError, match="pair of axes"):
        plot_path(model, *data, ax=free)


def test_without_matplotlib(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[plot\]"'):
        plot_path(model)
