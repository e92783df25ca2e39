"""Fits on a cluster: the same bits on any workers, exchanges, checkpoints, Ctrl-C, what is kept."""

import _thread
import gc
import pickle
import random
import signal
import threading
import time
from contextlib import contextmanager

import dask
import dask.array as da
import joblib
import numpy as np
import pytest
from dask_rows import array_of, workers
from sklearn.base import clone

from laconic import ShareBoostClassifier, TotalQBoostClassifier
from laconic.beyond import cluster as on_cluster
from laconic.look import parts_bar
from laconic.model.predictor import Predictor
from laconic.rows.keeper import Keeper
from laconic.rows.tree import FAN
from problems import random_problem
from rows.test_shards import table

X, Y = table()
CUTS = (10, 11, 25, 40, 60, 70, 80, 100, 110)
assert len(CUTS) + 1 > FAN  # so that sums are added in more than one step

MODELS = {
    "columns": ShareBoostClassifier(3),
    "stumps": ShareBoostClassifier(3, pool="stumps"),
    "subsets": TotalQBoostClassifier(3, loss="log"),
}


def fit(model, y=Y, **settings):
    return clone(model).set_params(**settings).fit(array_of(X, CUTS), array_of(y, CUTS))


# -- bits ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def one_worker():
    """Models that were fitted on one worker."""
    with workers(1) as client, client.as_current():
        return {name: fit(model) for name, model in MODELS.items()}


@pytest.mark.parametrize(("number", "names"), [(2, ["columns"]), (3, MODELS)])
def test_the_number_of_workers_changes_no_bit(number, names, one_worker, assert_identical):
    with workers(number) as client, client.as_current():
        for name in names:
            assert_identical(one_worker[name], fit(MODELS[name]))


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_without_a_client_has_the_same_bits(name, one_worker, assert_identical):
    for settings in ({}, {"n_jobs": 3}):
        assert_identical(one_worker[name], fit(MODELS[name], **settings))


def test_the_order_of_answers_changes_no_bit(cluster, one_worker, assert_identical, monkeypatch):
    """Workers are threads of this process, so what is changed here is changed there."""
    late, answer, asked = random.Random(0), Keeper.answer, []

    def slowly(keeper, *question):
        time.sleep(0.004 * late.random())
        asked.append(id(keeper))
        return answer(keeper, *question)

    monkeypatch.setattr(Keeper, "answer", slowly)
    with cluster.as_current():
        assert_identical(one_worker["columns"], fit(MODELS["columns"]))
    first, *_, last = (asked[at : at + 10] for at in range(0, len(asked), 10))
    assert first != last


@pytest.mark.parametrize("small", [0, 1 << 40])
def test_sums_on_workers_and_on_the_client_have_the_same_bits(
    small, cluster, one_worker, assert_identical, monkeypatch
):
    monkeypatch.setattr(on_cluster, "SMALL", small)
    with cluster.as_current():
        assert_identical(one_worker["subsets"], fit(MODELS["subsets"]))


def test_large_questions_are_sent_once(cluster, one_worker, assert_identical, monkeypatch):
    monkeypatch.setattr(on_cluster, "LARGE", 0)
    with cluster.as_current():
        assert_identical(one_worker["columns"], fit(MODELS["columns"]))


def test_threads_of_the_client_change_no_bit(cluster, one_worker, assert_identical):
    with cluster.as_current():
        assert_identical(one_worker["stumps"], fit(MODELS["stumps"], n_jobs=3))


# -- exchanges -------------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", ["columns", "stumps"])
def test_a_round_takes_at_most_six_exchanges_in_the_mean(pool, cluster):
    rows, labels = random_problem(m=800, d=40)
    given = da.from_array(rows, chunks=(400, -1)), da.from_array(labels, chunks=400)
    with cluster.as_current():
        model = ShareBoostClassifier(20, pool=pool).fit(*given)
    assert model.n_atoms_ == 20
    assert model.exchanges_.count <= 6 * 20
    assert model.exchanges_.sent > 0
    assert model.exchanges_.received > 0


def test_rows_in_this_process_make_no_exchanges(cluster):
    assert not hasattr(fit(MODELS["columns"]), "exchanges_")
    with cluster.as_current():
        assert not hasattr(clone(MODELS["columns"]).fit(X, Y), "exchanges_")
        assert fit(MODELS["columns"]).exchanges_.count > 0


@pytest.mark.parametrize("of", [{"price": [0.05, 0.002]}, {"l1": [0.002, 0.05]}])
def test_a_path_counts_each_exchange_once(of, cluster, monkeypatch):
    asked, ask = [], on_cluster.ClusterCarrier.ask
    monkeypatch.setattr(
        on_cluster.ClusterCarrier, "ask", lambda *own: asked.append(own[2]) or ask(*own)
    )
    model = clone(MODELS["subsets"]).set_params(hot_start=2)
    with cluster.as_current():
        path = model.fit_path(array_of(X, CUTS), array_of(Y, CUTS), **of)
    told = [one.exchanges_ for one in path]
    assert sum(one.count for one in told) == len(asked)
    assert all(one.count > 0 and one.sent > 0 and one.received > 0 for one in told)
    path = model.fit_path(array_of(X, CUTS), array_of(Y, CUTS), **of)
    assert not any(hasattr(one, "exchanges_") for one in path)


# -- checkpoints and Ctrl-C ------------------------------------------------------------------------


def press(size):
    """Return a callback that presses Ctrl-C once a model has so many atoms."""

    def callback(state):
        if state.last.size == size:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize(("name", "anywhere"), [
    *((name, "here") for name in MODELS), ("columns", "cluster"), ("subsets", "cluster"),
], indirect=["anywhere"])  # fmt: skip
def test_an_interrupted_fit_keeps_what_it_learned_and_goes_on(
    name, anywhere, tmp_path, assert_identical
):
    kept = {"checkpoint": tmp_path / "fit"}
    with pytest.warns(UserWarning, match="fit was interrupted; the model keeps 2 atoms"):
        part = fit(MODELS[name], callbacks=[press(2)], **kept)
    assert part.status_ == "interrupted"
    assert part.n_atoms_ == 2
    assert part.score(array_of(X), array_of(Y)) > 0.4
    assert_identical(fit(MODELS[name]), fit(MODELS[name], **kept))


def test_a_checkpoint_goes_on_where_the_rows_are_now(cluster, tmp_path, assert_identical):
    """A fit that began on a cluster ends in this process, and the other way round."""
    expected = fit(MODELS["columns"])
    for first, second in ((True, False), (False, True)):
        kept = {"checkpoint": tmp_path / f"fit {first}"}
        for there, settings in ((first, {"callbacks": [press(2)]}), (second, {})):
            with cluster.as_current() if there else dask.config.set():
                if settings:
                    with pytest.warns(UserWarning, match="interrupted"):
                        fit(MODELS["columns"], **kept, **settings)
                else:
                    found = fit(MODELS["columns"], **kept)
        assert_identical(expected, found)


def test_a_checkpoint_of_other_rows_is_refused(anywhere, tmp_path):
    kept = {"checkpoint": tmp_path / "fit"}
    fit(MODELS["columns"], **kept)
    with pytest.raises(ValueError, match="checkpoint"):
        fit(MODELS["columns"], (Y + 1) % 3, **kept)


@pytest.fixture
def interrupts():
    """Ctrl-C interrupts, also if the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_ctrl_c_while_workers_are_busy(cluster, monkeypatch):
    """The fit waits for answers when it is interrupted. The cluster can be used again."""
    answer, hold = Keeper.answer, threading.Event()

    def held(keeper, *question):
        if hold.is_set():
            hold.clear()
            threading.Timer(0.2, _thread.interrupt_main).start()
            time.sleep(0.6)
        return answer(keeper, *question)

    def later(state):
        if state.last.size == 2:
            hold.set()

    monkeypatch.setattr(Keeper, "answer", held)
    with cluster.as_current():
        with pytest.warns(UserWarning, match="fit was interrupted; the model keeps 2 atoms"):
            model = fit(MODELS["columns"], callbacks=[later])
        assert model.status_ == "interrupted"
        assert fit(MODELS["columns"]).n_atoms_ == 3


@pytest.mark.usefixtures("interrupts")
def test_ctrl_c_before_there_is_a_model_is_raised(cluster):
    def slow(x):
        time.sleep(0.4)
        return x

    def fit_slowly():
        threading.Timer(0.2, _thread.interrupt_main).start()
        ShareBoostClassifier(2).fit(array_of(X).map_blocks(slow, meta=X[:0]), array_of(Y))
        time.sleep(1.0)

    with cluster.as_current(), pytest.raises(KeyboardInterrupt):
        fit_slowly()


def test_a_callback_may_end_a_fit(anywhere):
    assert fit(MODELS["columns"], callbacks=[lambda state: state.last.size == 2]).n_atoms_ == 2


def test_a_bar_shows_parts(anywhere, monkeypatch):
    told = []

    @contextmanager
    def bar(verbose, what):
        here = threading.current_thread()

        def tell(share):
            assert is_open[0]
            assert threading.current_thread() is here
            told.append((what, share))

        is_open = [True]
        yield tell
        is_open[0] = False

    monkeypatch.setattr(parts_bar, "share_bar", bar)
    fit(MODELS["stumps"])
    assert told == []
    fit(MODELS["stumps"], verbose=1)
    for what in ("looking at the rows", "surveying the rows"):
        shares = [share for name, share in told if name == what]
        assert shares == [part / 10 for part in range(1, 11)]


# -- what is kept ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stumps", "subsets"])
def test_a_fitted_model_carries_no_client(name, cluster, tmp_path):
    with cluster.as_current():
        model = fit(MODELS[name])
    before = model.predict(X)
    content = pickle.dumps(model)
    assert b"distributed" not in content
    assert b"laconic.beyond" not in content
    joblib.dump(model, tmp_path / "model")
    for other in (pickle.loads(content), joblib.load(tmp_path / "model"), clone(model).fit(X, Y)):
        assert np.array_equal(other.predict(X), before)
    assert pickle.loads(content).exchanges_ == model.exchanges_


def test_a_model_saves_its_predictor(cluster, tmp_path):
    with cluster.as_current():
        model = fit(MODELS["stumps"])
    model.predictor_.save(tmp_path / "model.laconic")
    assert np.array_equal(Predictor.load(tmp_path / "model.laconic").predict(X), model.predict(X))


def test_a_fit_leaves_nothing_on_the_workers(cluster):
    with cluster.as_current():
        model = fit(MODELS["columns"])
        for _ in range(50):
            gc.collect()  # errors of earlier tests may hold results in cycles
            held = cluster.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))
            if not held:
                break
            time.sleep(0.1)
    assert held == []
    assert model.n_atoms_ == 3


def test_fits_in_memory_do_not_import_dask(python):
    code = (
        "import sys, numpy as np, laconic;"
        "X = np.random.default_rng(0).random((60, 3));"
        "m = laconic.ShareBoostClassifier(2).fit(X, X[:, 0] > 0.5);"
        "m.predict(X), m.score(X, X[:, 0] > 0.5);"
        "assert not {'dask', 'distributed', 'laconic.beyond'} & set(sys.modules), 'imported'"
    )
    process = python(code)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
