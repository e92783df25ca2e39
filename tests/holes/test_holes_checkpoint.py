"""Checkpoints of hole punching: leave is asked for pickles, and only what is new is written."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from laconic import HolePunchingClassifier
from laconic.files import journal
from problems import blobs, saving_always


def holes(path, estimator=None, pickle_models=True, **settings):
    estimator = LogisticRegression() if estimator is None else estimator
    settings = {"max_holes": 4, "min_rows": 5, **settings}
    return HolePunchingClassifier(
        estimator, checkpoint=path, pickle_models=pickle_models, **settings
    )


def assert_same(one, other, X):
    assert np.array_equal(one.errors_, other.errors_)
    assert [h.row for h in one.holes_] == [h.row for h in other.holes_]
    assert np.array_equal(one.decision_function(X), other.decision_function(X))


def test_pickles_need_leave_and_it_is_asked_for_before_the_fit(tmp_path):
    class NeverFitted(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("it was fitted")

    X, y = blobs(100)
    with pytest.raises(ValueError, match="run code when they are read; set pickle_models=True"):
        holes(tmp_path / "fit", NeverFitted(), pickle_models=False).fit(X, y)
    assert list(tmp_path.iterdir()) == []


def test_wherever_the_file_ends_the_fit_ends_identically(tmp_path):
    X, y = blobs(300, classes=3)
    path = tmp_path / "fit"
    whole = saving_always(holes(path)).fit(X, y)
    assert whole.n_holes_ > 2
    contents = path.read_bytes()
    for length in [0, 5, *range(25, len(contents), 4999)]:
        path.write_bytes(contents[:length])
        assert_same(saving_always(holes(path)).fit(X, y), whole, X)


def test_only_new_holes_are_written(tmp_path, monkeypatch):
    X, y = blobs(300, classes=3)
    written, append = [], journal.Journal.append

    def noted(self, header, arrays):
        written.append([name for name in arrays if name.startswith(("base", "model"))])
        return append(self, header, arrays)

    monkeypatch.setattr(journal.Journal, "append", noted)
    saving_always(holes(tmp_path / "fit", max_holes=3)).fit(X, y)
    assert written == [["base"], ["model_0"], ["model_1"], ["model_2"]]


def test_threads_of_inner_estimators_may_change_and_their_settings_may_not(tmp_path):
    X, y = blobs(200)

    def forest(**settings):
        forest = RandomForestClassifier(3, random_state=0, **settings)
        return make_pipeline(StandardScaler(), forest)

    first = holes(tmp_path / "fit", forest(n_jobs=1)).fit(X, y)
    again = holes(tmp_path / "fit", forest(n_jobs=2, verbose=0)).fit(X, y)
    assert np.array_equal(first.errors_, again.errors_)
    with pytest.raises(ValueError, match="other data or settings"):
        holes(tmp_path / "fit", forest(max_depth=2)).fit(X, y)


def test_weights_of_one_are_not_the_same_as_none(tmp_path):
    """A local model that is given weights may differ from one that is given none."""
    X, y = blobs(120)
    model = HolePunchingClassifier(
        LogisticRegression(), max_holes=2, min_rows=4, checkpoint=tmp_path / "fit",
        pickle_models=True,
    )  # fmt: skip
    model.fit(X, y)
    with pytest.raises(ValueError, match="other data or settings"):
        model.fit(X, y, sample_weight=np.ones(len(y)))


def test_pickles_that_cannot_be_read_are_named(tmp_path, monkeypatch):
    X, y = blobs(200)
    monkeypatch.setattr(
        "laconic.holes.checkpoint._pickled", lambda model: np.zeros(9, dtype=np.uint8)
    )
    holes(tmp_path / "fit").fit(X, y)
    with pytest.raises(ValueError, match=r"fit is not sound.*delete it to start again"):
        holes(tmp_path / "fit").fit(X, y)
