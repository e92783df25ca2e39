"""Checkpoints: a fit that is killed resumes and ends with the identical model."""

import json
import signal

import numpy as np
import pytest
from sklearn.base import clone

from laconic import ShareBoostClassifier
from problems import random_problem

# Fits with a checkpoint and kills its own process: after the n-th round, or while the n-th
# checkpoint is being put into place.
KILLED = """
import json, os, signal, sys
import numpy as np
from laconic import ShareBoostClassifier

data, checkpoint, settings, when, n = sys.argv[1:]
left = int(n)

def kill(*_):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

settings = json.loads(settings)
if when == "round":
    settings["callbacks"] = [kill]
else:
    replace = os.replace
    os.replace = lambda old, new: (kill(), replace(old, new))
with np.load(data) as file:
    ShareBoostClassifier(checkpoint=checkpoint, **settings).fit(file["X"], file["y"])
"""

HELD_OUT = {"early_stopping": True, "validation_fraction": 0.3, "random_state": 0}

# Settings, and when the process dies. Growing 6 atoms takes rounds 1 to 7; those after refine.
CASES = {
    "columns": ({}, ("round", 4)),
    "stumps": ({"pool": "stumps"}, ("round", 4)),
    "products": ({"pool": "products"}, ("round", 4)),
    "projection": ({"rule": "projection"}, ("round", 5)),
    "refining": ({"refine": True, "pool": "stumps"}, ("round", 10)),
    "held out": ({**HELD_OUT, "n_iter_no_change": 3}, ("round", 4)),
    "writing": ({}, ("write", 4)),
}
ROWS = {"columns": 5000}  # more than one block; the other cases do with fewer


def problem(case):
    return random_problem(seed=1, m=ROWS.get(case, 200), d=9)


@pytest.fixture(scope="module")
def killed(python, tmp_path_factory):
    """Start the fit of every case side by side; each ends by its own hand."""
    if not hasattr(signal, "SIGKILL"):
        pytest.skip("needs SIGKILL")
    started = {}
    for case, (settings, when) in CASES.items():
        folder = tmp_path_factory.mktemp("killed")
        X, y = problem(case)
        np.savez(folder / "data.npz", X=X, y=y)
        asked = json.dumps({"max_atoms": 6, "n_jobs": 2, **settings})
        process = python(KILLED, folder / "data.npz", folder / "fit", asked, *when)
        started[case] = (process, folder / "fit")
    checkpoints = {}
    for case, (process, path) in started.items():
        _, errors = process.communicate(timeout=120)
        assert process.returncode == -signal.SIGKILL, errors
        checkpoints[case] = path
    return checkpoints


@pytest.mark.parametrize("case", CASES)
def test_a_killed_fit_resumes_to_the_identical_model(killed, case, assert_identical):
    X, y = problem(case)
    settings = {"max_atoms": 6, **CASES[case][0]}
    rounds = []
    resumed = ShareBoostClassifier(
        checkpoint=killed[case], n_jobs=1, callbacks=[rounds.append], **settings
    ).fit(X, y)
    whole = ShareBoostClassifier(**settings).fit(X, y)
    assert_identical(resumed, whole)
    assert resumed.status_ == whole.status_
    assert np.array_equal(resumed.predict_proba(X), whole.predict_proba(X))
    when, n = CASES[case][1]
    sizes = len(whole.path_) - 1
    total = 1 + sizes + (3 * sizes - 1) * whole.refine
    # A checkpoint that did not come into place is a round to do again.
    assert len(rounds) == total - n + (when == "write")
    if "refine" not in settings:
        assert np.all(np.diff(resumed.path_.seconds) > 0)


# -- within one process ----------------------------------------------------------------------------


class Crash(Exception):
    """Ends a fit the way a power cut does: nothing is cleaned up."""


def crashed(model, X, y, n):
    """Fit a clone that crashes after its n-th round; returns whether it got that far."""
    left = [n]

    def crash(state):
        left[0] -= 1
        if left[0] == 0:
            raise Crash

    try:
        clone(model).set_params(callbacks=[crash]).fit(X, y)
    except Crash:
        return True
    return False


@pytest.mark.parametrize(
    "settings",
    [
        {"refine": True},
        {"refine": True, "rule": "projection"},
        {"refine": True, "include": [8], "groups": [0, 0, 1, 2, 3, 4, 5, 6, 7]},
        {"costs": [1, 2, 3, 4, 5, 6, 7, 8, 9], "max_cost": 15.0, "refine": True},
        {"max_atoms": 9, **HELD_OUT, "n_iter_no_change": 2},
        {"max_atoms": 9, **HELD_OUT, "n_iter_no_change": 2, "refine": True},
        {"penalty": "linf_l1", "alpha": 1e-3, "loss": "log"},
        {"fit_intercept": False, "scale": "std", "pool": "products"},
        {"rule": "column"},
    ],
    ids=str,
)
def test_in_whichever_round_it_ends_it_resumes_identically(tmp_path, settings, assert_identical):
    X, y = random_problem(seed=2, m=90, d=9, noise=2.0)
    settings = {"max_atoms": 4, **settings}
    whole = ShareBoostClassifier(**settings).fit(X, y)
    n = 1
    while crashed(ShareBoostClassifier(checkpoint=tmp_path / f"{n}", **settings), X, y, n):
        resumed = ShareBoostClassifier(checkpoint=tmp_path / f"{n}", **settings).fit(X, y)
        assert_identical(resumed, whole)
        n += 1
    assert n > len(whole.path_)


def test_it_may_be_killed_again_and_again(tmp_path, assert_identical):
    X, y = random_problem(seed=3, m=90, d=9)
    model = ShareBoostClassifier(4, refine=True, checkpoint=tmp_path / "fit")
    times = 0
    while crashed(model, X, y, 1):
        times += 1
    assert times == 5 + 4 + 3 + 4  # grown, refined, swept down and up
    assert_identical(model.fit(X, y), ShareBoostClassifier(4, refine=True).fit(X, y))


def test_single_precision_resumes_identically(tmp_path, assert_identical):
    X, y = random_problem(seed=3, m=90, d=9, dtype=np.float32)
    model = ShareBoostClassifier(6, checkpoint=tmp_path / "fit")
    assert crashed(model, X, y, 4)
    assert_identical(model.fit(X, y), ShareBoostClassifier(6).fit(X, y))


def test_a_checkpoint_does_not_change_the_fit(three_classes, tmp_path, assert_identical):
    X, y = three_classes
    written = ShareBoostClassifier(5, checkpoint=str(tmp_path / "fit")).fit(X, y)
    assert_identical(written, ShareBoostClassifier(5).fit(X, y))
    assert [p.name for p in tmp_path.iterdir()] == ["fit"]


def test_an_interrupted_fit_resumes_identically(three_classes, tmp_path, assert_identical):
    X, y = three_classes

    def press(state):
        if state.last.size == 2:
            raise KeyboardInterrupt

    model = ShareBoostClassifier(5, checkpoint=tmp_path / "fit")
    with pytest.warns(UserWarning, match="interrupted"):
        clone(model).set_params(callbacks=[press]).fit(X, y)
    assert_identical(model.fit(X, y), ShareBoostClassifier(5).fit(X, y))


# -- finished fits ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"refine": True},
        {"max_atoms": 99},
        {"max_cost": 3.0},
        {**HELD_OUT, "n_iter_no_change": 2},
        {**HELD_OUT, "n_iter_no_change": 2, "refine": True},
    ],
    ids=str,
)
def test_a_finished_fit_is_taken_up_as_it_is(tmp_path, settings, assert_identical):
    X, y = random_problem(seed=2, m=90, d=9, noise=2.0)
    settings = {"max_atoms": 7, "checkpoint": tmp_path / "fit", **settings}
    first = ShareBoostClassifier(**settings).fit(X, y)
    rounds = []
    again = ShareBoostClassifier(callbacks=[rounds.append], **settings).fit(X, y)
    assert_identical(again, first)
    assert rounds == []


@pytest.mark.parametrize("settings", [{}, {"pool": "stumps"}, {"refine": True}], ids=str)
def test_a_larger_size_continues_a_smaller_one(three_classes, tmp_path, settings, assert_identical):
    X, y = three_classes
    settings["checkpoint"] = tmp_path / "fit"
    ShareBoostClassifier(3, **settings).fit(X, y)
    larger = ShareBoostClassifier(7, **settings).fit(X, y)
    settings["checkpoint"] = None
    assert_identical(larger, ShareBoostClassifier(7, **settings).fit(X, y))


@pytest.mark.parametrize("settings", [{}, {"refine": True}], ids=str)
def test_a_smaller_size_takes_its_part_of_a_larger_one(
    three_classes, tmp_path, settings, assert_identical
):
    X, y = three_classes
    ShareBoostClassifier(7, checkpoint=tmp_path / "fit", **settings).fit(X, y)
    smaller = ShareBoostClassifier(3, checkpoint=tmp_path / "fit", **settings).fit(X, y)
    assert_identical(smaller, ShareBoostClassifier(3, **settings).fit(X, y))


@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("patience", [1, 4])
def test_another_patience_ends_where_it_would_have_ended(
    tmp_path, patience, refine, assert_identical
):
    X, y = random_problem(seed=2, m=90, d=9, noise=2.0)
    settings = {"max_atoms": 9, "refine": refine, **HELD_OUT}
    path = tmp_path / "fit"
    ShareBoostClassifier(checkpoint=path, n_iter_no_change=2, **settings).fit(X, y)
    resumed = ShareBoostClassifier(checkpoint=path, n_iter_no_change=patience, **settings).fit(X, y)
    fresh = ShareBoostClassifier(n_iter_no_change=patience, **settings).fit(X, y)
    assert_identical(resumed, fresh)
    assert np.array_equal(resumed.validation_losses_, fresh.validation_losses_)


@pytest.mark.parametrize("caps", [(6.0, 12.0), (12.0, 6.0)], ids=str)
def test_another_cap_is_refused_or_ends_where_it_would_have_ended(
    three_classes, tmp_path, caps, assert_identical
):
    """Close to its cap a fit chooses what it can still afford, not what helps most."""
    X, y = three_classes
    settings = {"costs": [2.0, 5.0, 0.5, 3.0, 1.0, 4.0, 1.5, 2.5], "max_atoms": 8}
    path = tmp_path / "fit"
    ShareBoostClassifier(checkpoint=path, max_cost=caps[0], **settings).fit(X, y)
    model = ShareBoostClassifier(checkpoint=path, max_cost=caps[1], **settings)
    try:
        model.fit(X, y)
    except ValueError as error:
        refused = "other data or settings" in str(error)
        assert refused
    else:
        assert_identical(model, ShareBoostClassifier(max_cost=caps[1], **settings).fit(X, y))


def test_cross_validation_and_checkpoint_go_together(three_classes, tmp_path, assert_identical):
    X, y = three_classes
    model = ShareBoostClassifier(5, cv=3, checkpoint=tmp_path / "fit")
    assert crashed(model, X, y, 3)
    assert_identical(model.fit(X, y), ShareBoostClassifier(5, cv=3).fit(X, y))
    assert [p.name for p in tmp_path.iterdir()] == ["fit"]


def test_a_change_in_any_row_is_other_data(tmp_path):
    X, y = random_problem(m=5000, d=3)
    ShareBoostClassifier(2, checkpoint=tmp_path / "fit").fit(X, y)
    X[3333, 1] += 0.1
    with pytest.raises(ValueError, match="other data or settings"):
        ShareBoostClassifier(2, checkpoint=tmp_path / "fit").fit(X, y)
