"""What belongs in a checkpoint's fingerprint, and what does not."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from laconic import ShareBoostClassifier, TotalQBoostClassifier
from laconic.data.fingerprint import settings_of
from laconic.pools import Pieces
from problems import random_problem

REFUSED = "other data or settings"


def colours(m=90):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"colour": rng.integers(0, 4, m), "size": rng.integers(0, 9, m)})
    return frame, ((frame.colour == 2) | (frame["size"] > 6)).to_numpy().astype(int)


@pytest.mark.parametrize(
    "model",
    [ShareBoostClassifier(3, pool="stumps"), TotalQBoostClassifier(3, price=0.0)],
    ids=lambda model: type(model).__name__,
)
def test_which_columns_are_categories_belongs_to_it(model, tmp_path):
    """Codes of the categories are the numbers themselves, so the data alone tells nothing."""
    frame, y = colours()
    model.set_params(checkpoint=tmp_path / "fit")
    model.fit(frame, y)
    asked = frame.astype({"colour": "category"})
    with pytest.raises(ValueError, match=REFUSED):
        model.fit(asked, y)
    fresh = model.set_params(checkpoint=None).fit(asked, y)
    assert "colour = 2" in fresh.get_feature_names_out()


def test_the_order_in_memory_belongs_to_it(tmp_path, assert_identical):
    """Sums round differently, so that a resumed fit would not be the fresh one to the last bit."""
    X, y = random_problem(d=6)
    model = ShareBoostClassifier(3, checkpoint=tmp_path / "fit")
    first = model.fit(np.ascontiguousarray(X), y)
    with pytest.raises(ValueError, match=REFUSED):
        model.fit(np.asfortranarray(X), y)
    again = ShareBoostClassifier(3, checkpoint=tmp_path / "fit").fit(X.copy(order="C"), y)
    assert_identical(again, first)


def test_names_count_by_what_they_come_to(tmp_path, assert_identical):
    X, y = random_problem(d=3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    settings = {"max_atoms": 2, "checkpoint": tmp_path / "fit"}
    first = ShareBoostClassifier(include=["c"], costs={"a": 1, "b": 2, "c": 3}, **settings)
    first.fit(frame, y)
    same = ShareBoostClassifier(include=[2], costs=[1, 2, 3], **settings).fit(frame, y)
    assert_identical(same, first)
    renamed = frame.set_axis(["c", "a", "b"], axis=1)
    with pytest.raises(ValueError, match=REFUSED):
        first.fit(renamed, y)


def test_how_a_fit_runs_and_how_far_it_goes_do_not_belong_to_it(tmp_path, assert_identical, capsys):
    X, y = random_problem()
    settings = {"checkpoint": tmp_path / "fit", "early_stopping": True, "random_state": 0}
    ShareBoostClassifier(2, n_jobs=1, **settings).fit(X, y)
    further = {"n_jobs": 2, "verbose": 1, "n_iter_no_change": 9, "callbacks": [lambda state: None]}
    longer = ShareBoostClassifier(4, **further, **settings).fit(X, y)
    settings["checkpoint"] = None
    assert_identical(longer, ShareBoostClassifier(4, n_iter_no_change=9, **settings).fit(X, y))


@pytest.mark.parametrize("kind", [ShareBoostClassifier, TotalQBoostClassifier])
def test_atoms_that_are_drawn_anew_cannot_be_resumed(kind, tmp_path):
    X, y = random_problem(k=2)
    settings = {"loss": "log", "checkpoint": tmp_path / "fit"}
    with pytest.raises(ValueError, match="give Pieces an integer random_state"):
        kind(2, pool=Pieces(random_state=None), **settings).fit(X, y)
    assert not (tmp_path / "fit").exists()
    kind(2, pool=Pieces(random_state=3), **settings).fit(X, y)
    assert (tmp_path / "fit").exists()


class Outer(BaseEstimator):
    """An estimator of estimators."""

    def __init__(self, inner=None, steps=None, n_jobs=None, size=1):
        self.inner = inner
        self.steps = steps
        self.n_jobs = n_jobs
        self.size = size


def test_settings_of_inner_estimators_count_and_their_threads_do_not():
    def settings(C=1.0, **how):
        inner = make_pipeline(LogisticRegression(C=C, **how))
        return settings_of(Outer(inner, [("a", LogisticRegression(C=C, **how))], size=3), "size")

    assert settings() == settings(n_jobs=3, verbose=2)
    assert settings() != settings(C=2.0)
    assert "size" not in settings()
    assert "n_jobs" not in settings()
