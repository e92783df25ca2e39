"""Hole punching where rounding, ties, refusals and resumed fits could lead it astray."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import laconic.holes.punch as punch_module
from laconic import HolePunchingClassifier
from problems import blobs


def holes(**settings):
    settings = {"estimator": LogisticRegression(), "max_holes": 6, "min_rows": 5, **settings}
    return HolePunchingClassifier(pickle_models="checkpoint" in settings, **settings)


def kept(model):
    return [(hole.row, hole.radius, hole.n_rows) for hole in model.holes_]


# -- weights that are no whole numbers -------------------------------------------------------------


@pytest.mark.parametrize("weight", [0.1, 0.3, 1 / 3, 0.7, 1e-6])
def test_the_same_weight_for_all_changes_nothing(weight):
    X, y = blobs(300)
    plain = {"estimator": DummyClassifier(), "radius": 1.0, "max_holes": 15}
    one = holes(**plain, min_rows=10).fit(X, y)
    other = holes(**plain, min_rows=10 * weight).fit(X, y, sample_weight=np.full(300, weight))
    assert one.n_holes_ == 15
    assert kept(other) == kept(one)
    assert other.errors_ == pytest.approx(one.errors_)


@pytest.mark.parametrize("seed", range(5))
def test_balanced_holes_are_more_than_half_wrong_and_help(seed):
    X, y = blobs(401, seed=seed)
    model = holes(class_weight="balanced", max_holes=15).fit(X, y)
    assert model.n_holes_ > 4
    assert all(hole.error_before > 0.5 + 1e-9 for hole in model.holes_)
    assert np.all(np.diff(model.errors_) < -1e-9)


# -- holes that no model helps ---------------------------------------------------------------------


def test_a_guard_that_refuses_many_alike_balls_finds_others():
    for seed in (0, 1):
        X, y = blobs(800, seed=seed, flipped=0.1)
        guarded = {"guard": True, "validation_fraction": 0.3, "random_state": 0, "max_holes": 12}
        model = holes(**guarded).fit(X, y)
        assert model.n_holes_ > 8
        assert model.validation_errors_[-1] < 0.6 * model.validation_errors_[0]


def test_many_classes_come_down_to_no_error():
    X, y = blobs(200, classes=12)
    model = holes(max_holes=400, min_rows=1).fit(X, y)
    assert model.errors_[-1] == 0.0


# -- candidates ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_candidates", [1, 8, 50])
def test_a_round_looks_at_as_many_centres_as_asked_for(n_candidates, monkeypatch):
    looked_at, rounds = [], []
    find = punch_module.largest_ball

    def counted(*given):
        looked_at.append(given)
        return find(*given)

    monkeypatch.setattr(punch_module, "largest_ball", counted)
    X, y = blobs(600, seed=3, flipped=0.25)
    holes(
        n_candidates=n_candidates,
        max_holes=2,
        random_state=0,
        callbacks=[lambda state: rounds.append(len(looked_at))],
    ).fit(X, y)
    assert np.diff(rounds).tolist() == [n_candidates] * 2


# -- resumed fits ----------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["tol", "n_iter_no_change"])
def test_a_fit_resumed_with_less_ends_where_a_fresh_one_does(tmp_path, setting):
    X, y = blobs(400, seed=1, flipped=0.15)
    same = {"early_stopping": True, "max_holes": 30, "min_rows": 3, "random_state": 0}
    whole = holes(**same, n_iter_no_change=15, checkpoint=tmp_path / "fit").fit(X, y)
    less = {"tol": whole.errors_[3]} if setting == "tol" else {"n_iter_no_change": 1}
    resumed = holes(**same, **less, checkpoint=tmp_path / "fit").fit(X, y)
    fresh = holes(**same, **less).fit(X, y)
    assert len(fresh.errors_) < len(whole.errors_)
    assert resumed.errors_.tolist() == fresh.errors_.tolist()
    assert resumed.validation_errors_.tolist() == fresh.validation_errors_.tolist()
    assert kept(resumed) == kept(fresh)
    assert resumed.status_ == fresh.status_


@pytest.mark.parametrize("n_candidates", [1, 8, 30])
@pytest.mark.parametrize("stop", [1, 4, 9])
def test_on_a_lattice_too_resumed_holes_are_the_same_to_the_last_digit(
    tmp_path, n_candidates, stop
):
    side = np.arange(12) * 0.1
    X = np.repeat(np.stack(np.meshgrid(side, side), -1).reshape(-1, 2), 3, axis=0)
    y = (np.floor(X[:, 0] / 0.3) + np.floor(X[:, 1] / 0.3)).astype(int) % 2
    y ^= np.random.default_rng(0).random(len(y)) < 0.1
    same = {"n_candidates": n_candidates, "random_state": 0, "min_rows": 3, "radius": 0.35}
    whole = holes(**same, max_holes=14).fit(X, y)
    holes(**same, max_holes=stop, checkpoint=tmp_path / "fit").fit(X, y)
    resumed = holes(**same, max_holes=14, checkpoint=tmp_path / "fit").fit(X, y)
    assert kept(resumed) == kept(whole)


def test_an_interrupted_note_leaves_holes_and_errors_that_fit_together(monkeypatch):
    X, y = blobs()
    note = punch_module.Puncher.note

    def interrupted(self, state):
        if len(state.holes) == 3:
            raise KeyboardInterrupt
        note(self, state)

    monkeypatch.setattr(punch_module.Puncher, "note", interrupted)
    with pytest.warns(UserWarning, match="keeps 2 holes"):
        model = holes().fit(X, y)
    assert (model.n_holes_, len(model.errors_)) == (2, 3)
    assert model.errors_[-1] == np.mean(model.predict(X) != y)


# -- scales ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("far", [1e3, 1e6, 1e8])
def test_a_far_row_does_not_matter_in_single_precision_either(far):
    X, y = make_moons(300, noise=0.1, random_state=0)
    base = {"estimator": DummyClassifier(), "local_estimator": LogisticRegression(), "radius": 0.5}
    near = holes(**base).fit(X.astype(np.float32), y)
    with_it = np.vstack([X, [[far, -far]]]).astype(np.float32)
    model = holes(**base).fit(with_it, np.append(y, 0))
    assert near.n_holes_ > 1
    assert [hole.row for hole in model.holes_] == [hole.row for hole in near.holes_]


@pytest.mark.parametrize("apart", [1e4, 1e6, 1e7])
def test_clusters_far_apart_are_seen_in_full(apart):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    y = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    X[150:] += apart
    # A tree, for logistic regression may not converge so far from the origin.
    inner = {"estimator": DummyClassifier(), "local_estimator": DecisionTreeClassifier()}
    model = holes(**inner, max_holes=300, radius=0.3, min_rows=1).fit(X, y)
    assert model.errors_[-1] == 0.0
    assert model.score(X, y) == 1.0
