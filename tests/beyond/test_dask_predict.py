"""Fitted models answer Dask collections lazily, with the answers that they give in memory."""

import threading

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask_rows import CUTS, array_of, frame_of, lengths
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from test_dask_fit import FEATURES, shop

from laconic import (
    CompactClassifier,
    ErrorClumpingClassifier,
    HolePunchingClassifier,
    ShareBoostClassifier,
    TotalQBoostClassifier,
)
from problems import blobs
from rows.test_shards import table

X, Y = table()
NAMES = np.array(["no", "yes", "perhaps"])[Y]
METHODS = ["predict", "predict_proba", "decision_function", "transform", "corrected_proba"]


@pytest.fixture(scope="module")
def models():
    """Fitted models of three classes, of two, of stumps, and with holes."""
    P, q = blobs(120)
    holes = HolePunchingClassifier(LogisticRegression(), max_holes=2, random_state=0)
    found = {
        "share": (ShareBoostClassifier(3, class_weight="balanced").fit(X, NAMES), X),
        "two": (ShareBoostClassifier(3, pool="stumps").fit(X, Y > 0), X),
        "totalq": (TotalQBoostClassifier(5).fit(X, Y > 0), X),
        "clumps": (ErrorClumpingClassifier(max_iter=5).fit(X, NAMES), X),
        "two clumps": (ErrorClumpingClassifier(max_iter=5).fit(X, Y > 0), X),
        "holes": (holes.fit(P, q), P),
        "compact": (
            CompactClassifier(max_bytes=4000, pools=["columns"], cv=2, random_state=0).fit(X, Y),
            X,
        ),
    }
    return found


MODELS = ["share", "two", "totalq", "clumps", "two clumps", "holes", "compact"]


def refused(*_, **__):
    """A scheduler of Dask, for code that must compute nothing."""
    raise AssertionError("Dask computed something")


def in_parts(ask, rows):
    """Answers in memory, one partition after the other. BLAS rounds single rows in another way."""
    return np.concatenate([ask(part) for part in np.split(rows, CUTS)])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("method", METHODS)
def test_answers_are_lazy_and_those_of_memory(name, method, models, anywhere):
    model, rows = models[name]
    if not hasattr(model, method):
        return
    expected = in_parts(getattr(model, method), rows)
    with dask.config.set(scheduler=refused):
        lazy = getattr(model, method)(array_of(rows))
        unknown = getattr(model, method)(array_of(rows)[array_of(np.arange(120) != 70)])
    assert isinstance(lazy, da.Array)
    assert lazy.chunks[0] == lengths(120)
    assert lazy.shape == expected.shape
    assert np.isnan(unknown.chunks[0]).all()
    for answer in (lazy, unknown):
        assert answer.dtype == expected.dtype
        assert answer._meta.ndim == expected.ndim
    np.testing.assert_array_equal(lazy.compute(), expected)
    kept = np.arange(120) != 70
    np.testing.assert_array_equal(unknown.compute(), expected[kept])


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_those_of_memory(name, models, anywhere):
    model, rows = models[name]
    y = model.predict(rows)
    y[::3] = model.classes_[0]
    weight = np.where(np.arange(120) < CUTS[0], 0.0, np.arange(120))  # a partition counts nothing
    given = array_of(rows), array_of(y)
    assert isinstance(model.score(*given), float)
    assert model.score(*given) == pytest.approx(model.score(rows, y), abs=1e-12)
    found = model.score(*given, sample_weight=array_of(weight))
    assert found == pytest.approx(model.score(rows, y, sample_weight=weight), abs=1e-12)


WRONG = {
    "whole numbers": Y,
    "truth values": Y > 0,
    "other numbers": X[:, 0],
    "missing": np.where(Y > 0, NAMES, None),
    "NaN": np.where(Y > 0, np.nan, 1.0),
}


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize("name", WRONG)
def test_a_score_refuses_what_it_refuses_in_memory(name, anywhere):
    """Labels of another kind would all count as errors."""
    model, y = ShareBoostClassifier(3).fit(X, NAMES), WRONG[name]
    with pytest.raises((TypeError, ValueError)):
        model.score(X, y)
    with pytest.raises(ValueError, match=r"(?s)(Mix of|no label|NaN|mix of).*\(in part \d of X\)"):
        model.score(array_of(X), array_of(y))


def test_models_with_groups_of_labels_score_dask(anywhere):
    groups = {"not yes": ["no", "perhaps"], "yes": ["yes"]}
    model = ErrorClumpingClassifier(label_groups=groups, max_iter=5).fit(X, NAMES)
    found = model.score(array_of(X), array_of(NAMES))
    assert found == pytest.approx(model.score(X, NAMES), abs=1e-12)


def test_frames_give_arrays_of_unknown_lengths(anywhere):
    rows = shop()
    model = ShareBoostClassifier(6, pool="stumps").fit(rows[FEATURES], rows.label)
    given = frame_of(rows)[FEATURES]
    for method in METHODS:
        expected = getattr(model, method)(rows[FEATURES])
        with dask.config.set(scheduler=refused):
            lazy = getattr(model, method)(given)
        assert isinstance(lazy, da.Array)
        assert lazy.dtype == expected.dtype
        assert lazy.ndim == expected.ndim
        assert lazy.shape[1:] == expected.shape[1:]
        np.testing.assert_array_equal(lazy.compute(), expected)
    unknown = given.assign(colour=given["colour"].cat.as_unknown())
    expected = model.predict(rows[FEATURES])
    np.testing.assert_array_equal(model.predict(unknown).compute(), expected)
    assert model.score(given, frame_of(rows).label) == pytest.approx(
        (expected == rows.label).mean()
    )


def test_a_frame_that_dask_reads_from_files_takes_its_answers_as_columns(anywhere, tmp_path):
    """Dask joins more files when it reads fewer columns."""
    pytest.importorskip("pyarrow")
    rows, names = pd.DataFrame(X, columns=list("abcdef")).assign(y=Y), ["a", "b"]
    for number, first in enumerate(range(0, 120, 20)):
        rows[first : first + 20].to_parquet(tmp_path / f"{number}.parquet")
    given = dd.read_parquet(str(tmp_path))
    assert (given[names] + 1).optimize().npartitions < given.npartitions == 6
    model = ShareBoostClassifier(3, pool="stumps").fit(rows[names], NAMES)
    for frame in (given, given[names], given[["y"]]):
        said = frame.assign(said=model.predict(given[names])).compute()
        assert np.array_equal(said.said, model.predict(rows[names]))
    chances = model.predict_proba(given[names])
    assert chances.numblocks == (6, 1)
    np.testing.assert_array_equal(chances.compute(), model.predict_proba(rows[names]))


def test_sparse_chunks(anywhere):
    rows = sparse.csr_matrix(np.where(X > 0.2, X, 0.0))
    for pool in ("columns", "stumps"):
        model = ShareBoostClassifier(3, pool=pool).fit(rows, NAMES)
        for method in METHODS:
            expected = getattr(model, method)(rows)
            found = getattr(model, method)(array_of(rows)).compute()
            np.testing.assert_array_equal(found, expected)


def test_empty_partitions(anywhere):
    model = ShareBoostClassifier(3).fit(X, NAMES)
    kept = (np.arange(120) < 50) | (np.arange(120) >= 100)
    some = array_of(X)[array_of(kept)]
    np.testing.assert_array_equal(model.predict(some).compute(), model.predict(X[kept]))
    rows = shop()
    stumps = ShareBoostClassifier(3, pool="stumps").fit(rows[FEATURES], rows.label)
    given = frame_of(rows)
    some = given[given.whole < 0][FEATURES]
    assert stumps.predict(some).compute().tolist() == []
    assert stumps.predict_proba(some).compute().shape == (0, 3)


def test_a_predictor_answers_each_partition(models):
    model, rows = models["two"]
    predictor, cut = model.predictor_, da.from_array(rows, chunks=(50, -1))
    with pytest.raises(TypeError, match=r"X is a Dask collection; .* X\.map_blocks or X\.map_p"):
        predictor.predict(cut)
    lazy = cut.map_blocks(predictor.predict, drop_axis=1, dtype=bool)
    assert np.array_equal(lazy.compute(), predictor.predict(rows))


def test_every_size_is_lazy():
    model = ShareBoostClassifier(3).fit(X, NAMES)
    for method in ("staged_predict", "staged_predict_proba"):
        with dask.config.set(scheduler=refused):
            lazy = list(getattr(model, method)(array_of(X)))
        for one, other in zip(lazy, getattr(model, method)(X), strict=True):
            np.testing.assert_array_equal(one.compute(), other)
    assert np.array_equal(model.at(1).predict(array_of(X)).compute(), model.at(1).predict(X))


def test_holes_answer_lazily(models):
    model, rows = models["holes"]
    with dask.config.set(scheduler=refused):
        regions, stages = model.apply(array_of(rows)), list(model.staged_predict(array_of(rows)))
    np.testing.assert_array_equal(regions.compute(), model.apply(rows))
    for one, other in zip(stages, model.staged_predict(rows), strict=True):
        np.testing.assert_array_equal(one.compute(), other)


def test_lazy_answers_go_on(anywhere):
    model = ShareBoostClassifier(3).fit(X, Y)
    errors = (model.predict(array_of(X)) != array_of(Y)).mean()
    assert errors.compute() == pytest.approx(1 - model.score(X, Y))
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(y=Y)
    model = ShareBoostClassifier(3).fit(frame[list("abcdef")], Y)
    given = frame_of(frame)
    given["said"] = model.predict(given[list("abcdef")])
    assert (given.compute().said == model.predict(frame[list("abcdef")])).all()


def test_a_pipeline_answers_lazily():
    model = make_pipeline(FunctionTransformer(np.negative), ShareBoostClassifier(3)).fit(X, NAMES)
    lazy = model.predict(array_of(X))
    assert isinstance(lazy, da.Array)
    assert np.array_equal(lazy.compute(), model.predict(X))


def test_lazy_answers_are_arrays_only():
    model = ShareBoostClassifier(3).fit(X, NAMES).set_output(transform="pandas")
    with pytest.raises(
        ValueError, match=r"with Dask arrays, and not .* call set_output\(transform="
    ):
        model.transform(array_of(X))
    assert isinstance(model.predict(array_of(X)), da.Array)


def test_only_what_predicts_travels_to_workers(cluster):
    """Callbacks and samplers may hold what cannot be pickled."""
    lock = threading.Lock()
    model = ShareBoostClassifier(3, callbacks=[lambda state: lock.locked()]).fit(X, NAMES)
    with cluster.as_current():
        assert np.array_equal(model.predict(array_of(X)).compute(), model.predict(X))
        assert model.score(array_of(X), array_of(NAMES)) == pytest.approx(model.score(X, NAMES))


def test_cuts_of_rows_change_no_answer():
    model = ShareBoostClassifier(3).fit(X, NAMES)
    for cuts in ((), CUTS, tuple(range(1, 120))):
        assert np.array_equal(model.predict(array_of(X, cuts)).compute(), model.predict(X))
