"""Fits of folds run at the same time if joblib's context says so, with the same bits."""

import os
import threading
import time
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

from laconic import (
    CompactClassifier,
    ErrorClumpingClassifier,
    HolePunchingClassifier,
    ShareBoostClassifier,
    TotalQBoostClassifier,
)
from laconic.estimators import independent as module
from laconic.estimators.independent import independent
from laconic.numeric.threads import Threads
from problems import random_problem

X, Y = random_problem(m=150, d=5, seed=3)

CHOSEN = {
    "share": ShareBoostClassifier(4, cv=3),
    "scored": ShareBoostClassifier(4, cv=3, scoring="neg_log_loss"),
    "sizes": TotalQBoostClassifier(4, loss="log", cv=3),
    "prices": TotalQBoostClassifier(4, loss="log", price=[0.05, 0.01], cv=3),
    "compact": CompactClassifier(2000, pools=["columns", "stumps"], cv=3, max_atoms=4,
                                 random_state=0),
}  # fmt: skip


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    dask = pytest.importorskip("dask")
    settings = {"threads_per_worker": 1, "dashboard_address": ":0", "set_as_default": False}
    with (
        dask.config.set(scheduler=None),  # Dask may leave it set to a client that is closed
        distributed.Client(processes=False, n_workers=2, **settings) as client,
    ):
        yield client


@pytest.fixture(params=["dask", "threading", "loky"])
def at_once(request):
    """A context of joblib in which jobs run at the same time."""
    if request.param == "dask":
        with (
            request.getfixturevalue("cluster").as_current(),
            joblib.parallel_config("dask"),
        ):
            yield
        return
    with joblib.parallel_config(request.param, n_jobs=2):
        yield


def busy_in(n_jobs):
    """Where a task ran, and with how many threads."""
    time.sleep(0.05)
    return os.getpid(), threading.get_ident(), n_jobs


def places(**settings):
    return list(independent(lambda n_jobs, _: busy_in(n_jobs), [(i,) for i in range(4)], (),
                            **settings))  # fmt: skip


def test_fits_run_one_after_the_other_without_a_context():
    here = os.getpid(), threading.get_ident()
    assert set(places(threads=7)) == {(*here, 7)}
    assert set(places(n_jobs=1, threads=1)) == {(*here, 1)}


def test_fits_run_at_the_same_time_in_a_context(at_once):
    found = places(threads=7)
    assert (os.getpid(), threading.get_ident()) not in {place[:2] for place in found}
    assert {n_jobs for *_, n_jobs in found} == {1}


def test_answers_are_in_order(at_once):
    tasks = [(number,) for number in range(6)]

    def slow_first(n_jobs, number, factor):
        time.sleep(0.02 * (6 - number))
        return factor * number

    assert list(independent(slow_first, tasks, (2,))) == [0, 2, 4, 6, 8, 10]


@pytest.mark.parametrize("name", CHOSEN)
def test_bits_do_not_depend_on_where_folds_run(name, at_once):
    with joblib.parallel_config("sequential"):
        one = clone(CHOSEN[name]).fit(X, Y)
    other = clone(CHOSEN[name]).fit(X, Y)
    assert np.array_equal(one.decision_function(X), other.decision_function(X))
    if name != "compact":
        assert one.atoms_ == other.atoms_
        assert np.array_equal(one.cv_scores_, other.cv_scores_)


@pytest.mark.parametrize("name", ["share", "prices"])
def test_folds_leave_no_warnings_and_no_filters(name, at_once):
    before = list(warnings.filters)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        clone(CHOSEN[name]).fit(X * [1, 1, 1, 0, 1], Y)
    assert all("constant" in str(each.message) for each in told)
    assert list(warnings.filters) == before


def test_tasks_that_are_not_needed_leave_no_warnings():
    with (
        joblib.parallel_config("threading", n_jobs=2),
        warnings.catch_warnings(record=True) as told,
    ):
        warnings.simplefilter("always")
        answers = independent(at_once_or_late, [(number,) for number in range(20)], ())
        assert next(answers) == 0
        time.sleep(0.2)  # some more are done by now
        answers.close()
    assert not told


def at_once_or_late(n_jobs, number):
    time.sleep(0.05 * number)
    return number


def interrupts(n_jobs, number):
    if number == 1:
        raise KeyboardInterrupt
    return number


def test_ctrl_c_of_a_task_is_raised(at_once):
    tasks = [(number,) for number in range(4)]
    with pytest.raises(KeyboardInterrupt):
        list(independent(interrupts, tasks, ()))


def test_a_fold_that_was_interrupted_is_raised(at_once, monkeypatch):
    fit = ShareBoostClassifier.fit

    def interrupted(self, *rows, **more):
        fit(self, *rows, **more)
        self.status_ = "interrupted"
        return self

    if joblib.parallel.get_active_backend()[0].__class__.__name__ == "LokyBackend":
        pytest.skip("other processes do not know of this")
    monkeypatch.setattr(ShareBoostClassifier, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit(clone(CHOSEN["share"]), X, Y)


def test_errors_of_a_fold_are_raised(at_once):
    model = ShareBoostClassifier(2, cv=3, scoring=lambda model, X, y: np.nan)
    with pytest.raises(ValueError, match=r"finite for fold \d of cv"):
        model.fit(X, Y)


def test_a_backend_without_generators_serves_too(monkeypatch):
    class Plain:
        supports_return_generator = False

    monkeypatch.setattr(module, "get_active_backend", lambda: (Plain(), 2))
    with joblib.parallel_config("threading", n_jobs=2):
        assert {n_jobs for *_, n_jobs in places()} == {1}


def test_compact_without_n_jobs_takes_what_the_context_says(monkeypatch):
    from laconic.compact import search

    seen, table = set(), search.fold_table

    def watched(path, *given):
        seen.add(path.n_jobs)
        return table(path, *given)

    monkeypatch.setattr(search, "fold_table", watched)
    few = CompactClassifier(2000, pools=["columns"], cv=2, max_atoms=2, random_state=0)
    few.fit(X, Y)
    assert seen == {None}
    seen.clear()
    with joblib.parallel_config("threading", n_jobs=2):
        few.fit(X, Y)
    assert seen == {1}


# -- scikit-learn on Dask --------------------------------------------------------------------------


@pytest.mark.parametrize("model", [
    ShareBoostClassifier(3),
    TotalQBoostClassifier(3, loss="log"),
    ErrorClumpingClassifier(max_iter=20),
    HolePunchingClassifier(LogisticRegression(), max_holes=1, random_state=0),
    CompactClassifier(2000, pools=["columns"], cv=2, max_atoms=2, random_state=0),
], ids=lambda model: type(model).__name__)  # fmt: skip
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_cross_validation_of_scikit_learn_runs_on_dask(model, cluster):
    expected = cross_val_score(model, X, Y, cv=3)
    with cluster.as_current(), joblib.parallel_config("dask"):
        found = cross_val_score(model, X, Y, cv=3)
    assert np.array_equal(found, expected)


def test_grid_search_runs_on_dask_with_folds_inside(cluster):
    grid = {"pool": ["columns", "stumps"], "cv": [None, 2]}
    search = GridSearchCV(ShareBoostClassifier(3), grid, cv=2)
    expected = clone(search).fit(X, Y)
    with cluster.as_current(), joblib.parallel_config("dask"):
        search.fit(X, Y)
    assert search.best_params_ == expected.best_params_
    found, known = (s.cv_results_["mean_test_score"] for s in (search, expected))
    assert np.array_equal(found, known)


def test_threads_are_those_of_this_machine(cluster, monkeypatch):
    monkeypatch.setattr(type(cluster), "ncores", lambda self: {"a": 500, "b": 500})
    with cluster.as_current(), joblib.parallel_config("dask"):
        assert joblib.effective_n_jobs(-1) == 1000
        assert Threads().n_jobs == Threads(-1).n_jobs == joblib.cpu_count()
        assert Threads(3).n_jobs == 3
        assert Threads(1).n_jobs == 1


def test_a_task_of_dask_has_one_thread(cluster):
    def threads():
        return Threads().n_jobs, Threads(-1).n_jobs, Threads(3).n_jobs

    assert cluster.submit(threads).result() == (1, 1, 3)
